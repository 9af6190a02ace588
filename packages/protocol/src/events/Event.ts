/**
 * The canonical event table (6.2): one schema per event type, what is true of each type, and the envelope of 6.1.
 *
 * `eventTable` is the one list. The union, the types and the predicates come from it, so that a new row reaches
 * everything at once.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { ArtifactId, Cursor, InteractionId, TurnId } from "../Ids.ts"
import {
  ArtifactRef,
  Attachment,
  Author,
  Command,
  ConfigOption,
  Cost,
  Diagnostic,
  FileLocation,
  HarnessRef,
  ModelRef,
  PromptPart,
  Timestamp,
  Todo,
  ToolDisplay,
  ToolKind,
  UsageObservation
} from "./Content.ts"
import {
  Answers,
  Category,
  Decision,
  InteractionKind,
  Origin,
  PermissionDetails,
  PermissionOption,
  Questions,
  WithdrawalReason
} from "./Interaction.ts"
import {
  CancelReason,
  ErrorClass,
  FinishReason,
  Goal,
  HeldReason,
  QueueItem,
  SessionConfig,
  SessionPhase,
  TitleSource,
  TurnFailureCode,
  TurnOrigin
} from "./Session.ts"
import { lazySchema } from "../internal/Lazy.ts"

/**
 * The version of the event contract, in every envelope.
 *
 * @since 0.1.0
 */
export const EVENT_CONTRACT_VERSION = 1 as const

/**
 * Fields allowed on every payload: where the event came from, the native frame (`raw`, only with `captureRaw`, at most
 * 16 KiB, redacted) and what its translation noticed.
 *
 * @since 0.1.0
 */
export const payloadMeta = {
  harness: Schema.optionalKey(HarnessRef),
  threadId: Schema.optionalKey(Schema.String),
  raw: Schema.optionalKey(Schema.Json),
  diagnostics: Schema.optionalKey(Schema.Array(Diagnostic))
} as const

type Meta = typeof payloadMeta
type Merge<T> = { readonly [K in keyof T]: T[K] }
type EventFields<Type extends string, Fields> = Merge<
  { readonly type: Schema.Literal<Type> } & Fields & Omit<Meta, keyof Fields>
>

const pascal = (type: string): string => type.replace(/(?:^|-)([a-z])/gu, (_, letter: string) => letter.toUpperCase())

const event = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: () => Fields
): Schema.Struct<EventFields<Type, Fields>> =>
  lazySchema(
    () =>
      Schema.Struct({ type: Schema.Literal(type), ...payloadMeta, ...fields() }).annotate({
        identifier: `${pascal(type)}Event`
      }) as unknown as Schema.Struct<EventFields<Type, Fields>>
  )

const optional = Schema.optionalKey
const text = Schema.String
const toolExtras = { display: optional(ToolDisplay), metadata: optional(Schema.JsonObject) }

// Session

/** Always cursor 1 of a journal. @since 0.1.0 */
export const SessionCreatedEvent = event("session-created", () => ({
  harness: HarnessRef,
  title: optional(text),
  model: optional(ModelRef),
  parentSessionId: optional(text),
  toolCallId: optional(text)
}))
/** Liveness. The row stores `idle` as null. @since 0.1.0 */
export const SessionStatusEvent = event("session-status", () => ({
  status: Schema.Literals(["busy", "idle", "error", "recovering"]),
  phase: optional(SessionPhase),
  message: optional(text)
}))
/** A new title. @since 0.1.0 */
export const SessionTitleEvent = event("session-title", () => ({ title: text, titleSource: TitleSource }))
/** A change of the session row. @since 0.1.0 */
export const SessionInfoEvent = event("session-info", () => ({
  title: optional(text),
  updatedAt: optional(Timestamp),
  parentSessionId: optional(text),
  tags: optional(Schema.Array(text)),
  metadata: optional(Schema.JsonObject),
  archived: optional(Schema.Boolean)
}))
/** The agent of the session changed. @since 0.1.0 */
export const SessionAgentEvent = event("session-agent", () => ({ agentId: text }))
/** The session moved to another harness (RT-061). @since 0.1.0 */
export const SessionHandoffEvent = event("session-handoff", () => ({
  from: HarnessRef,
  to: HarnessRef,
  state: Schema.Literal("committed"),
  reason: optional(text)
}))
/** What the model sees is being shortened. @since 0.1.0 */
export const SessionCompactionEvent = event("session-compaction", () => ({
  phase: Schema.Literals(["started", "completed"]),
  reason: optional(text),
  summary: optional(text),
  tokensBefore: optional(Schema.Natural),
  tokensAfter: optional(Schema.Natural),
  metadata: optional(Schema.JsonObject)
}))
/** A fresh context in the same session. @since 0.1.0 */
export const ConversationResetEvent = event("conversation-reset", () => ({ trigger: text }))
/** The session was closed or deleted. @since 0.1.0 */
export const SessionClosedEvent = event("session-closed", () => ({ reason: Schema.Literals(["closed", "deleted"]) }))
/** Options or config changed; both lists are complete. @since 0.1.0 */
export const ConfigUpdateEvent = event("config-update", () => ({
  options: optional(Schema.Array(ConfigOption)),
  config: optional(SessionConfig)
}))
/** The commands a harness advertises; the list is complete. @since 0.1.0 */
export const AvailableCommandsUpdateEvent = event("available-commands-update", () => ({
  commands: Schema.Array(Command)
}))
// Turn

