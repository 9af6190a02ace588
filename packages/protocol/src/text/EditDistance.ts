/**
 * How far two words are apart: what "did you mean" is made from.
 *
 * @since 0.1.0
 */

/** Edit distance in which two neighbouring characters in the wrong order count once. @since 0.1.0 */
export const editDistance = (left: string, right: string): number => {
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
