/**
 * The end of a turn (5.4), once: what is open is closed, then the terminal event, the outcome, the receipt, the lease and
 * the queue's hold are one transaction. A store that cannot write is tried until it can.
 *
 * Implements RT-111, RT-112, RT-140 to RT-145, STO-048.
 *
 * @since 0.1.0
 */
import type { EventPayload, TerminalEvent, TurnOutcome } from "@tackroom/protocol/events"
import { Cause, Context, Deferred, Effect, Exit, Layer } from "effect"
import { outcomeOf } from "../store/Projection.ts"
import type { QueueRow } from "../store/Rows.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn } from "./ActiveTurns.ts"
import { Asks } from "./Asks.ts"
import { Hub } from "./Hub.ts"
import { Minting } from "./Minting.ts"
import { Options } from "./Options.ts"
import { queueUpdate } from "./PublicRows.ts"
import { isBusy, isLost } from "./StoreTrouble.ts"
import { stopDiagnostic, stopOf } from "./BudgetStops.ts"
import { settle, type Ending, type StreamEnd } from "./TurnMachine.ts"

/** Told when a turn is settled; `next` is the first entry of an unheld queue (RT-111). */
export type AfterSettle = (sessionId: string, next: QueueRow | undefined) => void

export class Settling extends Context.Service<
  Settling,
  {
    /** Once per turn, whoever comes first. Completes when the end is committed, or the session is lost. */
    readonly settle: (active: ActiveTurn, end: StreamEnd) => Effect.Effect<void>
    readonly onSettled: (listener: AfterSettle) => void
  }
