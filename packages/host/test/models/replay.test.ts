import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ServerResponse } from "node:http"
import type {
  AssistantMessage,
  AssistantPart,
  ModelMessage,
  ModelPart,
  ModelRequest
} from "../../src/models/ModelRequest.ts"
import { answer, ask, bare, connectionTo, finishOf, stream } from "./Providers.ts"

const tools = [{ alias: "files_read", description: "Reads a file.", schema: { type: "object" } }]

/** What the native agent keeps of a response. */
const kept = (parts: ReadonlyArray<ModelPart>): AssistantMessage => {
  const out: Array<AssistantPart> = []
  let current = -1
  for (const part of parts) {
    if (part.type === "call") {
      out.push({ type: "call", callId: part.callId, tool: part.tool, arguments: part.arguments })
    } else if (part.type === "text" || part.type === "thinking") {
      const last = out.at(-1)
      if (part.part === current && last !== undefined && last.type !== "call") {
        out[out.length - 1] = { type: last.type, text: last.text + part.delta }
      } else out.push({ type: part.type, text: part.delta })
      current = part.part
    }
  }
  const replay = finishOf(parts)?.replay
  return {
    role: "assistant",
    parts: out,
    ...(replay === undefined ? {} : { replay: JSON.parse(JSON.stringify(replay)) })
  }
}

const secondRound = (first: AssistantMessage): ModelRequest => {
  const results = first.parts.flatMap((part) =>
    part.type === "call" ? [{ callId: part.callId, tool: part.tool, text: "contents" }] : []
  )
  const messages: ReadonlyArray<ModelMessage> = [{ role: "user", text: "read it" }, first, { role: "tool", results }]
  return { instructions: "You are a test.", messages, tools }
}

const field = (value: unknown, name: string): unknown => (value as { [key: string]: unknown })[name]

const anthropicRound = (response: ServerResponse): void =>
  stream(response, [
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-sonnet-4-5",
        content: [],
        stop_reason: null,
        usage: { input_tokens: 3, output_tokens: 1 }
      }
    },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Let me " } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "look." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2lnbmVk" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "b3BhcXVl" } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "Reading." } },
    { type: "content_block_stop", index: 2 },
    {
      type: "content_block_start",
      index: 3,
      content_block: { type: "tool_use", id: "toolu_1", name: "files_read", input: {} }
    },
    { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '{"path":"a"}' } },
    { type: "content_block_stop", index: 3 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 20 } },
    { type: "message_stop" }
  ])

const responsesRound = (response: ServerResponse): void => {
  const reasoning = { type: "reasoning", id: "rs_1", summary: [] }
  const call = {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    name: "files_read",
    arguments: "",
    status: "in_progress"
  }
  stream(response, [
    { type: "response.created", sequence_number: 0, response: { id: "resp_1", created_at: 1, model: "gpt-5-mini" } },
    {
      type: "response.output_item.added",
      sequence_number: 1,
      output_index: 0,
      item: { ...reasoning, encrypted_content: "ZW5j" }
    },
    {
      type: "response.output_item.done",
      sequence_number: 2,
      output_index: 0,
      item: { ...reasoning, encrypted_content: "ZW5jcnlwdGVk" }
    },
    { type: "response.output_item.added", sequence_number: 3, output_index: 1, item: call },
    {
      type: "response.output_item.done",
      sequence_number: 4,
      output_index: 1,
      item: { ...call, arguments: '{"path":"a"}', status: "completed" }
    },
    {
      type: "response.completed",
      sequence_number: 5,
      response: { id: "resp_1", usage: { input_tokens: 1, output_tokens: 1 } }
    }
  ])
}

const chatRound = (response: ServerResponse): void => {
  const chunk = (delta: object, finish: string | null = null) => ({
    id: "c",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }]
  })
  stream(response, [
    chunk({ role: "assistant", reasoning_content: "Let me look." }),
    chunk({
      tool_calls: [
        { index: 0, id: "call_1", type: "function", function: { name: "files_read", arguments: '{"path":"a"}' } }
      ]
    }),
    chunk({}, "tool_calls"),
    "[DONE]"
  ])
}

