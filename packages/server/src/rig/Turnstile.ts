/**
 * One at a time, first come first served, with a bound on the wait. Whoever waits too long leaves the line; a turn that was
 * given is never lost to a clock that strikes at the same moment, because being in the line decides both.
 */
import { Deferred, Effect, Exit } from "effect"

export interface Turnstile {
  /** Runs an effect in its turn; after `waitMs` without one it fails with what `late` gives. The effect is not interrupted. */
  readonly pass: <A, E, F>(
    use: Effect.Effect<A, E>,
    options: { readonly waitMs: number; readonly late: () => F }
  ) => Effect.Effect<A, E | F>
}

export const make = (): Turnstile => {
  const line: Array<Deferred.Deferred<void>> = []
  let taken = false

  const leave = Effect.sync(() => {
    const next = line.shift()
    if (next === undefined) taken = false
    else Deferred.doneUnsafe(next, Exit.void)
  })

  const enter = <F>(waitMs: number, late: () => F): Effect.Effect<void, F> =>
    Effect.suspend(() => {
      if (!taken) {
        taken = true
        return Effect.void
      }
      const turn = Deferred.makeUnsafe<void>()
      line.push(turn)
      /** Whether it still waited; if not, the turn is its own. */
      const drop = (): boolean => {
        const at = line.indexOf(turn)
        if (at >= 0) line.splice(at, 1)
        return at >= 0
      }
      return Deferred.await(turn).pipe(
        Effect.timeoutOrElse({
          duration: waitMs,
          orElse: () => Effect.suspend((): Effect.Effect<void, F> => (drop() ? Effect.fail(late()) : Effect.void))
        }),
        Effect.onInterrupt(() => Effect.suspend(() => (drop() ? Effect.void : leave)))
      )
    })

  return {
    pass: (use, { waitMs, late }) =>
      Effect.uninterruptibleMask((restore) => Effect.andThen(restore(enter(waitMs, late)), Effect.ensuring(use, leave)))
  }
}
