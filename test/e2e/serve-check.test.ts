/** The check of serve-mode programs on our own face. Every rule that goes beyond the contract counts, and nothing is left out. */
import { assert, describe, it } from "@effect/vitest"
import { checkFace } from "./support/Check.ts"

const question = 'ask_user={"question":"Which colour?","options":["Green","Red"],"allow_text":false}'

describe("tackroom serve", () => {
  it("keeps every promise of the serve check", { timeout: 300_000 }, async () => {
    const { count, notKept } = await checkFace("serve", ["--ask", question])
    assert.deepStrictEqual(notKept, [])
    assert.isAbove(count, 70)
  })
})
