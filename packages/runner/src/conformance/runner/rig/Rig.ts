/**
 * The rig service as a runner meets it: four routes on loopback, every request kept with its time.
 *
 * By itself it is a good rig with a patient person: posts are taken, a submitted request becomes an ask, a read waits. A case
 * says otherwise beforehand, for all posts or for the next requests, and settles asks when it likes. It answers on raw sockets,
 * so that it can also be silent, slow, rude or gone.
 */
import { Effect, type Scope } from "effect"
import { createServer, type Server, type Socket } from "node:net"
import { idText, type Json, type JsonObject, parseObject } from "../Json.ts"
import type { SeatTimeline } from "../Seen.ts"
import { type HttpRequest, requestReader } from "./HttpWire.ts"
import { type KitFailed, kitFailed } from "../../Check.ts"

/** How a request is answered. */
export type Reply =
  | { readonly _tag: "Answer"; readonly status: number; readonly body: Json; readonly afterMs?: number }
  | { readonly _tag: "Silence" }
  | { readonly _tag: "Reset" }

export const answer = (status: number, body: Json, afterMs = 0): Reply => ({ _tag: "Answer", status, body, afterMs })
export const refusal = (status: number, code: string): Reply =>
  answer(status, { ok: false, code, error: `case: ${code}` })
export const silence: Reply = { _tag: "Silence" }
export const reset: Reply = { _tag: "Reset" }

/** How an ask stands. */
export type AskState =
  | { readonly state: "pending" }
  | { readonly state: "answered" | "permitted"; readonly optionId: string; readonly said?: string }
  | { readonly state: "refused" | "withdrawn"; readonly reason: string; readonly said?: string }
  | { readonly state: "stale" }

export interface Ask {
  readonly askId: string
  readonly requestId: string
  readonly turnId: string
  readonly state: () => AskState
  /** Settles it, and answers the reads that wait. */
  readonly settle: (state: AskState) => void
}

export interface Rig {
  readonly port: number
  readonly url: string
  /** The answer to each post from now on. */
  onPost: (body: JsonObject) => Reply
  /** The answer to each submit from now on; undefined makes an ask. */
  onSubmit: (body: JsonObject) => Reply | undefined
  /** The answer to each read from now on; undefined reads the ask. */
  onRead: (askId: string) => Reply | undefined
  /** Something that happens in the moment in which a withdraw arrives, before it takes effect. */
  onWithdraw: (ask: Ask) => void
  readonly asks: ReadonlyArray<Ask>
  /** No connection is taken from now on, and those that stand are cut. */
  readonly disappear: Effect.Effect<void>
}

const reasons: Readonly<Record<number, string>> = { 200: "OK", 401: "Unauthorized", 404: "Not Found", 409: "Conflict" }

const permissions = /^\/api\/activity\/permission-requests(?:\/([^/?]+)(\/withdraw)?)?(?:\?(.*))?$/u

const good: JsonObject = {
  ok: true,
  activity: { state: "running", reason: "case", evidenceSource: "runtime_hook", fallback: false, stale: false },
  tackroom: { counted: true, why: "counted" }
}

const clip = (text: string): string => (text.length > 6_000 ? `${text.slice(0, 6_000)}…` : text)

