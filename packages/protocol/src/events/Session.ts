/**
 * Rows of the runtime (3.2 to 3.6): session, messages, config and binding, turn outcomes, receipts, queue, goal.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { ArtifactId, Cursor, TurnId } from "../Ids.ts"
import {
  Attachment,
  Author,
  Command,
  FileChange,
  HarnessRef,
  ModelRef,
  PromptPart,
  Timestamp,
  TokenUsage,
  ToolDisplay
} from "./Content.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Where a title came from; user outranks harness outranks prompt. @since 0.1.0 */
export const TitleSource = lazySchema(() =>
  Schema.Literals(["prompt", "harness", "user"]).annotate({ identifier: "TitleSource" })
)
/** @since 0.1.0 */
export type TitleSource = typeof TitleSource.Type

/** What a busy session is doing; `waiting` = an interaction is pending. @since 0.1.0 */
export const SessionPhase = lazySchema(() =>
  Schema.Literals(["starting", "running", "waiting", "cancelling"]).annotate({
    identifier: "SessionPhase"
  })
)
/** @since 0.1.0 */
export type SessionPhase = typeof SessionPhase.Type

/** What sort of trouble ended a turn. @since 0.1.0 */
export const ErrorClass = lazySchema(() =>
  Schema.Literals(["credential", "harness", "model", "usage_limit", "workspace", "session", "unknown"]).annotate({
    identifier: "ErrorClass"
  })
)
/** @since 0.1.0 */
export type ErrorClass = typeof ErrorClass.Type

/** Why a turn failed (3.2; `timeout` by D-5). @since 0.1.0 */
export const TurnFailureCode = lazySchema(() =>
  Schema.Literals([
    "harness_error",
    "harness_process_exited",
    "harness_protocol",
    "harness_timeout",
    "turn_interrupted",
    "cancel_unacknowledged",
    "truncated",
    "budget",
    "timeout",
    "not_accepted",
    "store_unavailable",
    "session_missing",
    "harness_context_lost",
    "internal"
  ]).annotate({ identifier: "TurnFailureCode" })
)
/** @since 0.1.0 */
export type TurnFailureCode = typeof TurnFailureCode.Type

/** How a turn completed. @since 0.1.0 */
export const FinishReason = lazySchema(() =>
  Schema.Literals(["end_turn", "refusal"]).annotate({ identifier: "FinishReason" })
)
/** @since 0.1.0 */
export type FinishReason = typeof FinishReason.Type

/** Why a turn was cancelled; `forced` = its process was ended by us. @since 0.1.0 */
export const CancelReason = lazySchema(() =>
  Schema.Literals(["requested", "shutdown", "forced", "parent", "goal"]).annotate({
    identifier: "CancelReason"
  })
)
/** @since 0.1.0 */
export type CancelReason = typeof CancelReason.Type

/** What started a turn. @since 0.1.0 */
export const TurnOrigin = lazySchema(() =>
  Schema.Literals(["user", "queue", "goal", "schedule", "team", "harness"]).annotate({
    identifier: "TurnOrigin"
  })
)
/** @since 0.1.0 */
export type TurnOrigin = typeof TurnOrigin.Type

/** The failure of a turn. @since 0.1.0 */
export const TurnError = lazySchema(() =>
  Schema.Struct({
    code: TurnFailureCode,
    message: Schema.String,
    errorClass: Schema.optionalKey(ErrorClass)
  }).annotate({ identifier: "TurnError" })
)
/** @since 0.1.0 */
export type TurnError = typeof TurnError.Type

const outcomeBase = {
  turnId: TurnId,
  messageId: Schema.String,
  assistantMessageId: Schema.String,
  completedAt: Timestamp
}

/** A turn that completed. @since 0.1.0 */
export const CompletedOutcome = lazySchema(() =>
  Schema.Struct({
    status: Schema.Literal("completed"),
    reason: FinishReason,
    ...outcomeBase
  }).annotate({ identifier: "CompletedOutcome" })
)
/** A turn that failed. @since 0.1.0 */
export const FailedOutcome = lazySchema(() =>
  Schema.Struct({
    status: Schema.Literal("failed"),
    error: TurnError,
    ...outcomeBase
  }).annotate({ identifier: "FailedOutcome" })
)
/** A turn whose cancel was acknowledged, or whose process is gone. @since 0.1.0 */
export const CancelledOutcome = lazySchema(() =>
  Schema.Struct({
    status: Schema.Literal("cancelled"),
    reason: CancelReason,
    ...outcomeBase
  }).annotate({ identifier: "CancelledOutcome" })
)
/**
 * How a turn ended. Compare `assistantMessageId` with the admission's to know which prompt it answers (RT-152).
 *
 * @since 0.1.0
 */
