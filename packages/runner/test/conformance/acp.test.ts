import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { complaints, runTwins } from "../../src/conformance/SelfTest.ts"
import { acpSelfTest } from "../../src/conformance/acp/AcpSelfTest.ts"
import { conformance, place } from "./Kit.ts"
import { notPassed, othersOf, patience, seed } from "./Twins.ts"

/** What an agent may leave out. */
const isOptional = (id: string): boolean => id === "ACK-015" || (id >= "ACK-150" && id < "ACK-210")

describe("the ACP check, checked", () => {
  const selfTest = acpSelfTest(place)

  it("has a broken twin for every promise, and a promise for every twin", async () => {
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

  it(
    "passes an agent with nothing but what it must have, and asks it for nothing else",
    { timeout: 120_000 },
    async () => {
      const results = await notPassed(acpSelfTest(place, true), isOptional)
      assert.deepStrictEqual(
        results.filter(({ reason }) => reason !== "not_declared").map(({ id, reason }) => `${id}: ${reason}`),
        []
      )
      assert.isAbove(results.length, 10)
    }
  )

  it(`finds every broken twin, and fails it for nothing else (seed ${seed})`, { timeout: 300_000 }, async () => {
    const results = await Effect.runPromise(runTwins(selfTest, { seed, others: othersOf(0), jobs: 6, patience }))
    assert.deepStrictEqual(complaints(results), [])
  })

  it("is a command that says what an agent keeps and what not", { timeout: 60_000 }, async () => {
    const program = ["--", place.node, place.program("acp/reference")]
    const kept = await conformance(["acp", "--only", "ACK-010,ACK-084", ...program])
    assert.strictEqual(kept.code, 0, kept.out + kept.error)
    assert.include(kept.out, "skip ACK-084")
    const broken = await conformance(["acp", "--only", "ACK-010", ...program, "--fault", "ACK-010"])
    assert.strictEqual(broken.code, 1)
    assert.include(broken.out, "FAIL ACK-010")
    const usage = await conformance(["acp", "--tool", "look", "--prompt-tool", "Look around.", ...program])
    assert.strictEqual(usage.code, 64)
    assert.include(usage.error, "not both")
  })

  it("takes the prompts of an agent with a model of its own", { timeout: 60_000 }, async () => {
    const ids = "ACK-081,ACK-084,ACK-085,ACK-112,ACK-130"
    const prompts = ["--prompt-say", "#say Ahoy.", "--prompt-tool", "#tool", "--prompt-long", "#hang"]
    const program = ["--", place.node, place.program("acp/reference")]
    const { code, out } = await conformance(["acp", "--only", ids, "--patience", "4", ...prompts, ...program])
    assert.strictEqual(code, 0, out)
    for (const id of ["ACK-081", "ACK-084", "ACK-130"]) assert.include(out, `ok   ${id}`)
    for (const id of ["ACK-085", "ACK-112"]) assert.include(out, `skip ${id}`)
  })
})
