import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { complaints, runTwins } from "../../src/conformance/SelfTest.ts"
import { serveSelfTest } from "../../src/conformance/serve/ServeSelfTest.ts"
import { conformance, place } from "./Kit.ts"
import { notPassed, othersOf, patience, seed } from "./Twins.ts"

describe("the serve check, checked", () => {
  const selfTest = serveSelfTest(place)

  it("has a broken twin for every promise, and a promise for every twin [CHK-305]", async () => {
    const checks = await Effect.runPromise(Effect.scoped(selfTest.checksOf(undefined, patience)))
    assert.deepStrictEqual(
      selfTest.twins.map(({ id }) => id),
      checks.map(({ id }) => id)
    )
    assert.strictEqual(new Set(selfTest.twins.map(({ fault }) => fault)).size, selfTest.twins.length)
  })

  it("passes the reference program in everything", { timeout: 120_000 }, async () => {
    const results = await notPassed(selfTest)
    assert.deepStrictEqual(
      results.map(({ id, reason }) => `${id}: ${reason}`),
      []
    )
  })

  it("passes a program of the bare contract, and asks it for nothing else", { timeout: 120_000 }, async () => {
    const results = await notPassed(serveSelfTest(place, true))
    assert.deepStrictEqual(
      results.filter(({ reason }) => reason !== "not_declared").map(({ id, reason }) => `${id}: ${reason}`),
      []
    )
    assert.isAbove(results.length, 10)
  })

  it(`finds every broken twin, and fails it for nothing else (seed ${seed})`, { timeout: 300_000 }, async () => {
    const results = await Effect.runPromise(runTwins(selfTest, { seed, others: othersOf(0), jobs: 6, patience }))
    assert.deepStrictEqual(complaints(results), [])
  })

  it("is a command that says what a program keeps and what not", { timeout: 60_000 }, async () => {
    const program = ["--", place.node, place.program("serve/reference")]
    const kept = await conformance(["serve", "--only", "SRV-098,SRV-131", ...program])
    assert.strictEqual(kept.code, 0, kept.out + kept.error)
    assert.include(kept.out, "skip SRV-131")
    const broken = await conformance(["serve", "--only", "SRV-098", ...program, "--fault", "SRV-098"])
    assert.strictEqual(broken.code, 1)
    assert.include(broken.out, "FAIL SRV-098")
    const usage = await conformance(["serve", "--tool", "look={", ...program])
    assert.strictEqual(usage.code, 64)
    assert.include(usage.error, "--tool")
  })
})
