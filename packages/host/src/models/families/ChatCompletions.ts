/**
 * OpenAI's Chat Completions wire as many servers speak it.
 */
import { Effect } from "effect"
import { library } from "./Family.ts"
import type { Family } from "./Family.ts"

const load = () => import("@ai-sdk/openai-compatible")

export const chatCompletions: Family = {
  api: "chat-completions",
  keyHeader: "authorization",
  load,
  open: (endpoint) =>
    Effect.map(library(load), ({ createOpenAICompatible }) =>
      createOpenAICompatible({
        name: "chat",
        baseURL: endpoint.baseUrl,
        apiKey: endpoint.placeholder,
        fetch: endpoint.fetch,
        includeUsage: true
      }).chatModel(endpoint.model)
    ),
  prompt: (prompt) => prompt,
  options: {},
  outputLimit: () => null
}
