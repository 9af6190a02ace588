/**
 * From bytes to ops: one JSON object a line, or the reason why a line is none (serve-mode 2.1). Memory is one line at most,
 * whatever arrives; a line that is refused is never repeated, and the next one is read as if nothing had been (SRV-039).
 */
import { refuse, serveLimits, type Refusal } from "@tackroom/protocol/serve"
import { decodeUtf8, isBlankFrame, isDeeperThan, makeLines, parseJson, type Line } from "@tackroom/protocol/text"
import { Result } from "effect"

export type ReadLine =
  | { readonly _tag: "Object"; readonly fields: { readonly [name: string]: unknown } }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }

export interface OpLines {
  readonly push: (chunk: Uint8Array) => ReadonlyArray<ReadLine>
  /** What stands behind the last line end is a last line (SRV-041). */
  readonly end: () => ReadonlyArray<ReadLine>
}

export const makeOpLines = (): OpLines => {
  const { depth, lineBytes } = serveLimits
  const lines = makeLines({ limit: lineBytes, headBytes: 0, early: true })
  let line = 0

  const read = (one: Line): ReadonlyArray<ReadLine> => {
    line += 1
    const refused = (refusal: Refusal): ReadonlyArray<ReadLine> => [{ _tag: "Refused", refusal }]
    if (one._tag === "Oversize") return refused(refuse("line_too_long", { line, limit: lineBytes }))
    if (isBlankFrame(one.bytes)) return []
    const text = decodeUtf8(one.bytes)
    if (text === undefined) return refused(refuse("bad_utf8", { line }))
    if (isDeeperThan(text, depth)) return refused(refuse("too_deep", { line, limit: depth }))
    const json = parseJson(text)
    if (Result.isFailure(json)) return refused(refuse("bad_json", { line }))
    const value = json.success
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? [{ _tag: "Object", fields: value as { readonly [name: string]: unknown } }]
      : refused(refuse("not_an_object", { line }))
  }

  return {
    push: (chunk) => lines.push(chunk).flatMap(read),
    end: () => {
      const last = lines.end()
      return last === undefined ? [] : read(last)
    }
  }
}
