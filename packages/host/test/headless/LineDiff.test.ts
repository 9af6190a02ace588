import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { changes, diffLines, diffStat } from "../../src/faces/headless/LineDiff.ts"

const lines = (text: string) => (text === "" ? [] : text.replace(/\n$/u, "").split("\n"))

const Lines = Schema.Array(Schema.Literals(["a", "b", "c", ""]))

describe("line differences", () => {
  it("shows what changed with the lines around it", () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`)
    const after = before.with(10, "changed")
    assert.deepStrictEqual(
      changes(before.join("\n"), after.join("\n"), 1).map(({ kind, text }) => `${kind} ${text}`),
      ["gap 9 unchanged", "same line 9", "removed line 10", "added changed", "same line 11", "gap 8 unchanged"]
    )
  })

  it("a new text is all added, an emptied one all removed", () => {
    assert.deepStrictEqual(diffStat("", "a\nb\n"), { added: 2, removed: 0 })
    assert.deepStrictEqual(diffStat("a\nb\n", ""), { added: 0, removed: 2 })
    assert.deepStrictEqual(changes("", ""), [])
  })

  it.effect.prop("from the lines both texts can be read back", [Lines, Lines], ([left, right]) =>
    Effect.sync(() => {
      const before = left.map((line) => `${line}\n`).join("")
      const after = right.map((line) => `${line}\n`).join("")
      const all = diffLines(before, after)
      const kept = (kind: string) => all.filter((line) => line.kind === kind || line.kind === "same")
      assert.deepStrictEqual(
        kept("removed").map(({ text }) => text),
        lines(before)
      )
      assert.deepStrictEqual(
        kept("added").map(({ text }) => text),
        lines(after)
      )
    })
  )

  it("a very large change is shown whole instead of searched", () => {
    const before = Array.from({ length: 5_000 }, (_, index) => `a${index}`).join("\n")
    const after = Array.from({ length: 5_000 }, (_, index) => `b${index}`).join("\n")
    assert.deepStrictEqual(diffStat(before, after), { added: 5_000, removed: 5_000 })
  })
})
