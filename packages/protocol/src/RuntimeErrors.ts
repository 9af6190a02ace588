/**
 * The errors of the runtime (section 16), one class per code, from one table (D-33).
 *
 * Every error has `_tag`, `code`, `message`, `retryable`, `status` (the HTTP status) and the fields of its row. A default
 * message is made from the fields; `message` and `retryable` may be given instead:
 *
 * ```ts
 * new SessionNotFound({ sessionId })
 * new HarnessTimeout({ harness: "acp:gemini", operation: "openSession", retryable: true })
 * ```
 *
 * Messages hold nothing secret: what a harness said goes into the fields, cut and redacted by whoever makes the error.
 * Implements RT-380 to RT-382.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { PermissionResolution, QuestionResolution, WithdrawalReason } from "./events/Interaction.ts"
import { QueueList, SessionPhase } from "./events/Session.ts"
import { constant, defaulting, makeErrorClass, messageField } from "./internal/ErrorClass.ts"
import { lazyClass, lazySchema } from "./internal/Lazy.ts"

const text = Schema.String
const optional = Schema.optionalKey

interface Row<Fields extends Schema.Struct.Fields> {
  readonly status: number
  readonly retryable?: boolean
  readonly fields: Fields
  readonly message: (error: Schema.Struct.Type<Fields>) => string
}

/** Makes the class of one row. */
const define =
  <Self>() =>
  <const Tag extends string, const Code extends string, const Fields extends Schema.Struct.Fields>(
    tag: Tag,
    code: Code,
    row: Row<Fields>
  ) =>
    lazyClass(() =>
      makeErrorClass<Self>()(tag, {
        identifier: `Runtime${tag}Error`,
        fields: {
          code: constant(code),
          message: messageField,
          retryable: defaulting(row.retryable ?? false),
          status: constant(row.status),
          ...row.fields
        },
        annotations: { httpApiStatus: row.status },
        message: (props) => row.message(props as Schema.Struct.Type<Fields>)
      })
    )

const quote = (value: string | undefined, otherwise: string): string => (value === undefined ? otherwise : `"${value}"`)
const because = (reason: string | undefined): string => (reason === undefined ? "" : `: ${reason}`)
const during = (operation: string | undefined): string => (operation === undefined ? "" : ` during ${operation}`)
const shouldBe = (expected: string | undefined): string => (expected === undefined ? "" : `: expected ${expected}`)

const session = { sessionId: text }
const native = optional(Schema.Struct({ code: optional(text), message: text }))
const harness = { harness: text, operation: optional(text), detail: optional(text), native }
const harnessProcess = {
  ...harness,
  exitCode: optional(Schema.Int),
  signal: optional(text),
  stderrTail: optional(text)
}
const goal = { sessionId: optional(text), reason: optional(text) }
const field = { field: text, expected: optional(text) }
const store = { reason: optional(text) }
const connection = { connectionId: optional(text), reason: optional(text) }

// Sessions

/** No session has this id. @since 0.1.0 */
export class SessionNotFound extends define<SessionNotFound>()("SessionNotFound", "session_not_found", {
  status: 404,
  fields: session,
  message: (e) => `There is no session ${e.sessionId}`
}) {}

/** The session was deleted (RT-043). @since 0.1.0 */
export class SessionGone extends define<SessionGone>()("SessionGone", "session_gone", {
  status: 410,
  fields: session,
  message: (e) => `Session ${e.sessionId} was deleted; its id cannot be used again`
}) {}

/** The id exists with other values (RT-042). @since 0.1.0 */
export class SessionConflict extends define<SessionConflict>()("SessionConflict", "session_conflict", {
  status: 409,
  fields: { ...session, field: optional(text) },
  message: (e) => `Session ${e.sessionId} exists with another ${e.field ?? "harness or directory"}`
}) {}

/** The session is closed or archived. @since 0.1.0 */
export class SessionClosed extends define<SessionClosed>()("SessionClosed", "session_closed", {
  status: 409,
  fields: session,
  message: (e) => `Session ${e.sessionId} is closed`
}) {}

/** A child session takes no prompts (RT-296). @since 0.1.0 */
export class SessionReadOnly extends define<SessionReadOnly>()("SessionReadOnly", "session_read_only", {
  status: 409,
  fields: session,
  message: (e) => `Session ${e.sessionId} belongs to a subagent and takes no prompts`
}) {}

