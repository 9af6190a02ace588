/**
 * The main and the guest listener (seat contract 5.6, 9.1, 9.7): which request is let in, which route it takes, and how its
 * answer leaves. The main one is loopback only and refuses foreign hosts and origins; the guest one knows the four routes
 * of runners and grants, and nothing else.
 */
import {
  BadHost,
  BadOrigin,
  HookUnauthorized,
  IdempotencyConflict,
  idempotencyHeader,
  InternalFault,
  InvalidField,
  isSeatError,
  MethodNotAllowed,
  OperatorUnauthorized,
  RateLimited,
  rigBase,
  RigInvalid,
  type RigRouteName,
  rigRouteNames,
  rigRoutes,
  RouteNotFound,
  type SeatCodec,
  seatCodec,
  type SeatError,
  seatErrorBody,
  seatErrorStatus,
  seatLimits,
  TextTooLarge,
  TooLong
} from "@tackroom/protocol/seat"
import { codePoints } from "@tackroom/protocol/text"
import { Cause, Effect, Exit, FiberSet, type Scope } from "effect"
import * as http from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { RigCaller, SeatCaller } from "./Callers.ts"
import type { FeedStreams } from "./FeedStreams.ts"
import { readObject, sendError, sendText, tokenOf } from "./HttpExchange.ts"
import * as Minting from "./Minting.ts"
import * as RateBucket from "./RateBucket.ts"
import { notForPeople, personMay, type RigCall, type RigHandlers } from "./RigApi.ts"
import type { RigStore } from "./RigStore.ts"
import {
  closesConnection,
  decodedPart,
  decodeWith,
  type SeatHttp,
  seatMethods,
  type SeatRoute,
  seatRoute
} from "./SeatHttp.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import { StartRefused, type StartReason } from "./StartRefused.ts"

export interface RigHttpConfig {
  readonly store: RigStore
  readonly seats: SeatHttp
  readonly api: RigHandlers
  readonly feed: FeedStreams
  readonly hookToken: string
  readonly operatorToken: string
  readonly log: ServiceLog
}

export interface Listener {
  readonly host: string
  readonly port: number
}

interface Compiled {
  readonly name: RigRouteName
  readonly method: string
  readonly pattern: RegExp
  readonly params: ReadonlyArray<string>
  readonly query: SeatCodec<unknown>
  readonly body: SeatCodec<unknown>
  readonly result: SeatCodec<unknown>
}

const compiled: ReadonlyArray<Compiled> = rigRouteNames.map((name) => {
  const { method, path, query, body, result } = rigRoutes[name]
  const params = [...path.matchAll(/:([a-z]+)/gu)].map((match) => match[1] ?? "")
  return {
    name,
    method,
    params,
    pattern: new RegExp(`^${rigBase}${path.replaceAll(/:[a-z]+/gu, "([^/]+)")}$`, "u"),
    query: seatCodec(query) as SeatCodec<unknown>,
    body: seatCodec(body) as SeatCodec<unknown>,
    result: seatCodec(result) as SeatCodec<unknown>
  }
})

interface Matched {
  readonly route: Compiled
  readonly params: Readonly<Record<string, string>>
}

/** The routes of a path; a fixed path is found before one with a parameter. */
const matching = (path: string): ReadonlyArray<Matched> =>
  compiled
    .flatMap((route) => {
      const match = route.pattern.exec(path)
      return match === null
        ? []
        : [
            {
              route,
              params: Object.fromEntries(route.params.map((name, at) => [name, decodedPart(match[at + 1] ?? "")]))
            }
          ]
    })
    .toSorted((left, right) => left.route.params.length - right.route.params.length)

/** Texts that people write have an error of their own when they are too long; nothing is recorded then. */
const tooLong = (name: RigRouteName, json: Readonly<Record<string, unknown>>): TooLong | TextTooLarge | undefined => {
  const fields = name === "sendSeat" ? ["reason"] : ["text", "note", "reason"]
  for (const path of fields) {
    const value = json[path]
    if (typeof value === "string" && codePoints(value) > seatLimits.textCharacters) {
      return new TooLong({ path, max: seatLimits.textCharacters })
    }
  }
  return undefined
}

