import { assert, describe, it } from "@effect/vitest"
import { compileArguments } from "../../src/tools/Arguments.ts"
import { makeTools } from "../../src/tools/Tools.ts"

const tools = makeTools()
const issues = (tool: string, input: unknown) => tools.find(tool)?.validate(input) ?? []

describe("Arguments", () => {
  it("arguments that fit have no issues [AGT-005]", () => {
    assert.deepStrictEqual(issues("files.read", { path: "a.ts", max_lines: 10_000, encoding: "base64" }), [])
    assert.deepStrictEqual(issues("files.list", {}), [])
    assert.deepStrictEqual(issues("shell.run", { command: "ls", env: { A_1: "x" }, stdin: "" }), [])
    assert.deepStrictEqual(issues("plan.update", { items: [{ content: "x", status: "pending" }] }), [])
    assert.deepStrictEqual(issues("ask_user", { question: "?", options: [], allow_text: false }), [])
  })

  it("each issue names its path and what was expected [AGT-005]", () => {
    assert.deepStrictEqual(issues("files.read", { path: 1, max_lines: 10_001, start_line: 1.5, encoding: "hex" }), [
      { path: "path", expected: "string" },
      { path: "start_line", expected: "integer" },
      { path: "max_lines", expected: "at most 10000" },
      { path: "encoding", expected: 'one of "utf8", "base64"' }
    ])
    assert.deepStrictEqual(
      issues("files.edit", { path: "x", edits: [{ old: "a", new: "b" }, { old: "", new: 3 }, {}] }),
      [
        { path: "edits[1].old", expected: "at least 1 char" },
        { path: "edits[1].new", expected: "string" },
        { path: "edits[2].old", expected: "a value (required)" },
        { path: "edits[2].new", expected: "a value (required)" }
      ]
    )
    assert.deepStrictEqual(issues("files.read", "text"), [{ path: "(arguments)", expected: "object" }])
    assert.deepStrictEqual(issues("files.read", null), [{ path: "(arguments)", expected: "object" }])
  })

  it("an unknown member is an issue at its own name", () => {
    assert.deepStrictEqual(issues("files.list", { pth: "x" }), [{ path: "pth", expected: "no such member" }])
    assert.deepStrictEqual(issues("files.list", JSON.parse('{"__proto__": 1}')), [
      { path: "__proto__", expected: "no such member" }
    ])
  })

  it("no issue repeats a value [AGT-005]", () => {
    const canary = "sk-canary-0001"
    const all = [
      ...issues("files.read", { path: "x", encoding: canary, [`x`]: 1 }),
      ...issues("files.write", { path: [canary], content: { canary }, expect_sha256: canary }),
      ...issues("shell.run", { command: "x", env: { A: [canary], "B C": canary }, timeout_seconds: canary }),
      ...issues("web.search", { query: canary.repeat(100) })
    ]
    assert.isAbove(all.length, 6)
    assert.notInclude(JSON.stringify(all), canary)
  })

  it("chars are counted as code points and bytes as UTF-8", () => {
    assert.deepStrictEqual(issues("web.search", { query: "😀".repeat(400) }), [])
    assert.deepStrictEqual(issues("web.search", { query: "😀".repeat(401) }), [
      { path: "query", expected: "at most 400 chars" }
    ])
    assert.deepStrictEqual(issues("shell.run", { command: "é".repeat(16_384) }), [])
    assert.deepStrictEqual(issues("shell.run", { command: "é".repeat(16_385) }), [
      { path: "command", expected: "at most 32768 bytes of UTF-8" }
    ])
    assert.deepStrictEqual(issues("files.write", { path: "x", content: "\ud800" }), [
      { path: "content", expected: "well-formed Unicode text" }
    ])
  })

  it("a schema with references and alternatives gives issues without failing", () => {
    const validate = compileArguments({
      $defs: { id: { type: "string", maxLength: 3 } },
      type: "object",
      properties: { id: { $ref: "#/$defs/id" }, either: { anyOf: [{ type: "string" }, { type: "number" }] } }
    })
    assert.deepStrictEqual(validate({ id: "abc", either: 1 }), [])
    assert.deepStrictEqual(
      validate({ id: "abcd", either: true }).map((issue) => issue.path),
      ["id", "either", "either"]
    )
  })

  it("at most ten issues are named", () => {
    const edits = Array.from({ length: 30 }, () => ({}))
    assert.strictEqual(issues("files.edit", { path: "x", edits }).length, 10)
  })
})
