/**
 * Keeps every stored envelope within 256 KiB (6.5). A string above 64 KiB is cut to its first 48 KiB and last 16 KiB, a
 * larger value of free JSON becomes null; the whole value goes into an artifact. What cannot be encoded at all is replaced
 * by a `diagnostic` (RT-187). Pure: it says which artifacts are needed, the journal puts them.
 *
 * Implements RT-187, RT-210, RT-211.
 *
 * @since 0.1.0
 */
import type { EventPayload } from "@tackroom/protocol/events"
import { utf8Length } from "./Coalescer.ts"

/** Bytes above which a string is cut and another value becomes null. */
export const fieldLimit = 65_536
/** Bytes of one encoded envelope. */
export const envelopeLimit = 262_144
/** What an envelope needs beside its payload: ids, directory (at most 4 KiB), times. */
const envelopeRest = 8_192
const depthLimit = 256

/** A value that goes into an artifact; `path` is the JSON Pointer of the field in the payload. */
export interface LargePiece {
  readonly path: string
  readonly mime: string
  readonly bytes: Uint8Array
}

export interface CutPayload {
  readonly payload: EventPayload
  readonly pieces: ReadonlyArray<LargePiece>
}

const encoder = new TextEncoder()

/** An upper bound of the encoded size in bytes; -1 when the value cannot be encoded. */
const weigh = (value: unknown, depth: number): number => {
  switch (typeof value) {
    case "string":
      return value.length * 6 + 2
    case "number":
      return Number.isFinite(value) ? 24 : -1
    case "boolean":
      return 5
    case "undefined":
      return 4
    case "bigint":
    case "function":
    case "symbol":
      return -1
    default:
  }
  if (value === null) return 4
  if (depth > depthLimit) return -1
  let total = 2
  if (Array.isArray(value)) {
    for (const item of value) {
      const size = weigh(item, depth + 1)
      if (size < 0) return -1
      total += size + 1
    }
    return total
  }
  for (const key of Object.keys(value as object)) {
    const size = weigh((value as Record<string, unknown>)[key], depth + 1)
    if (size < 0) return -1
    total += key.length * 6 + 4 + size
  }
  return total
}

/** An upper bound of the encoded size of a payload in bytes, for buffers; an unencodable one counts as 1 KiB. */
export const estimate = (payload: unknown): number => {
  const size = weigh(payload, 0)
  return size < 0 ? 1024 : Math.ceil(size / 4)
}

/** Fields of free JSON that may be null in the event's schema. */
const nullable = new Set(["input", "output", "content", "arguments", "raw", "resource", "account", "diff"])
/** Objects of free JSON that are left out instead, since null is no value of theirs. */
const removable = new Set(["metadata", "display"])

const scalarStart = (bytes: Uint8Array, at: number): number => {
  let i = at
  while (i > 0 && ((bytes[i] ?? 0) & 0xc0) === 0x80) i -= 1
  return i
}

const decoder = new TextDecoder()

const cutString = (text: string, limit: number): string => {
  const bytes = encoder.encode(text)
  const head = scalarStart(bytes, Math.floor((limit * 3) / 4))
  let tail = bytes.length - Math.floor(limit / 4)
  while (tail < bytes.length && ((bytes[tail] ?? 0) & 0xc0) === 0x80) tail += 1
  return decoder.decode(bytes.subarray(0, head)) + decoder.decode(bytes.subarray(tail))
}

const pointer = (path: string, key: string | number): string =>
  `${path}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`

const encodedBytes = (value: unknown): number => utf8Length(JSON.stringify(value) ?? "null")

const copyCut = (value: unknown, path: string, limit: number, pieces: Array<LargePiece>): unknown => {
  if (typeof value === "string") {
    if (value.length * 3 <= limit || utf8Length(value) <= limit) return value
    pieces.push({ path, mime: "text/plain; charset=utf-8", bytes: encoder.encode(value) })
    return cutString(value, limit)
  }
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item, i) => copyCut(item, pointer(path, i), limit, pieces))
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue
    const at = pointer(path, key)
    const free = nullable.has(key) || removable.has(key)
    if (!free || typeof item === "string") {
      out[key] = copyCut(item, at, limit, pieces)
      continue
    }
    const inner: Array<LargePiece> = []
    const copy = copyCut(item, at, limit, inner)
    if (encodedBytes(copy) <= limit * (1 + inner.length)) {
      out[key] = copy
      pieces.push(...inner)
    } else {
      pieces.push({ path: at, mime: "application/json", bytes: encoder.encode(JSON.stringify(item)) })
      if (nullable.has(key)) out[key] = null
    }
  }
  return out
}

const replaced = (payload: EventPayload, code: string, message: string): EventPayload => ({
  type: "diagnostic",
  diagnostic: { code, message, details: { type: payload.type } }
})

/**
 * Answers the payload as it may be stored. The common case, a small payload, is one walk and no copy.
 */
export const cut = (payload: EventPayload): CutPayload => {
  const bound = weigh(payload, 0)
  if (bound < 0) {
    return {
      payload: replaced(payload, "event_unencodable", "An event could not be encoded and was dropped"),
      pieces: []
    }
  }
  if (bound <= fieldLimit) return { payload, pieces: [] }
  for (let limit = fieldLimit; limit >= 256; limit /= 2) {
    const pieces: Array<LargePiece> = []
    const copy = copyCut(payload, "", limit, pieces) as EventPayload
    if (encodedBytes(copy) + pieces.length * 512 + envelopeRest <= envelopeLimit) {
      return pieces.length === 0 ? { payload, pieces } : { payload: copy, pieces }
    }
  }
  return {
    payload: replaced(payload, "event_too_large", "An event was too large; the whole of it is kept as an artifact"),
    pieces: [{ path: "", mime: "application/json", bytes: encoder.encode(JSON.stringify(payload)) }]
  }
}
