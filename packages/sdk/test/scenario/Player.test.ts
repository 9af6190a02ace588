import { assert, describe, it } from "@effect/vitest"
import { decodeScenario, harnessOnlySteps, Scenario } from "@tackroom/protocol/scenario"
import { Result, Schema } from "effect"
import {
  builtInScenarios,
  chunks,
  contextWindow,
  findBuiltIn,
  forModel,
  play,
  scriptedModelId
} from "../../src/scenario/index.ts"

const scenario: Scenario = {
  scenario: 1,
  name: "sample",
  agents: { lead: [[{ text: "lead 0" }]] },
  default: [[{ text: "zero" }, { call: { tool: "files.read", arguments: {} } }], [{ text: "one" }]],
  reviewer: [[{ text: "approve" }]],
  compaction: [[{ text: "short" }]]
}

const texts = (request: Parameters<typeof play>[1], of: Scenario = scenario): string => {
  const played = play(of, request)
  return played._tag === "Exhausted"
    ? `exhausted: ${played.message}`
    : played.steps.flatMap((step) => (step._tag === "Text" ? [step.text] : [])).join("|")
}

describe("Player", () => {
  it("a request takes the entry whose number is the count of completed responses [AGT-330]", () => {
    assert.strictEqual(texts({ completed: 0 }), "zero")
    assert.strictEqual(texts({ completed: 1 }), "one")
  })

  it("an agent with a list of its own uses it, every other one the default [AGT-330]", () => {
    assert.strictEqual(texts({ agent: "lead", completed: 0 }), "lead 0")
    assert.strictEqual(texts({ agent: "other", completed: 0 }), "zero")
    assert.strictEqual(texts({ agent: "constructor", completed: 0 }), "zero")
    assert.strictEqual(texts({ agent: "__proto__", completed: 0 }), "zero")
  })

  it("reviewer and compaction have lists and counts of their own [AGT-330]", () => {
    assert.strictEqual(texts({ kind: "reviewer", completed: 0 }), "approve")
    assert.strictEqual(texts({ kind: "compaction", completed: 0 }), "short")
    assert.include(texts({ kind: "reviewer", completed: 1 }), "exhausted")
  })

  it("after the last entry a scenario fails, or repeats the user's message [AGT-332]", () => {
    assert.include(texts({ completed: 2, userText: "hi" }), 'exhausted: The scripted scenario "sample" has 2')
    assert.strictEqual(texts({ completed: 2, userText: "hi" }, { ...scenario, exhausted: "echo" }), "hi")
    const silent = play({ ...scenario, exhausted: "echo" }, { completed: 9 })
    assert.deepStrictEqual(silent, { _tag: "Response", steps: [], truncated: false, calls: 0 })
  })

  it("fail fails the first attempts of a request, after what stands before it [AGT-331]", () => {
    const faults: Scenario = {
      scenario: 1,
      name: "faults",
      default: [
        [
          { fail: "rate_limit" },
          { text: "half" },
          { fail: "disconnect", attempts: 2 },
          { text: " whole" },
          { usage: { input: 1, output: 2 } }
        ]
      ]
    }
    const attempt = (number: number) => play(faults, { completed: 0, attempt: number })
    assert.deepStrictEqual(attempt(1), {
      _tag: "Response",
      steps: [],
      fault: "rate_limit",
      truncated: false,
      calls: 0
    })
    assert.deepStrictEqual(attempt(2), {
      _tag: "Response",
      steps: [{ _tag: "Text", text: "half" }],
      fault: "disconnect",
      truncated: false,
      calls: 0
    })
    const third = attempt(3)
    assert.strictEqual(third._tag === "Response" ? third.fault : "none", undefined)
    assert.strictEqual(texts({ completed: 0, attempt: 3 }, faults), "half| whole")
    assert.deepStrictEqual(attempt(4), third)
  })

  it("a stop ends the response as cut, an exit ends it with the process", () => {
    const cut: Scenario = { scenario: 1, name: "x", default: [[{ text: "a" }, { stop: "length" }, { text: "b" }]] }
    const played = play(cut, { completed: 0 })
    assert.isTrue(played._tag === "Response" && played.truncated && played.steps.length === 1)
    const gone: Scenario = { scenario: 1, name: "x", default: [[{ text: "a" }, { exit: 3 }, { text: "b" }]] }
    const end = play(gone, { completed: 0 })
    assert.deepStrictEqual(end._tag === "Response" ? end.steps.at(-1) : undefined, { _tag: "Exit", code: 3 })
  })

  it("the window is what the scenario states, else 128,000 tokens [AGT-194]", () => {
    assert.strictEqual(contextWindow(scenario), 128_000)
    assert.strictEqual(contextWindow({ ...scenario, contextWindow: 10 }), 10)
  })

  const request = Schema.Struct({
    completed: Schema.Natural.check(Schema.isLessThanOrEqualTo(5)),
    attempt: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))
  })

  it.prop("the same request always has the same response [AGT-330]", [Scenario, request], ([any, asked]) => {
    const once = play(any, { ...asked, userText: "u" })
    assert.deepStrictEqual(play(structuredClone(any), { ...asked, userText: "u" }), once)
  })

  it.prop(
    "nothing stands behind a fault, a stop or an exit, and no fault is among the steps [AGT-331]",
    [Scenario, request],
    ([any, asked]) => {
      const played = play(any, asked)
      if (played._tag === "Exhausted") {
        assert.isAtLeast(asked.completed, any.default?.length ?? 0)
        return
      }
      assert.isTrue(played.steps.every((step) => step._tag !== "Fail" && step._tag !== "Stop"))
      assert.isAtMost(played.steps.findIndex((step) => step._tag === "Exit") + 1, played.steps.length)
      assert.strictEqual(played.calls, played.steps.filter((step) => step._tag === "Call").length)
    }
  )

  it.prop("a request gets past its faults once all of them were had [AGT-331]", [Scenario], ([any]) => {
    const worst = (any.default?.[0] ?? []).reduce(
      (most, step) => ("fail" in step ? Math.max(most, step.attempts ?? 1) : most),
      0
    )
    const played = play(any, { completed: 0, attempt: worst + 1 })
    assert.isTrue(played._tag === "Exhausted" || played.fault === undefined)
  })

  it.prop("the form for a model holds nothing that only a harness can play [AGT-336]", [Scenario], ([any]) => {
    assert.deepStrictEqual(harnessOnlySteps(forModel(any)), [])
  })

  it.prop("the pieces of a text are the text, and none is cut within a character", [Schema.String], ([text]) => {
    const pieces = chunks(text)
    assert.strictEqual(pieces.join(""), text)
    for (const piece of pieces.slice(0, -1)) {
      const last = piece.codePointAt(piece.length - 1) ?? 0
      const next = text[pieces.slice(0, pieces.indexOf(piece) + 1).join("").length]
      assert.isFalse(last >= 0xd800 && last <= 0xdbff && next !== undefined && /[\udc00-\udfff]/.test(next))
    }
  })
})

