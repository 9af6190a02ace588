import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ConfiguredHarnesses, harnessFactory, parseHarnessKey } from "../../src/harnesses/Harnesses.ts"

/** How the making of a harness fails for its options; they are read before the driver is made. */
const refusal = (id: string, configured: ConfiguredHarnesses) =>
  Effect.scoped(
    Effect.flip(harnessFactory({ id, access: "native" }, configured)?.make(undefined as never) ?? Effect.die("none"))
  ).pipe(Effect.map((error) => error.message))

describe("harnesses of other programs in a configuration", () => {
  it("are known by their ids", () => {
    for (const id of ["host", "serve", "scripted"]) {
      assert.deepStrictEqual(parseHarnessKey(id, {}), { id, access: "native" })
    }
  })

  it.effect("say which of their options is not one", () =>
    Effect.gen(function* () {
      assert.include(yield* refusal("serve", { serve: {} }), "harnesses.serve")
      assert.include(yield* refusal("serve", { serve: { command: "x", args: "y" } }), "harnesses.serve")
      assert.include(yield* refusal("host", { host: { command: "x", agent: "a" } }), "harnesses.host")
      const config = { state_dir: "relative" }
      assert.include(
        yield* refusal("host", { host: { command: "x", agent: "a", config } }),
        "harnesses.host.config.state_dir"
      )
    })
  )
})