export const TurnOutcome = lazySchema(() =>
  Schema.Union([CompletedOutcome, FailedOutcome, CancelledOutcome]).annotate({
    identifier: "TurnOutcome"
  })
)
/** @since 0.1.0 */
export type TurnOutcome = typeof TurnOutcome.Type

/** The upper bound of what a session may do without asking. @since 0.1.0 */
export const PermissionLevel = lazySchema(() =>
  Schema.Literals(["ask", "auto", "full"]).annotate({ identifier: "PermissionLevel" })
)
/** @since 0.1.0 */
export type PermissionLevel = typeof PermissionLevel.Type

/** A value, or the name of a secret that is read when a process starts and stored nowhere (RT-304). @since 0.1.0 */
export const SecretValue = lazySchema(() =>
  Schema.Union([Schema.String, Schema.Struct({ secret: Schema.String })]).annotate({
    identifier: "SecretValue"
  })
)
/** @since 0.1.0 */
export type SecretValue = typeof SecretValue.Type

/** A user's entry for an MCP server (section 12). @since 0.1.0 */
export const McpEntry = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literals(["stdio", "remote"]),
    command: Schema.optionalKey(Schema.String),
    args: Schema.optionalKey(Schema.Array(Schema.String)),
    env: Schema.optionalKey(Schema.Record(Schema.String, SecretValue)),
    url: Schema.optionalKey(Schema.String),
    headers: Schema.optionalKey(Schema.Record(Schema.String, SecretValue)),
    disabled: Schema.optionalKey(Schema.Boolean)
  }).annotate({ identifier: "McpEntry" })
)
/** @since 0.1.0 */
export type McpEntry = typeof McpEntry.Type

/** The MCP servers of a session: names of configured ones, or entries by name (D-39). @since 0.1.0 */
export const SessionMcp = lazySchema(() =>
  Schema.Union([Schema.Array(Schema.String), Schema.Record(Schema.String, McpEntry)]).annotate({
    identifier: "SessionMcp"
  })
)
/** @since 0.1.0 */
export type SessionMcp = typeof SessionMcp.Type

/**
 * What a session runs with (3.6). `instructions` and `group` never change (RT-046); `permissionCeiling`,
 * `permissionState` and `handoff` are the runtime's (RT-047).
 *
 * @since 0.1.0
 */
export const SessionConfig = lazySchema(() =>
  Schema.Struct({
    harness: HarnessRef,
    model: Schema.optionalKey(ModelRef),
    variant: Schema.optionalKey(Schema.String),
    agent: Schema.optionalKey(Schema.String),
    instructions: Schema.optionalKey(Schema.String),
    group: Schema.optionalKey(Schema.String),
    permissionMode: Schema.optionalKey(Schema.String),
    permissionCeiling: Schema.optionalKey(PermissionLevel),
    permissionState: Schema.optionalKey(Schema.Json),
    mcp: Schema.optionalKey(SessionMcp),
    handoff: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: "SessionConfig" })
)
/** @since 0.1.0 */
export type SessionConfig = typeof SessionConfig.Type

const change = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/**
 * A change of {@link SessionConfig}: an absent key keeps, null clears, a value replaces; `harness` is replaced whole
 * (RT-048).
 *
 * @since 0.1.0
 */
export const SessionConfigUpdate = lazySchema(() =>
  Schema.Struct({
    harness: Schema.optionalKey(HarnessRef),
    model: change(ModelRef),
    variant: change(Schema.String),
    agent: change(Schema.String),
    instructions: change(Schema.String),
    group: change(Schema.String),
    permissionMode: change(Schema.String),
    permissionCeiling: change(PermissionLevel),
    permissionState: change(Schema.Json),
    mcp: change(SessionMcp),
    handoff: change(Schema.Json)
  }).annotate({ identifier: "SessionConfigUpdate" })
)
/** @since 0.1.0 */
export type SessionConfigUpdate = typeof SessionConfigUpdate.Type

/**
 * The tie between a session and the harness's own conversation. `upstreamSessionId` is opaque; `pending` = minted by us
 * and never confirmed by the harness (HRN-006). `connectionId` is `access:id`.
 *
 * @since 0.1.0
 */
export const ExecutionBinding = lazySchema(() =>
  Schema.Struct({
    workspaceId: Schema.String,
    directory: Schema.String,
    sessionId: Schema.String,
    connectionId: Schema.String,
    upstreamSessionId: Schema.String,
    upstreamState: Schema.Literals(["pending", "confirmed"]),
    ownerKey: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "ExecutionBinding" })
)
/** @since 0.1.0 */
export type ExecutionBinding = typeof ExecutionBinding.Type