/** The field cannot change after creation (RT-046). @since 0.1.0 */
export class SessionImmutableField extends define<SessionImmutableField>()(
  "SessionImmutableField",
  "session_immutable_field",
  {
    status: 409,
    fields: { ...session, field: optional(text) },
    message: (e) => `${quote(e.field, "This field")} of session ${e.sessionId} cannot change after creation`
  }
) {}

/** A turn runs; try again after it, or queue or steer (5.1). @since 0.1.0 */
export class SessionTurnInProgress extends define<SessionTurnInProgress>()(
  "SessionTurnInProgress",
  "session_turn_in_progress",
  {
    status: 409,
    retryable: true,
    fields: { ...session, turnId: optional(text), phase: optional(SessionPhase) },
    message: (e) => `Session ${e.sessionId} is working on a turn`
  }
) {}

/** The session is being rebound after a restart. @since 0.1.0 */
export class SessionRecovering extends define<SessionRecovering>()("SessionRecovering", "session_recovering", {
  status: 409,
  retryable: true,
  fields: session,
  message: (e) => `Session ${e.sessionId} is being recovered`
}) {}

/** The write carries an old fencing token; nothing was written (RT-130). @since 0.1.0 */
export class SessionTurnFenceStale extends define<SessionTurnFenceStale>()(
  "SessionTurnFenceStale",
  "session_turn_fence_stale",
  { status: 409, fields: session, message: (e) => `Another owner holds session ${e.sessionId}` }
) {}

// Admission and queue

/** The id was used with other content (5.1). @since 0.1.0 */
export class SubmissionConflict extends define<SubmissionConflict>()("SubmissionConflict", "submission_conflict", {
  status: 409,
  fields: { messageId: text, digest: optional(text) },
  message: (e) => `Submission ${quote(e.messageId, "")} exists with other content`
}) {}

/** No submission has this id. @since 0.1.0 */
export class SubmissionNotFound extends define<SubmissionNotFound>()("SubmissionNotFound", "submission_not_found", {
  status: 404,
  fields: { messageId: text },
  message: (e) => `There is no submission ${quote(e.messageId, "")}`
}) {}

/** The queue of the session is full. @since 0.1.0 */
export class QueueFull extends define<QueueFull>()("QueueFull", "queue_full", {
  status: 429,
  retryable: true,
  fields: { limit: Schema.Natural },
  message: (e) => `The queue holds its limit of ${e.limit} messages`
}) {}

/** The named revision is not the current one (RT-114). @since 0.1.0 */
export class QueueRevisionConflict extends define<QueueRevisionConflict>()(
  "QueueRevisionConflict",
  "queue_revision_conflict",
  {
    status: 409,
    fields: { list: optional(QueueList) },
    message: () => "The queue has changed since the revision that was named"
  }
) {}

/** The entry has started (RT-118). @since 0.1.0 */
export class QueueEntryStarted extends define<QueueEntryStarted>()("QueueEntryStarted", "queue_entry_started", {
  status: 409,
  fields: { messageId: optional(text), list: optional(QueueList) },
  message: (e) => `Message ${quote(e.messageId, "of the queue")} has started and is no longer in the queue`
}) {}

/** The change does not fit the queue (RT-115). @since 0.1.0 */
export class QueueInvalid extends define<QueueInvalid>()("QueueInvalid", "queue_invalid", {
  status: 422,
  fields: { reason: optional(text), list: optional(QueueList) },
  message: (e) => `The change of the queue is not valid${because(e.reason)}`
}) {}

/** The prompt is malformed; names the path and what was expected (RT-382). @since 0.1.0 */
export class PromptInvalid extends define<PromptInvalid>()("PromptInvalid", "prompt_invalid", {
  status: 422,
  fields: { path: optional(text), expected: optional(text), limit: optional(Schema.Natural) },
  message: (e) => `${quote(e.path, "The prompt")} is not valid${shouldBe(e.expected)}`
}) {}

