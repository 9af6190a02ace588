/**
 * A tool call as the client sees it, folded from its events. Pure.
 *
 * One fold serves the live projection, which sends what an event changed, and the replay, which sends the last state
 * (ACP-064, ACP-118). `content` and `locations` are always whole, because the client replaces what it had (ACP-119).
 */
import type { ContentBlock, ToolCall, ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk"
import type { EventOf, EventPayload, ToolDisplay, ToolKind as Intent } from "@tackroom/protocol/events"
import { utf8Length, wireJson } from "@tackroom/protocol/text"
import { callText, contentBytes, fitsDiff, rawValue, textBlock } from "./Bounds.ts"

/** The fields of a call that an event can change. */
export type CallField = "title" | "kind" | "name" | "status" | "rawInput" | "rawOutput" | "content" | "locations"

type Status = NonNullable<ToolCall["status"]>

/** One call. */
export interface CallView {
  readonly id: string
  title: string
  name: string
  kind: ToolKind
  status: Status
  rawInput: { readonly value: unknown } | undefined
  rawOutput: { readonly value: unknown } | undefined
  locations: ReadonlyArray<ToolCallLocation> | undefined
  /** Content that the harness showed while the call ran. */
  shown: ReadonlyArray<ToolCallContent>
  /** Output so far. */
  output: string
  diffs: Array<ToolCallContent>
  /** The terminal of the client that it works in, which shows its output. */
  terminal: string | undefined
  /** What the end of the call says. */
  end: string | undefined
  uncertain: boolean
  ended: boolean
}

/** What an event changed. */
export interface CallChange {
  readonly call: CallView
  readonly isNew: boolean
  readonly fields: ReadonlySet<CallField>
  /** Only output that goes on: it may be left out when more comes soon. */
  readonly passing: boolean
}

const kinds: Readonly<Record<Intent, ToolKind>> = {
  read: "read",
  list: "read",
  edit: "edit",
  search: "search",
  shell: "execute",
  lint: "execute",
  fetch: "fetch",
  move: "move",
  delete: "delete",
  switch_mode: "switch_mode",
  reasoning: "think",
  task: "other",
  todos: "other",
  question: "other",
  mcp: "other",
  image: "other",
  computer: "other",
  generic: "other"
}

/** ACP's word for what a tool does (12.5). */
export const kindOf = (intent: Intent | undefined): ToolKind => (intent === undefined ? "other" : kinds[intent])

const uncertainText = "It is not known whether this call took effect; it is not run again."

const firstLine = (text: string): string => {
  const [line = ""] = text.split("\n", 1)
  return line.length > 200 ? `${line.slice(0, 199)}…` : line
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

const textIn = (value: unknown, ...names: ReadonlyArray<string>): string | undefined => {
  const fields = fieldsOf(value)
  for (const name of names) {
    const text = fields[name]
    if (typeof text === "string" && text.trim() !== "") return text
  }
  return undefined
}

/** What a person should read first: the harness's own summary, else what the call works on (ACP-120). */
const titleOf = (display: ToolDisplay | undefined, input: unknown, name: string): string => {
  const summary = display?.summary ?? display?.command ?? textIn(input, "command")
  if (summary !== undefined && summary.trim() !== "") return firstLine(summary)
  const object = display?.path ?? textIn(input, "path", "pattern", "query", "url")
  return object === undefined ? name : firstLine(`${name} ${object}`)
}

/** What a tool gave, as text. */
export const outputText = (output: unknown): string => {
  if (output === null || output === undefined) return ""
  if (typeof output === "string") return output
  const fields = fieldsOf(output)
  const streams = [fields["stdout"], fields["stderr"]].filter((text): text is string => typeof text === "string")
  return streams.length > 0 ? streams.join("\n") : wireJson(output)
}

const textContent = (text: string): ToolCallContent => ({ type: "content", content: textBlock(callText(text)) })

const isBlock = (value: unknown): value is ContentBlock => {
  const block = fieldsOf(value)
  return block["type"] === "text" && typeof block["text"] === "string"
}

/** Content of a running call: what ACP has a form for stays, the rest is text. */
const shownContent = (content: unknown): ReadonlyArray<ToolCallContent> => {
  const list = Array.isArray(content) ? content : [content]
  return list.flatMap((entry): ReadonlyArray<ToolCallContent> => {
    const item = fieldsOf(entry)
    const block = isBlock(item["content"]) ? item["content"] : isBlock(entry) ? entry : undefined
    if (block?.type === "text") return [textContent(block.text)]
    // A diff comes as an event of its own, and a terminal of the harness is none of the client's.
    if (item["type"] === "diff" || item["type"] === "terminal") return []
    const text = outputText(entry)
    return text === "" ? [] : [textContent(text)]
  })
}

const diffContent = (event: EventOf<"file-diff">): ToolCallContent =>
  fitsDiff(event.oldText, event.newText)
    ? { type: "diff", path: event.path, newText: event.newText, oldText: event.oldText ?? null }
    : textContent(
        `${event.path} changed from ${utf8Length(event.oldText ?? "")} to ${utf8Length(event.newText)} bytes; the texts are too long to be shown.`
      )

const sizeOf = (content: ToolCallContent): number => utf8Length(wireJson(content))

/** All content of a call in its order, as much as a frame holds. */
export const contentOf = (call: CallView): Array<ToolCallContent> => {
  const texts = [call.output, call.end ?? ""].filter((text) => text !== "").map(textContent)
  const terminals: ReadonlyArray<ToolCallContent> =
    call.terminal === undefined ? [] : [{ type: "terminal", terminalId: call.terminal }]
  const all = [...call.diffs, ...terminals, ...call.shown, ...texts]
  const kept: Array<ToolCallContent> = []
  let size = 0
  for (const [index, content] of all.entries()) {
    const next = sizeOf(content)
    if (size + next > contentBytes) {
      kept.push(textContent(`${all.length - index} more pieces of this call are too large to be shown.`))
      break
    }
    size += next
    kept.push(content)
  }
  return kept
}

/** A change of a file outside any call, as a call of its own. */
export const diffCall = (event: EventOf<"file-diff">, cursor: number): ToolCall => ({
  toolCallId: `diff:${cursor}`,
  title: event.path,
  kind: "edit",
  status: "completed",
  content: [diffContent(event)],
  locations: [{ path: event.path }]
})

const begin = (id: string, name: string): CallView => ({
  id,
  title: name,
  name,
  kind: "other",
  status: "pending",
  rawInput: undefined,
  rawOutput: undefined,
  locations: undefined,
  shown: [],
  output: "",
  diffs: [],
  terminal: undefined,
  end: undefined,
  uncertain: false,
  ended: false
})

type CallEvent =
  | Extract<EventPayload, { readonly type: `tool-${string}` }>
  | (EventOf<"file-diff"> & { readonly toolCallId: string })

const takes: ReadonlySet<EventPayload["type"]> = new Set<EventPayload["type"]>([
  "tool-start",
  "tool-input",
  "tool-status",
  "tool-content",
  "tool-output-delta",
  "tool-output",
  "tool-error",
  "tool-location",
  "tool-terminal",
  "file-diff"
])

/** The calls of a session that were told of. */
export class Calls {
  readonly #calls = new Map<string, CallView>()

  find(id: string): CallView | undefined {
    return this.#calls.get(id)
  }

  /** Calls that have not ended. */
  get open(): ReadonlyArray<CallView> {
    return [...this.#calls.values()].filter((call) => !call.ended)
  }

  /** The call behind a request, which may be the first that is heard of it. */
  ensure(id: string, name: string): { readonly call: CallView; readonly isNew: boolean } {
    const known = this.#calls.get(id)
    if (known !== undefined) return { call: known, isNew: false }
    const call = begin(id, name)
    this.#calls.set(id, call)
    return { call, isNew: true }
  }

  /** Takes an event; nothing when it is about no call, or changes nothing that is shown. */
  take(payload: EventPayload): CallChange | undefined {
    if (!takes.has(payload.type) || !("toolCallId" in payload) || payload.toolCallId === undefined) return undefined
    const event = payload as CallEvent
    const { call, isNew } = this.ensure(event.toolCallId, event.type === "tool-start" ? event.toolName : "tool")
    const fields = new Set<CallField>()
    if (call.ended) return undefined
    this.#apply(call, event, fields)
    if (!isNew && fields.size === 0) return undefined
    return { call, isNew, fields, passing: event.type === "tool-output-delta" }
  }

  #apply(call: CallView, event: CallEvent, fields: Set<CallField>): void {
    const set = <Field extends "title" | "kind" | "name" | "status">(field: Field, value: CallView[Field]): void => {
      if (call[field] === value) return
      call[field] = value
      fields.add(field)
    }
    switch (event.type) {
      case "tool-start":
        set("name", event.toolName)
        set("kind", kindOf(event.kind ?? event.display?.kind))
        set("title", titleOf(event.display, call.rawInput?.value, event.toolName))
        return
      case "tool-input":
        call.rawInput = rawValue(event.input)
        if (call.rawInput !== undefined) fields.add("rawInput")
        set("title", titleOf(event.display, event.input, call.name))
        return
      case "tool-status":
        if (event.status === "uncertain") {
          call.uncertain = true
          call.ended = true
          call.end = uncertainText
          fields.add("content")
          set("status", "failed")
          return
        }
        set("status", event.status === "running" ? "in_progress" : event.status)
        return
      case "tool-content":
        call.shown = shownContent(event.content)
        fields.add("content")
        return
      case "tool-terminal":
        call.terminal = event.terminalId
        fields.add("content")
        return
      case "tool-output-delta":
        if (call.terminal !== undefined) return
        call.output += event.delta
        fields.add("content")
        return
      case "tool-location":
        call.locations = event.locations.map(({ line, path }) => ({ path, ...(line === undefined ? {} : { line }) }))
        fields.add("locations")
        return
      case "file-diff":
        call.diffs.push(diffContent(event))
        fields.add("content")
        return
      case "tool-output": {
        call.ended = true
        call.rawOutput = rawValue(event.output)
        const text = outputText(event.output)
        // What was shown as it came is not said twice.
        if (call.output === "" && call.terminal === undefined) call.end = text
        if (call.rawOutput !== undefined) fields.add("rawOutput")
        fields.add("content")
        set("status", "completed")
        return
      }
      case "tool-error":
        call.ended = true
        call.end = event.error
        fields.add("content")
        set("status", "failed")
        return
      default:
    }
  }

  /** Forgets what of an ended call is not needed to know it again. */
  rest(call: CallView): void {
    if (!call.ended) return
    call.shown = []
    call.diffs = []
    call.terminal = undefined
    call.output = ""
    call.end = undefined
    call.rawInput = undefined
    call.rawOutput = undefined
  }
}

/** The call whole, as it is first told of, or replayed. */
export const toolCall = (call: CallView): ToolCall => {
  const content = contentOf(call)
  return {
    toolCallId: call.id,
    title: call.title,
    name: call.name,
    kind: call.kind,
    status: call.status,
    ...(call.rawInput === undefined ? {} : { rawInput: call.rawInput.value }),
    ...(call.rawOutput === undefined ? {} : { rawOutput: call.rawOutput.value }),
    ...(call.locations === undefined ? {} : { locations: [...call.locations] }),
    ...(content.length === 0 ? {} : { content }),
    ...(call.uncertain ? { _meta: { tackroom: { uncertain: true } } } : {})
  }
}
