/**
 * Owns the way from bytes to one parsed JSON value per frame: limit, byte order mark, carriage return, UTF-8, nesting
 * (RUN-001 to RUN-007, RUN-013, RUN-015). Memory is one frame at most, whatever arrives.
 *
 * It does not know what a request is; a frame it refuses comes out as the error that answers it.
 */
import { FrameTooLarge, InvalidRequest, limits, ParseFailed, type RunError } from "@tackroom/protocol/run"
import {
  decodeUtf8,
  isBlankFrame,
  isDeeperThan,
  isRequestId,
  type Line,
  makeIdScan,
  makeLines,
  maxJsonDepth,
  type RequestId
} from "@tackroom/protocol/text"

export type Received =
  | { readonly _tag: "Value"; readonly value: unknown; readonly bytes: number }
  | { readonly _tag: "Refused"; readonly id: RequestId | null; readonly error: RunError }

export interface FrameReader {
  /** Takes the next bytes; `receive` is called for each frame they complete, in order. */
  readonly push: (chunk: Uint8Array) => void
  /** The bytes after the last line feed are a last frame. */
  readonly end: () => void
}

/** A shorter text cannot hold a value that is nested too deep and well-formed. */
const shortestTooDeep = 2 * (maxJsonDepth + 1)

const parse = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** The id of a value that is refused for another reason, where it has a valid one. */
const idOf = (value: unknown): RequestId | null =>
  typeof value === "object" && value !== null && "id" in value && isRequestId(value.id) ? value.id : null

const refused = (id: RequestId | null, error: RunError): Received => ({ _tag: "Refused", id, error })

const read = (line: Line<RequestId | undefined>): Received | undefined => {
  if (line._tag === "Oversize") {
    return refused(
      line.scan ?? null,
      new FrameTooLarge({ limitBytes: limits.frameBytes, observedBytes: line.observedBytes })
    )
  }
  const { bytes } = line
  if (isBlankFrame(bytes)) return undefined
  const text = decodeUtf8(bytes)
  const parsed = text === undefined ? undefined : parse(text)
  if (text === undefined || parsed === undefined) return refused(null, new ParseFailed({}))
  if (text.length >= shortestTooDeep && isDeeperThan(text)) {
    return refused(idOf(parsed.value), new InvalidRequest({ reason: "too_deep" }))
  }
  return { _tag: "Value", value: parsed.value, bytes: bytes.length }
}

export const makeFrameReader = (receive: (received: Received) => void): FrameReader => {
  const lines = makeLines({ limit: limits.frameBytes, headBytes: 0, scan: makeIdScan })
  const take = (line: Line<RequestId | undefined>): void => {
    const received = read(line)
    if (received !== undefined) receive(received)
  }
  return {
    push: (chunk) => {
      for (const line of lines.push(chunk)) take(line)
    },
    end: () => {
      const last = lines.end()
      if (last !== undefined) take(last)
    }
  }
}
