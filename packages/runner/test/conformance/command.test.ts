import { assert, describe, it } from "@effect/vitest"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isLiving } from "../../src/conformance/peer/Living.ts"
import type { JsonReport } from "../../src/conformance/Report.ts"
import { asked, conformance, reference } from "./Kit.ts"

const withFolder = async <A>(use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "tkc-test-"))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Beside the cases Node keeps its compile cache there. */
const casesIn = (temporary: string): ReadonlyArray<string> =>
  readdirSync(temporary).filter((name) => name.startsWith("tkc-"))

const launchIn = (temporary: string, kept: string): string =>
  readdirSync(join(temporary, kept, "rig/launch"))[0] ?? "no launch"

const readReport = (path: string): JsonReport => JSON.parse(readFileSync(path, "utf8")) as JsonReport

describe("tackroom-conformance", () => {
  it("explains itself, and refuses what it does not understand with 64 [CHK-303]", async () => {
    const help = await asked(["--help"])
    assert.strictEqual(help.code, 0)
    assert.include(help.out, "tackroom-conformance WIRE [options] -- COMMAND")
    const runner = await asked(["runner", "--help"])
    assert.include(runner.out, "--agent-name NAME")
    for (const [args, message] of [
      [[], "say which wire to check"],
      [["otter"], 'there is no check "otter"'],
      [["runner"], "the command under test is missing"],
      [["runner", "--jobs", "0", "--", "x", "{agent}"], "--jobs is a whole number"],
      [["runner", "--frobnicate", "--", "x", "{agent}"], "Unknown option '--frobnicate'"],
      [["runner", "--", "x"], "put {agent} into the command, or say --agent-name NAME"],
      [["runner", "--only", "CHK-999", "--", "x", "{agent}"], "there is no check CHK-999"],
      [["runner", "--", "/no/such", "{agent}"], "cannot be started: /no/such is no program"],
      [["serve", "--", "no-such-otter"], "cannot be started: no-such-otter is no program"],
      [["self-test", "otter"], "self-test: say which check is to be tested"],
      [["self-test", "runner", "--others", "many"], "--others is a number"],
      [["runner", "--preset", "/nowhere.yaml", "--", "x", "{agent}"], "--preset: /nowhere.yaml cannot be read"]
    ] as const) {
      const ran = await asked(args)
      assert.strictEqual(ran.code, 64, message)
      assert.include(ran.error, message)
      assert.strictEqual(ran.out, "")
    }
  })

  it("reports a kept promise, a broken one and one not declared, and leaves nothing behind [CHK-300, CHK-304]", () =>
    withFolder(async (folder) => {
      const temporary = join(folder, "tmp")
      mkdirSync(temporary)
      const [json, text] = [join(folder, "report.json"), join(folder, "report.txt")]
      const only = ["--only", "CHK-020,CHK-040", "--only", "CHK-160"]
      const ran = await conformance(
        ["runner", ...only, "--json", json, "--report", text, "--", ...reference("--fault", "CHK-040")],
        { TMPDIR: temporary }
      )
      assert.strictEqual(ran.code, 1, ran.out + ran.error)
      const report = readReport(json)
      assert.deepStrictEqual(
        report.results.map(({ id, reason, verdict }) => [id, verdict, verdict === "skip" ? reason : ""]),
        [
          ["CHK-020", "pass", ""],
          ["CHK-040", "fail", ""],
          ["CHK-160", "skip", "not_declared"]
        ]
      )
      const failed = report.results[1]
      assert.include(failed?.reason, "lacks generation")
      assert.isAbove(failed?.evidence.length ?? 0, 5)
      assert.includeMembers([...new Set(failed?.evidence.map(({ kind }) => kind))], ["post", "acp"])
      // The token of a case is in no report; where it was seen stands a mask.
      assert.notInclude(readFileSync(json, "utf8") + readFileSync(text, "utf8"), "canary-")
      assert.include(readFileSync(text, "utf8"), "FAIL CHK-040 must")
      assert.deepStrictEqual(casesIn(temporary), [])
    }))

  it("says what to install when there is no pseudo-terminal, and exits with 70 [CHK-300, CHK-303]", async () => {
    // What `npm install @tackroom/runner` gives: the peer is not there.
    const absent = `import { registerHooks } from "node:module"
registerHooks({ resolve: (name, context, next) => {
  if (name === "@lydell/node-pty") throw new Error("not installed")
  return next(name, context)
} })`
    const ran = await conformance(["runner", "--only", "CHK-040", "--", ...reference()], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(absent)}`
    })
    assert.strictEqual(ran.code, 70)
    assert.include(ran.error, "npm install @lydell/node-pty@1.1.0")
    assert.strictEqual(ran.out, "")
  })

  it("ends with what only a person can check [CHK-307]", async () => {
    const ran = await conformance(["runner", "--only", "CHK-160", "--", ...reference()])
    assert.strictEqual(ran.code, 0, ran.error)
    const closing = ran.out.slice(ran.out.indexOf("What only a person"))
    for (const words of ["reads ready", "one prompt", "working, then idle", "needs input", "/abort", "resume"]) {
      assert.include(closing, words)
    }
  })

  it("finds the agent by a name on PATH, and keeps the folders of cases when told to [CHK-300]", () =>
    withFolder(async (folder) => {
      const runner = join(folder, "runner.sh")
      const [node = "", program = ""] = reference()
      writeFileSync(runner, `#!/bin/sh\nexec "${node}" "${program}" -- otter-agent\n`, { mode: 0o755 })
      const temporary = join(folder, "tmp")
      mkdirSync(temporary)
      const named = ["--agent-name", "otter-agent", "--keep"]
      const ran = await conformance(["runner", "--only", "CHK-040", ...named, "--", runner], { TMPDIR: temporary })
      assert.strictEqual(ran.code, 0, ran.out + ran.error)
      const [kept = ""] = casesIn(temporary)
      assert.include(
        readFileSync(join(temporary, kept, "rig/launch", launchIn(temporary, kept), "result.json"), "utf8"),
        "nativeRef"
      )
    }))

  it("ends in order on a signal: no case, no program is left, and what was judged is reported [CHK-300]", () =>
    withFolder(async (folder) => {
      const pids = join(folder, "pids")
      const json = join(folder, "report.json")
      const [node = "", program = ""] = reference()
      const runner = join(folder, "runner.sh")
      writeFileSync(runner, `#!/bin/sh\necho $$ >> "${pids}"\nexec "${node}" "${program}" -- "$1"\n`, { mode: 0o755 })
      const temporary = join(folder, "tmp")
      mkdirSync(temporary)
      const started = new Promise<void>((resolve) => {
        const watcher = watch(folder, () => {
          if (!existsSync(pids)) return
          watcher.close()
          resolve()
        })
      })
      const running = conformance(
        ["runner", "--only", "CHK-132", "--json", json, "--", runner, "{agent}"],
        { TMPDIR: temporary },
        (child) => void started.then(() => child.kill("SIGINT"))
      )
      const ran = await running
      assert.strictEqual(ran.code, 130, ran.out + ran.error)
      const { results, stopped } = readReport(json)
      assert.deepStrictEqual([results, stopped?.unfinished], [[], ["CHK-132"]])
      assert.include(ran.out, stopped?.why ?? "no reason")
      assert.deepStrictEqual(casesIn(temporary), [])
      for (const pid of readFileSync(pids, "utf8").trim().split("\n")) assert.isFalse(isLiving(Number(pid)))
    }))

  it("stops early when the runner is not heard in any case, and says so [CHK-302, CHK-303]", () =>
    withFolder(async (folder) => {
      const runner = join(folder, "mute.sh")
      writeFileSync(runner, "#!/bin/sh\necho here I am\nexit 0\n", { mode: 0o755 })
      const json = join(folder, "report.json")
      const only = ["CHK-020", "CHK-021", "CHK-023", "CHK-040", "CHK-041"]
      const limits = ["--jobs", "1", "--only", only.join()]
      const ran = await conformance(["runner", ...limits, "--json", json, "--", runner, "{agent}"])
      assert.strictEqual(ran.code, 1, ran.out + ran.error)
      const { results, stopped } = readReport(json)
      assert.deepStrictEqual(
        results.map(({ reason, verdict }) => (verdict === "skip" ? reason : verdict)),
        ["fail", "fail", "fail", "needs:CHK-020", "needs:CHK-020"]
      )
      assert.include(stopped?.why, "was not heard in any case")
      assert.include(ran.out, stopped?.why ?? "no reason")
    }))

  it("ends what a case left and says so [CHK-300]", () =>
    withFolder(async (folder) => {
      // A runner that leaves a process of its group behind, and whose agent never comes.
      const runner = join(folder, "leaver.sh")
      const pidFile = join(folder, "pid")
      writeFileSync(runner, `#!/bin/sh\ntrap '' HUP\nsleep 300 &\necho $! > "${pidFile}"\nexit 0\n`, { mode: 0o755 })
      const json = join(folder, "report.json")
      const ran = await conformance(["runner", "--only", "CHK-023", "--json", json, "--", runner, "{agent}"])
      assert.strictEqual(ran.code, 1, ran.out + ran.error)
      const [result] = readReport(json).results
      assert.include(JSON.stringify(result?.evidence), "left over in process group")
      const pid = Number(readFileSync(pidFile, "utf8"))
      assert.isFalse(isLiving(pid))
    }))
})
