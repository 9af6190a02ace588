/**
 * The store in one SQLite file (13.4): durable, shared by processes of one machine, opened on first use.
 *
 * @since 0.1.0
 */
import { mintId, RuntimeOptionInvalid, StoreBusy, StoreDependencyMissing, StoreUnavailable } from "@tackroom/protocol"
import { Clock, Deferred, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { makeStore, purgeSession } from "../Operations.ts"
import type { RuntimeStore, StoreFailure, StoreInfo } from "../RuntimeStore.ts"
import { Store } from "../Store.ts"
import type { StoreBackend, StoreTx } from "../StoreTx.ts"
import { closed, defectOf, runRows } from "../Transaction.ts"
import { makeWakeups } from "../Wakeups.ts"
import { openDatabase, type Connection, type Driver } from "./Database.ts"
import type { SqliteStoreExtension } from "./Extension.ts"
import { failureOf, isBusy } from "./Failures.ts"
import { makeGroupCommit } from "./GroupCommit.ts"
import { makeWriter, orphans } from "./Orphans.ts"
import { makePoll } from "./Poll.ts"
import { makeRows, type RowAccess } from "./SqliteRows.ts"

/** Options of {@link createSqliteRuntimeStore}. @since 0.1.0 */
export interface SqliteStoreOptions {
  /** Directory of the store, made with mode 0700 when it is missing; the file is `agent-runtime.db`, mode 0600. */
  readonly root: string
  /** Milliseconds SQLite waits for a lock by itself, which stops the whole process. Default 20. */
  readonly busyTimeoutMs?: number
  /** Milliseconds a call waits for a lock, without blocking, before it fails with `store_busy`. Default 30,000. */
  readonly busyLimitMs?: number
  readonly extensions?: ReadonlyArray<SqliteStoreExtension>
}

const driverPackage = "better-sqlite3"
const driverRange = "^13.2.0"

/** Loads the driver on first use (STO-050). */
const loadDriver: Effect.Effect<Driver, StoreFailure> = Effect.map(
  Effect.tryPromise({
    try: () => import("better-sqlite3"),
    catch: () =>
      new StoreDependencyMissing({
        package: driverPackage,
        range: driverRange,
        message: `The SQLite store needs a package that is not installed: npm install ${driverPackage}@${driverRange}`
      })
  }),
  (module) => module.default
)

const random = (bytes: number): Uint8Array => randomBytes(bytes)

interface Opened {
  readonly info: StoreInfo
  readonly db: Connection
  readonly read: StoreBackend["read"]
  readonly commits: ReturnType<typeof makeGroupCommit>
}

/** What an error of the driver means; anything else stays a defect. */
const failing = (error: unknown): Effect.Effect<never, StoreFailure> => {
  const failure = failureOf(error)
  return failure === undefined ? Effect.die(error) : Effect.fail(failure)
}

/** While opening, errors of the file system and of migrations too mean that there is no store. */
const failingToOpen = (error: unknown): Effect.Effect<never, StoreFailure> => {
  if (isBusy(error)) return failing(error)
  if (error instanceof Error && "_tag" in error) return Effect.fail(error as StoreFailure)
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined
  return code === undefined ? Effect.die(error) : Effect.fail(new StoreUnavailable({ reason: code }))
}

/** A wait in real time whatever the program's clock says: it is another process that is waited for. */
const pause = (ms: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), ms)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Tries again without blocking while a lock is held, up to the limit (STO-043). */
const whileBusy = <A, E>(
  limitMs: number,
  attempt: () => Effect.Effect<A, E | StoreFailure>
): Effect.Effect<A, E | StoreFailure> => {
  const again = (waited: number, delay: number): Effect.Effect<A, E | StoreFailure> =>
    Effect.catchIf(
      Effect.suspend(attempt),
      (error) => error instanceof StoreBusy && waited < limitMs,
      () => Effect.andThen(pause(delay), again(waited + delay, Math.min(delay * 2, 50)))
    )
  return again(0, 2)
}

/** Reads on one snapshot; whatever a read would write is taken back. */
const makeRead = (db: Connection, rows: RowAccess, busyLimitMs: number): StoreBackend["read"] => {
  const begin = db.prepare("BEGIN")
  const rollback = db.prepare("ROLLBACK")
  return <A, E>(program: (tx: StoreTx) => Effect.Effect<A, E>) =>
    Effect.clockWith((clock) =>
      whileBusy(busyLimitMs, (): Effect.Effect<A, E | StoreFailure> => {
        if (!db.open) return Effect.fail(closed())
        try {
          begin.run()
          rows.state.now = clock.currentTimeMillisUnsafe()
          const exit = runRows(() => program(rows.tx))
          const defect = defectOf(exit)
          return defect === undefined ? exit : failing(defect)
        } catch (error) {
          return failing(error)
        } finally {
          if (db.inTransaction) rollback.run()
        }
      })
    )
}

