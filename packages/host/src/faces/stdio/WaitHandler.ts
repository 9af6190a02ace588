/**
 * The shape in which a method of kind wait is served, so that a connection and an embedded caller use one handler
 * (D-27, RUN-033). Owns no state: who parks decides when to look.
 */
import { Effect, Option } from "effect"

export interface WaitState<R> {
  /** Worth returning for before the time is over: there is something new to say. */
  readonly ready: boolean
  /** The truthful state, ready or not. */
  readonly result: R
}

export interface WaitHandler<R, E> {
  /** One consistent read. */
  readonly current: Effect.Effect<WaitState<R>, E>
  /**
   * Completes when something may have changed **since the last `current` began**; at once when it already has. It may
   * complete without a reason, but not over and over: each completion costs a `current`.
   */
  readonly changed: Effect.Effect<void>
}

/** Serves a wait without a connection: ready, or the state when `waitMs` are over. */
export const waitReady = <R, E>(handler: WaitHandler<R, E>, waitMs: number): Effect.Effect<R, E> => {
  const untilReady: Effect.Effect<R, E> = Effect.flatMap(handler.current, (state) =>
    state.ready ? Effect.succeed(state.result) : Effect.andThen(handler.changed, untilReady)
  )
  return Effect.flatMap(handler.current, (state) =>
    state.ready || waitMs <= 0
      ? Effect.succeed(state.result)
      : Effect.flatMap(
          Effect.timeoutOption(Effect.andThen(handler.changed, untilReady), waitMs),
          Option.match({
            onNone: () => Effect.map(handler.current, (last) => last.result),
            onSome: Effect.succeed
          })
        )
  )
}
