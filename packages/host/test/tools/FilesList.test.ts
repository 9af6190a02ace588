import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { filesList, type FilesListInput } from "../../src/tools/FilesList.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

const now = () => performance.now()

const listing = async () => {
  const folder = await makeFolder()
  const list = async (input: FilesListInput, clock = now, signal = never) => {
    const workspace = await folder.workspace()
    return filesList(workspace, await workspace.resolve(input.path ?? "."), input, signal, clock)
  }
  const paths = async (input: FilesListInput) => (await list(input)).entries.map((entry) => entry.path)
  return { ...folder, list, paths }
}

describe("files.list", () => {
  it("lists a folder with types, sizes and times, without what is hidden", async () => {
    const { put, link, list } = await listing()
    await put("b.txt", "12345")
    await put("a/x", "")
    await put(".hidden", "")
    await link("l", "b.txt")
    const { entries, truncated } = await list({})
    assert.deepStrictEqual(
      entries.map(({ path, type }) => [path, type]),
      [
        ["a", "dir"],
        ["b.txt", "file"],
        ["l", "symlink"]
      ]
    )
    assert.strictEqual(entries[1]?.bytes, 5)
    assert.match(entries[1]?.modified_at ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.isFalse(truncated)
  })

  it("descends level by level and shows paths below the workspace", async () => {
    const { put, paths } = await listing()
    await put("src/a/deep.ts", "")
    await put("src/z.ts", "")
    await put("src/a/b/c.ts", "")
    assert.deepStrictEqual(await paths({ path: "src", depth: 2 }), ["src/a", "src/z.ts", "src/a/b", "src/a/deep.ts"])
    assert.deepStrictEqual(await paths({ path: "src", depth: 8, glob: "*.ts" }), [
      "src/z.ts",
      "src/a/deep.ts",
      "src/a/b/c.ts"
    ])
    assert.deepStrictEqual(await paths({ depth: 8, glob: "src/*.ts" }), ["src/z.ts"])
  })

  it("hidden names are shown when asked for, state_dir never [AGT-061]", async () => {
    const { put, paths } = await listing()
    await put(".env", "")
    await put(".git/config", "")
    assert.deepStrictEqual(await paths({ hidden: true, depth: 2 }), [".env", ".git", ".git/config"])
  })

  it("symlinks are not followed, so that a cycle and a way out end at once [AGT-060]", async () => {
    const { link, put, paths } = await listing()
    await put("d/x", "")
    await link("d/up", "..")
    await link("d/out", "../..")
    assert.deepStrictEqual(await paths({ depth: 8 }), ["d", "d/out", "d/up", "d/x"])
    assert.deepStrictEqual(await paths({ path: "d/up", depth: 1 }), ["d"])
  })

  it("a folder of 2,000 files is listed within its limit, and says when it is cut", async () => {
    const { root, put, list } = await listing()
    await mkdir(join(root, "many"))
    await Promise.all(
      Array.from({ length: 2_000 }, (_, index) => put(`many/${String(index).padStart(4, "0")}.txt`, "x"))
    )
    const cut = await list({ path: "many" })
    assert.deepStrictEqual([cut.entries.length, cut.truncated], [500, true])
    assert.strictEqual(cut.entries[499]?.path, "many/0499.txt")
    const exact = await list({ path: "many", limit: 2_000 })
    assert.deepStrictEqual([exact.entries.length, exact.truncated], [2_000, false])
  })

  it("ends at its time with what it has", async () => {
    const { put, list } = await listing()
    await put("a", "")
    await put("b", "")
    let time = 0
    const result = await list({}, () => (time += 11_000))
    assert.deepStrictEqual([result.entries.length < 2, result.truncated], [true, true])
  })

  it("a cancelled listing stops", async () => {
    const { put, list } = await listing()
    await put("a", "")
    assert.strictEqual((await refusalOf(list({}, now, AbortSignal.abort()))).name, "AbortError")
  })

  it("a file is no folder", async () => {
    const { put, list } = await listing()
    await put("a", "")
    assert.include((await refusalOf(list({ path: "a" }))).message, "is not a directory")
    assert.include((await refusalOf(list({ path: "nope" }))).message, "does not exist")
  })
})
