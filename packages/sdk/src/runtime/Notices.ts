/**
 * What a harness says outside its turns, on its way to the journal. While a session is being made there is no row to journal
 * it on, so it is held until there is one, in its order.
 *
 * @since 0.1.0
 */
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import { ActiveTurns } from "./ActiveTurns.ts"
import { Journal } from "./Journal.ts"

/** Notices of a session that is not stored yet; those of an opening are few. */
const heldLimit = 1_000

export class Notices extends Context.Service<
  Notices,
  {
    readonly tell: (sessionId: string, events: ReadonlyArray<HarnessEvent>) => Effect.Effect<void>
    /** From now on notices of that session wait. */
    readonly hold: (sessionId: string) => void
    /** The session is stored. */
    readonly release: (sessionId: string) => Effect.Effect<void>
    /** There is no such session after all; nothing happens when it was released before. */
    readonly drop: (sessionId: string) => void
  }
>()("@tackroom/sdk/runtime/Notices") {
  static readonly layer = Layer.effect(
    Notices,
    Effect.gen(function* () {
      const journal = yield* Journal
      const actives = yield* ActiveTurns
      const held = new Map<string, Array<HarnessEvent>>()

      const write = (sessionId: string, events: ReadonlyArray<HarnessEvent>): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (events.length === 0) return Effect.void
          const active = actives.get(sessionId)
          // While a turn runs its log keeps the order; a notice is still outside the turn.
          const before = active === undefined || active.ending ? Effect.void : Effect.ignore(active.log.flush)
          return Effect.flatMap(before, () =>
            journal
              .outside(sessionId, events)
              .pipe(Effect.catch((error) => Effect.logWarning("A notice of a harness could not be journaled", error)))
          )
        })

      return Notices.of({
        tell: (sessionId, events) =>
          Effect.suspend(() => {
            const waiting = held.get(sessionId)
            if (waiting === undefined) return write(sessionId, events)
            if (waiting.length + events.length <= heldLimit) waiting.push(...events)
            return Effect.void
          }),
        hold: (sessionId) => void held.set(sessionId, []),
        release: (sessionId) =>
          Effect.suspend(() => {
            const events = held.get(sessionId) ?? []
            held.delete(sessionId)
            return write(sessionId, events)
          }),
        drop: (sessionId) => void held.delete(sessionId)
      })
    })
  )
}
