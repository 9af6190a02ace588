/**
 * Looks into JSON without parsing it: how deep it is nested, and the top-level `id` of a frame that is too large to
 * hold (RUN-004, RUN-013).
 *
 * @since 0.1.0
 */
import { Result } from "effect"
import type { OversizeScan } from "./Lines.ts"
import { decodeUtf8, utf8Length } from "./Utf8.ts"

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COLON = 0x3a
const COMMA = 0x2c

/** The deepest nesting a frame may have (RUN-013). @since 0.1.0 */
export const maxJsonDepth = 128

/**
 * Whether a JSON text is nested deeper than `limit`. It neither recurses nor allocates, so that it can run before the
 * parser does.
 *
 * @since 0.1.0
 */
export const isDeeperThan = (json: Uint8Array | string, limit: number = maxJsonDepth): boolean => {
  const text = typeof json === "string" ? json : undefined
  const bytes = typeof json === "string" ? undefined : json
  let depth = 0
  let inString = false
  for (let i = 0; i < json.length; i++) {
    const unit = text === undefined ? (bytes?.[i] ?? 0) : text.charCodeAt(i)
    if (inString) {
      if (unit === BACKSLASH) i++
      else if (unit === QUOTE) inString = false
    } else if (unit === QUOTE) inString = true
    else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      if (++depth > limit) return true
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) depth--
  }
  return false
}

/** A request id: echoed with the same type and value. @since 0.1.0 */
export type RequestId = string | number

/**
 * Whether a value is a request id: a well-formed string of at most 256 bytes without U+0000, or an integer within
 * ±(2^53 − 1) (RUN-009, RUN-014).
 *
 * @since 0.1.0
 */
export const isRequestId = (value: unknown): value is RequestId =>
  typeof value === "string"
    ? value.length <= 256 && value.isWellFormed() && !value.includes("\u0000") && utf8Length(value) <= 256
    : Number.isSafeInteger(value)

const parseJson = (text: string): unknown => Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))

// every byte of an id can be written as \uXXXX
const longestId = 256 * 6 + 2
const longestKey = 2 * 6 + 2

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * A scan for the top-level `id` of a JSON object that arrives in pieces, in constant memory. `end` gives the id, or
 * `undefined` when there is none or it is not valid. As in a parser, the last of several wins.
 *
 * @since 0.1.0
 */
export const makeIdScan = (): OversizeScan<RequestId | undefined> => {
  let depth = 0
  let inString = false
  let escaped = false
  let place: "start" | "key" | "colon" | "value" | "after" | "done" | "broken" = "start"
  let isId = false
  let captured: Array<number> = []
  let capturing = false
  let found: RequestId | undefined

  const parse = (): unknown => {
    const text = decodeUtf8(Uint8Array.from(captured))
    return text === undefined ? undefined : parseJson(text)
  }

  const endValue = (): void => {
    if (isId) {
      const value = capturing ? parse() : undefined
      found = isRequestId(value) ? value : undefined
    }
    capturing = false
    captured = []
    isId = false
  }

  const capture = (byte: number): void => {
    if (!capturing) return
    if (captured.length >= (place === "key" ? longestKey : longestId)) capturing = false
    else captured.push(byte)
  }

  const endString = (): void => {
    inString = false
    if (depth !== 1) return
    if (place === "key") {
      isId = capturing && parse() === "id"
      captured = []
      capturing = false
      place = "colon"
    } else if (place === "value") {
      endValue()
      place = "after"
    }
  }

  const atTop = (byte: number): void => {
    if (isSpace(byte)) return
    if (place === "start" && byte === OPEN_BRACE) {
      depth = 1
      place = "key"
    } else place = "broken"
  }

  const open = (): void => {
    if (depth === 1) {
      if (place !== "value") {
        place = "broken"
        return
      }
      // an id that is an object or an array is no id
      capturing = false
    }
    depth++
  }

  const close = (): void => {
    depth--
    if (depth === 1) {
      endValue()
      place = "after"
    } else if (depth === 0) {
      if (place === "value") endValue()
      place = "done"
    }
  }

  const inObject = (byte: number): void => {
    if (byte === QUOTE) {
      if (depth === 1 && place === "key") {
        capturing = true
        captured = []
      } else if (depth === 1 && place !== "value") place = "broken"
      inString = true
      capture(byte)
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) open()
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) close()
    else if (depth > 1) return
    else if (isSpace(byte)) {
      // one space is kept, so that "1 2" does not read as 12
      if (captured.length > 0 && captured[captured.length - 1] !== 0x20) capture(0x20)
    } else if (byte === COLON && place === "colon") {
      place = "value"
      capturing = isId
      captured = []
    } else if (byte === COMMA && (place === "value" || place === "after")) {
      if (place === "value") endValue()
      place = "key"
    } else if (place === "value") capture(byte)
    else place = "broken"
  }

  const push = (bytes: Uint8Array): void => {
    for (let i = 0; i < bytes.length; i++) {
      if (place === "broken") return
      const byte = bytes[i] ?? 0
      if (inString) {
        if (capturing) capture(byte)
        if (escaped) escaped = false
        else if (byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) endString()
      } else if (depth === 0) atTop(byte)
      else inObject(byte)
    }
  }

  return { push, end: () => (place === "done" ? found : undefined) }
}
