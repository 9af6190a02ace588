import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:net"
import * as path from "node:path"
import { cli, runProgram, tackroom, temporary, type Ended, type RunOptions } from "../command/Program.ts"
import { bare, stream } from "../models/Providers.ts"

interface Line {
  readonly type: "start" | "delta" | "notify" | "log" | "result"
  readonly kind?: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}
interface Result extends Line {
  readonly status: string
  readonly answer: string
  readonly usage: { readonly input: number; readonly output: number; readonly rounds: number }
  readonly asks: { readonly allowed: number; readonly refused: number; readonly unanswered: number }
  readonly errors: ReadonlyArray<{ readonly code: string; readonly message: string; readonly class?: string }>
}

/** A project and a state directory, and `tackroom run` in them. */
const place = Effect.map(temporary, (directory) => {
  const project = path.join(directory, "project")
  fs.mkdirSync(project)
  fs.writeFileSync(path.join(project, "README.md"), "# Example\n")
  fs.writeFileSync(path.join(project, "package.json"), "{}\n")
  const home = path.join(directory, "home")
  return {
    directory,
    project,
    home,
    run: (args: ReadonlyArray<string>, options: RunOptions = {}) =>
      tackroom(["run", ...args], {
        cwd: project,
        ...options,
        env: { TACKROOM_HOME: home, ...options.env }
      })
  }
})

const linesOf = (ended: Ended): ReadonlyArray<Line> =>
  ended.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line)

const resultOf = (ended: Ended): Result => {
  const lines = linesOf(ended)
  assert.strictEqual(lines.filter(({ type }) => type === "result").length, 1, ended.stdout + ended.stderr)
  return lines.at(-1) as Result
}

const notices = (ended: Ended, kind: string) =>
  linesOf(ended).flatMap((line) => (line.kind === kind ? [line.data ?? {}] : []))

const sessionOf = (ended: Ended): string => String(linesOf(ended)[0]?.["session_id"])