/** The opening of a session, before any provider id exists (3.6). @since 0.1.0 */
export const SessionStart = lazySchema(() =>
  Schema.Struct({
    sessionId: Schema.String,
    operationId: Schema.String,
    state: Schema.Literals(["starting", "created", "failed"]),
    upstreamSessionId: Schema.optionalKey(Schema.String),
    error: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "SessionStart" })
)
/** @since 0.1.0 */
export type SessionStart = typeof SessionStart.Type

/** Whether a session can run now; computed at read, never stored. @since 0.1.0 */
export const ExecutionAvailability = lazySchema(() =>
  Schema.Union([
    Schema.Struct({ state: Schema.Literal("available") }),
    Schema.Struct({ state: Schema.Literal("unavailable"), message: Schema.String }),
    Schema.Struct({ state: Schema.Literal("selection-required"), selection: Schema.Literal("harness") })
  ]).annotate({ identifier: "ExecutionAvailability" })
)
/** @since 0.1.0 */
export type ExecutionAvailability = typeof ExecutionAvailability.Type

/**
 * The session row (3.2). `status` and `phase` tell what is happening now; `lastTurn` tells how the last turn ended
 * (RT-153).
 *
 * @since 0.1.0
 */
export const Session = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    workspaceId: Schema.String,
    directory: Schema.String,
    harness: HarnessRef,
    title: Schema.optionalKey(Schema.String),
    titleSource: Schema.optionalKey(TitleSource),
    parentSessionId: Schema.optionalKey(Schema.String),
    rootSessionId: Schema.optionalKey(Schema.String),
    toolCallId: Schema.optionalKey(Schema.String),
    status: Schema.NullOr(Schema.Literals(["busy", "recovering", "error"])),
    phase: Schema.NullOr(SessionPhase),
    lastTurn: Schema.optionalKey(TurnOutcome),
    attention: Schema.Natural,
    queued: Schema.Natural,
    head: Cursor,
    config: SessionConfig,
    executionAvailability: ExecutionAvailability,
    commands: Schema.optionalKey(Schema.Array(Command)),
    tags: Schema.optionalKey(Schema.Array(Schema.String)),
    metadata: Schema.optionalKey(Schema.JsonObject),
    harnessPayload: Schema.optionalKey(Schema.Json),
    time: Schema.Struct({ created: Timestamp, updated: Timestamp, archived: Schema.optionalKey(Timestamp) })
  }).annotate({ identifier: "Session" })
)
/** @since 0.1.0 */
export type Session = typeof Session.Type

/** The state of a tool call in a transcript; `uncertain` = started, end unknown. @since 0.1.0 */
export const ToolState = lazySchema(() =>
  Schema.Union([
    Schema.Struct({ status: Schema.Literal("pending"), input: Schema.optionalKey(Schema.Json) }),
    Schema.Struct({ status: Schema.Literal("running"), input: Schema.Json, startedAt: Timestamp }),
    Schema.Struct({
      status: Schema.Literal("completed"),
      input: Schema.Json,
      output: Schema.Json,
      attachments: Schema.optionalKey(Schema.Array(Attachment)),
      startedAt: Timestamp,
      endedAt: Timestamp
    }),
    Schema.Struct({
      status: Schema.Literal("error"),
      input: Schema.Json,
      error: Schema.String,
      code: Schema.String,
      endedAt: Timestamp
    }),
    Schema.Struct({ status: Schema.Literal("uncertain"), input: Schema.Json, startedAt: Timestamp })
  ]).annotate({ identifier: "ToolState" })
)
/** @since 0.1.0 */
export type ToolState = typeof ToolState.Type

const part = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ id: Schema.String, messageId: Schema.String, type: Schema.Literal(type), ...fields })

/** One part of a message in a transcript (3.3). @since 0.1.0 */
export const MessagePart = lazySchema(() =>
  Schema.Union([
    part("text", {
      text: Schema.String,
      synthetic: Schema.optionalKey(Schema.Boolean),
      retracted: Schema.optionalKey(Schema.Boolean)
    }),
    part("reasoning", { text: Schema.String }),
    part("file", {
      mime: Schema.String,
      filename: Schema.optionalKey(Schema.String),
      url: Schema.optionalKey(Schema.String),
      artifactId: Schema.optionalKey(ArtifactId)
    }),
    part("tool", {
      callId: Schema.String,
      tool: Schema.String,
      display: Schema.optionalKey(ToolDisplay),
      state: ToolState
    }),
    part("plan", { markdown: Schema.String }),
    part("patch", { files: Schema.Array(FileChange) }),
    part("step-start", {}),
    part("step-finish", { reason: Schema.optionalKey(Schema.String), usage: Schema.optionalKey(TokenUsage) }),
    part("subtask", {
      prompt: Schema.String,
      description: Schema.String,
      agent: Schema.String,
      subagentKey: Schema.optionalKey(Schema.String)
    }),
    part("agent", { name: Schema.String }),
    part("retry", {
      attempt: Schema.Natural,
      error: Schema.String,
      delayMs: Schema.optionalKey(Schema.Natural)
    }),
    part("compaction", { auto: Schema.Boolean, summary: Schema.optionalKey(Schema.String) }),
    part("handoff", { from: HarnessRef, to: HarnessRef })
  ]).annotate({ identifier: "MessagePart" })
)
/** @since 0.1.0 */
export type MessagePart = typeof MessagePart.Type

