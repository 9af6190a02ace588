/** Serve mode over the real program: how it starts and ends, crashes and resumes, and what a bad driver does to it. */
import { assert, describe, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readStored } from "./support/Journal.ts"
import { makeLab, residentMiB, type Lab } from "./support/Lab.ts"
import { startServe, type Driver } from "./support/Serve.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const agentLab = (
  responses: ReadonlyArray<unknown>,
  tools: ReadonlyArray<string> = ["files.write", "shell.run"]
): Lab =>
  makeLab({
    scenarios: { main: { default: responses, exhausted: "echo" } },
    agents: [{ id: "main", tools }]
  })

const asking = [[{ text: "Hm." }, call("files.write", { path: "a", content: "x" })], [{ text: "End." }]]

/** Submits, and waits until the write of `asking` is asked for. */
const untilAsked = async (driver: Driver, runId: string, more: object = {}) => {
  driver.op({ op: "submit", run_id: runId, prompt: "go", ...more })
  return driver.notify(runId, "ask")
}

const endedTurns = (lab: Lab): number => {
  const db = new Database(join(lab.stateDir, "agent-runtime.db"), { readonly: true })
  try {
    return Number(db.prepare("SELECT count(*) FROM tr_turn WHERE ended_at IS NOT NULL").pluck().get())
  } finally {
    db.close()
  }
}

const exit = (code: number) => ({ code, signal: null })

describe("what cannot start", () => {
  it("is one line on stderr, nothing on stdout, and exit code 3 or 2 [SRV-001, SRV-003, SRV-004, SRV-005, SRV-012, SRV-292, SRV-370]", async () => {
    const lab = agentLab([])
    const first = startServe(lab)
    const { session_id } = await first.ready()
    await first.host.close()
    const other = join(lab.root, "other")
    mkdirSync(other)
    const cases: ReadonlyArray<readonly [number, ReadonlyArray<string>, string, object?]> = [
      [2, ["--max-rounds", "1.5"], "integer"],
      [3, ["--project", "/nonexistent"], "/nonexistent"],
      [3, ["--harness", "acp:nothing"], "acp:nothing"],
      [3, ["--session", "ses_none"], "ses_none"],
      [3, ["--session", session_id, "--harness", "scripted"], "native"],
      [3, ["--session", session_id, "--project", other], "works in"],
      [3, [], "serve.timeout", { serve: { timeout: true } }]
    ]
    const ended = await Promise.all(
      cases.map(async ([code, flags, says, config]) => {
        const driver = startServe(lab, flags, config === undefined ? {} : { config })
        return [code, says, await driver.host.closed, driver.host.lines, driver.host.stderr()] as const
      })
    )
    for (const [code, says, how, lines, stderr] of ended) {
      assert.deepStrictEqual([how, lines], [exit(code), []], says)
      assert.include(stderr, says)
      if (code === 3) assert.include(JSON.parse(stderr.trim()), { level: "fatal" })
    }
  }, 120_000)
})