describe("tackroom run", () => {
  it.live("prints the answer once on stdout and what happened on stderr [HDL-010, HDL-012, HDL-005]", () =>
    Effect.gen(function* () {
      const { project, run } = yield* place
      const ended = yield* run(["--approve", "all", "Write a summary"])
      assert.strictEqual(ended.code, 0)
      assert.match(ended.stdout, /^That was scripted[^\n]*real model\.\n$/)
      assert.include(ended.stderr, "files.read README.md")
      assert.include(ended.stderr, "allowed once by policy: files.write SUMMARY.md")
      assert.match(ended.stderr, /✓ completed · 5 rounds · .* · scripted · session ses_\w+\n$/)
      assert.isTrue(fs.existsSync(path.join(project, "SUMMARY.md")))
    })
  )

  it.live("says that a script plays the model, before the run and in the result [SRV-008] [AGT-337]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--model", "script/hello", "Hi"])
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "Hello from a scripted agent.\n"])
      assert.match(ended.stderr, /^! scripted: no model is asked/)
      const [start] = linesOf(yield* run(["--json", "--model", "script/hello", "Hi"]))
      assert.deepStrictEqual(start?.["warnings"], ["the model is scripted"])
    })
  )

  it.live("--quiet leaves nothing on stderr [HDL-012]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--quiet", "Hi"])
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
    })
  )

  it.live("--json writes numbered run lines and one result, last [HDL-013, HDL-015, HDL-016, HDL-005]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--json", "--run-id", "r-1", "--approve", "reads", "Write a summary"])
      assert.strictEqual(ended.code, 0)
      assert.strictEqual(ended.stderr, "")
      const lines = linesOf(ended)
      assert.strictEqual(lines[0]?.type, "start")
      assert.match(sessionOf(ended), /^ses_/)
      lines.forEach((line, index) => {
        assert.include(line, { protocol: 1, run_id: "r-1", seq: index + 1 })
        assert.notProperty(line, "op_id")
      })
      const cursors = lines.flatMap(({ cursor }) => (typeof cursor === "number" ? [cursor] : []))
      assert.deepStrictEqual(
        cursors,
        cursors.toSorted((a, b) => a - b)
      )
      const result = resultOf(ended)
      assert.strictEqual(result.status, "completed")
      assert.strictEqual(result.usage.rounds, 5)
      assert.strictEqual(result.usage.input, 6_247)
      const without = linesOf(yield* run(["--json", "--model", "script/hello", "Hi"]))
      for (const line of without) assert.notProperty(line, "run_id")
    })
  )

  it.live("a clean run without text is completed, exit code 0 [HDL-017]", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* place
      const file = path.join(directory, "mute.json")
      fs.writeFileSync(
        file,
        JSON.stringify({ scenario: 1, name: "mute", default: [[{ usage: { input: 1, output: 0 } }]] })
      )
      const config = { providers: [{ name: "mute", api: "script", scenario: file }] }
      fs.writeFileSync(path.join(directory, "config.json"), JSON.stringify(config))
      const ended = yield* run(["--json", "--config", "../config.json", "--model", "mute/m", "Go"])
      assert.deepStrictEqual([ended.code, resultOf(ended).answer, resultOf(ended).errors], [0, "", []])
    })
  )

  it.live("a cap of rounds ends the run with the answer so far: exit code 1 [SRV-263, SRV-267, HDL-008, HDL-011]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--json", "--max-rounds", "2", "Write a summary"])
      assert.strictEqual(ended.code, 1)
      const result = resultOf(ended)
      assert.deepStrictEqual(
        [result.errors[0]?.code, result["stop_reason"], result.usage.rounds],
        ["budget", "max_rounds", 2]
      )
      assert.match(result.answer, /^I know enough/)
      const text = yield* run(["--max-rounds", "2", "Write a summary"])
      assert.deepStrictEqual([text.code, text.stdout], [1, `${result.answer}\n`])
      const enough = yield* run(["--json", "--max-rounds", "5", "Write a summary"])
      assert.deepStrictEqual([enough.code, resultOf(enough).errors], [0, []])
    })
  )

  it.live("a bare harness runs by its key [SRV-002, SRV-006]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--json", "--harness", "scripted", "--model", "hello", "Hi"])
      assert.deepStrictEqual([ended.code, resultOf(ended).answer], [0, "Hello from a scripted agent."])
      const unknown = yield* run(["--json", "--harness", "scripted", "--model", "none", "Hi"])
      assert.strictEqual(unknown.code, 3)
    })
  )
})

describe("what is asked [HDL-030]", () => {
  it.live(
    "without a terminal everything is refused by the policy, and the run goes on [HDL-030, HDL-031, HDL-034]",
    () =>
      Effect.gen(function* () {
        const { project, run } = yield* place
        const ended = yield* run(["--json", "Write a summary"])
        assert.strictEqual(ended.code, 0)
        assert.deepStrictEqual(resultOf(ended).asks, { allowed: 0, refused: 2, unanswered: 0 })
        assert.isFalse(fs.existsSync(path.join(project, "SUMMARY.md")))
        const asks = notices(ended, "ask").map((ask) => ask["ask_id"])
        const resolved = notices(ended, "ask_resolved")
        assert.deepStrictEqual(
          resolved.map((one) => [one["ask_id"], one["outcome"], one["by"]]),
          asks.map((id) => [id, "refused", "policy"])
        )
      })
  )

  it.live("--approve all allows once and remembers nothing [HDL-032]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--json", "--approve", "all", "Write a summary"])
      assert.deepStrictEqual(resultOf(ended).asks, { allowed: 2, refused: 0, unanswered: 0 })
      assert.deepStrictEqual(
        notices(ended, "ask_resolved").map((one) => [one["outcome"], one["option"]]),
        [
          ["allowed", "once"],
          ["allowed", "once"]
        ]
      )
    })
  )

  it.live("a question is left unanswered by every policy", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--json", "--approve", "all", "--model", "script/question", "Go"])
      assert.strictEqual(ended.code, 0)
      assert.deepStrictEqual(resultOf(ended).asks, { allowed: 0, refused: 0, unanswered: 1 })
      const [answered] = notices(ended, "ask_resolved")
      assert.deepStrictEqual([answered?.["outcome"], answered?.["by"]], ["unanswered", "policy"])
    })
  )
})

