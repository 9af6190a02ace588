/**
 * Chance that can be repeated: a small generator (mulberry32) from a printed seed. Pure.
 */

export const generator = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** `count` different members of a list, in the list's order. */
export const sample = <A>(random: () => number, list: ReadonlyArray<A>, count: number): ReadonlyArray<A> => {
  const rest = list.map((_, index) => index)
  const drawn = new Set<number>()
  while (drawn.size < count && rest.length > 0) {
    const [index] = rest.splice(Math.floor(random() * rest.length), 1)
    if (index !== undefined) drawn.add(index)
  }
  return list.filter((_, index) => drawn.has(index))
}
