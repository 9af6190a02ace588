/**
 * One request and its answer over Node's HTTP: bodies with a bound in size and time, JSON in and out, tokens in two
 * headers. The edge between callbacks and effects; it knows no route.
 */
import {
  BodyTimeout,
  BodyTooLarge,
  InternalFault,
  InvalidJson,
  isSeatError,
  type SeatError,
  seatErrorBody,
  seatErrorStatus,
  seatLimits,
  tokenHeader
} from "@tackroom/protocol/seat"
import { decodeUtf8, parseJson } from "@tackroom/protocol/text"
import { Effect, Result } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"

const headers = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff"
} as const

/** The token of a request: `Authorization: Bearer`, else the header of the contract. */
export const tokenOf = (request: IncomingMessage): string | undefined => {
  const match = /^Bearer +(\S+)$/iu.exec(request.headers.authorization ?? "")
  if (match?.[1] !== undefined) return match[1]
  const other = request.headers[tokenHeader]
  return typeof other === "string" && other !== "" ? other : undefined
}

/** The bytes of a body, which has to arrive within ten seconds of its headers. */
const readBytes = (request: IncomingMessage, limit: number): Effect.Effect<Buffer, BodyTooLarge | BodyTimeout> =>
  Effect.callback<Buffer, BodyTooLarge | BodyTimeout>((resume) => {
    const announced = Number(request.headers["content-length"] ?? 0)
    if (announced > limit) {
      resume(Effect.fail(new BodyTooLarge({ limit })))
      return undefined
    }
    const chunks: Array<Buffer> = []
    let bytes = 0
    const leave = (): void => {
      clearTimeout(timer)
      request.off("data", take)
      request.off("end", end)
      request.off("close", gone)
    }
    const done = (result: Effect.Effect<Buffer, BodyTooLarge | BodyTimeout>): void => {
      leave()
      request.pause()
      resume(result)
    }
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > limit) done(Effect.fail(new BodyTooLarge({ limit })))
      else chunks.push(chunk)
    }
    const end = (): void => {
      leave()
      resume(Effect.succeed(Buffer.concat(chunks)))
    }
    // A client that left gets no answer; this only ends the wait.
    const gone = (): void => done(Effect.fail(new BodyTimeout({})))
    const timer = setTimeout(() => done(Effect.fail(new BodyTimeout({}))), seatLimits.bodyArrivalMs)
    request.on("data", take)
    request.on("end", end)
    request.on("close", gone)
    return Effect.sync(leave)
  })

/** The body as a JSON object. Without a body it is an empty object where `mayBeEmpty`. */
export const readObject = (
  request: IncomingMessage,
  limit: number,
  mayBeEmpty = false
): Effect.Effect<{ readonly json: Readonly<Record<string, unknown>>; readonly text: string }, SeatError> =>
  Effect.flatMap(readBytes(request, limit), (bytes) => {
    const text = decodeUtf8(bytes)
    if (text === "" && mayBeEmpty) return Effect.succeed({ json: {}, text })
    const parsed = text === undefined ? undefined : Result.getOrUndefined(parseJson(text))
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? Effect.succeed({ json: parsed as Readonly<Record<string, unknown>>, text: text ?? "" })
      : Effect.fail(new InvalidJson({}))
  })

/** Answers with JSON text. A body that was not read closes the connection with the answer. */
export const sendText = (request: IncomingMessage, response: ServerResponse, status: number, text: string): void => {
  if (response.headersSent || response.destroyed) return
  const unread = !request.complete
  response.writeHead(status, {
    ...headers,
    "content-length": Buffer.byteLength(text),
    ...(unread ? { connection: "close" } : {})
  })
  response.end(text)
  if (!unread) return
  // What is still arriving is taken and thrown away for a moment, so that the client sees the answer and no reset.
  request.resume()
  setTimeout(() => request.destroy(), 1_000).unref()
}

export const sendJson = (request: IncomingMessage, response: ServerResponse, status: number, body: unknown): void =>
  sendText(request, response, status, JSON.stringify(body))

export const sendError = (request: IncomingMessage, response: ServerResponse, error: SeatError): void => {
  const known = isSeatError(error) ? error : new InternalFault({})
  sendJson(request, response, seatErrorStatus[known.code], seatErrorBody(known))
}
