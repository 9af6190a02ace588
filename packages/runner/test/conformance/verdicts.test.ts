import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { broken, type Check, kitFailed, skipped } from "../../src/conformance/Check.ts"
import { masked, presentable } from "../../src/conformance/Evidence.ts"
import { humanReport, jsonReport, type RunFacts } from "../../src/conformance/Report.ts"
import { runAll } from "../../src/conformance/Schedule.ts"
import { select } from "../../src/conformance/Selection.ts"
import { realTiming } from "../../src/conformance/Timing.ts"
import { exitCode, type Result } from "../../src/conformance/Verdict.ts"
import { checkOf, resultOf } from "./Kit.ts"

const facts: RunFacts = {
  kit: "tackroom-conformance 1.2.3",
  family: "runner",
  command: ["otter-seat", "{agent}"],
  profile: "contract",
  startedAt: "2026-11-30T12:00:00.000Z",
  durationMs: 1_500,
  timing: realTiming,
  closing: ["What only a person can see:", "  - everything"]
}

const options = { jobs: 2, profile: "contract", excluded: new Set<string>(), onResult: () => undefined } as const

const run = (checks: Parameters<typeof runAll>[0], more: Partial<Parameters<typeof runAll>[1]> = {}) =>
  runAll(checks, { ...options, ...more })

const outcomes = (results: ReadonlyArray<Result>) =>
  results.map(({ id, reason, verdict }) => (reason === undefined ? `${id} ${verdict}` : `${id} ${verdict} ${reason}`))

describe("verdicts", () => {
  it.effect("a check passes, fails with what was missing, or is skipped for a listed reason [CHK-302]", () =>
    Effect.gen(function* () {
      const results = yield* run(
        [
          checkOf("CHK-901", Effect.void),
          checkOf("CHK-902", Effect.fail(broken("no post came"))),
          checkOf("CHK-903", Effect.fail(skipped("not_declared"))),
          checkOf("CHK-904", Effect.fail(skipped("race"))),
          checkOf("CHK-905", Effect.fail(skipped("platform"))),
          checkOf("CHK-906", Effect.void, { needs: ["CHK-902"] }),
          checkOf("CHK-907", Effect.void, { needs: ["CHK-901", "CHK-999"] }),
          checkOf("CHK-908", Effect.die("never run"))
        ],
        { excluded: new Set(["CHK-908"]) }
      )
      assert.deepStrictEqual(outcomes(results), [
        "CHK-901 pass",
        "CHK-902 fail no post came",
        "CHK-903 skip not_declared",
        "CHK-904 skip race",
        "CHK-905 skip platform",
        "CHK-906 skip needs:CHK-902",
        "CHK-907 pass",
        "CHK-908 skip excluded"
      ])
    })
  )

  it.effect("of a program that is not heard in any case the rest is not run, also what has begun [CHK-302]", () =>
    Effect.gen(function* () {
      const mute = (id: string): Check => ({
        ...checkOf(id, Effect.void),
        run: ({ saw }) =>
          Effect.andThen(
            Effect.sync(() => saw([])),
            Effect.fail(broken("nothing came"))
          )
      })
      const watching = checkOf("CHK-900", Effect.never, { quiet: true })
      const ids = ["CHK-901", "CHK-902", "CHK-903"]
      const silent = yield* run([watching, ...ids.map(mute)], { jobs: 1, silentCases: 2 })
      assert.deepStrictEqual(outcomes(silent), [
        "CHK-900 skip needs:CHK-901",
        "CHK-901 fail nothing came",
        "CHK-902 fail nothing came",
        "CHK-903 skip needs:CHK-901"
      ])
      const speaking: Check = {
        ...checkOf("CHK-900", Effect.void),
        run: ({ heard, saw }) =>
          Effect.sync(() => {
            heard()
            saw([])
          })
      }
      const heard = yield* run([speaking, ...ids.map(mute)], { jobs: 1, silentCases: 2 })
      assert.deepStrictEqual(
        heard.map(({ verdict }) => verdict),
        ["pass", "fail", "fail", "fail"]
      )
    })
  )

  it.effect("a fault of the kit is nobody's verdict: it ends the run", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(run([checkOf("CHK-901", Effect.fail(kitFailed("no port")))]))
      assert.strictEqual(failed.message, "no port")
      const died = yield* Effect.flip(run([checkOf("CHK-902", Effect.die(new Error("a slip")))]))
      assert.include(died.message, "CHK-902: Error: a slip")
    })
  )

  it("the exit code follows the musts alone [CHK-303]", () => {
    const should = resultOf({ level: "should", verdict: "fail" })
    const skip = (reason: string) => resultOf({ verdict: "skip", reason })
    assert.strictEqual(exitCode([resultOf({}), should]), 0)
    assert.strictEqual(exitCode([skip("not_declared"), skip("excluded")]), 0)
    assert.strictEqual(exitCode([skip("race"), resultOf({ verdict: "fail" })]), 1)
    for (const reason of ["race", "platform", "needs:CHK-900"]) assert.strictEqual(exitCode([skip(reason)]), 2)
    assert.strictEqual(exitCode([{ ...skip("race"), level: "should" }]), 0)
  })

  it.effect("the profile tackroom makes every should a must", () =>
    Effect.gen(function* () {
      const should = checkOf("CHK-901", Effect.fail(broken("nothing")), { level: "should" })
      assert.strictEqual(exitCode(yield* run([should])), 0)
      assert.strictEqual(exitCode(yield* run([should], { profile: "tackroom" })), 1)
    })
  )

  it("only what is asked for is selected, and an unknown id is refused", () => {
    const all = ["CHK-901", "CHK-902", "CHK-903"].map((id) => checkOf(id, Effect.void))
    const selected = select(all, { only: ["CHK-903", "CHK-901"], skip: ["CHK-903"] })
    assert.isTrue("checks" in selected)
    if ("checks" in selected) {
      assert.deepStrictEqual(
        selected.checks.map(({ id }) => id),
        ["CHK-901", "CHK-903"]
      )
      assert.deepStrictEqual([...selected.excluded], ["CHK-903"])
    }
    assert.deepStrictEqual(select(all, { only: ["CHK-1"], skip: [] }), { unknown: ["CHK-1"] })
  })
})