/** A rig on a free port of 127.0.0.1. A wrong token is refused as the contract says. */
export const make = (timeline: SeatTimeline, token: string): Effect.Effect<Rig, KitFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly rig: Rig; readonly close: () => void }, KitFailed>((resume) => {
      const sockets = new Set<Socket>()
      const asks: Array<Ask> = []
      const timers = new Set<NodeJS.Timeout>()
      let postsInFlight = 0

      const later = (ms: number, run: () => void): NodeJS.Timeout => {
        const timer = setTimeout(() => {
          timers.delete(timer)
          run()
        }, ms)
        timers.add(timer)
        return timer
      }

      const write = (socket: Socket, status: number, body: Json): void => {
        if (socket.destroyed) return
        const text = JSON.stringify(body)
        const head = `HTTP/1.1 ${status} ${reasons[status] ?? "Case"}\r\ncontent-type: application/json\r\n`
        socket.write(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
      }

      const give = (socket: Socket, reply: Reply, done: () => void): void => {
        if (reply._tag === "Silence") return
        if (reply._tag === "Reset") {
          done()
          socket.resetAndDestroy()
          return
        }
        later(reply.afterMs ?? 0, () => {
          done()
          write(socket, reply.status, reply.body)
        })
      }
      const nothing = (): void => undefined

      const makeAsk = (body: JsonObject): { readonly ask: Ask; readonly waiting: Set<() => void> } => {
        let state: AskState = { state: "pending" }
        const waiting = new Set<() => void>()
        const ask: Ask = {
          askId: `ask_${asks.length + 1}${token.slice(-6)}`,
          requestId: idText(body["requestId"]) ?? "",
          turnId: idText(body["turnId"]) ?? "",
          state: () => state,
          settle: (next) => {
            state = next
            for (const look of Array.from(waiting)) look()
          }
        }
        asks.push(ask)
        waiters.set(ask.askId, waiting)
        return { ask, waiting }
      }
      const waiters = new Map<string, Set<() => void>>()

      const readAsk = (socket: Socket, ask: Ask, waitSeconds: number): void => {
        const reply = (): void => write(socket, 200, { ok: true, askId: ask.askId, ...ask.state() })
        if (ask.state().state !== "pending" || waitSeconds <= 0) return reply()
        const waiting = waiters.get(ask.askId) ?? new Set()
        const look = (): void => {
          waiting.delete(look)
          clearTimeout(timer)
          timers.delete(timer)
          reply()
        }
        const timer = later(Math.min(waitSeconds, 25) * 1_000, look)
        waiting.add(look)
      }

      const serve = (socket: Socket, request: HttpRequest): void => {
        const authorization =
          request.headers.get("authorization") ??
          (request.headers.has("x-openrig-activity-token")
            ? `Bearer ${request.headers.get("x-openrig-activity-token")}`
            : undefined)
        const text = request.body.toString("utf8")
        const stray = (why: string, status: number, code: string): void => {
          timeline.add({ kind: "request", what: "stray", text: `${request.method} ${request.target}: ${why}` })
          write(socket, status, { ok: false, code })
        }
        const bodyOf = (): JsonObject | undefined => {
          if (!/^application\/json\b/iu.test(request.headers.get("content-type") ?? "")) return undefined
          return parseObject(text)
        }
        if (authorization !== `Bearer ${token}`) {
          return stray(`authorization ${authorization ?? "missing"}`, 401, "activity_hook_unauthorized")
        }
        if (request.target === "/api/activity/hooks") {
          const body = bodyOf()
          if (request.method !== "POST") return stray("method", 405, "method_not_allowed")
          if (body === undefined) return stray(`no JSON object: ${clip(text)}`, 400, "invalid_json")
          postsInFlight += 1
          const inFlight = postsInFlight
          timeline.add({ kind: "post", what: "post", text: clip(text), body, authorization, inFlight })
          let open = true
          const done = (): void => {
            if (open) postsInFlight -= 1
            open = false
          }
          socket.once("close", done)
          return give(socket, rig.onPost(body), done)
        }
        const route = permissions.exec(request.target)
        if (route === null) return stray("no such route", 404, "not_found")
        const [, askId, withdraw, query] = route
        if (askId === undefined) {
          const body = bodyOf()
          if (request.method !== "POST") return stray("method", 405, "method_not_allowed")
          if (body === undefined) return stray(`no JSON object: ${clip(text)}`, 400, "invalid_json")
          const reply = rig.onSubmit(body)
          const ask = reply === undefined ? makeAsk(body).ask : undefined
          timeline.add({
            kind: "request",
            what: "submit",
            text: `submit ${clip(text)}`,
            body,
            authorization,
            askId: ask?.askId
          })
          return give(socket, reply ?? answer(200, { ok: true, askId: ask?.askId ?? "", created: true }), nothing)
        }
        const ask = asks.find((one) => one.askId === decodeURIComponent(askId))
        if (withdraw !== undefined) {
          const reason = (parseObject(text) ?? {})["reason"]
          if (request.method !== "POST") return stray("method", 405, "method_not_allowed")
          timeline.add({ kind: "request", what: "withdraw", text: `withdraw ${askId} ${clip(text)}`, askId, reason })
          if (ask === undefined) return write(socket, 404, { ok: false, code: "ask_not_found" })
          if (!["turn_cancelled", "turn_ended", "exited"].some((one) => one === reason)) {
            return write(socket, 400, { ok: false, code: "invalid_field", path: "reason" })
          }
          rig.onWithdraw(ask)
          write(socket, 200, {
            ok: true,
            askId,
            state: ask.state().state === "pending" ? "withdrawn" : ask.state().state
          })
          if (ask.state().state === "pending") ask.settle({ state: "withdrawn", reason: String(reason) })
          return
        }
        if (request.method !== "GET") return stray("method", 405, "method_not_allowed")
        const given = new URLSearchParams(query ?? "").get("waitSeconds")
        const waitSeconds = given === null || !/^\d+$/u.test(given) ? undefined : Number(given)
        timeline.add({ kind: "request", what: "read", text: `read ${request.target}`, askId, waitSeconds })
        const reply = rig.onRead(askId)
        if (reply !== undefined) return give(socket, reply, nothing)
        if (ask === undefined) return write(socket, 404, { ok: false, code: "ask_not_found" })
        return readAsk(socket, ask, waitSeconds ?? 0)
      }

      const server: Server = createServer((socket) => {
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket))
        socket.on("error", nothing)
        const reader = requestReader()
        socket.on("data", (bytes) => {
          for (const fed of reader.feed(bytes)) {
            if (fed._tag === "Continue") socket.write("HTTP/1.1 100 Continue\r\n\r\n")
            else if (fed._tag === "Request") serve(socket, fed.request)
            else {
              timeline.add({ kind: "request", what: "stray", text: `not HTTP: ${fed.reason}` })
              socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            }
          }
        })
      })
      const close = (): void => {
        server.close()
        for (const timer of timers) clearTimeout(timer)
        for (const socket of sockets) socket.resetAndDestroy()
      }
      let rig: Rig
      server.once("error", (cause) => resume(Effect.fail(kitFailed(`no port on loopback: ${cause.message}`))))
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        rig = {
          port,
          url: `http://127.0.0.1:${port}`,
          onPost: () => answer(200, good),
          onSubmit: () => undefined,
          onRead: () => undefined,
          onWithdraw: nothing,
          asks,
          disappear: Effect.callback((done) => {
            server.close(() => done(Effect.void))
            for (const socket of sockets) socket.resetAndDestroy()
          })
        }
        resume(Effect.succeed({ rig, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ rig }) => rig))
