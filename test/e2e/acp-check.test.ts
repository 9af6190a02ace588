/** The check of ACP agents on our own face. Every should counts, and only what the native agent does not offer is left out. */
import { assert, describe, it } from "@effect/vitest"
import { checkFace } from "./support/Check.ts"

/** The native agent has one model and no modes to choose from. */
const notOffered = ["ACK-190", "ACK-191", "ACK-192", "ACK-200", "ACK-201", "ACK-202"]

describe("tackroom acp", () => {
  it("keeps every promise of the ACP check", { timeout: 300_000 }, async () => {
    const { count, notKept } = await checkFace("acp")
    assert.deepStrictEqual(
      notKept,
      notOffered.map((id) => `${id} skip: not_declared`)
    )
    assert.isAbove(count, 80)
  })
})
