/** A tool call as it is stored: whole when it is small, without its largest parts otherwise (RIG-194). Pure. */
import { seatLimits } from "@tackroom/protocol/seat"
import { headBytes, nestsDeeper } from "@tackroom/protocol/text"
import type { Schema } from "effect"

export type ToolCall = { readonly [field: string]: Schema.Json }

/** What goes first when a call is too large. */
const largest = ["content", "rawOutput", "rawInput"] as const

const bytesOf = (call: ToolCall): number => Buffer.byteLength(JSON.stringify(call))

/** The call, shortened until it fits; `truncated` says so. It is never refused. */
export const storedToolCall = (whole: ToolCall): ToolCall => {
  const tooDeep = Object.keys(whole).filter((field) => nestsDeeper(whole[field], seatLimits.toolCallDepth))
  const kept = Object.entries(whole).filter(([field]) => !tooDeep.includes(field))
  const call: ToolCall = tooDeep.length === 0 ? whole : { ...Object.fromEntries(kept), truncated: true }
  if (bytesOf(call) <= seatLimits.toolCallBytes) return call
  let rest: ToolCall = { ...call, truncated: true }
  for (const field of largest) {
    rest = Object.fromEntries(Object.entries(rest).filter(([key]) => key !== field))
    if (bytesOf(rest) <= seatLimits.toolCallBytes) return rest
  }
  const title = rest["title"]
  if (typeof title === "string") rest = { ...rest, title: headBytes(title, seatLimits.toolTitleBytes) }
  if (bytesOf(rest) <= seatLimits.toolCallBytes) return rest
  // Something nobody expected is large: what identifies the call stays.
  const short = (value: Schema.Json | undefined): Schema.Json =>
    typeof value === "string" ? headBytes(value, seatLimits.nameBytes) : null
  return {
    toolCallId: short(rest["toolCallId"]),
    title: typeof rest["title"] === "string" ? rest["title"] : null,
    kind: short(rest["kind"]),
    truncated: true
  }
}

/** The title that a person is shown. */
export const titleOf = (call: ToolCall): string => {
  const { title } = call
  return typeof title === "string" && title.trim() !== "" ? title : "(untitled)"
}
