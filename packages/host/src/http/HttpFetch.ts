/**
 * `fetch` over Node's own HTTP client: the one transport of requests to model providers and MCP servers.
 *
 * Not the `fetch` of Node, because that ends the process: when a server closes the connection while a reader is behind,
 * its parser throws out of a socket's event, where nobody can catch it (nodejs/undici#5360, mended in undici 8; Node 24 has
 * undici 7). Here a reader that is behind stops the socket, so what is held is a few buffers
 * however fast the server is, and every failure is one of its request: before the answer the promise rejects, later the
 * body fails, with the errors of `fetch` (a `TypeError` with its cause, or the signal's reason).
 *
 * Not done here: redirects are answers like any other (both guards decide about them), and a request body is a string.
 */
import type { Agent, AgentOptions, ClientRequest, IncomingMessage, RequestOptions } from "node:http"
import { pipeline, type Readable, type Transform } from "node:stream"

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>

const connectMs = 10_000
/** Without a byte for so long, while somebody waits for one, a server is taken for gone. */
const silenceMs = 300_000
/** Shorter than the 5 s after which common servers close an idle connection, so that no request meets the closing. */
const idleMs = 4_000
/** Read ahead of a body's reader; a small body is read whole, so that its connection is free again. */
const aheadBytes = 65_536

/** Said unless the caller says otherwise: some servers refuse who does not name itself. */
const said = [
  ["accept", "*/*"],
  ["accept-encoding", "identity"],
  ["user-agent", "tackroom"]
] as const

const withoutBody: ReadonlySet<number> = new Set([204, 205, 304])

interface Way {
  readonly agent: Agent
  readonly request: (url: URL, options: RequestOptions) => ClientRequest
}

/** Loads by its first call: a start of the host does without HTTP. */
const once = (load: () => Promise<Way>): (() => Promise<Way>) => {
  let loaded: Promise<Way> | undefined
  return () => (loaded ??= load())
}

/** What Node's own agent was made with, the proxy of the environment included. */
const patient = (agent: Agent): AgentOptions => ({
  ...("options" in agent && typeof agent.options === "object" ? agent.options : {}),
  timeout: idleMs
})

const plain = once(() =>
  import("node:http").then(({ Agent, globalAgent, request }) => ({ agent: new Agent(patient(globalAgent)), request }))
)

const secure = once(() =>
  import("node:https").then(({ Agent, globalAgent, request }) => ({ agent: new Agent(patient(globalAgent)), request }))
)

const wayTo = ({ protocol }: URL): Promise<Way> => {
  if (protocol === "https:") return secure()
  return protocol === "http:" ? plain() : Promise.reject(new TypeError("Only http and https can be fetched"))
}

const failed = (cause: unknown): TypeError => new TypeError("fetch failed", { cause })
const terminated = (cause: unknown): TypeError => new TypeError("terminated", { cause })

const timedOut = (): Error => Object.assign(new Error("The server is silent"), { code: "ETIMEDOUT" })

const bodyText = (body: RequestInit["body"]): string | undefined => {
  if (typeof body === "string" || body === undefined) return body
  if (body === null) return undefined
  throw new TypeError("A request body is a string")
}

const ask = (way: Way, url: URL, init: RequestInit): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { signal } = init
    signal?.throwIfAborted()
    const body = bodyText(init.body)
    const headers = new Headers(init.headers)
    for (const [name, value] of said) if (!headers.has(name)) headers.set(name, value)
    const request = way.request(url, {
      agent: way.agent,
      method: init.method ?? "GET",
      headers: Object.fromEntries(headers)
    })
    let message: IncomingMessage | undefined
    const abort = (): void => {
      reject(signal?.reason)
      request.destroy()
    }
    signal?.addEventListener("abort", abort, { once: true })
    request.on("error", (cause) => reject(failed(cause)))
    request.once("close", () => {
      signal?.removeEventListener("abort", abort)
      reject(failed(undefined))
    })
    request.once("socket", (socket) => {
      const onTimeout = (): void => {
        // A reader that is behind is waited for, not the server.
        if (message !== undefined && message.readableLength > 0) socket.setTimeout(silenceMs)
        else (message ?? request).destroy(timedOut())
      }
      const onConnect = (): void => void socket.setTimeout(silenceMs)
      socket.setTimeout(socket.connecting ? connectMs : silenceMs)
      socket.once("connect", onConnect)
      socket.on("timeout", onTimeout)
      request.once("close", () => socket.off("connect", onConnect).off("timeout", onTimeout))
    })
    request.once("response", (response) => {
      message = response
      // Whoever reads learns it from the body; until then, nobody may: a stream's error without a listener ends a process.
      response.on("error", () => {})
      resolve(response)
    })
    request.end(body)
  })

/** What is asked for is not compressed; a server that compresses all the same is read. */
const decoderFor = (coding: string, zlib: typeof import("node:zlib")): Transform | undefined => {
  const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = zlib.constants
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })
    case "deflate":
      return zlib.createInflate({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })
    case "br":
      return zlib.createBrotliDecompress({ flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH })
    default:
      return undefined
  }
}

const decoded = (message: IncomingMessage): Readable | Promise<Readable> => {
  const coding = message.headers["content-encoding"]?.trim().toLowerCase()
  if (coding === undefined || coding === "identity") return message
  return import("node:zlib").then((zlib) => {
    const decoder = decoderFor(coding, zlib)
    return decoder === undefined ? message : pipeline(message, decoder, () => {})
  })
}

const bodyOf = (source: Readable, signal: RequestInit["signal"]): ReadableStream<Uint8Array> => {
  let release = (): void => {}
  let isOver = false
  const end = (how: () => void): void => {
    if (isOver) return
    isOver = true
    release()
    how()
  }
  /** What has come is taken at once and in one piece: many small events cost one turn of the streams, not many. */
  const take = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    while ((controller.desiredSize ?? 0) > 0) {
      const chunk: Uint8Array | null = source.read()
      if (chunk === null) return
      controller.enqueue(chunk)
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const abort = (): void => {
          end(() => controller.error(signal?.reason))
          source.destroy()
        }
        release = () => signal?.removeEventListener("abort", abort)
        signal?.addEventListener("abort", abort, { once: true })
        source.on("readable", () => take(controller))
        source.once("end", () => end(() => controller.close()))
        source.once("error", (cause) => end(() => controller.error(terminated(cause))))
        source.once("close", () => end(() => controller.error(terminated(undefined))))
        if (signal?.aborted === true) abort()
        else if (source.destroyed) end(() => controller.error(terminated(source.errored ?? undefined)))
      },
      pull: take,
      cancel: () => {
        end(() => {})
        source.destroy()
      }
    },
    { highWaterMark: aheadBytes, size: (chunk) => chunk.byteLength }
  )
}

const responseOf = (message: IncomingMessage, source: Readable, signal: RequestInit["signal"]): Response => {
  const status = message.statusCode ?? 0
  const headers = new Headers()
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value)
  }
  const init = { status, statusText: message.statusMessage ?? "", headers }
  if (!withoutBody.has(status)) return new Response(bodyOf(source, signal), init)
  source.resume()
  return new Response(null, init)
}

export const httpFetch: Fetch = (input, init = {}) => {
  const url = new URL(input)
  return wayTo(url)
    .then((way) => ask(way, url, init))
    .then((message) =>
      Promise.resolve(decoded(message))
        .then((source) => responseOf(message, source, init.signal))
        .catch((cause: unknown) => {
          message.destroy()
          throw failed(cause)
        })
    )
}