>()("@tackroom/sdk/runtime/Settling") {
  static readonly layer = Layer.effect(
    Settling,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const asks = yield* Asks
      const options = yield* Options
      const minting = yield* Minting
      let afterSettle: AfterSettle = () => undefined

      const terminalOf = (active: ActiveTurn, ending: Ending): TerminalEvent => {
        const assistantMessageId = active.turn.assistantId
        const sessionId = active.session.id
        switch (ending.status) {
          case "completed": {
            const finalText = ending.finalText ?? active.log.fold.lastText
            return {
              type: "finish",
              sessionId,
              assistantMessageId,
              reason: ending.reason,
              ...(finalText === undefined ? {} : { finalText })
            }
          }
          case "cancelled":
            return { type: "cancelled", sessionId, assistantMessageId, reason: ending.reason }
          case "failed": {
            const own = ending.event?.type === "error" ? ending.event : undefined
            const { code } = ending
            const stop =
              code === "budget" || code === "timeout"
                ? [stopDiagnostic(stopOf(active, code), active.budget)]
                : undefined
            return {
              type: "error",
              error: ending.message.slice(0, 2_000),
              code: ending.code,
              assistantMessageId,
              ...(own?.errorClass === undefined
                ? ending.errorClass === undefined
                  ? {}
                  : { errorClass: ending.errorClass as NonNullable<typeof own>["errorClass"] & string }
                : { errorClass: own.errorClass }),
              ...(stop === undefined ? {} : { diagnostics: stop }),
              ...(own?.account === undefined ? {} : { account: own.account }),
              ...(own?.process === undefined ? {} : { process: own.process })
            }
          }
        }
      }

      /** Commits the end. A store that cannot write is tried until it can; a lost session ends the attempt (STO-048). */
      const commitSettlement = Effect.fnUntraced(function* (
        active: ActiveTurn,
        terminal: TerminalEvent,
        outcome: TurnOutcome
      ) {
        const failed = outcome.status === "failed"
        const holdQueue = failed ? "turn_failed" : outcome.status === "cancelled" ? "turn_cancelled" : undefined
        active.log.add(terminal)
        active.log.add({ type: "session-status", status: failed ? "error" : "idle" }, { outsideTurn: true })
        const settleOps = options.embedder.settleOps
        const once = active.log.exclusive(
          (entries) =>
            store.settle(
              active.session.id,
              active.lease.fence,
              {
                turnId: active.turn.id,
                outcome,
                entries,
                session: { status: failed ? "error" : null, phase: null },
                ...(holdQueue === undefined
                  ? {}
                  : { holdQueue, holdEntries: (queue) => [{ payload: queueUpdate(queue) }] })
              },
              settleOps === undefined
                ? {}
                : {
                    ops: (settled) =>
                      settleOps({
                        session: active.session,
                        turn: active.turn,
                        outcome: settled.outcome,
                        head: settled.head,
                        lastText: terminal.type === "finish" ? terminal.finalText : active.log.fold.lastText
                      })
                  }
            ),
          {
            onCommit: ({ value }) => {
              active.turn = { ...active.turn, state: "settled", outcome: value.outcome }
              active.cancelState = { _tag: "Settled" }
              actives.remove(active)
            }
          }
        )
        let wait = 50
        while (true) {
          const attempt = yield* Effect.result(once)
          if (attempt._tag === "Success") return attempt.success.value
          const error = attempt.failure
          if (isBusy(error) || ("_tag" in error && error._tag === "StoreFull")) {
            yield* Effect.logWarning("A turn could not be settled yet", error)
            const lost = yield* Effect.raceFirst(
              Effect.as(Effect.sleep(wait), false),
              // Another stop, such as that of the store itself, is there already and ends no wait.
              Effect.flatMap(Deferred.await(active.stop), (stop) =>
                stop._tag === "Lost" || stop._tag === "Left" ? Effect.succeed(true) : Effect.never
              )
            )
            if (lost) return yield* Effect.fail(error)
            wait = Math.min(wait * 2, 5_000)
            continue
          }
          return yield* Effect.fail(error)
        }
      })

      /** Once per turn, whoever comes first. Answers when the end is committed, or the session is lost. */
      const settleOnce = (active: ActiveTurn, end: StreamEnd): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (active.ending)
            return Effect.raceFirst(Deferred.await(active.gone), Effect.asVoid(Deferred.await(active.settled)))
          active.ending = true
          return Effect.uninterruptible(
            Effect.gen(function* () {
              active.log.seal()
              Deferred.doneUnsafe(active.settling, Exit.void)
              const ending = settle(end, undefined, active.cancel)
              yield* active.log.quiet
              const reason = ending.status === "cancelled" ? "cancelled" : "turn_ended"
              yield* asks
                .withdraw(active, end._tag === "Failed" && end.restart ? "restart" : reason)
                .pipe(
                  Effect.catch((error) =>
                    Effect.logWarning("Interactions of an ended turn could not be withdrawn", error)
                  )
                )
              active.log.closeParts()
              const acknowledged = ending.status === "cancelled" && ending.reason !== "forced"
              for (const [toolCallId, tool] of active.log.fold.openTools)
                active.log.add(toolEnd(toolCallId, tool, acknowledged))
              const terminal = terminalOf(active, ending)
              const outcome = outcomeOf(
                terminal,
                { id: active.turn.id, messageId: active.turn.messageId },
                minting.now()
              )
              const settled = yield* commitSettlement(active, terminal, outcome)
              hub.touch(active.session.id, "row")
              // After the publication: whoever waits may be resumed right here.
              Deferred.doneUnsafe(active.settled, Exit.succeed(settled.outcome))
              afterSettle(active.session.id, settled.next)
            }).pipe(
              Effect.catchCause((cause) => {
                actives.remove(active)
                const error = Cause.findErrorOption(cause)
                return error._tag === "Some" && isLost(error.value)
                  ? Effect.logWarning("A turn ended after its session was taken over; nothing was written", error.value)
                  : Effect.logError("A turn could not be settled", cause)
              })
            )
          )
        })

      return Settling.of({
        settle: settleOnce,
        onSettled: (listener) => {
          afterSettle = listener
        }
      })
    })
  )
}

/** The end of a call that its driver left open, with what a summary needs (AGT-035). */
export const toolEnd = (
  toolCallId: string,
  tool: { readonly name: string; readonly started: boolean },
  acknowledged: boolean
): EventPayload =>
  acknowledged
    ? {
        type: "tool-error",
        toolCallId,
        error: "The turn was cancelled",
        code: "cancelled",
        metadata: { tool: tool.name, outcome: tool.started ? "failed" : "not_run" }
      }
    : {
        type: "tool-status",
        toolCallId,
        status: "uncertain",
        metadata: { tool: tool.name, outcome: "unknown", reason: "the turn stopped while it ran" }
      }
