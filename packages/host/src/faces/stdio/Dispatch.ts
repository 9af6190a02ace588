/**
 * Between the method table and the face: decodes the params of a request, says how it is scheduled and which handler
 * serves it. Owns no state and no transport; an embedded host calls the same handlers through `embed`.
 */
import {
  AlreadyInitialized,
  type Capabilities,
  capabilityName,
  decodeNotification,
  decodeParams,
  effectiveWaitMs,
  encodeResult,
  type Handlers,
  InvalidParams,
  isMethodName,
  isNotificationName,
  MethodNotFound,
  type MethodName,
  methods,
  NotInitialized,
  type NotificationParams,
  type ParamsOf,
  requestKind,
  type ResultOf,
  type RunError,
  Unsupported
} from "@tackroom/protocol/run"
import { Effect, Result } from "effect"
import type { Prepare, Prepared, TakeNotification } from "./Prepared.ts"
import { type WaitHandler, waitReady } from "./WaitHandler.ts"

/** The methods that may be parked. */
export type WaitMethod = "run/wait" | "event/read"

/** How each of them is looked at while it is parked. */
export type WaitHandlers = {
  readonly [M in WaitMethod]: (params: ParamsOf<M>) => WaitHandler<ResultOf<M>, RunError>
}

export interface DispatchOptions {
  /** `run/wait` and `event/read` of these serve only requests that do not wait. */
  readonly handlers: Handlers
  readonly waits: WaitHandlers
  readonly capabilities: Capabilities
  /** The lane of a request: requests of one lane keep their order. Default: `sessionLane`. */
  readonly lane?: (method: MethodName, params: unknown) => string | null
  /** Takes the result of an application's tool; false refuses it (RUN-286). Quick: it runs on the reader path. */
  readonly onApplicationResult?: (result: NotificationParams<"application/result">) => boolean
  /** Takes progress; false drops it (RUN-291). */
  readonly onApplicationProgress?: (progress: NotificationParams<"application/progress">) => boolean
}

/** Refused while draining (RUN-524): what would start a turn, a child or a session. */
const startsWork: ReadonlySet<MethodName> = new Set([
  "agent/session",
  "run/start",
  "turn/start",
  "session/send",
  "mcp/register",
  "team/task"
])

/** A request belongs to the session it names, or to the team. */
export const sessionLane = (_method: MethodName, params: unknown): string | null => {
  if (typeof params !== "object" || params === null) return null
  if ("sessionId" in params && typeof params.sessionId === "string") return params.sessionId
  return "teamId" in params && typeof params.teamId === "string" ? params.teamId : null
}

const isWaitMethod = (method: MethodName): method is WaitMethod => method === "run/wait" || method === "event/read"

/** A row of the table whose types were checked where it was made, used for whatever method a frame names. */
type AnyHandler = (params: unknown) => Effect.Effect<unknown, RunError>
type AnyWait = (params: unknown) => WaitHandler<unknown, RunError>

const impossible = (error: RunError): Prepared => ({ _tag: "Impossible", error })

/** How long a wait may be held: `run/wait` has a default, `event/read` waits only when asked to. */
const waitMsOf = (method: WaitMethod, params: { readonly waitMs?: number }): number =>
  method === "run/wait" ? effectiveWaitMs(params.waitMs) : effectiveWaitMs(params.waitMs, 0)

export const makePrepare = (options: DispatchOptions): Prepare => {
  const { handlers, waits, capabilities } = options
  const lane = options.lane ?? sessionLane

  return (method, json) => {
    if (!isMethodName(method)) return impossible(new MethodNotFound({ method }))
    const { capability, mutating } = methods[method]
    if (capability !== null && !capabilities[capability]) {
      return impossible(new Unsupported({ feature: capabilityName(capability) }))
    }
    const decoded = decodeParams(method, json)
    if (Result.isFailure(decoded)) return impossible(decoded.failure)
    const params = decoded.success
    const kind = requestKind(method, params as never)
    const encode = (result: never): unknown => encodeResult(method, result)
    if (kind === "wait" && isWaitMethod(method)) {
      return {
        _tag: "Wait",
        waitMs: waitMsOf(method, params as { readonly waitMs?: number }),
        handler: (waits[method] as AnyWait)(params),
        encode
      }
    }
    return {
      _tag: "Call",
      kind: kind === "control" ? "control" : "ordinary",
      lane: lane(method, params),
      mutating,
      startsWork: kind === "ordinary" && startsWork.has(method),
      effect: (handlers[method] as AnyHandler)(params),
      encode
    }
  }
}

/** Takes `application/result` and `application/progress`; anything else, and whatever no one takes, is ignored. */
export const makeTakeNotification =
  (options: DispatchOptions): TakeNotification =>
  (method, json) => {
    if (!isNotificationName(method) || method === "application/event") return "ignored"
    if (!options.capabilities.applicationCallbacks) return "ignored"
    if (method === "application/result") {
      const decoded = decodeNotification(method, json)
      const taken = Result.isSuccess(decoded) && options.onApplicationResult?.(decoded.success) === true
      return taken ? "taken" : "refused"
    }
    const decoded = decodeNotification(method, json)
    if (Result.isFailure(decoded)) return "refused"
    return options.onApplicationProgress?.(decoded.success) === true ? "taken" : "dropped"
  }

/** A caller in this process: requests one by one, params and results in wire form. */
export type EmbeddedCall = (method: string, params: unknown) => Effect.Effect<unknown, RunError>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const notAnObject = { path: "", expected: "an object" }

/** Serves a caller in this process: the same checks and errors as on a pipe, without its order and its limits (RUN-590). */
export const embed = (prepare: Prepare, onInitialized: () => void = () => undefined): EmbeddedCall => {
  let initialized = false
  return (method, params) =>
    Effect.suspend(() => {
      if (method === "initialize" ? initialized : !initialized) {
        return Effect.fail(initialized ? new AlreadyInitialized({}) : new NotInitialized({}))
      }
      if (params !== undefined && !isObject(params)) {
        return Effect.fail(new InvalidParams({ ...notAnObject, issues: [notAnObject] }))
      }
      const prepared = prepare(method, params ?? {})
      if (prepared._tag === "Impossible") return Effect.fail(prepared.error)
      const result = prepared._tag === "Wait" ? waitReady(prepared.handler, prepared.waitMs) : prepared.effect
      return Effect.map(result, (value) => {
        if (method === "initialize") {
          initialized = true
          onInitialized()
        }
        return prepared.encode(value as never)
      })
    })
}
