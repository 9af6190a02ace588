/**
 * The two times of the service: the wall's, for what people read, and a steady one for deadlines, which starts at the
 * wall's and never steps back (6.4). Both are milliseconds since the epoch.
 */
import { Clock, Effect } from "effect"

export interface RigClock {
  readonly wall: () => number
  readonly steady: () => number
}

const nanosPerMilli = 1_000_000n

export const make: Effect.Effect<RigClock> = Clock.clockWith((clock) =>
  Effect.sync(() => {
    const base = clock.currentTimeMillisUnsafe()
    const start = clock.monotonicTimeNanosUnsafe()
    return {
      wall: () => clock.currentTimeMillisUnsafe(),
      steady: () => base + Number((clock.monotonicTimeNanosUnsafe() - start) / nanosPerMilli)
    }
  })
)

/** A moment as every face writes it. */
export const iso = (ms: number): string => new Date(ms).toISOString()
