/**
 * The rows a store keeps, as values. They mirror the tables of the store schema one to one, so that every
 * store (memory, SQLite, PostgreSQL) holds the same truth in its own form.
 *
 * Times are milliseconds since the epoch; `Session` and the other public rows are made from these by the runtime.
 */
import type {
  ArtifactRef,
  Author,
  Category,
  Command,
  ConfigOption,
  EventPayload,
  ExecutionBinding,
  MessagePart,
  ModelRef,
  PermissionDetails,
  PermissionOption,
  PromptInput,
  PromptPart,
  Question,
  Resolution,
  SessionConfig,
  SessionStart,
  TitleSource,
  TokenUsage,
  TurnError,
  TurnOrigin,
  TurnOutcome,
  Withdrawal
} from "@tackroom/protocol/events"
import type { Schema } from "effect"

/** One session (`tr_session`). `head` is the last cursor, `fence` the highest fencing token ever given out. */
export interface SessionRow {
  readonly id: string
  readonly workspaceId: string
  readonly directory: string
  readonly harnessId: string
  readonly access: "native" | "acp" | "connection"
  readonly parentId: string | null
  readonly rootId: string
  readonly toolCallId: string | null
  readonly title: string | null
  readonly titleSource: TitleSource | null
  readonly status: "busy" | "recovering" | "error" | null
  readonly phase: "starting" | "running" | "waiting" | "cancelling" | null
  readonly lastTurn: TurnOutcome | null
  readonly config: SessionConfig
  readonly metadata: unknown
  readonly tags: ReadonlyArray<string>
  readonly harnessPayload: unknown
  /** Last advertised commands and configuration options, complete lists. */
  readonly commands: Advertised | null
  readonly head: number
  readonly fence: number
  readonly owner: string | null
  readonly queueRevision: number
  readonly queueHeld: "turn_failed" | "turn_cancelled" | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly archivedAt: number | null
  readonly closedAt: number | null
  /**
   * Only in a listing: a column of this row does not decode, and holds its empty value here (RT-053). Reading the row
   * itself fails with `RuntimeStoreCorruptRow`.
   */
  readonly corrupt?: string
}

/** What a harness last advertised for a session; each list is complete. */
export interface Advertised {
  readonly commands?: ReadonlyArray<Command>
  readonly options?: ReadonlyArray<ConfigOption>
}

export type TurnState = "admitted" | "starting" | "running" | "waiting" | "cancelling" | "recovering" | "settled"

/** One turn (`tr_turn`). `handedOver` is set, and committed, before the driver sees the prompt (RT-171). */
export interface TurnRow {
  readonly id: string
  readonly sessionId: string
  readonly messageId: string
  readonly assistantId: string
  readonly origin: TurnOrigin
  readonly state: TurnState
  readonly handedOver: boolean
  readonly fence: number
  readonly outcome: TurnOutcome | null
  readonly startSeq: number
  readonly endSeq: number | null
  /** The uncut prompt, needed to run an admitted turn after a restart (RT-213). */
  readonly prompt: PromptInput
  /** How often recovery took this turn up without a new event of its own (RUN-523). */
  readonly recoveries: number
  readonly cancelRequested: boolean
  /** Where the harness's own record stood after the last event of this turn that is journaled (HRN-241). */
  readonly peerCursor: string | null
  readonly createdAt: number
  readonly endedAt: number | null
}

export type ReceiptState = "admitted" | "queued" | "steering" | "steered" | "uncertain" | "removed" | "settled"

/** What became of one submission id (`tr_receipt`); kept as long as the session (RT-091). */
export interface ReceiptRow {
  readonly sessionId: string
  readonly messageId: string
  readonly digest: string
  readonly state: ReceiptState
  readonly turnId: string | null
  readonly startSeq: number
  readonly endSeq: number | null
  readonly outcome: TurnOutcome | null
  readonly createdAt: number
}

/** A queued submission (`tr_queue`); `position` starts at 0. */
export interface QueueRow {
  readonly sessionId: string
  readonly messageId: string
  readonly position: number
  readonly prompt: PromptInput
  readonly parts: ReadonlyArray<PromptPart>
  readonly author: Author | null
  readonly delivery: "queue" | "steer"
  readonly digest: string
  readonly createdAt: number
}