describe("reports", () => {
  const results = [
    resultOf({ id: "CHK-901" }),
    resultOf({
      id: "CHK-902",
      verdict: "fail",
      reason: "no post came",
      evidence: [{ at: 12, kind: "post", text: "{}" }]
    }),
    resultOf({ id: "CHK-903", level: "should", verdict: "skip", reason: "not_declared" })
  ]

  it("the JSON report has its fields and a result for each promise [CHK-304]", () => {
    const report = jsonReport(facts, results)
    assert.deepStrictEqual(Object.keys(report), [
      "format",
      "kit",
      "family",
      "command",
      "profile",
      "startedAt",
      "durationMs",
      "summary",
      "results",
      "notice"
    ])
    assert.strictEqual(report.format, 1)
    assert.deepStrictEqual(report.summary, { pass: 1, fail: 1, skip: 1 })
    assert.deepStrictEqual(report.results, results)
  })

  it("evidence is cut at 4 KiB an entry and 20 entries, with secrets masked [CHK-304]", () => {
    const many = Array.from({ length: 30 }, (_, at) => ({
      at,
      kind: "pane" as const,
      text: `token s3cret ${at}`,
      env: "s3cret"
    }))
    const shown = presentable([many.map((entry) => masked(entry, ["s3cret"]))])
    assert.strictEqual(shown.length, 20)
    assert.deepStrictEqual(shown[0], { at: 10, kind: "pane", text: "token *** 10" })
    const [long] = presentable([[{ at: 0, kind: "acp", text: "é".repeat(5_000) }]])
    assert.isAtMost(Buffer.byteLength(long?.text ?? ""), 4_096)
    assert.include(long?.text, "(10000 bytes)")
    assert.notInclude(long?.text, "\ufffd")
    // Of two programs both are heard.
    const both = presentable([many, many.slice(0, 3)])
    assert.strictEqual(both.length, 13)
  })

  it("people read one line a promise, with the evidence under each failure [CHK-304]", () => {
    const text = humanReport(facts, results)
    const lines = text.split("\n")
    assert.strictEqual(lines.filter((line) => /^(?:ok|FAIL|skip)\s+CHK-/u.test(line)).length, 3)
    const failed = lines.findIndex((line) => line.startsWith("FAIL CHK-902"))
    assert.include(lines[failed + 1], "no post came")
    assert.include(lines[failed + 2], "12 ms post")
    assert.include(text, "skip CHK-903 should a promise: not_declared")
  })

  it("a report says that it is evidence for these versions, and no certificate [CHK-306]", () => {
    for (const text of [humanReport(facts, results), jsonReport(facts, results).notice]) {
      assert.include(text, "evidence of compatibility for the versions named here")
      assert.include(text, "not a certificate")
    }
    assert.include(humanReport(facts, results), facts.kit)
  })

  it("a report of scaled times says that it is no evidence", () => {
    const scaled = { ...facts, timing: { scale: 0.1, patience: 1 } }
    assert.strictEqual(jsonReport(scaled, results).timeScale, 0.1)
    for (const text of [humanReport(scaled, results), jsonReport(scaled, results).notice]) {
      assert.include(text, "no evidence of compatibility")
      assert.notInclude(text, "Passing is evidence")
    }
  })
})