describe("the durable session", () => {
  it("is resumed with its history, its last run and its submissions [SRV-290, SRV-296, SRV-298, SRV-299, SRV-147]", async () => {
    const lab = agentLab([[{ text: "One." }], [{ text: "Two." }], [{ text: "Three." }]])
    const first = startServe(lab)
    const { session_id } = await first.ready()
    const one = await first.run("1", "say one", { submission_id: "job-1" })
    const again = await first.run("2", "say one", { submission_id: "job-1" })
    assert.deepStrictEqual(first.story("2"), ["start", "result"])
    assert.deepInclude(again, { duplicate: true, answer: "One.", cursor: one.cursor, status: "completed" })
    assert.isTrue(first.of("2")[0].duplicate)
    first.op({ op: "submit", run_id: "3", prompt: "something else", submission_id: "job-1" })
    const conflict = await first.error(1)
    assert.deepStrictEqual(
      [conflict.error.reason, conflict.error.detail],
      ["submission_conflict", { submission_id: "job-1" }]
    )
    await first.host.close()

    const second = startServe(lab, ["--session", session_id])
    const ready = await second.ready()
    assert.deepInclude(ready, { session_id, resumed: true, agent: "main", project: lab.workspace })
    assert.deepInclude(ready.last_run, {
      submission_id: "job-1",
      status: "completed",
      stop_reason: "end_turn",
      answer: "One.",
      errors: [],
      cursor: one.cursor
    })
    assert.deepInclude(await second.run("1", "say one", { submission_id: "job-1" }), {
      duplicate: true,
      answer: "One."
    })
    assert.deepInclude(await second.run("2", "say two"), { answer: "Two." })
    await second.host.close()
  })

  it("a killed run is interrupted, its call uncertain, its ask withdrawn, and the next run goes on [SRV-291, SRV-295, SRV-297, SRV-377, SRV-378, SRV-015]", async () => {
    const lab = agentLab([
      [{ text: "Working." }, call("shell.run", { command: "sleep 300" })],
      [call("files.write", { path: "a", content: "x" })],
      [{ text: "Later." }]
    ])
    const first = startServe(lab)
    const { session_id } = await first.ready()
    await untilAsked(first, "1")
    first.op({ op: "answer", run_id: "1", answers: ["yes"] })
    const running = await first.notify("1", "tool_running")
    first.host.kill("SIGKILL")
    await first.host.exited
    assert.deepStrictEqual(await lab.emptied(20_000), [])
    // What was told had been committed.
    const stored = readStored(lab.stateDir).events.get(session_id) ?? []
    assert.isAtLeast(stored.length, running.cursor)

    const second = startServe(lab, ["--session", session_id])
    const { last_run } = await second.ready()
    assert.deepInclude(last_run, { status: "failed", stop_reason: "interrupted", answer: "Working." })
    assert.deepInclude(last_run.errors[0], { code: "unknown", runtime_code: "turn_interrupted" })
    assert.lengthOf(last_run.uncertain, 1)
    assert.strictEqual(last_run.uncertain[0].name, "shell__run")
    const ask = await untilAsked(second, "1")
    second.host.kill("SIGKILL")
    await second.host.exited

    const third = startServe(lab, ["--session", session_id])
    assert.deepStrictEqual((await third.ready()).last_run.withdrawn_asks, [ask.data.ask_id])
    third.op({ op: "answer", run_id: "1", ask_id: ask.data.ask_id, answers: ["yes"] })
    await third.error(1)
    assert.deepInclude(await third.run("1", "go on"), { status: "completed", answer: "Later." })
    await third.host.close()
  }, 120_000)

  it("a session that another process works on is refused untouched; others' turns are nobody's business [SRV-019, SRV-294, SRV-300]", async () => {
    const lab = agentLab([asking[0], asking[1], asking[0], asking[1]])
    const first = startServe(lab)
    const { session_id } = await first.ready()
    const ask = await untilAsked(first, "1")
    const second = startServe(lab, ["--session", session_id])
    assert.deepStrictEqual(await second.host.closed, exit(3))
    assert.deepStrictEqual(second.host.lines, [])
    // Another session in the same directory, at the same time.
    const third = startServe(lab)
    await third.ready()
    await untilAsked(third, "1")
    first.host.kill("SIGKILL")
    await first.host.exited
    const open = () => readStored(lab.stateDir).turns.filter(({ ended_at }) => ended_at === null)
    const fourth = startServe(lab)
    await fourth.ready()
    assert.lengthOf(open(), 2)
    await fourth.host.close()
    third.op({ op: "answer", run_id: "1", answers: ["yes"] })
    assert.deepInclude(await third.result("1"), { status: "completed" })
    assert.isString(ask.data.ask_id)
    await third.host.close()
  }, 120_000)

  it("a lost session ends its run without a commit and the process with 1 [SRV-304]", async () => {
    const lab = agentLab(asking)
    const driver = startServe(lab)
    const { session_id } = await driver.ready()
    await untilAsked(driver, "1")
    const db = new Database(join(lab.stateDir, "agent-runtime.db"))
    db.prepare("UPDATE tr_session SET fence = fence + 1 WHERE id = ?").run(session_id)
    db.close()
    driver.op({ op: "answer", run_id: "1", answers: ["yes"] })
    const result = await driver.result("1")
    assert.deepInclude(result, { status: "failed", committed: false, cancelled: false })
    assert.deepInclude(result.errors[0], { code: "unknown", class: "session" })
    assert.notProperty(result, "cursor")
    assert.strictEqual((await driver.host.closed).code, 1)
    assert.strictEqual(driver.lines.at(-1), result)
  })

  it("a store that takes no commit any more ends its run without one and the process with 1 [SRV-305]", async () => {
    const lab = agentLab([[call("shell.run", { command: "while echo .; do sleep 0.1; done" })]])
    const driver = startServe(lab)
    await driver.ready()
    await untilAsked(driver, "1")
    driver.op({ op: "answer", run_id: "1", answers: ["yes"] })
    await driver.notify("1", "tool_running")
    renameSync(join(lab.stateDir, "agent-runtime.db"), join(lab.root, "elsewhere.db"))
    const result = await driver.result("1")
    assert.deepInclude(result, { status: "failed", committed: false, cancelled: false })
    assert.deepInclude(result.errors[0], { code: "unknown", runtime_code: "store_unavailable" })
    assert.notProperty(result, "cursor")
    assert.strictEqual((await driver.host.closed).code, 1)
    assert.strictEqual(driver.lines.at(-1), result)
  })
})

