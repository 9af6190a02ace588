import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { checkSearch, filesSearch, type FilesSearchInput } from "../../src/tools/FilesSearch.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

const now = () => performance.now()

const searching = async () => {
  const folder = await makeFolder()
  const search = async (input: FilesSearchInput, clock = now, signal = never) => {
    const workspace = await folder.workspace()
    return filesSearch(workspace, await workspace.resolve(input.path ?? "."), input, signal, clock)
  }
  const places = async (input: FilesSearchInput) =>
    (await search(input)).matches.map(({ path, line, column }) => `${path}:${line}:${column}`)
  return { ...folder, search, places }
}

describe("files.search", () => {
  it("finds a text with path, line, column and the line", async () => {
    const { put, search } = await searching()
    await put("src/a.ts", "first\nlet x = a.b(c)\r\nlast a.b(c) a.b(c)\n")
    const { matches, truncated } = await search({ pattern: "a.b(c)" })
    assert.deepStrictEqual(matches, [
      { path: "src/a.ts", line: 2, column: 9, text: "let x = a.b(c)" },
      { path: "src/a.ts", line: 3, column: 6, text: "last a.b(c) a.b(c)" }
    ])
    assert.isFalse(truncated)
  })

  it("columns count chars", async () => {
    const { put, places } = await searching()
    await put("u", "日本😀 needle")
    assert.deepStrictEqual(await places({ pattern: "needle" }), ["u:1:5"])
  })

  it("case can be ignored, for a text and for an expression", async () => {
    const { put, places } = await searching()
    await put("a", "ÄPFEL (x)\nÄpfel (X)\n")
    assert.deepStrictEqual(await places({ pattern: "äpfel (x)" }), [])
    assert.deepStrictEqual(await places({ pattern: "äpfel (x)", case_sensitive: false }), ["a:1:1", "a:2:1"])
    assert.deepStrictEqual(await places({ pattern: "^ä\\S+ \\(X\\)$", regex: true, case_sensitive: false }), [
      "a:1:1",
      "a:2:1"
    ])
  })

  it("an expression works per line, its `$` before a carriage return", async () => {
    const { put, places } = await searching()
    await put("a", "foo bar\r\nbar foo\r\nfoo\n")
    assert.deepStrictEqual(await places({ pattern: "^foo.*$", regex: true }), ["a:1:1", "a:3:1"])
    assert.deepStrictEqual(await places({ pattern: "o$", regex: true }), ["a:2:7", "a:3:3"])
  })

  it("context lines surround a match and stop at the file's ends", async () => {
    const { put, search } = await searching()
    await put("a", "1\n2\nhit\n4\n5\n")
    const { matches } = await search({ pattern: "hit", context_lines: 3 })
    assert.deepStrictEqual(matches, [
      { path: "a", line: 3, column: 1, text: "hit", before: ["1", "2"], after: ["4", "5"] }
    ])
  })

  it("an expression that would backtrack for ever is decided in linear time", async () => {
    const { put, search } = await searching()
    await put("a", `${"a".repeat(200_000)}b`)
    const begun = now()
    assert.deepStrictEqual((await search({ pattern: "^(a+)+$", regex: true })).matches, [])
    assert.isBelow(now() - begun, 8_000)
  })

  it("look-around, back-references and broken patterns are refused before anything is read", () => {
    for (const pattern of ["(?=a)", "(a)\\1", "(", "a{2000}", "[z-a]"]) {
      assert.throws(() => checkSearch({ pattern, regex: true }), /not a regular expression/, pattern)
    }
    checkSearch({ pattern: "(", regex: false })
  })

  it("binary files, .git, state_dir and symlinked files are left out; hidden files are not [AGT-060] [AGT-061]", async () => {
    const { put, link, places } = await searching()
    await put("bin", Buffer.from("needle\0needle"))
    await put(".git/config", "needle")
    await put("sub/.git/x", "needle")
    await put(".github/ci.yml", "needle")
    await put("node_modules/m/index.js", "needle")
    await put(".state/log", "needle")
    await link("l", "../secret.txt")
    await link("up", "..")
    assert.deepStrictEqual(await places({ pattern: "needle" }), [".github/ci.yml:1:1", "node_modules/m/index.js:1:1"])
    assert.deepStrictEqual(await places({ pattern: "secret" }), [])
    assert.deepStrictEqual(await places({ pattern: "needle", path: ".git" }), [".git/config:1:1"])
    assert.deepStrictEqual(await places({ pattern: "needle", path: ".github/ci.yml" }), [".github/ci.yml:1:1"])
  })

  it("a pipe in the folder does not block it", async () => {
    const { root, put, places } = await searching()
    execFileSync("mkfifo", [join(root, "pipe")])
    await put("z", "needle")
    assert.deepStrictEqual(await places({ pattern: "needle" }), ["z:1:1"])
  })

  it("a glob selects files", async () => {
    const { put, places } = await searching()
    await put("a.ts", "x")
    await put("a.js", "x")
    await put("lib/b.ts", "x")
    assert.deepStrictEqual(await places({ pattern: "x", glob: "*.ts" }), ["a.ts:1:1", "lib/b.ts:1:1"])
    assert.deepStrictEqual(await places({ pattern: "x", path: "lib", glob: "lib/*.ts" }), [])
    assert.deepStrictEqual(await places({ pattern: "x", glob: "lib/*.ts" }), ["lib/b.ts:1:1"])
  })

  it("2,000 files are searched, up to the limit", async () => {
    const { put, search } = await searching()
    await Promise.all(
      Array.from({ length: 2_000 }, (_, index) =>
        put(`d${index % 20}/f${index}`, `line\n${index === 1_999 ? "last" : "other"} needle\n`)
      )
    )
    const cut = await search({ pattern: "needle" })
    assert.deepStrictEqual([cut.matches.length, cut.truncated], [100, true])
    const one = await search({ pattern: "last needle" })
    assert.deepStrictEqual(one, {
      matches: [{ path: "d19/f1999", line: 2, column: 1, text: "last needle" }],
      truncated: false
    })
  })

  it("of a long line 500 chars around the match are shown", async () => {
    const { put, search } = await searching()
    await put("a", `${"😀".repeat(3_000)}needle${"y".repeat(3_000)}`)
    const [match] = (await search({ pattern: "needle" })).matches
    assert.strictEqual(match?.column, 3_001)
    assert.strictEqual([...(match?.text ?? "")].length, 500)
    assert.include(match?.text ?? "", "needle")
    assert.isTrue(match?.text.isWellFormed())
  })

  it("what is too large to be searched makes the result incomplete", async () => {
    const { put, search } = await searching()
    await put("large", Buffer.alloc(33 * 1024 * 1024, 0x61))
    await put("z", "needle")
    const { matches, truncated } = await search({ pattern: "needle" })
    assert.deepStrictEqual([matches.length, truncated], [1, true])
    await put("line", `${"x".repeat(300_000)}needle`)
    assert.deepStrictEqual(await search({ pattern: "needle", path: "line" }), { matches: [], truncated: true })
  })

  it("ends at its time with what it has, and at a cancel with nothing", async () => {
    const { put, search } = await searching()
    await put("a", "needle")
    await put("b", "needle")
    let time = 0
    const late = await search({ pattern: "needle" }, () => (time += 4_000))
    assert.isTrue(late.truncated)
    assert.strictEqual((await refusalOf(search({ pattern: "x" }, now, AbortSignal.abort()))).name, "AbortError")
  })
})
