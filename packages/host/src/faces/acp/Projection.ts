/**
 * From the events of a session to what its client is told (serve-mode 9, column ACP). A pure machine: the same events give
 * the same updates, in whatever pages they come. `rows` has one row for each canonical event (SRV-340).
 *
 * It knows what was told on this connection, so that a call is told of once and changed afterwards (ACP-118). It decides
 * neither when a turn is over nor what becomes of a request; those are `Turn`'s.
 */
import type { ContentBlock, SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk"
import {
  type ConfigOption,
  type EventOf,
  type EventPayload,
  type EventType,
  isEventType,
  type SessionConfig
} from "@tackroom/protocol/events"
import { chunksOf, fitsMedia, textBlock } from "./Bounds.ts"
import { type CallChange, type CallField, Calls, type CallView, contentOf, diffCall, toolCall } from "./Calls.ts"
import type { Client } from "./Client.ts"
import type { ClientTerminals } from "./ClientTerminals.ts"
import type { Entry } from "../../runs/Entries.ts"
import { configOptions, modesOf } from "./Options.ts"

/** One thing to send. */
export interface Update {
  readonly update: SessionUpdate
  /** Output of a running call that may be left out when more comes soon. */
  readonly passing?: string
}

/** Tokens of a turn; null = not reported. */
export interface Spent {
  readonly input: number | null
  readonly output: number | null
  readonly reasoning: number | null
  readonly cacheRead: number | null
  readonly cacheWrite: number | null
}

/** What a client without notices is told at the end of its turn (ACP-124). */
export interface Told {
  readonly severity: "warning" | "error"
  readonly title: string
}

type Row<Type extends EventType> = (projection: Projection, event: EventOf<Type>, from: Entry) => void

const sum = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : one + other

const nothingSpent: Spent = { input: null, output: null, reasoning: null, cacheRead: null, cacheWrite: null }

export class Projection {
  readonly #client: () => Client
  readonly calls: Calls
  readonly #terminals: Pick<ClientTerminals, "has"> | undefined
  #out: Array<Update> = []
  #response: string | undefined
  readonly #parts = new Map<string, Set<string>>()
  #retracted: Array<string> = []
  #saidPlan = false
  #options: ReadonlyArray<ConfigOption> = []
  #config: SessionConfig | undefined
  #compaction = 0
  // Of the turn:
  #rounds = 0
  #spent: Spent = nothingSpent
  #told: Array<Told> = []
  #uncertain: Array<string> = []

  constructor(
    client: () => Client,
    known: {
      readonly options: ReadonlyArray<ConfigOption>
      readonly config?: SessionConfig
      readonly calls?: Calls
      /** Of the client; without them none is shown. */
      readonly terminals?: Pick<ClientTerminals, "has">
    }
  ) {
    this.#client = client
    this.calls = known.calls ?? new Calls()
    this.#terminals = known.terminals
    this.#options = known.options
    this.#config = known.config
  }

  /** A new turn: counts begin anew. */
  begin(): void {
    this.#rounds = 0
    this.#spent = nothingSpent
    this.#uncertain = []
    this.#parts.clear()
    this.#saidPlan = false
  }

  /** What the next event says. */
  push(entry: Entry): ReadonlyArray<Update> {
    this.#out = []
    const { payload } = entry
    if (isEventType(payload.type)) {
      const row = rows[payload.type] as Row<EventType>
      row(this, payload, entry)
    }
    return this.#out
  }

  /** What the response says of the turn besides its reason (ACP-122), and what was to be told since the one before. */
  takeSummary() {
    const told = this.#told
    this.#told = []
    return {
      usage: { ...this.#spent, rounds: this.#rounds === 0 ? null : this.#rounds },
      ...(this.#uncertain.length === 0 ? {} : { uncertain: this.#uncertain }),
      ...(told.length === 0 ? {} : { notices: told })
    }
  }

  // ------------------------------------------------------------ what rows use

  emit(update: SessionUpdate): void {
    this.#out.push({ update })
  }

  chunk(channel: "agent_message_chunk" | "agent_thought_chunk", content: ContentBlock, messageId?: string): void {
    const retracted = this.#retracted
    this.#retracted = []
    this.emit({
      sessionUpdate: channel,
      content,
      ...(messageId === undefined ? {} : { messageId }),
      ...(retracted.length === 0 ? {} : { _meta: { tackroom: { retracted } } })
    })
  }

  say(channel: "agent_message_chunk" | "agent_thought_chunk", text: string, partId: string): void {
    if (this.#response !== undefined) {
      const parts = this.#parts.get(this.#response)
      if (parts === undefined) this.#parts.set(this.#response, new Set([partId]))
      else parts.add(partId)
    }
    for (const piece of chunksOf(text)) this.chunk(channel, textBlock(piece), partId)
  }

  plan(text: string): void {
    this.#saidPlan = true
    for (const piece of chunksOf(text)) this.chunk("agent_message_chunk", textBlock(piece))
  }

  get saidPlan(): boolean {
    return this.#saidPlan
  }

  respond(responseId: string, isFirst: boolean): void {
    this.#response = responseId
    if (isFirst) this.#rounds += 1
  }

  retract(responseIds: ReadonlyArray<string>): void {
    for (const id of responseIds) this.#retracted.push(...(this.#parts.get(id) ?? []))
  }

  spend(event: EventOf<"usage">): void {
    const tokens = event.observation?.tokens
    if (tokens !== undefined) {
      const next: Spent = {
        input: tokens.input,
        output: tokens.output,
        reasoning: tokens.reasoning,
        cacheRead: tokens.cache.read,
        cacheWrite: tokens.cache.write
      }
      const add = event.observation?.kind === "delta"
      this.#spent = add
        ? {
            input: sum(this.#spent.input, next.input),
            output: sum(this.#spent.output, next.output),
            reasoning: sum(this.#spent.reasoning, next.reasoning),
            cacheRead: sum(this.#spent.cacheRead, next.cacheRead),
            cacheWrite: sum(this.#spent.cacheWrite, next.cacheWrite)
          }
        : next
    }
    const update = usageUpdate(event)
    if (update !== undefined) this.emit(update)
  }

  hasTerminal(terminalId: string): boolean {
    return this.#terminals?.has(terminalId) ?? false
  }

  call(payload: EventPayload): void {
    const change = this.calls.take(payload)
    if (change === undefined) return
    const { call } = change
    if (call.uncertain && call.ended) this.#uncertain.push(call.id)
    const update: SessionUpdate = change.isNew
      ? { sessionUpdate: "tool_call", ...toolCall(call) }
      : { sessionUpdate: "tool_call_update", ...changedFields(change) }
    this.#out.push({ update, ...(change.passing ? { passing: call.id } : {}) })
    this.calls.rest(call)
  }

  notice(severity: "info" | "warning" | "error", title: string, description?: string): void {
    if (this.#client().notices) {
      this.emit({
        sessionUpdate: "notice",
        severity,
        title: title.slice(0, 2_000),
        ...(description === undefined ? {} : { description })
      })
    } else if (severity !== "info" && this.#told.length < 50) {
      this.#told.push({ severity, title: title.slice(0, 500) })
    }
  }

  /** A notice of the face itself: the update, or nothing when it waits for the turn's end (ACP-124). */
  tell(severity: "warning" | "error", title: string): SessionUpdate | undefined {
    this.#out = []
    this.notice(severity, title)
    return this.#out[0]?.update
  }

  compact(event: EventOf<"session-compaction">, from: Entry): void {
    if (event.phase === "started" || this.#compaction === 0) this.#compaction = from.cursor
    const compactionId = `compaction:${this.#compaction}`
    if (event.phase === "completed") this.#compaction = 0
    if (!this.#client().compaction) return
    const summary = event.summary === undefined ? [] : chunksOf(event.summary).slice(0, 1).map(textBlock)
    this.emit({
      sessionUpdate: "compaction_update",
      compactionId,
      status: event.phase === "started" ? "in_progress" : "completed",
      ...(summary.length === 0 ? {} : { summary })
    })
  }

  configured(event: EventOf<"config-update">): void {
    const before = this.#config?.permissionMode ?? this.#modeNow()
    if (event.options !== undefined) this.#options = event.options
    if (event.config !== undefined) this.#config = event.config
    const config = this.#config
    if (config === undefined) return
    const options = configOptions(this.#options, config, this.#client())
    if (options.length > 0) this.emit({ sessionUpdate: "config_option_update", configOptions: options })
    const mode = modesOf(this.#options, config)?.currentModeId
    if (mode !== undefined && mode !== before) this.emit({ sessionUpdate: "current_mode_update", currentModeId: mode })
  }

  #modeNow(): string | undefined {
    return this.#config === undefined ? undefined : modesOf(this.#options, this.#config)?.currentModeId
  }

  /** What the harness offered last. */
  get options(): ReadonlyArray<ConfigOption> {
    return this.#options
  }

  media(
    channel: "agent_message_chunk" | "agent_thought_chunk",
    type: "image" | "audio",
    mimeType: string,
    from: Entry
  ): void {
    const data = from.media?.data
    if (data !== undefined && fitsMedia(data)) return this.chunk(channel, { type, mimeType, data })
    this.chunk(channel, textBlock(`[${mimeType}, ${from.media?.bytes ?? 0} bytes, too large to be shown]`))
  }
}

const changedFields = ({ call, fields }: CallChange): ToolCallUpdate => {
  const has = (field: CallField): boolean => fields.has(field)
  return {
    toolCallId: call.id,
    ...(has("title") ? { title: call.title } : {}),
    ...(has("kind") ? { kind: call.kind } : {}),
    ...(has("name") ? { name: call.name } : {}),
    ...(has("status") ? { status: call.status } : {}),
    ...(has("rawInput") ? { rawInput: call.rawInput?.value } : {}),
    ...(has("rawOutput") ? { rawOutput: call.rawOutput?.value } : {}),
    ...(has("content") ? { content: contentOf(call) } : {}),
    ...(has("locations") ? { locations: [...(call.locations ?? [])] } : {}),
    ...(call.uncertain ? { _meta: { tackroom: { uncertain: true } } } : {})
  }
}

/** Known only when the harness knows both (ACP-123). */
export const usageUpdate = (event: EventOf<"usage">): SessionUpdate | undefined =>
  event.contextUsed === undefined || event.contextSize === undefined
    ? undefined
    : {
        sessionUpdate: "usage_update",
        used: event.contextUsed,
        size: event.contextSize,
        ...(event.cost === undefined ? {} : { cost: event.cost })
      }

export const planUpdate = (event: EventOf<"todo-update">): SessionUpdate => ({
  sessionUpdate: "plan",
  entries: event.todos.flatMap(({ content, priority, status }) =>
    status === "cancelled" ? [] : [{ content, status, priority: priority ?? "medium" }]
  )
})

export const commandsUpdate = (event: EventOf<"available-commands-update">): SessionUpdate => ({
  sessionUpdate: "available_commands_update",
  availableCommands: event.commands.map(({ description, input, name }) => ({
    name,
    description: description ?? "",
    ...(input === undefined ? {} : { input })
  }))
})

/** A resource in the harness's own form, as far as it is one of ACP's. */
const resourceBlock = (resource: unknown): ContentBlock | undefined => {
  const fields = (typeof resource === "object" && resource !== null ? resource : {}) as Readonly<
    Record<string, unknown>
  >
  const { blob, mimeType, text, uri } = fields
  if (typeof uri !== "string") return undefined
  const mime = typeof mimeType === "string" ? { mimeType } : {}
  if (typeof text === "string") return { type: "resource", resource: { uri, text: chunksOf(text)[0] ?? "", ...mime } }
  if (typeof blob === "string" && fitsMedia(blob)) return { type: "resource", resource: { uri, blob, ...mime } }
  return { type: "resource_link", uri, name: uri, ...mime }
}

const silent = (): void => undefined

const ofCall = (projection: Projection, event: EventPayload): void => projection.call(event)

const link =
  <Type extends "resource-link-delta" | "thinking-resource-link-delta">(
    channel: "agent_message_chunk" | "agent_thought_chunk"
  ): Row<Type> =>
  (projection, event) =>
    projection.chunk(channel, {
      type: "resource_link",
      uri: event.uri,
      name: event.name,
      ...(event.mimeType === undefined ? {} : { mimeType: event.mimeType }),
      ...(event.title === undefined ? {} : { title: event.title })
    })

const severities = { info: "info", warn: "warning", error: "error" } as const

/** The one row of each canonical event. */
export const rows: { readonly [Type in EventType]: Row<Type> } = {
  "user-message": silent,
  "turn-start": silent,
  "step-start": silent,
  "response-start": (projection, event) => projection.respond(event.responseId, (event.attempt ?? 1) <= 1),
  "text-delta": (projection, event) => projection.say("agent_message_chunk", event.delta, event.partId),
  "thinking-delta": (projection, event) => projection.say("agent_thought_chunk", event.delta, event.partId),
  "text-end": silent,
  "tool-start": ofCall,
  "tool-input": ofCall,
  "tool-status": ofCall,
  "tool-content": ofCall,
  "tool-output-delta": ofCall,
  "tool-output": ofCall,
  "tool-error": ofCall,
  "tool-location": ofCall,
  // A terminal of the harness itself is none that the client could show.
  "tool-terminal": (projection, event) => {
    if (projection.hasTerminal(event.terminalId)) projection.call(event)
  },
  "file-diff": (projection, event, from) => {
    if (event.toolCallId === undefined) projection.emit({ sessionUpdate: "tool_call", ...diffCall(event, from.cursor) })
    else projection.call(event)
  },
  "permission-request": silent,
  question: silent,
  "permission-resolved": (projection, event) => {
    // What a person was asked is settled by the request's own answer.
    if (event.origin === "person" || event.origin === "system" || event.toolCallId === undefined) return
    if (projection.calls.find(event.toolCallId) === undefined) return
    const isAllowed = event.decision === "allow_once" || event.decision === "allow_always"
    if (!isAllowed) return
    projection.emit({
      sessionUpdate: "tool_call_update",
      toolCallId: event.toolCallId,
      _meta: { tackroom: { autoApproved: true } }
    })
  },
  "question-answered": silent,
  "question-rejected": silent,
  "interaction-withdrawn": silent,
  "proposed-plan-delta": (projection, event) => projection.plan(event.delta),
  "proposed-plan-complete": (projection, event) => {
    if (!projection.saidPlan) projection.plan(event.planMarkdown)
  },
  "todo-update": (projection, event) => projection.emit(planUpdate(event)),
  usage: (projection, event) => projection.spend(event),
  "session-status": silent,
  "session-retry": (projection, event) => projection.notice("info", `The model is asked again: ${event.message}`),
  "response-retracted": (projection, event) => projection.retract(event.responseIds),
  "session-compaction": (projection, event, from) => projection.compact(event, from),
  "harness-notice": (projection, event) => {
    const severity = event.severity ?? "info"
    if (severity !== "debug") projection.notice(severities[severity], event.message)
  },
  diagnostic: (projection, event) => projection.notice("info", event.diagnostic.message),
  "conversation-reset": (projection) => projection.notice("info", "The conversation begins anew"),
  "process-status": (projection, event) => {
    const failed = event.state === "exited" && (event.signal !== undefined || (event.code ?? 0) !== 0)
    if (failed) projection.notice("warning", `A process of the agent (${event.role}) ended`)
  },
  "agent-message": silent,
  "subagent-updated": (projection, event) => {
    if (event.toolCallId === undefined || projection.calls.find(event.toolCallId) === undefined) return
    const { childSessionId, label, status } = event
    projection.emit({
      sessionUpdate: "tool_call_update",
      toolCallId: event.toolCallId,
      _meta: {
        tackroom: {
          subagent: {
            ...(label === undefined ? {} : { label }),
            ...(status === undefined ? {} : { status }),
            ...(childSessionId === undefined ? {} : { sessionId: childSessionId })
          }
        }
      }
    })
  },
  "image-delta": (projection, event, from) => projection.media("agent_message_chunk", "image", event.mimeType, from),
  "audio-delta": (projection, event, from) => projection.media("agent_message_chunk", "audio", event.mimeType, from),
  "thinking-audio-delta": (projection, event, from) =>
    projection.media("agent_thought_chunk", "audio", event.mimeType, from),
  "resource-link-delta": link("agent_message_chunk"),
  "thinking-resource-link-delta": link("agent_thought_chunk"),
  "resource-delta": (projection, event) => {
    const block = resourceBlock(event.resource)
    if (block !== undefined) {
      projection.chunk(event.channel === "thinking" ? "agent_thought_chunk" : "agent_message_chunk", block)
    }
  },
  "available-commands-update": (projection, event) => projection.emit(commandsUpdate(event)),
  "config-update": (projection, event) => projection.configured(event),
  "session-agent": silent,
  "session-title": (projection, event) => projection.emit({ sessionUpdate: "session_info_update", title: event.title }),
  "session-info": (projection, event) => {
    if (event.title !== undefined) projection.emit({ sessionUpdate: "session_info_update", title: event.title })
  },
  "goal-updated": (projection, event) =>
    projection.emit({ sessionUpdate: "session_info_update", _meta: { tackroom: { goal: event.goal } } }),
  "goal-cleared": (projection) =>
    projection.emit({ sessionUpdate: "session_info_update", _meta: { tackroom: { goal: null } } }),
  "auth-status": (projection, event) => {
    const bad = event.status === "unauthenticated"
    projection.notice(bad ? "warning" : "info", bad ? "The agent is not signed in" : "The agent is signed in")
  },
  "rate-limit": (projection, event) => {
    const limited = event.status === "limited"
    const until = event.resetsAt === undefined ? "" : ` until ${event.resetsAt}`
    projection.notice(
      limited ? "warning" : "info",
      limited ? `The provider's limit is reached${until}` : "The provider's limit is not reached"
    )
  },
  "mcp-server-status": (projection, event) => {
    const why = event.error === undefined ? "" : `: ${event.error}`
    projection.notice(
      event.status === "failed" ? "warning" : "info",
      `MCP server ${event.serverName} is ${event.status}${why}`
    )
  },
  "background-work": silent,
  "team-update": silent,
  "board-update": silent,
  "schedule-update": silent,
  "memory-update": silent,
  "session-created": silent,
  "session-handoff": silent,
  "session-closed": silent,
  "queue-update": silent,
  "input-incorporated": silent,
  finish: silent,
  cancelled: silent,
  error: silent
}

/** Updates that may be sent while no turn of the client runs (ACP-125). */
const betweenTurns: ReadonlySet<SessionUpdate["sessionUpdate"]> = new Set([
  "available_commands_update",
  "config_option_update",
  "current_mode_update",
  "session_info_update",
  "notice"
])

export const isForBetween = ({ update }: Update): boolean => betweenTurns.has(update.sessionUpdate)

/** The call behind a request, where nothing was told of it yet (ACP-150). */
export const firstTold = (call: CallView): SessionUpdate => ({ sessionUpdate: "tool_call", ...toolCall(call) })
