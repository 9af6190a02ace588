/**
 * Frames: JSON-RPC 2.0 objects, one per line (run-protocol section 3). Classifies a parsed JSON value and writes frames;
 * splitting bytes, strict UTF-8, the size limit and the depth scan are in `@tackroom/protocol/text`.
 */
import { isRequestId, type RequestId } from "../text/JsonScan.ts"
import { codePoints } from "../text/WellFormed.ts"
import { wireJson } from "../text/WireJson.ts"
import { type ErrorObject, InvalidParams, InvalidRequest, type RunError, toErrorObject } from "./RunErrors.ts"

/** The params of a frame: an object with wire names. */
export type FrameParams = { readonly [name: string]: unknown }

/** What a parsed frame is. */
export type Frame =
  | { readonly _tag: "Request"; readonly id: RequestId; readonly method: string; readonly params: FrameParams }
  | { readonly _tag: "Notification"; readonly method: string; readonly params: FrameParams }
  | { readonly _tag: "Response"; readonly id: RequestId | null; readonly result: unknown }
  | { readonly _tag: "ErrorResponse"; readonly id: RequestId | null; readonly error: ErrorResponse }
  | { readonly _tag: "Invalid"; readonly id: RequestId | null; readonly error: InvalidRequest | InvalidParams }

/** The error object of a response as it came: any peer's, so only code and message are certain. */
export interface ErrorResponse {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

const isObject = (value: unknown): value is FrameParams =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isMethod = (value: unknown): value is string => {
  if (typeof value !== "string" || value.length === 0 || value.length > 256) return false
  const length = codePoints(value)
  return length >= 1 && length <= 128
}

const noParams: FrameParams = Object.freeze({})

const invalid = (reason: "batch" | "jsonrpc" | "id" | "method", id: RequestId | null): Frame => ({
  _tag: "Invalid",
  id,
  error: new InvalidRequest({ reason })
})

const paramsNotObject = (id: RequestId): Frame => ({
  _tag: "Invalid",
  id,
  error: new InvalidParams({ path: "", expected: "an object", issues: [{ path: "", expected: "an object" }] })
})

const isErrorResponse = (value: unknown): value is ErrorResponse =>
  isObject(value) && Number.isSafeInteger(value["code"]) && typeof value["message"] === "string"

/**
 * Classifies a parsed JSON value (RUN-007 to RUN-012, RUN-014). An invalid frame carries the error that answers it and
 * the id to answer with. A notification is never answered, so one whose params are no object is a notification without
 * params. Whether the method exists, and is a request's or a notification's, is not looked at.
 */
export const classifyFrame = (value: unknown): Frame => {
  if (Array.isArray(value)) return invalid("batch", null)
  if (!isObject(value)) return invalid("jsonrpc", null)
  const hasId = Object.hasOwn(value, "id")
  const id = hasId && isRequestId(value["id"]) ? value["id"] : null
  if (!Object.hasOwn(value, "method")) return classifyAnswer(value, hasId, id)
  if (hasId && id === null) return invalid("id", null)
  if (value["jsonrpc"] !== "2.0") return invalid("jsonrpc", id)
  const method = value["method"]
  if (!isMethod(method)) return invalid("method", id)
  const params = Object.hasOwn(value, "params") ? value["params"] : noParams
  if (id === null) return { _tag: "Notification", method, params: isObject(params) ? params : noParams }
  return isObject(params) ? { _tag: "Request", id, method, params } : paramsNotObject(id)
}

const classifyAnswer = (value: FrameParams, hasId: boolean, id: RequestId | null): Frame => {
  const hasResult = Object.hasOwn(value, "result")
  const answer = hasResult !== Object.hasOwn(value, "error") && hasId && value["jsonrpc"] === "2.0"
  if (answer && (id !== null || value["id"] === null)) {
    if (hasResult) return { _tag: "Response", id, result: value["result"] }
    const error = value["error"]
    if (isErrorResponse(error)) return { _tag: "ErrorResponse", id, error }
  }
  if (hasId && id === null) return invalid("id", null)
  return invalid(value["jsonrpc"] === "2.0" ? "method" : "jsonrpc", id)
}

/** The frame of a value nested deeper than 128, which is found before the parser runs (RUN-013). */
export const tooDeep: Frame = {
  _tag: "Invalid",
  id: null,
  get error() {
    return new InvalidRequest({ reason: "too_deep" })
  }
}

/** Writes a request. A frame has no terminator; the writer of the line adds 0x0A. */
export const writeRequest = (id: RequestId, method: string, params: unknown): string =>
  wireJson({ jsonrpc: "2.0", id, method, params })

/** Writes a notification. */
export const writeNotification = (method: string, params: unknown): string =>
  wireJson({ jsonrpc: "2.0", method, params })

/** Writes the answer of a request that succeeded; `result` is in wire form (`encodeResult`). */
export const writeResult = (id: RequestId, result: unknown): string => wireJson({ jsonrpc: "2.0", id, result })

/** Writes the answer of a request that failed, or of a frame that was none, with id null. */
export const writeError = (id: RequestId | null, error: RunError): string => writeErrorObject(id, toErrorObject(error))

/** Writes an answer with an error object that is made already, as a receipt keeps it. */
export const writeErrorObject = (id: RequestId | null, error: ErrorObject): string =>
  wireJson({ jsonrpc: "2.0", id, error })
