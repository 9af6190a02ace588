import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { LiveApi } from "../../src/models/Endpoint.ts"
import type { ModelTokens } from "../../src/models/ModelRequest.ts"
import { answer, ask, bare, connectionTo, stream, usageOf } from "./Providers.ts"
import { wires } from "./Wires.ts"

const tokens = (
  input: number | null,
  output: number | null,
  reasoning: number | null,
  read: number | null,
  write: number | null
): ModelTokens => ({ input, output, reasoning, cache: { read, write } })

/** What a provider sends and what the journal gets. */
const golden: {
  readonly [api in LiveApi]: ReadonlyArray<readonly [name: string, sent: object | null, kept: ModelTokens]>
} = {
  responses: [
    [
      "cached input is part of input, reasoning part of output",
      {
        input_tokens: 1_200,
        input_tokens_details: { cached_tokens: 1_024 },
        output_tokens: 300,
        output_tokens_details: { reasoning_tokens: 192 },
        total_tokens: 1_500
      },
      tokens(176, 300, 192, 1_024, null)
    ],
    ["no details", { input_tokens: 12, output_tokens: 3 }, tokens(12, 3, null, null, null)],
    ["no usage", null, tokens(null, null, null, null, null)]
  ],
  "chat-completions": [
    [
      "cached input is part of prompt, reasoning part of completion",
      {
        prompt_tokens: 1_200,
        completion_tokens: 300,
        total_tokens: 1_500,
        prompt_tokens_details: { cached_tokens: 1_024 },
        completion_tokens_details: { reasoning_tokens: 192 }
      },
      tokens(176, 300, 192, 1_024, null)
    ],
    [
      "reasoning beside completion, as the total shows",
      {
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 }
      },
      tokens(32, 103, 94, null, null)
    ],
    [
      "cache hits under another name",
      { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, prompt_cache_hit_tokens: 64 },
      tokens(36, 10, null, 64, null)
    ],
    ["no details", { prompt_tokens: 12, completion_tokens: 3 }, tokens(12, 3, null, null, null)],
    ["no usage", null, tokens(null, null, null, null, null)]
  ],
  anthropic: [
    [
      "cached input stands beside input, thinking is part of output",
      {
        input_tokens: 176,
        cache_read_input_tokens: 1_024,
        cache_creation_input_tokens: 512,
        output_tokens: 300,
        output_tokens_details: { thinking_tokens: 192 }
      },
      tokens(176, 300, 192, 1_024, 512)
    ],
    [
      "a cache that was not used is 0, not unknown",
      { input_tokens: 12, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 3 },
      tokens(12, 3, null, 0, 0)
    ],
    ["no details", { input_tokens: 12, output_tokens: 3 }, tokens(12, 3, null, null, null)]
  ]
}

for (const api of Object.keys(golden) as ReadonlyArray<LiveApi>) {
  describe(api, () => {
    for (const [name, sent, kept] of golden[api]) {
      it.effect(`usage: ${name} [HRN-017, AGT-011]`, () =>
        Effect.gen(function* () {
          const server = yield* bare((response) => stream(response, wires[api].text("hi", sent)))
          assert.deepStrictEqual(usageOf(yield* answer(ask("x"), connectionTo(api, server.url))), kept)
        })
      )
    }
  })
}
