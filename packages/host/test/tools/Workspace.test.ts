import { execFileSync } from "node:child_process"
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { filesRead } from "../../src/tools/FilesRead.ts"
import { filesWrite } from "../../src/tools/FilesWrite.ts"
import { isInside, Workspace } from "../../src/tools/Workspace.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

describe("Workspace", () => {
  it("a path is relative to the workspace or absolute inside it [AGT-060]", async () => {
    const folder = await makeFolder()
    await folder.put("src/a.ts", "a")
    await folder.put("..dots/x", "x")
    const workspace = await folder.workspace()
    const shown = async (path: string) => (await workspace.resolve(path)).shown
    assert.strictEqual(await shown("src/a.ts"), "src/a.ts")
    assert.strictEqual(await shown(join(folder.root, "src/a.ts")), "src/a.ts")
    assert.strictEqual(await shown("./src/../src//a.ts"), "src/a.ts")
    assert.strictEqual(await shown("."), ".")
    assert.strictEqual(await shown("src/"), "src")
    assert.strictEqual(await shown("..dots/x"), "..dots/x")
    assert.strictEqual(await shown("new/deep/file"), "new/deep/file")
    assert.strictEqual(await shown("../ws/src/a.ts"), "src/a.ts")
    assert.isFalse(isInside("/a/b", "/a/bc"))
  })

  it("a path outside is refused, named as given, whether or not it exists [AGT-060]", async () => {
    const folder = await makeFolder()
    await folder.link("out", "..")
    await folder.link("file", "../secret.txt")
    await folder.link("dangling", "../nothing-here")
    await folder.link("etc", "/etc")
    await folder.link("chain", "out/secret.txt")
    await folder.link("loop", "loop")
    const workspace = await folder.workspace()
    const paths = [
      "..",
      "../secret.txt",
      "../nothing",
      "/etc/passwd",
      "/nothing/at/all",
      "out/secret.txt",
      "out/nothing",
      "file",
      "dangling",
      "etc/passwd",
      "etc/new-file",
      "chain",
      "loop",
      "src/../../secret.txt",
      "missing/../../secret.txt",
      join(folder.root, "../secret.txt"),
      `${folder.root}-other/x`,
      "~/../../etc/passwd/../../../../secret"
    ]
    for (const path of paths) {
      const refusal = await refusalOf(workspace.resolve(path))
      assert.deepStrictEqual(refusal, {
        name: "NotRun",
        message: `the path ${JSON.stringify(path)} is outside the workspace or not open to tools`
      })
    }
  })

  it("`..` after a symlink goes where the symlink leads [AGT-060]", async () => {
    const folder = await makeFolder()
    await folder.put("a/b/c/x", "deep")
    await folder.put("x", "top")
    await folder.link("link", "a/b/c")
    const workspace = await folder.workspace()
    assert.strictEqual((await workspace.resolve("link/../x")).shown, "a/b/x")
    await folder.link("away", "../")
    assert.strictEqual((await refusalOf(workspace.resolve("away/ws/../secret.txt"))).name, "NotRun")
    assert.strictEqual((await workspace.resolve("away/ws/x")).shown, "x")
  })

  it("hostile names are refused or taken literally, never followed out [AGT-060]", async () => {
    const folder = await makeFolder()
    const workspace = await folder.workspace()
    for (const path of ["a\0b", "\0", "x/\ud800", `${"n".repeat(300)}`, "d/".repeat(5_000)]) {
      const refusal = await refusalOf(workspace.resolve(path).then((found) => found.kind))
      assert.isTrue(refusal.name === "NotRun" || refusal.message === "it succeeded", path.slice(0, 20))
    }
    for (const path of ["%2e%2e/secret.txt", "..\\secret.txt", "a\nb", "-rf", "‮txt.exe", "日本/ü", " ", "C:\\x"]) {
      assert.isTrue((await workspace.resolve(path)).real.startsWith(`${folder.root}/`), path)
    }
    assert.strictEqual((await refusalOf(workspace.resolve("a\0b"))).name, "NotRun")
  })

  it("state_dir is closed, also inside the workspace and by any way to it [AGT-061]", async () => {
    const folder = await makeFolder()
    await folder.link("door", ".state")
    await folder.link("key", ".state/host.key")
    const workspace = await folder.workspace()
    for (const path of [
      ".state",
      ".state/host.key",
      ".state/new",
      "door/host.key",
      "key",
      "src/../.state/host.key",
      folder.stateDir
    ]) {
      assert.strictEqual((await refusalOf(workspace.resolve(path))).name, "NotRun", path)
    }
    assert.strictEqual((await workspace.resolve(".stateful")).kind, "missing")
    const outside = await Workspace.make(folder.stateDir, folder.stateDir)
    assert.strictEqual((await refusalOf(outside.resolve("."))).name, "NotRun")
  })

  it("state_dir named through a symlink is closed by its real path [AGT-061]", async () => {
    const folder = await makeFolder()
    await symlink(folder.stateDir, join(folder.base, "state-link"))
    const workspace = await Workspace.make(folder.root, join(folder.base, "state-link"))
    assert.strictEqual((await refusalOf(workspace.resolve(".state/host.key"))).name, "NotRun")
  })

  it("devices, pipes and sockets are refused without blocking [AGT-061]", async () => {
    const folder = await makeFolder()
    const pipe = join(folder.root, "pipe")
    execFileSync("mkfifo", [pipe])
    const server = createServer()
    const socket = join(folder.root, "socket")
    await new Promise<void>((resolve) => server.listen(socket, resolve))
    try {
      const workspace = await folder.workspace()
      for (const path of ["pipe", "socket"]) {
        assert.include((await refusalOf(workspace.resolve(path))).message, "device, pipe or socket")
      }
      const raced = { given: "pipe", real: pipe, shown: "pipe", kind: "file" } as const
      assert.deepStrictEqual(await refusalOf(workspace.openFile(raced)), {
        name: "Failed",
        message: '"pipe" is a device, pipe or socket'
      })
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })

  for (const lookup of process.platform === "linux" ? (["descriptor", "path"] as const) : (["path"] as const)) {
    it(`a file exchanged for a symlink after the check is not read, by ${lookup} [AGT-060]`, async () => {
      const folder = await makeFolder()
      const file = await folder.put("a.txt", "mine")
      const workspace = await folder.workspace(lookup)
      const path = await workspace.resolve("a.txt")
      await rm(file)
      await symlink(join(folder.base, "secret.txt"), file)
      const refusal = await refusalOf(filesRead(workspace, path, { path: "a.txt" }, never))
      assert.deepStrictEqual([refusal.name, refusal.message.includes("changed while")], ["Failed", true])
    })

    it(`a folder exchanged for a symlink after the check is neither read nor written, by ${lookup} [AGT-060]`, async () => {
      const folder = await makeFolder()
      await folder.put("dir/secret.txt", "mine")
      const workspace = await folder.workspace(lookup)
      const read = await workspace.resolve("dir/secret.txt")
      const write = await workspace.resolve("dir/new.txt")
      await rename(join(folder.root, "dir"), join(folder.root, "moved"))
      await symlink(folder.base, join(folder.root, "dir"))
      assert.strictEqual(
        (await refusalOf(filesRead(workspace, read, { path: "dir/secret.txt" }, never))).name,
        "Failed"
      )
      const parent = await refusalOf(workspace.openParent(write, true))
      assert.strictEqual(parent.name, "Failed")
      const refusal = await refusalOf(
        filesWrite(workspace, write, { path: "dir/new.txt", content: "x", create_dirs: true }, never)
      )
      assert.notStrictEqual(refusal.name, "none")
      assert.strictEqual((await refusalOf(readFile(join(folder.base, "new.txt")))).message.includes("ENOENT"), true)
      assert.strictEqual(await readFile(join(folder.base, "secret.txt"), "utf8"), "the secret\n")
    })
  }

  it("a folder that is exchanged all the time never lets a write out [AGT-060]", async () => {
    const folder = await makeFolder()
    const dir = join(folder.root, "dir")
    const real = join(folder.root, "real")
    const out = join(folder.base, "out")
    await mkdir(dir)
    await mkdir(out)
    const state = { stop: false }
    const swap = (async () => {
      while (!state.stop) {
        await rename(dir, real)
        await symlink(out, dir)
        await rm(dir)
        await rename(real, dir)
      }
    })()
    const workspace = await folder.workspace()
    for (let index = 0; index < 300; index += 1) {
      const input = { path: `dir/f${index}`, content: "x", create_dirs: false }
      await refusalOf(workspace.resolve(input.path).then((found) => filesWrite(workspace, found, input, never)))
    }
    state.stop = true
    await swap
    assert.deepStrictEqual(execFileSync("ls", ["-A", out], { encoding: "utf8" }), "")
  })

  it("a missing workspace is a failure [RUN-351]", async () => {
    assert.strictEqual((await refusalOf(Workspace.make("/nothing/here", undefined))).name, "Failed")
    const folder = await makeFolder()
    await writeFile(join(folder.base, "plain"), "")
    assert.strictEqual((await refusalOf(Workspace.make(join(folder.base, "plain"), undefined))).name, "Failed")
  })
  it("a link in the place of the workspace leads to no other folder [RUN-351]", async () => {
    const folder = await makeFolder()
    await symlink(folder.root, join(folder.base, "elsewhere"))
    const refused = await refusalOf(Workspace.make(join(folder.base, "elsewhere"), undefined))
    assert.strictEqual(refused.name, "Failed")
  })
})
