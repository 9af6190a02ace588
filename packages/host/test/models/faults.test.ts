import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Redacted, Stream } from "effect"
import { answerLimits } from "../../src/models/GuardedFetch.ts"
import { Models } from "../../src/models/Models.ts"
import {
  answer,
  apis,
  ask,
  bare,
  callsOf,
  canary,
  connectionTo,
  failure,
  finishOf,
  modelOf,
  sse,
  stream,
  textOf
} from "./Providers.ts"
import { wires } from "./Wires.ts"

for (const api of apis) {
  const wire = wires[api]
  describe(api, () => {
    for (const end of ["length", "refusal"] as const) {
      it.effect(`an answer that ended by ${end} says so [AGT-009]`, () =>
        Effect.gen(function* () {
          const server = yield* bare((response) => stream(response, wire.text("so far", null, end)))
          const parts = yield* answer(ask("x"), connectionTo(api, server.url))
          assert.strictEqual(textOf(parts), "so far")
          assert.strictEqual(finishOf(parts)?.reason, end)
        })
      )
    }

    it.effect("a socket that is cut in the middle of the text may be tried again [AGT-006]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write(sse(wire.begun("half an ans")), () => response.destroy())
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
      })
    )

    it.effect("an empty answer may be tried again [AGT-006]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => stream(response, []))
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
      })
    )

    it.effect("an answer that is no event stream may be tried again", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(200, { "content-type": "text/html" })
          response.end(`<html>${canary}</html>`)
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
        assert.notInclude(failed.message, "html")
      })
    )

    it.effect("a line that is no JSON, first or later, may be tried again", () =>
      Effect.gen(function* () {
        for (const before of [[], wire.begun("well begun")]) {
          const server = yield* bare((response) => stream(response, [...before, `{"oops": ${canary}`]))
          const failed = yield* failure(ask("x"), connectionTo(api, server.url))
          assert.strictEqual(failed.kind, "disconnect")
          assert.notInclude(failed.message, "oops")
        }
      })
    )

    it.effect("an error within the stream has the class of its type [HRN-016]", () =>
      Effect.gen(function* () {
        const cases = [
          ["overloaded_error", "busy", "retryable"],
          ["rate_limit_error", "slow down", "retryable"],
          ["api_error", "oh no", "retryable"],
          ["authentication_error", "no", "credential"],
          ["context_length_exceeded", "too much", "overflow"],
          ["invalid_request_error", "unknown field", "refused"]
        ] as const
        for (const [type, message, kind] of cases) {
          for (const before of [[], wire.begun("well begun")]) {
            const server = yield* bare((response) => stream(response, [...before, wire.error(type, message)]))
            const failed = yield* failure(ask("x"), connectionTo(api, server.url))
            assert.strictEqual(failed.kind, kind, `${type} after ${before.length} events`)
          }
        }
      })
    )

    it.effect("arguments that are no JSON, no object or nested too deep are named and end nothing [AGT-005]", () =>
      Effect.gen(function* () {
        for (const [text, problem] of [
          ['{"path": ', "not_json"],
          ["[1, 2]", "not_an_object"],
          [`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`, "too_deep"]
        ] as const) {
          const server = yield* bare((response) => stream(response, wire.call("call_1", "files_read", text)))
          const parts = yield* answer(
            ask("x", { tools: [{ alias: "files_read", description: "Reads.", schema: { type: "object" } }] }),
            connectionTo(api, server.url)
          )
          const [call] = callsOf(parts)
          assert.strictEqual(call?.problem, problem)
          assert.strictEqual(call?.argumentsText, text)
          assert.strictEqual(finishOf(parts)?.reason, "tool_calls")
        }
      })
    )

    it.effect("no connection may be tried again [AGT-006]", () =>
      Effect.gen(function* () {
        const url = yield* Effect.scoped(
          Effect.map(
            bare(() => {}),
            (server) => server.url
          )
        )
        const failed = yield* failure(ask("x"), connectionTo(api, url))
        assert.strictEqual(failed.kind, "disconnect")
        assert.include(failed.message, "ECONNREFUSED")
        assert.notInclude(failed.message, canary)
      })
    )

    it.effect("a refusal without structure shows nothing of its body [RT-323]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(418, { "content-type": "text/html" })
          response.end(`<html>${canary}${"x".repeat(1_000_000)}</html>`)
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.deepStrictEqual({ kind: failed.kind, status: failed.status }, { kind: "refused", status: 418 })
        assert.isBelow(failed.message.length, 100)
        assert.notInclude(failed.message, "html")
      })
    )

    it.effect("a long refusal is cut, and a key in it is not shown, whole or in part [RUN-225]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(422, { "content-type": "application/json" })
          const message = `bad ${canary.slice(0, 20)} ${"long ".repeat(400)}`
          response.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }))
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "refused")
        assert.isAtMost(failed.message.length, 500)
        assert.notInclude(failed.message, "canary")
      })
    )

    it.effect("a quota that is used up is named by its code [HRN-016]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(429, { "content-type": "application/json" })
          response.end(JSON.stringify({ type: "error", error: { type: "insufficient_quota", message: "pay" } }))
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.deepStrictEqual(
          { kind: failed.kind, errorClass: failed.errorClass },
          { kind: "retryable", errorClass: "usage_limit" }
        )
      })
    )

    it.effect("Retry-After may be a date [AGT-006]", () =>
      Effect.gen(function* () {
        const server = yield* bare((response) => {
          response.writeHead(503, { "retry-after": "Thu, 01 Jan 1970 00:00:09 GMT" })
          response.end()
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.retryAfterMs, 9_000)
      })
    )

    it.effect("the key goes to the connection's own origin only", () =>
      Effect.gen(function* () {
        const other = yield* bare((response) => stream(response, wire.text("stolen", null)))
        const server = yield* bare((response, request) => {
          if (request.url?.startsWith("/v1/elsewhere") === true) return stream(response, wire.text("here", null))
          response.writeHead(307, { location: redirectTo })
          response.end()
        })
        let redirectTo = "/v1/elsewhere"
        const parts = yield* answer(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(textOf(parts), "here")
        const key = server.requests.map(({ headers }) => headers["authorization"] ?? headers["x-api-key"])
        assert.deepStrictEqual(key, api === "anthropic" ? [canary, canary] : [`Bearer ${canary}`, `Bearer ${canary}`])
        redirectTo = `${other.url}/v1/elsewhere`
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "refused")
        assert.strictEqual(other.requests.length, 0)
      })
    )

    it.effect("a key is not sent over plain http to another machine [RUN-223]", () =>
      Effect.gen(function* () {
        let left = 0
        const models = Models.layerFetch(() => {
          left += 1
          return Promise.reject(new TypeError("fetch failed"))
        })
        const call = (apiKey: string | null) =>
          Effect.gen(function* () {
            const service = yield* Models
            const connection = {
              name: "far",
              api,
              baseUrl: "http://models.example.test/v1",
              apiKey: apiKey === null ? null : Redacted.make(apiKey)
            }
            return yield* Effect.flip(
              Stream.runDrain(service.stream(ask("x"), { connection, model: modelOf[api], attempt: 1 }))
            )
          }).pipe(Effect.provide(models))
        const failed = yield* call(canary)
        assert.strictEqual(failed.kind, "credential")
        assert.strictEqual(left, 0)
        yield* call(null)
        assert.strictEqual(left, 1)
      })
    )

    it.live("interrupting the stream ends the request", () =>
      Effect.gen(function* () {
        const ended = Latch.makeUnsafe(false)
        const begun = Latch.makeUnsafe(false)
        const server = yield* bare((response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write(sse(wire.begun("on and on")))
          response.on("close", () => ended.openUnsafe())
        })
        const models = yield* Models
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(
            models.stream(ask("x"), { connection: connectionTo(api, server.url), model: modelOf[api], attempt: 1 }),
            () => begun.open
          )
        )
        yield* begun.await
        yield* Fiber.interrupt(fiber)
        yield* ended.await
      }).pipe(Effect.provide(Models.layer))
    )

    it.live("a model that is faster than its reader, and hangs up when it is done, is heard to the end", () =>
      Effect.gen(function* () {
        const begun = wire.begun("word ")
        const server = yield* bare((response) => {
          // Neither a length nor chunks: the answer ends where its connection does.
          response.removeHeader("transfer-encoding")
          response.writeHead(200, { "content-type": "text/event-stream", connection: "close" })
          response.write(sse(begun))
          for (let left = 3_999; left > 0; left--) response.write(sse(begun.slice(-1)))
          response.end(sse(wire.text("word ", null).slice(begun.length)))
        })
        const models = yield* Models
        let heard = ""
        yield* Stream.runForEach(
          models.stream(ask("x"), { connection: connectionTo(api, server.url), model: modelOf[api], attempt: 1 }),
          (part) => {
            if (part.type === "text") heard += part.delta
            return Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          }
        )
        assert.strictEqual(heard, "word ".repeat(4_000))
      }).pipe(Effect.provide(Models.layer))
    )

    it.effect("an endless line ends the answer before it fills the memory", () =>
      Effect.gen(function* () {
        const block = Buffer.alloc(1_048_576, 0x61)
        const server = yield* bare((response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write("data: ")
          const more = (): void => {
            while (!response.destroyed && response.write(block)) continue
            if (!response.destroyed) response.once("drain", more)
          }
          more()
        })
        const failed = yield* failure(ask("x"), connectionTo(api, server.url))
        assert.strictEqual(failed.kind, "disconnect")
        assert.include(failed.message, "larger")
        assert.isAbove(answerLimits.eventBytes, block.length)
      })
    )
  })
}
