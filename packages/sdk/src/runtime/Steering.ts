/**
 * Steering (5.1): a message handed to the turn that runs. Its receipt says what became of it: taken, queued instead, or
 * unknown when the answer was lost; an unknown one is never sent again.
 *
 * Implements RT-087, RT-088, and the three steer rows of table 5.1.
 *
 * @since 0.1.0
 */
import type { PromptInput } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import type { ReceiptRow } from "../store/Rows.ts"
import type { AdmitOutcome, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type Opened } from "./ActiveTurns.ts"
import { admissionOf, receiptAdmission, type Admission, type CheckedPrompt, type StartFailure } from "./Admission.ts"
import { Admitting } from "./Admitting.ts"
import { refOf } from "./Cancelling.ts"
import { Journal } from "./Journal.ts"
import { Leases } from "./Leases.ts"
import { Options } from "./Options.ts"

type SteeringOutcome = Extract<AdmitOutcome, { readonly _tag: "Steering" }>

export class Steering extends Context.Service<
  Steering,
  {
    /** Hands an admitted steer to its turn. */
    readonly hand: (
      outcome: SteeringOutcome,
      checked: CheckedPrompt,
      directory: string,
      own: boolean
    ) => Effect.Effect<Admission, StartFailure>
    /** A steer whose answer went down with its process, asked for again. */
    readonly lost: (
      receipt: ReceiptRow,
      checked: CheckedPrompt,
      directory: string
    ) => Effect.Effect<Admission, StartFailure>
    /** Receipts that a dead process left in state `steering` become `uncertain` (RT-088). */
    readonly settleLost: (filter: {
      readonly sessionId?: string
      readonly owner?: string | null
    }) => Effect.Effect<void, StoreFailure>
  }
>()("@tackroom/sdk/runtime/Steering") {
  static readonly layer = Layer.effect(
    Steering,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const actives = yield* ActiveTurns
      const admitting = yield* Admitting
      const leases = yield* Leases
      const options = yield* Options
      /** Steers of this process that have no answer yet. */
      const steers = new Set<string>()
      const steerKey = (sessionId: string, messageId: string): string => `${sessionId}\u0000${messageId}`

      /** A steer whose answer went down with its process becomes uncertain when it is asked for again (RT-088). */
      const lostSteer = Effect.fnUntraced(function* (
        receipt: ReceiptRow,
        checked: CheckedPrompt,
        directory: string
      ): Effect.fn.Return<Admission, StartFailure> {
        const { sessionId, messageId, turnId } = receipt
        if (steers.has(steerKey(sessionId, messageId))) return receiptAdmission(receipt, directory, true)
        const entry = yield* admitting.message(sessionId, messageId, checked, "steer", true)
        const committed = yield* journal.write(
          store.updateReceipt(sessionId, messageId, "uncertain", [
            { ...entry, ...(turnId === null ? {} : { afterTurn: turnId }) }
          ])
        )
        return receiptAdmission(committed.value, directory, true)
      })

      const handToTurn = (active: ActiveTurn, opened: Opened, prompt: PromptInput) =>
        Effect.gen(function* () {
          const answer = yield* Effect.exit(
            Effect.raceFirst(
              Effect.timeoutOption(opened.driver.steer(refOf(active, opened), prompt), options.steerTimeoutMs),
              // The process died, or the turn ended, before it answered.
              Effect.as(Deferred.await(active.gone), { _tag: "None" } as const)
            )
          )
          if (Exit.isSuccess(answer)) return answer.value._tag === "Some" ? answer.value.value : "unknown"
          const error = Exit.findErrorOption(answer)
          return error._tag === "Some" && error.value._tag === "UnsupportedOperation" ? "unsupported" : "unknown"
        })

      /** RT-087, RT-088, and the three steer rows of table 5.1. */
      const steer = Effect.fnUntraced(function* (
        outcome: Extract<AdmitOutcome, { readonly _tag: "Steering" }>,
        checked: CheckedPrompt,
        directory: string,
        own: boolean
      ): Effect.fn.Return<Admission, StartFailure> {
        const { receipt, turn } = outcome
        const { sessionId, messageId } = receipt
        const active = actives.get(sessionId)
        const opened = active?.opened
        const status =
          active === undefined || active.turn.id !== turn.id || opened === undefined
            ? "no_active_turn"
            : yield* handToTurn(active, opened, checked.prompt)
        const base = { ...receiptAdmission(receipt, directory, false), delivery: "steer" as const, turnId: turn.id }
        if (status === "taken" || status === "unknown") {
          const unknown = status === "unknown"
          const entry = yield* admitting.message(sessionId, messageId, checked, "steer", unknown)
          const placed = { ...entry, turnId: turn.id }
          const settledTurn = active === undefined || active.ending
          if (active !== undefined && !settledTurn) yield* Effect.ignore(active.log.flush)
          yield* journal.write(
            store.updateReceipt(sessionId, messageId, unknown ? "uncertain" : "steered", [
              actives.get(sessionId) === active && active !== undefined && !active.ending
                ? placed
                : { ...entry, afterTurn: turn.id }
            ])
          )
          return {
            ...base,
            assistantMessageId: turn.assistantId,
            steering: unknown ? { ok: false, status: "unknown" } : { ok: true }
          }
        }
        const entry = yield* admitting.message(sessionId, messageId, checked, "start")
        const fallback = yield* admitting.admit({
          sessionId,
          checked,
          messageId,
          origin: "user",
          entry,
          fromQueue: false,
          fallback: true,
          own
        })
        const admission = admissionOf(fallback.value, directory)
        return { ...admission, duplicate: false, steering: { ok: false, status } }
      })

      const settleLost = Effect.fnUntraced(function* (filter: {
        readonly sessionId?: string
        readonly owner?: string | null
      }): Effect.fn.Return<void, StoreFailure> {
        for (const receipt of yield* store.receipts({ ...filter, state: "steering" })) {
          const { messageId, sessionId } = receipt
          if (steers.has(steerKey(sessionId, messageId))) continue
          const lease = yield* store.lease(sessionId)
          if (lease !== undefined && lease.owner !== leases.owner) {
            yield* leases.examine(lease.owner)
            // Its owner may still be waiting for the answer.
            if (leases.isLive(lease, yield* Effect.clockWith((clock) => clock.currentTimeMillis))) continue
          }
          yield* journal.write(store.updateReceipt(sessionId, messageId, "uncertain", [])).pipe(
            Effect.catchTags({
              OpFailed: (error) => Effect.die(error),
              SessionNotFound: () => Effect.void,
              SessionGone: () => Effect.void,
              SessionTurnFenceStale: (error) => Effect.die(error)
            })
          )
        }
      })

      return Steering.of({
        hand: (outcome, checked, directory, own) =>
          Effect.suspend(() => {
            const key = steerKey(outcome.receipt.sessionId, outcome.receipt.messageId)
            steers.add(key)
            return Effect.ensuring(
              Effect.uninterruptible(steer(outcome, checked, directory, own)),
              Effect.sync(() => steers.delete(key))
            )
          }),
        lost: (receipt, checked, directory) => Effect.uninterruptible(lostSteer(receipt, checked, directory)),
        settleLost
      })
    })
  )
}
