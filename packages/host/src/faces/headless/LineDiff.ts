/**
 * The difference of two texts by lines, for a person who decides about it. Pure.
 *
 * It is exact for texts whose differing middle is small enough; beyond that the whole middle is shown as removed and
 * added, which is still true.
 */

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap"
  readonly text: string
}

const largestTable = 4_000_000

const linesOf = (text: string): ReadonlyArray<string> => {
  if (text === "") return []
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return lines
}

/** Length of the longest common subsequence from each position on, row by row. */
const commonLengths = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<Uint32Array> => {
  const rows = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1))
  for (let i = left.length - 1; i >= 0; i--) {
    const row = rows[i]
    const below = rows[i + 1]
    if (row === undefined || below === undefined) continue
    for (let j = right.length - 1; j >= 0; j--) {
      row[j] = left[i] === right[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0)
    }
  }
  return rows
}

const middle = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<DiffLine> => {
  const removed = (text: string): DiffLine => ({ kind: "removed", text })
  const added = (text: string): DiffLine => ({ kind: "added", text })
  if ((left.length + 1) * (right.length + 1) > largestTable) return [...left.map(removed), ...right.map(added)]
  const common = commonLengths(left, right)
  const out: Array<DiffLine> = []
  let i = 0
  let j = 0
  while (i < left.length || j < right.length) {
    const one = left[i]
    const other = right[j]
    if (one !== undefined && one === other) {
      out.push({ kind: "same", text: one })
      i++
      j++
    } else if (one !== undefined && (other === undefined || (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      out.push(removed(one))
      i++
    } else if (other !== undefined) {
      out.push(added(other))
      j++
    }
  }
  return out
}

/** Every line of both texts, in order. */
export const diffLines = (before: string, after: string): ReadonlyArray<DiffLine> => {
  const left = linesOf(before)
  const right = linesOf(after)
  let head = 0
  while (head < left.length && head < right.length && left[head] === right[head]) head++
  let tail = 0
  while (tail < left.length - head && tail < right.length - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++
  const same = (text: string): DiffLine => ({ kind: "same", text })
  return [
    ...left.slice(0, head).map(same),
    ...middle(left.slice(head, left.length - tail), right.slice(head, right.length - tail)),
    ...left.slice(left.length - tail).map(same)
  ]
}

/** The changes with some lines around them; a gap stands for unchanged lines left out and says how many. */
export const changes = (before: string, after: string, context = 3): ReadonlyArray<DiffLine> => {
  const lines = diffLines(before, after)
  const near = lines.map(() => false)
  for (const [index, line] of lines.entries()) {
    if (line.kind === "same") continue
    for (let at = Math.max(0, index - context); at <= Math.min(lines.length - 1, index + context); at++) near[at] = true
  }
  const out: Array<DiffLine> = []
  let skipped = 0
  const close = (): void => {
    if (skipped > 0) out.push({ kind: "gap", text: `${skipped} unchanged` })
    skipped = 0
  }
  for (const [index, line] of lines.entries()) {
    if (near[index] === true) {
      close()
      out.push(line)
    } else skipped++
  }
  close()
  return out
}

/** How many lines a change adds and removes. */
export const diffStat = (before: string, after: string): { readonly added: number; readonly removed: number } => {
  const lines = diffLines(before, after)
  return {
    added: lines.filter(({ kind }) => kind === "added").length,
    removed: lines.filter(({ kind }) => kind === "removed").length
  }
}