/** A message of the user; `uncertain` = a steer whose answer was lost. @since 0.1.0 */
export const UserMessageEvent = event("user-message", () => ({
  messageId: text,
  parts: Schema.Array(PromptPart),
  author: optional(Author),
  delivery: Schema.Literals(["start", "queue", "steer"]),
  uncertain: optional(Schema.Boolean)
}))
/** A turn began. @since 0.1.0 */
export const TurnStartEvent = event("turn-start", () => ({
  messageId: text,
  assistantMessageId: text,
  origin: TurnOrigin,
  parentMessageId: optional(text)
}))
/** The provider took this message in. @since 0.1.0 */
export const InputIncorporatedEvent = event("input-incorporated", () => ({ messageId: text }))
/** The next model round. @since 0.1.0 */
export const StepStartEvent = event("step-start", () => ({ newMessageId: text }))
/** A model request was sent; counts one round. @since 0.1.0 */
export const ResponseStartEvent = event("response-start", () => ({
  responseId: text,
  attempt: optional(Schema.Natural)
}))
/** What these responses said is withdrawn; the content stays, marked. @since 0.1.0 */
export const ResponseRetractedEvent = event("response-retracted", () => ({
  responseIds: Schema.Array(text),
  reason: text
}))
/** The whole queue after a change (RT-113). @since 0.1.0 */
export const QueueUpdateEvent = event("queue-update", () => ({
  entries: Schema.Array(QueueItem),
  revision: Schema.Natural,
  held: Schema.Boolean,
  heldReason: optional(HeldReason)
}))
/** Terminal: the turn completed. `finalText` is the text of the last text part. @since 0.1.0 */
export const FinishEvent = event("finish", () => ({
  sessionId: text,
  assistantMessageId: text,
  reason: FinishReason,
  finalText: optional(text)
}))
/** Terminal: the turn was cancelled; never inferred from an idle status (RT-160). @since 0.1.0 */
export const CancelledEvent = event("cancelled", () => ({
  sessionId: text,
  assistantMessageId: text,
  reason: CancelReason
}))
/** Terminal: the turn failed. @since 0.1.0 */
export const ErrorEvent = event("error", () => ({
  error: text,
  code: TurnFailureCode,
  errorClass: optional(ErrorClass),
  assistantMessageId: text,
  account: optional(Schema.Json),
  process: optional(
    Schema.Struct({ code: optional(Schema.Int), signal: optional(text), stderrTail: optional(text) }).annotate({
      identifier: "ProcessEnd"
    })
  )
}))
// Content