/** The prompt or a part is over its limit in bytes (3.1). @since 0.1.0 */
export class PromptTooLarge extends define<PromptTooLarge>()("PromptTooLarge", "prompt_too_large", {
  status: 413,
  fields: { path: optional(text), limit: Schema.Natural },
  message: (e) => `${quote(e.path, "The prompt")} is larger than ${e.limit} bytes`
}) {}

// Requests

/** Workspace or directory cannot be used (RT-040, RT-041). @since 0.1.0 */
export class InvalidExecutionBinding extends define<InvalidExecutionBinding>()(
  "InvalidExecutionBinding",
  "invalid_execution_binding",
  { status: 422, fields: field, message: (e) => `"${e.field}" is not valid${shouldBe(e.expected)}` }
) {}

/** A field of a session is not valid (3.1, RT-047). @since 0.1.0 */
export class SessionInvalid extends define<SessionInvalid>()("SessionInvalid", "session_invalid", {
  status: 422,
  fields: field,
  message: (e) => `"${e.field}" is not valid${shouldBe(e.expected)}`
}) {}

/** A field of a config is not valid. @since 0.1.0 */
export class ConfigInvalid extends define<ConfigInvalid>()("ConfigInvalid", "config_invalid", {
  status: 422,
  fields: field,
  message: (e) => `"${e.field}" is not valid${shouldBe(e.expected)}`
}) {}

/** The id belongs elsewhere (RT-049). @since 0.1.0 */
export class ScopeMismatch extends define<ScopeMismatch>()("ScopeMismatch", "scope_mismatch", {
  status: 403,
  fields: { sessionId: optional(text) },
  message: () => "The id belongs to another workspace, directory or session"
}) {}

/** The harness or runtime does not have this (RT-068). @since 0.1.0 */
export class UnsupportedOperation extends define<UnsupportedOperation>()(
  "UnsupportedOperation",
  "unsupported_operation",
  {
    status: 501,
    fields: { harness: optional(text), operation: text },
    message: (e) => `${quote(e.harness, "This runtime")} does not support ${e.operation}`
  }
) {}

// Interactions

/** No interaction has this id. @since 0.1.0 */
export class InteractionNotFound extends define<InteractionNotFound>()("InteractionNotFound", "interaction_not_found", {
  status: 404,
  fields: { id: text },
  message: (e) => `There is no interaction ${e.id}`
}) {}

/** The interaction ended without an answer (RT-255). @since 0.1.0 */
export class InteractionWithdrawn extends define<InteractionWithdrawn>()(
  "InteractionWithdrawn",
  "interaction_withdrawn",
  {
    status: 410,
    fields: { id: text, reason: WithdrawalReason },
    message: (e) => `Interaction ${e.id} was withdrawn: ${e.reason}`
  }
) {}

/** Another answer was first; carries it (RT-251). @since 0.1.0 */
export class InteractionAlreadyResolved extends define<InteractionAlreadyResolved>()(
  "InteractionAlreadyResolved",
  "interaction_already_resolved",
  {
    status: 409,
    fields: { id: text, resolution: Schema.Union([PermissionResolution, QuestionResolution]) },
    message: (e) => `Interaction ${e.id} was already answered, differently`
  }
) {}

/** The option is not one that was offered (RT-253). @since 0.1.0 */
export class OptionNotOffered extends define<OptionNotOffered>()("OptionNotOffered", "option_not_offered", {
  status: 422,
  fields: { id: text, options: optional(Schema.Array(text)) },
  message: (e) => `Interaction ${e.id} does not offer this option`
}) {}

/** The answer does not fit the questions (RT-259). @since 0.1.0 */
export class AnswerInvalid extends define<AnswerInvalid>()("AnswerInvalid", "answer_invalid", {
  status: 422,
  fields: { id: text, reason: optional(text), options: optional(Schema.Array(text)) },
  message: (e) => `The answer does not fit interaction ${e.id}${because(e.reason)}`
}) {}

/** The session has its limit of pending interactions. @since 0.1.0 */
export class TooManyInteractions extends define<TooManyInteractions>()("TooManyInteractions", "too_many_interactions", {
  status: 429,
  retryable: true,
  fields: { limit: Schema.Natural },
  message: (e) => `${e.limit} interactions are pending, which is the limit`
}) {}

