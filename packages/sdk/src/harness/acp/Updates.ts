/**
 * What a `session/update` of an agent means in canonical events. Pure: the state is what of a conversation is needed to read
 * its next frame.
 *
 * A call is reported by the agent in pieces, in any order and as often as it likes; here it begins once, changes, and ends
 * once (HRN-014). Text goes on in one part until something else is said.
 */
import type { HarnessEvent, Todo, ToolDisplay, ToolKind } from "@tackroom/protocol/events"
import type { FrameReader } from "../Frames.ts"
import { configOptionsOf, withMode, type OfferedOptions } from "./AgentOptions.ts"
import { type Fields, fieldsOf, jsonOf, listOf, naturalOf, oneOf, textOf, wordsOf } from "./Fields.ts"

/** A frame on its way to events. */
export type Frame =
  /** What follows belongs to this message of the assistant. */
  | { readonly _tag: "Turn"; readonly messageId: string }
  | { readonly _tag: "Update"; readonly update: Fields }
  /** An image or a sound of a message, its data already kept. */
  | { readonly _tag: "Media"; readonly thinking: boolean; readonly mimeType: string; readonly artifactId: string }
  /** What the agent offers, known from the answer to a call of ours. */
  | { readonly _tag: "Offered"; readonly offered: OfferedOptions }
  /** A person refused this call. */
  | { readonly _tag: "Refused"; readonly toolCallId: string }

interface Call {
  readonly name: string
  readonly title: string
  readonly kind: ToolKind
  readonly status: "reported" | "running" | "ended"
  readonly refused: boolean
  readonly input: string | undefined
  readonly content: string | undefined
  readonly locations: string | undefined
  /** Diffs and terminals that were told of. */
  readonly told: ReadonlyArray<string>
  readonly text: string
  /** What the agent's own terminal showed. */
  readonly shown: string
}

type Commands = Extract<HarnessEvent, { type: "available-commands-update" }>["commands"]

/** What is known of a conversation. */
export interface UpdateState {
  readonly messageId: string
  readonly parts: number
  readonly part:
    | { readonly id: string; readonly channel: "text" | "thinking"; readonly native: string | undefined }
    | undefined
  readonly calls: ReadonlyMap<string, Call>
  readonly offered: OfferedOptions
  readonly commands: Commands
}

/** Nothing was said yet. */
export const initialUpdates: UpdateState = {
  messageId: "",
  parts: 0,
  part: undefined,
  calls: new Map(),
  offered: { options: [], modes: undefined },
  commands: []
}

/** Calls that run: a session with one of them is not idle (HRN-040). */
export const runningCalls = (state: UpdateState): number =>
  [...state.calls.values()].filter((call) => call.status === "running").length

const kinds: Readonly<Record<string, ToolKind>> = {
  read: "read",
  edit: "edit",
  delete: "delete",
  move: "move",
  search: "search",
  execute: "shell",
  think: "reasoning",
  fetch: "fetch",
  switch_mode: "switch_mode"
}

/** Our word for an agent's kind of tool. */
export const toolKindOf = (kind: unknown): ToolKind | undefined =>
  typeof kind === "string" ? (Object.hasOwn(kinds, kind) ? kinds[kind] : "generic") : undefined

interface Translated {
  readonly state: UpdateState
  readonly events: ReadonlyArray<HarnessEvent>
}

const nothing = (state: UpdateState): Translated => ({ state, events: [] })

// Text

const said = (state: UpdateState, update: Fields, channel: "text" | "thinking"): Translated => {
  const content = fieldsOf(update["content"])
  if (content === undefined) throw new Error("a chunk without content")
  const native = textOf(update["messageId"])
  switch (content["type"]) {
    case "text": {
      const delta = textOf(content["text"]) ?? ""
      if (delta === "") return nothing(state)
      const open = state.part
      const goesOn = open !== undefined && open.channel === channel && open.native === native
      const part = goesOn ? open : { id: `${state.messageId}.p${state.parts + 1}`, channel, native }
      return {
        state: goesOn ? state : { ...state, part, parts: state.parts + 1 },
        events: [
          {
            type: channel === "text" ? "text-delta" : "thinking-delta",
            delta,
            messageId: state.messageId,
            partId: part.id
          }
        ]
      }
    }
    case "resource_link": {
      const uri = textOf(content["uri"]) ?? ""
      const mimeType = textOf(content["mimeType"])
      const title = textOf(content["title"])
      return {
        state: { ...state, part: undefined },
        events: [
          {
            type: channel === "text" ? "resource-link-delta" : "thinking-resource-link-delta",
            uri,
            name: textOf(content["name"]) ?? uri,
            ...(mimeType === undefined ? {} : { mimeType }),
            ...(title === undefined ? {} : { title })
          }
        ]
      }
    }
    case "resource":
      return {
        state: { ...state, part: undefined },
        events: [
          {
            type: "resource-delta",
            resource: jsonOf(content["resource"]),
            channel: channel === "text" ? "assistant" : "thinking"
          }
        ]
      }
    default:
      throw new Error("content of an unknown type")
  }
}

