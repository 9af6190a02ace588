/** How the real host ends: in good order, in a hurry, and not at all of its own will. Its children end with it. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readAll, refusalOf } from "./support/Drive.ts"
import { readStored } from "./support/Journal.ts"
import { makeLab, type Lab } from "./support/Lab.ts"
import { effectsOf, isEnd } from "./support/Proof.ts"
import type { Loose, RawHost } from "./support/RawHost.ts"

const shell = (command: string) => ({ call: { tool: "shell.run", arguments: { command } } })

/** A command that a friendly signal does not end, with children in the background. */
const stubborn =
  "trap '' TERM HUP INT; echo ran >> lines; sleep 300 & (sleep 300; sleep 300) & echo up; wait; sleep 300"

const makeToolLab = (command: string): Lab =>
  makeLab({
    scenarios: { worker: { default: [[shell(command)], [{ text: "went on" }]] } },
    agents: [{ id: "worker", tools: ["shell.run"], approvals: { mode: "never" } }]
  })

const openSession = async (host: RawHost, lab: Lab, agent = "worker"): Promise<string> =>
  (await host.call("agent/session", { agent, workspace: lab.workspace, creation_id: `c-${agent}` })).session.session_id

/** Starts the run and waits until its command has said that it runs. */
const startTool = async (host: RawHost, lab: Lab): Promise<string> => {
  const id = await openSession(host, lab)
  await host.call("run/start", { session_id: id, submission_id: "m-1", text: "go" })
  for (let after = 0; ;) {
    const page = await host.call("event/read", { session_id: id, after, wait_ms: 5_000 })
    if (page.events.some((event: Loose) => event.type === "tool-output-delta")) return id
    after = page.cursor
  }
}

/** What the journal says about a command that was running when the host went. */
const proveUnknown = async (lab: Lab, id: string): Promise<void> => {
  const host = await lab.open()
  const end = await waitForEnd(host, id)
  assert.deepStrictEqual([end.status, end.final_output], ["completed", "went on"])
  const events = await readAll(host, id)
  const calls = events.filter((event) => event.type === "tool-start")
  assert.strictEqual(calls.length, 1)
  const ends = events.filter((event) => event.tool_call_id === calls[0].tool_call_id && isEnd(event))
  assert.deepStrictEqual(
    ends.map((event) => [event.type, event.status, event.metadata.outcome, typeof event.metadata.reason]),
    [["tool-status", "uncertain", "unknown", "string"]]
  )
  assert.strictEqual(effectsOf(lab.workspace).lines, 1)
  assert.deepStrictEqual(await host.close(), { code: 0, signal: null })
}

const waitForEnd = async (host: RawHost, id: string): Promise<Loose> => {
  while (true) {
    const state = await host.call("run/wait", { session_id: id, wait_ms: 5_000 })
    if (state.status !== "running") return state
  }
}

/** Ends in order: everything said in RUN-524, whatever asked for it. */
const endsInOrder = async (command: string, end: (host: RawHost) => void): Promise<void> => {
  const lab = makeToolLab(command)
  const host = await lab.open()
  const id = await startTool(host, lab)
  const parked = host.send("run/wait", { session_id: id, wait_ms: 5_000 })
  assert.isAbove(lab.processes().length, 2)
  const began = performance.now()
  end(host)
  assert.deepStrictEqual(await host.closed, { code: 0, signal: null })
  assert.isBelow(performance.now() - began, 5_000)
  assert.strictEqual((await host.answered(parked)).result.status, "running")
  assert.deepStrictEqual(await lab.emptied(1_000), [])

  const stored = readStored(lab.stateDir)
  assert.strictEqual(stored.integrity, "ok")
  assert.deepStrictEqual([stored.turns.length, stored.turns[0].ended_at], [1, null], "the turn is left open")
  await proveUnknown(lab, id)
}

describe("the orderly end of a host", () => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    it(`comes on ${signal} within five seconds, and the turn goes on at the next start [RUN-524, RUN-522, RT-028]`, () =>
      endsInOrder("echo ran >> lines; echo up; sleep 300", (host) => host.kill(signal)))
  }

  it("comes at the end of stdin, in the middle of a tool [RUN-524, RT-028]", () =>
    endsInOrder("echo ran >> lines; echo up; sleep 300", (host) => void host.child.stdin?.end()))

  it("takes a command along that ignores signals and has children in the background [RUN-524, AGT-071]", () =>
    endsInOrder(stubborn, (host) => void host.child.stdin?.end()))

  it("comes when nobody reads stdout any more [RUN-526]", async () => {
    const lab = makeToolLab("echo ran >> lines; echo up; sleep 300")
    const host = await lab.open()
    const id = await startTool(host, lab)
    const began = performance.now()
    host.child.stdout?.destroy()
    host.send("host/info")
    assert.deepStrictEqual(await host.exited, { code: 0, signal: null })
    assert.isBelow(performance.now() - began, 5_000)
    assert.deepStrictEqual(await lab.emptied(1_000), [])
    await proveUnknown(lab, id)
  })

  it("answers everything that came before the end of stdin, each once [RUN-524, RUN-015]", async () => {
    const lab = makeToolLab("true")
    const host = await lab.open()
    const id = await openSession(host, lab)
    const before = host.answers.length
    const ids = Array.from({ length: 20 }, (_, index) => host.send("session/state", { session_id: id }, `s${index}`))
    ids.push(host.send("run/start", { session_id: id, submission_id: "late", text: "go" }))
    host.write('{"jsonrpc":"2.0","id":"last","method":"host/info"}')
    assert.deepStrictEqual(await host.close(), { code: 0, signal: null })
    assert.deepStrictEqual(
      host.answers.slice(before).map((answer) => answer.id),
      [...ids, "last"]
    )
    const start = await host.answered(ids[20] ?? "")
    const stored = readStored(lab.stateDir)
    if (start.error === undefined) assert.strictEqual(stored.turns.length, 1)
    else {
      assert.strictEqual(start.error.data.kind, "shutting_down")
      assert.strictEqual(stored.turns.length, 0)
    }
  })
})

