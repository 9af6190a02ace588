/** What somebody who mistyped a name meant: the nearest known name, when it is near enough to be worth saying. Pure. */

/** Edit distance in which two neighbouring characters in the wrong order count once. */
export const distance = (left: string, right: string): number => {
  const rows: Array<Array<number>> = [Array.from({ length: right.length + 1 }, (_, index) => index)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0
  for (let i = 1; i <= left.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= right.length; j++) {
      const changed = left[i - 1] === right[j - 1] ? 0 : 1
      let best = Math.min(at(i - 1, j) + 1, (row[j - 1] ?? 0) + 1, at(i - 1, j - 1) + changed)
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        best = Math.min(best, at(i - 2, j - 2) + 1)
      }
      row.push(best)
    }
  }
  return at(left.length, right.length)
}

/** The nearest of the names, or undefined when none is near. */
export const suggest = (given: string, names: ReadonlyArray<string>): string | undefined => {
  const ranked = names
    .map((name) => ({ name, off: name.startsWith(given) && given.length > 1 ? 1 : distance(given, name) }))
    .sort((left, right) => left.off - right.off)
  const [best] = ranked
  return best !== undefined && best.off <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : undefined
}
