/** Clients that share no code with us: a JSON-RPC library of others, and thirty lines of Python. */
import { assert, describe, it } from "@effect/vitest"
import { execFile, spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Readable, Writable } from "node:stream"
import { promisify } from "node:util"
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  createMessageConnection,
  type DataCallback,
  Disposable,
  type Message,
  type MessageConnection,
  ResponseError
} from "vscode-jsonrpc/node"
import { makeLab, type Lab } from "./support/Lab.ts"
import { hostProgram, type Loose } from "./support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const makeWriterLab = (): Lab =>
  makeLab({
    scenarios: {
      assistant: {
        default: [
          [{ text: "One moment." }, call("files.write", { path: "list.md", content: "- tent" })],
          [call("ask_user", { question: "Which year?" })],
          [{ text: "Done: list.md" }]
        ]
      }
    },
    agents: [{ id: "assistant", tools: ["files.write"] }]
  })

/** One JSON object per line, in place of the library's own headers. */
class LineReader extends AbstractMessageReader {
  private readonly input: Readable
  constructor(input: Readable) {
    super()
    this.input = input
  }
  listen(callback: DataCallback): Disposable {
    let rest = ""
    const onData = (text: string): void => {
      const parts = (rest + text).split("\n")
      rest = parts.pop() ?? ""
      for (const line of parts) callback(JSON.parse(line) as Message)
    }
    this.input.setEncoding("utf8").on("data", onData)
    this.input.once("close", () => this.fireClose())
    return Disposable.create(() => void this.input.off("data", onData))
  }
}

class LineWriter extends AbstractMessageWriter {
  private readonly output: Writable
  constructor(output: Writable) {
    super()
    this.output = output
  }
  write(message: Message): Promise<void> {
    return new Promise((resolve, reject) => {
      this.output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
    })
  }
  end(): void {
    this.output.end()
  }
}

const connect = (child: { readonly stdin: Writable | null; readonly stdout: Readable | null }): MessageConnection => {
  if (child.stdin === null || child.stdout === null) return assert.fail("the host has no pipes")
  const connection = createMessageConnection(new LineReader(child.stdout), new LineWriter(child.stdin))
  connection.listen()
  return connection
}

describe("a client made of a JSON-RPC library", () => {
  it("drives a whole run with an approval and a question [RUN-010, RUN-410, RUN-412, RUN-440]", async () => {
    const lab = makeWriterLab()
    const host = lab.start()
    host.child.stdout?.removeAllListeners("data")
    const connection = connect(host.child)
    const ask = (method: string, params: object): Promise<Loose> => connection.sendRequest(method, params)

    const hello = await ask("initialize", { protocol_version: 1, client: { name: "foreign", version: "1" } })
    assert.strictEqual(hello.protocol_version, 1)
    const { session } = await ask("agent/session", { agent: "assistant", workspace: lab.workspace })
    const id = session.session_id
    // Sent at once, answered in order, told apart by the library's own ids.
    const [started, state, missing] = await Promise.allSettled([
      ask("run/start", { session_id: id, submission_id: "m-1", text: "Write a packing list" }),
      ask("session/state", { session_id: id }),
      ask("run/wait", { session_id: "ses_unknown" })
    ])
    assert.strictEqual(started.status === "fulfilled" && started.value.duplicate, false)
    assert.strictEqual(state.status === "fulfilled" && state.value.session_id, id)
    const refusal = missing.status === "rejected" ? missing.reason : undefined
    assert.instanceOf(refusal, ResponseError)
    assert.deepStrictEqual([refusal.code, refusal.data.kind, refusal.data.what], [-32002, "not_found", "session"])

    const events: Array<Loose> = []
    const asked: Array<string> = []
    let cursors = { [id]: 0 }
    let run: Loose
    do {
      run = await ask("run/wait", { session_id: id, submission_id: "m-1", cursors, wait_ms: 5_000 })
      events.push(...run.events)
      cursors = run.cursors
      for (const one of run.interruptions) {
        asked.push(one.kind)
        const answer = one.kind === "approval" ? { decision: "once" } : { answer: "2025" }
        await ask("run/respond", { session_id: one.session_id, interaction_id: one.id, ...answer })
      }
    } while (run.status === "running" || run.status === "interrupted" || run.more_events)
    assert.deepStrictEqual([run.status, run.final_output], ["completed", "Done: list.md"])
    assert.deepStrictEqual(asked, ["approval", "question"])
    assert.deepStrictEqual(
      events.map((entry) => entry.event.seq),
      events.map((_, index) => index + 1)
    )
    assert.strictEqual(readFileSync(join(lab.workspace, "list.md"), "utf8"), "- tent")
    connection.end()
    assert.deepStrictEqual(await host.closed, { code: 0, signal: null })
    connection.dispose()
  })
})

