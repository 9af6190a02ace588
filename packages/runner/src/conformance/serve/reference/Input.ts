/**
 * Bytes of stdin as lines, and each line as an object or as what is wrong with it (serve-mode 2.1). Keeps no more of a line
 * that is too long than the limit.
 */
import type { Settings } from "./Settings.ts"

export const lineLimit = 1_048_576
const depthLimit = 64

export interface Refusal {
  readonly reason: string
  readonly message: string
  readonly detail: Readonly<Record<string, unknown>>
}

export type Fields = Readonly<Record<string, unknown>>
export type Read = { readonly fields: Fields } | { readonly refusal: Refusal }

const depthOf = (text: string): number => {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]
    if (quoted) {
      if (unit === "\\") at += 1
      else if (unit === '"') quoted = false
    } else if (unit === '"') quoted = true
    else if (unit === "{" || unit === "[") deepest = Math.max(deepest, ++depth)
    else if (unit === "}" || unit === "]") depth -= 1
  }
  return deepest
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Splits bytes; `onLine` gets every line that is not blank. */
export const makeInput = (settings: Settings, onLine: (read: Read) => void) => {
  const { broken } = settings
  const strict = new TextDecoder("utf-8", { fatal: !broken("SRV-035"), ignoreBOM: true })
  let kept: Array<Uint8Array> = []
  let size = 0
  let line = 1
  let isTooLong = false
  let isFirst = true

  const refuse = (reason: string, message: string, more: object = {}): void =>
    onLine({ refusal: { reason, message: `line ${line} ${message}`, detail: { line, ...more } } })

  const parsed = (bytes: Buffer): void => {
    let text: string
    try {
      text = strict.decode(bytes)
    } catch {
      return refuse("bad_utf8", "is not valid UTF-8")
    }
    if (isFirst && text.startsWith("\uFEFF") && !broken("SRV-032")) text = text.slice(1)
    isFirst = false
    if (text.endsWith("\r")) text = text.slice(0, -1)
    if (/^[ \t\r]*$/u.test(text)) {
      if (broken("SRV-031")) refuse("bad_json", "is not JSON")
      return
    }
    if (!broken("SRV-037") && depthOf(text) > depthLimit)
      return refuse("too_deep", "is nested too deep", { limit: depthLimit })
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      if (broken("SRV-036")) return
      return refuse("bad_json", broken("SRV-040") ? `is not JSON: ${text.slice(0, 50)}` : "is not JSON")
    }
    if (!isObject(value) && broken("SRV-038")) return
    if (!isObject(value)) return refuse("not_an_object", "is not a JSON object")
    onLine({ fields: value })
  }

  const overlong = (): void => {
    isTooLong = true
    kept = []
    refuse("line_too_long", `is longer than ${lineLimit} bytes`, { limit: lineLimit })
  }

  const take = (bytes: Uint8Array): void => {
    if (isTooLong) return
    size += bytes.length
    const limit = broken("SRV-033") ? lineLimit - 1 : lineLimit
    // One more than the limit may be the CR of the line's end.
    if (!settings.bare && size > limit + 1) return overlong()
    kept.push(bytes)
  }

  const end = (): void => {
    const limit = broken("SRV-033") ? lineLimit - 1 : lineLimit
    const bytes = Buffer.concat(kept)
    const length = bytes.at(-1) === 0x0d ? bytes.length - 1 : bytes.length
    if (!isTooLong && !settings.bare && length > limit) overlong()
    if (!isTooLong) parsed(bytes)
    if (isTooLong && broken("SRV-034")) refuse("line_too_long", "is longer still", { limit: lineLimit })
    kept = []
    size = 0
    isTooLong = false
    line += 1
  }

  /** A faulty reader takes other line ends for ends, too. */
  const normal = (chunk: Buffer): Buffer =>
    broken("SRV-030") ? Buffer.from(chunk.toString("latin1").replaceAll("\u00e2\u0080\u00a8", "\n"), "latin1") : chunk

  return {
    push: (given: Buffer): void => {
      const chunk = normal(given)
      let from = 0
      for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
        take(chunk.subarray(from, at))
        end()
        from = at + 1
      }
      if (from < chunk.length) take(chunk.subarray(from))
    },
    /** What is left without a line end is a line. */
    finish: (): void => {
      if (size > 0 && !broken("SRV-041")) end()
    }
  }
}
