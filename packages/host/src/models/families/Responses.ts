/**
 * OpenAI's Responses wire. Nothing is stored at the vendor: reasoning goes back and forth encrypted, in the replay.
 */
import { Effect } from "effect"
import { library } from "./Family.ts"
import type { Family } from "./Family.ts"

const load = () => import("@ai-sdk/openai")

export const responses: Family = {
  api: "responses",
  keyHeader: "authorization",
  load,
  open: (endpoint) =>
    Effect.map(library(load), ({ createOpenAI }) =>
      createOpenAI({ baseURL: endpoint.baseUrl, apiKey: endpoint.placeholder, fetch: endpoint.fetch }).responses(
        endpoint.model
      )
    ),
  prompt: (prompt) => prompt,
  options: { openai: { store: false } },
  outputLimit: () => null
}
