/** Random numbers that can be had again: a test prints its seed, and `TACKROOM_SEED` gives it back. */

/** A number in [0, 1) each call (mulberry32). */
export const random = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The seed of a test: what the environment asks for, else a new one; printed, because a name alone may not be shown. */
export const seedOf = (name: string): number => {
  const seed = Number(process.env["TACKROOM_SEED"] ?? Math.floor(Math.random() * 4_294_967_296))
  process.stderr.write(`seed of ${name}: TACKROOM_SEED=${seed}\n`)
  return seed
}
