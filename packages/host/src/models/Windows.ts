/**
 * How much a model can take in, and a rough count of what a request holds: what compaction decides on (AGT-190, 194).
 *
 * Pure. A window is the tokens a request may hold, not the sum of request and answer where a vendor states both.
 * An unknown model has 128,000; a scripted one says its own.
 */
import type { ModelMessage, ModelRequest } from "./ModelRequest.ts"

export const defaultWindow = 128_000

/** The first match counts. Matched in the last path segment, so that `vendor/model` ids of routers work too. */
const known: ReadonlyArray<readonly [prefix: string, tokens: number]> = [
  ["gpt-4.1", 1_047_576],
  ["gpt-5-chat", 128_000],
  ["gpt-5", 272_000],
  ["o1", 200_000],
  ["o3", 200_000],
  ["o4", 200_000],
  ["claude-", 200_000],
  ["gemini-", 1_048_576],
  ["grok-4", 256_000],
  ["kimi-k2", 262_144]
]

export const contextWindow = (model: string): number => {
  const id = model.slice(model.lastIndexOf("/") + 1).toLowerCase()
  return known.find(([prefix]) => id.startsWith(prefix))?.[1] ?? defaultWindow
}

const charsPerToken = 4

const messageChars = (message: ModelMessage): number => {
  switch (message.role) {
    case "user":
      return message.text.length
    case "assistant": {
      let chars = 0
      for (const part of message.parts) {
        chars += part.type === "call" ? part.tool.length + JSON.stringify(part.arguments).length : part.text.length
      }
      return chars
    }
    case "tool":
      return message.results.reduce((sum, result) => sum + result.text.length, 0)
  }
}

/** Tokens of a whole request: instructions, messages and tool schemas. */
export const estimateTokens = (request: ModelRequest): number => {
  let chars = request.instructions.length
  for (const message of request.messages) chars += messageChars(message)
  for (const tool of request.tools) {
    chars += tool.alias.length + tool.description.length + JSON.stringify(tool.schema).length
  }
  return Math.ceil(chars / charsPerToken)
}