describe("a host in a hurry", () => {
  it("ends at the second signal with its number, and so do its children [RUN-525]", async () => {
    const lab = makeToolLab(stubborn)
    const host = await lab.open()
    const id = await startTool(host, lab)
    lab.processes()
    host.kill("SIGTERM")
    await host.until("draining", () => (host.stderr().includes("draining") ? true : undefined))
    host.kill("SIGINT")
    assert.deepStrictEqual(await host.exited, { code: 130, signal: null })
    assert.deepStrictEqual(await lab.emptied(5_000), [])
    await proveUnknown(lab, id)
  })

  it("leaves no process behind when it is killed [RUN-090, HRN-034]", async () => {
    const lab = makeToolLab(stubborn)
    const host = await lab.open()
    const id = await startTool(host, lab)
    assert.isAbove(lab.processes().length, 3)
    host.kill("SIGKILL")
    await host.exited
    assert.deepStrictEqual(await lab.emptied(5_000), [])
    await proveUnknown(lab, id)
  })

  it("leaves nothing behind either when its guard was killed first: the next start ends it [RUN-090, HRN-033]", async () => {
    const lab = makeToolLab("echo ran >> lines; echo up; sleep 300")
    const host = await lab.open()
    const id = await startTool(host, lab)
    const before = lab.processes()
    const stopped = before.filter((pid) => commandOf(pid).includes("tackroom-guard"))
    assert.strictEqual(stopped.length, 1)
    // A stopped guard cannot do its work, and no other is started in its place.
    for (const pid of stopped) process.kill(pid, "SIGSTOP")
    host.kill("SIGKILL")
    await host.exited
    const next = await lab.open()
    await waitForEnd(next, id)
    for (const pid of stopped) process.kill(pid, "SIGKILL")
    await next.close()
    assert.deepStrictEqual(await lab.emptied(1_000), [])
  })
})

const commandOf = (pid: number): string => {
  const path = `/proc/${pid}/cmdline`
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}

describe("a state directory", () => {
  it("has one host at a time; the second is told the pid of the first and harms nothing [RUN-088, RUN-081, RUN-082]", async () => {
    const lab = makeToolLab("true")
    const first = await lab.open()
    const id = await openSession(first, lab)
    const second = lab.start()
    const refusal = (await second.ask("initialize", { protocol_version: 1 })).error
    assert.deepStrictEqual(
      [refusal?.code, refusal?.data.kind, refusal?.data.reason],
      [-32015, "startup_failed", "state_dir_locked"]
    )
    assert.include(JSON.stringify(refusal), String(first.pid))
    assert.deepStrictEqual(await second.closed, { code: 3, signal: null })
    assert.lengthOf(second.answers, 1)
    assert.include(second.stderr(), '"level":"fatal"')

    await first.call("run/start", { session_id: id, submission_id: "m-1", text: "go" })
    assert.strictEqual((await waitForEnd(first, id)).status, "completed")
    first.kill("SIGKILL")
    await first.exited
    const third = await lab.open()
    assert.strictEqual((await waitForEnd(third, id)).status, "completed")
  })

  it("is free for the next host the moment the last one is gone, ten times over [RUN-088]", async () => {
    const lab = makeToolLab("true")
    for (let round = 0; round < 10; round += 1) {
      const host = await lab.open()
      host.kill("SIGKILL")
      await host.exited
    }
  })

  it("that cannot be written fails the start, and says so [RUN-081, RUN-082, RUN-087]", async () => {
    const lab = makeToolLab("true")
    const privileged = process.getuid?.() === 0
    mkdirSync(lab.stateDir, { mode: 0o500 })
    chmodSync(lab.root, 0o755)
    // Root writes anywhere, so its host is started without that privilege.
    const host = lab.start(privileged ? { wrapper: ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] } : {})
    const refusal = (await host.ask("initialize", { protocol_version: 1 })).error
    assert.deepStrictEqual([refusal?.data.kind, refusal?.data.reason], ["startup_failed", "state_dir"])
    assert.deepStrictEqual(await host.closed, { code: 5, signal: null })
  })

  it("that is a file fails the start [RUN-081, RUN-082]", async () => {
    const lab = makeToolLab("true")
    writeFileSync(lab.stateDir, "not a directory")
    const host = lab.start()
    const refusal = await refusalOf(host.call("initialize", { protocol_version: 1 }))
    assert.deepStrictEqual([refusal.data.kind, refusal.data.reason], ["startup_failed", "state_dir"])
    assert.deepStrictEqual(await host.closed, { code: 5, signal: null })
  })

  it("with looser modes is made private, and everything in it [RUN-087]", async () => {
    const lab = makeToolLab("true")
    await (await lab.open()).close()
    const listing = async () => {
      const child = spawn("find", [lab.stateDir, "-perm", "/077"], { stdio: ["ignore", "pipe", "inherit"] })
      let out = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
      await new Promise((resolve) => child.once("close", resolve))
      return out
    }
    chmodSync(lab.stateDir, 0o755)
    chmodSync(join(lab.stateDir, "agent-runtime.db"), 0o644)
    chmodSync(join(lab.stateDir, "host.key"), 0o644)
    const host = await lab.open()
    assert.strictEqual(await listing(), "")
    await host.close()
    assert.strictEqual(await listing(), "")
  })
})
