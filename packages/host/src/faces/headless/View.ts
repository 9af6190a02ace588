/**
 * What a person sees of a run: one event in, lines out. Pure; the same events always give the same lines.
 *
 * It owns the wording and what is worth showing. It does not own the terminal: pieces for `answer` go to stdout, pieces
 * for `log` to stderr, and durations come from the events' own times. Text of a model or a tool is made safe here.
 * With `text` the lead's text is an `answer` as it comes (HDL-010); with `live` stderr is a terminal and shows more.
 */
import type { EventOf, EventPayload } from "@tackroom/protocol/events"
import type { EventRecord } from "@tackroom/protocol/run"
import { count, cut, duration, oneLine, safe, signs, tint, type Style, type Tint } from "./Style.ts"
import { diffStat } from "./LineDiff.ts"
import { briefArguments, briefOutput, commandTail, failedCommand } from "./ToolLine.ts"

export interface ViewOptions {
  /** The lead's session: only its text is the answer. */
  readonly lead: string
  /** Stdout is a terminal: the text is shown as it comes. */
  readonly text: boolean
  /** Stderr is a terminal. */
  readonly live: boolean
  readonly quiet: boolean
  readonly style: Style
}

export interface Piece {
  readonly to: "answer" | "log"
  readonly text: string
}

interface CallView {
  readonly tool: string
  readonly category: string | undefined
  readonly brief: string
  /** When it was dispatched, in milliseconds since 1970. */
  readonly since: number | undefined
  readonly change: string
}

interface Part {
  readonly id: string
  readonly shown: string
}

export interface View {
  readonly calls: ReadonlyMap<string, CallView>
  /** The part whose text is being shown. */
  readonly part: Part | undefined
  /** The terminal's cursor stands behind text that has no line end yet. */
  readonly midLine: boolean
  /** Text of the present response was shown, so that its withdrawal has to be told. */
  readonly spoken: boolean
}

export const emptyView: View = { calls: new Map(), part: undefined, midLine: false, spoken: false }

type Step = readonly [View, ReadonlyArray<Piece>]

const nothing = (view: View): Step => [view, []]

/** Internal tools have events of their own that say more. */
const hiddenTools: ReadonlySet<string> = new Set(["plan.update", "ask_user"])
/** Calls of these categories are announced when they start: they may take long. */
const announced: ReadonlySet<string> = new Set(["exec", "network", "external"])
const tailLines = 8

/** Ends an open line of text first, where text and log share a terminal. */
export const log = (view: View, options: ViewOptions, lines: ReadonlyArray<string>): Step => {
  if (lines.length === 0 || options.quiet) return nothing(view)
  const text = lines.map((line) => `${line}\n`).join("")
  const shared = options.text && options.live
  return view.midLine && shared
    ? [
        { ...view, midLine: false },
        [
          { to: "answer", text: "\n" },
          { to: "log", text }
        ]
      ]
    : [view, [{ to: "log", text }]]
}

const speak = (view: View, text: string): Step =>
  text === "" ? nothing(view) : [{ ...view, midLine: !text.endsWith("\n"), spoken: true }, [{ to: "answer", text }]]

const indent = "  "

const item = (options: ViewOptions, sign: string, colour: Tint, text: string, rest: string): string => {
  const { dot } = signs(options.style)
  const tail = rest === "" ? "" : ` ${dot} ${rest}`
  const room = options.style.width - indent.length - 2 - tail.length
  return `${indent}${tint(options.style, colour, sign)} ${cut(options.style, text, room)}${tint(options.style, "dim", tail)}`
}

const callText = (call: CallView): string => (call.brief === "" ? call.tool : `${call.tool} ${call.brief}`)

const setCall = (view: View, id: string, change: Partial<CallView>): View => {
  const known = view.calls.get(id) ?? { tool: "tool", category: undefined, brief: "", since: undefined, change: "" }
  return { ...view, calls: new Map(view.calls).set(id, { ...known, ...change }) }
}

const takeCall = (view: View, id: string): readonly [View, CallView | undefined] => {
  const call = view.calls.get(id)
  if (call === undefined) return [view, undefined]
  const calls = new Map(view.calls)
  calls.delete(id)
  return [{ ...view, calls }, call]
}

const named = (tool: string | undefined, call: CallView | undefined): CallView =>
  call ?? { tool: tool ?? "tool", category: undefined, brief: "", since: undefined, change: "" }

const metaText = (metadata: { readonly [name: string]: unknown } | undefined, name: string): string | undefined => {
  const value = metadata?.[name]
  return typeof value === "string" ? value : undefined
}

const callEnd = (
  view: View,
  options: ViewOptions,
  event: EventOf<"tool-output"> | EventOf<"tool-error"> | EventOf<"tool-status">,
  at: number
): Step => {
  const [rest, found] = takeCall(view, event.toolCallId)
  const call = named(metaText(event.metadata, "tool"), found)
  if (hiddenTools.has(call.tool)) return nothing(rest)
  const took = call.since === undefined ? "" : duration(at - call.since)
  const outcome = endOf(options, event, call)
  const facts = [call.change, ...outcome.facts, took].filter((fact) => fact !== "").join(", ")
  return log(rest, options, [item(options, outcome.sign, outcome.colour, callText(call), facts), ...outcome.more])
}