describe("what others do meanwhile", () => {
  it("a run whose session was closed by another face is one line, its result [SRV-143]", async () => {
    const lab = agentLab([])
    const driver = startServe(lab)
    const { session_id } = await driver.ready()
    await driver.run("1", "hello")
    const host = await lab.open()
    await host.call("agent/close", { session_id })
    await host.close()
    const result = await driver.run("2", "too late", { op_id: "x" })
    assert.deepStrictEqual(driver.story("2"), ["result"])
    assert.deepInclude(result, {
      seq: 1,
      op_id: "x",
      status: "failed",
      cancelled: false,
      answer: "",
      usage: { input: 0, output: 0, rounds: 0 }
    })
    assert.deepInclude(result.errors[0], { code: "unknown" })
    await driver.host.close()
    const again = startServe(lab, ["--session", session_id])
    assert.deepStrictEqual(await again.host.closed, exit(3))
  })

  it("what a library prints goes to stderr [SRV-010]", async () => {
    const lab = agentLab([])
    const noisy = join(lab.root, "noisy.cjs")
    writeFileSync(noisy, 'setInterval(() => { console.log("stray"); process.stdout.write("stray\\n") }, 5).unref()')
    const driver = startServe(lab, [], { env: { NODE_OPTIONS: `--require ${noisy}` } })
    await driver.run("1", "hello")
    assert.notInclude(driver.host.lines.join("\n"), "stray")
    assert.include(driver.host.stderr(), "stray")
    await driver.host.close()
  })
})

describe("the end", () => {
  it("end of input and a driver that left cancel the run and drain [SRV-018, SRV-222, SRV-225, SRV-227]", async () => {
    const lab = agentLab([asking[0], asking[0], asking[0]])
    const idle = startServe(lab)
    await idle.ready()
    assert.deepStrictEqual(await idle.host.close(), exit(0))

    const driver = startServe(lab)
    await untilAsked(driver, "1")
    driver.host.child.stdin?.end()
    assert.deepStrictEqual(await driver.host.closed, exit(0))
    assert.deepInclude(await driver.result("1"), { cancelled: true, errors: [], status: "cancelled" })
    assert.deepStrictEqual((await driver.notify("1", "cancelling")).data, { cause: "eof" })
    assert.strictEqual(driver.lines.at(-1).type, "result")

    const left = startServe(lab)
    await untilAsked(left, "1")
    left.host.child.stdout?.destroy()
    // It learns that nobody reads when it writes.
    left.op({ op: "ping" })
    assert.deepStrictEqual(await left.host.exited, exit(0))
    const [turn] = readStored(lab.stateDir).turns.slice(-1)
    assert.include(String(turn.outcome), "cancelled")
  }, 60_000)

  it("--eof finish goes on to the result, and settles what nobody can answer [SRV-222, SRV-223, SRV-228]", async () => {
    const lab = agentLab([
      [call("files.write", { path: "a", content: "x" }), call("files.write", { path: "b", content: "x" })],
      [call("files.write", { path: "c", content: "x" })],
      [{ text: "End." }],
      [call("shell.run", { command: "sleep 60" })]
    ])
    const driver = startServe(lab, ["--eof", "finish"])
    assert.strictEqual((await driver.ready()).eof, "finish")
    await untilAsked(driver, "1")
    driver.host.child.stdin?.end()
    assert.deepStrictEqual(await driver.host.closed, exit(0))
    assert.deepInclude(await driver.result("1"), { status: "completed", answer: "End.", cancelled: false })
    const resolved = driver.of("1").filter(({ kind }) => kind === "ask_resolved")
    assert.isNotEmpty(resolved)
    for (const { data } of resolved) assert.deepInclude(data, { outcome: "unanswered", by: "no_driver" })

    const slow = startServe(lab, ["--eof", "finish"])
    await untilAsked(slow, "1")
    slow.op({ op: "answer", run_id: "1", answers: ["yes"] })
    slow.op({ op: "answer", run_id: "1", answers: ["yes"] })
    slow.host.child.stdin?.end()
    await slow.result("1")
    await slow.host.closed
  }, 60_000)

  it("a signal cancels a run that was to finish, and a second one ends at once [SRV-016, SRV-017, SRV-228, SRV-015]", async () => {
    const lab = agentLab([[call("shell.run", { command: "trap '' TERM; sleep 300" })]])
    const sleeping = async (flags: ReadonlyArray<string>) => {
      const driver = startServe(lab, flags)
      await untilAsked(driver, "1")
      driver.op({ op: "answer", run_id: "1", answers: ["yes"] })
      await driver.notify("1", "tool_running")
      return driver
    }
    const [first, second] = await Promise.all([sleeping(["--eof", "finish"]), sleeping([])])
    first.host.child.stdin?.end()
    first.host.kill("SIGTERM")
    assert.deepInclude(await first.result("1"), { cancelled: true, status: "cancelled" })
    assert.deepStrictEqual((await first.notify("1", "cancelling")).data, { cause: "signal" })
    assert.deepStrictEqual(await first.host.closed, exit(0))

    second.host.kill("SIGINT")
    await second.notify("1", "cancelling")
    second.host.kill("SIGHUP")
    assert.deepStrictEqual(await second.host.exited, exit(129))
    assert.deepStrictEqual(await lab.emptied(20_000), [])
  }, 60_000)

  it("shutdown cancels and drains, answers nothing and reads no more [SRV-224, SRV-097]", async () => {
    const lab = agentLab(asking)
    const driver = startServe(lab)
    await untilAsked(driver, "1")
    driver.host.write('{"op":"shutdown","op_id":"bye"}\n{"op":"ping","op_id":"never"}\n')
    assert.deepStrictEqual(await driver.host.closed, exit(0))
    const result = await driver.result("1")
    assert.deepInclude(result, { cancelled: true, cancel_op_id: "bye" })
    assert.deepInclude(await driver.notify("1", "cancelling"), { data: { cause: "shutdown" }, op_id: "bye" })
    assert.isUndefined(driver.lines.find(({ op_id }) => op_id === "never"))
  })
})

