/**
 * From bytes on stdin to the messages that the official SDK takes, one JSON value a line (serve-mode 12.1). The SDK's own
 * line stream ends a connection at an oversize line and replaces bad UTF-8 without a word; this one refuses the line and goes
 * on. Memory is one frame at most. What a message means, whether its params are right, and its answer are the SDK's.
 */
import type { AnyMessage } from "@agentclientprotocol/sdk"
import { decodeUtf8, isBlankFrame, isDeeperThan, type Line, makeLines, maxJsonDepth } from "@tackroom/protocol/text"

/** Bytes of a frame that we read, without its end (ACP-002). */
export const frameBytes = 33_554_432

/** Why a frame was refused. */
export type FrameReason = "frame_too_large" | "too_deep" | "bad_json" | "bad_utf8" | "batch" | "no_message"

/** A frame that is none: the answer to it. */
export interface RefusedFrame {
  readonly _tag: "Refused"
  readonly id: string | number | null
  readonly reason: FrameReason
}

/** What a line is. */
export type Read = { readonly _tag: "Message"; readonly message: AnyMessage } | RefusedFrame

const messages: Readonly<Record<FrameReason, readonly [code: number, message: string]>> = {
  bad_json: [-32_700, "Parse error"],
  bad_utf8: [-32_700, "Parse error: the frame is not UTF-8"],
  frame_too_large: [-32_600, "Invalid request: the frame is larger than 32 MiB"],
  too_deep: [-32_600, "Invalid request: the frame is nested deeper than 128 levels"],
  batch: [-32_600, "Invalid request: there are no batches"],
  no_message: [-32_600, "Invalid request: neither a request, a notification nor a response"]
}

/** The answer to a frame that is none; nothing of the frame is in it. */
export const refusal = ({ id, reason }: RefusedFrame): AnyMessage => {
  const [code, message] = messages[reason]
  return { jsonrpc: "2.0", id, error: { code, message, data: { reason } } }
}

/** A shorter text cannot hold a value that is nested too deep and well-formed. */
const shortestTooDeep = 2 * (maxJsonDepth + 1)

const refused = (reason: FrameReason, id: RefusedFrame["id"] = null): Read => ({ _tag: "Refused", id, reason })

const isId = (id: unknown): id is string | number | null =>
  id === null || typeof id === "string" || (typeof id === "number" && Number.isFinite(id))

const isError = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "code" in error &&
  Number.isInteger(error.code) &&
  "message" in error &&
  typeof error.message === "string"

const isMessage = (value: Readonly<Record<string, unknown>>): boolean => {
  if (value["jsonrpc"] !== "2.0") return false
  if ("method" in value) return typeof value["method"] === "string" && (!("id" in value) || isId(value["id"]))
  const hasResult = "result" in value
  return "id" in value && isId(value["id"]) && hasResult !== "error" in value && (hasResult || isError(value["error"]))
}

const classify = (value: unknown, tooDeep: boolean): Read => {
  if (Array.isArray(value)) return refused("batch")
  if (typeof value !== "object" || value === null) return refused("no_message")
  const fields = value as Readonly<Record<string, unknown>>
  const { id } = fields
  const known = typeof id === "string" || (typeof id === "number" && Number.isFinite(id)) ? id : null
  if (tooDeep) return refused("too_deep", known)
  return isMessage(fields) ? { _tag: "Message", message: value as AnyMessage } : refused("no_message", known)
}

const parse = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const read = (line: Line): Read | undefined => {
  if (line._tag === "Oversize") return refused("frame_too_large")
  if (isBlankFrame(line.bytes)) return undefined
  const text = decodeUtf8(line.bytes)
  if (text === undefined) return refused("bad_utf8")
  const parsed = parse(text)
  if (parsed === undefined) return refused("bad_json")
  return classify(parsed.value, text.length >= shortestTooDeep && isDeeperThan(text))
}

/** Takes bytes and gives what each line is, in order. */
export interface FrameReader {
  readonly push: (chunk: Uint8Array) => void
  /** Bytes without an end are a last frame. */
  readonly end: () => void
}

export const makeFrameReader = (receive: (read: Read) => void, limit: number = frameBytes): FrameReader => {
  const lines = makeLines({ limit, headBytes: 0, early: true })
  const take = (line: Line): void => {
    const found = read(line)
    if (found !== undefined) receive(found)
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