interface Outcome {
  readonly sign: string
  readonly colour: Tint
  readonly facts: ReadonlyArray<string>
  readonly more: ReadonlyArray<string>
}

const endOf = (
  options: ViewOptions,
  event: EventOf<"tool-output"> | EventOf<"tool-error"> | EventOf<"tool-status">,
  call: CallView
): Outcome => {
  const { done, failed, unknown } = signs(options.style)
  switch (event.type) {
    case "tool-output": {
      const bad = failedCommand(call.tool, event.output)
      const tail = options.live && call.tool === "shell.run" ? commandTail(event.output, tailLines) : []
      return {
        sign: bad ? failed : done,
        colour: bad ? "yellow" : "green",
        facts: [briefOutput(call.tool, event.output)],
        more: tail.map((line) => tint(options.style, "dim", `${indent}  ${cut(options.style, oneLine(line), 120)}`))
      }
    }
    case "tool-error": {
      const what = event.code === undefined || event.code === "failed" ? "failed" : event.code
      return {
        sign: failed,
        colour: "red",
        facts: [`${what}: ${cut(options.style, oneLine(event.error), 100)}`],
        more: []
      }
    }
    case "tool-status": {
      const reason = metaText(event.metadata, "reason")
      const why = reason === undefined ? "" : `: ${cut(options.style, oneLine(reason), 80)}`
      return { sign: unknown, colour: "yellow", facts: [`outcome unknown${why}`], more: [] }
    }
  }
}

const started = (view: View, options: ViewOptions, event: EventOf<"tool-status">, at: number): Step => {
  const next = setCall(view, event.toolCallId, { since: at })
  const call = next.calls.get(event.toolCallId)
  if (!options.live || call === undefined || !announced.has(call.category ?? "")) return nothing(next)
  return log(next, options, [item(options, signs(options.style).running, "cyan", callText(call), "")])
}

const decided = {
  allow_once: "allowed once",
  allow_always: "allowed for this session",
  deny: "denied",
  reject_always: "denied for good"
} as const

const resolved = (view: View, options: ViewOptions, event: EventOf<"permission-resolved">): Step => {
  const call = named(event.tool, event.toolCallId === undefined ? undefined : view.calls.get(event.toolCallId))
  const allowed = event.decision === "allow_once" || event.decision === "allow_always"
  const note = event.note === undefined ? "" : ` (${oneLine(event.note)})`
  const by = event.origin === "person" ? "" : ` by ${event.origin.replace("_", " ")}`
  const { done, failed } = signs(options.style)
  return log(view, options, [
    item(
      options,
      allowed ? done : failed,
      allowed ? "green" : "yellow",
      `${decided[event.decision]}${by}: ${callText(call)}`,
      note.trim()
    )
  ])
}

const plan = (view: View, options: ViewOptions, event: EventOf<"todo-update">): Step => {
  const { style } = options
  const done = event.todos.filter(({ status }) => status === "completed").length
  if (!options.live) return log(view, options, [`${indent}plan: ${done} of ${event.todos.length} done`])
  const { done: tick, failed, open, running } = signs(style)
  const marks = { completed: tick, in_progress: running, pending: open, cancelled: failed }
  const colours = { completed: "green", in_progress: "cyan", pending: "dim", cancelled: "dim" } as const
  return log(view, options, [
    `${indent}${tint(style, "bold", "plan")}`,
    ...event.todos.map(
      ({ content, status }) =>
        `${indent}  ${tint(style, colours[status], marks[status])} ${cut(style, oneLine(content), style.width - 6)}`
    )
  ])
}

const textEnd = (view: View, options: ViewOptions, event: EventOf<"text-end">): Step => {
  const { style } = options
  if (event.channel === "thinking") {
    if (!options.live || event.text.trim() === "") return nothing(view)
    const thought = cut(style, oneLine(event.text), style.width * 2)
    return log(view, options, [`${indent}${tint(style, "dim", thought)}`])
  }
  if (!options.text) return nothing({ ...view, part: undefined })
  const shown = view.part?.id === event.partId ? view.part.shown : ""
  const closed = { ...view, part: undefined }
  const whole = safe(event.text)
  // The closing text is the text (RT-207): what the deltas left out is added, what differs is said again.
  const missing = event.text.startsWith(shown) ? safe(event.text.slice(shown.length)) : `\n${whole}`
  if (missing === "") return speak(closed, view.midLine ? "\n" : "")
  return speak(closed, missing.endsWith("\n") ? missing : `${missing}\n`)
}

const delta = (view: View, options: ViewOptions, event: EventOf<"text-delta">): Step => {
  if (!options.text) return nothing(view)
  const fresh = view.part?.id !== event.partId
  const shown = fresh ? event.delta : `${view.part?.shown ?? ""}${event.delta}`
  const gap = fresh && view.midLine ? "\n" : ""
  return speak({ ...view, part: { id: event.partId, shown } }, gap + safe(event.delta))
}

