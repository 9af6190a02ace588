/**
 * Cutting text without splitting a Unicode scalar value, and making text well-formed.
 *
 * Text in payloads keeps lone surrogates and U+0000 (RT-191); plain columns, ids and titles do not (STO-012). Sizes are
 * bytes of UTF-8 unless a name says code points.
 *
 * @since 0.1.0
 */
import { utf8Length } from "./Utf8.ts"

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000

/** The number of code units of the scalar value (or lone surrogate) that starts at `index`. */
const unitsAt = (text: string, index: number): 1 | 2 =>
  isHigh(text.charCodeAt(index)) && isLow(text.charCodeAt(index + 1)) ? 2 : 1

const bytesAt = (text: string, index: number, units: 1 | 2): number => {
  if (units === 2) return 4
  const unit = text.charCodeAt(index)
  return unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3
}

/**
 * The longest prefix of at most `maxBytes` bytes that ends on a scalar boundary (RT-204).
 *
 * @since 0.1.0
 */
export const headBytes = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return text
  let bytes = 0
  let index = 0
  while (index < text.length) {
    const units = unitsAt(text, index)
    bytes += bytesAt(text, index, units)
    if (bytes > maxBytes) return text.slice(0, index)
    index += units
  }
  return text
}

/**
 * The longest suffix of at most `maxBytes` bytes that starts on a scalar boundary.
 *
 * @since 0.1.0
 */
export const tailBytes = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return text
  let bytes = 0
  let index = text.length
  while (index > 0) {
    const units = index > 1 && unitsAt(text, index - 2) === 2 ? 2 : 1
    bytes += bytesAt(text, index - units, units)
    if (bytes > maxBytes) return text.slice(index)
    index -= units
  }
  return text
}

/**
 * The longest prefix of at most `max` code points; a lone surrogate counts as one.
 *
 * @since 0.1.0
 */
export const headCodePoints = (text: string, max: number): string => {
  if (text.length <= max) return text
  let index = 0
  for (let count = 0; count < max && index < text.length; count++) index += unitsAt(text, index)
  return text.slice(0, index)
}

/**
 * The number of code points of a string; a lone surrogate counts as one.
 *
 * @since 0.1.0
 */
export const codePoints = (text: string): number => {
  let count = 0
  for (let index = 0; index < text.length; index += unitsAt(text, index)) count++
  return count
}

/** Sizes of a cut into head and tail, in bytes. @since 0.1.0 */
export interface CutSizes {
  /** Text up to this size is not cut. */
  readonly limit: number
  readonly head: number
  readonly tail: number
}

/** The sizes of 6.5: above 64 KiB, the first 48 KiB and the last 16 KiB. @since 0.1.0 */
export const largeValueSizes: CutSizes = { limit: 65_536, head: 49_152, tail: 16_384 }

/** A cut text: what is kept of it, and the size of the whole in bytes. @since 0.1.0 */
export interface Cut {
  readonly head: string
  readonly tail: string
  readonly bytes: number
}

/**
 * Cuts a text over the limit to its head and tail on scalar boundaries (6.5); `undefined` when it is within the limit.
 * What is kept is `head + tail`.
 *
 * @since 0.1.0
 */
export const cutHeadTail = (text: string, sizes: CutSizes = largeValueSizes): Cut | undefined => {
  if (text.length * 3 <= sizes.limit) return undefined
  const bytes = utf8Length(text)
  if (bytes <= sizes.limit) return undefined
  return { head: headBytes(text, sizes.head), tail: tailBytes(text, sizes.tail), bytes }
}

/**
 * How many code units of a text may be flushed now: all of them, or all but a high surrogate at its end, whose other
 * half may still come (RT-204).
 *
 * @since 0.1.0
 */
export const flushableLength = (text: string): number =>
  isHigh(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length

/**
 * Makes a text fit for a plain column, a title or a terminal line: lone surrogates become U+FFFD, U+0000 is removed
 * (STO-012).
 *
 * @since 0.1.0
 */
export const wellFormed = (text: string): string => {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes("\u0000") ? whole.replaceAll("\u0000", "") : whole
}

/**
 * The first line of a text that holds something, without surrounding white space, at most `max` code points (RT-150).
 * The result is well-formed; it is empty when the text is blank.
 *
 * @since 0.1.0
 */
export const firstLine = (text: string, max: number): string => {
  const line = /[^\s][^\r\n\u2028\u2029]*/u.exec(wellFormed(text))?.[0] ?? ""
  return headCodePoints(line.trimEnd(), max).trimEnd()
}
