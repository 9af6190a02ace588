/**
 * Failures of the host and the runtime as errors of ACP (serve-mode 12.10). `reason` is stable, messages are not; nothing of
 * the request, no secret and no stack is in one (ACP-240).
 */
import { isHarnessError, isRuntimeError } from "@tackroom/protocol"

/** The data of an error: why, and what a client may act on. */
export type RefusalData = { readonly reason: string } & { readonly [name: string]: unknown }

/** An error answer. */
export class Refusal {
  readonly _tag = "Refusal"
  readonly code: number
  readonly message: string
  readonly data: RefusalData | { readonly sessionId: string }
  constructor(code: number, message: string, data: RefusalData | { readonly sessionId: string }) {
    this.code = code
    this.message = message
    this.data = data
  }
}

export const invalidRequest = (
  reason: string,
  message: string,
  more: Readonly<Record<string, unknown>> = {}
): Refusal => new Refusal(-32_600, message, { reason, ...more })

export const invalidParams = (reason: string, message: string, more: Readonly<Record<string, unknown>> = {}): Refusal =>
  new Refusal(-32_602, message, { reason, ...more })

export const internal = (reason: string, message: string, more: Readonly<Record<string, unknown>> = {}): Refusal =>
  new Refusal(-32_603, message, { reason, ...more })

/** No such session, as the protocol wants it said (ACP-061). */
export const noSession = (sessionId: string): Refusal => new Refusal(-32_002, "Resource not found", { sessionId })

export const authRequired = (message: string): Refusal => new Refusal(-32_000, message, { reason: "auth_required" })

export const busy = (): Refusal => invalidRequest("session_busy", "The session is working on a turn")

/** What a host's own errors say of themselves. */
interface Tagged {
  readonly _tag: string
  readonly message: string
  readonly what?: unknown
  readonly reason?: unknown
  readonly path?: unknown
  readonly traceId?: unknown
}

const isTagged = (cause: unknown): cause is Tagged =>
  typeof cause === "object" && cause !== null && "_tag" in cause && typeof cause._tag === "string" && "message" in cause

/** Any failure of a call about that session. */
export const refusalOf = (cause: unknown, sessionId: string): Refusal => {
  if (cause instanceof Refusal) return cause
  if (isRuntimeError(cause)) {
    switch (cause._tag) {
      case "SessionNotFound":
      case "SessionGone":
        return noSession(sessionId)
      case "SessionTurnInProgress":
      case "SessionRecovering":
      case "SessionTurnFenceStale":
        return busy()
      case "SessionClosed":
        return invalidRequest("session_closed", cause.message)
      case "SubmissionConflict":
        return invalidParams("submission_conflict", cause.message)
      case "PromptTooLarge":
        return invalidParams("prompt_too_large", cause.message)
      case "PromptInvalid":
        return invalidParams("empty_prompt", cause.message)
      case "UnsupportedOperation":
        return invalidParams(cause.operation.includes("MCP") ? "mcp_unsupported" : "unsupported", cause.message)
      case "SessionInvalid":
      case "ConfigInvalid":
        return invalidParams(/^mcp(?:\.|$)/u.test(cause.field) ? "mcp_invalid" : "bad_value", cause.message)
      case "SessionMissing":
        return new Refusal(-32_002, "Resource not found", { reason: "session_missing", sessionId })
      case "ResumeUnconfirmed":
      case "HarnessContextLost":
        return internal("harness_resume_failed", cause.message)
      case "HarnessAuthRequired":
        return authRequired(cause.message)
      case "StoreBusy":
      case "StoreUnavailable":
      case "StoreFull":
        return internal("store", cause.message)
      case "Internal":
        return internal("internal", cause.message, { traceId: cause.traceId })
      default:
        return isHarnessError(cause)
          ? internal("harness_unavailable", cause.message, { runtimeCode: cause.code })
          : internal("internal", cause.message, { runtimeCode: cause.code })
    }
  }
  if (!isTagged(cause)) return internal("internal", "Something went wrong inside")
  switch (cause._tag) {
    case "NotFound":
      return cause.what === "session" ? noSession(sessionId) : internal("harness_unavailable", cause.message)
    case "InvalidState":
      return cause.reason === "session_closed" || cause.reason === "closed"
        ? invalidRequest("session_closed", cause.message)
        : internal("harness_unavailable", cause.message)
    case "Conflict":
      return invalidParams("submission_conflict", cause.message)
    case "Busy":
      return busy()
    case "CredentialsMissing":
      return authRequired(cause.message)
    case "ProviderUnavailable":
      return internal("harness_unavailable", cause.message)
    case "InvalidParams":
      return invalidParams(cause.path === "workspace" ? "cwd_not_found" : "invalid", cause.message)
    case "StorageFailed":
      return internal("store", cause.message)
    default:
      return internal("internal", "Something went wrong inside")
  }
}
