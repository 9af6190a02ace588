/** Serve mode over the real program: ops, lines, asks, cancels and budgets, as a driver in any language sees them. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { makeLab, residentMiB, type Lab, type LabOptions } from "./support/Lab.ts"
import type { Loose } from "./support/RawHost.ts"
import { startServe } from "./support/Serve.ts"

const call = (tool: string, args: object, more: object = {}) => ({ call: { tool, arguments: args, ...more } })
const usage = (input: number, output: number) => ({ usage: { input, output } })

/** A lab with one agent behind a scripted model. */
const agentLab = (responses: ReadonlyArray<unknown>, tools: ReadonlyArray<string> = ["files.write"]): Lab =>
  makeLab({
    scenarios: { main: { default: responses, exhausted: "echo" } },
    agents: [{ id: "main", tools, planning: true }]
  })

/** A lab whose harness is a script altogether. */
const harnessLab = (responses: ReadonlyArray<unknown>, more: LabOptions = {}): { lab: Lab; flags: Array<string> } => {
  const lab = makeLab({ scenarios: { play: { default: responses, exhausted: "echo" } }, agents: [], ...more })
  const options = { scenarios: [join(lab.root, "play.json")] }
  return {
    lab: { ...lab, config: { ...lab.config, providers: [], harnesses: { scripted: options } } },
    flags: ["--harness", "scripted"]
  }
}

const question = (text: string, options: ReadonlyArray<string>, more: object = {}) => ({
  question: { question: text, options: options.map((label) => ({ label })), ...more }
})

const detail = (line: Loose): Loose => line.error.detail

describe("a run with a permission", () => {
  it("is told from start to result, and the answer settles its ask [SRV-060, SRV-061, SRV-065, SRV-066, SRV-067, SRV-069, SRV-091, SRV-095, SRV-096, SRV-098, SRV-194, SRV-370, SRV-371]", async () => {
    const lab = agentLab([
      [{ text: "I will write one file." }, call("files.write", { path: "a.txt", content: "one\n" }), usage(310, 24)],
      [{ text: "Done." }, usage(345, 5)]
    ])
    const driver = startServe(lab, ["--max-rounds", "8"])
    const ready = await driver.ready()
    assert.strictEqual(driver.lines[0], ready)
    assert.deepInclude(ready, {
      protocol: 1,
      protocol_version: 1,
      pid: driver.host.pid,
      resumed: false,
      agent: "main",
      harness: "native",
      model: "main/script",
      scripted: true,
      project: lab.workspace,
      limits: { line_bytes: 1_048_576, depth: 64 },
      budgets: { max_rounds: 8, timeout: null, answer_timeout: null },
      eof: "cancel"
    })
    driver.op({ op: "hello", protocol_versions: [1, 2], op_id: "h" })
    driver.op({ op: "submit", run_id: "1", prompt: "Add a file", op_id: 7 })
    const ask = await driver.notify("1", "ask")
    assert.deepInclude(ask.data, { kind: "confirm", about: "permission", prompt: "Allow files__write on a.txt?" })
    assert.deepInclude(ask.data.tool, { name: "files__write", category: "write_local", paths: ["a.txt"] })
    assert.isFalse(existsSync(join(lab.workspace, "a.txt")))
    driver.op({ op: "answer", run_id: "1", ask_id: ask.data.ask_id, answers: [" YES "], op_id: "a1" })
    const result = await driver.result("1")

    assert.deepStrictEqual(driver.story("1"), [
      "start",
      "title",
      "delta",
      "tool_start",
      "tool_calls",
      "usage",
      "ask",
      "ask_resolved",
      "tool_running",
      "tool_status",
      "diff",
      "tool_status",
      "tools",
      "delta",
      "usage",
      "run_finished",
      "result"
    ])
    const hello = driver.lines.find(({ type }) => type === "hello")
    assert.deepStrictEqual(hello.capabilities, ready.capabilities)
    assert.strictEqual(hello.op_id, "h")
    assert.notProperty(hello, "seq")
    for (const line of driver.of("1")) {
      assert.strictEqual(line.op_id, line.kind === "ask_resolved" ? "a1" : "7")
      assert.isNumber(line.cursor, line.kind)
    }
    const resolved = await driver.notify("1", "ask_resolved")
    assert.deepStrictEqual(resolved.data, {
      ask_id: ask.data.ask_id,
      outcome: "allowed",
      by: "driver",
      option: "once"
    })
    assert.deepInclude(result, {
      answer: "Done.",
      errors: [],
      error_messages: [],
      usage: { input: 655, output: 29, rounds: 2 },
      cancelled: false,
      status: "completed",
      stop_reason: "end_turn",
      model: "main/script"
    })
    assert.isTrue(existsSync(join(lab.workspace, "a.txt")))
    assert.deepStrictEqual(await driver.host.close(), { code: 0, signal: null })
  })

  it("no, an option by its id and a plain refusal are told apart, and yes is for this call only [SRV-195, SRV-131, SRV-147]", async () => {
    const write = (path: string) => [call("files.write", { path, content: "x" }), usage(1, 1)]
    const lab = agentLab([write("a"), write("b"), write("c"), write("d"), [{ text: "End." }]])
    const driver = startServe(lab)
    driver.op({ op: "submit", run_id: "1", prompt: "go" })
    const outcomes: Array<unknown> = []
    for (const [index, answers] of [["yes"], ["whatever"], ["session"]].entries()) {
      await driver.notify("1", "ask", index + 1)
      driver.op({ op: "answer", run_id: "1", answers })
      outcomes.push((await driver.notify("1", "ask_resolved", index + 1)).data)
    }
    assert.deepInclude(outcomes[0], { outcome: "allowed", option: "once" })
    assert.deepInclude(outcomes[1], { outcome: "refused", option: "deny" })
    assert.deepInclude(outcomes[2], { outcome: "allowed", option: "session" })
    const result = await driver.result("1")
    assert.deepInclude(result, { status: "completed", answer: "End." })
    // The fourth call was allowed for the session: nobody was asked.
    assert.lengthOf(
      driver.of("1").filter(({ kind }) => kind === "ask"),
      3
    )
    assert.deepInclude((await driver.notify("1", "auto_approved")).data, { tool: "files__write", origin: "grant" })
    await driver.host.close()
  })
})

