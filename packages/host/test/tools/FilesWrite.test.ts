import { createHash } from "node:crypto"
import { chmod, lstat, open, readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { checkEdit, checkWrite, type FilesEditInput, type FilesWriteInput } from "../../src/tools/FileChange.ts"
import { filesEdit, filesWrite } from "../../src/tools/FilesWrite.ts"
import type { Lookup } from "../../src/tools/Workspace.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

const sha256 = (text: string | Buffer) => createHash("sha256").update(text).digest("hex")

const writing = async (lookup?: Lookup) => {
  const folder = await makeFolder()
  const workspace = await folder.workspace(lookup)
  const write = async (input: FilesWriteInput, signal = never) =>
    filesWrite(workspace, await workspace.resolve(input.path), input, signal)
  const edit = async (input: FilesEditInput) => filesEdit(workspace, await workspace.resolve(input.path), input, never)
  const text = (path: string) => readFile(join(folder.root, path), "utf8")
  return { ...folder, write, edit, text }
}

describe("files.write", () => {
  it("makes a file with its folders and tells what it did [AGT-062] [AGT-064]", async () => {
    const { write, text } = await writing()
    const done = await write({ path: "new/deep/a.txt", content: "héllo\n" })
    assert.deepStrictEqual(done, {
      output: { path: "new/deep/a.txt", bytes: 7, sha256: sha256("héllo\n"), created: true },
      diff: { path: "new/deep/a.txt", newText: "héllo\n" }
    })
    assert.strictEqual(await text("new/deep/a.txt"), "héllo\n")
  })

  it("a change that the client takes is made and not written, and one of its text is [ACP-211]", async () => {
    const { put, text, workspace } = await writing()
    await put("a.txt", "disk")
    const on = await workspace()
    const path = await on.resolve("a.txt")
    const input = { path: "a.txt", content: "new", expect_sha256: sha256("disk") }
    const taken = await filesWrite(on, path, input, never, { takes: true })
    assert.deepStrictEqual(taken.diff, { path: "a.txt", oldText: "disk", newText: "new" })
    assert.strictEqual(await text("a.txt"), "disk")
    const held = { ...input, expect_sha256: sha256("held") }
    const { diff } = await filesWrite(on, path, held, never, { old: "held" })
    assert.deepStrictEqual([diff.oldText, await text("a.txt")], ["held", "new"])
  })

  it("without create_dirs a missing folder is a failure", async () => {
    const { write } = await writing()
    assert.include(
      (await refusalOf(write({ path: "no/a", content: "", create_dirs: false }))).message,
      "does not exist"
    )
  })

  it("replaces a file, keeps its mode and gives the old text [AGT-062] [AGT-064]", async () => {
    const { put, write, root } = await writing()
    await chmod(await put("run.sh", "old"), 0o751)
    const { output, diff } = await write({ path: "run.sh", content: "new" })
    assert.isFalse(output.created)
    assert.deepStrictEqual(diff, { path: "run.sh", oldText: "old", newText: "new" })
    assert.strictEqual((await stat(join(root, "run.sh"))).mode & 0o7777, 0o751)
  })

  it("a symlink stays and its target is replaced [AGT-062]", async () => {
    const { put, link, write, text, root } = await writing()
    await put("real/t.txt", "old")
    await link("l.txt", "real/t.txt")
    const { output } = await write({ path: "l.txt", content: "new" })
    assert.strictEqual(output.path, "real/t.txt")
    assert.isTrue((await lstat(join(root, "l.txt"))).isSymbolicLink())
    assert.strictEqual(await text("real/t.txt"), "new")
    await link("dangling", "real/made")
    await write({ path: "dangling", content: "made" })
    assert.strictEqual(await text("real/made"), "made")
  })

  it("a reader with the old file open never sees the new one, and no other file is left [AGT-062]", async () => {
    const { put, write, root } = await writing()
    const handle = await open(await put("a", "old content"))
    await write({ path: "a", content: "n" })
    assert.strictEqual(await handle.readFile("utf8"), "old content")
    await handle.close()
    assert.deepStrictEqual((await readdir(root)).toSorted(), [".state", "a"])
  })

  it("works the same where directories are looked up by path [AGT-062]", async () => {
    const { put, link, write, edit, text, root } = await writing("path")
    await chmod(await put("d/a", "old"), 0o640)
    await link("l", "d/a")
    assert.deepStrictEqual((await write({ path: "l", content: "new" })).diff, {
      path: "d/a",
      oldText: "old",
      newText: "new"
    })
    await edit({ path: "d/a", edits: [{ old: "new", new: "newer" }] })
    await write({ path: "e/f/g", content: "made" })
    assert.deepStrictEqual([await text("d/a"), await text("e/f/g")], ["newer", "made"])
    assert.strictEqual((await stat(join(root, "d/a"))).mode & 0o777, 0o640)
    assert.deepStrictEqual(await readdir(join(root, "d")), ["a"])
  })

  it("many writes and reads at once: a reader sees one whole file [AGT-062]", async () => {
    const { write, text } = await writing()
    const content = (index: number) => String(index).repeat(50_000)
    await write({ path: "a", content: content(0) })
    const seen: Array<string> = []
    const state = { done: false }
    const reader = (async () => {
      while (!state.done) seen.push(await text("a"))
    })()
    await Promise.all(Array.from({ length: 40 }, (_, index) => write({ path: "a", content: content(index % 10) })))
    state.done = true
    await reader
    assert.isTrue(seen.every((each) => each.length === 50_000 && new Set(each).size === 1))
  })

  it("expect_sha256 that does not match changes nothing [AGT-063]", async () => {
    const { put, write, text } = await writing()
    await put("a", "old")
    assert.include(
      (await refusalOf(write({ path: "a", content: "new", expect_sha256: sha256("x") }))).message,
      "sha256"
    )
    assert.strictEqual(await text("a"), "old")
    assert.include(
      (await refusalOf(write({ path: "b", content: "new", expect_sha256: sha256("") }))).message,
      "does not exist"
    )
    await write({ path: "a", content: "new", expect_sha256: sha256("old").toUpperCase() })
    assert.strictEqual(await text("a"), "new")
  })

  it("two writes that expect the same content: one wins [AGT-063]", async () => {
    const { put, write } = await writing()
    await put("a", "old")
    const ends = await Promise.all(
      ["1", "2", "3"].map((content) =>
        write({ path: "a", content, expect_sha256: sha256("old") }).then(
          () => "written",
          () => "refused"
        )
      )
    )
    assert.deepStrictEqual(ends.toSorted(), ["refused", "refused", "written"])
  })

  it("a folder, the workspace and a read-only file are not replaced", async () => {
    const { put, write, text } = await writing()
    await put("d/x", "x")
    assert.include((await refusalOf(write({ path: "d", content: "" }))).message, "is a directory")
    assert.strictEqual((await refusalOf(write({ path: ".", content: "" }))).name, "Failed")
    assert.include((await refusalOf(write({ path: "d/x/y", content: "" }))).message, "not a directory")
    assert.strictEqual(await text("d/x"), "x")
  })

  it("a cancelled write leaves the file and no other behind", async () => {
    const { put, write, text, root } = await writing()
    await put("a", "old")
    await refusalOf(write({ path: "a", content: "new" }, AbortSignal.abort()))
    assert.strictEqual(await text("a"), "old")
    assert.deepStrictEqual((await readdir(root)).toSorted(), [".state", "a"])
  })

  it("a large or binary old file has no old text in the diff [AGT-064]", async () => {
    const { put, write } = await writing()
    await put("large", "x".repeat(524_289))
    await put("bin", Buffer.from([1, 0, 2]))
    await put("latin", Buffer.from([0xe9]))
    for (const path of ["large", "bin", "latin"]) {
      assert.deepStrictEqual((await write({ path, content: "n" })).diff, { path, newText: "n" })
    }
  })

  it("content is bounded in bytes and must be well-formed", () => {
    assert.throws(() => checkWrite({ path: "a", content: "é".repeat(262_145) }), /larger than/)
    assert.throws(() => checkWrite({ path: "a", content: "\udc00" }), /well-formed/)
    checkWrite({ path: "a", content: "é".repeat(262_144) })
  })
})

describe("files.edit", () => {
  it("replaces pieces in order, each seeing the one before [AGT-064]", async () => {
    const { put, edit, text } = await writing()
    await put("a.ts", "let a = 1\nlet b = 2\nlet c = 3\n")
    const { output, diff } = await edit({
      path: "a.ts",
      edits: [
        { old: "let a = 1", new: "let z = 1" },
        { old: "let", new: "const", all: true },
        { old: "const z", new: "const y" }
      ]
    })
    const result = "const y = 1\nconst b = 2\nconst c = 3\n"
    assert.deepStrictEqual(output, { path: "a.ts", replacements: 5, sha256: sha256(result) })
    assert.strictEqual(await text("a.ts"), result)
    assert.deepStrictEqual(diff, { path: "a.ts", oldText: "let a = 1\nlet b = 2\nlet c = 3\n", newText: result })
  })

  it("all edits or none", async () => {
    const { put, edit, text } = await writing()
    await put("a", "one two two")
    const first = { old: "one", new: "1" }
    assert.include(
      (await refusalOf(edit({ path: "a", edits: [first, { old: "two", new: "2" }] }))).message,
      "edits[1].old occurs more"
    )
    assert.include(
      (await refusalOf(edit({ path: "a", edits: [first, { old: "three", new: "3" }] }))).message,
      "does not occur"
    )
    assert.include(
      (await refusalOf(edit({ path: "a", edits: [first, { old: "four", new: "4", all: true }] }))).message,
      "does not occur"
    )
    assert.strictEqual(await text("a"), "one two two")
  })

  it("overlapping places count as more than one", async () => {
    const { put, edit, text } = await writing()
    await put("a", "aaa")
    assert.strictEqual((await refusalOf(edit({ path: "a", edits: [{ old: "aa", new: "b" }] }))).name, "Failed")
    await edit({ path: "a", edits: [{ old: "aa", new: "b", all: true }] })
    assert.strictEqual(await text("a"), "ba")
  })

  it("keeps line ends, unknown bytes and the byte order mark of what it does not touch", async () => {
    const { put, edit, root } = await writing()
    await put("a", Buffer.concat([Buffer.from("\ufeffx = 1\r\ny = "), Buffer.from([0xe9, 0xff]), Buffer.from("\r\n")]))
    await edit({ path: "a", edits: [{ old: "x = 1\r\n", new: "x = 日\r\n" }] })
    assert.deepStrictEqual(
      await readFile(join(root, "a")),
      Buffer.concat([Buffer.from("\ufeffx = 日\r\ny = "), Buffer.from([0xe9, 0xff]), Buffer.from("\r\n")])
    )
    const refusal = await refusalOf(edit({ path: "a", edits: [{ old: "日\ny", new: "" }] }))
    assert.include(refusal.message, "\\r\\n")
  })

  it("a replacement text is taken literally", async () => {
    const { put, edit, text } = await writing()
    await put("a", "x")
    await edit({ path: "a", edits: [{ old: "x", new: "$& $1 \\n" }] })
    assert.strictEqual(await text("a"), "$& $1 \\n")
  })

  it("concurrent edits of one file lose nothing", async () => {
    const { put, edit, text } = await writing()
    await put("a", Array.from({ length: 30 }, (_, index) => `<${index}>`).join(""))
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => edit({ path: "a", edits: [{ old: `<${index}>`, new: "." }] }))
    )
    assert.strictEqual(await text("a"), ".".repeat(30))
  })

  it("expect_sha256, size and binary files are checked first [AGT-063]", async () => {
    const { put, edit, text } = await writing()
    await put("a", "x")
    const edits = [{ old: "x", new: "y" }]
    assert.include((await refusalOf(edit({ path: "a", edits, expect_sha256: sha256("z") }))).message, "sha256")
    assert.strictEqual(await text("a"), "x")
    await put("big", "x".repeat(4 * 1024 * 1024 + 1))
    assert.include((await refusalOf(edit({ path: "big", edits }))).message, "larger than")
    await put("bin", Buffer.from("x\0"))
    assert.include((await refusalOf(edit({ path: "bin", edits }))).message, "binary")
    assert.include((await refusalOf(edit({ path: "none", edits }))).message, "does not exist")
    await put("grow", "x".repeat(100))
    const grown = await refusalOf(edit({ path: "grow", edits: [{ old: "x", new: "y".repeat(60_000), all: true }] }))
    assert.include(grown.message, "would become larger")
  })

  it("text that is not well-formed is refused before anything is read", () => {
    assert.throws(() => checkEdit({ path: "a", edits: [{ old: "a", new: "\ud800" }] }), /edits\[0\]/)
  })

  it("a file of 4 MiB with as many places is edited", async () => {
    const { put, edit, text } = await writing()
    await put("big", "ab".repeat(2 * 1024 * 1024))
    const { output, diff } = await edit({ path: "big", edits: [{ old: "a", new: "c", all: true }] })
    assert.strictEqual(output.replacements, 2 * 1024 * 1024)
    assert.strictEqual(diff.oldText, undefined)
    assert.strictEqual((await text("big")).startsWith("cbcb"), true)
  })
})