describe("the prompt", () => {
  it.live("comes from stdin without an argument and with - [HDL-001]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      for (const args of [[], ["-"]]) {
        const ended = yield* run(["--json", "--model", "script/echo", ...args], { stdin: "zeile eins ü\nzwei" })
        assert.strictEqual(resultOf(ended).answer, "zeile eins ü\nzwei")
      }
    })
  )

  it.live("blank, too large or not UTF-8 is nothing to send: exit code 2 [HDL-002]", () =>
    Effect.gen(function* () {
      const { home, run } = yield* place
      for (const stdin of [" \n\t", "x".repeat(1_048_577), Uint8Array.of(0x66, 0xff)]) {
        const ended = yield* run(["--json"], { stdin })
        assert.strictEqual(ended.code, 2)
        const result = resultOf(ended)
        assert.strictEqual(result.errors[0]?.code, "nothing")
        assert.deepStrictEqual(result.usage, { input: 0, output: 0, rounds: 0 })
      }
      assert.isFalse(fs.existsSync(home))
    })
  )

  it.live("an argument leaves stdin alone: it may stay open [HDL-004]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const ended = yield* run(["--model", "script/hello", "Hi"], { open: true })
      assert.strictEqual(ended.code, 0)
    })
  )
})

describe("what cannot start [HDL-007]", () => {
  it.live("is exit code 3, one line on stderr, and with --json one result [HDL-016, SRV-004, SRV-005]", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* place
      fs.writeFileSync(path.join(directory, "bad.json"), '{"limits":{"active_turns":"many"}}')
      fs.writeFileSync(path.join(directory, "no.json"), "{")
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["--project", "/nonexistent"], "/nonexistent"],
        [["--project", path.join(directory, "bad.json")], "not a directory"],
        [["--config", "../bad.json"], "limits.active_turns"],
        [["--config", "../no.json"], "not JSON"],
        [["--config", "../none.json"], "none.json"],
        [["--agent", "nobody"], "nobody"],
        [["--model", "script/none"], "demo, hello"],
        [["--model", "nowhere/model"], "--base-url"],
        [["--model", "openai/gpt-5-mini"], "OPENAI_API_KEY"]
      ]
      for (const [args, says] of cases) {
        const ended = yield* run([...args, "--json", "Hi"])
        assert.strictEqual(ended.code, 3, args.join(" "))
        assert.strictEqual(resultOf(ended).errors[0]?.code, "unknown")
        assert.strictEqual(linesOf(ended).length, 1)
        assert.include(ended.stderr, says)
        assert.match(ended.stderr, /^tackroom run: [^\n]+\n$/)
      }
      const text = yield* run(["--project", "/nonexistent", "Hi"])
      assert.deepStrictEqual([text.code, text.stdout], [3, ""])
    })
  )
})