describe("anthropic", () => {
  it.effect("thinking goes back with its signature, redacted thinking as it came [AGT-002]", () =>
    Effect.gen(function* () {
      const server = yield* bare(anthropicRound)
      const first = kept(yield* answer(ask("read it", { tools }), connectionTo("anthropic", server.url)))
      assert.deepStrictEqual(
        first.parts.map((part) => part.type),
        ["thinking", "text", "call"]
      )
      yield* answer(secondRound(first), connectionTo("anthropic", server.url))
      const messages = field(server.requests[1]?.body, "messages") as ReadonlyArray<{ content: unknown }>
      assert.deepStrictEqual(messages[1]?.content, [
        { type: "thinking", thinking: "Let me look.", signature: "c2lnbmVk" },
        { type: "redacted_thinking", data: "b3BhcXVl" },
        { type: "text", text: "Reading." },
        { type: "tool_use", id: "toolu_1", name: "files_read", input: { path: "a" } }
      ])
      assert.deepStrictEqual(messages[2]?.content, [
        { type: "tool_result", tool_use_id: "toolu_1", content: "contents", cache_control: { type: "ephemeral" } }
      ])
    })
  )

  it.effect("a replay that no longer fits its message, or is another model's, is left out", () =>
    Effect.gen(function* () {
      const server = yield* bare(anthropicRound)
      const first = kept(yield* answer(ask("read it", { tools }), connectionTo("anthropic", server.url)))
      const changed: AssistantMessage = {
        ...first,
        parts: first.parts.map((part) => (part.type === "thinking" ? { ...part, text: "[redacted:KEY]" } : part))
      }
      yield* answer(secondRound(changed), connectionTo("anthropic", server.url))
      yield* answer(secondRound(first), connectionTo("anthropic", server.url), "claude-haiku-4-5")
      yield* answer(secondRound({ ...first, replay: "nonsense" }), connectionTo("anthropic", server.url))
      for (const request of server.requests.slice(1)) {
        const messages = field(request.body, "messages") as ReadonlyArray<{ content: ReadonlyArray<{ type: string }> }>
        assert.deepStrictEqual(
          messages[1]?.content.map((part) => part.type),
          ["text", "tool_use"]
        )
      }
    })
  )
})

it.effect("an Anthropic-compatible model of another vendor is given room for a file", () =>
  Effect.gen(function* () {
    const server = yield* bare(anthropicRound)
    yield* answer(ask("x"), connectionTo("anthropic", server.url), "other-model")
    yield* answer(ask("x", { maxOutputTokens: 77 }), connectionTo("anthropic", server.url), "other-model")
    assert.deepStrictEqual(
      server.requests.map(({ body }) => field(body, "max_tokens")),
      [8_192, 77]
    )
  })
)

describe("responses", () => {
  it.effect(
    "encrypted reasoning goes back before the call it led to, and nothing is stored at the vendor [AGT-002]",
    () =>
      Effect.gen(function* () {
        const server = yield* bare(responsesRound)
        const first = kept(yield* answer(ask("read it", { tools }), connectionTo("responses", server.url)))
        yield* answer(secondRound(first), connectionTo("responses", server.url))
        const [one, two] = server.requests.map((request) => request.body)
        assert.strictEqual(field(one, "store"), false)
        assert.deepStrictEqual(field(one, "include"), ["reasoning.encrypted_content"])
        const input = field(two, "input") as ReadonlyArray<object>
        assert.deepStrictEqual(input.slice(2), [
          { type: "reasoning", id: "rs_1", encrypted_content: "ZW5jcnlwdGVk", summary: [] },
          { type: "function_call", call_id: "call_1", name: "files_read", arguments: '{"path":"a"}' },
          { type: "function_call_output", call_id: "call_1", output: "contents" }
        ])
      })
  )
})

describe("chat-completions", () => {
  it.effect("reasoning goes back to the model that gave it [AGT-002]", () =>
    Effect.gen(function* () {
      const server = yield* bare(chatRound)
      const connection = connectionTo("chat-completions", server.url)
      const first = kept(yield* answer(ask("read it", { tools }), connection))
      yield* answer(secondRound(first), connection)
      yield* answer(secondRound(first), { ...connection, name: "another" })
      const reasoning = server.requests
        .slice(1)
        .map(({ body }) => field((field(body, "messages") as ReadonlyArray<unknown>)[2], "reasoning_content"))
      assert.deepStrictEqual(reasoning, ["Let me look.", undefined])
      assert.deepStrictEqual(field(server.requests[0]?.body, "stream_options"), { include_usage: true })
    })
  )
})

describe("every provider", () => {
  for (const [api, round] of [
    ["anthropic", anthropicRound],
    ["responses", responsesRound],
    ["chat-completions", chatRound]
  ] as const) {
    it.effect(`${api}: a repeated step sends the same bytes [AGT-002]`, () =>
      Effect.gen(function* () {
        const server = yield* bare(round)
        const connection = connectionTo(api, server.url)
        const first = kept(yield* answer(ask("read it", { tools }), connection))
        yield* answer(secondRound(first), connection)
        yield* answer(secondRound(JSON.parse(JSON.stringify(first)) as AssistantMessage), connection)
        assert.strictEqual(JSON.stringify(server.requests[1]?.body), JSON.stringify(server.requests[2]?.body))
      })
    )

    it.effect(`${api}: a call whose arguments were no JSON and ids of another vendor are accepted again`, () =>
      Effect.gen(function* () {
        const server = yield* bare(round)
        const callId = "functions.files:0"
        yield* answer(
          {
            instructions: "",
            messages: [
              { role: "user", text: "go" },
              { role: "assistant", parts: [{ type: "call", callId, tool: "files_read", arguments: '{"path": ' }] },
              { role: "tool", results: [{ callId, tool: "files_read", text: "arguments are no JSON", failed: true }] }
            ],
            tools
          },
          connectionTo(api, server.url)
        )
        const body = JSON.stringify(server.requests[0]?.body)
        const wireId = api === "chat-completions" ? callId : "functions_files_0"
        assert.strictEqual(body.split(JSON.stringify(wireId)).length, 3)
        assert.include(body, "invalid_arguments")
      })
    )
  }
})