describe("bad input and refusals", () => {
  it("each bad line is one refusal, whatever stands around it, and the run goes on [SRV-030, SRV-031, SRV-032, SRV-033, SRV-034, SRV-035, SRV-036, SRV-037, SRV-038, SRV-039, SRV-040, SRV-041, SRV-042]", async () => {
    const { flags, lab } = harnessLab([[question("Which?", ["a"])]])
    const driver = startServe(lab, flags)
    driver.host.write("\ufeff")
    driver.op({ op: "submit", run_id: "1", prompt: "go", extra: { deep: [1] } })
    await driver.notify("1", "ask")
    const { write } = driver.host
    const pong = async (id: string) => {
      const line = await driver.line(`pong ${id}`, ({ op_id, type }) => type === "pong" && op_id === id)
      return line
    }
    write(" \t \r\n\n")
    write(Uint8Array.of(0x22, 0xff, 0x22, 0x0a))
    write('{"op":"ping"\n{"op":NaN}\n{"op":"ping"} {}\n\u2028\n')
    write(`${'{"a":'.repeat(65)}1${"}".repeat(65)}\n${"[".repeat(100_000)}\n`)
    write('[1]\n"ping"\nnull\n')
    write(`{"op":"hello","op":"ping","op_id":"\u2028\u0085"}\r\n`)
    await pong("\u2028\u0085")
    const reasons = driver.errors().map(({ error }) => [error.reason, error.detail.line])
    assert.deepStrictEqual(reasons, [
      ["bad_utf8", 4],
      ["bad_json", 5],
      ["bad_json", 6],
      ["bad_json", 7],
      ["bad_json", 8],
      ["too_deep", 9],
      ["too_deep", 10],
      ["not_an_object", 11],
      ["not_an_object", 12],
      ["not_an_object", 13]
    ])
    for (const line of driver.errors()) {
      assert.strictEqual(line.message, line.error.message)
      assert.notMatch(line.message, /ping|op"|\[\[/u)
      assert.notProperty(line, "op_id")
    }

    // Exactly the limit is fine; one byte more is told before its end comes, and never kept.
    const padded = (bytes: number) => `{"op":"ping","op_id":"p","pad":"${"x".repeat(bytes - 34)}"}`
    assert.lengthOf(padded(1_048_576), 1_048_576)
    write(`${padded(1_048_576)}\n`)
    await pong("p")
    write("y".repeat(1_048_577))
    const tooLong = await driver.error(11)
    assert.deepStrictEqual(tooLong.error.detail, { line: 16, limit: 1_048_576 })
    const before = residentMiB(driver.host.pid)
    for (let i = 0; i < 60; i += 1) write("z".repeat(1_000_000))
    write('\n{"op":"ping","op_id":"after"}\n')
    await pong("after")
    assert.isBelow(residentMiB(driver.host.pid) - before, 60)

    assert.strictEqual(driver.story("1").at(-1), "ask")
    // An unterminated last line counts.
    write('{"op":"cancel","run_id":"1","op_id":"last"}')
    driver.host.child.stdin?.end()
    const result = await driver.result("1")
    assert.deepInclude(result, { cancelled: true, cancel_op_id: "last" })
    assert.deepStrictEqual(await driver.host.closed, { code: 0, signal: null })
  })

  it("ops are answered in order, however they arrive [SRV-090, SRV-091, SRV-093, SRV-094, SRV-099, SRV-120, SRV-122, SRV-374]", async () => {
    const { flags, lab } = harnessLab([[question("Which?", ["a"])]])
    const driver = startServe(lab, flags)
    await driver.ready()
    const ops = [
      { op: "ping", op_id: 1 },
      { op: "hello", protocol_versions: ["2", 3], op_id: 2 },
      { op: "hello", op_id: true },
      { op: "nope", op_id: 3 },
      { op_id: 4 },
      { op: "ping", op_id: {} },
      { op: "submit", op_id: 5 },
      { op: "cancel", op_id: 6 },
      { op: "cancel", run_id: "x", op_id: 7 },
      { op: "answer", run_id: "x", answers: [], op_id: 8 },
      { op: "answer", run_id: "x", answers: ["y"], op_id: 9 },
      { op: "submit", run_id: "1", prompt: "go", op_id: "s" },
      { op: "submit", run_id: "2", prompt: "too early", op_id: 10 },
      { op: "ping", op_id: "end" }
    ]
    const bytes = Buffer.from(ops.map((op) => `${JSON.stringify(op)}\n`).join(""))
    for (const byte of bytes) driver.host.write(Uint8Array.of(byte))
    await driver.line("the last pong", ({ op_id }) => op_id === "end")
    const replies = driver.lines.filter(({ seq, type }) => seq === undefined && type !== "ready")
    assert.deepStrictEqual(
      replies.map(({ error, op_id, type }) => [type, op_id, error?.reason]),
      [
        ["pong", "1", undefined],
        ["error", "2", "version"],
        ["hello", "true", undefined],
        ["error", "3", "unknown_op"],
        ["error", "4", "bad_op"],
        ["error", undefined, "bad_field"],
        ["error", "5", "missing_field"],
        ["error", "6", "unknown_run"],
        ["error", "7", "unknown_run"],
        ["error", "8", "bad_field"],
        ["error", "9", "unknown_run"],
        ["error", "10", "busy"],
        ["pong", "end", undefined]
      ]
    )
    assert.deepStrictEqual(detail(replies[1]), { requested: [2, 3], supported: [1] })
    assert.include(replies[7].message, "(missing)")
    assert.deepStrictEqual(detail(replies[11]), { active_run_id: "1" })
    await driver.notify("1", "ask")
    await driver.host.close()
  })

  it("odd code units go through a run unchanged, and separators leave as escapes [SRV-043, SRV-062, SRV-063]", async () => {
    const { flags, lab } = harnessLab([])
    const driver = startServe(lab, flags)
    const odd = "a\ud800b\0c\u2028d\u2029e\u0085f\udfff😀"
    const result = await driver.run("1", odd)
    assert.strictEqual(result.answer, odd)
    assert.strictEqual(driver.of("1")[0].prompt, odd)
    for (const line of driver.host.lines) assert.notMatch(line, /[\u2028\u2029\u0085\0]/u)
    assert.include(driver.host.lines.join("\n"), "\\ud800b\\u0000c\\u2028d\\u2029e\\u0085f\\udfff😀")
    await driver.host.close()
  })

  it("a very long answer is cut to one line, and the journal keeps the whole [SRV-064, SRV-150]", async () => {
    // Three bytes each in the file, six each on the line.
    const long = "\u2028".repeat(300_000)
    const lab = agentLab([[{ text: long }]])
    const driver = startServe(lab, [], { deadlineMs: 60_000 })
    const result = await driver.run("1", "go")
    assert.isTrue(result.answer_truncated)
    assert.isTrue(long.startsWith(result.answer))
    for (const line of driver.host.lines) assert.isAtMost(Buffer.byteLength(line) + 1, 1_048_576)
    const deltas = driver.of("1").filter(({ type }) => type === "delta")
    assert.strictEqual(deltas.map(({ text }) => text).join(""), long)
    await driver.host.close()
  })
})

describe("runs one after another", () => {
  it("a submit right after a result is always accepted, and a run id is used once [SRV-102, SRV-144, SRV-373, SRV-140]", async () => {
    const lab = agentLab([])
    const driver = startServe(lab, ["--events", "source"], { deadlineMs: 100_000 })
    await driver.ready()
    const count = 400
    // As a driver does it: the next submit in the moment in which the result was read.
    await new Promise<void>((resolve, reject) => {
      let done = 0
      let seen = 0
      void driver.host.until(`${count} results`, () => {
        for (; seen < driver.lines.length; seen += 1) {
          const line = driver.lines[seen]
          if (line.type === "error") reject(new Error(line.message))
          if (line.type !== "result") continue
          done += 1
          if (done === count) resolve()
          else driver.op({ op: "submit", run_id: String(done), prompt: `p${done}` })
        }
        return done === count ? true : undefined
      })
      driver.op({ op: "submit", run_id: "0", prompt: "p0" })
    })
    const results = driver.lines.filter(({ type }) => type === "result")
    assert.deepStrictEqual(
      results.map(({ answer, run_id }) => [run_id, answer]),
      Array.from({ length: count }, (_, index) => [String(index), `p${index}`])
    )
    driver.op({ op: "submit", run_id: "17", prompt: "again", op_id: "x" })
    const error = await driver.error(1)
    assert.deepInclude(error, { op_id: "x" })
    assert.deepStrictEqual([error.error.reason, detail(error)], ["run_id_reused", { run_id: "17" }])
    assert.notInclude((await driver.ready()).capabilities, "tool_status")
    await driver.host.close()
  }, 120_000)

  it("a failed run is a result with its error, and leaves nothing to the next one [SRV-145, SRV-146, SRV-148]", async () => {
    const lab = agentLab([
      [{ text: "First answer." }, usage(5, 5)],
      [{ fail: "auth" }],
      [{ text: "cut" }, { stop: "length" }]
    ])
    const driver = startServe(lab)
    assert.deepInclude(await driver.run("1", "one"), {
      answer: "First answer.",
      usage: { input: 5, output: 5, rounds: 1 }
    })
    const failed = await driver.run("2", "two")
    assert.deepInclude(failed, { answer: "", status: "failed", stop_reason: "error", cancelled: false })
    assert.deepInclude(failed.usage, { input: 0, output: 0, rounds: 0 })
    assert.deepInclude(failed.errors[0], { code: "unknown", class: "credential", runtime_code: "harness_error" })
    assert.deepStrictEqual(failed.error_messages, [failed.errors[0].message])
    assert.strictEqual((await driver.notify("2", "error")).data, failed.errors[0].message)
    await driver.host.close()
  })

  it("a retry voids what the response had said [SRV-148]", async () => {
    const lab = makeLab({
      scenarios: { main: { default: [[{ text: "Half " }, { fail: "disconnect" }, { text: "whole." }]] } },
      agents: [{ id: "main", tools: ["files.read"] }]
    })
    const driver = startServe(lab)
    const result = await driver.run("1", "go")
    assert.strictEqual(result.answer, "Half whole.")
    assert.strictEqual(driver.of("1").filter(({ text }) => text === "Half ").length, 1)
    assert.include(driver.story("1"), "retry")
    assert.include(driver.story("1"), "log")
    await driver.host.close()
  })
})

describe("questions", () => {
  it("are checked in order, time out, and are answered by name after that [SRV-190, SRV-191, SRV-192, SRV-193, SRV-196, SRV-201]", async () => {
    const { flags, lab } = harnessLab([
      [question("Which branch?", ["main", "next"]), question("Proceed?", ["Yes", "No"], { custom: false })]
    ])
    const driver = startServe(lab, [...flags, "--answer-timeout", "1.5"])
    driver.op({ op: "submit", run_id: "9", prompt: "go" })
    const first = await driver.notify("9", "ask")
    assert.deepInclude(first.data, { kind: "ask", about: "question", timeout: 1.5 })
    assert.deepStrictEqual(first.data.questions, [
      { question: "Which branch?", options: ["main", "next"], multiple: false, custom: true }
    ])
    const resolved = await driver.notify("9", "ask_resolved")
    assert.deepStrictEqual(resolved.data, { ask_id: first.data.ask_id, outcome: "unanswered", by: "timeout" })
    const second = await driver.notify("9", "ask", 2)
    const [old, open] = [first.data.ask_id, second.data.ask_id]
    driver.op({ op: "answer", run_id: "9", ask_id: old, answers: ["main"] })
    driver.op({ op: "answer", run_id: "9", answers: ["Yes"] })
    driver.op({ op: "answer", run_id: "8", answers: ["Yes"] })
    driver.op({ op: "answer", run_id: "9", ask_id: open, answers: ["Maybe"] })
    driver.op({ op: "answer", run_id: "9", ask_id: open, answers: [" Yes "] })
    driver.op({ op: "answer", run_id: "9", ask_id: open, answers: ["No"] })
    const told = await driver.notify("9", "ask_resolved", 2)
    assert.deepInclude(told.data, { ask_id: open, outcome: "answered", by: "driver", answers: [["Yes"]] })
    await driver.error(5)
    assert.deepStrictEqual(
      driver.errors().map(({ error }) => [error.reason, error.detail]),
      [
        ["stale_answer", { ask_id: old, pending_ask_id: open }],
        ["ambiguous_answer", { ask_id: old }],
        ["unknown_run", { run_id: "8", active_run_id: "9" }],
        ["not_an_option", { question: "Proceed?", options: ["Yes", "No"] }],
        ["no_pending_ask", {}]
      ]
    )
    assert.deepInclude(await driver.result("9"), { status: "completed" })
    await driver.host.close()
  })

  it("several interactions are shown one at a time [SRV-180, SRV-200, SRV-375]", async () => {
    const lab = agentLab([
      [
        call("files.write", { path: "a", content: "1" }),
        call("ask_user", { question: "Which?", options: ["x"] }),
        call("files.write", { path: "b", content: "2" })
      ],
      [{ text: "End." }]
    ])
    const driver = startServe(lab, [], {
      config: {
        agents: [
          {
            id: "main",
            instructions: "",
            tools: ["files.write"],
            questions: true,
            model: { connection: "main", model: "s" }
          }
        ]
      }
    })
    driver.op({ op: "submit", run_id: "1", prompt: "go" })
    for (let nth = 1; nth <= 3; nth += 1) {
      await driver.notify("1", "ask", nth)
      driver.op({ op: "answer", run_id: "1", answers: ["no"] })
    }
    await driver.result("1")
    const asked = driver.of("1").filter(({ kind }) => kind === "ask" || kind === "ask_resolved")
    assert.deepStrictEqual(
      asked.map(({ kind }) => kind),
      ["ask", "ask_resolved", "ask", "ask_resolved", "ask", "ask_resolved"]
    )
    for (let i = 0; i < 6; i += 2) assert.strictEqual(asked[i].data.ask_id, asked[i + 1].data.ask_id)
    await driver.host.close()
  })
})

describe("cancel", () => {
  it("is told at once, withdraws the open ask, and a race with an answer has one winner [SRV-097, SRV-103, SRV-132, SRV-202, SRV-220, SRV-221]", async () => {
    const { flags, lab } = harnessLab([[{ text: "Hm." }, question("Which?", ["a"])]])
    const driver = startServe(lab, flags)
    driver.op({ op: "submit", run_id: "1", prompt: "go", op_id: "s" })
    const ask = await driver.notify("1", "ask")
    driver.op({ op: "cancel", run_id: "1", op_id: "stop" })
    driver.op({ op: "answer", run_id: "1", ask_id: ask.data.ask_id, answers: ["a"], op_id: "late" })
    driver.op({ op: "cancel", run_id: "1", op_id: "again" })
    const result = await driver.result("1")
    assert.deepInclude(await driver.error(1), { op_id: "late" })
    assert.strictEqual(driver.errors()[0].error.reason, "no_pending_ask")
    assert.deepStrictEqual(driver.story("1").slice(-4), ["cancelling", "ask_resolved", "run_finished", "result"])
    const cancelling = await driver.notify("1", "cancelling")
    assert.deepInclude(cancelling, { data: { cause: "cancel" }, op_id: "stop" })
    assert.notProperty(cancelling, "cursor")
    const resolved = await driver.notify("1", "ask_resolved")
    assert.deepInclude(resolved, { op_id: "s" })
    assert.deepInclude(resolved.data, { outcome: "withdrawn", by: "cancel" })
    assert.deepInclude(result, {
      cancelled: true,
      status: "cancelled",
      stop_reason: "cancelled",
      errors: [],
      cancel_op_id: "stop",
      op_id: "s",
      answer: "Hm."
    })
    driver.op({ op: "cancel", run_id: "1" })
    assert.strictEqual((await driver.error(2)).error.reason, "unknown_run")
    await driver.host.close()
  })

  it("sent with the submit it still comes after the start, and ends in a result [SRV-141, SRV-220]", async () => {
    const lab = agentLab([[{ delay_ms: 60_000 }, { text: "never" }]])
    const driver = startServe(lab)
    await driver.ready()
    driver.host.write('{"op":"submit","run_id":"1","prompt":"go"}\n{"op":"cancel","run_id":"1"}\n')
    const result = await driver.result("1")
    assert.deepStrictEqual(
      driver.story("1").filter((kind) => kind !== "title"),
      ["start", "cancelling", "run_finished", "result"]
    )
    assert.deepInclude(result, { cancelled: true, answer: "" })
    await driver.host.close()
  })

  it("stops a tool that ignores its end, with everything under it, within the ladder [SRV-092, SRV-226, SRV-376, SRV-011, SRV-014]", async () => {
    const look = "ps -o pgid= -p $$; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; true"
    const command = "trap '' TERM INT HUP; while :; do sleep 1; done"
    const lab = agentLab([[call("shell.run", { command: look })], [call("shell.run", { command })]], ["shell.run"])
    const driver = startServe(lab)
    driver.op({ op: "submit", run_id: "1", prompt: "go" })
    await driver.notify("1", "ask")
    driver.op({ op: "answer", run_id: "1", answers: ["session"] })
    const { preview } = (await driver.notify("1", "tool_status", 2)).data
    const [group, ...streams] = JSON.parse(preview).stdout.trim().split("\n")
    const faceGroup = execFileSync("ps", ["-o", "pgid=", "-p", String(driver.host.pid)], { encoding: "utf8" })
    assert.notStrictEqual(Number(group), Number(faceGroup))
    const own = [0, 1, 2].map((fd) => `/proc/${driver.host.pid}/fd/${fd}`).filter((file) => existsSync(file))
    for (const file of own) assert.notInclude(streams, readlinkSync(file))
    await driver.notify("1", "tool_running", 2)
    driver.op({ op: "ping", op_id: "alive" })
    await driver.line("a pong beside a tool", ({ op_id }) => op_id === "alive")
    const from = performance.now()
    driver.op({ op: "cancel", run_id: "1" })
    const result = await driver.result("1")
    assert.isBelow(performance.now() - from, 40_000)
    assert.deepInclude(result, { status: "cancelled", cancelled: true })
    await driver.host.close()
    assert.deepStrictEqual(await lab.emptied(5_000), [])
  })
})

describe("budgets", () => {
  it("a cap allows exactly its rounds, anew for each run, and no op raises it [SRV-260, SRV-261, SRV-262, SRV-263, SRV-269]", async () => {
    const round = (path: string) => [{ text: `Reading ${path}.` }, call("files.read", { path }), usage(10, 1)]
    const end = [{ text: "End." }, usage(10, 1)]
    const lab = agentLab([round("a"), end, round("a"), round("b"), end], ["files.read"])
    const driver = startServe(lab, ["--max-rounds", "2"])
    assert.deepInclude(await driver.run("1", "two rounds"), { status: "completed", errors: [], answer: "End." })
    const tripped = await driver.run("2", "three rounds", { max_rounds: 99, timeout: 1 })
    assert.deepInclude(tripped, {
      status: "failed",
      stop_reason: "max_rounds",
      cancelled: false,
      answer: "Reading b.",
      usage: { input: 20, output: 2, rounds: 2 }
    })
    assert.deepInclude(tripped.errors[0], { code: "budget", runtime_code: "budget" })
    assert.deepStrictEqual(driver.story("2").slice(-4), ["error", "cancelling", "run_finished", "result"])
    const { warnings } = driver.of("2")[0]
    assert.isTrue(["max_rounds", "timeout"].every((name) => warnings.some((text: string) => text.includes(name))))
    await driver.host.close()
  })

  it("a timeout interrupts a tool and an open ask, with the answer so far [SRV-265, SRV-267]", async () => {
    const lab = agentLab(
      [
        [{ text: "Waiting." }, call("shell.run", { command: "sleep 60" })],
        [call("shell.run", { command: "sleep 60" })]
      ],
      ["shell.run"]
    )
    const driver = startServe(lab, ["--timeout", "1.5"])
    driver.op({ op: "submit", run_id: "1", prompt: "go" })
    await driver.notify("1", "ask")
    driver.op({ op: "answer", run_id: "1", answers: ["yes"] })
    const tool = await driver.result("1")
    const asked = await driver.run("2", "go")
    for (const result of [tool, asked]) {
      assert.deepInclude(result, { status: "failed", stop_reason: "timeout", cancelled: false })
      assert.strictEqual(result.errors[0].code, "timeout")
      const kinds = driver.story(result.run_id)
      assert.isBelow(kinds.indexOf("error"), kinds.indexOf("cancelling"))
      assert.isBelow(kinds.indexOf("cancelling"), kinds.indexOf("result"))
      assert.deepStrictEqual((await driver.notify(result.run_id, "cancelling")).data, { cause: "timeout" })
    }
    assert.strictEqual(tool.answer, "Waiting.")
    assert.deepInclude((await driver.notify("2", "ask_resolved")).data, { outcome: "withdrawn", by: "cancel" })
    await driver.host.close()
  })

  it("a harness with a model of its own is stopped at the response too many [SRV-264]", async () => {
    const { flags, lab } = harnessLab([
      [{ text: "One." }, call("files.read", { path: "a" }, { output: {} }), usage(1, 1)],
      [{ text: "Two." }, call("files.read", { path: "b" }, { output: {} }), usage(1, 1)],
      [{ text: "Three." }, usage(1, 1)]
    ])
    const driver = startServe(lab, [...flags, "--max-rounds", "2"])
    const result = await driver.run("1", "go")
    assert.deepInclude(result, { status: "failed", stop_reason: "max_rounds", answer: "Two." })
    await driver.host.close()
  })
})
