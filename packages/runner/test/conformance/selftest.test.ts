import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { beforeAll } from "vitest"
import { runnerSelfTest } from "../../src/conformance/runner/RunnerSelfTest.ts"
import { runAll } from "../../src/conformance/Schedule.ts"
import { complaints, idsFor, runTwins, type TwinResult } from "../../src/conformance/SelfTest.ts"
import { generator } from "../../src/conformance/Chance.ts"
import type { Result } from "../../src/conformance/Verdict.ts"
import { place } from "./Kit.ts"
import { othersOf, patience, seed } from "./Twins.ts"

/** The contract asks for ten others a twin; the suite draws one, so that every run costs seconds and all together draw more. */
const others = othersOf(1)

const scale = 0.1

describe("the runner check, checked", () => {
  const selfTest = runnerSelfTest(place, scale)

  it("has a broken twin for every promise, and a promise for every twin [CHK-305]", async () => {
    const checks = await Effect.runPromise(Effect.scoped(selfTest.checksOf(undefined, patience)))
    assert.deepStrictEqual(
      selfTest.twins.map(({ id }) => id),
      checks.map(({ id }) => id)
    )
    assert.strictEqual(new Set(selfTest.twins.map(({ fault }) => fault)).size, selfTest.twins.length)
  })

  it("runs a twin on its own promise, and on others that do not hang on it [CHK-305]", () => {
    const all = Array.from({ length: 30 }, (_, index) => `CHK-${900 + index}`)
    const twin = { id: "CHK-905", fault: "breaks", dependants: ["CHK-906"] }
    const ids = idsFor(twin, all, generator(3), 10)
    assert.strictEqual(ids.length, 11)
    assert.include(ids, "CHK-905")
    assert.notInclude(ids, "CHK-906")
    assert.strictEqual(idsFor(twin, all, generator(3), Number.POSITIVE_INFINITY).length, 29)
  })

  // Both wait most of their time: they run side by side.
  let reference: ReadonlyArray<Result>
  let twins: ReadonlyArray<TwinResult>
  beforeAll(async () => {
    const all = { jobs: 5, profile: "tackroom", excluded: new Set<string>(), onResult: () => undefined } as const
    const passed = Effect.scoped(
      Effect.flatMap(selfTest.checksOf(undefined, patience), (checks) => runAll(checks, all))
    )
    ;[reference, twins] = await Effect.runPromise(
      Effect.all([passed, runTwins(selfTest, { seed, others, jobs: 8, patience })], { concurrency: 2 })
    )
  }, 300_000)

  it("passes the reference runner in everything", () => {
    assert.deepStrictEqual(
      reference.filter(({ verdict }) => verdict !== "pass").map(({ id, reason }) => `${id}: ${reason}`),
      []
    )
  })

  it(`finds every broken twin, and fails it for nothing else (seed ${seed}) [CHK-305]`, () => {
    assert.deepStrictEqual(complaints(twins), [])
  })
})