/** The runtime has its limit of subscribers. @since 0.1.0 */
export class TooManySubscribers extends define<TooManySubscribers>()("TooManySubscribers", "too_many_subscribers", {
  status: 429,
  retryable: true,
  fields: { limit: Schema.Natural },
  message: (e) => `${e.limit} subscribers are attached, which is the limit`
}) {}

// Goals

/** The objective is empty or too long. @since 0.1.0 */
export class GoalInvalidObjective extends define<GoalInvalidObjective>()(
  "GoalInvalidObjective",
  "goal_invalid_objective",
  { status: 422, fields: goal, message: (e) => `An objective has 1 to 4,000 characters${because(e.reason)}` }
) {}

/** No session has this id. @since 0.1.0 */
export class GoalSessionNotFound extends define<GoalSessionNotFound>()(
  "GoalSessionNotFound",
  "goal_session_not_found",
  { status: 404, fields: goal, message: (e) => `There is no session ${e.sessionId ?? "of that id"}` }
) {}

/** The session is of another directory. @since 0.1.0 */
export class GoalScopeMismatch extends define<GoalScopeMismatch>()("GoalScopeMismatch", "goal_scope_mismatch", {
  status: 403,
  fields: goal,
  message: () => "The session is of another directory"
}) {}

/** This session cannot have a goal (RT-270). @since 0.1.0 */
export class GoalUnavailable extends define<GoalUnavailable>()("GoalUnavailable", "goal_unavailable", {
  status: 501,
  fields: goal,
  message: (e) => `Goals are not available${because(e.reason)}`
}) {}

/** A goal is active, paused or blocked. @since 0.1.0 */
export class GoalAlreadyExists extends define<GoalAlreadyExists>()("GoalAlreadyExists", "goal_already_exists", {
  status: 409,
  fields: goal,
  message: () => "The session has a goal that is not finished"
}) {}

/** The action is not offered. @since 0.1.0 */
export class GoalActionUnavailable extends define<GoalActionUnavailable>()(
  "GoalActionUnavailable",
  "goal_action_unavailable",
  { status: 409, fields: goal, message: (e) => `The goal cannot do that${because(e.reason)}` }
) {}

// Cursors and subscriptions

/** The cursor is malformed or foreign (RT-184). @since 0.1.0 */
export class CursorInvalid extends define<CursorInvalid>()("CursorInvalid", "cursor_invalid", {
  status: 400,
  fields: { head: optional(Schema.Natural) },
  message: () => "The cursor is not valid"
}) {}

/** The cursor is beyond the journal's head (RT-184). @since 0.1.0 */
export class CursorAhead extends define<CursorAhead>()("CursorAhead", "cursor_ahead", {
  status: 409,
  fields: { head: Schema.Natural },
  message: (e) => `The cursor is beyond the head, which is ${e.head}`
}) {}

/** A policy is set and no identity was given (RT-240). @since 0.1.0 */
export class SubscriptionIdentityRequired extends define<SubscriptionIdentityRequired>()(
  "SubscriptionIdentityRequired",
  "subscription_identity_required",
  { status: 401, fields: {}, message: () => "A subscription needs an identity here" }
) {}

/** The policy denied the subscription (RT-244). @since 0.1.0 */
export class SubscriptionDenied extends define<SubscriptionDenied>()("SubscriptionDenied", "subscription_denied", {
  status: 403,
  fields: { sessionId: optional(text) },
  message: () => "The subscription was denied"
}) {}

/** The observation id was used with other content (RT-290). @since 0.1.0 */
export class SubagentObservationConflict extends define<SubagentObservationConflict>()(
  "SubagentObservationConflict",
  "subagent_observation_conflict",
  { status: 409, fields: { key: text }, message: (e) => `Observation ${e.key} exists with other content` }
) {}

// Harnesses

/** The harness itself says that the conversation does not exist (HRN-005). @since 0.1.0 */
export class SessionMissing extends define<SessionMissing>()("SessionMissing", "session_missing", {
  status: 409,
  fields: { ...harness, reason: optional(text) },
  message: (e) => `${e.harness} no longer has this conversation${because(e.reason)}`
}) {}

