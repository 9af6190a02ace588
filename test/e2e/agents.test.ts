/** Real agents are run for who asks for them, and the ordinary run neither counts nor hides them. */
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url))

/** The test files that a run has, with these variables. */
const files = (variables: Record<string, string>): ReadonlyArray<string> =>
  (
    JSON.parse(
      execFileSync(process.execPath, [vitest, "list", "--filesOnly", "--json"], {
        cwd: root,
        encoding: "utf8",
        env: { PATH: process.env["PATH"], ...variables }
      })
    ) as ReadonlyArray<{ readonly file: string }>
  )
    .map(({ file }) => file.slice(root.length))
    .filter((file) => file.startsWith("test/e2e/agents/"))

describe("the job with real agents", () => {
  it("is there with TACKROOM_REAL_AGENTS=1 alone [HRN-072]", () => {
    assert.deepStrictEqual(files({}), [])
    assert.include(files({ TACKROOM_REAL_AGENTS: "1" }), "test/e2e/agents/driver.test.ts")
  })
})
