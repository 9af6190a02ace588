/** Reads what a runner wrote to its agent: the text of a prompt, the outcome of an answer. Pure. */
import { at, idText, type Json } from "../../Json.ts"
import type { Received } from "./Agent.ts"

/** The text of a prompt: one text block, or undefined. */
export const promptText = (prompt: Received): string | undefined => {
  const blocks = prompt.params["prompt"]
  if (!Array.isArray(blocks) || blocks.length !== 1) return undefined
  const text = at(blocks, 0, "text")
  return at(blocks, 0, "type") === "text" && typeof text === "string" ? text : undefined
}

/** The option an answer selected, `cancelled`, or the error it was. */
export const outcomeOf = (message: Json | undefined): string => {
  const outcome = at(message, "result", "outcome", "outcome")
  if (outcome === "selected") return `selected ${idText(at(message, "result", "outcome", "optionId")) ?? "nothing"}`
  if (typeof outcome === "string") return outcome
  const code = at(message, "error", "code")
  return code === undefined ? JSON.stringify(message) : `error ${String(code)}`
}
