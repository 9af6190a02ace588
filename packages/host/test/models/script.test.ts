import { assert, describe, it } from "@effect/vitest"
import { decodeScenario } from "@tackroom/protocol/scenario"
import { Effect, Fiber, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ModelPart } from "../../src/models/ModelRequest.ts"
import { Models } from "../../src/models/Models.ts"
import { nextDelay } from "../../src/models/Retry.ts"
import { scriptWindow } from "../../src/models/ScriptModel.ts"
import type { ScriptPosition } from "../../src/models/ScriptModel.ts"
import { ask, callsOf, finishOf, textOf, usageOf } from "./Providers.ts"

const scripted = (file: object) => ({
  name: "script",
  api: "script" as const,
  scenario: Result.getOrThrow(decodeScenario({ scenario: 1, name: "test", ...file }))
})

const at = (completed: number, more: Partial<ScriptPosition> = {}): ScriptPosition => ({
  turnId: "trn_1",
  agentId: "coder",
  kind: "response",
  completed,
  aliasOf: (name) => (name === "files.read" ? "files_read" : undefined),
  ...more
})

const play = (file: object, position: ScriptPosition, attempt = 1, text = "hello") => {
  const seen: Array<ModelPart> = []
  return Effect.gen(function* () {
    const models = yield* Models
    const connection = scripted(file)
    const exit = yield* Effect.result(
      Stream.runForEach(
        models.stream(ask(text), { connection, model: "scripted-test", attempt, script: position }),
        (part) => Effect.sync(() => seen.push(part))
      )
    )
    return { parts: seen, failure: Result.isFailure(exit) ? exit.failure : undefined }
  }).pipe(Effect.provide(Models.layer))
}

describe("script", () => {
  it.effect("plays text, thinking, calls and usage as a model streams them [AGT-330]", () =>
    Effect.gen(function* () {
      const { parts, failure } = yield* play(
        {
          default: [
            [{ text: "not this one" }],
            [
              { thinking: "Let me look." },
              { text: "I read " },
              { text: "two files." },
              { call: { tool: "files.read", arguments: { path: "a" } } },
              { call: { tool: "no.such", arguments: {} } },
              { usage: { input: 12, output: 5 } }
            ]
          ]
        },
        at(1)
      )
      assert.isUndefined(failure)
      assert.strictEqual(textOf(parts, "thinking"), "Let me look.")
      assert.strictEqual(textOf(parts), "I read two files.")
      assert.deepStrictEqual([...new Set(parts.flatMap((part) => (part.type === "text" ? [part.part] : [])))], [1])
      assert.deepStrictEqual(
        callsOf(parts).map(({ callId, tool, arguments: args }) => ({ callId, tool, args })),
        [
          { callId: "call_trn_1_1_0", tool: "files_read", args: { path: "a" } },
          { callId: "call_trn_1_1_1", tool: "no.such", args: {} }
        ]
      )
      assert.deepStrictEqual(usageOf(parts), {
        input: 12,
        output: 5,
        reasoning: null,
        cache: { read: null, write: null }
      })
      assert.strictEqual(finishOf(parts)?.reason, "tool_calls")
    })
  )

  it.effect("gives the same answer to the same question, ids included [AGT-330]", () =>
    Effect.gen(function* () {
      const file = { default: [[{ text: "Hi. " }, { call: { tool: "files.read", arguments: {} } }]] }
      assert.deepStrictEqual(yield* play(file, at(0)), yield* play(file, at(0)))
    })
  )

  it.effect("an agent's own list, the reviewer's and compaction's count for themselves [AGT-330]", () =>
    Effect.gen(function* () {
      const file = {
        agents: { coder: [[{ text: "coder" }]] },
        default: [[{ text: "default" }]],
        reviewer: [[{ text: "reviewer" }]],
        compaction: [[{ text: "compaction" }]]
      }
      const said = (position: ScriptPosition) => Effect.map(play(file, position), ({ parts }) => textOf(parts))
      assert.strictEqual(yield* said(at(0)), "coder")
      assert.strictEqual(yield* said(at(0, { agentId: "other" })), "default")
      assert.strictEqual(yield* said(at(0, { kind: "reviewer" })), "reviewer")
      assert.strictEqual(yield* said(at(0, { kind: "compaction" })), "compaction")
    })
  )

  it.effect("a fault has the class of the live one, for its attempts, after what was said before it [AGT-331]", () =>
    Effect.gen(function* () {
      const expected = {
        rate_limit: ["retryable", 429],
        server: ["retryable", 500],
        disconnect: ["disconnect", null],
        auth: ["credential", 401],
        overflow: ["overflow", 400]
      } as const
      for (const [fail, [kind, status]] of Object.entries(expected)) {
        const file = { default: [[{ text: "half " }, { fail, attempts: 2 }, { text: "whole" }]] }
        for (const attempt of [1, 2]) {
          const { parts, failure } = yield* play(file, at(0), attempt)
          assert.strictEqual(textOf(parts), "half ")
          assert.isUndefined(finishOf(parts))
          assert.deepStrictEqual({ kind: failure?.kind, status: failure?.status }, { kind, status })
        }
        const third = yield* play(file, at(0), 3)
        assert.strictEqual(textOf(third.parts), "half whole")
        assert.isUndefined(third.failure)
      }
      const limited = yield* play({ default: [[{ fail: "rate_limit" }]] }, at(0))
      assert.strictEqual(limited.failure === undefined ? null : nextDelay(limited.failure, 1, 0.5), 1_000)
    })
  )

  it.effect("a delay passes on the clock, and what stands before it is heard first", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const models = yield* Models
      const connection = scripted({ default: [[{ text: "one" }, { delay_ms: 60_000 }, { text: "two" }]] })
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(
          models.stream(ask("x"), { connection, model: "scripted-test", attempt: 1, script: at(0) }),
          (part) => Effect.sync(() => seen.push(part.type === "text" ? part.delta : part.type))
        )
      )
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(seen, ["one"])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(seen, ["one", "two", "usage", "finish"])
    }).pipe(Effect.provide(Models.layer))
  )

  it.effect("stop length ends the response there [AGT-009]", () =>
    Effect.gen(function* () {
      const { parts } = yield* play({ default: [[{ text: "so far" }, { stop: "length" }, { text: "never" }]] }, at(0))
      assert.strictEqual(textOf(parts), "so far")
      assert.strictEqual(finishOf(parts)?.reason, "length")
    })
  )

  it.effect("after the last entry it fails, or repeats the user [AGT-332]", () =>
    Effect.gen(function* () {
      const spent = yield* play({ default: [[{ text: "once" }]] }, at(1))
      assert.deepStrictEqual(
        { kind: spent.failure?.kind, errorClass: spent.failure?.errorClass },
        { kind: "refused", errorClass: "model" }
      )
      const echo = yield* play({ default: [], exhausted: "echo" }, at(4), 1, "say this")
      assert.strictEqual(textOf(echo.parts), "say this")
      assert.strictEqual(finishOf(echo.parts)?.reason, "stop")
    })
  )

  it.effect("a response with neither text nor calls ends as one [AGT-010]", () =>
    Effect.gen(function* () {
      const { parts } = yield* play({ default: [[]] }, at(0))
      assert.deepStrictEqual(
        parts.map((part) => part.type),
        ["usage", "finish"]
      )
    })
  )

  it("states its window, else 128,000 [AGT-194]", () => {
    assert.strictEqual(scriptWindow(scripted({ context_window: 500 })), 500)
    assert.strictEqual(scriptWindow(scripted({})), 128_000)
  })
})
