import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { isGroupAlive } from "@tackroom/sdk/process"
import { checkShell, type ShellHooks, type ShellInput, shellRun } from "../../src/tools/Shell.ts"
import { makeFolder, never, refusalOf } from "./fixtures/Folder.ts"

const now = () => performance.now()
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" }

const shell = async (hooks: Partial<ShellHooks> = {}) => {
  const folder = await makeFolder()
  const seen = { stdout: "", stderr: "", groups: [] as Array<number>, ended: [] as Array<number> }
  const run = (input: ShellInput, signal = never) =>
    shellRun(
      input,
      folder.root,
      env,
      {
        started: async (group) => {
          seen.groups.push(group)
          await hooks.started?.(group)
        },
        ended: (group) => seen.ended.push(group),
        output: async (stream, text) => {
          seen[stream] += text
          await hooks.output?.(stream, text)
        }
      },
      signal,
      now
    )
  return { ...folder, run, seen }
}

describe("shell.run", () => {
  it("runs a command line of any form and separates its streams [AGT-070]", async () => {
    const { run, seen } = await shell()
    const result = await run({ command: `echo "it's" '日本' \\\n  && cat <<'E' >&2\n$HOME\nE` })
    assert.strictEqual(seen.stdout, "it's 日本\n")
    assert.strictEqual(seen.stderr, "$HOME\n")
    assert.deepInclude(result, { exit_code: 0, timed_out: false, stdout_bytes: 12, stderr_bytes: 6 })
  })

  it("a nonzero exit code is a result, and so is a signal [AGT-072]", async () => {
    const { run } = await shell()
    assert.deepInclude(await run({ command: "exit 7" }), { exit_code: 7, timed_out: false })
    assert.deepInclude(await run({ command: "kill -9 $$" }), { exit_code: null, signal: "SIGKILL", timed_out: false })
  })

  it("leads its own process group, without a terminal [AGT-070]", async () => {
    const { run, seen } = await shell()
    await run({
      command: "ps -o pgid= -p $$ | tr -d ' '; echo $$; test -t 0 || test -t 1 || test -t 2 || echo no terminal"
    })
    const [pgid, pid, terminal] = seen.stdout.split("\n")
    assert.strictEqual(pgid, pid)
    assert.strictEqual(Number(pid), seen.groups[0])
    assert.strictEqual(terminal, "no terminal")
    assert.deepStrictEqual(seen.ended, seen.groups)
  })

  it("its input is closed after stdin [AGT-070]", async () => {
    const { run, seen } = await shell()
    await run({ command: "cat; echo end", stdin: "some ü\n" })
    await run({ command: "cat; echo end" })
    assert.strictEqual(seen.stdout, "some ü\nend\nend\n")
  })

  it("a command that does not read its input is no failure", async () => {
    const { run } = await shell()
    assert.strictEqual((await run({ command: "exec 0<&-; exit 0", stdin: "x".repeat(65_536) })).exit_code, 0)
  })

  it("keeps no state between calls [AGT-070]", async () => {
    const { run, seen, root } = await shell()
    await run({ command: "cd /; X=1; export X" })
    await run({ command: 'pwd; echo "[$X]"; (: >&3) 2>/dev/null || echo closed' })
    assert.strictEqual(seen.stdout, `${root}\n[]\nclosed\n`)
  })

  it("sees the given environment and nothing else [RUN-085]", async () => {
    const { run, seen } = await shell()
    await run({ command: "env", env: { GIVEN: "yes", PATH: "/bin:/usr/bin" } })
    const names = seen.stdout.split("\n").map((line) => line.split("=")[0])
    assert.deepStrictEqual(
      names.filter((name) => name !== "" && name !== "PWD" && name !== "_" && name !== "SHLVL").toSorted(),
      ["GIVEN", "PATH"]
    )
  })

  it("a char that is split between two pieces of output arrives whole", async () => {
    const { run, seen } = await shell()
    await run({ command: "printf '\\360\\237'; sleep 0.1; printf '\\230\\200'; printf '\\303'" })
    assert.strictEqual(seen.stdout, "😀\ufffd")
  })

  it("captures 32 MiB of a stream and counts the rest", async () => {
    const { run, seen } = await shell()
    const result = await run({ command: "head -c 40000000 /dev/zero | tr '\\0' x; echo small >&2" })
    assert.strictEqual(seen.stdout.length, 32 * 1024 * 1024)
    assert.deepInclude(result, { exit_code: 0, stdout_bytes: 40_000_000, stderr_bytes: 6 })
  })

  it("a slow receiver loses nothing", async () => {
    const { run, seen } = await shell({ output: () => new Promise((resolve) => setImmediate(resolve)) })
    const result = await run({ command: "head -c 3000000 /dev/zero | tr '\\0' y" })
    assert.strictEqual(seen.stdout.length, 3_000_000)
    assert.strictEqual(result.stdout_bytes, 3_000_000)
  })

  it("at the time-out the whole tree ends and the output so far is kept [AGT-071]", async () => {
    const { run, seen } = await shell()
    const result = await run({
      command: "echo before; (sleep 300; echo x) & sh -c 'sleep 300; true'",
      timeout_seconds: 1
    })
    assert.deepInclude(result, { exit_code: null, timed_out: true, signal: "SIGTERM" })
    assert.strictEqual(seen.stdout, "before\n")
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("what ignores SIGTERM is killed two seconds later [AGT-071]", async () => {
    const { run, seen } = await shell()
    const command =
      "trap '' TERM; echo before; (trap '' TERM; while :; do sleep 0.2; done) & while :; do sleep 0.2; done"
    const result = await run({ command, timeout_seconds: 1 })
    assert.deepInclude(result, { timed_out: true, signal: "SIGKILL" })
    assert.isAtLeast(result.duration_ms, 2_900)
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("a stopped command ends too [AGT-071]", async () => {
    const { run, seen } = await shell()
    const result = await run({ command: "kill -STOP $$; sleep 300", timeout_seconds: 1 })
    assert.isTrue(result.timed_out)
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("processes left behind end with the shell, and are not waited for [AGT-070]", async () => {
    const { run, seen } = await shell()
    const result = await run({ command: "sleep 300 & nohup sleep 300 >/dev/null 2>&1 & echo started" })
    assert.deepInclude(result, { exit_code: 0, timed_out: false })
    assert.strictEqual(seen.stdout, "started\n")
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("a process that left the group and holds the output is not waited for", async () => {
    const { run, seen } = await shell()
    const script = `const c = require("child_process").spawn("sleep", ["20"], { detached: true, stdio: "inherit" }); c.unref(); console.log(c.pid)`
    const result = await run({ command: `'${process.execPath}' -e '${script}'` })
    assert.strictEqual(result.exit_code, 0)
    assert.isBelow(result.duration_ms, 12_000)
    process.kill(Number(seen.stdout.trim()), "SIGKILL")
  })

  it("a cancel ends the tree and keeps the output so far [AGT-071]", async () => {
    const abort = new AbortController()
    const { run, seen } = await shell({ output: async () => abort.abort() })
    const ended = await run({ command: "echo before; sleep 300 & sleep 300" }, abort.signal).catch(
      (cause: unknown) => cause
    )
    assert.deepInclude(ended, { name: "Failed", code: "cancelled" })
    assert.strictEqual(seen.stdout, "before\n")
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("the command waits until its group is known [RUN-090]", async () => {
    const abort = new AbortController()
    const { run, seen, root } = await shell({
      started: () => {
        setImmediate(() => abort.abort())
        return new Promise(() => undefined)
      }
    })
    assert.strictEqual((await refusalOf(run({ command: "touch ran" }, abort.signal))).name, "Failed")
    assert.isFalse(existsSync(join(root, "ran")))
    assert.isFalse(isGroupAlive(seen.groups[0] ?? 0))
  })

  it("sizes in bytes, NUL and malformed text are refused before the start", () => {
    assert.throws(() => checkShell({ command: "é".repeat(16_385) }), /larger than/)
    assert.throws(() => checkShell({ command: "a", stdin: "é".repeat(32_769) }), /larger than/)
    assert.throws(() => checkShell({ command: "a\0b" }), /NUL/)
    assert.throws(() => checkShell({ command: "\ud800" }), /well-formed/)
    assert.throws(() => checkShell({ command: "a", env: { A: "x\0" } }), /env/)
    checkShell({ command: "é".repeat(16_384), stdin: "é".repeat(32_768) })
  })

  it("a command of 32,768 bytes runs", async () => {
    const { run, seen } = await shell()
    const command = `echo ${"x".repeat(32_768 - 5)}`
    assert.strictEqual((await run({ command })).exit_code, 0)
    assert.strictEqual(seen.stdout.length, 32_768 - 5 + 1)
  })
})