describe("a driver that does not read", () => {
  it("holds up no run, and gets every line later, in order [SRV-320]", async () => {
    // The last one finds no room any more.
    const count = 5
    const lab = agentLab(Array.from({ length: count }, (_, index) => [{ text: `Answer ${index}.` }]))
    const driver = startServe(lab)
    await driver.ready()
    const { stdout } = driver.host.child
    stdout?.pause()
    for (let index = 0; index < count; index += 1) {
      // Each start repeats its prompt: more than may be held for a driver that takes nothing.
      driver.op({ op: "submit", run_id: String(index), prompt: String(index).repeat(900_000) })
      // The journal is the proof that a run ended; it is looked at, because nobody can be told. Twice, so that its
      // result had the time to be queued.
      for (let seen = 0; seen < 2;) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        seen = endedTurns(lab) > index ? seen + 1 : 0
      }
    }
    assert.isBelow(residentMiB(driver.host.pid), 400)
    assert.lengthOf(driver.lines, 1)
    stdout?.resume()
    for (let index = 0; index < count; index += 1) {
      assert.strictEqual((await driver.result(String(index))).answer, `Answer ${index}.`)
    }
    assert.deepStrictEqual(driver.errors(), [])
    await driver.host.close()
  }, 60_000)

  it("stops the reading of ops, and loses no reply [SRV-321, SRV-374]", async () => {
    const lab = agentLab([])
    const driver = startServe(lab, [], { deadlineMs: 60_000 })
    await driver.ready()
    const { stdin, stdout } = driver.host.child
    stdout?.pause()
    const pad = "p".repeat(220)
    const count = 10_000
    let sent = 0
    /** The op is written also when the pipe says that it is full. */
    const send = (number: number): boolean => stdin?.write(`{"op":"ping","op_id":"${number}-${pad}"}\n`) === true
    // Each reply is as large as its op: more than what may wait is taken by nobody, so the pipe fills up.
    const sendSome = (): void => {
      for (let room = true; room && sent < count; sent += 1) room = send(sent + 1)
    }
    await new Promise<void>((resolve) => {
      let stalled: NodeJS.Timeout
      const go = (): void => {
        clearTimeout(stalled)
        sendSome()
        stalled = setTimeout(resolve, 1_500)
      }
      stdin?.on("drain", go)
      go()
    })
    assert.isBelow(sent, count)
    stdout?.resume()
    for (; sent < count; sent += 1) send(sent + 1)
    await driver.host.until("every pong", () => (driver.lines.length > count ? true : undefined))
    const numbers = driver.lines.flatMap(({ op_id, type }) => (type === "pong" ? [Number.parseInt(op_id, 10)] : []))
    assert.isTrue(numbers.every((number, index) => number === index + 1))
    assert.strictEqual(numbers.length, count)
    await driver.host.close()
  }, 120_000)

  it("is given up at the end [SRV-229]", async () => {
    const lab = agentLab([[{ text: "x".repeat(900_000) }], asking[0]])
    const driver = startServe(lab)
    await driver.ready()
    driver.host.child.stdout?.pause()
    driver.op({ op: "submit", run_id: "1", prompt: "go" })
    driver.host.child.stdin?.end()
    const { code } = await driver.host.exited
    assert.strictEqual(code, 0)
  }, 60_000)
})
