/**
 * What an event changes in the rows: the pure reducer behind every store (13.1). The same function writes the projections
 * with the event and rebuilds them from the journal (STO-005), so a rule lives here or nowhere.
 *
 * A streaming text part is opened once and not touched again until its `text-end` (RT-203).
 *
 * @since 0.1.0
 */
import type {
  EventPayload,
  MessagePart,
  PromptPart,
  TerminalEvent,
  TitleSource,
  Todo,
  TurnOutcome,
  WithdrawalReason
} from "@tackroom/protocol/events"
import type { Advertised, EventRow, InteractionRow, MessageInfo } from "./Rows.ts"
import type { StoredSession, UsageRow } from "./Tables.ts"
import { diffPart, mediaPart, textPart, toolPart } from "./Parts.ts"
import { usageRef } from "./Usage.ts"

/** The turn an event belongs to, or after whose end it arrived (RT-146). */
export interface TurnContext {
  readonly id: string
  readonly messageId: string
  readonly assistantId: string
}

/** Columns of the session row that events set. */
export type SessionProjection = Partial<
  Pick<
    StoredSession,
    | "status"
    | "phase"
    | "lastTurn"
    | "config"
    | "metadata"
    | "tags"
    | "queueRevision"
    | "queueHeld"
    | "updatedAt"
    | "archivedAt"
    | "closedAt"
  >
>

/** One change of a row. Changes are applied in order. */
export type RowChange =
  | { readonly _tag: "Session"; readonly patch: SessionProjection }
  /** Dropped when the stored title's source outranks it (3.2). */
  | { readonly _tag: "Title"; readonly title: string; readonly source: TitleSource }
  | { readonly _tag: "Advertised"; readonly lists: Advertised }
  | { readonly _tag: "Agent"; readonly agentId: string }
  /** Kept as it is when it exists. */
  | {
      readonly _tag: "Message"
      readonly id: string
      readonly role: "user" | "assistant"
      readonly turnId: string | null
      readonly parentId: string | null
      readonly info: MessageInfo
    }
  | { readonly _tag: "MessageEnd"; readonly id: string; readonly info: MessageInfo }
  /** A streaming part, opened at its first delta. */
  | { readonly _tag: "OpenPart"; readonly messageId: string; readonly id: string; readonly type: "text" | "reasoning" }
  /** A part made from what it was; a message that is missing is made. */
  | {
      readonly _tag: "Part"
      readonly messageId: string
      readonly id: string
      readonly ordinal?: number
      readonly update: (before: MessagePart | undefined) => MessagePart | undefined
    }
  | { readonly _tag: "Retract"; readonly turn: TurnContext; readonly responseIds: ReadonlyArray<string> }
  | { readonly _tag: "Todos"; readonly todos: ReadonlyArray<Todo> }
  | { readonly _tag: "Ask"; readonly row: Omit<InteractionRow, "sessionId" | "rootId"> }
  | { readonly _tag: "Resolve"; readonly id: string; readonly resolution: NonNullable<InteractionRow["resolution"]> }
  | { readonly _tag: "Withdraw"; readonly id: string; readonly reason: WithdrawalReason; readonly at: string }
  | { readonly _tag: "Usage"; readonly row: UsageRow }

const rank: Record<TitleSource, number> = { prompt: 0, harness: 1, user: 2 }

/** Whether a title of this source may replace one of that source: user outranks harness outranks prompt. */
export const outranks = (source: TitleSource, stored: TitleSource | null): boolean =>
  stored === null || rank[source] >= rank[stored]

/** Text for a title column: well-formed, without U+0000 (STO-012). */
export const titleText = (title: string): string => title.toWellFormed().replaceAll("\0", "\u{fffd}")

/** The wire form of a time in milliseconds. */
export const timestamp = (ms: number): string => new Date(ms).toISOString()

const optional = <Key extends string, Value>(key: Key, value: Value | undefined): { readonly [K in Key]?: Value } =>
  value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value })

const promptPart = (part: PromptPart, id: string, messageId: string): MessagePart => {
  switch (part.type) {
    case "text":
      return { id, messageId, type: "text", text: part.text }
    case "agent":
      return { id, messageId, type: "agent", name: part.name }
    case "file":
      return {
        id,
        messageId,
        type: "file",
        mime: part.mime,
        ...optional("filename", part.filename),
        ...optional("url", part.url),
        ...optional("artifactId", part.artifactId)
      }
  }
}

/** How a turn ended, by its terminal event. */
export const outcomeOf = (
  event: TerminalEvent,
  turn: { readonly id: string; readonly messageId: string },
  at: number
): TurnOutcome => {
  const base = {
    turnId: turn.id,
    messageId: turn.messageId,
    assistantMessageId: event.assistantMessageId,
    completedAt: timestamp(at)
  }
  switch (event.type) {
    case "finish":
      return { status: "completed", reason: event.reason, ...base }
    case "cancelled":
      return { status: "cancelled", reason: event.reason, ...base }
    case "error":
      return {
        status: "failed",
        error: { code: event.code, message: event.error, ...optional("errorClass", event.errorClass) },
        ...base
      }
  }
}