const notice = (view: View, options: ViewOptions, colour: Tint, text: string): Step =>
  log(view, options, [item(options, signs(options.style).notice, colour, oneLine(text), "")])

const show = (view: View, options: ViewOptions, payload: EventPayload, at: number, isLead: boolean): Step => {
  switch (payload.type) {
    case "text-delta":
      return isLead ? delta(view, options, payload) : nothing(view)
    case "text-end":
      return isLead ? textEnd(view, options, payload) : nothing(view)
    case "tool-start":
      return nothing(
        setCall(view, payload.toolCallId, {
          tool: oneLine(metaText(payload.metadata, "qualified_name") ?? payload.toolName),
          category: metaText(payload.metadata, "category")
        })
      )
    case "tool-input":
      return nothing(setCall(view, payload.toolCallId, { brief: briefArguments(payload.input) }))
    case "tool-status":
      if (payload.status === "uncertain") return callEnd(view, options, payload, at)
      return payload.status === "running" && payload.metadata?.["dispatch"] === true
        ? started(view, options, payload, at)
        : nothing(view)
    case "file-diff": {
      if (payload.toolCallId === undefined) return nothing(view)
      const { added, removed } = diffStat(payload.oldText ?? "", payload.newText)
      const change = `+${added} ${signs(options.style).minus}${removed}`
      return nothing(setCall(view, payload.toolCallId, { change }))
    }
    case "tool-output":
    case "tool-error":
      return callEnd(view, options, payload, at)
    case "permission-resolved":
      return resolved(view, options, payload)
    case "question-answered":
      if (payload.origin === "policy") return notice(view, options, "yellow", "nobody was there to answer the question")
      return log(view, options, [
        item(options, signs(options.style).done, "green", `answered: ${oneLine(payload.answers.flat().join(", "))}`, "")
      ])
    case "interaction-withdrawn":
      return notice(view, options, "yellow", `the ${payload.kind} was withdrawn: ${payload.reason}`)
    case "todo-update":
      return plan(view, options, payload)
    case "response-start":
      return nothing({ ...view, spoken: false })
    case "response-retracted":
      if (!view.spoken) return nothing(view)
      return notice(view, options, "yellow", `the text above is withdrawn: ${payload.reason}`)
    case "session-retry": {
      const wait = payload.delayMs === undefined ? "" : ` in ${duration(payload.delayMs)}`
      return notice(view, options, "yellow", `asking the model again${wait}: ${payload.message}`)
    }
    case "session-compaction":
      return payload.phase === "completed"
        ? notice(view, options, "dim", "older parts of the conversation were summarised for the model")
        : nothing(view)
    case "harness-notice":
      return payload.severity === "warn" || payload.severity === "error"
        ? notice(view, options, payload.severity === "error" ? "red" : "yellow", payload.message)
        : nothing(view)
    default:
      return nothing(view)
  }
}

/** What is shown: an event of a run; one of an unknown type has no record. */
export interface Shown {
  readonly sessionId: string
  readonly event: EventRecord | undefined
}

/** What one event shows. Types it does not know show nothing (RUN-175). */
export const view = (current: View, { event, sessionId }: Shown, options: ViewOptions): Step =>
  event === undefined
    ? nothing(current)
    : show(current, options, event.payload, Date.parse(event.at), sessionId === options.lead)

/** Ends what is open, before the last line. */
export const finishLine = (current: View): Step =>
  current.midLine ? [{ ...current, midLine: false }, [{ to: "answer", text: "\n" }]] : nothing(current)

/** The last line: how it ended, what it used, where to go on. */
export const summaryLine = (
  end: {
    readonly status: "completed" | "failed" | "cancelled"
    readonly failure?: string
    readonly message?: string
    readonly usage: {
      readonly inputTokens: number | null
      readonly outputTokens: number | null
      readonly rounds: number
    }
    readonly sessionId: string
    readonly scripted: boolean
  },
  style: Style
): string => {
  const { done, dot, failed } = signs(style)
  const good = end.status === "completed"
  const tokens = (number: number | null, what: string) =>
    number === null ? [] : [`${number.toLocaleString("en-US")} ${what}`]
  const why =
    end.failure === undefined ? "" : ` (${end.failure}${end.message === undefined ? "" : `: ${oneLine(end.message)}`})`
  const used = [...tokens(end.usage.inputTokens, "tokens in"), ...tokens(end.usage.outputTokens, "out")].join(", ")
  const parts = [
    count(end.usage.rounds, "round"),
    ...(used === "" ? [] : [used]),
    ...(end.scripted ? ["scripted"] : []),
    `session ${end.sessionId}`
  ]
  return `${tint(style, good ? "green" : "red", good ? done : failed)} ${tint(style, "bold", end.status)}${why} ${tint(style, "dim", `${dot} ${parts.join(` ${dot} `)}`)}`
}
