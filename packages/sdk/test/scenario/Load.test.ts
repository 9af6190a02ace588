import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { maxScenarioBytes } from "@tackroom/protocol/scenario"
import { Effect } from "effect"
import { loadScenario } from "../../src/scenario/index.ts"

const file = (content: string | Uint8Array) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const folder = await mkdtemp(join(tmpdir(), "scenario-"))
        await writeFile(join(folder, "play.json"), content)
        return folder
      }),
      (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
    ),
    (folder) => join(folder, "play.json")
  )

const refused = (content: string | Uint8Array, use: "provider" | "harness" = "provider") =>
  Effect.gen(function* () {
    const path = yield* file(content)
    const error = yield* Effect.flip(loadScenario(path, use))
    assert.include(error.message, path)
    return error
  })

const sample = (step: object) => JSON.stringify({ scenario: 1, name: "x", default: [[{ text: "a" }, step]] })

describe("loadScenario", () => {
  it.effect("reads a file with wire names", () =>
    Effect.gen(function* () {
      const path = yield* file(
        JSON.stringify({ scenario: 1, name: "x", context_window: 5, default: [[{ delay_ms: 3 }]], later: true })
      )
      assert.deepStrictEqual(yield* loadScenario(path, "provider"), {
        scenario: 1,
        name: "x",
        contextWindow: 5,
        default: [[{ delayMs: 3 }]]
      })
    })
  )

  it.effect("a missing, bad or oversize file is refused and named [AGT-333]", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(loadScenario("/no/such/scenario.json", "provider"))
      assert.strictEqual(missing.reason, "missing")
      assert.include(missing.message, "/no/such/scenario.json")
      assert.strictEqual((yield* refused("{")).reason, "not_json")
      assert.strictEqual((yield* refused(Uint8Array.of(0xff, 0xfe))).reason, "not_json")
      assert.strictEqual((yield* refused("{}")).reason, "not_a_scenario")
      assert.strictEqual((yield* refused(sample({ delay_ms: -1 }))).reason, "not_a_scenario")
      assert.strictEqual((yield* refused(" ".repeat(maxScenarioBytes + 1))).reason, "too_large")
    })
  )

  it.effect("a file of exactly 1 MiB is read [AGT-333]", () =>
    Effect.gen(function* () {
      const text = sample({ text: "b" })
      const path = yield* file(text + " ".repeat(maxScenarioBytes - text.length))
      assert.strictEqual((yield* loadScenario(path, "provider")).name, "x")
    })
  )

  it.effect("an error says where in the file", () =>
    Effect.gen(function* () {
      const error = yield* refused(JSON.stringify({ scenario: 1, name: "x", default: [[{ usage: { input: "1" } }]] }))
      assert.match(error.message, /default.*0.*0/)
    })
  )

  it.effect("the provider refuses steps that only the harness knows; the harness plays them [AGT-336] [AGT-335]", () =>
    Effect.gen(function* () {
      for (const step of [
        { question: { question: "Which?" } },
        { plan: [] },
        { event: { type: "harness-notice", code: "c", message: "m" } },
        { exit: 1 }
      ]) {
        const error = yield* refused(sample(step))
        assert.strictEqual(error.reason, "harness_only")
        assert.include(error.message, "default[0][1]")
        const path = yield* file(sample(step))
        assert.strictEqual((yield* loadScenario(path, "harness")).name, "x")
      }
    })
  )
})