/** A part of the turn's assistant message that one event makes whole. */
const made = (
  event: EventRow,
  turn: TurnContext | undefined,
  kind: string,
  part: (place: { readonly id: string; readonly messageId: string }) => MessagePart
): ReadonlyArray<RowChange> => {
  if (turn === undefined) return []
  const place = { id: `${kind}:${event.seq}`, messageId: turn.assistantId }
  return [{ _tag: "Part", ...place, update: () => part(place) }]
}

const ofTerminal = (
  event: EventRow,
  payload: TerminalEvent,
  turn: TurnContext | undefined
): ReadonlyArray<RowChange> => {
  if (turn === undefined) return []
  const outcome = outcomeOf(payload, turn, event.at)
  return [
    {
      _tag: "MessageEnd",
      id: outcome.assistantMessageId,
      info: outcome.status === "failed" ? { error: outcome.error } : {}
    },
    { _tag: "Session", patch: { lastTurn: outcome, updatedAt: event.at } }
  ]
}

const ofUserMessage = (
  event: EventRow,
  payload: Extract<EventPayload, { readonly type: "user-message" }>
): ReadonlyArray<RowChange> => [
  {
    _tag: "Message",
    id: payload.messageId,
    role: "user",
    turnId: event.turnId,
    parentId: null,
    info: {
      delivery: payload.delivery,
      ...optional("author", payload.author),
      ...optional("uncertain", payload.uncertain)
    }
  },
  ...payload.parts.map((part, i): RowChange => {
    const id = `${payload.messageId}:${i}`
    return {
      _tag: "Part",
      messageId: payload.messageId,
      id,
      ordinal: i,
      update: () => promptPart(part, id, payload.messageId)
    }
  }),
  { _tag: "Session", patch: { updatedAt: event.at } }
]

/**
 * The row changes of one event. `turn` is the turn named by the event's `turnId` or `afterTurn`; without one, what would
 * belong to the turn's message changes nothing.
 */