describe("a session to go on with", () => {
  it.live("keeps its agent, its directory and what was said [HDL-005, HDL-006, SRV-003]", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* place
      const id = sessionOf(yield* run(["--json", "--model", "script/echo", "one"]))
      const second = yield* run(["--json", "--session", id, "two"], { cwd: directory })
      assert.strictEqual(second.code, 0)
      assert.strictEqual(resultOf(second).answer, "two")
      assert.strictEqual(sessionOf(second), id)
      assert.isAbove(Number(linesOf(second)[0]?.["cursor"]), 8)

      for (const args of [
        ["--session", "ses_none"],
        ["--session", id, "--agent", "other"],
        ["--session", id, "--harness", "scripted"],
        ["--session", id, "--project", directory],
        ["--session", id, "--model", "script/hello"]
      ]) {
        const refused = yield* run([...args, "--json", "x"])
        assert.deepStrictEqual([refused.code, resultOf(refused).errors[0]?.code], [3, "restore"], args.join(" "))
      }
    })
  )

  it.live("may be given again with the name of the scenario it was made with [SRV-003]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const same = ["--json", "--model", "script/hello"]
      const id = sessionOf(yield* run([...same, "one"]))
      const second = yield* run([...same, "--session", id, "two"])
      assert.deepStrictEqual([second.code, sessionOf(second)], [0, id])
    })
  )

  it.live("several runs make a state directory and share it at once [SRV-019]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const texts = ["a", "b", "c", "d", "e", "f", "g", "h"]
      const ended = yield* Effect.all(
        texts.map((text) => run(["--json", "--model", "script/echo", text])),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        ended.map((each) => [each.code, resultOf(each).errors[0]?.message, resultOf(each).answer]),
        texts.map((text) => [0, undefined, text])
      )
    })
  )
})

describe("the end", () => {
  const untilText = (signal: NodeJS.Signals, times = 1): Pick<RunOptions, "onStdout"> => {
    let sent = 0
    return {
      onStdout: (text, child) => {
        if (sent >= times || !text.includes('"delta"')) return
        sent += 1
        child.kill(signal)
      }
    }
  }

  it.live("the first signal cancels the run, which tells how it ended: exit code 1 [HDL-041, SRV-016]", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      for (const signal of ["SIGINT", "SIGTERM"] as const) {
        const ended = yield* run(["--json", "--model", "script/long", "Go"], untilText(signal))
        assert.deepStrictEqual([ended.code, ended.signal], [1, null])
        assert.strictEqual(resultOf(ended).status, "cancelled")
        assert.include(resultOf(ended), { cancelled: true, stop_reason: "cancelled" })
        assert.deepStrictEqual(notices(ended, "cancelling"), [{ cause: "signal" }])
      }
    })
  )

  it.live(
    "a second signal ends process and tools at once: exit code 128 and its number [HDL-041, SRV-015, SRV-017]",
    () =>
      Effect.gen(function* () {
        const { directory, run } = yield* place
        // A tool that holds a connection and does not end when it is asked to.
        const socket = path.join(directory, "socket")
        const program = `process.on("SIGTERM", () => {}); require("node:net").connect(${JSON.stringify(socket)})`
        const command = `"${process.execPath}" -e '${program}'`
        const file = path.join(directory, "slow.json")
        const call = { tool: "shell.run", arguments: { command } }
        fs.writeFileSync(file, JSON.stringify({ scenario: 1, name: "slow", default: [[{ text: "Go." }, { call }]] }))
        const config = { providers: [{ name: "slow", api: "script", scenario: file }] }
        fs.writeFileSync(path.join(directory, "config.json"), JSON.stringify(config))

        const connected = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        const server = createServer((connection) => {
          Deferred.doneUnsafe(connected, Effect.void)
          connection.on("close", () => Deferred.doneUnsafe(gone, Effect.void))
          connection.on("error", () => undefined)
        })
        yield* Effect.acquireRelease(
          Effect.callback<void>((resume) => void server.listen(socket, () => resume(Effect.void))),
          () => Effect.sync(() => server.close())
        )
        let child: ChildProcess | undefined
        const ended = yield* Effect.forkChild(
          run(["--json", "--approve", "all", "--config", "../config.json", "--model", "slow/scripted-slow", "Go"], {
            onStdout: (_, process) => {
              child = process
            }
          })
        )
        yield* Deferred.await(connected)
        child?.kill("SIGTERM")
        child?.kill("SIGINT")
        const { code, stdout } = yield* Fiber.join(ended)
        assert.include([130, 143], code)
        assert.notInclude(stdout, '"type":"result"')
        yield* Deferred.await(gone)
      })
  )

  it.live("a reader of stdout that leaves cancels the run: exit code 1 [HDL-042]", () =>
    Effect.gen(function* () {
      const { home, project } = yield* place
      const command = `("${process.execPath}" "${cli}" run --json --model script/long Go; echo "code $?" >&2) | head -n 8 >/dev/null`
      const ended = yield* runProgram("/bin/sh", ["-c", command], { cwd: project, env: { TACKROOM_HOME: home } })
      assert.strictEqual(ended.stderr, "code 1\n")
    })
  )

  it.live("an answer that cannot be written is exit code 1, and says so [HDL-042]", () =>
    Effect.gen(function* () {
      const { home, project } = yield* place
      const command = `"${process.execPath}" "${cli}" run --quiet --model script/hello Hi >/dev/full; echo "code $?" >&2`
      const ended = yield* runProgram("/bin/sh", ["-c", command], { cwd: project, env: { TACKROOM_HOME: home } })
      assert.match(ended.stderr, /could not be written to stdout\ncode 1\n$/)
    })
  )

  it.live("a failed run prints the answer so far, says why, and is exit code 1 [HDL-011]", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* place
      const file = path.join(directory, "short.json")
      const scenario = { scenario: 1, name: "short", default: [[{ text: "Half an ans" }, { stop: "length" }]] }
      fs.writeFileSync(file, JSON.stringify(scenario))
      const config = { providers: [{ name: "short", api: "script", scenario: file }] }
      fs.writeFileSync(path.join(directory, "config.json"), JSON.stringify(config))
      const ended = yield* run(["--config", "../config.json", "--model", "short/scripted-short", "Go"])
      assert.deepStrictEqual([ended.code, ended.stdout], [1, "Half an ans\n"])
      assert.include(ended.stderr, "failed (truncated")
    })
  )
})

