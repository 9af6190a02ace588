/**
 * Prompts and sessions of harnesses that take text alone, for the drivers that have such ones (HRN-019). What such a harness
 * cannot be given is named, so that it is refused and not passed over.
 */
import type { PromptInput } from "@tackroom/protocol/events"
import type { OpenSession } from "./Harness.ts"

const promptOptions = ["model", "agent", "variant", "system", "tools", "format", "permissionMode"] as const

/** The prompt as one text, or what of it is none. */
export const plainPrompt = (prompt: PromptInput): { readonly text: string } | { readonly refused: string } => {
  const option = promptOptions.find((name) => prompt[name] !== undefined)
  if (option !== undefined) return { refused: option }
  const parts = prompt.parts ?? []
  const other = parts.find((part) => part.type !== "text")
  if (other !== undefined) return { refused: `a part of type ${other.type}` }
  return { text: prompt.text ?? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n") }
}

/** The first of these settings that a session was given. An empty text is none. */
export const givenSetting = <Name extends keyof OpenSession>(
  input: OpenSession,
  names: ReadonlyArray<Name>
): Name | undefined => names.find((name) => input[name] !== undefined && input[name] !== "")
