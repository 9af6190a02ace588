/**
 * How much of a call's arguments a pending approval shows (run-protocol 15): strings over 4 KiB are cut, and all of them
 * shorter when there are so many that the whole would not fit. Pure; the uncut arguments are an artifact.
 */
import type { Schema } from "effect"

/** Bytes of UTF-8 above which a string is shown as a preview. */
export const previewBytes = 4_096
/** Most bytes of the shown arguments, encoded: what leaves room for the rest of an answer (RUN-418). */
const shownBytes = 131_072
/** Strings are never cut shorter than this. */
const leastBytes = 32

const bytesOf = (text: string): number => Buffer.byteLength(text)

const isLong = (text: string, limit: number): boolean => text.length * 3 > limit && bytesOf(text) > limit

/** The first `limit` bytes, never within a character. */
const headOf = (text: string, limit: number): string => {
  const bytes = Buffer.from(text.slice(0, limit))
  let end = Math.min(limit, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return `${bytes.toString("utf8", 0, end)}…`
}

const cutStrings = (value: Schema.Json, limit: number): { readonly value: Schema.Json; readonly cut: boolean } => {
  let cut = false
  const walk = (value: Schema.Json): Schema.Json => {
    if (typeof value === "string") {
      if (!isLong(value, limit)) return value
      cut = true
      return headOf(value, limit)
    }
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item)]))
  }
  return { value: walk(value), cut }
}

/** The value as it is shown, and whether anything was cut. */
export const previewOf = (value: Schema.Json): { readonly value: Schema.Json; readonly cut: boolean } => {
  for (let limit = previewBytes; limit > leastBytes; limit /= 2) {
    const shown = cutStrings(value, limit)
    if (bytesOf(JSON.stringify(shown.value)) <= shownBytes) return shown
  }
  const least = cutStrings(value, leastBytes)
  return bytesOf(JSON.stringify(least.value)) <= shownBytes ? least : { value: {}, cut: true }
}

/** True when a person would see less than the whole. */
export const needsPreview = (value: Schema.Json): boolean => previewOf(value).cut