/** Reopening failed without evidence that the conversation is gone; the binding stays (HRN-005). @since 0.1.0 */
export class ResumeUnconfirmed extends define<ResumeUnconfirmed>()("ResumeUnconfirmed", "resume_unconfirmed", {
  status: 409,
  retryable: true,
  fields: { ...harness, reason: optional(text) },
  message: (e) => `${e.harness} did not confirm that it reopened the conversation${because(e.reason)}`
}) {}

/** The harness cannot resume and its process is gone (11.2). @since 0.1.0 */
export class HarnessContextLost extends define<HarnessContextLost>()("HarnessContextLost", "harness_context_lost", {
  status: 409,
  fields: { ...harness, reason: optional(text) },
  message: (e) => `${e.harness} lost the context of this session${because(e.reason)}`
}) {}

/** No such harness is registered. @since 0.1.0 */
export class HarnessNotRegistered extends define<HarnessNotRegistered>()(
  "HarnessNotRegistered",
  "harness_not_registered",
  { status: 422, fields: harness, message: (e) => `No harness ${e.harness} is registered` }
) {}

/** An optional peer package is missing (RT-003). @since 0.1.0 */
export class HarnessDependencyMissing extends define<HarnessDependencyMissing>()(
  "HarnessDependencyMissing",
  "harness_dependency_missing",
  {
    status: 503,
    fields: { ...harness, package: optional(text), range: optional(text) },
    message: (e) =>
      `${e.harness} needs the package ${e.package ?? e.detail ?? "it names"}${e.range === undefined ? "" : ` ${e.range}`}`
  }
) {}

/** The program is not installed. @since 0.1.0 */
export class HarnessProgramMissing extends define<HarnessProgramMissing>()(
  "HarnessProgramMissing",
  "harness_program_missing",
  { status: 503, fields: harness, message: (e) => `The program of ${e.harness} was not found${because(e.detail)}` }
) {}

/** The version is outside the supported range. @since 0.1.0 */
export class HarnessVersionUnsupported extends define<HarnessVersionUnsupported>()(
  "HarnessVersionUnsupported",
  "harness_version_unsupported",
  { status: 503, fields: harness, message: (e) => `This version of ${e.harness} is not supported${because(e.detail)}` }
) {}

/** The harness needs credentials. @since 0.1.0 */
export class HarnessAuthRequired extends define<HarnessAuthRequired>()("HarnessAuthRequired", "harness_auth_required", {
  status: 503,
  fields: harness,
  message: (e) => `${e.harness} is not signed in${because(e.detail)}`
}) {}

/** A deadline passed (10.1). @since 0.1.0 */
export class HarnessTimeout extends define<HarnessTimeout>()("HarnessTimeout", "harness_timeout", {
  status: 504,
  fields: harnessProcess,
  message: (e) => `${e.harness} did not answer in time${during(e.operation)}`
}) {}

/** The child process is gone (HRN-035). @since 0.1.0 */
export class HarnessProcessExited extends define<HarnessProcessExited>()(
  "HarnessProcessExited",
  "harness_process_exited",
  {
    status: 502,
    fields: harnessProcess,
    message: (e) =>
      `The process of ${e.harness} exited${during(e.operation)}${because(e.signal ?? (e.exitCode === undefined ? undefined : `code ${e.exitCode}`))}`
  }
) {}

/** The harness cannot work now. @since 0.1.0 */
export class HarnessUnavailable extends define<HarnessUnavailable>()("HarnessUnavailable", "harness_unavailable", {
  status: 503,
  fields: harnessProcess,
  message: (e) => `${e.harness} is not available${because(e.detail)}`
}) {}

/** The harness refused the call. @since 0.1.0 */
export class HarnessRejected extends define<HarnessRejected>()("HarnessRejected", "harness_rejected", {
  status: 502,
  fields: harnessProcess,
  message: (e) => `${e.harness} refused${because(e.detail)}`
}) {}

/** The harness sent what its protocol does not allow. @since 0.1.0 */
export class HarnessProtocol extends define<HarnessProtocol>()("HarnessProtocol", "harness_protocol", {
  status: 502,
  fields: harnessProcess,
  message: (e) => `${e.harness} broke its protocol${because(e.detail)}`
}) {}

