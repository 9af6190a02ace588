import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { scripted } from "../../src/harness/index.ts"
import { harnessContract, type HarnessPeer } from "../../src/testing/harnessContract.ts"
import { stores } from "./Kit.ts"
import { programmable } from "./Programmable.ts"

const model = (name: string) => ({ model: { providerID: "script", modelID: `scripted-${name}` } })

const peer: HarnessPeer = {
  hello: { prompt: "say hello", session: model("hello") },
  tool: { prompt: "use tools", session: { ...model("tools"), permissionMode: "full" } },
  permission: { prompt: "use tools", session: { ...model("tools"), permissionMode: "auto" } },
  question: { prompt: "ask me", session: model("question") },
  long: { prompt: "talk", session: model("long") }
}

for (const kind of stores) {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-kit-"))
  let count = 0
  describe(`the driver contract over ${kind.name}`, () => {
    for (const test of harnessContract(scripted({ speed: 1 }), {
      peer,
      directory,
      makeStore: () => kind.make(join(directory, `store-${count++}`))
    })) {
      it(test.title, async () => {
        const result = await test.run()
        assert.include(["pass", "skip"], result.verdict)
      })
    }
  })
}

it("a driver with two terminal events fails its case of the kit [HRN-071]", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-kit-"))
  const broken = programmable({
    capabilities: { permissions: false, questions: false, abort: false },
    turn: (s) =>
      s.emit({ type: "text-end", messageId: "x", partId: "p", channel: "text", text: "hi" }, s.finish(), s.finish())
  })
  const cases = harnessContract(broken.factory, {
    peer: { hello: { prompt: "hi" } },
    directory,
    makeStore: () => (stores[0] as (typeof stores)[number]).make(directory)
  })
  const failed: Array<string> = []
  for (const test of cases) await test.run().catch(() => failed.push(test.id))
  assert.deepStrictEqual(failed, ["HRN-009"])
})