/** Text of the answer; joined before it is journaled (6.4). @since 0.1.0 */
export const TextDeltaEvent = event("text-delta", () => ({ delta: text, messageId: text, partId: text }))
/** Text of the model's reasoning. @since 0.1.0 */
export const ThinkingDeltaEvent = event("thinking-delta", () => ({ delta: text, messageId: text, partId: text }))
/** Closes a part with its whole, authoritative text (RT-206, RT-207). @since 0.1.0 */
export const TextEndEvent = event("text-end", () => ({
  messageId: text,
  partId: text,
  channel: Schema.Literals(["text", "thinking"]),
  text
}))
const media = { mimeType: text, artifactId: ArtifactId }
/** An image of the answer. @since 0.1.0 */
export const ImageDeltaEvent = event("image-delta", () => media)
/** Sound of the answer. @since 0.1.0 */
export const AudioDeltaEvent = event("audio-delta", () => media)
/** Sound of the reasoning. @since 0.1.0 */
export const ThinkingAudioDeltaEvent = event("thinking-audio-delta", () => media)
const link = { uri: text, name: text, mimeType: optional(text), title: optional(text) }
/** A link in the answer. @since 0.1.0 */
export const ResourceLinkDeltaEvent = event("resource-link-delta", () => link)
/** A link in the reasoning. @since 0.1.0 */
export const ThinkingResourceLinkDeltaEvent = event("thinking-resource-link-delta", () => link)
/** An embedded resource, in the harness's own form. @since 0.1.0 */
export const ResourceDeltaEvent = event("resource-delta", () => ({
  resource: Schema.Json,
  channel: Schema.Literals(["assistant", "thinking"])
}))
/** Text of a plan that is being proposed. @since 0.1.0 */
export const ProposedPlanDeltaEvent = event("proposed-plan-delta", () => ({ delta: text }))
/** A proposed plan, whole. @since 0.1.0 */
export const ProposedPlanCompleteEvent = event("proposed-plan-complete", () => ({ planMarkdown: text }))
// Tools

/** A tool call; a repeat updates it (HRN-014). @since 0.1.0 */
export const ToolStartEvent = event("tool-start", () => ({
  toolCallId: text,
  toolName: text,
  kind: optional(ToolKind),
  ...toolExtras
}))
/** The input of a call. @since 0.1.0 */
export const ToolInputEvent = event("tool-input", () => ({ toolCallId: text, input: Schema.Json, ...toolExtras }))
/** The state of a call; `uncertain` = it started and its end is not known. @since 0.1.0 */
export const ToolStatusEvent = event("tool-status", () => ({
  toolCallId: text,
  status: Schema.Literals(["pending", "running", "completed", "failed", "uncertain"]),
  ...toolExtras
}))
/** What a running call shows; replaces what it showed before. @since 0.1.0 */
export const ToolContentEvent = event("tool-content", () => ({ toolCallId: text, content: Schema.Json, ...toolExtras }))
/** Output of a running call: its first 64 KiB, then one event with `truncated`. @since 0.1.0 */
export const ToolOutputDeltaEvent = event("tool-output-delta", () => ({
  toolCallId: text,
  delta: text,
  stream: Schema.Literals(["stdout", "stderr", "combined"]),
  truncated: optional(Schema.Boolean)
}))
/** Ends a call with its output. @since 0.1.0 */
export const ToolOutputEvent = event("tool-output", () => ({
  toolCallId: text,
  output: Schema.Json,
  attachments: optional(Schema.Array(Attachment)),
  ...toolExtras
}))
/** Ends a call without output. @since 0.1.0 */
export const ToolErrorEvent = event("tool-error", () => ({
  toolCallId: text,
  error: text,
  code: optional(Schema.Literals(["failed", "denied", "cancelled", "timeout"])),
  ...toolExtras
}))
/** The places a call works on. @since 0.1.0 */
export const ToolLocationEvent = event("tool-location", () => ({
  toolCallId: text,
  locations: Schema.Array(FileLocation)
}))
/** The terminal a call runs in. @since 0.1.0 */
export const ToolTerminalEvent = event("tool-terminal", () => ({ toolCallId: text, terminalId: text }))
/** A changed file; without `oldText` it is new. @since 0.1.0 */
export const FileDiffEvent = event("file-diff", () => ({
  toolCallId: optional(text),
  path: text,
  oldText: optional(text),
  newText: text
}))
// Interactions