/** A handoff and its rollback failed (RT-062). @since 0.1.0 */
export class SessionHandoffRollbackFailed extends define<SessionHandoffRollbackFailed>()(
  "SessionHandoffRollbackFailed",
  "session_handoff_rollback_failed",
  {
    status: 500,
    fields: { ...session, causes: Schema.Array(text) },
    message: (e) => `The handoff of session ${e.sessionId} failed, and so did its rollback`
  }
) {}

// Configured connections

/** The provider key is taken. @since 0.1.0 */
export class DuplicateProvider extends define<DuplicateProvider>()("DuplicateProvider", "duplicate_provider", {
  status: 422,
  fields: connection,
  message: (e) => `A provider of this key is registered${because(e.reason)}`
}) {}

/** The connection id is taken. @since 0.1.0 */
export class DuplicateConnection extends define<DuplicateConnection>()("DuplicateConnection", "duplicate_connection", {
  status: 422,
  fields: connection,
  message: (e) => `A connection of this id exists${because(e.reason)}`
}) {}

/** No such provider. @since 0.1.0 */
export class UnknownProvider extends define<UnknownProvider>()("UnknownProvider", "unknown_provider", {
  status: 422,
  fields: connection,
  message: (e) => `No provider of this key is registered${because(e.reason)}`
}) {}

/** The descriptor is malformed. @since 0.1.0 */
export class InvalidDescriptor extends define<InvalidDescriptor>()("InvalidDescriptor", "invalid_descriptor", {
  status: 422,
  fields: connection,
  message: (e) => `The descriptor of the connection is not valid${because(e.reason)}`
}) {}

/** The provider refuses the config. @since 0.1.0 */
export class InvalidConfig extends define<InvalidConfig>()("InvalidConfig", "invalid_config", {
  status: 422,
  fields: connection,
  message: (e) => `The config of the connection is not valid${because(e.reason)}`
}) {}

/** The connection is disabled (HRN-060). @since 0.1.0 */
export class DisabledConnection extends define<DisabledConnection>()("DisabledConnection", "disabled_connection", {
  status: 422,
  fields: connection,
  message: (e) => `The connection is disabled${because(e.reason)}`
}) {}

/** The revision is not the current one (HRN-060). @since 0.1.0 */
export class StaleConfigRevision extends define<StaleConfigRevision>()("StaleConfigRevision", "stale_config_revision", {
  status: 409,
  fields: connection,
  message: (e) => `The connection was changed since${because(e.reason)}`
}) {}

/** Provider and id never change. @since 0.1.0 */
export class ImmutableConnectionIdentity extends define<ImmutableConnectionIdentity>()(
  "ImmutableConnectionIdentity",
  "immutable_connection_identity",
  { status: 422, fields: connection, message: (e) => `The identity of a connection cannot change${because(e.reason)}` }
) {}

/** The connection cannot be used now. @since 0.1.0 */
export class ConnectionUnavailable extends define<ConnectionUnavailable>()(
  "ConnectionUnavailable",
  "connection_unavailable",
  { status: 503, fields: connection, message: (e) => `The connection is not available${because(e.reason)}` }
) {}

// Store and runtime

/** Another writer holds the store. @since 0.1.0 */
export class StoreBusy extends define<StoreBusy>()("StoreBusy", "store_busy", {
  status: 503,
  retryable: true,
  fields: store,
  message: (e) => `The store is busy${because(e.reason)}`
}) {}

/** The store cannot be reached or written. @since 0.1.0 */
export class StoreUnavailable extends define<StoreUnavailable>()("StoreUnavailable", "store_unavailable", {
  status: 503,
  retryable: true,
  fields: store,
  message: (e) => `The store is not available${because(e.reason)}`
}) {}

/** No room is left. @since 0.1.0 */
export class StoreFull extends define<StoreFull>()("StoreFull", "store_full", {
  status: 507,
  retryable: true,
  fields: store,
  message: (e) => `The store has no room left${because(e.reason)}`
}) {}

/** The store was made by another version. @since 0.1.0 */
export class UnsupportedRuntimeStoreSchema extends define<UnsupportedRuntimeStoreSchema>()(
  "UnsupportedRuntimeStoreSchema",
  "unsupported_runtime_store_schema",
  {
    status: 500,
    fields: { found: text, wanted: text },
    message: (e) => `The store has schema ${e.found}; this program needs ${e.wanted}`
  }
) {}

