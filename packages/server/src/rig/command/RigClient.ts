/**
 * The client of a rig service, by the table of its routes. A refusal is one of `SeatErrors`, or what another service
 * answered; a service that is not there is `Unreachable`.
 */
import {
  type RigBody,
  rigBase,
  rigFiles,
  rigPath,
  type RigResult,
  type RigRouteName,
  rigRoutes,
  readSeatError,
  type SeatError,
  seatCodec,
  UnknownRefusal
} from "@tackroom/protocol/seat"
import { Data, Effect, Result } from "effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"

/** Nobody answers for this home. */
export class Unreachable extends Data.TaggedError("Unreachable")<{
  readonly detail: string
  /** A call that changes something was on its way: whether it was done is unknown. */
  readonly unknown?: true
}> {}

export type CallFailure = SeatError | UnknownRefusal | Unreachable

export interface Endpoint {
  readonly url: string
  readonly token: string
}

/** Where the service of a home listens, and the operator's token. */
export const endpointOf = (home: string): Effect.Effect<Endpoint, Unreachable> =>
  Effect.try({
    try: () => {
      const endpoint: unknown = JSON.parse(fs.readFileSync(path.join(home, rigFiles.endpoint), "utf8"))
      const token = fs.readFileSync(path.join(home, rigFiles.operatorToken), "utf8").trim()
      if (typeof endpoint !== "object" || endpoint === null || !("baseUrl" in endpoint)) throw new Error("no endpoint")
      return { url: String(endpoint.baseUrl), token }
    },
    catch: () => new Unreachable({ detail: `no service has run in ${home}` })
  })

interface Call {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
}

const searchOf = (query: Readonly<Record<string, string | undefined>>): string => {
  const entries = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return entries.length === 0
    ? ""
    : `?${new URLSearchParams(Object.fromEntries(entries) as Record<string, string>).toString()}`
}

/** One request to its end. There is no limit in time: a launch may take its whole wait. */
const exchange = (
  { url, token }: Endpoint,
  method: string,
  target: string,
  body: string | undefined
): Effect.Effect<{ readonly status: number; readonly text: string }, Unreachable> =>
  Effect.callback((resume) => {
    let connected = false
    const broken = (error: Error): void =>
      resume(
        Effect.fail(
          new Unreachable({ detail: error.message, ...(connected && method !== "GET" ? { unknown: true } : {}) })
        )
      )
    const request = http.request(
      `${url}${target}`,
      {
        method,
        agent: false,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
        }
      },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("error", broken)
        response.on("end", () =>
          resume(Effect.succeed({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }))
        )
      }
    )
    request.on("error", broken)
    request.on("socket", (socket) => socket.once("connect", () => (connected = true)))
    request.end(body)
    return Effect.sync(() => request.destroy())
  })

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: a refusal without a code.
    return undefined
  }
}

export const make = (endpoint: Endpoint) => ({
  call: <Name extends RigRouteName>(
    name: Name,
    body: RigBody<Name>,
    { params = {}, query = {} }: Call = {}
  ): Effect.Effect<RigResult<Name>, CallFailure> =>
    Effect.gen(function* () {
      const route = rigRoutes[name]
      const text = route.method === "GET" ? undefined : JSON.stringify(body)
      const reply = yield* exchange(endpoint, route.method, rigPath(name, params) + searchOf(query), text)
      const json = parsed(reply.text)
      if (reply.status !== 200) return yield* readSeatError(reply.status, json)
      const decoded = seatCodec(route.result).decode(json)
      if (Result.isFailure(decoded)) {
        return yield* new UnknownRefusal({ status: reply.status, message: "the service answered something else" })
      }
      return decoded.success as RigResult<Name>
    }),

  /**
   * Follows the feed from a position; each event as the service wrote it. Ends when the stream ends. While whoever takes the
   * events is behind, nothing is read, and the service holds or ends the stream as it does with any slow reader.
   */
  feed: (
    { after, onReset }: { readonly after: string | undefined; readonly onReset: "replay" | "tail" | "close" },
    onEvent: (data: string, cursor: string) => Promise<void> | undefined,
    onControl: (name: string, data: string) => void
  ): Effect.Effect<void, CallFailure> =>
    Effect.callback<void, CallFailure>((resume) => {
      const request = http.request(
        `${endpoint.url}${rigBase}/feed${searchOf({ after, onReset })}`,
        { agent: false, headers: { authorization: `Bearer ${endpoint.token}`, accept: "text/event-stream" } },
        (response) => {
          let rest = ""
          response.setEncoding("utf8")
          if (response.statusCode !== 200) {
            const parts: Array<string> = []
            response.on("data", (chunk: string) => parts.push(chunk))
            response.on("end", () =>
              resume(Effect.fail(readSeatError(response.statusCode ?? 0, parsed(parts.join("")))))
            )
            return
          }
          response.on("data", (chunk: string) => {
            rest += chunk
            let behind: Promise<void> | undefined
            for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
              const lines = rest.slice(0, end).split("\n")
              rest = rest.slice(end + 2)
              const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
              const data = field("data")
              if (data === undefined) continue
              const name = field("event")
              if (name === undefined) behind = onEvent(data, field("id") ?? "") ?? behind
              else onControl(name, data)
            }
            if (behind === undefined) return
            response.pause()
            void behind.then(() => response.resume())
          })
          response.on("error", () => resume(Effect.void))
          response.on("end", () => resume(Effect.void))
        }
      )
      request.on("error", (error) => resume(Effect.fail(new Unreachable({ detail: error.message }))))
      request.end()
      return Effect.sync(() => request.destroy())
    })
})

export type RigClient = ReturnType<typeof make>
