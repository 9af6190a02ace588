/**
 * The one way out to a provider: puts the key on, and guards where it goes and how much comes back.
 *
 * Invariants: the key is set here and nowhere else, so no client library ever holds it; it is not sent over plain http
 * except to loopback (RUN-223) and never to another origin than the connection's; without a key no header pretends one.
 * An answer is bounded: its whole, one event of it, and the body of an error. What is refused here rejects with a
 * `ModelFailure`.
 */
import { Redacted } from "effect"
import { mayCarryKey } from "./Endpoint.ts"
import { disconnected, refused } from "./Classify.ts"
import { ModelFailure } from "./ModelFailure.ts"

export type Fetch = (input: string | URL, init: RequestInit) => Promise<Response>

export interface GuardOptions {
  readonly fetch: Fetch
  readonly apiKey: Redacted.Redacted | null
  readonly keyHeader: "authorization" | "x-api-key"
  /** Called when the provider answered 2xx. */
  readonly onAnswer: () => void
}

export const answerLimits = {
  responseBytes: 134_217_728,
  eventBytes: 16_777_216,
  errorBodyBytes: 65_536,
  redirects: 3
} as const

const keylessHeaders = ["authorization", "x-api-key", "cookie", "proxy-authorization"]
const lineFeed = 0x0a

/** Fails when the answer, or one line of it, is larger than anything a model says. */
const bounded = () => {
  let total = 0
  let line = 0
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength
      const last = chunk.lastIndexOf(lineFeed)
      line = last === -1 ? line + chunk.byteLength : chunk.byteLength - last - 1
      if (total > answerLimits.responseBytes || line > answerLimits.eventBytes) {
        controller.error(disconnected("The provider's answer is larger than any answer may be"))
        return
      }
      controller.enqueue(chunk)
    }
  })
}

/** Passes the first bytes of an error's body and lets go of the rest. */
const firstBytes = (limit: number) => {
  let left = limit
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left))
      left -= chunk.byteLength
      if (left <= 0) controller.terminate()
    }
  })
}

const withBody = (response: Response, body: ReadableStream<Uint8Array> | null): Response =>
  new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })

const credentialFailure = new ModelFailure({
  kind: "credential",
  status: null,
  retryAfterMs: null,
  errorClass: "credential",
  message: "A key is not sent over plain http, except to this machine"
})

const redirectFailure = refused(
  "The provider answers with a redirect to another address; set base_url to the address it should be"
)

const release = (response: Response): Promise<void> => response.body?.cancel() ?? Promise.resolve()

/** A fetch for one request of one connection. */
export const make = (options: GuardOptions): Fetch => {
  const send = (url: URL, init: RequestInit, redirects: number): Promise<Response> =>
    options.fetch(url, { ...init, redirect: "manual" }).then((response) => {
      if (response.status >= 300 && response.status < 400) return follow(url, init, response, redirects)
      if (!response.ok) {
        return withBody(response, response.body?.pipeThrough(firstBytes(answerLimits.errorBodyBytes)) ?? null)
      }
      options.onAnswer()
      return withBody(response, response.body?.pipeThrough(bounded()) ?? null)
    })

  const follow = (from: URL, init: RequestInit, response: Response, redirects: number): Promise<Response> =>
    release(response).then(() => {
      const location = response.headers.get("location")
      const to = location === null ? null : URL.parse(location, from.href)
      const repeats = response.status === 307 || response.status === 308
      if (to === null || to.origin !== from.origin || !repeats || redirects === 0) throw redirectFailure
      return send(to, init, redirects - 1)
    })

  return (input, init) => {
    const url = new URL(input)
    const headers = new Headers(init.headers)
    for (const name of keylessHeaders) headers.delete(name)
    if (options.apiKey !== null) {
      if (!mayCarryKey(url)) return Promise.reject(credentialFailure)
      const key = Redacted.value(options.apiKey)
      headers.set(options.keyHeader, options.keyHeader === "authorization" ? `Bearer ${key}` : key)
    }
    return send(url, { ...init, headers }, answerLimits.redirects)
  }
}
