/**
 * Turns whatever a provider or its client library fails with into a `ModelFailure`.
 *
 * Structured data first: HTTP status, then the provider's error code and type; its text only where a provider gives no
 * code for an overflow (HRN-016). Nothing of an error but what is named here reaches the message.
 */
import { ModelFailure } from "./ModelFailure.ts"
import { sanitize } from "./Sanitize.ts"

export interface FailureContext {
  /** The key of the request, to be kept out of messages; "" without one. */
  readonly key: string
  /** Wall clock in ms, for a Retry-After that is a date. */
  readonly now: number
  /** Whether the provider had answered 2xx: what fails after that is its stream. */
  readonly answered: boolean
}

type Fields = { readonly [key: string]: unknown }

interface Words {
  readonly message: string
  readonly code: string
  readonly type: string
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : ""

const noWords: Words = { message: "", code: "", type: "" }

/** The shapes in use: `{error: {message, type, code}}`, `{error: "…"}`, `{message}`, `{detail}`, and an error itself. */
const wordsOf = (value: unknown): Words => {
  if (!isFields(value)) return noWords
  const response = value["response"]
  const inner = value["error"] ?? (isFields(response) ? response["error"] : undefined)
  if (typeof inner === "string") return { message: inner, code: text(value["code"]), type: text(value["type"]) }
  const source = isFields(inner) ? inner : value
  return {
    message: text(source["message"]) || text(source["detail"]),
    code: text(source["code"]),
    type: text(source["type"])
  }
}

const parseWords = (body: unknown): Words => {
  if (typeof body !== "string") return noWords
  try {
    return wordsOf(JSON.parse(body))
  } catch {
    return noWords
  }
}

const overflowCode = /context_length|exceed_context_size|context_window|request_too_large|string_above_max_length/
const overflowText =
  /prompt is too long|context length|context window|context size|exceed context limit|maximum (?:prompt|input) length|input (?:is )?too long|too many (?:input )?tokens/i
const usageCode = /insufficient_quota|billing|credit|usage_limit|payment_required/

const isOverflow = (status: number | null, words: Words): boolean => {
  const codes = `${words.code} ${words.type}`
  if (overflowCode.test(codes) || status === 413) return true
  return (status === null || status === 400 || status === 422) && overflowText.test(words.message)
}

/** The status an error inside a stream stands for, where it does not say one. */
const statusOfWords = (words: Words): number | null => {
  for (const code of [words.code, words.type]) {
    if (/^[45]\d\d$/.test(code)) return Number(code)
  }
  const codes = `${words.code} ${words.type}`.toLowerCase()
  if (/insufficient_quota|rate_limit/.test(codes)) return 429
  if (/authentication|invalid_api_key/.test(codes)) return 401
  if (/permission/.test(codes)) return 403
  if (/overload/.test(codes)) return 529
  if (/invalid_request|not_found|bad_request|billing|content_filter|content_policy/.test(codes)) return 400
  return null
}

/** Retry-After in ms: seconds or an HTTP date; `retry-after-ms` is more exact where a provider sends it. */
export const retryAfter = (headers: unknown, now: number): number | null => {
  if (!isFields(headers)) return null
  const exact = text(headers["retry-after-ms"]).trim()
  if (/^\d+(\.\d+)?$/.test(exact)) return Math.ceil(Number(exact))
  const value = text(headers["retry-after"]).trim()
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1_000)
  const date = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

const say = (lead: string, words: Words, context: FailureContext): string =>
  words.message === "" ? lead : sanitize(`${lead}: ${words.message}`, context.key)

const httpFailure = (status: number | null, words: Words, headers: unknown, context: FailureContext): ModelFailure => {
  const usageLimit = status === 402 || usageCode.test(`${words.code} ${words.type}`)
  const errorClass = usageLimit ? "usage_limit" : "model"
  const http = status === null ? "" : ` (HTTP ${status})`
  // The provider's words about a key are not repeated: they hold parts of it.
  if (status === 401 || status === 403) {
    return new ModelFailure({
      kind: "credential",
      status,
      retryAfterMs: null,
      errorClass: "credential",
      message: `The provider refused the credentials${http}`
    })
  }
  if (isOverflow(status, words)) {
    const message = say(`The request is larger than the model's context${http}`, words, context)
    return new ModelFailure({ kind: "overflow", status, retryAfterMs: null, errorClass: "model", message })
  }
  if (status === null || status === 408 || status === 429 || status >= 500) {
    return new ModelFailure({
      kind: "retryable",
      status,
      retryAfterMs: retryAfter(headers, context.now),
      errorClass,
      message: say(`The provider could not answer now${http}`, words, context)
    })
  }
  const message = say(`The provider refused the request${http}`, words, context)
  return new ModelFailure({ kind: "refused", status, retryAfterMs: null, errorClass, message })
}

export const disconnected = (message: string): ModelFailure =>
  new ModelFailure({ kind: "disconnect", status: null, retryAfterMs: null, errorClass: "model", message })

export const refused = (message: string): ModelFailure =>
  new ModelFailure({ kind: "refused", status: null, retryAfterMs: null, errorClass: "model", message })

/** An error and its causes, at most 8 deep. */
const chain = (error: unknown): ReadonlyArray<Fields> => {
  const out: Array<Fields> = []
  let current = error
  while (isFields(current) && out.length < 8 && !out.includes(current)) {
    out.push(current)
    current = current["cause"]
  }
  return out
}

const notConnected = (links: ReadonlyArray<Fields>, context: FailureContext): ModelFailure => {
  const code = links.map((link) => text(link["code"])).find((code) => /^[A-Z][A-Z0-9_]{2,40}$/.test(code))
  const why = code === undefined ? "" : ` (${code})`
  return disconnected(
    context.answered ? `The provider's stream broke off${why}` : `No connection to the provider${why}`
  )
}

/** Failure of the call itself or of reading its stream. */
export const failureOf = (error: unknown, context: FailureContext): ModelFailure => {
  const links = chain(error)
  const own = links.find((link) => link instanceof ModelFailure)
  if (own instanceof ModelFailure) return own
  const call = links.find((link) => link["name"] === "AI_APICallError")
  if (call !== undefined) {
    const status = typeof call["statusCode"] === "number" ? call["statusCode"] : null
    if (status !== null && (status < 200 || status > 299)) {
      const data = wordsOf(call["data"])
      const words = data.message === "" && data.code === "" ? parseWords(call["responseBody"]) : data
      return httpFailure(status, words, call["responseHeaders"], context)
    }
    return notConnected(links, context)
  }
  if (context.answered) return notWhatTheWirePromises
  return links.some((link) => text(link["code"]) !== "" || link["name"] === "TypeError")
    ? notConnected(links, context)
    : refused("The request could not be made for this provider")
}

export const notWhatTheWirePromises = disconnected("The provider's stream is not what its interface promises")

const libraryErrors = /^AI_(?:JSONParse|TypeValidation|InvalidResponseData|NoContent)/

/** Failure the provider reports inside a stream that began well, or that the client library found in it. */
export const streamFailureOf = (error: unknown, context: FailureContext): ModelFailure => {
  if (typeof error === "string") return httpFailure(null, { ...noWords, message: error }, undefined, context)
  if (!isFields(error)) return notWhatTheWirePromises
  const name = text(error["name"])
  if (error instanceof ModelFailure || name === "AI_APICallError") return failureOf(error, context)
  if (error instanceof Error || libraryErrors.test(name)) return notWhatTheWirePromises
  const words = wordsOf(error)
  const stated = error["statusCode"]
  // A library's guess of 500 for an unknown code is no better than ours.
  const status = typeof stated === "number" && stated !== 500 ? stated : statusOfWords(words)
  return httpFailure(status, words, undefined, context)
}
