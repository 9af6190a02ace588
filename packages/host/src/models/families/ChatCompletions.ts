/**
 * OpenAI's Chat Completions wire as many servers speak it.
 */
import { Effect } from "effect"
import { library } from "./Family.ts"
import type { Family } from "./Family.ts"

export const chatCompletions: Family = {
  api: "chat-completions",
  keyHeader: "authorization",
  open: (endpoint) =>
    Effect.map(
      library(() => import("@ai-sdk/openai-compatible")),
      ({ createOpenAICompatible }) =>
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