describe("a live model", () => {
  const key = "canary-key-5f1c-never-shown"
  const chunk = (delta: unknown, finish: string | null = null) => ({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }]
  })
  const shell = (command: string) => [
    chunk({
      role: "assistant",
      tool_calls: [
        {
          index: 0,
          id: "t1",
          type: "function",
          function: { name: "shell__run", arguments: JSON.stringify({ command }) }
        }
      ]
    }),
    chunk({}, "tool_calls"),
    "[DONE]"
  ]
  const saying = (text: string) => [chunk({ role: "assistant", content: text }), chunk({}, "stop"), "[DONE]"]

  it.live("gets the key of the named variable, and no child, line or file does [SRV-009, SRV-013]", () =>
    Effect.gen(function* () {
      const { directory, home, run } = yield* place
      let requests = 0
      const server = yield* bare((response) => {
        requests += 1
        stream(
          response,
          requests === 1 ? shell("env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; true") : saying("Hello.")
        )
      })
      const ended = yield* run(
        `--json --approve all --key-env MY_MODEL_KEY --model local/m --base-url ${server.url}/v1 Hi`.split(" "),
        { env: { MY_MODEL_KEY: key, OPENAI_API_KEY: `${key}-openai`, HARMLESS: "not for children" } }
      )
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.strictEqual(resultOf(ended).answer, "Hello.")
      assert.deepStrictEqual(linesOf(ended)[0]?.["warnings"], [])
      assert.strictEqual(server.requests[0]?.headers.authorization, `Bearer ${key}`)
      assert.notInclude(ended.stdout + ended.stderr, key)
      assert.notInclude(ended.stdout, "HARMLESS")
      for (const entry of fs.readdirSync(home, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue
        assert.notInclude(fs.readFileSync(path.join(entry.parentPath, entry.name), "latin1"), key, entry.name)
      }
      assert.isTrue(fs.existsSync(directory))
    })
  )

  it.live("a vendor's key never goes to an endpoint that only borrows its name", () =>
    Effect.gen(function* () {
      const { run } = yield* place
      const server = yield* bare((response) => stream(response, saying("Hello.")))
      const ended = yield* run(["--model", "openai/m", "--base-url", `${server.url}/v1`, "Hi"], {
        env: { OPENAI_API_KEY: key }
      })
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.isUndefined(server.requests[0]?.headers.authorization)
    })
  )
})
