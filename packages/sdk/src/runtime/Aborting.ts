/**
 * Ending turns from outside (4.2, 5.5): an abort of one, and the end of all when the runtime closes. The ladder itself is
 * `Cancelling`'s.
 *
 * Implements RT-024, RT-028, RT-163, RT-164, RT-167, RT-168.
 *
 * @since 0.1.0
 */
import { ScopeMismatch, type RuntimeError } from "@tackroom/protocol"
import type { TurnOutcome } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn } from "./ActiveTurns.ts"
import { Admitting } from "./Admitting.ts"
import { Cancelling } from "./Cancelling.ts"
import { Options } from "./Options.ts"
import { TurnRunner } from "./TurnRunner.ts"

export type AbortResult =
  | { readonly ok: true; readonly status: "cancelled" | "already_idle" }
  | { readonly ok: false; readonly status: "not_found" | "recovering" | "failed"; readonly message: string }

/** Which turn to abort, and why. */
export interface AbortOptions {
  readonly directory?: string
  readonly turnId?: string
  readonly reason?: "requested" | "parent" | "goal"
}

export class Aborting extends Context.Service<
  Aborting,
  {
    readonly abort: (sessionId: string, options?: AbortOptions) => Effect.Effect<AbortResult, RuntimeError>
    /** Ends or leaves every turn of this runtime, within the time that a disposal has. */
    readonly stopAll: (how: "cancel" | "leave") => Effect.Effect<void>
  }
>()("@tackroom/sdk/runtime/Aborting") {
  static readonly layer = Layer.effect(
    Aborting,
    Effect.gen(function* () {
      const store = yield* Store
      const actives = yield* ActiveTurns
      const runner = yield* TurnRunner
      const admitting = yield* Admitting
      const cancelling = yield* Cancelling
      const options = yield* Options

      const settledStatus = (outcome: TurnOutcome): AbortResult => {
        if (outcome.status === "cancelled") return { ok: true, status: "cancelled" }
        if (outcome.status === "failed" && outcome.error.code === "cancel_unacknowledged") {
          return { ok: false, status: "failed", message: outcome.error.message }
        }
        return { ok: true, status: "already_idle" }
      }

      const abortHere = (active: ActiveTurn, reason: "requested" | "parent" | "goal"): Effect.Effect<AbortResult> =>
        Effect.gen(function* () {
          cancelling.begin(active, { _tag: "Asked", reason })
          if (!active.launched) admitting.launch(active)
          const bound = options.cancelGraceMs + options.killGraceMs + 3_000
          const ended = yield* Effect.timeoutOption(
            Effect.raceFirst(
              Effect.map(Deferred.await(active.settled), settledStatus),
              Effect.as(Deferred.await(active.gone), undefined)
            ),
            bound
          )
          if (ended._tag === "Some" && ended.value !== undefined) return ended.value
          if (Deferred.isDoneUnsafe(active.settled)) return settledStatus(yield* Deferred.await(active.settled))
          return { ok: false, status: "failed", message: "The turn did not end in time" }
        })

      const abort = Effect.fnUntraced(function* (
        sessionId: string,
        how: AbortOptions = {}
      ): Effect.fn.Return<AbortResult, RuntimeError> {
        const active = actives.get(sessionId)
        if (active !== undefined) {
          if (how.directory !== undefined && active.session.directory !== how.directory) {
            return yield* new ScopeMismatch({ sessionId })
          }
          if (how.turnId !== undefined && active.turn.id !== how.turnId) return { ok: true, status: "already_idle" }
          return yield* abortHere(active, how.reason ?? "requested")
        }
        const row = yield* store.getSession(sessionId)
        if (row === undefined) return { ok: false, status: "not_found", message: `There is no session ${sessionId}` }
        if (how.directory !== undefined && row.directory !== how.directory)
          return yield* new ScopeMismatch({ sessionId })
        const [open] = yield* store.openTurns({ sessionId })
        if (open === undefined || (how.turnId !== undefined && open.id !== how.turnId)) {
          return { ok: true, status: "already_idle" }
        }
        // Left over from a crash: taken over, then cancelled (RT-168).
        yield* admitting.recover(sessionId)
        const taken = actives.get(sessionId)
        if (taken !== undefined) return yield* abortHere(taken, how.reason ?? "requested")
        const after = yield* store.openTurns({ sessionId })
        return after.length === 0
          ? { ok: true, status: "cancelled" }
          : { ok: false, status: "failed", message: "Another process works on this session" }
      })

      const stopAll = (how: "cancel" | "leave"): Effect.Effect<void> =>
        Effect.gen(function* () {
          // What waits for a place must not be handed over because another turn just left.
          runner.places.close()
          const running = [...actives.all()]
          for (const active of running) {
            if (!active.launched) admitting.launch(active)
            if (how === "cancel") cancelling.begin(active, { _tag: "Asked", reason: "shutdown" })
            else Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: "Left" }))
          }
          const bound = how === "cancel" ? 17_000 : 4_500
          yield* Effect.timeoutOption(
            Effect.forEach(running, (active) => Deferred.await(active.gone), {
              concurrency: "unbounded",
              discard: true
            }),
            bound
          )
          if (how === "leave") return
          // What could not be ended in time is said to be interrupted, never cancelled (RT-024).
          yield* Effect.timeoutOption(
            Effect.forEach(
              [...actives.all()].filter((active) => !active.ending),
              (active) => {
                active.cancel = { _tag: "None" }
                return runner.finish(active, {
                  _tag: "Failed",
                  code: "turn_interrupted",
                  message: "The runtime was closed before the harness ended the turn"
                })
              },
              { concurrency: "unbounded", discard: true }
            ),
            2_000
          )
        })

      return Aborting.of({ abort, stopAll })
    })
  )
}
