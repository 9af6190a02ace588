/**
 * What each provider reports about tokens, in the one convention of the journal: `input` without cached tokens,
 * `output` with reasoning, null for what was not reported (HRN-017, AGT-011).
 *
 * Pure. It reads the provider's own object: the client libraries turn "not reported" into 0.
 */
import type { LiveApi } from "./Endpoint.ts"
import type { ModelTokens } from "./ModelRequest.ts"
import { unreportedTokens } from "./ModelRequest.ts"

type Fields = { readonly [key: string]: unknown }

const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const count = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : null

const without = (total: number | null, ...parts: ReadonlyArray<number | null>): number | null =>
  total === null
    ? null
    : Math.max(
        0,
        parts.reduce<number>((rest, part) => rest - (part ?? 0), total)
      )

const ofResponses = (usage: Fields): ModelTokens => {
  const details = fields(usage["input_tokens_details"])
  const read = count(details["cached_tokens"])
  const write = count(details["cache_write_tokens"])
  return {
    input: without(count(usage["input_tokens"]), read, write),
    output: count(usage["output_tokens"]),
    reasoning: count(fields(usage["output_tokens_details"])["reasoning_tokens"]),
    cache: { read, write }
  }
}

const ofChatCompletions = (usage: Fields): ModelTokens => {
  const prompt = count(usage["prompt_tokens"])
  const completion = count(usage["completion_tokens"])
  const total = count(usage["total_tokens"])
  const details = fields(usage["prompt_tokens_details"])
  const read = count(details["cached_tokens"]) ?? count(usage["prompt_cache_hit_tokens"])
  const write = count(details["cache_write_tokens"])
  // Some servers leave reasoning out of completion_tokens; their total then shows it.
  const shown = total !== null && prompt !== null ? total - prompt : null
  return {
    input: without(prompt, read, write),
    output: completion !== null && shown !== null && shown > completion ? shown : completion,
    reasoning: count(fields(usage["completion_tokens_details"])["reasoning_tokens"]),
    cache: { read, write }
  }
}

const ofAnthropic = (usage: Fields): ModelTokens => ({
  input: count(usage["input_tokens"]),
  output: count(usage["output_tokens"]),
  reasoning: count(fields(usage["output_tokens_details"])["thinking_tokens"]),
  cache: { read: count(usage["cache_read_input_tokens"]), write: count(usage["cache_creation_input_tokens"]) }
})

/** `raw` is the usage object as the provider sent it, undefined when it sent none. */
export const tokensOf = (api: LiveApi, raw: unknown): ModelTokens => {
  if (raw === undefined || raw === null) return unreportedTokens
  switch (api) {
    case "responses":
      return ofResponses(fields(raw))
    case "chat-completions":
      return ofChatCompletions(fields(raw))
    case "anthropic":
      return ofAnthropic(fields(raw))
  }
}
