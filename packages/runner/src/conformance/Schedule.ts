/**
 * Runs checks: so many at once, those that only watch beside them, each after what it needs.
 *
 * A check that needs one that did not pass is skipped and says which. One whose need was not asked for runs. A fault of the
 * kit in a check ends the whole run: a report with a hole in it would read like a judgement.
 */
import { Cause, Deferred, Effect, Exit, Semaphore } from "effect"
import { performance } from "node:perf_hooks"
import { type Broken, type Check, type KitFailed, kitFailed, type Skipped, type Witness } from "./Check.ts"
import { type Evidence, presentable } from "./Evidence.ts"
import { levelIn, type Profile, type Result } from "./Verdict.ts"

export interface ScheduleOptions {
  readonly jobs: number
  readonly profile: Profile
  /** Ids that were left out; they are in the results as skipped. */
  readonly excluded: ReadonlySet<string>
  readonly onResult: (result: Result) => void
}

/** So many checks that only watch run beside the others. */
const watching = 12

type Outcome = Pick<Result, "verdict" | "reason">

const outcomeOf = (stop: Broken | Skipped): Outcome =>
  stop._tag === "Broken" ? { verdict: "fail", reason: stop.message } : { verdict: "skip", reason: stop.reason }

const judged = (check: Check, saw: Witness["saw"]): Effect.Effect<Outcome, KitFailed> =>
  Effect.scoped(check.run({ saw })).pipe(
    Effect.as<Outcome>({ verdict: "pass" }),
    Effect.catchTags({
      Broken: (stop) => Effect.succeed(outcomeOf(stop)),
      Skipped: (stop) => Effect.succeed(outcomeOf(stop))
    }),
    Effect.catchDefect((defect) =>
      Effect.fail(
        kitFailed(`${check.id}: ${defect instanceof Error ? (defect.stack ?? defect.message) : String(defect)}`)
      )
    )
  )

export const runAll = Effect.fn("Schedule.runAll")(function* (
  checks: ReadonlyArray<Check>,
  options: ScheduleOptions
): Effect.fn.Return<ReadonlyArray<Result>, KitFailed> {
  const busy = yield* Semaphore.make(options.jobs)
  const quiet = yield* Semaphore.make(watching)
  const verdicts = new Map<string, Deferred.Deferred<Outcome>>()
  for (const check of checks) verdicts.set(check.id, yield* Deferred.make<Outcome>())

  const one = (check: Check): Effect.Effect<Result, KitFailed> =>
    Effect.gen(function* () {
      const evidence: Array<ReadonlyArray<Evidence>> = []
      let durationMs = 0
      const outcome = yield* Effect.gen(function* (): Effect.fn.Return<Outcome, KitFailed> {
        if (options.excluded.has(check.id)) return { verdict: "skip", reason: "excluded" }
        for (const need of check.needs) {
          const pending = verdicts.get(need)
          if (pending === undefined || options.excluded.has(need)) continue
          const { verdict } = yield* Deferred.await(pending)
          if (verdict !== "pass") return { verdict: "skip", reason: `needs:${need}` }
        }
        const lane = check.quiet ? quiet : busy
        return yield* lane.withPermit(
          Effect.suspend(() => {
            const began = performance.now()
            return Effect.ensuring(
              judged(check, (seen) => void evidence.push(seen)),
              Effect.sync(() => {
                durationMs = Math.round(performance.now() - began)
              })
            )
          })
        )
      })
      const result: Result = {
        id: check.id,
        level: levelIn(options.profile, check.level),
        title: check.title,
        rules: check.rules,
        ...outcome,
        durationMs,
        evidence: presentable(evidence)
      }
      const verdict = verdicts.get(check.id)
      if (verdict !== undefined) yield* Deferred.succeed(verdict, outcome)
      options.onResult(result)
      return result
    })

  return yield* Effect.forEach(checks, one, { concurrency: "unbounded" })
})

/** The failure of a run as one line for a person. */
export const failureOf = (exit: Exit.Exit<unknown, KitFailed>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const squashed = Cause.squash(exit.cause)
  return squashed instanceof Error ? squashed.message : String(squashed)
}