/** A row cannot be decoded (RT-053). @since 0.1.0 */
export class RuntimeStoreCorruptRow extends define<RuntimeStoreCorruptRow>()(
  "RuntimeStoreCorruptRow",
  "runtime_store_corrupt_row",
  { status: 500, fields: { table: text, key: text }, message: (e) => `A row of ${e.table} cannot be read: ${e.key}` }
) {}

/** An optional peer package is missing. @since 0.1.0 */
export class StoreDependencyMissing extends define<StoreDependencyMissing>()(
  "StoreDependencyMissing",
  "store_dependency_missing",
  {
    status: 500,
    fields: { package: text, range: optional(text) },
    message: (e) => `The store needs the package ${e.package}${e.range === undefined ? "" : ` ${e.range}`}`
  }
) {}

/** Disposal has begun (RT-023). @since 0.1.0 */
export class RuntimeDisposed extends define<RuntimeDisposed>()("RuntimeDisposed", "runtime_disposed", {
  status: 503,
  fields: {},
  message: () => "The runtime is disposed"
}) {}

/** Thrown by the constructor: an option is out of range (RT-021). @since 0.1.0 */
export class RuntimeOptionInvalid extends define<RuntimeOptionInvalid>()(
  "RuntimeOptionInvalid",
  "runtime_option_invalid",
  {
    status: 500,
    fields: { option: text, expected: optional(text) },
    message: (e) => `Option "${e.option}" is not valid${shouldBe(e.expected)}`
  }
) {}

/** Thrown by the constructor: two harnesses have one key. @since 0.1.0 */
export class HarnessDuplicate extends define<HarnessDuplicate>()("HarnessDuplicate", "harness_duplicate", {
  status: 500,
  fields: { key: text },
  message: (e) => `Two harnesses have the key ${e.key}`
}) {}

/** An unexpected defect; the trace id finds it in the log (RT-380). @since 0.1.0 */
export class Internal extends define<Internal>()("Internal", "internal", {
  status: 500,
  fields: { traceId: text },
  message: (e) => `Something went wrong inside; trace ${e.traceId}`
}) {}

/**
 * The table of section 16: the class of every code.
 *
 * @since 0.1.0
 */
export const runtimeErrors = {
  session_not_found: SessionNotFound,
  session_gone: SessionGone,
  session_conflict: SessionConflict,
  session_closed: SessionClosed,
  session_read_only: SessionReadOnly,
  session_immutable_field: SessionImmutableField,
  session_turn_in_progress: SessionTurnInProgress,
  session_recovering: SessionRecovering,
  session_turn_fence_stale: SessionTurnFenceStale,
  submission_conflict: SubmissionConflict,
  submission_not_found: SubmissionNotFound,
  queue_full: QueueFull,
  queue_revision_conflict: QueueRevisionConflict,
  queue_entry_started: QueueEntryStarted,
  queue_invalid: QueueInvalid,
  prompt_invalid: PromptInvalid,
  prompt_too_large: PromptTooLarge,
  invalid_execution_binding: InvalidExecutionBinding,
  session_invalid: SessionInvalid,
  config_invalid: ConfigInvalid,
  scope_mismatch: ScopeMismatch,
  unsupported_operation: UnsupportedOperation,
  interaction_not_found: InteractionNotFound,
  interaction_withdrawn: InteractionWithdrawn,
  interaction_already_resolved: InteractionAlreadyResolved,
  option_not_offered: OptionNotOffered,
  answer_invalid: AnswerInvalid,
  too_many_interactions: TooManyInteractions,
  too_many_subscribers: TooManySubscribers,
  goal_invalid_objective: GoalInvalidObjective,
  goal_session_not_found: GoalSessionNotFound,
  goal_scope_mismatch: GoalScopeMismatch,
  goal_unavailable: GoalUnavailable,
  goal_already_exists: GoalAlreadyExists,
  goal_action_unavailable: GoalActionUnavailable,
  cursor_invalid: CursorInvalid,
  cursor_ahead: CursorAhead,
  subscription_identity_required: SubscriptionIdentityRequired,
  subscription_denied: SubscriptionDenied,
  subagent_observation_conflict: SubagentObservationConflict,
  session_missing: SessionMissing,
  resume_unconfirmed: ResumeUnconfirmed,
  harness_context_lost: HarnessContextLost,
  harness_not_registered: HarnessNotRegistered,
  harness_dependency_missing: HarnessDependencyMissing,
  harness_program_missing: HarnessProgramMissing,
  harness_version_unsupported: HarnessVersionUnsupported,
  harness_auth_required: HarnessAuthRequired,
  harness_timeout: HarnessTimeout,
  harness_process_exited: HarnessProcessExited,
  harness_unavailable: HarnessUnavailable,
  harness_rejected: HarnessRejected,
  harness_protocol: HarnessProtocol,
  session_handoff_rollback_failed: SessionHandoffRollbackFailed,
  duplicate_provider: DuplicateProvider,
  duplicate_connection: DuplicateConnection,
  unknown_provider: UnknownProvider,
  invalid_descriptor: InvalidDescriptor,
  invalid_config: InvalidConfig,
  disabled_connection: DisabledConnection,
  stale_config_revision: StaleConfigRevision,
  immutable_connection_identity: ImmutableConnectionIdentity,
  connection_unavailable: ConnectionUnavailable,
  store_busy: StoreBusy,
  store_unavailable: StoreUnavailable,
  store_full: StoreFull,
  unsupported_runtime_store_schema: UnsupportedRuntimeStoreSchema,
  runtime_store_corrupt_row: RuntimeStoreCorruptRow,
  store_dependency_missing: StoreDependencyMissing,
  runtime_disposed: RuntimeDisposed,
  runtime_option_invalid: RuntimeOptionInvalid,
  harness_duplicate: HarnessDuplicate,
  internal: Internal
} as const