/** The harness asks whether it may do something. @since 0.1.0 */
export const PermissionRequestEvent = event("permission-request", () => ({
  requestId: InteractionId,
  tool: text,
  title: optional(text),
  arguments: optional(Schema.Json),
  paths: Schema.Array(text),
  patterns: optional(Schema.Array(text)),
  toolCallId: optional(text),
  category: optional(Category),
  details: optional(PermissionDetails),
  options: Schema.Array(PermissionOption)
}))
/** The decision, committed before the harness learns it (RT-250). @since 0.1.0 */
export const PermissionResolvedEvent = event("permission-resolved", () => ({
  requestId: InteractionId,
  tool: text,
  toolCallId: optional(text),
  decision: Decision,
  optionId: optional(text),
  note: optional(text),
  by: optional(text),
  origin: Origin
}))
/** The harness asks a person something. @since 0.1.0 */
export const QuestionEvent = event("question", () => ({
  requestId: InteractionId,
  questions: Questions,
  toolCallId: optional(text)
}))
/** The answers; a secret one is written as `"[secret]"` (RT-260). @since 0.1.0 */
export const QuestionAnsweredEvent = event("question-answered", () => ({
  requestId: InteractionId,
  answers: Answers,
  by: optional(text),
  origin: Origin
}))
/** A person declined to answer. @since 0.1.0 */
export const QuestionRejectedEvent = event("question-rejected", () => ({
  requestId: InteractionId,
  by: optional(text),
  origin: Origin
}))
/** A request ended without an answer. @since 0.1.0 */
export const InteractionWithdrawnEvent = event("interaction-withdrawn", () => ({
  requestId: InteractionId,
  kind: InteractionKind,
  reason: WithdrawalReason
}))
// Plans, agents, background

/** The whole todo list. @since 0.1.0 */
export const TodoUpdateEvent = event("todo-update", () => ({ todos: Schema.Array(Todo) }))
/** What is known of a subagent (section 9). @since 0.1.0 */
export const SubagentUpdatedEvent = event("subagent-updated", () => ({
  subagentKey: text,
  revision: Schema.Natural,
  toolCallId: optional(text),
  toolCallRole: optional(Schema.Literals(["spawn", "interaction"])),
  mode: optional(Schema.Literals(["foreground", "background"])),
  status: optional(Schema.Literals(["pending", "running", "paused", "interrupted", "completed", "failed", "killed"])),
  label: optional(text),
  subagentType: optional(text),
  description: optional(text),
  providerId: optional(text),
  providerKind: optional(text),
  childSessionId: optional(text),
  transcript: optional(
    Schema.Struct({ kind: Schema.Literals(["live", "file", "messages", "none"]), ref: optional(text) }).annotate({
      identifier: "SubagentTranscript"
    })
  ),
  attention: optional(Schema.Natural),
  wake: optional(Schema.Literals(["pending", "delivered"]))
}))
/** A message between agents. @since 0.1.0 */
export const AgentMessageEvent = event("agent-message", () => ({
  eventId: text,
  sender: text,
  senderName: optional(text),
  message: text,
  senderTaskId: optional(text),
  sourceSessionId: optional(text)
}))
/** All background work of a session; outside any turn. @since 0.1.0 */
export const BackgroundWorkEvent = event("background-work", () => ({
  counts: Schema.Struct({ running: Schema.Natural, waiting: Schema.Natural, done: Schema.Natural }),
  items: Schema.Array(Schema.Struct({ id: text, label: text, status: text, sessionId: optional(text) }))
}))
/** The whole team, in the lead's journal. @since 0.1.0 */
export const TeamUpdateEvent = event("team-update", () => ({
  teamId: text,
  members: Schema.Array(
    Schema.Struct({
      sessionId: text,
      agent: text,
      status: Schema.Literals(["idle", "running", "waiting", "closed"])
    })
  ),
  ended: Schema.Boolean
}))
/** The whole board; `open` counts items that are neither done nor canceled. @since 0.1.0 */
export const BoardUpdateEvent = event("board-update", () => ({
  teamId: text,
  revision: Schema.Natural,
  open: Schema.Natural,
  truncated: Schema.Boolean,
  items: Schema.Array(
    Schema.Struct({
      id: text,
      title: text,
      status: Schema.Literals(["open", "in_progress", "blocked", "review", "done", "canceled"]),
      assignee: optional(text),
      note: optional(text)
    })
  )
}))
/** All timers of a session; `nextRunAt` is UTC in Unix seconds. @since 0.1.0 */
export const ScheduleUpdateEvent = event("schedule-update", () => ({
  timers: Schema.Array(Schema.Struct({ id: text, nextRunAt: Schema.Int, remainingRuns: Schema.NullOr(Schema.Natural) }))
}))
/** A memory entry changed; its content is not told. @since 0.1.0 */
export const MemoryUpdateEvent = event("memory-update", () => ({
  operation: Schema.Literals(["added", "updated", "removed"]),
  memoryId: text,
  scope: text
}))
// Goals

