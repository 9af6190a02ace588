/**
 * The ACP driver over real agents. Runs only when `TACKROOM_REAL_AGENTS=1` is set and they are installed (`install.ts`).
 * What passes on the way is kept as the recordings of the driver's own tests.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { awaitGroupGone } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { type Answer, calls, say } from "../real-input/Vendors.ts"
import { type Agent, agents } from "./Agents.ts"
import { makeRecorder } from "./Recording.ts"
import { endless, makeStage, type Stage } from "./Stage.ts"

const session = fileURLToPath(new URL("programs/Session.ts", import.meta.url))

const mcpServer = fileURLToPath(new URL("../../../packages/host/test/mcp/fixtures/server.ts", import.meta.url))

const command = (name: string): string => `touch ${name} && echo hello-${name}`

const runs = (agent: Agent, name: string): Answer => calls([{ id: `call_${name}`, ...agent.shell(command(name)) }])

/** How an agent tells that it has no such conversation, as a turn's error. */
const missing: Readonly<Record<string, string>> = {
  // Its error says nothing of the conversation, so nobody may say that it is gone.
  opencode: "harness_error"
}

/** Their models look tools up, and are not told of any before. */
const looksUp: ReadonlySet<string> = new Set(["qwen-code"])

describe.each(agents)("$id", (agent) => {
  let stage: Stage
  let keep: ReturnType<typeof makeRecorder>
  let sessionId = ""
  const made = (name: string): boolean => existsSync(join(stage.directory, name))
  const frames = (name: string): string => join(stage.root, `${name}.jsonl`)

  beforeAll(async () => {
    stage = await makeStage(agent)
    keep = makeRecorder(agent, [
      [stage.directory, "{cwd}"],
      [stage.home.path, "{home}"]
    ])
    const { plays } = stage.vendor
    plays("say hello", [say("Hello there.")])
    plays("make a file", [runs(agent, "allowed"), say("It is made.")])
    plays("make another", [runs(agent, "refused"), say("Then not.")])
    plays("talk on", [endless("Once upon a time there was a stable.", "Once upon")])
    plays("what was it", [say("It was a file.")])
    plays("are you the same", [say("No.")])
    plays("is it there", [runs(agent, "again"), say("It is there.")])
    plays("leave it open", [runs(agent, "open"), say("Never said.")])
    plays("first of two", [runs(agent, "first"), say("The first is done.")])
    plays("look at the sea", [say("It is calm.")])
    plays("look at the sky", [say("It is clear.")])
    plays("second of two", [say("The second is done.")])
  })
  afterAll(() => stage.remove())

  it("talks, calls a tool that a person allowed, takes a refusal, and is cancelled", async () => {
    const opened = await stage.open({ record: frames("conversation") })
    sessionId = await opened.session()

    const hello = await opened.play(sessionId, "say hello")
    assert.deepInclude(hello.outcome, { status: "completed", reason: "end_turn" })
    assert.strictEqual(hello.text, "Hello there.")

    const allowed = await opened.play(sessionId, "make a file", { decide: "allow_once" })
    assert.strictEqual(allowed.outcome.status, "completed")
    assert.strictEqual(allowed.text, "It is made.")
    assert.deepInclude(allowed.asks[0], { category: "exec", toolCallId: "call_allowed" })
    assert.strictEqual(allowed.asks[0]?.details?.command, command("allowed"))
    assert.include(JSON.stringify(allowed.only("tool-output").map(({ output }) => output)), "hello-allowed")
    assert.isTrue(made("allowed"))

    const refused = await opened.play(sessionId, "make another", { decide: "deny" })
    assert.deepInclude(refused.only("tool-error")[0], { toolCallId: "call_refused", code: "denied" })
    assert.isFalse(made("refused"))

    const cancelled = await opened.play(sessionId, "talk on", { abortAt: "text-delta" })
    assert.deepInclude(cancelled.outcome, { status: "cancelled", reason: "requested" })
    await opened.close()
    keep(frames("conversation"), "conversation")
  })

  it("goes on with the same conversation after a restart, and asks as before", async () => {
    const opened = await stage.open({ record: frames("reopened") })
    const next = await opened.play(sessionId, "what was it")
    assert.strictEqual(next.outcome.status, "completed")
    assert.strictEqual(next.text, "It was a file.")
    // Others ask for a title with these words, and nothing else.
    assert.isTrue(stage.vendor.requests("what was it").some(({ text }) => text.includes("say hello")))
    const again = await opened.play(sessionId, "is it there", { decide: "allow_once" })
    assert.strictEqual(again.asks.length, 1)
    assert.isTrue(made("again"))
    await opened.close()
    keep(frames("reopened"), "reopened")
  })

  it("refuses a conversation that it does not have, and makes no other one", async () => {
    const opened = await stage.open({ home: stage.strangeHome(), record: frames("missing") })
    const { outcome } = await opened.play(sessionId, "are you the same")
    assert.strictEqual(
      outcome.status === "failed" ? outcome.error.code : outcome.status,
      missing[agent.id] ?? "session_missing"
    )
    assert.deepStrictEqual(stage.vendor.requests("are you the same"), [])
    await opened.close()
    keep(frames("missing"), "missing")
  })

  it("a turn that is cancelled while it asks withdraws the ask", async () => {
    const opened = await stage.open()
    const { asks, only, outcome } = await opened.play(await opened.session(), "leave it open", {
      abortAt: "permission-request"
    })
    assert.strictEqual(outcome.status, "cancelled")
    assert.strictEqual(only("interaction-withdrawn").length, asks.length)
    assert.isFalse(made("open"))
    await opened.close()
  })

  it("a conversation outlives the program that was killed, and its agent does not", async () => {
    const { directory, home, root } = stage
    const how = { agent: agent.id, directory, root: join(root, "killed"), text: "say hello", variables: home.variables }
    const program = spawn(process.execPath, [session, JSON.stringify(how)], { stdio: ["ignore", "pipe", "inherit"] })
    const [line] = (await once(program.stdout.setEncoding("utf8"), "data")) as [string]
    const store = createSqliteRuntimeStore({ root: how.root })
    const children = await Effect.runPromise(store.processes)
    await Effect.runPromise(store.close)
    program.kill("SIGKILL")
    await once(program, "exit")
    const opened = await stage.open({ store: how.root })
    // Five seconds is what the guard may take; four times that on a busy machine.
    for (const { pgid } of children) assert.isTrue(await Effect.runPromise(awaitGroupGone(pgid, 20_000)))
    const next = await opened.play(line.trim(), "what was it")
    assert.strictEqual(next.text, "It was a file.")
    await opened.close()
  })

  it("has the MCP servers of its session, with their values, and others when it is reopened", async () => {
    const started = join(stage.root, "started")
    const script = 'echo "$SEA" >> "$0"; exec "$1" "$2"'
    const server = (name: string) => ({
      [name]: {
        type: "stdio" as const,
        command: "/bin/sh",
        args: ["-c", script, started, process.execPath, mcpServer],
        env: { SEA: `value of ${name}` }
      }
    })
    const opened = await stage.open()
    const id = await opened.session({ mcp: server("tides") })
    const tells = async (text: string, name: string): Promise<boolean> => {
      await opened.play(id, text)
      return stage.vendor.requests(text).some(({ body }) => JSON.stringify(body).includes(name))
    }
    assert.strictEqual(await tells("look at the sea", "tides"), !looksUp.has(agent.id))
    await opened.runtime.sessions.updateConfig(id, { mcp: server("winds") })
    assert.strictEqual(await tells("look at the sky", "winds"), !looksUp.has(agent.id))
    assert.deepStrictEqual(
      [...new Set(readFileSync(started, "utf8").trim().split("\n"))],
      ["value of tides", "value of winds"]
    )
    await opened.close()
  })

  it("works in two sessions side by side", async () => {
    const opened = await stage.open()
    const [one, two] = await Promise.all([opened.session(), opened.session()])
    const first = opened.play(one, "first of two", { decide: "allow_once" })
    const second = opened.play(two, "second of two")
    assert.strictEqual((await second).text, "The second is done.")
    assert.strictEqual((await first).text, "The first is done.")
    await opened.close()
  })
})
