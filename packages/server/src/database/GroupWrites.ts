/**
 * Writes of one database, each a job of its own, committed together: what is asked for in one turn of the event loop
 * costs one commit. A job that is refused leaves nothing; the others are not touched by it.
 *
 * A job is synchronous. Its result becomes known only after the commit, and so does what it wants done afterwards
 * (publish after commit). What it changed in memory is undone when it is refused or the commit fails. A busy file is asked
 * again for five seconds without blocking the process.
 */
import { Data, Effect, type Scope } from "effect"
import type { Connection } from "./SqliteFile.ts"
import { isBusy } from "./SqliteFile.ts"

/** A commit that failed: nothing of the job is in the file. */
export class WriteFailed extends Data.TaggedError("WriteFailed")<{ readonly detail: string }> {}

/** The database is closing and takes nothing any more. */
export class WritesClosed extends Data.TaggedError("WritesClosed") {}

/** What a job may ask for besides its statements. */
export interface Job {
  /** Runs after the commit, in the order of the jobs. */
  readonly after: (work: () => void) => void
  /** Runs when nothing of the job is kept. */
  readonly undo: (work: () => void) => void
}

/** A job's own refusal: whatever `refuses` recognises among results. */
export interface GroupWrites<Refusal> {
  readonly write: <A>(
    job: (job: Job) => A | Refusal
  ) => Effect.Effect<Exclude<A, Refusal>, Refusal | WriteFailed | WritesClosed>
}

interface Pending {
  readonly run: () => "keep" | "discard"
  /** Does what the job wants done after its commit. */
  readonly publish: () => void
  /** With an argument: the commit failed, for this reason. */
  readonly settle: (...failure: ReadonlyArray<unknown>) => void
}

const busyPatienceMs = 5_000
const busyPauseMs = 25

export const make = <Refusal>(
  db: Connection,
  refuses: (result: unknown) => result is Refusal,
  /** Told of a mistake in what a job does after its commit. */
  onFault: (cause: unknown) => void
): Effect.Effect<GroupWrites<Refusal>, never, Scope.Scope> =>
  Effect.gen(function* () {
    let queue: Array<Pending> = []
    let scheduled = false
    let closed = false

    const commit = (batch: ReadonlyArray<Pending>, deadline: number): void => {
      const started = performance.now()
      try {
        db.exec("BEGIN IMMEDIATE")
      } catch (cause) {
        if (isBusy(cause) && started < deadline) {
          setTimeout(() => commit(batch, deadline), busyPauseMs)
          return
        }
        for (const { settle } of batch) settle(cause)
        next()
        return
      }
      let failure: unknown
      let failed = false
      try {
        for (const { run } of batch) {
          db.exec("SAVEPOINT job")
          if (run() === "discard") db.exec("ROLLBACK TO job")
          db.exec("RELEASE job")
        }
        db.exec("COMMIT")
      } catch (cause) {
        failure = cause
        failed = true
        if (db.inTransaction) db.exec("ROLLBACK")
      }
      // What was changed last is undone first. What follows the commit comes before anyone goes on with a result.
      if (failed) for (const { settle } of batch.toReversed()) settle(failure)
      else {
        for (const { publish } of batch) publish()
        for (const { settle } of batch) settle()
      }
      next()
    }

    const next = (): void => {
      scheduled = false
      if (queue.length > 0) schedule()
    }

    const flush = (): void => {
      const batch = queue
      queue = []
      commit(batch, performance.now() + busyPatienceMs)
    }

    const schedule = (): void => {
      if (scheduled) return
      scheduled = true
      setImmediate(flush)
    }

    /** Resolves when everything that was asked for is settled. */
    const drained = Effect.callback<void>((resume) => {
      const look = (): void => {
        if (!scheduled && queue.length === 0) resume(Effect.void)
        else setImmediate(look)
      }
      look()
    })

    yield* Effect.addFinalizer(() => {
      closed = true
      return drained
    })

    const write = <A>(job: (job: Job) => A | Refusal) =>
      Effect.callback<Exclude<A, Refusal>, Refusal | WriteFailed | WritesClosed>((resume) => {
        if (closed) {
          resume(Effect.fail(new WritesClosed()))
          return
        }
        let result: A | Refusal | undefined
        let fault: unknown
        let faulty = false
        const afters: Array<() => void> = []
        const undos: Array<() => void> = []
        const run = (): "keep" | "discard" => {
          try {
            result = job({ after: (work) => afters.push(work), undo: (work) => undos.push(work) })
          } catch (cause) {
            fault = cause
            faulty = true
          }
          if (!faulty && !refuses(result)) return "keep"
          // Before the next job looks at what this one changed.
          undoAll()
          return "discard"
        }
        const undoAll = (): void => {
          for (const undo of undos.splice(0).toReversed()) undo()
        }
        const settle = (...failure: ReadonlyArray<unknown>): void => {
          const refused = !faulty && refuses(result)
          if (faulty || refused || failure.length > 0) {
            undoAll()
            if (refused && failure.length === 0) {
              resume(Effect.fail(result as Refusal))
              return
            }
            const cause = faulty ? fault : failure[0]
            // A mistake in a job is a defect; only the file itself fails.
            resume(
              faulty && !isDriverError(cause)
                ? Effect.die(cause)
                : Effect.fail(new WriteFailed({ detail: cause instanceof Error ? cause.message : "unknown cause" }))
            )
            return
          }
          resume(Effect.succeed(result as Exclude<A, Refusal>))
        }
        const publish = (): void => {
          if (faulty || refuses(result)) return
          for (const work of afters) {
            // What is done afterwards cannot fail what is committed, nor the jobs behind it.
            try {
              work()
            } catch (cause) {
              onFault(cause)
            }
          }
        }
        queue.push({ run, publish, settle })
        schedule()
      }).pipe(Effect.uninterruptible)

    return { write }
  })

const isDriverError = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && String(cause.code).startsWith("SQLITE")