/** The goal of a session, whole. @since 0.1.0 */
export const GoalUpdatedEvent = event("goal-updated", () => ({ sessionId: text, goal: Goal }))
/** The session has no goal any more. @since 0.1.0 */
export const GoalClearedEvent = event("goal-cleared", () => ({ sessionId: text }))
// Operations

/** Something worth knowing that changes no state. @since 0.1.0 */
export const HarnessNoticeEvent = event("harness-notice", () => ({
  code: text,
  message: text,
  severity: optional(Schema.Literals(["debug", "info", "warn", "error"])),
  details: optional(Schema.Json),
  eventId: optional(text)
}))
/** The provider is asked again. @since 0.1.0 */
export const SessionRetryEvent = event("session-retry", () => ({
  message: text,
  attempt: optional(Schema.Natural),
  delayMs: optional(Schema.Natural)
}))
/** Whether the harness is signed in. @since 0.1.0 */
export const AuthStatusEvent = event("auth-status", () => ({
  status: Schema.Literals(["authenticated", "unauthenticated", "unknown"]),
  authMode: optional(text),
  planType: optional(text),
  metadata: optional(Schema.JsonObject)
}))
/** What is left of a provider's limit. @since 0.1.0 */
export const RateLimitEvent = event("rate-limit", () => ({
  status: Schema.Literals(["ok", "limited"]),
  usedPercent: optional(Schema.Finite),
  resetsAt: optional(Timestamp),
  windowDurationMins: optional(Schema.Finite),
  limitId: optional(text),
  limitName: optional(text),
  reason: optional(text),
  metadata: optional(Schema.JsonObject)
}))
/** The state of an MCP server. @since 0.1.0 */
export const McpServerStatusEvent = event("mcp-server-status", () => ({
  serverName: text,
  status: Schema.Literals(["starting", "ready", "failed", "cancelled"]),
  error: optional(text)
}))
/** A child process started or exited. @since 0.1.0 */
export const ProcessStatusEvent = event("process-status", () => ({
  processId: text,
  role: text,
  state: Schema.Literals(["started", "exited"]),
  code: optional(Schema.Int),
  signal: optional(text),
  stderrTail: optional(text)
}))
/** Tokens and cost, as the harness reported them. @since 0.1.0 */
export const UsageEvent = event("usage", () => ({
  contextSize: optional(Schema.Natural),
  contextUsed: optional(Schema.Natural),
  observation: optional(UsageObservation),
  cost: optional(Cost)
}))
/** A condition in the runtime or a driver that is no failure of the turn. @since 0.1.0 */
export const DiagnosticEvent = event("diagnostic", () => ({ diagnostic: Diagnostic }))
/**
 * What is true of an event type.
 *
 * @since 0.1.0
 */
export interface EventTraits {
  /** It ends a turn; exactly one per turn (RT-140). */
  readonly terminal: boolean
  /** It may be joined with its neighbours before it is journaled (6.4). */
  readonly delta: boolean
  /** A harness may emit it (10.1); the others are the runtime's own. */
  readonly harness: boolean
}

const plain = { terminal: false, delta: false, harness: true } as const
const terminal = { terminal: true, delta: false, harness: true } as const
const delta = { terminal: false, delta: true, harness: true } as const
const runtimeOnly = { terminal: false, delta: false, harness: false } as const

const row = <S extends Schema.Top, const T extends EventTraits>(schema: S, traits: T) => ({ schema, ...traits })

/**
 * The canonical event table (6.2): schema and traits of every type.
 *
 * @since 0.1.0
 */
