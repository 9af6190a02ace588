import { assert, describe, it } from "@effect/vitest"
import { refusedNode } from "../../src/process/NodeVersion.ts"

describe("the version of Node", () => {
  it("is refused below 22.19, and told", () => {
    for (const version of ["22.19.0", "22.20.1", "24.0.0", "26.1.0"]) assert.isUndefined(refusedNode(version), version)
    for (const version of ["20.20.2", "22.18.9", "18.0.0"]) assert.include(refusedNode(version) ?? "", version)
  })
})
