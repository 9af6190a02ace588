import { assert, describe, it } from "@effect/vitest"
import { setAtPointer } from "../../src/text/index.ts"

describe("a value at a JSON Pointer", () => {
  it("is put into objects and lists, by escaped names too", () => {
    const root = { output: { "a/b": ["x", { "~": 1 }] } }
    setAtPointer(root, "/output/a~1b/1/~0", "whole")
    setAtPointer(root, "/output/a~1b/0", "first")
    assert.deepStrictEqual(root as unknown, { output: { "a/b": ["first", { "~": "whole" }] } })
  })

  it("changes nothing where there is nothing", () => {
    const root = { output: "text" }
    for (const pointer of ["", "/none/more", "/output/more", "/__proto__/polluted"]) setAtPointer(root, pointer, 1)
    assert.deepStrictEqual(root, { output: "text" })
    assert.notProperty({}, "polluted")
  })
})
