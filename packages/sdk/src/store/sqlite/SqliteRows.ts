/**
 * Row access over prepared statements: {@link StoreTx} for one connection. Every statement is prepared once and kept.
 *
 * `changed` is the store-wide counter by which another process finds what moved (STO-044): every transaction that touches
 * a session takes the next value, once.
 */
import { Effect } from "effect"
import type { EventRecord } from "../EventText.ts"
import { unknownOp } from "../Operations.ts"
import { numberEntries } from "../Append.ts"
import type { PartRow, SessionRow } from "../Rows.ts"
import type { ListSessions, NewEntry } from "../RuntimeStore.ts"
import type { Scan, SessionHead, StoreTx } from "../StoreTx.ts"
import {
  decodeListedSession,
  decodeRow,
  encodeColumn,
  encodeRow,
  fromPlainText,
  plainText,
  publicRow,
  tables,
  type ColumnValue,
  type KeyOf,
  type RowOf,
  type Table,
  type TableName
} from "../Tables.ts"
import { runOp } from "../Transaction.ts"
import type { Connection } from "./Database.ts"
import type { SqliteStoreExtension, SqliteTables } from "./Extension.ts"
import {
  columnOf,
  eventColumns,
  insertEvent,
  keyValues,
  listText,
  marks,
  moveHead,
  scanText,
  statementCache,
  texts
} from "./Statements.ts"

type Values = ReadonlyArray<ColumnValue>

/** What the transaction runner sees of the row access: the time to show, and what was done. */
export interface RowState {
  now: number
  /** Counts writing statements. */
  writes: number
  /** Heads that this transaction's current program wrote. */
  heads: Map<string, number>
  /** The value of `changed` for this transaction, once it has one. */
  changed: number | undefined
}

const optionalText = (value: string | null): string | null => (value === null ? null : plainText(value))
const fromOptional = (value: ColumnValue): string | null => (value === null ? null : fromPlainText(String(value)))

const eventRecord = (values: Values): EventRecord => ({
  sessionId: fromPlainText(String(values[0])),
  seq: values[1] as number,
  at: values[2] as number,
  type: fromPlainText(String(values[3])),
  turnId: fromOptional(values[4] ?? null),
  afterTurn: fromOptional(values[5] ?? null),
  payload: String(values[6]),
  artifacts: values[7] === null || values[7] === undefined ? null : String(values[7])
})

/** Tables whose rows go with their session, in the order in which a deletion removes them. */
const ofSession = [
  "tr_interaction",
  "tr_queue",
  "tr_turn",
  "tr_binding",
  "tr_start",
  "tr_todo",
  "tr_usage",
  "tr_usage_total",
  "tr_part",
  "tr_message",
  "tr_receipt",
  "tr_event"
]

const partKey = (sessionId: string, messageId: string, id: string): string => `${sessionId}\0${messageId}\0${id}`

const isPart = (table: TableName, _row: object): _row is PartRow => table === "part"

/** Chunks of 1 MiB that one slice of a deletion removes; freeing them walks their pages. */
const chunksPerSlice = 8

/** Rows known to exist; a memo over committed transactions, so that a stream of deltas asks for its part once. */
const knownRows = 4096

/** The row access of a connection, and what its transaction runner tells it. */
export interface RowAccess {
  readonly tx: StoreTx
  readonly state: RowState
  /** Writes what a transaction has kept for its end; called before it commits or releases a savepoint. */
  readonly beforeCommit: () => void
  readonly committed: () => void
  readonly rolledBack: () => void
  /** What `rolledBackTo` takes when the transaction goes back to this moment. */
  readonly mark: () => number
  readonly rolledBackTo: (mark: number) => void
}

