/**
 * One commit for all calls that are pending at the same moment (STO-042). A batch runs in one transaction; nobody waits
 * for others to arrive, and no answer is given before the commit.
 *
 * The batch is first run without savepoints. When a call fails after it wrote, the transaction is taken back and run again
 * with a savepoint per call; when the commit fails, each call is run alone. So a failing call fails alone, and the usual
 * batch pays nothing for it. A call's program may therefore run more than once.
 *
 * A file that was removed or replaced while it is open takes no more commits: SQLite would go on writing where nobody can
 * find it again (RUN-064). Nobody waits for it to come back, since it hardly ever does; if it does, commits go on.
 *
 * The write lock is waited for inside SQLite for a moment only, then tried again later without blocking (STO-043).
 */
import { StoreBusy, StoreUnavailable } from "@tackroom/protocol"
import { Effect, Exit, type Clock } from "effect"
import type { StoreFailure } from "../RuntimeStore.ts"
import type { Durability, StoreTx } from "../StoreTx.ts"
import { closed, defectOf, runRows } from "../Transaction.ts"
import type { Wakeup } from "../Wakeups.ts"
import type { Connection } from "./Database.ts"
import { failureOf, isBusy } from "./Failures.ts"
import type { RowAccess } from "./SqliteRows.ts"

/** Calls in one commit at most. */
const batchLimit = 256
/** Milliseconds after which a batch is committed with the calls it has; the loop must turn (D-23). */
const sliceMs = 8

interface Job {
  readonly program: (tx: StoreTx) => Effect.Effect<unknown, unknown>
  readonly durability: Durability
  readonly clock: Clock.Clock
  readonly since: number
  readonly resume: (exit: Exit.Exit<unknown, unknown>) => void
  isCancelled: boolean
}

interface Done {
  readonly job: Job
  readonly exit: Exit.Exit<unknown, unknown>
  readonly heads: ReadonlyMap<string, number>
}

/** Waits between tries for the lock, in milliseconds: short first, spread by process. */
const backoff = (attempt: number, spread: number): number => Math.min(2 ** Math.min(attempt, 6), 50) + (spread % 7)

