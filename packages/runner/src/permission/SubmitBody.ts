/**
 * The body of a submit: the request as the agent made it, and no larger than a rig takes (SEAT-161). What had to be left
 * out is named inside the tool call.
 */
import { type PermissionSubmit, permissionSubmit, seatLimits, type SeatOption } from "@tackroom/protocol/seat"
import { headBytes, nestsDeeper, utf8Length } from "@tackroom/protocol/text"
import type { SeatNames } from "../activity/ActivityQueue.ts"

type ToolCall = PermissionSubmit["toolCall"]

export interface SubmitParts {
  readonly names: SeatNames
  readonly nativeRef: string
  readonly turnId: string
  readonly requestId: string | number | null
  readonly toolCall: ToolCall
  readonly options: ReadonlyArray<SeatOption>
  readonly occurredAt: string
}

/** Largest body, before something is left out. */
const bodyBytes = 262_144

/** What is left out first, of a tool call that is too large. */
const spare = ["content", "rawOutput", "rawInput"] as const

const isObject = (value: unknown): value is ToolCall =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const marked = (toolCall: ToolCall, truncated: ReadonlyArray<string>): ToolCall => {
  const meta = isObject(toolCall["_meta"]) ? toolCall["_meta"] : {}
  const tackroom = isObject(meta["tackroom"]) ? meta["tackroom"] : {}
  return { ...toolCall, _meta: { ...meta, tackroom: { ...tackroom, truncated } } }
}

const without = (toolCall: ToolCall, field: string): ToolCall => {
  const { [field]: _, ...rest } = toolCall
  return rest
}

/** The body as JSON, or `undefined` when the agent's id fits no field of the wire. */
export const submitBody = (parts: SubmitParts): unknown => {
  const { names, toolCall, ...rest } = parts
  const { runtime: _, ...seat } = names
  const bodyOf = (call: ToolCall): PermissionSubmit => ({ ...seat, ...rest, toolCall: call })
  // What no program can walk through is left out like what is too large: the request is still asked.
  const cut = Object.keys(toolCall).filter((field) => nestsDeeper(toolCall[field], seatLimits.toolCallDepth))
  let call = cut.length === 0 ? toolCall : marked(cut.reduce(without, toolCall), cut)
  if (!permissionSubmit.is(bodyOf(call))) return undefined

  const sizeOf = (call: ToolCall): number => utf8Length(JSON.stringify(permissionSubmit.encode(bodyOf(call))))
  let size = sizeOf(call)
  for (const field of spare) {
    if (size <= bodyBytes || !(field in call)) continue
    cut.push(field)
    call = marked(without(call, field), cut)
    size = sizeOf(call)
  }
  const title = call["title"]
  if (size > bodyBytes && typeof title === "string" && utf8Length(title) > seatLimits.toolTitleBytes) {
    cut.push("title")
    call = marked({ ...call, title: headBytes(title, seatLimits.toolTitleBytes) }, cut)
  }
  return permissionSubmit.encode(bodyOf(call))
}
