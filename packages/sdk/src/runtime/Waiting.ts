/**
 * Waiting for turns (4.2). Whoever waits follows the session's committed events, which those of other processes are among,
 * so that an end is heard of whoever wrote it.
 *
 * Implements RT-152, RT-228.
 *
 * @since 0.1.0
 */
import { SessionNotFound, SubmissionNotFound, type RuntimeError } from "@tackroom/protocol"
import { isTerminalType, type TurnOutcome } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import type { ReceiptRow } from "../store/Rows.ts"
import type { StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns } from "./ActiveTurns.ts"
import { Hub } from "./Hub.ts"

export class Waiting extends Context.Service<
  Waiting,
  {
    /** The outcome of a submission, when it is settled. */
    readonly wait: (sessionId: string, messageId: string) => Effect.Effect<TurnOutcome, RuntimeError>
    /** Completes when no turn of the session runs; reserves nothing. */
    readonly whenIdle: (sessionId: string) => Effect.Effect<void, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Waiting") {
  static readonly layer = Layer.effect(
    Waiting,
    Effect.gen(function* () {
      const store = yield* Store
      const actives = yield* ActiveTurns
      const hub = yield* Hub

      const wait = Effect.fnUntraced(function* (
        sessionId: string,
        messageId: string
      ): Effect.fn.Return<TurnOutcome, RuntimeError> {
        const active = actives.get(sessionId)
        if (active !== undefined && active.turn.messageId === messageId && !active.ending) {
          // Lost here: the outcome is another owner's to write, and the receipt tells it.
          const outcome = yield* Effect.raceFirst(
            Deferred.await(active.settled),
            Effect.as(Deferred.await(active.gone), undefined)
          )
          if (outcome !== undefined) return outcome
        }
        // Waits on the session's events, which other processes' commits reach too.
        let changed = Deferred.makeUnsafe<void>()
        const stop = hub.subscribe([sessionId], (envelope) => {
          const type = envelope.payload.type
          if (isTerminalType(type) || type === "queue-update" || type === "session-closed") {
            queueMicrotask(() => Deferred.doneUnsafe(changed, Exit.void))
          }
        })
        return yield* Effect.gen(function* () {
          while (true) {
            changed = Deferred.makeUnsafe<void>()
            const receipt = yield* store.receipt(sessionId, messageId)
            if (receipt === undefined) {
              const row = yield* store.getSession(sessionId)
              return yield* Effect.fail(
                row === undefined ? new SessionNotFound({ sessionId }) : new SubmissionNotFound({ messageId })
              )
            }
            const outcome = yield* outcomeOfReceipt(receipt)
            if (outcome !== undefined) return outcome
            if (receipt.state === "removed") return yield* new SubmissionNotFound({ messageId })
            yield* Deferred.await(changed)
          }
        }).pipe(Effect.ensuring(Effect.sync(stop)))
      })

      /** A steered message ends with the turn that took it. */
      const outcomeOfReceipt = (receipt: ReceiptRow): Effect.Effect<TurnOutcome | undefined, StoreFailure> =>
        receipt.outcome !== null
          ? Effect.succeed(receipt.outcome)
          : receipt.turnId !== null && (receipt.state === "steered" || receipt.state === "uncertain")
            ? Effect.map(store.turn(receipt.turnId), (turn) => turn?.outcome ?? undefined)
            : Effect.succeed(undefined)

      const whenIdle = Effect.fnUntraced(function* (sessionId: string): Effect.fn.Return<void, RuntimeError> {
        let changed = Deferred.makeUnsafe<void>()
        const stop = hub.subscribe([sessionId], (envelope) => {
          if (isTerminalType(envelope.payload.type)) queueMicrotask(() => Deferred.doneUnsafe(changed, Exit.void))
        })
        yield* Effect.gen(function* () {
          while (true) {
            changed = Deferred.makeUnsafe<void>()
            const active = actives.get(sessionId)
            if (active !== undefined) {
              yield* Effect.raceFirst(Effect.asVoid(Deferred.await(active.settled)), Deferred.await(active.gone))
              continue
            }
            const row = yield* store.getSession(sessionId)
            if (row === undefined) return yield* new SessionNotFound({ sessionId })
            const open = yield* store.openTurns({ sessionId })
            if (open.length === 0) return
            yield* Deferred.await(changed)
          }
        }).pipe(Effect.ensuring(Effect.sync(stop)))
      })

      return Waiting.of({ wait, whenIdle })
    })
  )
}
