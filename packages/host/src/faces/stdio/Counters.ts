/**
 * The counters of `host/info` (RUN-020). One mutable record per host, because the reader path counts every frame; it only
 * grows. Owns the numbers, not what they mean: the parts that count say so.
 */
import { counterKeys, type Counters } from "@tackroom/protocol/run"

/** A record that parts of the face add to. `host/info` answers a copy of it. */
export type MutableCounters = { -readonly [K in keyof Counters]: number }

export const makeCounters = (): MutableCounters =>
  // fromEntries forgets the keys it was given.
  Object.fromEntries(counterKeys.map((key) => [key, 0])) as MutableCounters

/** The numbers now, as an answer carries them. */
export const snapshot = (counters: MutableCounters): Counters => ({ ...counters })
