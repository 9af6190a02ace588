/**
 * A time limit for somebody else, counted in time in which this program would have noticed an answer. While the event loop
 * stands still, on a huge message or on a machine that sleeps, an answer may be here and not read: that time is ours, and
 * counts no more than a part of the limit.
 */
import { Effect } from "effect"

/** As many turns of the loop there are before a limit is over, however slow they are. */
const parts = 40

/** Completes after what came in the meantime was read. */
const nextTurn = Effect.callback<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

/** Completes after so much time in which the event loop turned. */
export const responsiveTime = (ms: number): Effect.Effect<void> =>
  Effect.sleep(ms / parts).pipe(
    Effect.repeat({ times: parts - 1 }),
    // The timers that are due come before the sockets that are ready.
    Effect.andThen(nextTurn),
    Effect.andThen(nextTurn)
  )
