/**
 * The four routes between runners and the rig over HTTP (seat contract 5): decode, call, encode. Both listeners serve them;
 * who may call is the listener's.
 */
import {
  activityPost,
  HookUnconfigured,
  InvalidField,
  permissionSubmit,
  permissionWithdraw,
  readWait,
  type SeatCodec,
  type SeatError,
  seatLimits
} from "@tackroom/protocol/seat"
import { Effect, Result } from "effect"
import type { IncomingMessage } from "node:http"
import type { Asks } from "./Asks.ts"
import type { SeatCaller } from "./Callers.ts"
import { readObject } from "./HttpExchange.ts"
import type { Posts } from "./Posts.ts"

export type SeatRoute =
  | { readonly _tag: "Hooks" }
  | { readonly _tag: "Submit" }
  | { readonly _tag: "Read"; readonly askId: string }
  | { readonly _tag: "Withdraw"; readonly askId: string }

const permissions = "/api/activity/permission-requests"

/** The method that each route takes. */
export const seatMethods = { Hooks: "POST", Submit: "POST", Read: "GET", Withdraw: "POST" } as const

/** An id in a path; one that cannot be decoded names nothing. */
export const decodedPart = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return ""
  }
}

/** The route of a path, whatever the method. */
export const seatRoute = (path: string): SeatRoute | undefined => {
  if (path === "/api/activity/hooks") return { _tag: "Hooks" }
  if (path === permissions) return { _tag: "Submit" }
  const match = /^\/api\/activity\/permission-requests\/([^/]+)(\/withdraw)?$/u.exec(path)
  if (match?.[1] === undefined) return undefined
  const askId = decodedPart(match[1])
  return match[2] === undefined ? { _tag: "Read", askId } : { _tag: "Withdraw", askId }
}

/** A body by its schema; the first bad field is named. */
export const decodeWith = <A>(codec: SeatCodec<A>, json: unknown): Effect.Effect<A, InvalidField> =>
  Effect.suspend(() => {
    const decoded = codec.decode(json)
    if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
    const { path, expected } = decoded.failure[0] ?? { path: "", expected: "another value" }
    return Effect.fail(new InvalidField({ path, expected }))
  })

export interface SeatHttp {
  readonly handle: (
    route: SeatRoute,
    caller: SeatCaller,
    request: IncomingMessage,
    url: URL
  ) => Effect.Effect<unknown, SeatError>
}

export const make = (posts: Posts, asks: Asks): SeatHttp => ({
  handle: (route, caller, request, url) =>
    Effect.gen(function* () {
      switch (route._tag) {
        case "Hooks": {
          const { json } = yield* readObject(request, seatLimits.hookBodyBytes)
          return yield* posts.post(caller, yield* decodeWith(activityPost, json))
        }
        case "Submit": {
          const { json } = yield* readObject(request, seatLimits.permissionBodyBytes)
          return yield* asks.submit(caller, yield* decodeWith(permissionSubmit, json))
        }
        case "Read":
          return yield* asks.read(caller, route.askId, readWait(url.searchParams.get("waitSeconds")))
        case "Withdraw": {
          const { json } = yield* readObject(request, seatLimits.hookBodyBytes)
          const { reason } = yield* decodeWith(permissionWithdraw, json)
          return yield* asks.withdraw(caller, route.askId, reason)
        }
      }
    })
})

/** A permission request that meets a closing store gets no answer, which its runner may try again (5.1). */
export const closesConnection = (route: SeatRoute, error: SeatError): boolean =>
  route._tag !== "Hooks" && error instanceof HookUnconfigured
