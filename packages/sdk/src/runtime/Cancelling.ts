/**
 * The ladder of a cancel (5.5): request, acknowledgement within the grace, then the harness's session is closed, its
 * process ended, and the turn may be settled. It says what became of the cancel; settling is the turn runner's.
 *
 * Implements RT-160 to RT-163, RT-165, RT-166, RT-169.
 *
 * @since 0.1.0
 */
import type { CancelReason } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberSet, Layer } from "effect"
import type { TurnRef } from "../harness/Harness.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type Opened } from "./ActiveTurns.ts"
import { Asks } from "./Asks.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { isLost } from "./StoreTrouble.ts"
import { stopDiagnostic } from "./BudgetStops.ts"
import { cancelStep, type BudgetStop, type CancelFact, type CancelInput } from "./TurnMachine.ts"

/** Why a turn is to end. */
export type CancelWhy =
  | { readonly _tag: "Asked"; readonly reason: CancelReason }
  | {
      readonly _tag: "Budget"
      readonly code: "budget" | "timeout"
      readonly message: string
      readonly stop: BudgetStop
    }

export const refOf = (active: ActiveTurn, opened: Opened): TurnRef => ({
  binding: opened.binding,
  turnId: active.turn.id,
  messageId: active.turn.messageId,
  startCursor: active.turn.startSeq
})

export class Cancelling extends Context.Service<
  Cancelling,
  {
    /** Starts the ladder unless it is under way (RT-165). Returns at once; the turn's `settled` tells the end. */
    readonly begin: (active: ActiveTurn, why: CancelWhy) => void
  }
>()("@tackroom/sdk/runtime/Cancelling") {
  static readonly layer = Layer.effect(
    Cancelling,
    Effect.gen(function* () {
      const asks = yield* Asks
      const natives = yield* NativeSessions
      const options = yield* Options
      const minting = yield* Minting
      const actives = yield* ActiveTurns
      const store = yield* Store
      const ladders = yield* FiberSet.make<void>()
      const run = yield* FiberSet.runtime(ladders)()

      const step = (active: ActiveTurn, input: CancelInput): void => {
        active.cancelState = cancelStep(active.cancelState, input)
      }

      const stop = (active: ActiveTurn, budget: boolean): void => {
        Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: budget ? "Budget" : "Cancelled" }))
      }

      /** What the ladder found out; a spent budget stays the reason whatever the harness answers. */
      const conclude = (active: ActiveTurn, fact: CancelFact): void => {
        if (active.cancel._tag !== "Budget") active.cancel = fact
      }

      const streamEnds = (active: ActiveTurn, ms: number) =>
        Effect.timeoutOption(Effect.raceFirst(Deferred.await(active.streamOver), Deferred.await(active.settled)), ms)

      const force = Effect.fnUntraced(function* (active: ActiveTurn, opened: Opened, budget: boolean) {
        const scope = opened.capabilities.processScope
        step(active, { _tag: "GraceOver", shared: scope === "shared" })
        if (scope === "shared") {
          conclude(active, { _tag: "Unacknowledged" })
          stop(active, budget)
          return
        }
        const closed = yield* Effect.exit(
          Effect.timeoutOption(natives.close(active.session.id), options.killGraceMs + 3_000)
        )
        const gone = scope === "none" || (Exit.isSuccess(closed) && closed.value._tag === "Some")
        if (gone) step(active, { _tag: "ProcessGone" })
        conclude(active, gone ? { _tag: "Forced" } : { _tag: "Unacknowledged" })
        stop(active, budget)
      })

      /** Sessions that a call of this turn waits for end with it; the others go on (RT-166). */
      const cancelChildren = (active: ActiveTurn): Effect.Effect<void> =>
        Effect.gen(function* () {
          const calls = active.log.fold.openTools
          if (calls.size === 0) return
          for (const row of yield* store.listSessions({ parentSessionId: active.session.id, limit: 500 })) {
            const child = row.toolCallId !== null && calls.has(row.toolCallId) ? actives.get(row.id) : undefined
            if (child !== undefined) begin(child, { _tag: "Asked", reason: "parent" })
          }
        }).pipe(Effect.catch((error) => Effect.logWarning("Sessions under a cancelled turn could not be found", error)))

      const ladder = Effect.fnUntraced(function* (active: ActiveTurn, why: CancelWhy) {
        const budget = why._tag === "Budget"
        const recorded = yield* Effect.exit(
          active.log.patch({
            turn: budget ? { state: "cancelling" } : { state: "cancelling", cancelRequested: true },
            session: { phase: "cancelling" }
          })
        )
        if (Exit.isFailure(recorded)) {
          const error = Exit.findErrorOption(recorded)
          if (error._tag === "Some" && isLost(error.value)) {
            Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: "Lost", error: error.value }))
            return
          }
        }
        if (active.ending) return
        yield* cancelChildren(active)
        yield* Effect.ignore(asks.withdraw(active, "cancelled"))
        const opened = active.opened
        if (!active.handed || opened === undefined) {
          if (active.mode === "recover") {
            // What its former process gave to the harness ended with that process.
            step(active, { _tag: "ProcessGone" })
            conclude(active, { _tag: "Forced" })
          } else {
            // The harness never saw the prompt: nothing is there to be cancelled (RT-162).
            step(active, { _tag: "Acknowledge" })
            conclude(active, { _tag: "Acknowledged", reason: why._tag === "Asked" ? why.reason : "requested" })
          }
          stop(active, budget)
          return
        }
        const answer = yield* Effect.exit(
          Effect.timeoutOption(opened.driver.cancel(refOf(active, opened)), options.cancelGraceMs)
        )
        if (active.ending) return
        const said = Exit.isSuccess(answer) && answer.value._tag === "Some" ? answer.value.value : undefined
        if (said === "acknowledged") {
          step(active, { _tag: "Acknowledge" })
          conclude(active, { _tag: "Acknowledged", reason: why._tag === "Asked" ? why.reason : "requested" })
          yield* streamEnds(active, options.killGraceMs)
          stop(active, budget)
          return
        }
        if (said === "idle") {
          const ended = yield* streamEnds(active, options.cancelGraceMs)
          if (ended._tag === "Some") return
        }
        if (active.ending) return
        yield* force(active, opened, budget)
      })

      const begin = (active: ActiveTurn, why: CancelWhy): void => {
        if (active.cancelState._tag !== "Idle" || active.ending) return
        step(active, { _tag: "Request", at: minting.now() })
        active.cancel =
          why._tag === "Asked"
            ? { _tag: "Asked", reason: why.reason }
            : { _tag: "Budget", code: why.code, message: why.message, stop: why.stop }
        // Who follows the turn learns why it is being stopped before it is over (SRV-267).
        if (why._tag === "Budget") {
          active.log.add({ type: "diagnostic", diagnostic: stopDiagnostic(why.stop, active.budget, why.message) })
        }
        run(
          ladder(active, why).pipe(
            Effect.catchCause((cause) =>
              Effect.flatMap(Effect.logError("A cancel failed", cause), () =>
                Effect.sync(() => {
                  conclude(active, { _tag: "Unacknowledged" })
                  stop(active, why._tag === "Budget")
                })
              )
            )
          )
        )
      }

      return Cancelling.of({ begin })
    })
  )
}