export const projectEvent = (event: EventRow, turn: TurnContext | undefined): ReadonlyArray<RowChange> => {
  const { payload } = event
  switch (payload.type) {
    // sessions
    case "session-created":
      return payload.title === undefined ? [] : [{ _tag: "Title", title: payload.title, source: "user" }]
    case "session-status":
      return [
        {
          _tag: "Session",
          patch: { status: payload.status === "idle" ? null : payload.status, phase: payload.phase ?? null }
        }
      ]
    case "session-title":
      return [
        { _tag: "Title", title: payload.title, source: payload.titleSource },
        ...(payload.titleSource === "user" ? [{ _tag: "Session", patch: { updatedAt: event.at } } as const] : [])
      ]
    case "session-info":
      return [
        ...(payload.title === undefined ? [] : [{ _tag: "Title", title: payload.title, source: "user" } as const]),
        {
          _tag: "Session",
          patch: {
            ...optional("tags", payload.tags),
            ...optional("metadata", payload.metadata),
            ...(payload.archived === undefined ? {} : { archivedAt: payload.archived ? event.at : null }),
            updatedAt: event.at
          }
        }
      ]
    case "session-agent":
      return [{ _tag: "Agent", agentId: payload.agentId }]
    case "session-closed":
      return [{ _tag: "Session", patch: { closedAt: event.at } }]
    case "config-update":
      return [
        ...(payload.options === undefined
          ? []
          : [{ _tag: "Advertised", lists: { options: payload.options } } as const]),
        ...(payload.config === undefined
          ? []
          : [{ _tag: "Session", patch: { config: payload.config, updatedAt: event.at } } as const])
      ]
    case "available-commands-update":
      return [{ _tag: "Advertised", lists: { commands: payload.commands } }]
    case "session-compaction":
      return payload.phase === "started"
        ? []
        : made(event, turn, "compaction", (place) => ({
            ...place,
            type: "compaction",
            auto: payload.reason !== "manual",
            ...optional("summary", payload.summary)
          }))

    // turns
    case "user-message":
      return ofUserMessage(event, payload)
    case "turn-start":
      return [
        {
          _tag: "Message",
          id: payload.assistantMessageId,
          role: "assistant",
          turnId: event.turnId,
          parentId: payload.parentMessageId ?? payload.messageId,
          info: {}
        },
        { _tag: "Session", patch: { updatedAt: event.at } }
      ]
    case "step-start":
      return made(event, turn, "step", (place) => ({ ...place, type: "step-start" }))
    case "response-start":
      return usage(event, event.turnId ?? "", {
        kind: "round",
        responseId: payload.responseId,
        ...optional("attempt", payload.attempt)
      })
    case "response-retracted":
      return turn === undefined ? [] : [{ _tag: "Retract", turn, responseIds: payload.responseIds }]
    case "queue-update":
      return [
        {
          _tag: "Session",
          patch: {
            queueRevision: payload.revision,
            queueHeld: payload.held ? (payload.heldReason ?? "turn_failed") : null
          }
        }
      ]
    case "finish":
    case "cancelled":
    case "error":
      return ofTerminal(event, payload, turn)
    case "session-retry":
      return made(event, turn, "retry", (place) => ({
        ...place,
        type: "retry",
        attempt: payload.attempt ?? 1,
        error: payload.message,
        ...optional("delayMs", payload.delayMs)
      }))
    case "session-handoff":
      return made(event, turn, "handoff", (place) => ({
        ...place,
        type: "handoff",
        from: payload.from,
        to: payload.to
      }))

    // content
    case "text-delta":
      return [{ _tag: "OpenPart", messageId: payload.messageId, id: payload.partId, type: "text" }]
    case "thinking-delta":
      return [{ _tag: "OpenPart", messageId: payload.messageId, id: payload.partId, type: "reasoning" }]
    case "text-end":
      return [
        {
          _tag: "Part",
          messageId: payload.messageId,
          id: payload.partId,
          update: (before) => textPart(payload, before)
        }
      ]
    case "proposed-plan-complete":
      return made(event, turn, "plan", (place) => ({ ...place, type: "plan", markdown: payload.planMarkdown }))
    case "image-delta":
    case "audio-delta":
    case "resource-link-delta":
      return made(event, turn, "file", (place) => mediaPart(payload, place))

    // tools
    case "tool-start":
    case "tool-input":
    case "tool-status":
    case "tool-content":
    case "tool-output":
    case "tool-error": {
      if (turn === undefined) return []
      const id = `tool:${payload.toolCallId}`
      return [
        {
          _tag: "Part",
          messageId: turn.assistantId,
          id,
          update: (before) => toolPart(payload, before, { id, messageId: turn.assistantId, at: timestamp(event.at) })
        }
      ]
    }
    case "file-diff": {
      if (turn === undefined) return []
      const id = `patch:${payload.toolCallId ?? event.seq}`
      return [
        {
          _tag: "Part",
          messageId: turn.assistantId,
          id,
          update: (before) => diffPart(payload, before, { id, messageId: turn.assistantId })
        }
      ]
    }

    // interactions
    case "permission-request": {
      const { type: _type, requestId, harness: _h, threadId: _t, raw: _r, diagnostics: _d, ...subject } = payload
      return [{ _tag: "Ask", row: asked(event, requestId, "permission", subject) }]
    }
    case "question": {
      const { type: _type, requestId, harness: _h, threadId: _t, raw: _r, diagnostics: _d, ...subject } = payload
      return [{ _tag: "Ask", row: asked(event, requestId, "question", subject) }]
    }
    case "permission-resolved":
      return [
        {
          _tag: "Resolve",
          id: payload.requestId,
          resolution: {
            decision: payload.decision,
            ...optional("optionId", payload.optionId),
            ...optional("note", payload.note),
            ...optional("by", payload.by),
            origin: payload.origin,
            at: timestamp(event.at)
          }
        }
      ]
    case "question-answered":
    case "question-rejected":
      return [
        {
          _tag: "Resolve",
          id: payload.requestId,
          resolution: {
            answers: payload.type === "question-answered" ? payload.answers : null,
            ...optional("by", payload.by),
            origin: payload.origin,
            at: timestamp(event.at)
          }
        }
      ]
    case "interaction-withdrawn":
      return [{ _tag: "Withdraw", id: payload.requestId, reason: payload.reason, at: timestamp(event.at) }]

    // plans, operations
    case "todo-update":
      return [{ _tag: "Todos", todos: payload.todos }]
    case "usage":
      return payload.observation === undefined && payload.cost === undefined
        ? []
        : usage(event, event.turnId ?? event.afterTurn ?? "", payload.observation ?? null, payload.cost)
    default:
      return []
  }
}

const usage = (
  event: EventRow,
  turnId: string,
  observation: UsageRow["observation"],
  cost: UsageRow["cost"] = null
): ReadonlyArray<RowChange> => [
  {
    _tag: "Usage",
    row: {
      sessionId: event.sessionId,
      turnId,
      sequence: event.seq,
      ref: usageRef(observation, turnId),
      observation,
      cost
    }
  }
]

const asked = (
  event: EventRow,
  id: string,
  kind: "permission" | "question",
  request: InteractionRow["request"]
): Omit<InteractionRow, "sessionId" | "rootId"> => ({
  id,
  turnId: event.turnId,
  kind,
  nativeId: id,
  state: "pending",
  request,
  resolution: null,
  withdrawal: null,
  delivered: false,
  createdAt: event.at,
  settledAt: null
})