const loopbackNames = ["127.0.0.1", "localhost", "[::1]"]

export const make = (config: RigHttpConfig) =>
  Effect.gen(function* () {
    const { store, seats, api, feed, log } = config
    const run = yield* FiberSet.makeRuntime<never>()
    const keys = new Map<string, Promise<void>>()

    const fault = (cause: Cause.Cause<unknown>): SeatError => {
      log.write("error", "a request met a fault", { cause: Cause.pretty(cause).split("\n").slice(0, 4).join(" ") })
      return new InternalFault({})
    }

    /** Runs a handler and answers with what came of it. */
    const answer = (
      request: http.IncomingMessage,
      response: http.ServerResponse,
      handler: Effect.Effect<{ readonly status: number; readonly text: string }, SeatError>,
      options: { readonly interruptible: boolean; readonly closes?: (error: SeatError) => boolean }
    ): void => {
      const fiber = run(
        Effect.exit(handler).pipe(
          Effect.map((exit) => {
            if (Exit.isSuccess(exit)) {
              sendText(request, response, exit.value.status, exit.value.text)
              return
            }
            const reason = exit.cause.reasons[0]
            const error =
              reason?._tag === "Fail" && isSeatError(reason.error)
                ? reason.error
                : reason?._tag === "Interrupt"
                  ? undefined
                  : fault(exit.cause)
            if (error === undefined || options.closes?.(error) === true) response.destroy()
            else sendError(request, response, error)
          })
        )
      )
      // Only a wait ends with its client; what changes something goes on.
      if (options.interruptible) response.on("close", () => fiber.interruptUnsafe())
    }

    const json = (status: number, body: unknown) => ({ status, text: JSON.stringify(body) })

    const seatRequest = (
      request: http.IncomingMessage,
      response: http.ServerResponse,
      route: SeatRoute,
      caller: SeatCaller,
      url: URL
    ): void =>
      answer(
        request,
        response,
        Effect.map(seats.handle(route, caller, request, url), (body) => json(200, body)),
        { interruptible: route._tag === "Read", closes: (error) => closesConnection(route, error) }
      )

    /** Whom a token speaks for on the main listener's four routes. */
    const seatCaller = (token: string | undefined, local: boolean): SeatCaller | undefined => {
      if (token === undefined) return undefined
      if (local && Minting.sameToken(token, config.hookToken)) return { _tag: "Local" }
      const hash = Minting.hashOf(token)
      return store.seats.grant(hash) === undefined ? undefined : { _tag: "Grant", hash }
    }

    const rigCaller = (token: string | undefined): RigCaller | undefined => {
      if (token === undefined) return undefined
      if (Minting.sameToken(token, config.operatorToken)) return { _tag: "Operator" }
      const id = store.asks.personOfToken(Minting.hashOf(token))
      return id === undefined ? undefined : { _tag: "Person", id }
    }

    const callHandler = (matched: Matched, caller: RigCaller, request: http.IncomingMessage, url: URL) =>
      Effect.gen(function* () {
        const { route, params } = matched
        const { name } = route
        if (caller._tag === "Person" && route.method !== "GET" && !personMay.has(name)) return yield* notForPeople()
        const query = yield* decodeWith(route.query, Object.fromEntries(url.searchParams))
        const { json: raw, text } =
          route.method === "GET" ? { json: {}, text: "" } : yield* readObject(request, seatLimits.rigBodyBytes, true)
        const long = tooLong(name, raw)
        if (long !== undefined) return yield* long
        const body = yield* Effect.mapError(decodeWith(route.body, raw), (error) =>
          name === "createRig" && error instanceof InvalidField
            ? new RigInvalid({
                path: error.path,
                ...(error.expected === undefined ? {} : { expected: error.expected })
              })
            : error
        )
        // The table types each handler's call; here it is one of them, decoded by its own schemas.
        const handler = api[name] as (call: RigCall<RigRouteName>) => Effect.Effect<object, SeatError>
        const perform = Effect.map(handler({ caller, params, query, body, raw } as RigCall<RigRouteName>), (result) =>
          json(200, { ok: true, ...(route.result.encode(result) as object) })
        )
        const key = request.headers[idempotencyHeader]
        return route.method === "GET" || typeof key !== "string"
          ? yield* perform
          : yield* once(caller, key, `${request.method ?? ""} ${url.pathname} ${Minting.hashOf(text)}`, perform)
      })

    /** A writing call under a key happens once; its repetition gets the same answer (9.7). */
    const once = (
      caller: RigCaller,
      key: string,
      request: string,
      perform: Effect.Effect<{ readonly status: number; readonly text: string }, SeatError>
    ): Effect.Effect<{ readonly status: number; readonly text: string }, SeatError> =>
      Effect.gen(function* () {
        const who = caller._tag === "Operator" ? "operator" : caller.id
        const slot = `${who} ${key}`
        while (keys.has(slot)) yield* Effect.promise(() => keys.get(slot) ?? Promise.resolve())
        const known = store.logs.reply(who, key)
        if (known !== undefined) {
          if (known.request !== request) return yield* new IdempotencyConflict({})
          // Begun, and not by this process: a kill came between the call and its answer.
          if (known.status === 0) return yield* new IdempotencyConflict({ interrupted: true })
          return { status: known.status, text: known.answer }
        }
        let release = (): void => undefined
        keys.set(slot, new Promise((resolve) => (release = resolve)))
        const keep = (status: number, text: string) => store.write((tx) => tx.logs.endReply(who, key, status, text))
        return yield* store
          .write((tx) => tx.logs.beginReply(who, key, request, tx.wall))
          .pipe(
            Effect.andThen(perform),
            Effect.tap(({ status, text }) => keep(status, text)),
            // A refusal is an answer too; a fault is not, and may be tried again.
            Effect.tapError((error) =>
              seatErrorStatus[error.code] < 500
                ? keep(seatErrorStatus[error.code], JSON.stringify(seatErrorBody(error)))
                : store.write((tx) => tx.logs.dropReply(who, key))
            ),
            Effect.ensuring(
              Effect.sync(() => {
                keys.delete(slot)
                release()
              })
            )
          )
      })

    const mainRequest =
      (listener: () => Listener) =>
      (request: http.IncomingMessage, response: http.ServerResponse): void => {
        const { host: own, port } = listener()
        const hosts = [...loopbackNames, own].map((name) => `${name}:${port}`)
        const host = request.headers.host ?? ""
        if (!hosts.includes(host)) {
          sendError(request, response, new BadHost({}))
          return
        }
        const { origin } = request.headers
        if (origin !== undefined && !hosts.some((name) => origin === `http://${name}`)) {
          sendError(request, response, new BadOrigin({}))
          return
        }
        const url = URL.parse(request.url ?? "/", `http://${host}`)
        if (url === null) {
          sendError(request, response, new RouteNotFound({}))
          return
        }
        const route = seatRoute(url.pathname)
        if (route !== undefined) {
          if (request.method !== seatMethods[route._tag]) {
            sendError(request, response, new MethodNotAllowed({}))
            return
          }
          const caller = seatCaller(tokenOf(request), true)
          if (caller === undefined) sendError(request, response, new HookUnauthorized({}))
          else seatRequest(request, response, route, caller, url)
          return
        }
        const caller = rigCaller(tokenOf(request))
        if (caller === undefined) {
          sendError(request, response, new OperatorUnauthorized({}))
          return
        }
        if (url.pathname === `${rigBase}/feed`) {
          if (request.method !== "GET") {
            sendError(request, response, new MethodNotAllowed({}))
            return
          }
          const last = request.headers["last-event-id"]
          feed.open(
            {
              cursor: typeof last === "string" ? last : (url.searchParams.get("after") ?? undefined),
              journalId: url.searchParams.get("journalId") ?? undefined,
              onReset: url.searchParams.get("onReset") ?? undefined
            },
            response
          )
          return
        }
        const found = matching(url.pathname)
        const matched = found.find(({ route: { method } }) => method === request.method)
        if (matched === undefined) {
          sendError(request, response, found.length === 0 ? new RouteNotFound({}) : new MethodNotAllowed({}))
          return
        }
        answer(request, response, callHandler(matched, caller, request, url), { interruptible: false })
      }

    const buckets = new Map<string, RateBucket.RateBucket>()
    const rate = { perSecond: seatLimits.guestPostsPerSecond, burst: seatLimits.guestPostBurst }

    const withinRate = (hash: string): boolean => {
      const { bucket, taken } = RateBucket.take(buckets.get(hash), store.clock.steady(), rate)
      buckets.set(hash, bucket)
      return taken
    }

    /** Connections beyond the limit of their listener. */
    const crowded = new WeakSet<Socket>()
    /** Connections on which a grant speaks now. */
    const speaking = new WeakSet<Socket>()

    const guestRequest = (request: http.IncomingMessage, response: http.ServerResponse): void => {
      if (crowded.has(request.socket)) {
        const text = JSON.stringify({ ok: false, code: "activity_hook_unconfigured" })
        sendText(request, response, 503, text)
        request.socket.destroySoon()
        return
      }
      const url = URL.parse(request.url ?? "/", "http://guest")
      const route = url === null ? undefined : seatRoute(url.pathname)
      if (url === null || route === undefined || request.method !== seatMethods[route._tag]) {
        sendText(request, response, 404, JSON.stringify({ ok: false, code: "not_found" }))
        return
      }
      const caller = seatCaller(tokenOf(request), false)
      if (caller?._tag !== "Grant") {
        sendError(request, response, new HookUnauthorized({}))
        return
      }
      const { socket } = request
      speaking.add(socket)
      response.once("close", () => speaking.delete(socket))
      if (route._tag === "Hooks" && !withinRate(caller.hash)) {
        sendError(request, response, new RateLimited({}))
        return
      }
      seatRequest(request, response, route, caller, url)
    }

    const listen = (
      host: string,
      port: number,
      handler: (listener: () => Listener) => (request: http.IncomingMessage, response: http.ServerResponse) => void,
      refused: StartReason,
      most?: number
    ): Effect.Effect<Listener, StartRefused, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.callback<{ readonly server: http.Server; readonly listener: Listener }, StartRefused>((resume) => {
          let bound: Listener = { host, port }
          const server = http.createServer(
            {
              maxHeaderSize: seatLimits.headerBytes,
              headersTimeout: seatLimits.bodyArrivalMs,
              // Bodies have a bound of their own, with an answer.
              requestTimeout: 0,
              keepAliveTimeout: 30_000
            },
            handler(() => bound)
          )
          if (most !== undefined) {
            const open = new Set<Socket>()
            server.on("connection", (socket: Socket) => {
              if (open.size >= most) {
                // Who only holds a connection makes room: nobody is kept from being asked by open sockets alone.
                const silent = [...open].find((one) => !speaking.has(one))
                if (silent === undefined) crowded.add(socket)
                else {
                  open.delete(silent)
                  silent.destroy()
                }
              }
              open.add(socket)
              socket.once("close", () => open.delete(socket))
            })
          }
          server.once("error", (error) =>
            resume(Effect.fail(new StartRefused({ reason: refused, detail: `${host}:${port}: ${error.message}` })))
          )
          server.listen(port, host, () => {
            bound = { host, port: (server.address() as AddressInfo).port }
            resume(Effect.succeed({ server, listener: bound }))
          })
        }),
        ({ server }) =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeIdleConnections()
            // Waiting reads are answered by now; who still holds a connection loses it.
            setTimeout(() => server.closeAllConnections(), 500).unref()
          })
      ).pipe(Effect.map(({ listener }) => listener))

    return {
      main: (host: string, port: number) => listen(host, port, mainRequest, "bind_failed"),
      guest: (host: string, port: number) =>
        listen(host, port, () => guestRequest, "guest_bind_failed", seatLimits.guestConnections)
    }
  })
