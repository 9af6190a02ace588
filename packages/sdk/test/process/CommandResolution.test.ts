import { assert, describe, it } from "@effect/vitest"
import { resolveCommand } from "../../src/process/index.ts"

const files = new Set(["C:\\npm\\codex", "C:\\npm\\codex.cmd", "C:\\bin\\git.exe", "C:\\bin\\git", "D:\\x y\\a.bat"])
const resolve = (command: string, args: ReadonlyArray<string> = []) =>
  resolveCommand({
    command,
    args,
    environment: { Path: "C:\\npm;C:\\bin\\", PATHEXT: ".COM;.EXE;.BAT;.CMD", ComSpec: "C:\\cmd.exe" },
    platform: "win32",
    exists: (path) => files.has(path)
  })

describe("CommandResolution", () => {
  it("POSIX leaves the search to the system", () => {
    assert.deepStrictEqual(
      resolveCommand({ command: "codex", args: ["a"], environment: {}, platform: "linux", exists: () => true }),
      { command: "codex", args: ["a"], verbatim: false }
    )
  })

  it("Windows finds the executable through PATHEXT and never the shim without extension [HRN-045]", () => {
    assert.deepStrictEqual(resolve("git", ["log"]), { command: "C:\\bin\\git.exe", args: ["log"], verbatim: false })
  })

  it("a batch file runs through cmd.exe with arguments it cannot read as its own [HRN-045]", () => {
    const resolved = resolve("codex", ["a b", "x & calc", '"'])
    assert.strictEqual(resolved.command, "C:\\cmd.exe")
    assert.isTrue(resolved.verbatim)
    assert.deepStrictEqual(resolved.args.slice(0, 3), ["/d", "/s", "/c"])
    assert.include(resolved.args[3], "^&")
    assert.notMatch(resolved.args[3] ?? "", /[^^]&/)
  })

  it("a path is taken as given", () => {
    assert.strictEqual(resolve("D:\\x y\\a.bat").command, "C:\\cmd.exe")
    assert.strictEqual(resolve("D:\\none\\b.exe").command, "D:\\none\\b.exe")
  })
})
