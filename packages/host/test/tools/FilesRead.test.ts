import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import type { FilesReadInput } from "../../src/tools/FileContent.ts"
import { filesRead } from "../../src/tools/FilesRead.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

const reading = async () => {
  const folder = await makeFolder()
  const workspace = await folder.workspace()
  const read = async (input: FilesReadInput) => filesRead(workspace, await workspace.resolve(input.path), input, never)
  return { ...folder, read }
}

describe("files.read", () => {
  it("returns content, lines, size and digest of a text file", async () => {
    const { put, read } = await reading()
    const text = "one\ntwo\r\nthree 日本 😀\n"
    await put("a.txt", text)
    assert.deepStrictEqual(await read({ path: "a.txt" }), {
      path: "a.txt",
      content: text,
      start_line: 1,
      end_line: 3,
      total_lines: 3,
      bytes: Buffer.byteLength(text),
      sha256: createHash("sha256").update(text).digest("hex"),
      truncated: false
    })
  })

  it("returns the lines asked for and says that more follow", async () => {
    const { put, read } = await reading()
    await put("a.txt", "1\n2\n3\n4\n5")
    const part = await read({ path: "a.txt", start_line: 2, max_lines: 2 })
    assert.deepInclude(part, { content: "2\n3\n", start_line: 2, end_line: 3, total_lines: 5, truncated: true })
    const rest = await read({ path: "a.txt", start_line: 4 })
    assert.deepInclude(rest, { content: "4\n5", end_line: 5, truncated: false })
    assert.include((await refusalOf(read({ path: "a.txt", start_line: 6 }))).message, "has 5 lines")
  })

  it("an empty file has no lines; a last line without newline is one", async () => {
    const { put, read } = await reading()
    await put("empty", "")
    assert.deepInclude(await read({ path: "empty" }), {
      content: "",
      start_line: 1,
      end_line: 0,
      total_lines: 0,
      truncated: false
    })
    await put("blank", "\n\n")
    assert.deepInclude(await read({ path: "blank" }), { content: "\n\n", end_line: 2, total_lines: 2 })
  })

  it("a byte order mark and bytes that are no UTF-8 do not stop it", async () => {
    const { put, read } = await reading()
    await put("bom", "\ufeffx")
    assert.strictEqual((await read({ path: "bom" })).content, "\ufeffx")
    await put("latin", Buffer.from([0x63, 0x61, 0x66, 0xe9]))
    assert.strictEqual((await read({ path: "latin" })).content, "caf\ufffd")
  })

  it("a binary file needs base64", async () => {
    const { put, read } = await reading()
    const bytes = Buffer.concat([Buffer.alloc(8_191, 0x61), Buffer.from([0]), Buffer.alloc(300_000, 0x62)])
    await put("b", bytes)
    assert.include((await refusalOf(read({ path: "b" }))).message, "base64")
    const result = await read({ path: "b", encoding: "base64" })
    assert.isTrue(result.truncated)
    assert.deepStrictEqual(Buffer.from(result.content, "base64"), bytes.subarray(0, 256 * 1024))
    assert.strictEqual(result.total_lines, undefined)
    await put("late", Buffer.concat([Buffer.alloc(8_192, 0x61), Buffer.from([0])]))
    assert.strictEqual((await read({ path: "late" })).bytes, 8_193)
  })

  it("content ends at 100,000 chars, at a line's end where it can", async () => {
    const { put, read } = await reading()
    await put("lines", `${"😀".repeat(999)}\n`.repeat(150))
    const result = await read({ path: "lines" })
    assert.strictEqual([...result.content].length, 100_000)
    assert.deepInclude(result, { end_line: 100, total_lines: 150, truncated: true })
    await put("long", "é".repeat(250_000))
    const long = await read({ path: "long" })
    assert.strictEqual([...long.content].length, 100_000)
    assert.deepInclude(long, { start_line: 1, end_line: 1, total_lines: 1, truncated: true })
  })

  it("a file of 32 MiB is read, a larger one refused", async () => {
    const { put, read } = await reading()
    const most = 32 * 1024 * 1024
    await put("most", Buffer.alloc(most, 0x0a))
    assert.deepInclude(await read({ path: "most", start_line: most, max_lines: 5 }), {
      content: "\n",
      total_lines: most
    })
    await put("more", Buffer.alloc(most + 1, 0x61))
    assert.include((await refusalOf(read({ path: "more" }))).message, "larger than")
  })

  it("a folder and a missing file fail in words that name the path as given", async () => {
    const { put, read } = await reading()
    await put("dir/x", "")
    assert.deepStrictEqual(await refusalOf(read({ path: "./dir" })), {
      name: "Failed",
      message: '"./dir" is a directory'
    })
    assert.deepStrictEqual(await refusalOf(read({ path: "no/pe" })), {
      name: "Failed",
      message: '"no/pe" does not exist'
    })
    assert.include((await refusalOf(read({ path: "dir/x/y" }))).message, "not a directory")
  })
})