export const eventTable = {
  "session-created": row(SessionCreatedEvent, runtimeOnly),
  "session-status": row(SessionStatusEvent, plain),
  "session-title": row(SessionTitleEvent, plain),
  "session-info": row(SessionInfoEvent, plain),
  "session-agent": row(SessionAgentEvent, plain),
  "session-handoff": row(SessionHandoffEvent, runtimeOnly),
  "session-compaction": row(SessionCompactionEvent, plain),
  "conversation-reset": row(ConversationResetEvent, plain),
  "session-closed": row(SessionClosedEvent, plain),
  "config-update": row(ConfigUpdateEvent, plain),
  "available-commands-update": row(AvailableCommandsUpdateEvent, plain),
  "user-message": row(UserMessageEvent, runtimeOnly),
  "turn-start": row(TurnStartEvent, runtimeOnly),
  "input-incorporated": row(InputIncorporatedEvent, plain),
  "step-start": row(StepStartEvent, plain),
  "response-start": row(ResponseStartEvent, plain),
  "response-retracted": row(ResponseRetractedEvent, plain),
  "queue-update": row(QueueUpdateEvent, runtimeOnly),
  finish: row(FinishEvent, terminal),
  cancelled: row(CancelledEvent, terminal),
  error: row(ErrorEvent, terminal),
  "text-delta": row(TextDeltaEvent, delta),
  "thinking-delta": row(ThinkingDeltaEvent, delta),
  "text-end": row(TextEndEvent, plain),
  "image-delta": row(ImageDeltaEvent, plain),
  "audio-delta": row(AudioDeltaEvent, plain),
  "thinking-audio-delta": row(ThinkingAudioDeltaEvent, plain),
  "resource-link-delta": row(ResourceLinkDeltaEvent, plain),
  "thinking-resource-link-delta": row(ThinkingResourceLinkDeltaEvent, plain),
  "resource-delta": row(ResourceDeltaEvent, plain),
  "proposed-plan-delta": row(ProposedPlanDeltaEvent, plain),
  "proposed-plan-complete": row(ProposedPlanCompleteEvent, plain),
  "tool-start": row(ToolStartEvent, plain),
  "tool-input": row(ToolInputEvent, plain),
  "tool-status": row(ToolStatusEvent, plain),
  "tool-content": row(ToolContentEvent, plain),
  "tool-output-delta": row(ToolOutputDeltaEvent, delta),
  "tool-output": row(ToolOutputEvent, plain),
  "tool-error": row(ToolErrorEvent, plain),
  "tool-location": row(ToolLocationEvent, plain),
  "tool-terminal": row(ToolTerminalEvent, plain),
  "file-diff": row(FileDiffEvent, plain),
  "permission-request": row(PermissionRequestEvent, plain),
  "permission-resolved": row(PermissionResolvedEvent, runtimeOnly),
  question: row(QuestionEvent, plain),
  "question-answered": row(QuestionAnsweredEvent, runtimeOnly),
  "question-rejected": row(QuestionRejectedEvent, runtimeOnly),
  "interaction-withdrawn": row(InteractionWithdrawnEvent, runtimeOnly),
  "todo-update": row(TodoUpdateEvent, plain),
  "subagent-updated": row(SubagentUpdatedEvent, plain),
  "agent-message": row(AgentMessageEvent, plain),
  "background-work": row(BackgroundWorkEvent, plain),
  "team-update": row(TeamUpdateEvent, plain),
  "board-update": row(BoardUpdateEvent, plain),
  "schedule-update": row(ScheduleUpdateEvent, plain),
  "memory-update": row(MemoryUpdateEvent, plain),
  "goal-updated": row(GoalUpdatedEvent, plain),
  "goal-cleared": row(GoalClearedEvent, plain),
  "harness-notice": row(HarnessNoticeEvent, plain),
  "session-retry": row(SessionRetryEvent, plain),
  "auth-status": row(AuthStatusEvent, plain),
  "rate-limit": row(RateLimitEvent, plain),
  "mcp-server-status": row(McpServerStatusEvent, plain),
  "process-status": row(ProcessStatusEvent, plain),
  usage: row(UsageEvent, plain),
  diagnostic: row(DiagnosticEvent, plain)
} as const

type Table = typeof eventTable

/** The name of an event type. @since 0.1.0 */
export type EventType = keyof Table

/** The payload of one event type. @since 0.1.0 */
export type EventOf<Type extends EventType> = Table[Type]["schema"]["Type"]

/** Any payload of the canonical table. @since 0.1.0 */
export type EventPayload = { readonly [Type in EventType]: EventOf<Type> }[EventType]

type TypesWith<Trait extends keyof EventTraits> = {
  readonly [Type in EventType]: Table[Type][Trait] extends true ? Type : never
}[EventType]

/** `finish`, `cancelled` or `error`. @since 0.1.0 */
export type TerminalEventType = TypesWith<"terminal">
/** The types that are joined before they are journaled. @since 0.1.0 */
export type DeltaEventType = TypesWith<"delta">
/** The types a harness may emit. @since 0.1.0 */
export type HarnessEventType = TypesWith<"harness">
/** A payload that ends a turn. @since 0.1.0 */
export type TerminalEvent = EventOf<TerminalEventType>
/** A payload that is joined before it is journaled. @since 0.1.0 */
export type DeltaEvent = EventOf<DeltaEventType>
/** A payload that a harness may emit (10.1). @since 0.1.0 */
export type HarnessEvent = EventOf<HarnessEventType>

