/**
 * The store in memory: the contract without durability and without other processes (STO-020). For tests, and for programs
 * whose sessions may end with them.
 *
 * @since 0.1.0
 */
import { mintId } from "@tackroom/protocol"
import { Clock, Effect, Exit, Layer } from "effect"
import { makeStore, unknownOp } from "../Operations.ts"
import type { RuntimeStore, StoreInfo } from "../RuntimeStore.ts"
import { Store } from "../Store.ts"
import type { SessionHead, StoreBackend, StoreTx } from "../StoreTx.ts"
import { closed, runOp, runRows } from "../Transaction.ts"
import { makeWakeups, type Wakeup } from "../Wakeups.ts"
import { makeMemoryTables, type MemorySnapshot, type MemoryTable } from "./MemoryTables.ts"

/** The tables of one extension, by name. */
export type MemoryTablesOf = (table: string) => MemoryTable

/**
 * An extension of the store (13.1) for the memory store. An op or query that throws an error with a `_tag` refuses; the
 * whole call is rolled back and fails with `OpFailed`.
 *
 * @since 0.1.0
 */
export interface MemoryStoreExtension {
  readonly name: string
  readonly tables: ReadonlyArray<string>
  readonly ops: { readonly [op: string]: (tables: MemoryTablesOf, args: never, now: number) => unknown }
  readonly queries: { readonly [query: string]: (tables: MemoryTablesOf, args: never, now: number) => unknown }
}

/** Options of {@link createMemoryRuntimeStore}. @since 0.1.0 */
export interface MemoryStoreOptions {
  /** What an earlier store held (STO-021). */
  readonly snapshot?: MemorySnapshot
  readonly extensions?: ReadonlyArray<MemoryStoreExtension>
}

/** A store in memory that can be written down. @since 0.1.0 */
export interface MemoryRuntimeStore extends RuntimeStore {
  /** A copy of everything the store holds. */
  readonly snapshot: () => MemorySnapshot
}

/** The schema version a memory store answers; it has no file to keep one in. */
const schemaVersion = "1.1"

const random = (bytes: number): Uint8Array => crypto.getRandomValues(new Uint8Array(bytes))

const makeBackend = (options: MemoryStoreOptions) => {
  const tables = makeMemoryTables(options.snapshot)
  const wakeups = makeWakeups()
  let journalId = options.snapshot?.journalId
  let isClosed = false

  const tablesOf =
    (extension: MemoryStoreExtension): MemoryTablesOf =>
    (table) => {
      if (!extension.tables.includes(table)) throw new TypeError(`${extension.name} declares no table ${table}`)
      return tables.extension(extension.name, table)
    }

  const call = (kind: "ops" | "queries", name: string, member: string, args: unknown, now: number) => {
    const extension = options.extensions?.find((candidate) => candidate.name === name)
    const run = extension?.[kind][member]
    if (extension === undefined || run === undefined) return Effect.fail(unknownOp(name, member))
    return runOp(name, member, () => {
      const result: unknown = run(tablesOf(extension), structuredClone(args) as never, now)
      return structuredClone(result)
    })
  }

  const head = (id: string): Effect.Effect<SessionHead | undefined> =>
    Effect.map(tables.get("session", { id }), (row) =>
      row === undefined ? undefined : { id, head: row.head, fence: row.fence, lastAt: row.lastAt }
    )

  const transaction = (now: number, heads: Map<string, number>): StoreTx => ({
    ...tables,
    now,
    heads: (ids) => Effect.forEach(ids, head),
    patch: (table, key, patch) => {
      if (table === "session" && "head" in patch)
        heads.set((key as unknown as { readonly id: string }).id, patch.head as number)
      return tables.patch(table, key, patch)
    },
    op: (extension, op, args) => call("ops", extension, op, args, now),
    query: (extension, name, args) => Effect.orDie(call("queries", extension, name, args, now))
  })

  const info = Effect.clockWith((clock): Effect.Effect<StoreInfo> =>
    Effect.sync(() => {
      journalId ??= mintId("journal", clock.currentTimeMillisUnsafe(), random(10))
      return { kind: "memory", schemaVersion, journalId, multiProcess: false, multiNode: false }
    })
  )

  const run = <A, E>(program: (tx: StoreTx) => Effect.Effect<A, E>) =>
    Effect.clockWith((clock: Clock.Clock) =>
      Effect.suspend(() => {
        if (isClosed) return Effect.fail(closed())
        const heads = new Map<string, number>()
        const exit = runRows(() => program(transaction(clock.currentTimeMillisUnsafe(), heads)))
        if (Exit.isFailure(exit)) tables.rollback()
        else {
          tables.commit()
          wakeups.publish(Array.from(heads, ([sessionId, reached]): Wakeup => ({ sessionId, head: reached })))
        }
        return exit
      })
    )

  const backend: StoreBackend = {
    kind: "memory",
    open: Effect.suspend(() => (isClosed ? Effect.fail(closed()) : info)),
    close: Effect.sync(() => {
      isClosed = true
    }),
    write: run,
    read: run,
    wakeups: wakeups.stream,
    random
  }
  return {
    backend,
    snapshot: (): MemorySnapshot => {
      journalId ??= mintId("journal", 0, random(10))
      return tables.snapshot(journalId)
    }
  }
}

/**
 * Makes a store in memory. It needs no opening; `close` makes every later call fail with `store_unavailable`.
 *
 * @since 0.1.0
 */
export const createMemoryRuntimeStore = (options: MemoryStoreOptions = {}): MemoryRuntimeStore => {
  const { backend, snapshot } = makeBackend(options)
  return { ...makeStore(backend), snapshot }
}

/**
 * The memory store as a layer; closed with its scope.
 *
 * @since 0.1.0
 */
export const layer = (options: MemoryStoreOptions = {}): Layer.Layer<Store> =>
  Layer.effect(
    Store,
    Effect.acquireRelease(
      Effect.sync(() => createMemoryRuntimeStore(options)),
      (store) => store.close
    )
  )