/** Makes the row access of a connection. `writer` names this process on the chunks it puts. */
export const makeRows = (
  db: Connection,
  extensions: ReadonlyArray<SqliteStoreExtension>,
  writer: () => string
): RowAccess => {
  const prepare = statementCache(db)
  const state: RowState = { now: 0, writes: 0, heads: new Map(), changed: undefined }
  const known = new Set<string>()
  const fresh: Array<string> = []

  /** Where the session of the last deltas stands, before its row says so: a run of deltas writes the row once. */
  let moved: SessionHead | undefined
  const writeMoved = (): void => {
    if (moved === undefined) return
    const { head: reached, id, lastAt } = moved
    moved = undefined
    run(moveHead, reached, lastAt, changed(), plainText(id))
  }

  const run = (sql: string, ...parameters: ReadonlyArray<unknown>) => {
    writeMoved()
    state.writes += 1
    return prepare(sql).run(...parameters)
  }
  const first = (sql: string, ...parameters: ReadonlyArray<unknown>) => {
    writeMoved()
    return prepare(sql).get(...parameters) as Values | undefined
  }
  const all = (sql: string, ...parameters: ReadonlyArray<unknown>) => {
    writeMoved()
    return prepare(sql).all(...parameters) as ReadonlyArray<Values>
  }

  const changed = (): number => {
    state.changed ??= first(
      "SELECT max(coalesce((SELECT max(changed) FROM tr_session), 0), coalesce((SELECT max(changed) FROM tr_tombstone), 0)) + 1"
    )?.[0] as number
    return state.changed
  }

  const rowValues = (target: Table, row: object): Array<ColumnValue> => {
    const values = encodeRow(target, row)
    if (target.name === "session" || target.name === "tombstone") values.push(changed())
    return values
  }

  const named = new Map<string, ReturnType<Connection["prepare"]>>()
  const prepareNamed = (sql: string) => {
    writeMoved()
    const statement = named.get(sql) ?? db.prepare(sql)
    named.set(sql, statement)
    if (!statement.readonly) state.writes += 1
    return statement
  }
  const extensionTables: SqliteTables = {
    run: (sql, ...parameters) => prepareNamed(sql).run(...parameters).changes,
    get: (sql, ...parameters) => prepareNamed(sql).get(...parameters) as never,
    all: (sql, ...parameters) => prepareNamed(sql).all(...parameters) as never
  }

  const call = (kind: "ops" | "queries", name: string, member: string, args: unknown) => {
    const found = extensions.find((extension) => extension.name === name)?.[kind][member]
    return found === undefined
      ? Effect.fail(unknownOp(name, member))
      : runOp(name, member, () => found(extensionTables, args as never, state.now))
  }

  const head = (id: string): SessionHead | undefined => {
    const values = first("SELECT head, fence, last_at FROM tr_session WHERE id = ?", plainText(id))
    return values === undefined
      ? undefined
      : { id, head: values[0] as number, fence: values[1] as number, lastAt: values[2] as number }
  }

  const changesNoRow = (sessionId: string, { artifactRows, payload }: NewEntry): boolean => {
    if (artifactRows !== undefined) return false
    if (payload.type === "tool-output-delta") return true
    if (payload.type !== "text-delta" && payload.type !== "thinking-delta") return false
    return known.has(partKey(sessionId, payload.messageId, payload.partId))
  }

  const insertRecords = (records: ReadonlyArray<EventRecord>): void => {
    const statement = prepare(insertEvent)
    state.writes += records.length
    for (const record of records) {
      statement.run(
        plainText(record.sessionId),
        record.seq,
        record.at,
        plainText(record.type),
        optionalText(record.turnId),
        optionalText(record.afterTurn),
        record.payload,
        record.artifacts
      )
    }
  }

  const tx: StoreTx = {
    get now() {
      return state.now
    },
    heads: (ids) => Effect.sync(() => ids.map(head)),
    get: <Name extends TableName>(table: Name, key: KeyOf<Name>) =>
      Effect.sync(() => {
        const values = first(texts[table].get, ...keyValues(tables[table], key))
        return values === undefined ? undefined : decodeRow(table, values)
      }),
    scan: <Name extends TableName>(table: Name, scan: Scan<RowOf<Name>>) =>
      Effect.sync(() => {
        const { parameters, sql } = scanText(tables[table], scan)
        return all(sql, ...parameters).map((values) => decodeRow(table, values))
      }),
    put: (table, row) =>
      Effect.sync(() => {
        run(texts[table].put, ...rowValues(tables[table], row))
      }),
    insertIfAbsent: (table, row) =>
      Effect.sync(() => {
        const target: Table = tables[table]
        const memo =
          isPart(table, row) && row.openFromSeq !== null ? partKey(row.sessionId, row.messageId, row.id) : undefined
        if (memo !== undefined && known.has(memo)) return false
        const isNew = run(texts[table].insert, ...rowValues(target, row)).changes > 0
        if (memo !== undefined) fresh.push(memo)
        return isNew
      }),
    patch: (table, key, patch) =>
      Effect.sync(() => {
        const target: Table = tables[table]
        const sets: Array<string> = []
        const values: Array<ColumnValue> = []
        for (const [name, value] of Object.entries(patch)) {
          const column = columnOf(target, name)
          sets.push(`${column.sql} = ?`)
          values.push(encodeColumn(column.kind, value))
        }
        if (table === "session") {
          sets.push("changed = ?")
          values.push(changed())
          const { head: reached } = patch as { readonly head?: number }
          if (reached !== undefined) state.heads.set((key as unknown as { readonly id: string }).id, reached)
        }
        if (sets.length === 0) return
        run(
          `UPDATE ${target.sql} SET ${sets.join(", ")} WHERE ${texts[table].whereKey}`,
          ...values,
          ...keyValues(target, key)
        )
      }),
    remove: (table, key) =>
      Effect.sync(() => {
        run(texts[table].remove, ...keyValues(tables[table], key))
      }),

    appendDeltas: (sessionId, fence, entries) => {
      if (entries.length === 0 || !entries.every((entry) => changesNoRow(sessionId, entry))) return undefined
      const session = moved?.id === sessionId ? moved : head(sessionId)
      if (session === undefined || (fence !== undefined && session.fence !== fence)) return undefined
      const work = { ...session }
      const { events, records } = numberEntries(work, entries, state.now)
      insertRecords(records)
      moved = work
      state.heads.set(sessionId, work.head)
      return events
    },
    insertEvents: (records) => Effect.sync(() => insertRecords(records)),
    events: (sessionId, after, limit, options) =>
      Effect.sync(() => {
        const types = options?.types ?? []
        const typed = types.length === 0 ? "" : ` AND type IN (${marks(types.length)})`
        const rows = prepare(
          `SELECT ${eventColumns} FROM tr_event WHERE session_id = ? AND seq > ?${typed} ORDER BY seq LIMIT ?`
        ).iterate(plainText(sessionId), after, ...types, limit) as Iterable<Values>
        const page: Array<EventRecord> = []
        const maxBytes = options?.maxBytes ?? Infinity
        let bytes = 0
        for (const values of rows) {
          const record = eventRecord(values)
          bytes += record.payload.length
          if (page.length > 0 && bytes > maxBytes) break
          page.push(record)
        }
        return page
      }),

    listSessions: (input: ListSessions) =>
      Effect.sync((): ReadonlyArray<SessionRow> => {
        const { parameters, sql } = listText(input)
        return all(sql, ...parameters).map((values) => publicRow(decodeListedSession(values)))
      }),
    family: (id) =>
      Effect.sync(() =>
        all(
          `WITH RECURSIVE family (id) AS (
             SELECT ? UNION SELECT s.id FROM tr_session s JOIN family f ON s.parent_id = f.id
           ) SELECT id FROM family`,
          plainText(id)
        ).map((values) => fromPlainText(String(values[0])))
      ),
    purge: (sessionId, limit) =>
      Effect.sync(() => {
        const id = plainText(sessionId)
        let left = limit
        for (const [artifact] of all("SELECT id FROM tr_artifact WHERE session_id = ? LIMIT ?", id, left)) {
          const chunks = run("DELETE FROM tr_artifact_chunk WHERE id = ? LIMIT ?", artifact, chunksPerSlice).changes
          if (chunks === chunksPerSlice) return limit
          left -= run("DELETE FROM tr_artifact WHERE id = ?", artifact).changes
          if (left <= 0) return limit
        }
        for (const table of ofSession) {
          left -= run(`DELETE FROM ${table} WHERE session_id = ? LIMIT ?`, id, left).changes
          if (left <= 0) return limit
        }
        return limit - left
      }),

    putChunk: (artifactId, n, bytes) =>
      Effect.sync(() => {
        run("INSERT INTO tr_artifact_chunk (id, n, writer, data) VALUES (?, ?, ?, ?)", artifactId, n, writer(), bytes)
      }),
    removeChunks: (artifactId) =>
      Effect.sync(() => {
        run("DELETE FROM tr_artifact_chunk WHERE id = ?", artifactId)
      }),
    chunk: (artifactId, n) =>
      Effect.sync(() => {
        const values = prepare("SELECT data FROM tr_artifact_chunk WHERE id = ? AND n = ?").get(artifactId, n) as
          | ReadonlyArray<Uint8Array>
          | undefined
        return values?.[0]
      }),

    op: (extension, op, args) => call("ops", extension, op, args),
    query: (extension, name, args) => Effect.orDie(call("queries", extension, name, args))
  }

  return {
    tx,
    state,
    beforeCommit: writeMoved,
    committed: () => {
      if (known.size > knownRows) known.clear()
      for (const key of fresh) known.add(key)
      fresh.length = 0
      state.changed = undefined
    },
    rolledBack: () => {
      moved = undefined
      fresh.length = 0
      state.changed = undefined
    },
    mark: () => fresh.length,
    rolledBackTo: (mark) => {
      moved = undefined
      fresh.length = mark
    }
  }
}