/** What a permission asks, as it was shown. */
export interface PermissionSubject {
  readonly tool: string
  readonly title?: string
  readonly arguments?: Schema.Json
  readonly toolCallId?: string
  readonly paths: ReadonlyArray<string>
  readonly patterns?: ReadonlyArray<string>
  readonly category?: Category
  readonly details?: PermissionDetails
  readonly options: ReadonlyArray<PermissionOption>
}

/** What a question asks. */
export interface QuestionSubject {
  readonly questions: ReadonlyArray<Question>
  readonly toolCallId?: string
}

/** A permission or question (`tr_interaction`). `at` of a resolution or withdrawal is the time of its event. */
export interface InteractionRow {
  readonly id: string
  readonly sessionId: string
  readonly rootId: string
  readonly turnId: string | null
  readonly kind: "permission" | "question"
  readonly nativeId: string
  readonly state: "pending" | "resolved" | "withdrawn"
  readonly request: PermissionSubject | QuestionSubject
  readonly resolution: Resolution | null
  readonly withdrawal: Withdrawal | null
  readonly delivered: boolean
  readonly createdAt: number
  readonly settledAt: number | null
}

/** The session's lease (`tr_lease`). `owner` is the instance id; times are milliseconds. */
export interface LeaseRow {
  readonly sessionId: string
  readonly leaseId: string
  readonly owner: string
  readonly fence: number
  readonly expiresAt: number
}

/** What a message row holds beside its key columns; a user message has `author`, an assistant's the rest. */
export interface MessageInfo {
  readonly author?: Author
  readonly model?: ModelRef
  readonly usage?: TokenUsage
  readonly error?: TurnError
  readonly delivery?: "start" | "queue" | "steer"
  /** A steer whose answer was lost (RT-088). */
  readonly uncertain?: boolean
  readonly harnessPayload?: Schema.Json
}

/** A message (`tr_message`). `ordinal` is the cursor of the event that made it: it grows, and is not dense. */
export interface MessageRow {
  readonly sessionId: string
  readonly id: string
  readonly ordinal: number
  readonly role: "user" | "assistant"
  readonly turnId: string | null
  readonly parentId: string | null
  readonly info: MessageInfo
  readonly createdAt: number
  readonly completedAt: number | null
}

/** A message part. A streaming part has `openFromSeq` and no text of its own: it is folded from its deltas on read (RT-203). */
export interface PartRow {
  readonly sessionId: string
  readonly messageId: string
  readonly id: string
  /** Cursor of the event that made the part; parts of one user message count from 0. */
  readonly ordinal: number
  readonly type: MessagePart["type"]
  readonly data: MessagePart | null
  readonly openFromSeq: number | null
}

/** A stored event. `payload` is what `JSON.parse` gives of the stored text: the same on every read (RT-182). */
export interface EventRow {
  readonly sessionId: string
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly turnId: string | null
  readonly afterTurn: string | null
  readonly payload: EventPayload
  readonly artifacts: ReadonlyArray<ArtifactReference> | null
}

/** Where a cut field's whole value is kept (agent-runtime 6.5). `path` is a JSON Pointer into the payload. */
export type ArtifactReference = ArtifactRef

export interface ArtifactRow {
  readonly id: string
  readonly sessionId: string
  readonly sha256: string
  readonly bytes: number
  readonly mime: string
  readonly retained: boolean
}

export interface BindingRow extends ExecutionBinding {
  readonly sessionId: string
}

export interface StartRow extends SessionStart {
  readonly sessionId: string
}

/** A process that uses the store (`tr_instance`): a lease whose owner is dead, by pid and start time, may be taken over. */
export interface InstanceRow {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly started: string
  readonly heartbeatAt: number
}

/** A child recorded before its first use (HRN-032). */
export interface ProcessRow {
  readonly id: string
  readonly instanceId: string
  readonly pid: number
  readonly started: string
  readonly pgid: number
  readonly role: string
  readonly command: string
  readonly sessionId: string | null
}
