/**
 * What the face needs to know of a request before it takes effect: its kind and lane, and what to run. Made from the
 * method table and the handlers by `Dispatch.ts`; the face itself knows no method but `initialize`.
 */
import type { FrameParams, RunError } from "@tackroom/protocol/run"
import type { Effect } from "effect"
import type { WaitHandler } from "./WaitHandler.ts"

/** A request that cannot take effect: an unknown method, bad params, a capability that is false. */
export interface Impossible {
  readonly _tag: "Impossible"
  readonly error: RunError
}

/** A request with an effect. */
export interface Call {
  readonly _tag: "Call"
  readonly kind: "ordinary" | "control"
  readonly lane: string | null
  readonly mutating: boolean
  /** Refused once the host is draining (RUN-524). */
  readonly startsWork: boolean
  readonly effect: Effect.Effect<unknown, RunError>
  /** The result as the wire has it. */
  readonly encode: (result: never) => unknown
}

/** A request that may wait. */
export interface Wait {
  readonly _tag: "Wait"
  readonly waitMs: number
  readonly handler: WaitHandler<unknown, RunError>
  readonly encode: (result: never) => unknown
}

export type Prepared = Impossible | Call | Wait

/** Prepares one request; Pure and quick: nothing takes effect here. */
export type Prepare = (method: string, params: FrameParams) => Prepared

/** What became of a notification on the reader path (RUN-037). `ignored`: not one the host takes (RUN-012). */
export type NotificationFate = "taken" | "refused" | "dropped" | "ignored"

export type TakeNotification = (method: string, params: FrameParams) => NotificationFate
