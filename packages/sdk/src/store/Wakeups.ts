/**
 * Hints that a session's head moved (STO-009): published after the commit, never kept for those who do not listen. A
 * listener that does not keep up loses the oldest.
 */
import { Effect, Queue, Stream } from "effect"

/** A session and a head it has reached. */
export interface Wakeup {
  readonly sessionId: string
  readonly head: number
}

const buffered = 16_384

/** A set of listeners. `onFirst` runs when the first one comes, `onLast` when the last one has gone. */
export const makeWakeups = (hooks?: { readonly onFirst: () => void; readonly onLast: () => void }) => {
  const listeners = new Set<(wakeups: ReadonlyArray<Wakeup>) => void>()
  const publish = (wakeups: ReadonlyArray<Wakeup>): void => {
    if (wakeups.length > 0) for (const listener of listeners) listener(wakeups)
  }
  const stream: Stream.Stream<Wakeup> = Stream.callback<Wakeup>(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const listener = (wakeups: ReadonlyArray<Wakeup>) => {
            for (const wakeup of wakeups) Queue.offerUnsafe(queue, wakeup)
          }
          listeners.add(listener)
          if (listeners.size === 1) hooks?.onFirst()
          return listener
        }),
        (listener) =>
          Effect.sync(() => {
            listeners.delete(listener)
            if (listeners.size === 0) hooks?.onLast()
          })
      ),
    { bufferSize: buffered, strategy: "sliding" }
  )
  return { publish, stream }
}
