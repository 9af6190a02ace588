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
  /** After so many failed musts in which no program was heard, what is left is skipped as needing the first of them. */
  readonly silentCases?: number
  readonly onSilence?: () => void
  readonly onResult: (result: Result) => void
}

/** So many checks that only watch run beside the others. */
const watching = 12

type Outcome = Pick<Result, "verdict" | "reason">

const outcomeOf = (stop: Broken | Skipped): Outcome =>
  stop._tag === "Broken" ? { verdict: "fail", reason: stop.message } : { verdict: "skip", reason: stop.reason }

const judged = (check: Check, witness: Witness): Effect.Effect<Outcome, KitFailed> =>
  Effect.scoped(check.run(witness)).pipe(
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

  const { silentCases } = options
  let anybodyHeard = false
  const silent: Array<string> = []
  /** The first of the silent cases, when there are enough of them. */
  const silence = yield* Deferred.make<string>()
  const heard = (): void => {
    anybodyHeard = true
  }
  const givenUp = Effect.map(Deferred.await(silence), (id): Outcome => ({ verdict: "skip", reason: `needs:${id}` }))
  const listened = (check: Check, outcome: Outcome, programs: number): Effect.Effect<unknown> => {
    if (silentCases === undefined || anybodyHeard || outcome.verdict !== "fail" || programs === 0) return Effect.void
    // So the run is broken by its musts, whatever is skipped.
    if (levelIn(options.profile, check.level) !== "must") return Effect.void
    silent.push(check.id)
    const [first] = silent
    if (first === undefined || silent.length < silentCases) return Effect.void
    options.onSilence?.()
    return Deferred.succeed(silence, first)
  }

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
            const judging = judged(check, { saw: (seen) => void evidence.push(seen), heard })
            return Effect.ensuring(
              // What is given up must not start first.
              Effect.flatMap(Deferred.isDone(silence), (over) =>
                over
                  ? givenUp
                  : Effect.tap(Effect.raceFirst(judging, givenUp), (outcome) =>
                      listened(check, outcome, evidence.length)
                    )
              ),
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
