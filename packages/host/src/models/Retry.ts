/**
 * When a failed model request is tried again (AGT-006): at most 4 times, after about 1, 2, 4 and 8 s, or after what the
 * provider asked for, up to 60 s.
 *
 * Pure. The loop, the retraction of a failed attempt's text and the fallback model (AGT-007) are the native agent's.
 */
import type { ModelFailure } from "./ModelFailure.ts"

export const retryPolicy = {
  delaysMs: [1_000, 2_000, 4_000, 8_000],
  /** A delay is moved by up to this fraction of itself, either way. */
  jitter: 0.25,
  retryAfterMaxMs: 60_000
} as const

export const maySucceedLater = (failure: ModelFailure): boolean =>
  failure.kind === "retryable" || failure.kind === "disconnect"

/**
 * The wait before the next try in ms, or null when there is none.
 *
 * `attempt` is the number of the try that failed, from 1; `random` is in [0, 1).
 */
export const nextDelay = (failure: ModelFailure, attempt: number, random: number): number | null => {
  if (!maySucceedLater(failure)) return null
  const base = retryPolicy.delaysMs[attempt - 1]
  if (base === undefined) return null
  if (failure.retryAfterMs !== null && failure.retryAfterMs > 0) {
    return Math.min(failure.retryAfterMs, retryPolicy.retryAfterMaxMs)
  }
  return Math.round(base * (1 - retryPolicy.jitter + 2 * retryPolicy.jitter * random))
}
