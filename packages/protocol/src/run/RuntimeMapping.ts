/**
 * How an error of the runtime is answered on the run protocol: the second table of run-protocol section 5, once.
 */
import type { PermissionResolution, QuestionResolution } from "../events/Interaction.ts"
import type { RuntimeError } from "../RuntimeErrors.ts"
import { toWireName } from "../text/WireNames.ts"
import { limitName } from "./Limits.ts"
import {
  Busy,
  Conflict,
  CredentialsMissing,
  InternalFailure,
  InvalidCursor,
  InvalidParams,
  InvalidState,
  LimitExceeded,
  NotFound,
  ProviderUnavailable,
  type RunError,
  ShuttingDown,
  StorageFailed,
  Unsupported
} from "./RunErrors.ts"

/** What an answer needs and a runtime error does not know. */
export interface RuntimeErrorContext {
  /** The store's journal id, for `invalid_cursor`. */
  readonly journalId: string
  /** A reference that the log has too, for `internal`. */
  readonly ref: string
  /** What was being done, for `storage_failure`; default `write`. */
  readonly operation?: string
  /** The lead of the session, for `worker_session`. */
  readonly leadSessionId?: string
  /** The active run, for `run_active`. */
  readonly submissionId?: string
}

/** The response of a stored resolution as `run/respond` and `response_differs` show it. */
export const responseOf = (resolution: PermissionResolution | QuestionResolution): string => {
  if ("answers" in resolution) return resolution.answers === null ? "" : resolution.answers.flat().join("\n")
  switch (resolution.decision) {
    case "allow_once":
      return "once"
    case "allow_always":
      return "session"
    case "deny":
    case "reject_always":
      return "deny"
  }
}

const invalid = (path: string, expected: string): InvalidParams =>
  new InvalidParams({ path, expected, issues: [{ path, expected }] })

const unavailable = (error: {
  readonly message: string
  readonly harness: string
  readonly exitCode?: number
  readonly stderrTail?: string
}): ProviderUnavailable =>
  new ProviderUnavailable({
    what: "model_provider",
    name: error.harness,
    detail: error.message,
    ...(error.exitCode === undefined ? {} : { exitCode: error.exitCode }),
    ...(error.stderrTail === undefined ? {} : { stderrTail: error.stderrTail.slice(-2048) })
  })

/** The error of the run protocol that answers a request which failed with this error of the runtime. */
export const fromRuntimeError = (error: RuntimeError, context: RuntimeErrorContext): RunError => {
  const storage = (outcome: "not_written" | "unknown") =>
    new StorageFailed({ store: "sessions", operation: context.operation ?? "write", outcome })
  switch (error.code) {
    case "session_not_found":
      return new NotFound({ what: "session", id: error.sessionId })
    case "scope_mismatch":
      return new NotFound({ what: "session", ...(error.sessionId === undefined ? {} : { id: error.sessionId }) })
    case "submission_not_found":
      return new NotFound({ what: "run", id: error.messageId })
    case "interaction_not_found":
      return new NotFound({ what: "interaction", id: error.id })
    case "harness_not_registered":
      return new NotFound({ what: "provider", id: error.harness })
    case "session_gone":
    case "session_closed":
      return new InvalidState({ reason: "session_closed", sessionId: error.sessionId })
    case "session_read_only":
      return new InvalidState({
        reason: "worker_session",
        sessionId: error.sessionId,
        ...(context.leadSessionId === undefined ? {} : { leadSessionId: context.leadSessionId })
      })
    case "session_turn_in_progress":
    case "session_recovering":
      return new InvalidState({
        reason: "run_active",
        sessionId: error.sessionId,
        ...(context.submissionId === undefined ? {} : { submissionId: context.submissionId })
      })
    case "interaction_withdrawn":
      return new InvalidState({ reason: "turn_ended", interactionId: error.id })
    case "submission_conflict":
      return new Conflict({ reason: "submission_text_differs", id: error.messageId })
    case "session_conflict":
      return new Conflict({
        reason: "creation_differs",
        id: error.sessionId,
        ...(error.field === undefined ? {} : { differingFields: [toWireName(error.field)] })
      })
    case "interaction_already_resolved":
      return new Conflict({ reason: "response_differs", id: error.id, response: responseOf(error.resolution) })
    case "prompt_invalid":
      return invalid(error.path ?? "text", error.expected ?? "a valid text")
    case "option_not_offered":
      return invalid("decision", "one of the decisions offered")
    case "answer_invalid":
      return invalid("answer", error.reason ?? "an answer that fits the question")
    case "invalid_execution_binding":
      return invalid(
        error.field === "directory" ? "workspace" : toWireName(error.field),
        error.expected ?? "a value that can be used"
      )
    case "session_invalid":
    case "config_invalid":
      return invalid(toWireName(error.field), error.expected ?? "a value that can be used")
    case "prompt_too_large":
      return new LimitExceeded({ limit: limitName("textBytes"), max: error.limit })
    case "queue_full":
      return new LimitExceeded({ limit: "queue_entries", max: error.limit })
    case "too_many_interactions":
      return new LimitExceeded({ limit: "pending_interactions", max: error.limit })
    case "too_many_subscribers":
      return new LimitExceeded({ limit: "subscribers", max: error.limit })
    case "unsupported_operation":
      return new Unsupported({ feature: error.operation })
    case "harness_auth_required":
      return new CredentialsMissing({ provider: error.harness })
    case "harness_dependency_missing":
    case "harness_program_missing":
    case "harness_version_unsupported":
    case "harness_timeout":
    case "harness_process_exited":
    case "harness_unavailable":
    case "harness_rejected":
    case "harness_protocol":
    case "harness_context_lost":
      return unavailable(error)
    case "harness_duplicate":
      return unavailable({ message: error.message, harness: error.key })
    case "cursor_invalid":
      return new InvalidCursor({ reason: "malformed", head: error.head ?? 0, journalId: context.journalId })
    case "cursor_ahead":
      return new InvalidCursor({ reason: "ahead", head: error.head, journalId: context.journalId })
    case "store_busy":
    case "session_turn_fence_stale":
      return new Busy({ retryAfterMs: 250 })
    case "store_full":
    case "store_dependency_missing":
    case "unsupported_runtime_store_schema":
    case "runtime_store_corrupt_row":
      return storage("not_written")
    case "store_unavailable":
      return storage("unknown")
    case "runtime_disposed":
      return new ShuttingDown({})
    case "internal":
      return new InternalFailure({ ref: error.traceId })
    default:
      return new InternalFailure({ ref: context.ref })
  }
}