// Calls

const displayOf = (call: Pick<Call, "kind" | "title">, input: Fields | undefined): ToolDisplay => {
  const command = textOf(input?.["command"])
  const path = textOf(input?.["path"]) ?? textOf(input?.["file_path"])
  return {
    kind: call.kind,
    summary: call.title,
    ...(command === undefined ? {} : { command }),
    ...(path === undefined ? {} : { path })
  }
}

const textOfContent = (content: ReadonlyArray<unknown>): string =>
  content
    .flatMap((entry) => {
      const block = fieldsOf(fieldsOf(entry)?.["content"])
      const text = block?.["type"] === "text" ? textOf(block["text"]) : undefined
      return text === undefined ? [] : [text]
    })
    .join("\n")

const contentEvents = (
  toolCallId: string,
  content: ReadonlyArray<unknown>,
  told: ReadonlyArray<string>
): { readonly events: ReadonlyArray<HarnessEvent>; readonly told: ReadonlyArray<string> } => {
  const events: Array<HarnessEvent> = []
  const known = [...told]
  for (const entry of content) {
    const item = fieldsOf(entry)
    if (item === undefined) continue
    const key = item["type"] === "diff" || item["type"] === "terminal" ? JSON.stringify(item) : undefined
    if (key === undefined || known.includes(key)) continue
    known.push(key)
    if (item["type"] === "terminal") {
      events.push({ type: "tool-terminal", toolCallId, terminalId: textOf(item["terminalId"]) ?? "" })
      continue
    }
    const oldText = textOf(item["oldText"])
    events.push({
      type: "file-diff",
      toolCallId,
      path: textOf(item["path"]) ?? "",
      ...(oldText === undefined ? {} : { oldText }),
      newText: textOf(item["newText"]) ?? ""
    })
  }
  return { events, told: known }
}

const locationsOf = (value: unknown) =>
  listOf(value).flatMap((entry) => {
    const place = fieldsOf(entry)
    const path = textOf(place?.["path"])
    const line = naturalOf(place?.["line"])
    return path === undefined ? [] : [{ path, ...(line === undefined ? {} : { line }) }]
  })

/** What the agent's own terminal shows and how its command ended: in `_meta`, since a terminal in ACP is the client's. */
const terminalOf = (update: Fields) => {
  const meta = fieldsOf(update["_meta"])
  const exitCode = fieldsOf(meta?.["terminal_exit"])?.["exit_code"]
  return {
    more: textOf(fieldsOf(meta?.["terminal_output_delta"])?.["data"]) ?? "",
    whole: textOf(fieldsOf(meta?.["terminal_output"])?.["data"]),
    exitCode: Number.isSafeInteger(exitCode) ? Number(exitCode) : undefined
  }
}

/** An input that repeats a part of what is known is no news: some agents ask for a permission with less than they said. */
const repeats = (known: string | undefined, input: unknown): boolean => {
  const before = known === undefined ? undefined : fieldsOf(JSON.parse(known))
  const now = fieldsOf(input)
  if (before === undefined || now === undefined) return false
  return Object.entries(now).every(([key, value]) => JSON.stringify(value) === JSON.stringify(before[key]))
}

const isUncertain = (update: Fields): boolean =>
  fieldsOf(fieldsOf(update["_meta"])?.["tackroom"])?.["uncertain"] === true

const endOf = (toolCallId: string, call: Call, update: Fields): HarnessEvent => {
  const raw = update["rawOutput"]
  const text = call.text === "" ? call.shown : call.text
  const { exitCode } = terminalOf(update)
  const metadata = exitCode === undefined ? {} : { metadata: { exitCode } }
  if (update["status"] === "completed") {
    return { type: "tool-output", toolCallId, output: jsonOf(raw ?? (text === "" ? null : text)), ...metadata }
  }
  if (isUncertain(update)) return { type: "tool-status", toolCallId, status: "uncertain" }
  const error = text === "" ? (textOf(raw) ?? (call.refused ? "The call was refused" : "The call failed")) : text
  return { type: "tool-error", toolCallId, error, code: call.refused ? "denied" : "failed", ...metadata }
}