/** All event types, in the order of the table. @since 0.1.0 */
export const eventTypes = Object.keys(eventTable) as ReadonlyArray<EventType>

/** The schema of each event type. @since 0.1.0 */
export const eventSchemas = Object.fromEntries(
  eventTypes.map((type) => [type, eventTable[type].schema])
) as unknown as { readonly [Type in EventType]: Table[Type]["schema"] }

const schemasWhere = (keep: (type: EventType) => boolean) =>
  eventTypes.filter(keep).map((type) => eventTable[type].schema) as ReadonlyArray<unknown> as ReadonlyArray<
    Schema.Codec<EventPayload>
  >

/** Any payload of the canonical table. @since 0.1.0 */
export const EventPayload: Schema.Codec<EventPayload> = lazySchema(() =>
  Schema.Union(schemasWhere(() => true)).annotate({
    identifier: "EventPayload"
  })
)
/** A payload that a harness may emit. @since 0.1.0 */
export const HarnessEvent: Schema.Codec<HarnessEvent> = lazySchema(
  () =>
    Schema.Union(schemasWhere((type) => eventTable[type].harness)).annotate({
      identifier: "HarnessEvent"
    }) as unknown as Schema.Codec<HarnessEvent>
)
/** Whether a string names a type of the table. @since 0.1.0 */
export const isEventType = (type: string): type is EventType => Object.hasOwn(eventTable, type)

/** Whether a type ends a turn. @since 0.1.0 */
export const isTerminalType = (type: string): type is TerminalEventType =>
  type === "finish" || type === "cancelled" || type === "error"

/** Whether a payload ends a turn. @since 0.1.0 */
export const isTerminal = (payload: EventPayload): payload is TerminalEvent => isTerminalType(payload.type)

/** Whether a payload is joined with its neighbours before it is journaled. @since 0.1.0 */
export const isDelta = (payload: EventPayload): payload is DeltaEvent => eventTable[payload.type].delta

/** Whether a harness may emit this payload. @since 0.1.0 */
export const isHarnessEvent = (payload: EventPayload): payload is HarnessEvent => eventTable[payload.type].harness

const place = { sessionId: text, workspaceId: text, directory: text }

const envelopeRest = {
  at: Timestamp,
  turnId: optional(TurnId),
  afterTurn: optional(TurnId),
  parentSessionId: optional(text),
  contractVersion: Schema.Literal(EVENT_CONTRACT_VERSION),
  payload: EventPayload,
  artifacts: optional(Schema.Array(ArtifactRef))
}

/**
 * A journaled event (6.1). `cursor` is its number in the session's journal; `turnId` the turn it belongs to;
 * `afterTurn` the turn after whose end it arrived (RT-146).
 *
 * @since 0.1.0
 */
export const Envelope = lazySchema(() =>
  Schema.Struct({ ...place, cursor: Cursor, ...envelopeRest }).annotate({
    identifier: "Envelope"
  })
)
/** @since 0.1.0 */
export type Envelope = typeof Envelope.Type

/** Codes of control notices (7.2). @since 0.1.0 */
export const controlNoticeCodes = [
  "runtime.subscription_synced",
  "runtime.subscription_overflow",
  "runtime.subscription_terminated"
] as const
/** @since 0.1.0 */
export type ControlNoticeCode = (typeof controlNoticeCodes)[number]

/**
 * A control notice of a subscription (7.2): an envelope without cursor that is never journaled. Its details are
 * `{cursors}`, `{bufferSize, resumeAfter}` or `{reason}`. A subscription over several sessions leaves the place out.
 *
 * @since 0.1.0
 */
export const ControlNotice = lazySchema(() =>
  Schema.Struct({
    sessionId: optional(text),
    workspaceId: optional(text),
    directory: optional(text),
    at: Timestamp,
    contractVersion: Schema.Literal(EVENT_CONTRACT_VERSION),
    payload: HarnessNoticeEvent
  }).annotate({ identifier: "ControlNotice" })
)
/** @since 0.1.0 */
export type ControlNotice = typeof ControlNotice.Type