/** The client on the published page: what is printed there is what runs here. */
const page = fileURLToPath(new URL("../../docs/run-protocol.md", import.meta.url))
const servePage = fileURLToPath(new URL("../../docs/serve-mode.md", import.meta.url))
const printed = /```python\n([\s\S]*?)```/

const hasPython = spawnSync("python3", ["--version"]).status === 0

describe("a client in Python", () => {
  it("drives a whole run as printed in the documents [RUN-001, RUN-410, RUN-440]", async (context) => {
    if (!hasPython) {
      if ((process.env["CI"] ?? "") !== "") assert.fail("python3 is not installed here, and this test needs it")
      return context.skip("python3 is not installed here")
    }
    const lab = makeWriterLab()
    const [, client] = printed.exec(readFileSync(page, "utf8")) ?? assert.fail("the page shows no client in Python")
    const script = join(lab.root, "client.py")
    writeFileSync(script, client ?? "")
    const program = join(lab.root, "tackroom")
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${hostProgram}" "$@"\n`, { mode: 0o755 })
    const scenario = join(lab.root, "assistant.json")
    const { stdout } = await promisify(execFile)(
      "python3",
      [script, program, lab.stateDir, lab.workspace, scenario, "Write a packing list"],
      { timeout: 60_000, env: { PATH: process.env["PATH"] ?? "", HOME: lab.root } }
    )
    const lines = stdout.trim().split("\n")
    assert.strictEqual(lines.at(-1), "completed Done: list.md")
    // It begins where the run begins: the events of the session's creation are before its cursors.
    const cursors = lines.slice(0, -1).map((line) => Number(line.split(" ")[0]))
    assert.deepStrictEqual(
      cursors,
      cursors.map((_, index) => (cursors[0] ?? 0) + index)
    )
    assert.include(lines[0], "user-message")
    assert.strictEqual(readFileSync(join(lab.workspace, "list.md"), "utf8"), "- tent")
  })
})

describe("a driver of serve mode in Python", () => {
  it("drives a whole run as printed in the documents [SRV-091, SRV-371, SRV-375]", async (context) => {
    if (!hasPython) {
      if ((process.env["CI"] ?? "") !== "") assert.fail("python3 is not installed here, and this test needs it")
      return context.skip("python3 is not installed here")
    }
    const lab = makeLab()
    const [, driver] =
      printed.exec(readFileSync(servePage, "utf8")) ?? assert.fail("the page shows no driver in Python")
    const script = join(lab.root, "driver.py")
    writeFileSync(script, driver ?? "")
    const program = join(lab.root, "tackroom")
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${hostProgram}" "$@"\n`, { mode: 0o755 })
    const { stdout } = await promisify(execFile)(
      "python3",
      [script, program, lab.stateDir, lab.workspace, "Write a summary"],
      { timeout: 60_000, env: { PATH: process.env["PATH"] ?? "", HOME: lab.root } }
    )
    assert.include(stdout, "I know enough to write a summary.")
    assert.match(stdout, /\ncompleted\n\{'input': 6247, 'output': 387, 'rounds': 5\}\nThat was scripted/)
    assert.include(readFileSync(join(lab.workspace, "SUMMARY.md"), "utf8"), "scripted demonstration")
  })
})
