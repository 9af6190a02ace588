/**
 * One request to the rig: answered with a status and a body, or not answered. It follows no redirect, uses no proxy and
 * keeps no connection, so that a rig which was started again is reached at once.
 *
 * It retries nothing and knows no message: who asks decides what an answer means.
 */
import * as http from "node:http"
import { request as secureRequest } from "node:https"
import { parseJson } from "@tackroom/protocol/text"
import { Data, Effect, Result } from "effect"
import type { EndpointSource } from "./Endpoint.ts"
import { responsiveTime } from "./ResponsiveTime.ts"

/** No answer came: refused, reset, timed out, or there is no rig. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{
  readonly reason: "no_rig" | "refused" | "broken" | "timeout"
}> {}

export interface RigAnswer {
  readonly status: number
  /** The JSON of the body; `undefined` when it is none. */
  readonly body: unknown
}

export interface RigRequest {
  readonly method: "GET" | "POST"
  /** Below the base, with its query. */
  readonly path: string
  readonly body?: unknown
  /** Milliseconds for the whole exchange, connection included; what this program stood still is not counted. */
  readonly limitMs: number
}

export interface RigClient {
  readonly send: (request: RigRequest) => Effect.Effect<RigAnswer, NoAnswer>
  readonly isReachable: () => boolean
}

/** More than any answer of these routes holds; what is longer is no answer of theirs. */
const longestAnswer = 1_048_576

const readBody = (chunks: ReadonlyArray<Buffer>): unknown =>
  Result.getOrUndefined(parseJson(Buffer.concat(chunks).toString("utf8")))

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error ? String(error.code) : ""

const targetOf = (base: URL, path: string): URL => new URL(base.pathname.replace(/\/+$/u, "") + path, base)

export const makeRigClient = (endpoint: EndpointSource): RigClient => {
  const exchange = (request: RigRequest): Effect.Effect<RigAnswer, NoAnswer> =>
    Effect.callback<RigAnswer, NoAnswer>((resume) => {
      const rig = endpoint.current()
      if (rig === undefined) return resume(Effect.fail(new NoAnswer({ reason: "no_rig" })))
      const url = targetOf(rig.base, request.path)
      const text = request.body === undefined ? undefined : JSON.stringify(request.body)
      const secure = url.protocol === "https:"
      const fail = (error: unknown): void =>
        resume(Effect.fail(new NoAnswer({ reason: codeOf(error) === "ECONNREFUSED" ? "refused" : "broken" })))
      const call = (secure ? secureRequest : http.request)(url, {
        method: request.method,
        // A connection of its own: the shared agents may have been told of a proxy.
        agent: false,
        headers: {
          authorization: `Bearer ${rig.token}`,
          accept: "application/json",
          ...(text === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
        }
      })
      call.on("error", fail)
      call.on("response", (response) => {
        const chunks: Array<Buffer> = []
        let size = 0
        response.on("data", (chunk: Buffer) => {
          size += chunk.length
          if (size > longestAnswer) response.destroy()
          else chunks.push(chunk)
        })
        response.on("error", fail)
        response.on("close", () => {
          if (response.complete) resume(Effect.succeed({ status: response.statusCode ?? 0, body: readBody(chunks) }))
          else fail(undefined)
        })
      })
      call.end(text)
      return Effect.sync(() => call.destroy())
    })

  return {
    send: (request) =>
      exchange(request).pipe(
        Effect.raceFirst(
          Effect.andThen(responsiveTime(request.limitMs), Effect.fail(new NoAnswer({ reason: "timeout" })))
        )
      ),
    isReachable: () => endpoint.current() !== undefined
  }
}
