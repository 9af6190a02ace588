import { assert, describe, it } from "@effect/vitest"
import {
  decodeScenario,
  harnessOnlySteps,
  isHarnessOnlyStep,
  Scenario,
  scenarioEvent
} from "@tackroom/protocol/scenario"
import { toWire } from "@tackroom/protocol/text"
import { Effect, Result, Schema } from "effect"

const encode = Schema.encodeUnknownSync(Scenario)
const toFile = toWire(Scenario)
const plain = <A>(value: A): A => JSON.parse(JSON.stringify(value)) as A

const file = {
  scenario: 1,
  name: "two rounds",
  context_window: 64_000,
  agents: {
    "research.lead": [
      [
        { thinking: "hm" },
        { call: { tool: "files.read", arguments: { filePath: "a", file_path: "b" }, running_ms: 5, ask: true } },
        { usage: { input: 1, output: 2 } }
      ]
    ]
  },
  default: [
    [{ fail: "rate_limit", attempts: 2 }, { delay_ms: 10 }, { text: "hello" }, { stop: "length" }],
    [
      { question: { question: "Which?", options: [{ label: "a" }] } },
      { plan: [{ content: "one", status: "in_progress" }] },
      { event: { type: "tool-status", tool_call_id: "c1", status: "running", metadata: { keepMe: 1 } } },
      { exit: 3 }
    ]
  ],
  exhausted: "echo"
}

const read = (value: unknown): Scenario => Result.getOrThrow(decodeScenario(value))
const problem = (value: unknown): string => Result.getOrThrow(Result.flip(decodeScenario(value)))

describe("scenario files", () => {
  it("a file is read with its names in camelCase, and nothing inside arguments is renamed [AGT-335]", () => {
    const scenario = read(file)
    assert.strictEqual(scenario.contextWindow, 64_000)
    const call = scenario.agents?.["research.lead"]?.[0]?.[1]
    assert.deepStrictEqual<unknown>(call, {
      call: { tool: "files.read", arguments: { filePath: "a", file_path: "b" }, runningMs: 5, ask: true }
    })
    assert.deepStrictEqual<unknown>(scenario.default?.[0]?.[1], { delayMs: 10 })
    assert.deepStrictEqual(toFile(encode(scenario)), file)
  })

  it.effect.prop(
    "every scenario survives writing and reading",
    [Scenario],
    ([generated]) =>
      Effect.sync(() => {
        const scenario = plain(generated)
        assert.deepStrictEqual(plain(read(plain(toFile(encode(scenario))))), scenario)
      }),
    { arbitrary: { runs: 40 } }
  )

  it("steps which only the harness knows are named with their place [AGT-336]", () => {
    assert.deepStrictEqual(harnessOnlySteps(read(file)), [
      "default[1][0]",
      "default[1][1]",
      "default[1][2]",
      "default[1][3]"
    ])
    assert.deepStrictEqual(harnessOnlySteps(read({ ...file, default: [] })), [])
    assert.isFalse(isHarnessOnlyStep({ call: { tool: "a.b", arguments: {}, output: "x" } }))
    assert.isTrue(isHarnessOnlyStep({ exit: 0 }))
  })

  it("a step of two kinds, or of none, is refused with its place", () => {
    assert.include(problem({ ...file, default: [[{ text: "a", thinking: "b" }]] }), '["default"][0][0]')
    assert.include(problem({ ...file, default: [[{ texxt: "a" }]] }), '["delay_ms"]')
  })

  it("another version, a missing name and an unknown fault are refused", () => {
    assert.include(problem({ ...file, scenario: 2 }), "scenario")
    assert.include(problem({ scenario: 1 }), "name")
    assert.include(problem({ ...file, default: [[{ fail: "bad_luck" }]] }), "fail")
    assert.include(problem({ ...file, default: [[{ fail: "server", attempts: 0 }]] }), "attempts")
  })

  it("an event step takes what the turn knows and the file cannot", () => {
    const defaults = { sessionId: "ses_1", messageId: "m_r", assistantMessageId: "m_r", partId: "p1" }
    const make = (event: unknown) => scenarioEvent(event as Parameters<typeof scenarioEvent>[0], defaults)
    assert.deepStrictEqual<unknown>(Result.getOrThrow(make({ type: "finish", reason: "refusal" })), {
      type: "finish",
      sessionId: "ses_1",
      assistantMessageId: "m_r",
      reason: "refusal"
    })
    assert.deepStrictEqual<unknown>(Result.getOrThrow(make({ type: "text-delta", delta: "x", part_id: "own" })), {
      type: "text-delta",
      delta: "x",
      messageId: "m_r",
      partId: "own"
    })
    assert.include(Result.getOrThrow(Result.flip(make({ type: "tool-start" }))), '["tool_call_id"]')
  })

  it("an event step cannot be one of the runtime's own types", () => {
    assert.isTrue(Result.isFailure(decodeScenario({ ...file, default: [[{ event: { type: "turn-start" } }]] })))
  })
})