/** Removes what a crash left over: chunks without a row (RT-211), rows of deleted sessions (RT-051). */
const tidy = Effect.fnUntraced(function* ({ commits, db, read }: Opened) {
  for (const id of orphans(db)) yield* commits.write((tx) => tx.removeChunks(id))
  const left = yield* read((tx) => tx.scan("tombstone", { where: { purged: false } }))
  for (const tombstone of left) yield* purgeSession(commits.write, tombstone.sessionId)
})

const makeBackend = (options: SqliteStoreOptions): StoreBackend => {
  const { busyLimitMs = 30_000, busyTimeoutMs = 20, extensions = [], root } = options
  const writer = makeWriter(random)
  const poll = makePoll((found) => wakeups.publish(found))
  const wakeups = makeWakeups({ onFirst: poll.start, onLast: poll.stop })
  let store: Opened | undefined
  let opening: Deferred.Deferred<Opened, StoreFailure> | undefined
  let isClosed = false

  const openFile = Effect.fnUntraced(function* (): Effect.fn.Return<Opened, StoreFailure> {
    const driver = yield* loadDriver
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const journalId = () => mintId("journal", now(), random(10))
    const { db, identity, isInPlace } = yield* whileBusy(busyLimitMs, () => {
      try {
        return Effect.succeed(openDatabase(driver, { root, busyTimeoutMs, extensions, journalId, now }))
      } catch (error) {
        return failingToOpen(error)
      }
    })
    if (isClosed) {
      db.close()
      return yield* Effect.fail(closed())
    }
    const rows = makeRows(db, extensions, writer.name)
    const opened: Opened = {
      info: { kind: "sqlite", ...identity, multiProcess: true, multiNode: false },
      db,
      read: makeRead(db, rows, busyLimitMs),
      commits: makeGroupCommit({
        db,
        isInPlace,
        rows,
        busyTimeoutMs,
        busyLimitMs,
        spread: process.pid,
        publish: wakeups.publish
      })
    }
    store = opened
    poll.attach(db)
    yield* tidy(opened)
    ready = Effect.succeed(opened)
    return opened
  })

  const openOnce: Effect.Effect<Opened, StoreFailure> = Effect.suspend(() => {
    if (isClosed) return Effect.fail(closed())
    if (opening !== undefined) return Deferred.await(opening)
    const deferred = Deferred.makeUnsafe<Opened, StoreFailure>()
    opening = deferred
    return Effect.andThen(
      Effect.forkDetach(Effect.onExit(openFile(), (exit) => Deferred.done(deferred, exit))),
      Deferred.await(deferred)
    )
  })

  /** The open store; before it is open, the opening. */
  let ready = openOnce
  const whenReady = Effect.suspend(() => ready)

  return {
    kind: "sqlite",
    open: Effect.map(whenReady, (opened) => opened.info),
    close: Effect.sync(() => {
      if (isClosed) return
      isClosed = true
      ready = openOnce
      poll.stop()
      writer.release()
      store?.commits.close()
      store?.db.close()
    }),
    write: (program, durability) => Effect.flatMap(whenReady, (opened) => opened.commits.write(program, durability)),
    read: (program) => Effect.flatMap(whenReady, (opened) => opened.read(program)),
    wakeups: wakeups.stream,
    random
  }
}

/**
 * Makes a store over `<root>/agent-runtime.db`. Nothing is touched before the first call; `open` or any other call opens,
 * verifies and migrates the file, and when that fails every later call fails with the same error.
 *
 * @throws RuntimeOptionInvalid when `root` is empty or a time is not a positive integer
 * @since 0.1.0
 */
export const createSqliteRuntimeStore = (options: SqliteStoreOptions): RuntimeStore => {
  if (options.root === "") throw new RuntimeOptionInvalid({ option: "root", expected: "a directory" })
  for (const option of ["busyTimeoutMs", "busyLimitMs"] as const) {
    const value = options[option] ?? 0
    if (!Number.isSafeInteger(value) || value < 0 || value > 0x7fff_ffff) {
      throw new RuntimeOptionInvalid({ option, expected: "milliseconds" })
    }
  }
  return makeStore(makeBackend(options))
}

/**
 * The SQLite store as a layer; opened on first use, closed with its scope.
 *
 * @since 0.1.0
 */
export const layer = (options: SqliteStoreOptions): Layer.Layer<Store> =>
  Layer.effect(
    Store,
    Effect.acquireRelease(
      Effect.sync(() => createSqliteRuntimeStore(options)),
      (store) => store.close
    )
  )
