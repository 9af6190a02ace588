/**
 * What a `session/update` and a `session/request_permission` say, read for a pane and a report: leniently, because an agent
 * that sends a kind or a field we do not know works all the same. Pure.
 */
import { type PermissionSubmit, SeatOption } from "@tackroom/protocol/seat"
import { Result, Schema, SchemaParser } from "effect"

/** An update, as far as a seat shows or tells it. */
export type Update =
  | { readonly _tag: "Text"; readonly voice: "agent" | "thought"; readonly text: string }
  | {
      readonly _tag: "Tool"
      readonly id: string
      readonly title: string | undefined
      readonly kind: string | undefined
      readonly status: string | undefined
    }
  | { readonly _tag: "Plan"; readonly done: number; readonly all: number; readonly current: string }
  /** Known, and of no interest to a seat. */
  | { readonly _tag: "Quiet" }
  | { readonly _tag: "Unknown" }

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const textAt = (value: Json, key: string): string | undefined => {
  const found = value[key]
  return typeof found === "string" ? found : undefined
}

const quiet: Update = { _tag: "Quiet" }
const unknown: Update = { _tag: "Unknown" }

/** Text of a content block; other blocks are named, not shown. */
const blockText = (content: unknown): string => {
  if (!isObject(content)) return ""
  const type = textAt(content, "type") ?? "content"
  return type === "text" ? (textAt(content, "text") ?? "") : `[${type}]`
}

const planOf = (update: Json): Update => {
  const entries = (Array.isArray(update["entries"]) ? update["entries"] : []).filter(isObject)
  const done = entries.filter((entry) => entry["status"] === "completed").length
  const current =
    entries.find((entry) => entry["status"] === "in_progress") ?? entries.find((entry) => entry["status"] === "pending")
  return { _tag: "Plan", done, all: entries.length, current: (current && textAt(current, "content")) ?? "done" }
}

/** Updates that change what a client may offer, not what the agent does. */
const quietKinds: ReadonlySet<string> = new Set([
  "user_message_chunk",
  "available_commands_update",
  "current_mode_update",
  "config_option_update",
  "session_info_update",
  "usage_update",
  "compaction_update",
  "compaction_summary_chunk"
])

/** The conversation that an update belongs to. */
export const sessionOf = (params: unknown): string | undefined =>
  isObject(params) ? textAt(params, "sessionId") : undefined

/** Reads the parameters of a `session/update`. */
export const readUpdate = (params: unknown): Update => {
  const update = isObject(params) ? params["update"] : undefined
  if (!isObject(update)) return unknown
  const kind = textAt(update, "sessionUpdate")
  switch (kind) {
    case "agent_message_chunk":
    case "agent_thought_chunk":
      return {
        _tag: "Text",
        voice: kind === "agent_message_chunk" ? "agent" : "thought",
        text: blockText(update["content"])
      }
    case "tool_call":
    case "tool_call_update": {
      const id = textAt(update, "toolCallId")
      if (id === undefined) return unknown
      return {
        _tag: "Tool",
        id,
        title: textAt(update, "title"),
        kind: textAt(update, "kind"),
        status: textAt(update, "status")
      }
    }
    case "plan":
      return planOf(update)
    default:
      return kind !== undefined && quietKinds.has(kind) ? quiet : unknown
  }
}

const decodePermission = SchemaParser.decodeUnknownResult(
  Schema.Struct({
    sessionId: Schema.String,
    toolCall: Schema.Record(Schema.String, Schema.Json),
    options: Schema.Array(SeatOption)
  })
)

/** What an agent asks for. */
export interface PermissionParams {
  readonly sessionId: string
  readonly toolCall: PermissionSubmit["toolCall"]
  readonly options: ReadonlyArray<SeatOption>
}

/** The parameters of a permission request, or `undefined` when they do not decode. */
export const readPermission = (params: unknown): PermissionParams | undefined =>
  Result.getOrUndefined(decodePermission(params))
