/**
 * The seam between what a store means and where it keeps its rows. The operations of the contract are written once over
 * {@link StoreTx}; a kind of store gives row access, transactions and wakeups as a {@link StoreBackend}.
 */
import type { Effect, Stream } from "effect"
import type { EventRecord } from "./EventText.ts"
import type { EventRow, SessionRow } from "./Rows.ts"
import type { ListSessions, NewEntry, OpFailed, StoreFailure, StoreInfo } from "./RuntimeStore.ts"
import type { KeyOf, RowOf, TableName } from "./Tables.ts"

/** A scan: rows where the named columns are equal (null equals null), bounded, in order of one column and then the key. */
export interface Scan<Row> {
  readonly where?: Partial<Row>
  /** Rows whose column is above (`gt`) or below (`lt`) a number. */
  readonly gt?: readonly [keyof Row & string, number]
  readonly lt?: readonly [keyof Row & string, number]
  readonly order?: keyof Row & string
  readonly descending?: boolean
  readonly limit?: number
}

/** What a write needs of a session before it may number events; read under the row lock. */
export interface SessionHead {
  readonly id: string
  readonly head: number
  readonly fence: number
  readonly lastAt: number
}

/**
 * Rows inside one open transaction. Values are copied on the way in and out. Reads see the transaction's own writes.
 * Effects of a memory or SQLite store are synchronous.
 */
export interface StoreTx {
  /** The time of this transaction in milliseconds: the clock's, or the database's where several machines write. */
  readonly now: number
  /** Locks the session rows, in the order of their ids (13.1), and answers in the order asked. */
  readonly heads: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<SessionHead | undefined>, StoreFailure>
  readonly get: <Name extends TableName>(
    table: Name,
    key: KeyOf<Name>
  ) => Effect.Effect<RowOf<Name> | undefined, StoreFailure>
  readonly scan: <Name extends TableName>(
    table: Name,
    scan: Scan<RowOf<Name>>
  ) => Effect.Effect<ReadonlyArray<RowOf<Name>>, StoreFailure>
  /** Inserts or replaces. */
  readonly put: <Name extends TableName>(table: Name, row: RowOf<Name>) => Effect.Effect<void, StoreFailure>
  /** True when the row was not there. */
  readonly insertIfAbsent: <Name extends TableName>(
    table: Name,
    row: RowOf<Name>
  ) => Effect.Effect<boolean, StoreFailure>
  readonly patch: <Name extends TableName>(
    table: Name,
    key: KeyOf<Name>,
    patch: Partial<RowOf<Name>>
  ) => Effect.Effect<void, StoreFailure>
  readonly remove: <Name extends TableName>(table: Name, key: KeyOf<Name>) => Effect.Effect<void, StoreFailure>

  /**
   * A short way for the most frequent call, where a store has one: deltas of parts that are open already change no row but
   * the session's head. Answers undefined, and has written nothing, whenever the call is not that simple.
   */
  readonly appendDeltas?: (
    sessionId: string,
    fence: number | undefined,
    entries: ReadonlyArray<NewEntry>
  ) => ReadonlyArray<EventRow> | undefined
  readonly insertEvents: (records: ReadonlyArray<EventRecord>) => Effect.Effect<void, StoreFailure>
  /** Records `after + 1 …`, at most `limit` and, once there is one, at most `maxBytes` of payload text. */
  readonly events: (
    sessionId: string,
    after: number,
    limit: number,
    options?: { readonly maxBytes?: number; readonly types?: ReadonlyArray<string> }
  ) => Effect.Effect<ReadonlyArray<EventRecord>, StoreFailure>

  /** Newest `updatedAt` first, ties by id. A row that does not decode is marked (RT-053). */
  readonly listSessions: (input: ListSessions) => Effect.Effect<ReadonlyArray<SessionRow>, StoreFailure>
  /** Ids of the session and all sessions under it. */
  readonly family: (id: string) => Effect.Effect<ReadonlyArray<string>, StoreFailure>
  /** Removes up to `limit` rows of a deleted session; 0 when none is left (RT-051). */
  readonly purge: (sessionId: string, limit: number) => Effect.Effect<number, StoreFailure>

  readonly putChunk: (artifactId: string, n: number, bytes: Uint8Array) => Effect.Effect<void, StoreFailure>
  readonly removeChunks: (artifactId: string) => Effect.Effect<void, StoreFailure>
  readonly chunk: (artifactId: string, n: number) => Effect.Effect<Uint8Array | undefined, StoreFailure>

  readonly op: (extension: string, op: string, args: unknown) => Effect.Effect<unknown, OpFailed | StoreFailure>
  readonly query: (extension: string, name: string, args: unknown) => Effect.Effect<unknown, StoreFailure>
}

/** `normal`: the rows matter only while the machine stays up (STO-041). */
export type Durability = "full" | "normal"

/** A kind of store. */
export interface StoreBackend {
  readonly kind: StoreInfo["kind"]
  readonly open: Effect.Effect<StoreInfo, StoreFailure>
  readonly close: Effect.Effect<void>
  /** Runs the program in one transaction. It may run more than once, and commits at most once. */
  readonly write: <A, E>(
    program: (tx: StoreTx) => Effect.Effect<A, E>,
    durability?: Durability
  ) => Effect.Effect<A, E | StoreFailure>
  /** Runs the program on one consistent snapshot. */
  readonly read: <A, E>(program: (tx: StoreTx) => Effect.Effect<A, E>) => Effect.Effect<A, E | StoreFailure>
  readonly wakeups: Stream.Stream<{ readonly sessionId: string; readonly head: number }, StoreFailure>
  /** Fresh random bytes, for ids. */
  readonly random: (bytes: number) => Uint8Array
}
