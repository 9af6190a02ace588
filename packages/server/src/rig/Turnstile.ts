/**
 * One at a time, first come first served, with a bound on the wait. Whoever waits too long leaves the line; a turn that was
 * given is never lost to a timer that fires at the same moment, because one callback decides both.
 */
import { Effect } from "effect"

export interface Turnstile {
  /** Runs an effect in its turn; after `waitMs` without one it fails with what `late` gives. The effect is not interrupted. */
  readonly pass: <A, E, F>(
    use: Effect.Effect<A, E>,
    options: { readonly waitMs: number; readonly late: () => F }
  ) => Effect.Effect<A, E | F>
}

export const make = (): Turnstile => {
  const line: Array<() => void> = []
  let taken = false

  const leave = Effect.sync(() => {
    const next = line.shift()
    if (next === undefined) taken = false
    else next()
  })

  const enter = <F>(waitMs: number, late: () => F): Effect.Effect<void, F> =>
    Effect.callback<void, F>((resume) => {
      if (!taken) {
        taken = true
        resume(Effect.void)
        return undefined
      }
      const drop = (): void => {
        clearTimeout(timer)
        const at = line.indexOf(come)
        if (at >= 0) line.splice(at, 1)
      }
      const come = (): void => {
        clearTimeout(timer)
        resume(Effect.void)
      }
      const timer = setTimeout(() => {
        drop()
        resume(Effect.fail(late()))
      }, waitMs)
      line.push(come)
      return Effect.sync(drop)
    })

  return {
    pass: (use, { waitMs, late }) =>
      Effect.uninterruptibleMask((restore) => Effect.andThen(restore(enter(waitMs, late)), Effect.ensuring(use, leave)))
  }
}
