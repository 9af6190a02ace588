import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ModelTool } from "../../src/models/ModelRequest.ts"
import {
  answer,
  apis,
  ask,
  callsOf,
  canary,
  connectionTo,
  failure,
  finishOf,
  mock,
  textOf,
  usageOf
} from "./Providers.ts"

const tools: ReadonlyArray<ModelTool> = [
  {
    alias: "files_read",
    description: "Reads a file.",
    schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] }
  }
]

for (const api of apis) {
  describe(api, () => {
    it.effect("streams text, then usage, then one finish [AGT-001, AGT-011]", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("hello", { content: "Hi there, how can I help you today?" })
        const parts = yield* answer(ask("hello"), connectionTo(api, server.url))
        assert.strictEqual(textOf(parts), "Hi there, how can I help you today?")
        assert.isAbove(parts.filter((part) => part.type === "text").length, 1)
        assert.deepStrictEqual(
          parts.slice(-2).map((part) => part.type),
          ["usage", "finish"]
        )
        assert.strictEqual(finishOf(parts)?.reason, "stop")
        assert.isString(finishOf(parts)?.responseId)
        const tokens = usageOf(parts)
        assert.isNumber(tokens?.input)
        assert.isNumber(tokens?.output)
      })
    )

    it.effect("keeps thinking apart from text", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("think", { content: "42", reasoning: "Six times seven." })
        const parts = yield* answer(ask("think"), connectionTo(api, server.url))
        assert.strictEqual(textOf(parts, "thinking"), "Six times seven.")
        assert.strictEqual(textOf(parts), "42")
        const numbers = parts.flatMap((part) => (part.type === "text" || part.type === "thinking" ? [part.part] : []))
        assert.deepStrictEqual([...new Set(numbers)], [0, 1])
      })
    )

    it.effect("gives parallel calls complete and in order", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("read", {
          toolCalls: [
            { id: "call_a", name: "files_read", arguments: '{"path":"a.txt"}' },
            { id: "call_b", name: "files_read", arguments: '{"path":"b.txt"}' }
          ]
        })
        const parts = yield* answer(ask("read", { tools }), connectionTo(api, server.url))
        assert.deepStrictEqual(
          callsOf(parts).map(({ tool, arguments: args, problem }) => ({ tool, args, problem })),
          [
            { tool: "files_read", args: { path: "a.txt" }, problem: undefined },
            { tool: "files_read", args: { path: "b.txt" }, problem: undefined }
          ]
        )
        assert.strictEqual(new Set(callsOf(parts).map((call) => call.callId)).size, 2)
        assert.strictEqual(finishOf(parts)?.reason, "tool_calls")
      })
    )

    it.effect("names a rate limit with what to wait [AGT-006]", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("x", { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.deepStrictEqual(
          { kind: failed.kind, status: failed.status, wait: failed.retryAfterMs },
          { kind: "retryable", status: 429, wait: 7_000 }
        )
      })
    )

    for (const status of [408, 500, 503, 529]) {
      it.effect(`may be tried again after ${status} [AGT-006]`, () =>
        Effect.gen(function* () {
          const server = yield* mock
          server.onMessage("x", { error: { message: "trouble", type: "server_error" }, status })
          const failed = yield* failure(ask("x"), connectionTo(api, server.url))
          assert.deepStrictEqual({ kind: failed.kind, status: failed.status }, { kind: "retryable", status })
        })
      )
    }

    for (const status of [401, 403]) {
      it.effect(`${status} is about the credentials and repeats no word about the key [AGT-008, RUN-225]`, () =>
        Effect.gen(function* () {
          const server = yield* mock
          server.onMessage("x", {
            error: { message: `Incorrect API key provided: ${canary.slice(0, 14)}***hown`, code: "invalid_api_key" },
            status
          })
          const failed = yield* failure(ask("x"), connectionTo(api, server.url))
          assert.deepStrictEqual(
            { kind: failed.kind, status: failed.status, errorClass: failed.errorClass },
            { kind: "credential", status, errorClass: "credential" }
          )
          assert.notInclude(failed.message, "canary")
        })
      )
    }

    it.effect("knows a context overflow [AGT-193]", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("x", {
          error:
            api === "anthropic"
              ? { message: "prompt is too long: 210000 tokens > 200000 maximum", type: "invalid_request_error" }
              : { message: "This is too much.", type: "invalid_request_error", code: "context_length_exceeded" },
          status: 400
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "overflow")
      })
    )

    it.effect("passes any other refusal on in the provider's words, without the key [AGT-006, RT-320]", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("x", {
          error: {
            message: `model not found for ${canary}\n    at Server.handle (server.js:1:1)`,
            type: "not_found_error"
          },
          status: 404
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.deepStrictEqual({ kind: failed.kind, status: failed.status }, { kind: "refused", status: 404 })
        assert.include(failed.message, "model not found for [redacted]")
        assert.notInclude(failed.message, "server.js")
        assert.notInclude(JSON.stringify(failed), canary)
      })
    )

    it.effect("a stream that is dropped may be tried again [AGT-006]", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("x", { content: "A long answer that does not come to its end." }, { truncateAfterChunks: 3 })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
      })
    )

    it.effect("malformed JSON instead of an answer may be tried again", () =>
      Effect.gen(function* () {
        const server = yield* mock
        server.onMessage("x", { content: "never" }, { chaos: { malformedRate: 1 } })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
      })
    )

    it.effect(
      "sends the key in the vendor's header and the instructions, and nothing when there is no key [RUN-220]",
      () =>
        Effect.gen(function* () {
          const server = yield* mock
          server.onMessage("hello", { content: "Hi" })
          yield* answer(ask("hello"), connectionTo(api, server.url))
          yield* answer(ask("hello"), connectionTo(api, server.url, null))
          const [keyed, open] = server.getRequests()
          assert.include(JSON.stringify(keyed?.body), "You are a test.")
          assert.isUndefined(open?.headers["authorization"])
          assert.isUndefined(open?.headers["x-api-key"])
        })
    )
  })
}
