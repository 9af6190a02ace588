/**
 * Cutting text for a model, by chars (Unicode code points) and never inside one; folding of carriage returns (AGT-072).
 *
 * Pure; knows nothing of tools. A cut text says in its middle how much was left out.
 */

/** The offset in UTF-16 units after `chars` code points from the start. */
const unitsFromStart = (text: string, chars: number): number => {
  let index = 0
  for (let seen = 0; seen < chars && index < text.length; seen += 1) {
    index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
  }
  return index
}

/** The offset in UTF-16 units `chars` code points before the end. */
const unitsFromEnd = (text: string, chars: number): number => {
  let index = text.length
  for (let seen = 0; seen < chars && index > 0; seen += 1) {
    index -= index > 1 && (text.codePointAt(index - 2) ?? 0) > 0xffff ? 2 : 1
  }
  return index
}

/** The first `max` chars. */
export const cutChars = (text: string, max: number): string =>
  text.length <= max ? text : text.slice(0, unitsFromStart(text, max))

/** `text` when it has at most `max` chars, else its head and its tail with a note between; never more than `max` chars. */
export const headAndTail = (text: string, max: number): string => {
  if (text.length <= max || unitsFromStart(text, max) >= text.length) return text
  const note = (left: number): string => `\n[… ${left} chars left out …]\n`
  const room = Math.max(0, max - note(text.length).length)
  const head = Math.ceil(room * 0.7)
  const from = unitsFromStart(text, head)
  const to = Math.max(from, unitsFromEnd(text, room - head))
  let left = 0
  for (let index = from; index < to; left += 1) index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
  return cutChars(text.slice(0, from) + note(left) + text.slice(to), max)
}

/** Keeps of every line only what stands after its last bare carriage return, as a terminal would show at the end. */
export const foldCarriageReturns = (text: string): string => {
  if (!text.includes("\r")) return text
  return text
    .split("\n")
    .map((line) => {
      let end = line.length
      while (line[end - 1] === "\r") end -= 1
      const body = line.slice(0, end)
      return body.slice(body.lastIndexOf("\r") + 1)
    })
    .join("\n")
}
