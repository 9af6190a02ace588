/**
 * Anthropic's Messages wire. The system text and the last message end a cached prefix each, so that a round pays for
 * what is new in it.
 */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider"
import { Effect } from "effect"
import { library } from "./Family.ts"
import type { Family } from "./Family.ts"

const ephemeral = { anthropic: { cacheControl: { type: "ephemeral" } } }

const marked = (message: LanguageModelV4Message): LanguageModelV4Message => ({ ...message, providerOptions: ephemeral })

const withCachePoints = (prompt: LanguageModelV4Prompt): LanguageModelV4Prompt =>
  prompt.map((message, index) => {
    const endsPrefix = message.role === "system" || (index === prompt.length - 1 && message.role !== "assistant")
    return endsPrefix ? marked(message) : message
  })

const load = () => import("@ai-sdk/anthropic")

export const anthropic: Family = {
  api: "anthropic",
  keyHeader: "x-api-key",
  load,
  open: (endpoint) =>
    Effect.map(library(load), ({ createAnthropic }) =>
      createAnthropic({ baseURL: endpoint.baseUrl, apiKey: endpoint.placeholder, fetch: endpoint.fetch }).messages(
        endpoint.model
      )
    ),
  prompt: withCachePoints,
  options: {},
  // The wire demands a limit, and the library's for an unknown model (4,096) cuts ordinary files.
  outputLimit: (model) => (model.includes("claude") ? null : 8_192)
}