/** A code of section 16. @since 0.1.0 */
export type RuntimeErrorCode = keyof typeof runtimeErrors

/** Any error of the runtime. @since 0.1.0 */
export type RuntimeError = InstanceType<(typeof runtimeErrors)[RuntimeErrorCode]>

/** The error of one code. @since 0.1.0 */
export type RuntimeErrorOf<Code extends RuntimeErrorCode> = InstanceType<(typeof runtimeErrors)[Code]>

/** Any error of the runtime, as it is encoded on a wire and decoded to its class. @since 0.1.0 */
export const RuntimeError: Schema.Codec<RuntimeError, unknown> = lazySchema(() =>
  Schema.Union(
    Object.values(runtimeErrors) as ReadonlyArray<unknown> as ReadonlyArray<Schema.Codec<RuntimeError, unknown>>
  ).annotate({ identifier: "RuntimeError" })
)

/** All codes, in the order of the table. @since 0.1.0 */
export const runtimeErrorCodes = Object.keys(runtimeErrors) as ReadonlyArray<RuntimeErrorCode>

/** Codes a harness driver fails with (10.6). @since 0.1.0 */
export const harnessErrorCodes = [
  "harness_not_registered",
  "harness_dependency_missing",
  "harness_program_missing",
  "harness_version_unsupported",
  "harness_auth_required",
  "harness_timeout",
  "harness_process_exited",
  "harness_protocol",
  "harness_rejected",
  "harness_unavailable"
] as const satisfies ReadonlyArray<RuntimeErrorCode>

/** A code a harness driver fails with. @since 0.1.0 */
export type HarnessErrorCode = (typeof harnessErrorCodes)[number]

/** What a harness driver fails with (10.6). @since 0.1.0 */
export type HarnessError = RuntimeErrorOf<HarnessErrorCode>

const isCode = (code: unknown): code is RuntimeErrorCode =>
  typeof code === "string" && Object.hasOwn(runtimeErrors, code)

/** Whether a value is an error of the runtime. @since 0.1.0 */
export const isRuntimeError = (value: unknown): value is RuntimeError =>
  value instanceof Error && "code" in value && isCode(value.code) && value instanceof runtimeErrors[value.code]

/** Whether a value is an error of a harness driver. @since 0.1.0 */
export const isHarnessError = (value: unknown): value is HarnessError =>
  isRuntimeError(value) && (harnessErrorCodes as ReadonlyArray<string>).includes(value.code)

/** The HTTP status of an error; 500 for what is no error of the runtime (RT-380). @since 0.1.0 */
export const statusOf = (error: unknown): number => (isRuntimeError(error) ? error.status : 500)