/** Makes the writer of a connection. */
export const makeGroupCommit = (options: {
  readonly db: Connection
  readonly isInPlace: () => boolean
  readonly rows: RowAccess
  readonly busyTimeoutMs: number
  readonly busyLimitMs: number
  readonly spread: number
  readonly publish: (wakeups: ReadonlyArray<Wakeup>) => void
}) => {
  const { db, rows } = options
  const beginImmediate = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const rollback = db.prepare("ROLLBACK")
  const savepoint = db.prepare("SAVEPOINT call")
  const rollbackTo = db.prepare("ROLLBACK TO call")
  const release = db.prepare("RELEASE call")
  let queue: Array<Job> = []
  /** Calls of a batch that found the file busy again; they stay the first. */
  let left: ReadonlyArray<Job> = []
  let timer: NodeJS.Immediate | NodeJS.Timeout | undefined
  let attempt = 0
  let isClosed = false
  let durability: Durability = "full"
  let wait = options.busyTimeoutMs

  const begin = (): void => {
    if (!options.isInPlace())
      throw new StoreUnavailable({ reason: "its file was removed or replaced while it was open", retryable: false })
    beginImmediate.run()
  }

  const setDurability = (wanted: Durability): void => {
    if (wanted === durability) return
    db.pragma(`synchronous = ${wanted === "full" ? "FULL" : "NORMAL"}`)
    durability = wanted
  }

  const undo = (): void => {
    if (db.inTransaction) rollback.run()
    rows.rolledBack()
  }

  const fail = (error: unknown): Exit.Exit<never, unknown> => {
    const failure = failureOf(error)
    return failure === undefined ? Exit.die(error) : Exit.fail(failure)
  }

  const runJob = (job: Job): Done & { readonly isDirty: boolean } => {
    const before = rows.state.writes
    rows.state.now = job.clock.currentTimeMillisUnsafe()
    rows.state.heads = new Map()
    const exit = runRows(() => job.program(rows.tx))
    const defect = defectOf(exit)
    return {
      job,
      exit: defect === undefined ? exit : fail(defect),
      heads: rows.state.heads,
      isDirty: rows.state.writes !== before
    }
  }

  const finish = (done: ReadonlyArray<Done>): void => {
    const reached = new Map<string, number>()
    for (const { exit, heads } of done) {
      if (Exit.isSuccess(exit)) for (const [id, head] of heads) reached.set(id, head)
    }
    options.publish(Array.from(reached, ([sessionId, head]) => ({ sessionId, head })))
    for (const { exit, job } of done) job.resume(exit)
  }

  /** Each call in a transaction of its own. */
  const alone = (jobs: ReadonlyArray<Job>): void => {
    for (const [i, job] of jobs.entries()) {
      let done: Done
      try {
        begin()
      } catch (error) {
        if (!isBusy(error)) {
          finish([{ job, exit: fail(error), heads: new Map() }])
          continue
        }
        left = jobs.slice(i)
        return
      }
      try {
        done = runJob(job)
        if (Exit.isSuccess(done.exit)) {
          rows.beforeCommit()
          commit.run()
          rows.committed()
        } else undo()
      } catch (error) {
        undo()
        done = { job, exit: fail(error), heads: new Map() }
      }
      finish([done])
    }
  }

  /** Each call in a savepoint of its own. */
  const careful = (jobs: ReadonlyArray<Job>): void => {
    const done: Array<Done> = []
    try {
      begin()
      for (const job of jobs) {
        savepoint.run()
        const mark = rows.mark()
        const result = runJob(job)
        if (Exit.isFailure(result.exit)) {
          rollbackTo.run()
          rows.rolledBackTo(mark)
        } else rows.beforeCommit()
        release.run()
        done.push(result)
      }
      commit.run()
    } catch {
      undo()
      return alone(jobs)
    }
    rows.committed()
    finish(done)
  }

  /** Runs a batch whose transaction has begun; answers how many of its calls were taken. */
  const runBatch = (jobs: ReadonlyArray<Job>): number => {
    const started = performance.now()
    const done: Array<Done> = []
    for (const job of jobs) {
      const result = runJob(job)
      done.push(result)
      if (Exit.isFailure(result.exit) && (result.isDirty || !db.inTransaction)) {
        undo()
        const taken = jobs.slice(0, done.length)
        if (taken.length === 1) finish(done)
        else careful(taken)
        return taken.length
      }
      if (performance.now() - started > sliceMs) break
    }
    try {
      rows.beforeCommit()
      commit.run()
    } catch (error) {
      undo()
      if (done.length === 1) finish([{ ...(done[0] as Done), exit: fail(error) }])
      else alone(jobs.slice(0, done.length))
      return done.length
    }
    rows.committed()
    finish(done)
    return done.length
  }

  const expire = (): void => {
    const now = performance.now()
    const waiting = queue
    queue = waiting.filter((job) => now - job.since < options.busyLimitMs)
    for (const job of waiting) {
      if (!queue.includes(job)) job.resume(Exit.fail(new StoreBusy({ reason: "another process is writing" })))
    }
  }

  const schedule = (): void => {
    timer ??= setImmediate(drain)
  }

  const setWait = (ms: number): void => {
    if (ms === wait) return
    db.pragma(`busy_timeout = ${ms}`)
    wait = ms
  }

  const retry = (): void => {
    expire()
    attempt += 1
    setWait(0)
    if (queue.length > 0) timer = setTimeout(drain, backoff(attempt, options.spread))
  }

  const drain = (): void => {
    timer = undefined
    queue = queue.filter((job) => !job.isCancelled)
    const batch = queue.slice(0, batchLimit)
    if (batch.length === 0) return
    try {
      setDurability(batch.every((job) => job.durability === "normal") ? "normal" : "full")
      begin()
    } catch (error) {
      if (isBusy(error)) return retry()
      queue = queue.slice(batch.length)
      for (const job of batch) job.resume(fail(error))
      if (queue.length > 0) schedule()
      return
    }
    attempt = 0
    setWait(options.busyTimeoutMs)
    queue = queue.slice(batch.length)
    const taken = runBatch(batch)
    if (taken < batch.length || left.length > 0) queue = [...left, ...batch.slice(taken), ...queue]
    left = []
    if (queue.length > 0) schedule()
  }

  return {
    /** Runs a program in a commit it may share. */
    write: <A, E>(
      program: (tx: StoreTx) => Effect.Effect<A, E>,
      wanted: Durability = "full"
    ): Effect.Effect<A, E | StoreFailure> =>
      Effect.clockWith((clock) =>
        Effect.callback<A, E | StoreFailure>((resume) => {
          if (isClosed) return resume(Effect.fail(closed()))
          const job: Job = {
            program,
            durability: wanted,
            clock,
            since: performance.now(),
            resume: (exit) => resume(exit as Exit.Exit<A, E | StoreFailure>),
            isCancelled: false
          }
          queue.push(job)
          schedule()
          return Effect.sync(() => {
            job.isCancelled = true
          })
        })
      ),
    /** Writes what is pending and refuses what comes later. */
    close: (): void => {
      isClosed = true
      if (timer !== undefined) {
        clearImmediate(timer as NodeJS.Immediate)
        clearTimeout(timer as NodeJS.Timeout)
        timer = undefined
      }
      const last = queue.filter((job) => !job.isCancelled)
      queue = []
      alone(last)
      for (const job of [...left, ...queue]) job.resume(Exit.fail(closed()))
      left = []
      queue = []
    }
  }
}
