/** How fast a grant may post: so many at once, refilled at a rate. Pure. */

export interface RateBucket {
  readonly tokens: number
  readonly at: number
}

export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** Takes one; `undefined` when there is none. Time is in milliseconds. */
export const take = (
  bucket: RateBucket | undefined,
  now: number,
  rate: Rate
): { readonly bucket: RateBucket; readonly taken: boolean } => {
  const before = bucket ?? { tokens: rate.burst, at: now }
  const refilled = before.tokens + (Math.max(now - before.at, 0) / 1_000) * rate.perSecond
  const tokens = Math.min(refilled, rate.burst)
  return tokens >= 1
    ? { bucket: { tokens: tokens - 1, at: now }, taken: true }
    : { bucket: { tokens, at: now }, taken: false }
}
