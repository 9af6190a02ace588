import { assert, describe, it } from "@effect/vitest"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { harnessContract, type HarnessPeer } from "../../src/testing/harnessContract.ts"
import { makePlace, testAgent } from "./Kit.ts"

const peer: HarnessPeer = {
  hello: { prompt: "hello" },
  tool: { prompt: "tool" },
  permission: { prompt: "permission" },
  parallel: { prompt: "parallel" },
  question: { prompt: "question" },
  long: { prompt: "long" },
  failure: { prompt: "fail" }
}

const at = makePlace()

describe("the driver contract over an ACP agent", () => {
  for (const test of harnessContract(testAgent(at, { modes: "options", resume: true }), {
    peer,
    directory: at.directory,
    makeStore: () => createMemoryRuntimeStore()
  })) {
    it(
      test.title,
      async () => {
        const result = await test.run()
        assert.include(["pass", "skip"], result.verdict)
      },
      40_000
    )
  }
})
