/**
 * A loopback server on raw sockets: requests in, answers out, and the ways in which a service fails its callers. It knows no
 * routes.
 */
import { Effect, type Scope } from "effect"
import { createServer, type Socket } from "node:net"
import { type KitFailed, kitFailed } from "../../Check.ts"
import type { Json } from "../../Json.ts"
import { type HttpRequest, requestReader } from "./HttpWire.ts"

/** The way back to whoever made a request. */
export interface Caller {
  readonly answer: (status: number, body: Json) => void
  readonly reset: () => void
  readonly onGone: (tell: () => void) => void
}

export interface HttpServer {
  readonly port: number
  /** Runs something later, unless the server is closed before; the result takes it back. */
  readonly later: (ms: number, run: () => void) => () => void
  /** No connection is taken from now on, and those that stand are cut. */
  readonly disappear: Effect.Effect<void>
}

export interface HttpListener {
  readonly request: (request: HttpRequest, caller: Caller) => void
  /** What came is no HTTP; the connection is closed. */
  readonly bad: (reason: string) => void
}

const reasons: Readonly<Record<number, string>> = { 200: "OK", 401: "Unauthorized", 404: "Not Found", 409: "Conflict" }

const callerOf = (socket: Socket): Caller => ({
  answer: (status, body) => {
    if (socket.destroyed) return
    const text = JSON.stringify(body)
    const head = `HTTP/1.1 ${status} ${reasons[status] ?? "Case"}\r\ncontent-type: application/json\r\n`
    socket.write(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  },
  reset: () => void socket.resetAndDestroy(),
  onGone: (tell) => void socket.once("close", tell)
})

/** A server on a free port of 127.0.0.1. */
export const listen = (listener: HttpListener): Effect.Effect<HttpServer, KitFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: HttpServer; readonly close: () => void }, KitFailed>((resume) => {
      const sockets = new Set<Socket>()
      const timers = new Set<NodeJS.Timeout>()
      const cut = (): void => {
        for (const socket of sockets) socket.resetAndDestroy()
      }

      const net = createServer((socket) => {
        const reader = requestReader()
        const caller = callerOf(socket)
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket))
        socket.on("error", () => undefined)
        socket.on("data", (bytes) => {
          for (const fed of reader.feed(bytes)) {
            if (fed._tag === "Continue") socket.write("HTTP/1.1 100 Continue\r\n\r\n")
            else if (fed._tag === "Request") listener.request(fed.request, caller)
            else {
              listener.bad(fed.reason)
              socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            }
          }
        })
      })
      net.once("error", (cause) => resume(Effect.fail(kitFailed(`no port on loopback: ${cause.message}`))))
      net.listen(0, "127.0.0.1", () => {
        const address = net.address()
        const server: HttpServer = {
          port: typeof address === "object" && address !== null ? address.port : 0,
          later: (ms, run) => {
            const timer = setTimeout(() => {
              timers.delete(timer)
              run()
            }, ms)
            timers.add(timer)
            return () => {
              clearTimeout(timer)
              timers.delete(timer)
            }
          },
          disappear: Effect.callback((done) => {
            net.close(() => done(Effect.void))
            cut()
          })
        }
        const close = (): void => {
          net.close()
          for (const timer of timers) clearTimeout(timer)
          cut()
        }
        resume(Effect.succeed({ server, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ server }) => server))