const called = (state: UpdateState, update: Fields): Translated => {
  const toolCallId = wordsOf(update["toolCallId"])
  if (toolCallId === undefined) throw new Error("a call without an id")
  const known = state.calls.get(toolCallId)
  if (known?.status === "ended") return nothing(state)
  const events: Array<HarnessEvent> = []
  const isSame = update["rawInput"] === undefined || repeats(known?.input, update["rawInput"])
  const input = isSame ? known?.input : JSON.stringify(update["rawInput"])
  const title = wordsOf(update["title"]) ?? known?.title
  const kind = toolKindOf(update["kind"]) ?? known?.kind ?? "generic"
  const name = wordsOf(update["name"]) ?? known?.name ?? title ?? wordsOf(update["kind"]) ?? "tool"
  const face = { name, title: title ?? name, kind }
  const isNew = known === undefined
  const isOther = known !== undefined && (known.title !== face.title || known.kind !== kind || known.name !== name)
  const display = displayOf(face, fieldsOf(update["rawInput"]))
  if (isNew || isOther) events.push({ type: "tool-start", toolCallId, toolName: name, kind, display })
  if (!isSame && input !== known?.input) {
    events.push({ type: "tool-input", toolCallId, input: jsonOf(update["rawInput"]), display })
  }
  const locations = locationsOf(update["locations"])
  const places = locations.length === 0 ? known?.locations : JSON.stringify(locations)
  if (locations.length > 0 && places !== known?.locations) events.push({ type: "tool-location", toolCallId, locations })

  const content = Array.isArray(update["content"]) ? update["content"] : undefined
  const told = content === undefined ? undefined : contentEvents(toolCallId, content, known?.told ?? [])
  const shown = content === undefined ? known?.content : JSON.stringify(content)
  const status = oneOf(["pending", "in_progress", "completed", "failed"], update["status"])
  const ends = status === "completed" || status === "failed"
  const runs = known?.status === "running" || status === "in_progress" || status === "completed"
  if (runs && known?.status !== "running") events.push({ type: "tool-status", toolCallId, status: "running" })
  if (told !== undefined) {
    events.push(...told.events)
    if (!ends && content !== undefined && shown !== known?.content && content.length > told.events.length) {
      events.push({ type: "tool-content", toolCallId, content: jsonOf(content) })
    }
  }
  const { more, whole } = terminalOf(update)
  if (more !== "") events.push({ type: "tool-output-delta", toolCallId, delta: more, stream: "combined" })
  const call: Call = {
    ...face,
    status: ends ? "ended" : runs ? "running" : "reported",
    refused: known?.refused ?? false,
    input,
    content: shown,
    locations: places,
    told: told?.told ?? known?.told ?? [],
    text: content === undefined ? (known?.text ?? "") : textOfContent(content),
    shown: (whole ?? known?.shown ?? "") + more
  }
  if (ends) events.push(endOf(toolCallId, call, update))
  // Of a call that ended only that is still needed.
  const kept = ends
    ? { ...call, input: undefined, content: undefined, locations: undefined, told: [], text: "", shown: "" }
    : call
  return { state: { ...state, part: undefined, calls: new Map(state.calls).set(toolCallId, kept) }, events }
}

/** Calls that are remembered when the next turn begins; a later word about an older one is taken for a new call. */
const rememberedCalls = 512

const remembered = (calls: UpdateState["calls"]): UpdateState["calls"] =>
  calls.size <= rememberedCalls ? calls : new Map([...calls].slice(-rememberedCalls))

// The session

const planned = (state: UpdateState, update: Fields): Translated => ({
  state,
  events: [
    {
      type: "todo-update",
      todos: listOf(update["entries"]).flatMap((entry): ReadonlyArray<Todo> => {
        const item = fieldsOf(entry)
        const content = textOf(item?.["content"])
        const priority = oneOf(["low", "medium", "high"], item?.["priority"])
        return content === undefined
          ? []
          : [
              {
                content,
                status: oneOf(["pending", "in_progress", "completed", "cancelled"], item?.["status"]) ?? "pending",
                ...(priority === undefined ? {} : { priority })
              }
            ]
      })
    }
  ]
})

