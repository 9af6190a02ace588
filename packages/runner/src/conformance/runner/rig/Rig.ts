/**
 * The rig service as a runner meets it: four routes on loopback, every request kept with its time.
 *
 * By itself it is a good rig with a patient person: posts are taken, a submitted request becomes an ask, a read waits. A case
 * says otherwise beforehand, for all posts or for the next requests, and settles asks when it likes.
 */
import { Effect, type Scope } from "effect"
import type { KitFailed } from "../../Check.ts"
import { type Json, type JsonObject, parseObject } from "../../Json.ts"
import type { SeatTimeline } from "../Seen.ts"
import { type Ask, makeAsk } from "./Asks.ts"
import { type Caller, type HttpServer, listen } from "./HttpServer.ts"
import type { HttpRequest } from "./HttpWire.ts"

/** How a request is answered. */
export type Reply =
  | { readonly _tag: "Answer"; readonly status: number; readonly body: Json; readonly afterMs: number }
  | { readonly _tag: "Silence" }
  | { readonly _tag: "Reset" }

export const answer = (status: number, body: Json, afterMs = 0): Reply => ({ _tag: "Answer", status, body, afterMs })
export const refusal = (status: number, code: string): Reply =>
  answer(status, { ok: false, code, error: `case: ${code}` })
export const silence: Reply = { _tag: "Silence" }
export const reset: Reply = { _tag: "Reset" }

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

const permissions = /^\/api\/activity\/permission-requests(?:\/([^/?]+)(\/withdraw)?)?(?:\?(.*))?$/u

const good: JsonObject = {
  ok: true,
  activity: { state: "running", reason: "case", evidenceSource: "runtime_hook", fallback: false, stale: false },
  tackroom: { counted: true, why: "counted" }
}

const withdrawReasons: ReadonlySet<string> = new Set(["turn_cancelled", "turn_ended", "exited"])

const clip = (text: string): string => (text.length > 6_000 ? `${text.slice(0, 6_000)}…` : text)

const authorizationOf = ({ headers }: HttpRequest): string | undefined => {
  const token = headers.get("x-openrig-activity-token")
  return headers.get("authorization") ?? (token === undefined ? undefined : `Bearer ${token}`)
}

/** A rig on a free port of 127.0.0.1. A wrong token is refused as the contract says. */
export const make = Effect.fn("Rig.make")(function* (
  timeline: SeatTimeline,
  token: string
): Effect.fn.Return<Rig, KitFailed, Scope.Scope> {
  const asks: Array<Ask> = []
  let postsInFlight = 0

  const give = (caller: Caller, reply: Reply, given: () => void = () => undefined): void => {
    if (reply._tag === "Silence") return
    if (reply._tag === "Reset") {
      given()
      return caller.reset()
    }
    server.later(reply.afterMs, () => {
      given()
      caller.answer(reply.status, reply.body)
    })
  }

  const post = (body: JsonObject, text: string, authorization: string, caller: Caller): void => {
    postsInFlight += 1
    // Settled before anybody sees the post: who sees it may ask for another reply to the next one.
    const reply = rig.onPost(body)
    timeline.add({ kind: "post", what: "post", text: clip(text), body, authorization, inFlight: postsInFlight })
    let open = true
    const given = (): void => {
      if (open) postsInFlight -= 1
      open = false
    }
    caller.onGone(given)
    give(caller, reply, given)
  }

  const submit = (body: JsonObject, text: string, authorization: string, caller: Caller): void => {
    const reply = rig.onSubmit(body)
    const ask = reply === undefined ? makeAsk(`ask_${asks.length + 1}${token.slice(-6)}`, body) : undefined
    if (ask !== undefined) asks.push(ask)
    const askId = ask?.askId
    timeline.add({ kind: "request", what: "submit", text: `submit ${clip(text)}`, body, authorization, askId })
    give(caller, reply ?? answer(200, { ok: true, askId: askId ?? "", created: true }))
  }

  const withdraw = (askId: string, text: string, caller: Caller): void => {
    const reason = parseObject(text)?.["reason"]
    timeline.add({ kind: "request", what: "withdraw", text: `withdraw ${askId} ${clip(text)}`, askId, reason })
    const ask = asks.find((one) => one.askId === askId)
    if (ask === undefined) return caller.answer(404, { ok: false, code: "ask_not_found" })
    if (typeof reason !== "string" || !withdrawReasons.has(reason)) {
      return caller.answer(400, { ok: false, code: "invalid_field", path: "reason" })
    }
    rig.onWithdraw(ask)
    const { state } = ask.state()
    caller.answer(200, { ok: true, askId, state: state === "pending" ? "withdrawn" : state })
    if (state === "pending") ask.settle({ state: "withdrawn", reason })
  }

  const read = (askId: string, query: string, target: string, caller: Caller): void => {
    const given = new URLSearchParams(query).get("waitSeconds")
    const waitSeconds = given === null || !/^\d+$/u.test(given) ? undefined : Number(given)
    timeline.add({ kind: "request", what: "read", text: `read ${target}`, askId, waitSeconds })
    const reply = rig.onRead(askId)
    if (reply !== undefined) return give(caller, reply)
    const ask = asks.find((one) => one.askId === askId)
    if (ask === undefined) return caller.answer(404, { ok: false, code: "ask_not_found" })
    const tell = (): void => caller.answer(200, { ok: true, askId, ...ask.state() })
    if (ask.state().state !== "pending" || waitSeconds === undefined || waitSeconds === 0) return tell()
    const forget = ask.onSettled(() => {
      stopWaiting()
      tell()
    })
    const stopWaiting = server.later(Math.min(waitSeconds, 25) * 1_000, () => {
      forget()
      tell()
    })
  }

  const serve = (request: HttpRequest, caller: Caller): void => {
    const { body: bytes, headers, method, target } = request
    const authorization = authorizationOf(request)
    const text = bytes.toString("utf8")
    const stray = (why: string, status: number, code: string): void => {
      timeline.add({ kind: "request", what: "stray", text: `${method} ${target}: ${why}` })
      caller.answer(status, { ok: false, code })
    }
    if (authorization !== `Bearer ${token}`) {
      return stray(`authorization ${authorization ?? "missing"}`, 401, "activity_hook_unauthorized")
    }
    const route = permissions.exec(target)
    const hook = target === "/api/activity/hooks"
    if (route === null && !hook) return stray("no such route", 404, "not_found")
    const [, askId, withdrawing, query = ""] = route ?? []
    if (method !== (askId === undefined || withdrawing !== undefined ? "POST" : "GET")) {
      return stray("another method", 405, "method_not_allowed")
    }
    if (askId !== undefined) {
      return withdrawing === undefined ? read(askId, query, target, caller) : withdraw(askId, text, caller)
    }
    const isJson = /^application\/json\b/iu.test(headers.get("content-type") ?? "")
    const body = isJson ? parseObject(text) : undefined
    if (body === undefined) return stray(`no JSON object: ${clip(text)}`, 400, "invalid_json")
    return hook ? post(body, text, authorization, caller) : submit(body, text, authorization, caller)
  }

  const server: HttpServer = yield* listen({
    request: serve,
    bad: (reason) => void timeline.add({ kind: "request", what: "stray", text: `not HTTP: ${reason}` })
  })
  const rig: Rig = {
    port: server.port,
    url: `http://127.0.0.1:${server.port}`,
    onPost: () => answer(200, good),
    onSubmit: () => undefined,
    onRead: () => undefined,
    onWithdraw: () => undefined,
    asks,
    disappear: server.disappear
  }
  return rig
})