describe("built-in scenarios", () => {
  it("demo comes first; every title and model id says scripted [AGT-337] [HRN-280]", () => {
    assert.strictEqual(builtInScenarios[0]?.id, "demo")
    for (const entry of builtInScenarios) {
      assert.include(entry.title, "scripted")
      assert.include(scriptedModelId(entry.id), "scripted")
      assert.strictEqual(findBuiltIn(entry.id), entry)
      assert.strictEqual(findBuiltIn(scriptedModelId(entry.id)), entry)
      assert.strictEqual(entry.scenario.name, entry.id)
    }
    assert.isUndefined(findBuiltIn("none"))
  })

  it("each is a valid scenario, in both forms [AGT-336]", () => {
    for (const { scenario: built } of builtInScenarios) {
      for (const form of [built, forModel(built)]) {
        const file = JSON.parse(
          JSON.stringify(form).replaceAll("delayMs", "delay_ms").replaceAll("runningMs", "running_ms")
        )
        const decoded = decodeScenario(file)
        assert.isTrue(Result.isSuccess(decoded), Result.isFailure(decoded) ? decoded.failure : "")
        if (Result.isSuccess(decoded)) assert.deepStrictEqual(decoded.success, form)
      }
    }
  })

  it("demo reads two files, plans, asks before it writes and runs, and ends without a call", () => {
    const steps = (findBuiltIn("demo")?.scenario.default ?? []).map((_, completed) => {
      const played = play(findBuiltIn("demo")!.scenario, { completed })
      return played._tag === "Response" ? played : assert.fail(played.message)
    })
    const calls = steps.flatMap((response) => response.steps).flatMap((step) => (step._tag === "Call" ? [step] : []))
    assert.deepStrictEqual(
      calls.map((call) => [call.tool, call.ask === true]),
      [
        ["files.read", false],
        ["files.read", false],
        ["files.write", true],
        ["shell.run", true]
      ]
    )
    assert.strictEqual(steps.at(-1)?.calls, 0)
    assert.isTrue(steps.every((response) => response.steps.some((step) => step._tag === "Usage")))
  })

  it("in the form for a model every turn still ends with a response without calls", () => {
    for (const { scenario: built } of builtInScenarios) {
      const list = forModel(built).default ?? []
      const last = list.at(-1)
      if (last !== undefined)
        assert.isFalse(
          last.some((step) => "call" in step),
          built.name
        )
    }
  })

  it("long streams about ten thousand tokens", () => {
    const played = play(findBuiltIn("long")!.scenario, { completed: 0 })
    if (played._tag === "Exhausted") return assert.fail(played.message)
    const pieces = played.steps.flatMap((step) => (step._tag === "Text" ? chunks(step.text) : []))
    assert.isAbove(pieces.length, 9_900)
    assert.isBelow(pieces.length, 10_500)
  })
})
