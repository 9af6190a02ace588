/**
 * Waiting in real time. Children live in the machine's time, not in the program's: a test clock that stands still must
 * not keep a child alive, so the ladder of a child never waits on the Effect clock.
 */
import { Effect } from "effect"

export const sleep = (ms: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), ms)
    return Effect.sync(() => clearTimeout(timer))
  })
