/**
 * From the events of one turn to what its run's lines say (serve-mode 9), shared by serve mode and `tackroom run`.
 *
 * A pure machine: the same events give the same items, whenever they come and in whatever pages (SRV-341). `rows` has
 * exactly one row for each canonical event (SRV-340). Nothing follows the result (SRV-142). What is not of this turn is
 * left out: late output of an earlier turn, and what came before this one started.
 */
import {
  isEventType,
  isTerminal,
  type EventOf,
  type EventPayload,
  type EventType,
  type FileLocation,
  type TerminalEvent
} from "@tackroom/protocol/events"
import { serveLimits, type Notice, type NotifyKind } from "@tackroom/protocol/serve"
import { utf8Length } from "@tackroom/protocol/text"
import { AnswerText } from "./AnswerText.ts"
import { AskQueue, type Request } from "./AskQueue.ts"
import { budgetStop, endOf, faultOf, shortMessage } from "./Ending.ts"
import type { Entry } from "../../runs/Entries.ts"
import type { End, Item } from "./Item.ts"
import { Spending, type Baseline } from "./Spending.ts"
import { bounded, oneLineJson, pieces, textOfOutput } from "./Texts.ts"

export interface ProjectionOptions {
  readonly turnId: string
  /** Seconds after which an ask is withdrawn, when there is such a time. */
  readonly answerTimeout: number | undefined
  /** The harness shows each model request as an event. */
  readonly reportsRounds: boolean
  /** Cumulative usage that was reported before this run. */
  readonly baseline: Baseline
}

interface Call {
  readonly name: string
  readonly isPlan: boolean
}

/** The event that a row is about. */
type Row<Type extends EventType> = (run: Projection, event: EventOf<Type>, from: Entry) => void

export class Projection {
  readonly #options: ProjectionOptions
  readonly #asks: AskQueue
  readonly #calls = new Map<string, Call>()
  readonly #locations = new Map<string, ReadonlyArray<FileLocation>>()
  readonly #uncertain: Array<{ readonly id: string; readonly name: string }> = []
  readonly answer = new AnswerText()
  readonly spending: Spending
  #prompt = ""
  #out: Array<Item> = []
  #started = false
  #ended = false
  #end: End | undefined
  #cancelAsked = false
  /** The error that was told before the turn's end. */
  #told: string | undefined