const commandsOf = (update: Fields): Commands =>
  listOf(update["availableCommands"]).flatMap((entry) => {
    const item = fieldsOf(entry)
    const name = wordsOf(item?.["name"])
    const description = wordsOf(item?.["description"])
    const hint = wordsOf(fieldsOf(item?.["input"])?.["hint"])
    return name === undefined
      ? []
      : [
          {
            name: name.replace(/^\//u, ""),
            ...(description === undefined ? {} : { description }),
            ...(hint === undefined ? {} : { input: { hint } }),
            source: "harness" as const
          }
        ]
  })

const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Agents say their commands and options again whenever something might have changed; told is what did. */
const commanded = (state: UpdateState, update: Fields): Translated => {
  const commands = commandsOf(update)
  if (isEqual(commands, state.commands)) return nothing(state)
  return { state: { ...state, commands }, events: [{ type: "available-commands-update", commands }] }
}

const optionsChanged = (state: UpdateState, offered: OfferedOptions): Translated => {
  const options = configOptionsOf(offered)
  if (isEqual(options, configOptionsOf(state.offered))) return nothing({ ...state, offered })
  return { state: { ...state, offered }, events: [{ type: "config-update", options }] }
}

const used = (state: UpdateState, update: Fields): Translated => {
  const contextUsed = naturalOf(update["used"])
  const contextSize = naturalOf(update["size"])
  const cost = fieldsOf(update["cost"])
  const amount = cost?.["amount"]
  const currency = textOf(cost?.["currency"])
  return {
    state,
    events: [
      {
        type: "usage",
        ...(contextUsed === undefined ? {} : { contextUsed }),
        ...(contextSize === undefined ? {} : { contextSize }),
        ...(typeof amount === "number" && Number.isFinite(amount) && currency !== undefined
          ? { cost: { amount, currency } }
          : {})
      }
    ]
  }
}

const noticed = (state: UpdateState, update: Fields): Translated => {
  const description = wordsOf(update["description"])
  const severity = update["severity"] === "error" ? "error" : update["severity"] === "warning" ? "warn" : "info"
  return {
    state,
    events: [
      {
        type: "harness-notice",
        code: "agent_notice",
        message: wordsOf(update["title"]) ?? description ?? "The agent says something without words",
        severity,
        ...(description === undefined ? {} : { details: { description } })
      }
    ]
  }
}

const compacted = (state: UpdateState, update: Fields): Translated => {
  const summary = listOf(update["summary"])
    .flatMap((block) => textOf(fieldsOf(block)?.["text"]) ?? [])
    .join("\n")
  return {
    state,
    events: [
      {
        type: "session-compaction",
        phase: update["status"] === "in_progress" ? "started" : "completed",
        ...(summary === "" ? {} : { summary })
      }
    ]
  }
}

const translate = (state: UpdateState, update: Fields): Translated | "unknown" => {
  switch (update["sessionUpdate"]) {
    case "agent_message_chunk":
      return said(state, update, "text")
    case "agent_thought_chunk":
      return said(state, update, "thinking")
    // The runtime has the user's message already (RT-148).
    case "user_message_chunk":
    // A compaction says its summary whole at its end, or nobody needs it.
    case "compaction_summary_chunk":
      return nothing(state)
    case "tool_call":
    case "tool_call_update":
      return called(state, update)
    case "plan":
      return planned(state, update)
    case "available_commands_update":
      return commanded(state, update)
    case "config_option_update":
      return optionsChanged(state, { ...state.offered, options: listOf(update["configOptions"]) })
    case "current_mode_update": {
      const mode = textOf(update["currentModeId"])
      return mode === undefined ? nothing(state) : optionsChanged(state, withMode(state.offered, mode))
    }
    case "session_info_update": {
      const title = wordsOf(update["title"])
      return title === undefined
        ? nothing(state)
        : { state, events: [{ type: "session-title", title: title.slice(0, 200), titleSource: "harness" }] }
    }
    case "usage_update":
      return used(state, update)
    case "notice":
      return noticed(state, update)
    case "compaction_update":
      return compacted(state, update)
    default:
      return "unknown"
  }
}

/** The reader of one conversation's frames. */
export const updateReader: FrameReader<UpdateState, Frame> = {
  initial: initialUpdates,
  kindOf: (frame) => (frame._tag === "Update" ? (textOf(frame.update["sessionUpdate"]) ?? "unnamed") : frame._tag),
  translate: (state, frame) => {
    switch (frame._tag) {
      case "Turn":
        return {
          state: { ...state, messageId: frame.messageId, parts: 0, part: undefined, calls: remembered(state.calls) },
          events: []
        }
      case "Offered":
        return nothing({ ...state, offered: frame.offered })
      case "Refused": {
        const call = state.calls.get(frame.toolCallId)
        if (call === undefined) return nothing(state)
        return {
          state: { ...state, calls: new Map(state.calls).set(frame.toolCallId, { ...call, refused: true }) },
          events: []
        }
      }
      case "Media": {
        const { artifactId, mimeType, thinking } = frame
        const isAudio = mimeType.startsWith("audio/")
        if (thinking && !isAudio) return nothing(state)
        return {
          state: { ...state, part: undefined },
          events: [
            {
              type: isAudio ? (thinking ? "thinking-audio-delta" : "audio-delta") : "image-delta",
              mimeType,
              artifactId
            } as HarnessEvent
          ]
        }
      }
      case "Update":
        return translate(state, frame.update)
    }
  }
}
