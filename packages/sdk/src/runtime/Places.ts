/**
 * Places for turns that run at the same time (RUN-387). Who comes when none is free waits, first come first served; once
 * closed, nobody gets one any more.
 *
 * @since 0.1.0
 */
import { Deferred, Effect, Exit } from "effect"

/** Free places for turns. */
export interface Places {
  /** Takes a place when one is free. */
  readonly take: () => boolean
  readonly wait: Effect.Effect<void>
  readonly release: () => void
  /** Gives out no place from here on; whoever waits goes on waiting. */
  readonly close: () => void
}

/** Makes the places of a runtime. */
export const makePlaces = (count: number): Places => {
  let free = count
  let isClosed = false
  const waiting: Array<Deferred.Deferred<void>> = []
  const take = (): boolean => {
    if (free <= 0 || isClosed) return false
    free -= 1
    return true
  }
  const release = (): void => {
    const next = isClosed ? undefined : waiting.shift()
    if (next === undefined) free += 1
    else Deferred.doneUnsafe(next, Exit.void)
  }
  return {
    take,
    wait: Effect.suspend(() => {
      if (take()) return Effect.void
      const turn = Deferred.makeUnsafe<void>()
      waiting.push(turn)
      return Effect.onInterrupt(Deferred.await(turn), () =>
        Effect.sync(() => {
          const at = waiting.indexOf(turn)
          if (at >= 0) waiting.splice(at, 1)
          else release()
        })
      )
    }),
    release,
    close: () => {
      isClosed = true
    }
  }
}
