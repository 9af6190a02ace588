/** A key on its way through the whole program: nothing it writes shows it (RUN-174, RUN-225). */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bare, sse } from "../models/Providers.ts"
import { wires } from "../models/Wires.ts"
import { at, folder } from "../runs/Kit.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))
const canary = "canary-5e77aa01c4-never-shown"

describe("the program", () => {
  it.live("stdout, stderr at every level and the state directory show no key [RUN-174] [RUN-225] [RUN-019]", () =>
    Effect.gen(function* () {
      const wire = wires["chat-completions"]
      const server = yield* bare((response) => {
        if (server.requests.length === 2) {
          response.writeHead(401, { "content-type": "application/json" })
          return void response.end(JSON.stringify({ error: { message: `bad key ${canary}` } }))
        }
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(sse(wire.call("c1", "shell__run", JSON.stringify({ command: `echo ${canary}; env` }))))
      })
      const place = yield* folder
      const config = {
        state_dir: place.stateDir,
        providers: [{ name: "local", api: "chat-completions", base_url: `${server.url}/v1` }],
        agents: [
          {
            id: "helper",
            instructions: "",
            tools: ["shell.run"],
            model: { connection: "local", model: "m" },
            approvals: { mode: "never" }
          }
        ]
      }
      const child = spawn(process.execPath, [program, "harness-stdio", JSON.stringify(config)], {
        stdio: ["pipe", "pipe", "pipe"],
        env: { ...process.env, TACKROOM_LOG_LEVEL: "trace" }
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
      let stdout = ""
      let stderr = ""
      const waiting = new Map<number, (answer: unknown) => void>()
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr += text
      })
      let rest = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          const frame: unknown = JSON.parse(line)
          waiting.get(Number(at(frame, "id")))?.(frame)
        }
      })
      let nextId = 0
      const ask = (method: string, params: object) =>
        Effect.callback<unknown>((resume) => {
          const id = ++nextId
          waiting.set(id, (frame) => resume(Effect.succeed(at(frame, "result"))))
          child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
        })
      yield* ask("initialize", {})
      yield* ask("provider/set", {
        name: "local",
        api: "chat-completions",
        credentials: { api_key: canary, storage: "memory" }
      })
      const created = yield* ask("agent/session", { agent: "helper", workspace: place.workspace })
      const session_id = at(created, "session", "session_id")
      yield* ask("run/start", { session_id, submission_id: "m-1", text: "Go" })
      let state: unknown
      do state = yield* ask("run/wait", { session_id, wait_ms: 5_000, cursors: {}, max_events: 1_000 })
      while (at(state, "status") === "running")
      assert.deepStrictEqual([at(state, "status"), at(state, "failure")], ["failed", "credentials_missing"])
      yield* ask("host/info", {})
      yield* Effect.callback<void>((resume) => {
        child.once("close", () => resume(Effect.void))
        child.stdin.end()
      })
      assert.strictEqual(child.exitCode, 0)
      assert.isNotEmpty(stderr)
      assert.include(stdout, "[redacted:local]")
      for (const part of [canary, canary.slice(0, 17)]) {
        assert.notInclude(stdout, part)
        assert.notInclude(stderr, part)
        assert.notInclude(place.kept(), part)
      }
    })
  )
})
