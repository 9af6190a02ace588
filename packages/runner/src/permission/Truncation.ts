/** What a tool call loses when it is too large for a submit, in which order, and how it says so (SEAT-161). */
import type { PermissionSubmit } from "@tackroom/protocol/seat"
import { headCodePoints } from "@tackroom/protocol/text"

export type ToolCall = PermissionSubmit["toolCall"]

/** Largest body, before something is left out. */
export const bodyBytes = 262_144

/** What is left out first, of a tool call that is too large. */
export const spare: ReadonlyArray<string> = ["content", "rawOutput", "rawInput"]

/** What tells a call from another: it stays, cut where it is long. */
export const identifying: ReadonlySet<string> = new Set(["toolCallId", "title", "kind", "status"])

const mostNames = 16
const nameCharacters = 64

const isObject = (value: unknown): value is ToolCall =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const markOf = (toolCall: ToolCall) => {
  const meta = isObject(toolCall["_meta"]) ? toolCall["_meta"] : {}
  const tackroom = isObject(meta["tackroom"]) ? meta["tackroom"] : {}
  return { meta, tackroom }
}

/** The names of what a tool call says that it has lost already. */
export const truncatedOf = (toolCall: ToolCall): ReadonlyArray<string> => {
  const { truncated } = markOf(toolCall).tackroom
  return Array.isArray(truncated) ? truncated.filter((name) => typeof name === "string").slice(0, mostNames) : []
}

/** Names what a tool call has lost. */
export const markTruncated = (toolCall: ToolCall, truncated: ReadonlyArray<string>): ToolCall => {
  const { meta, tackroom } = markOf(toolCall)
  // The names are the agent's, too: as many as help, and no longer than they help.
  const shown = truncated.slice(0, mostNames).map((name) => headCodePoints(name, nameCharacters))
  return { ...toolCall, _meta: { ...meta, tackroom: { ...tackroom, truncated: shown } } }
}