  constructor(options: ProjectionOptions) {
    this.#options = options
    this.#asks = new AskQueue({
      timeout: options.answerTimeout,
      isPlan: (toolCallId) => toolCallId !== undefined && this.#calls.get(toolCallId)?.isPlan === true
    })
    this.spending = new Spending(options)
  }

  /** For what happens while no run is active: it has no start and no end. */
  static betweenRuns(): Projection {
    const projection = new Projection({
      turnId: "",
      answerTimeout: undefined,
      reportsRounds: true,
      baseline: new Map()
    })
    projection.#started = true
    return projection
  }

  /** How the run ended, once it has. */
  get end(): End | undefined {
    return this.#end
  }

  get hasEnded(): boolean {
    return this.#ended
  }

  get openAsk(): Request | undefined {
    return this.#asks.open
  }

  get missedAsk(): string | undefined {
    return this.#asks.missed
  }

  /** What the next event of the session says. */
  push(event: Entry): ReadonlyArray<Item> {
    if (this.#ended || !this.#concerns(event)) return []
    this.#out = []
    const { payload } = event
    const isRequest = payload.type === "permission-request" || payload.type === "question"
    if (!isRequest) this.emit(...this.#asks.settled(payload))
    // A type that a newer version journaled is told like one that has no row of its own.
    const row = (isEventType(payload.type) ? rows[payload.type] : asEvent) as Row<EventType>
    row(this, payload, event)
    return this.#out
  }

  /** What is left to say when nothing more is committed. */
  caughtUp(): ReadonlyArray<Item> {
    return this.#ended ? [] : this.#asks.settled()
  }

  /** A cancel was asked for here: it adds no error when it is true (SRV-132). */
  cancelAsked(): void {
    this.#cancelAsked = true
  }

  /** The run ends without a commit (SRV-304, SRV-305). */
  break(
    message: string,
    fault: { readonly code: "store_unavailable" | "lease_lost"; readonly class?: string }
  ): ReadonlyArray<Item> {
    if (this.#ended) return []
    this.#out = []
    const error = {
      code: "unknown",
      message: shortMessage(message),
      ...(fault.class === undefined ? {} : { class: fault.class }),
      ...(fault.code === "store_unavailable" ? { runtimeCode: fault.code } : {})
    } as const
    this.notify(undefined, "error", error.message)
    this.#finish({
      ...this.#ending(undefined, this.answer.last()),
      status: "failed",
      stopReason: "error",
      cancelled: false,
      errors: [error],
      committed: false
    })
    return this.#out
  }

  #concerns({ afterTurn, payload, turnId }: Entry): boolean {
    if (turnId !== undefined) return turnId === this.#options.turnId
    return afterTurn === undefined && this.#started && !isTerminal(payload)
  }

  // ------------------------------------------------------------ what rows use

  emit(...items: ReadonlyArray<Item>): void {
    this.#out.push(...items)
  }

  notify<Kind extends NotifyKind>(
    from: Entry | undefined,
    kind: Kind,
    data: Extract<Notice, { readonly kind: Kind }>["data"]
  ): void {
    const cursor = from === undefined ? {} : { cursor: from.cursor }
    this.emit({ type: "notify", ...cursor, kind, data } as Item)
  }

  log(from: Entry, message: string, more: { readonly level?: LogLevel; readonly code?: string } = {}): void {
    this.emit({ type: "log", cursor: from.cursor, ...bounded("message", message, serveLimits.logBytes), ...more })
  }

  start(from: Entry): void {
    this.#started = true
    this.emit({ type: "start", cursor: from.cursor, turnId: this.#options.turnId, prompt: this.#prompt })
  }

  prompted(prompt: string): void {
    if (!this.#started) this.#prompt = prompt
  }

  request(from: Entry, event: Request): void {
    this.emit(...this.#asks.request(from.cursor, event))
  }

  resolve(from: Entry, event: Parameters<AskQueue["resolve"]>[1]): void {
    this.emit(...this.#asks.resolve(from.cursor, event))
  }

  /** True for the first event of a call. */
  call(id: string, name: string, isPlan: boolean): boolean {
    const isNew = !this.#calls.has(id)
    this.#calls.set(id, { name, isPlan })
    return isNew
  }

  nameOf(toolCallId: string): string {
    return this.#calls.get(toolCallId)?.name ?? toolCallId
  }

  place(toolCallId: string, locations: ReadonlyArray<FileLocation>): void {
    this.#locations.set(toolCallId, locations)
  }

  toolStatus(
    from: Entry,
    id: string,
    data: Omit<Extract<Notice, { readonly kind: "tool_status" }>["data"], "id" | "name" | "locations">
  ): void {
    const locations = this.#locations.get(id)
    this.#locations.delete(id)
    const name = this.nameOf(id)
    if (data.status === "uncertain") this.#uncertain.push({ id, name })
    this.notify(from, "tool_status", { id, name, ...data, ...(locations === undefined ? {} : { locations }) })
  }

  /** The budget that stops the turn is told once, when it is known (SRV-267). */
  stopping(from: Entry, event: EventOf<"error"> | EventOf<"diagnostic">): boolean {
    const stop = budgetStop(event)
    if (stop === undefined) return false
    if (this.#told !== undefined) return true
    const message = event.type === "error" ? event.error : messageOf(event.diagnostic)
    this.#told = message
    this.notify(from, "error", shortMessage(message))
    this.notify(from, "cancelling", { cause: stop.cause })
    return true
  }

  conclude(from: Entry, event: TerminalEvent): void {
    if (event.type === "finish") this.spending.completed()
    if (event.type === "error" && !this.stopping(from, event) && this.#told === undefined) {
      this.notify(from, "error", faultOf(event).message)
    }
    const rounds = event.type === "error" ? budgetStop(event)?.rounds : undefined
    const said = this.answer.last(rounds)
    const answer = event.type === "finish" ? (event.finalText ?? said) : said
    this.#finish({ ...this.#ending(from.cursor, answer), ...endOf(event, this.#cancelAsked) })
  }

  #ending(cursor: number | undefined, answer: string) {
    return {
      cursor,
      answer,
      usage: this.spending.usage,
      usageDetail: this.spending.detail,
      uncertain: this.#uncertain,
      asks: this.#asks.counts,
      committed: true
    }
  }

  #finish(end: End): void {
    this.#ended = true
    this.#end = end
    const cursor = end.cursor === undefined ? {} : { cursor: end.cursor }
    this.emit({ type: "notify", ...cursor, kind: "run_finished", data: null }, { type: "result", end })
  }
}

type LogLevel = "debug" | "info" | "warn" | "error"

const messageOf = ({ details, message }: EventOf<"diagnostic">["diagnostic"]): string =>
  typeof details === "object" && details !== null && "message" in details && typeof details.message === "string"
    ? details.message
    : message

const silent = (): void => undefined

const asEvent: Row<EventType> = (run, event, from) => {
  const payload = event as EventPayload
  const isSmall = utf8Length(oneLineJson(payload)) <= serveLimits.eventBytes
  run.notify(from, "event", {
    type: payload.type,
    ...(isSmall ? { payload: payload as never } : { payload: null, payloadTruncated: true })
  })
}

const media =
  <Type extends "image-delta" | "audio-delta" | "thinking-audio-delta">(): Row<Type> =>
  (run, event, from) =>
    run.notify(from, "media", {
      mime: event.mimeType,
      bytes: from.media?.bytes ?? 0,
      ...(from.media?.data === undefined ? {} : { data: from.media.data })
    })

const link =
  <Type extends "resource-link-delta" | "thinking-resource-link-delta">(): Row<Type> =>
  (run, event, from) =>
    run.notify(from, "media", {
      mime: event.mimeType ?? "application/octet-stream",
      bytes: from.media?.bytes ?? 0,
      uri: event.uri,
      name: event.name
    })

const resource: Row<"resource-delta"> = (run, event, from) => {
  const json = event.resource
  const fields = typeof json === "object" && json !== null && !Array.isArray(json) ? json : {}
  const text = (name: string): string | undefined => {
    const value = (fields as Record<string, unknown>)[name]
    return typeof value === "string" ? value : undefined
  }
  const uri = text("uri")
  run.notify(from, "media", {
    mime: text("mimeType") ?? "application/octet-stream",
    bytes: utf8Length(text("text") ?? oneLineJson(json)),
    ...(uri === undefined ? {} : { uri })
  })
}

const resolved = (run: Projection, event: Parameters<AskQueue["resolve"]>[1], from: Entry): void =>
  run.resolve(from, event)

const promptOf = ({ parts }: EventOf<"user-message">): string =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

/** The one row of each canonical event (serve-mode 9). */
export const rows: { readonly [Type in EventType]: Row<Type> } = {
  "user-message": (run, event) => run.prompted(promptOf(event)),
  "turn-start": (run, _event, from) => run.start(from),
  "response-start": (run, event) => {
    run.spending.response(event)
    run.answer.response(event.responseId)
  },
  "step-start": silent,
  "text-delta": (run, event, from) => {
    run.answer.delta(event)
    for (const text of pieces(event.delta, serveLimits.deltaBytes)) {
      run.emit({ type: "delta", cursor: from.cursor, text })
    }
  },
  "thinking-delta": (run, event, from) => {
    run.answer.delta(event)
    for (const text of pieces(event.delta, serveLimits.deltaBytes)) run.notify(from, "thinking", { text })
  },
  "text-end": (run, event, from) => {
    const differs = run.answer.end(event, run.spending.begun)
    if (!differs) return
    const text = bounded("text", event.text, serveLimits.deltaBytes)
    run.notify(from, "text_replace", { channel: event.channel, ...text })
  },
  "tool-start": (run, event, from) => {
    const isNew = run.call(event.toolCallId, event.toolName, event.kind === "switch_mode")
    if (isNew) run.notify(from, "tool_start", [event.toolName])
  },
  "tool-input": (run, event, from) => {
    const args = bounded("args", oneLineJson(event.input), serveLimits.toolArgsBytes)
    run.notify(from, "tool_calls", [{ name: run.nameOf(event.toolCallId), ...args, id: event.toolCallId }])
  },
  "tool-status": (run, event, from) => {
    if (event.status === "running") {
      run.notify(from, "tool_running", run.nameOf(event.toolCallId))
      run.toolStatus(from, event.toolCallId, { status: "running" })
    } else if (event.status === "uncertain") run.toolStatus(from, event.toolCallId, { status: "uncertain" })
  },
  "tool-content": silent,
  "tool-output-delta": silent,
  "tool-output": (run, event, from) => {
    run.toolStatus(from, event.toolCallId, {
      status: "completed",
      ...bounded("preview", textOfOutput(event.output), serveLimits.previewBytes),
      ...(event.attachments === undefined ? {} : { attachments: event.attachments })
    })
    run.notify(from, "tools", null)
  },
  "tool-error": (run, event, from) => {
    run.toolStatus(from, event.toolCallId, {
      status: "failed",
      ...bounded("error", event.error, serveLimits.previewBytes)
    })
    run.notify(from, "tools", null)
  },
  "tool-location": (run, event) => run.place(event.toolCallId, event.locations),
  "tool-terminal": silent,
  "file-diff": (run, event, from) =>
    run.notify(from, "diff", {
      ...(event.toolCallId === undefined ? {} : { toolId: event.toolCallId }),
      path: event.path,
      ...(event.oldText === undefined ? { oldText: null } : bounded("oldText", event.oldText, serveLimits.diffBytes)),
      ...bounded("newText", event.newText, serveLimits.diffBytes)
    }),
  "permission-request": (run, event, from) => run.request(from, event),
  question: (run, event, from) => run.request(from, event),
  "permission-resolved": resolved,
  "question-answered": resolved,
  "question-rejected": resolved,
  "interaction-withdrawn": resolved,
  "proposed-plan-delta": (run, event, from) => {
    for (const markdown of pieces(event.delta, serveLimits.planBytes)) {
      run.notify(from, "plan", { markdown, complete: false })
    }
  },
  "proposed-plan-complete": (run, event, from) =>
    run.notify(from, "plan", { ...bounded("markdown", event.planMarkdown, serveLimits.planBytes), complete: true }),
  "todo-update": (run, event, from) =>
    run.notify(from, "todos", {
      items: event.todos.map(({ content, id, priority, status }, index) => ({
        id: id ?? String(index + 1),
        description: content,
        status,
        ...(priority === undefined ? {} : { priority })
      }))
    }),
  usage: (run, event, from) => {
    run.spending.report(event)
    const { usage } = run.spending
    if (event.observation !== undefined && usage !== undefined) run.notify(from, "usage", usage)
    const { contextSize: size, contextUsed: used, cost } = event
    if (used === undefined || size === undefined) return
    run.notify(from, "context", { used, size, ...(cost === undefined ? {} : { cost }) })
  },
  "session-status": (run, event, from) => {
    const { status } = event
    if (status === "recovering" || status === "error") run.notify(from, "status", { status })
  },
  "session-retry": (run, event, from) => {
    const attempt = event.attempt === undefined ? "" : `attempt ${event.attempt}: `
    const delay = event.delayMs === undefined ? "" : ` (again in ${event.delayMs} ms)`
    run.log(from, `${attempt}${event.message}${delay}`, { level: "warn", code: "session_retry" })
  },
  "response-retracted": (run, event, from) => {
    run.answer.retract(event.responseIds)
    run.notify(from, "retry", null)
  },
  "session-compaction": (run, event, from) =>
    run.notify(from, "compaction", {
      phase: event.phase,
      ...(event.reason === undefined ? {} : { reason: event.reason })
    }),
  "harness-notice": (run, event, from) =>
    run.log(from, event.message, {
      ...(event.severity === undefined ? {} : { level: event.severity }),
      code: event.code
    }),
  diagnostic: (run, event, from) => {
    if (!run.stopping(from, event)) run.log(from, event.diagnostic.message, { code: event.diagnostic.code })
  },
  "conversation-reset": (run, event, from) =>
    run.log(from, `the conversation began anew: ${event.trigger}`, { level: "warn", code: "conversation_reset" }),
  "process-status": (run, event, from) => {
    const how =
      event.signal === undefined ? (event.code === undefined ? "" : ` with ${event.code}`) : ` by ${event.signal}`
    const failed = event.state === "exited" && (event.signal !== undefined || (event.code ?? 0) !== 0)
    run.log(from, `${event.role} ${event.state}${how}`, { level: failed ? "warn" : "info", code: "process_status" })
  },
  "agent-message": (run, event, from) =>
    run.notify(from, "subagent", {
      agent: event.senderName ?? event.sender,
      event: event.type,
      ...bounded("text", event.message, serveLimits.previewBytes)
    }),
  "subagent-updated": (run, event, from) =>
    run.notify(from, "subagent", {
      agent: event.label ?? event.subagentType ?? event.subagentKey,
      key: event.subagentKey,
      event: event.type,
      ...(event.status === undefined ? {} : { status: event.status }),
      ...(event.description === undefined ? {} : bounded("text", event.description, serveLimits.previewBytes))
    }),
  "image-delta": media<"image-delta">(),
  "audio-delta": media<"audio-delta">(),
  "thinking-audio-delta": media<"thinking-audio-delta">(),
  "thinking-resource-link-delta": link<"thinking-resource-link-delta">(),
  "resource-link-delta": link<"resource-link-delta">(),
  "resource-delta": resource,
  "available-commands-update": (run, event, from) => run.notify(from, "commands", { commands: event.commands }),
  "config-update": (run, event, from) => {
    const { agent, permissionMode: mode } = event.config ?? {}
    run.notify(from, "config", {
      ...(event.options === undefined ? {} : { options: event.options }),
      ...(agent === undefined ? {} : { agent }),
      ...(mode === undefined ? {} : { mode })
    })
  },
  "session-agent": (run, event, from) => run.notify(from, "config", { agent: event.agentId }),
  "session-title": (run, event, from) => run.notify(from, "title", { title: event.title }),
  "session-info": (run, event, from) => {
    if (event.title !== undefined) run.notify(from, "title", { title: event.title })
  },
  "goal-updated": (run, event, from) => run.notify(from, "goal", { goal: event.goal }),
  "goal-cleared": (run, _event, from) => run.notify(from, "goal", { goal: null }),
  "auth-status": (run, event, from) => run.notify(from, "auth", { status: event.status }),
  "rate-limit": (run, event, from) =>
    run.notify(from, "rate_limit", {
      status: event.status,
      ...(event.resetsAt === undefined ? {} : { resetsAt: event.resetsAt })
    }),
  "mcp-server-status": (run, event, from) =>
    run.notify(from, "mcp", {
      server: event.serverName,
      status: event.status,
      ...(event.error === undefined ? {} : { error: event.error })
    }),
  "background-work": asEvent,
  "team-update": asEvent,
  "board-update": asEvent,
  "schedule-update": asEvent,
  "memory-update": asEvent,
  "session-created": silent,
  "session-handoff": silent,
  "session-closed": silent,
  "queue-update": silent,
  "input-incorporated": silent,
  finish: (run, event, from) => run.conclude(from, event),
  cancelled: (run, event, from) => run.conclude(from, event),
  error: (run, event, from) => run.conclude(from, event)
}
