/**
 * The budget of a turn (D-28): rounds and tokens are counted as they are reported, times are clocks beside the turn.
 *
 * @since 0.1.0
 */
import { Deferred, Effect } from "effect"
import type { ActiveTurn } from "./ActiveTurns.ts"
import type { Cancelling } from "./Cancelling.ts"
import type { Minting } from "./Minting.ts"

/** Makes the enforcement of budgets for a runtime. */
export const makeBudgets = (parts: {
  readonly cancelling: Cancelling["Service"]
  readonly minting: Minting["Service"]
}) => {
  const { cancelling, minting } = parts

  /** Ends a turn that used more rounds or tokens than it has. */
  const tooMany = (active: ActiveTurn): void => {
    const budget = active.budget
    if (budget === undefined) return
    const { fold } = active.log
    if (budget.maxRounds !== undefined && fold.rounds > budget.maxRounds) {
      cancelling.begin(active, {
        _tag: "Budget",
        code: "budget",
        stop: "max_rounds",
        message: `The turn used its ${budget.maxRounds} rounds`
      })
    }
    if (budget.maxOutputTokens !== undefined && fold.outputTokens > budget.maxOutputTokens) {
      cancelling.begin(active, {
        _tag: "Budget",
        code: "budget",
        stop: "max_output_tokens",
        message: `The turn used its ${budget.maxOutputTokens} output tokens`
      })
    }
  }

  /** Whether another model round fits; asked before each by drivers of our own. */
  const roundFits = (active: ActiveTurn): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const budget = active.budget
      // A turn that is being ended asks no model any more; its driver is interrupted, and must not blame the budget.
      if (active.cancelState._tag !== "Idle" || active.ending) return Effect.never
      if (budget === undefined) return Effect.succeed(true)
      const { fold } = active.log
      return Effect.succeed(
        (budget.maxRounds === undefined || fold.rounds < budget.maxRounds) &&
          (budget.maxOutputTokens === undefined || fold.outputTokens < budget.maxOutputTokens)
      )
    })

  /** Clocks of the turn's budget. `activeMs` stands still while people are waited for. */
  const timers = (active: ActiveTurn): Effect.Effect<void> => {
    const budget = active.budget
    const started = active.turn.createdAt
    const spent = (message: string) =>
      Effect.sync(() => cancelling.begin(active, { _tag: "Budget", code: "timeout", stop: "timeout", message }))
    const wall =
      budget?.wallMs === undefined
        ? Effect.never
        : Effect.flatMap(Effect.sleep(Math.max(0, started + budget.wallMs - minting.now())), () =>
            spent(`The turn took longer than ${budget.wallMs} ms`)
          )
    const activeMs = budget?.activeMs
    // A turn that was taken up waits for what it waited for, and its time while nobody worked on it does not count.
    active.waits(minting.now())
    const { usedMs } = active.log.fold
    const activeFrom = usedMs === undefined ? started : minting.now() - usedMs
    const working: Effect.Effect<void> =
      activeMs === undefined
        ? Effect.never
        : Effect.suspend(() => {
            if (active.waitingSince !== undefined) {
              return Effect.flatMap(Deferred.await(active.lastWaitChange), () => working)
            }
            const left = activeMs - (minting.now() - activeFrom - active.waitedMs)
            if (left <= 0) return spent(`The turn worked longer than ${activeMs} ms`)
            return Effect.flatMap(
              Effect.raceFirst(Effect.sleep(left), Deferred.await(active.lastWaitChange)),
              () => working
            )
          })
    return Effect.raceFirst(wall, working)
  }

  return { tooMany, roundFits, timers }
}