/** A message of the transcript. `time.completed` is no proof that a turn ended. @since 0.1.0 */
export const Message = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    sessionId: Schema.String,
    role: Schema.Literals(["user", "assistant"]),
    turnId: Schema.optionalKey(TurnId),
    parentMessageId: Schema.optionalKey(Schema.String),
    author: Schema.optionalKey(Author),
    model: Schema.optionalKey(ModelRef),
    parts: Schema.Array(MessagePart),
    usage: Schema.optionalKey(TokenUsage),
    error: Schema.optionalKey(TurnError),
    time: Schema.Struct({ created: Timestamp, completed: Schema.optionalKey(Timestamp) }),
    harnessPayload: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: "Message" })
)
/** @since 0.1.0 */
export type Message = typeof Message.Type

/** How a waiting message will be given to the harness. @since 0.1.0 */
export const QueueDelivery = lazySchema(() =>
  Schema.Literals(["queue", "steer"]).annotate({ identifier: "QueueDelivery" })
)
/** @since 0.1.0 */
export type QueueDelivery = typeof QueueDelivery.Type

/** Why a queue waits for a release (RT-112). @since 0.1.0 */
export const HeldReason = lazySchema(() =>
  Schema.Literals(["turn_failed", "turn_cancelled"]).annotate({ identifier: "HeldReason" })
)
/** @since 0.1.0 */
export type HeldReason = typeof HeldReason.Type

/** A waiting message as events show it; `preview` has at most 200 characters. @since 0.1.0 */
export const QueueItem = lazySchema(() =>
  Schema.Struct({
    messageId: Schema.String,
    position: Schema.Natural,
    preview: Schema.String,
    author: Schema.optionalKey(Author),
    delivery: QueueDelivery
  }).annotate({ identifier: "QueueItem" })
)
/** @since 0.1.0 */
export type QueueItem = typeof QueueItem.Type

/** A waiting message (3.5). @since 0.1.0 */
export const QueueEntry = lazySchema(() =>
  Schema.Struct({
    messageId: Schema.String,
    position: Schema.Natural,
    preview: Schema.String,
    parts: Schema.Array(PromptPart),
    author: Schema.optionalKey(Author),
    createdAt: Timestamp,
    delivery: QueueDelivery
  }).annotate({ identifier: "QueueEntry" })
)
/** @since 0.1.0 */
export type QueueEntry = typeof QueueEntry.Type

/** The queue of a session; `revision` grows with every change (RT-113). @since 0.1.0 */
export const QueueList = lazySchema(() =>
  Schema.Struct({
    entries: Schema.Array(QueueEntry),
    revision: Schema.Natural,
    held: Schema.Boolean,
    heldReason: Schema.optionalKey(HeldReason)
  }).annotate({ identifier: "QueueList" })
)
/** @since 0.1.0 */
export type QueueList = typeof QueueList.Type

/** What is known of a submission; kept as long as the session (RT-091). @since 0.1.0 */
export const Receipt = lazySchema(() =>
  Schema.Struct({
    sessionId: Schema.String,
    messageId: Schema.String,
    digest: Schema.String,
    state: Schema.Literals(["admitted", "queued", "steering", "steered", "uncertain", "removed", "settled"]),
    turnId: Schema.optionalKey(TurnId),
    assistantMessageId: Schema.String,
    startCursor: Cursor,
    endCursor: Schema.optionalKey(Cursor),
    outcome: Schema.optionalKey(TurnOutcome),
    createdAt: Timestamp
  }).annotate({ identifier: "Receipt" })
)
/** @since 0.1.0 */
export type Receipt = typeof Receipt.Type

/** A goal of a session; an absent count is unknown and stays absent (3.5). @since 0.1.0 */
export const Goal = lazySchema(() =>
  Schema.Struct({
    sessionId: Schema.String,
    objective: Schema.String,
    status: Schema.Literals(["active", "paused", "blocked", "limited", "complete"]),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    tokenBudget: Schema.optionalKey(Schema.Natural),
    tokensUsed: Schema.optionalKey(Schema.Natural),
    timeUsedSeconds: Schema.optionalKey(Schema.Finite),
    iteration: Schema.optionalKey(Schema.Natural),
    lastReason: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "Goal" })
)
/** @since 0.1.0 */
export type Goal = typeof Goal.Type
