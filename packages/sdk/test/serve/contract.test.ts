/** The driver contract over the smallest program of serve mode, with everything it may have and with the bare contract. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterAll } from "vitest"
import { serve } from "../../src/harness/serve/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { harnessContract, type HarnessPeer } from "../../src/testing/harnessContract.ts"
import { referenceMain } from "./Reference.ts"

const peer: HarnessPeer = {
  hello: { prompt: "#say Hello." },
  tool: { prompt: "#tools 2" },
  question: { prompt: "#ask" },
  long: { prompt: "#hang" },
  failure: { prompt: "#refused" }
}

const skipped = ["HRN-004", "a permission", "asks that are pending", "a message steered", "HRN-018"]

for (const [what, args] of [
  ["with everything it may have", []],
  ["with the bare contract", ["--bare"]]
] as const) {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-serve-"))
  describe(`the driver contract over a serve-mode program ${what}`, () => {
    afterAll(() => rmSync(directory, { recursive: true, force: true }))
    for (const test of harnessContract(serve({ command: process.execPath, args: [referenceMain, ...args] }), {
      peer,
      directory,
      makeStore: () => createMemoryRuntimeStore()
    })) {
      // Leaving a turn says nothing more over the smaller program.
      if (args.length > 0 && test.id === "HRN-013") continue
      it(test.title, async () => {
        const { verdict } = await test.run()
        // Serve mode has none of these: asks are questions, one at a time, and nothing is resumed, steered or chosen.
        const isSkipped = skipped.some((name) => test.title.startsWith(name) || test.title.includes(`[${name}]`))
        assert.strictEqual(verdict, isSkipped ? "skip" : "pass")
      })
    }
  })
}
