/** What becomes of a turn when its host, or its runtime, is killed in the middle: it is told once, and nothing runs twice. */
import { spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { Envelope } from "@tackroom/protocol/events"
import { fromWireEvent, HostConfig, wireCodec, type WireEvent } from "@tackroom/protocol/run"
import { createAgentRuntime, isEnvelope, type AgentRuntimeFacade } from "@tackroom/sdk"
import { host } from "@tackroom/sdk/harnesses/host"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { Result } from "effect"
import { onTestFinished } from "vitest"
import { readAll } from "../support/Drive.ts"
import { makeLab, type Lab } from "../support/Lab.ts"
import { hostProgram, type Loose } from "../support/RawHost.ts"

const program = fileURLToPath(new URL("programs/HostRuntime.ts", import.meta.url))
const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const worker = {
  default: [
    [{ text: "I write two lines." }, call("shell.run", { command: "echo one >> lines" })],
    [{ text: "And " }, { delay_ms: 150 }, { text: "another." }, call("shell.run", { command: "echo two >> lines" })],
    [{ thinking: "Almost." }, { text: "Done." }]
  ]
}

const labOf = (): Lab => {
  const lab = makeLab({ scenarios: { worker }, agents: [{ id: "worker", tools: ["shell.run"] }] })
  writeFileSync(join(lab.root, "config.json"), JSON.stringify(lab.config))
  return lab
}

const openRuntime = (lab: Lab): AgentRuntimeFacade => {
  const config = wireCodec(HostConfig).decode(lab.config)
  if (Result.isFailure(config)) return assert.fail("the configuration is none")
  const store = createSqliteRuntimeStore({ root: join(lab.root, "store") })
  const runtime = createAgentRuntime({
    store,
    harnesses: [host({ command: process.execPath, args: [hostProgram], config: config.success, agent: "worker" })]
  })
  onTestFinished(async () => {
    await runtime.dispose()
  })
  return runtime
}

/** Answers what is asked until the turn is over; gives the session's journal. */
const finish = async (runtime: AgentRuntimeFacade, onEvent: (event: Envelope) => void = () => undefined) => {
  for await (const item of runtime.events.subscribe({ sessionId: "killed", after: 0 })) {
    if (!isEnvelope(item)) continue
    onEvent(item)
    if (item.payload.type === "permission-request") {
      const pending = await runtime.permissions.list({ sessionId: "killed" })
      const { requestId } = item.payload
      if (pending.some((one) => one.id === requestId)) await runtime.permissions.respond(requestId, "allow_once")
    }
    if (["finish", "error", "cancelled"].includes(item.payload.type)) break
  }
  return (await runtime.events.read("killed", { limit: 1000 })).events
}

/** What both journals tell of the work itself, in order; delta rows are joined, because each side cuts them by itself. */
const told = (events: ReadonlyArray<{ readonly payload: Loose }>): ReadonlyArray<string> => {
  const rows: Array<string> = []
  let text = ""
  for (const { payload } of events) {
    if (payload.type === "text-delta" || payload.type === "thinking-delta") {
      text += payload.delta
      continue
    }
    if (payload.type === "text-end") {
      rows.push(`${payload.channel} ${payload.text}`)
      assert.include(payload.text, text, "the deltas are part of the text")
      text = ""
      continue
    }
    if (payload.type === "response-start") rows.push(`response ${payload.attempt ?? ""}`)
    if (payload.type === "response-retracted") rows.push("retracted")
    if (payload.type === "tool-start") rows.push(`start ${payload.toolName}`)
    if (payload.type === "tool-status") rows.push(`${payload.toolCallId} ${payload.status}`)
    if (payload.type === "tool-output") rows.push(`${payload.toolCallId} output`)
    if (payload.type === "tool-error") rows.push(`${payload.toolCallId} ${payload.error}`)
    if (payload.type === "permission-request") rows.push(`asks ${payload.tool}`)
    if (payload.type === "usage") rows.push("usage")
  }
  return rows
}

/** What the host itself has of the session, read by another client after everything is over. */
const hostJournal = async (lab: Lab): Promise<ReadonlyArray<{ readonly payload: Loose }>> => {
  const raw = await lab.open()
  const { sessions } = await raw.call("session/list", {})
  assert.strictEqual(sessions.length, 1)
  const events = await readAll(raw, sessions[0].session.session_id)
  await raw.close()
  return events.flatMap((event: WireEvent) => fromWireEvent(event) ?? [])
}

/** Runs the program and kills it when it has shown so many events; its host dies with it. */
const killAfter = (lab: Lab, count: number): Promise<number> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [program, lab.root, "worker"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, HOME: lab.root }
    })
    let seen = 0
    child.stdout.on("data", (chunk: Buffer) => {
      seen += chunk.toString().split("\n").length - 1
      if (seen >= count) child.kill("SIGKILL")
    })
    child.on("close", () => resolve(seen))
  })

const lines = (lab: Lab): ReadonlyArray<string> => readFileSync(join(lab.workspace, "lines"), "utf8").trim().split("\n")

describe("a runtime that is killed together with its host", () => {
  for (const count of [9, 20]) {
    it(
      `after event ${count} goes on behind the last event that it told [HRN-013, HRN-240, HRN-241]`,
      { timeout: 60_000 },
      async () => {
        const lab = labOf()
        await killAfter(lab, count)
        const runtime = openRuntime(lab)
        await runtime.ready()
        const events = await finish(runtime)
        const outcome = await runtime.turns.wait("killed", "m")
        assert.strictEqual(outcome.status, "completed")
        const calls = events.flatMap(({ payload }) =>
          payload.type === "tool-status" && payload.status === "running" ? [payload.toolCallId] : []
        )
        assert.strictEqual(new Set(calls).size, calls.length, "a call was run twice")
        assert.isAtMost(lines(lab).length, 2)
        await runtime.dispose()
        assert.deepStrictEqual(told(events), told(await hostJournal(lab)))
      }
    )
  }
})

describe("a host that is killed while its runtime lives", () => {
  it(
    "is started again, and its run goes on where it was told [HRN-013, HRN-240, HRN-241]",
    { timeout: 60_000 },
    async () => {
      const lab = labOf()
      const runtime = openRuntime(lab)
      await runtime.sessions.create({
        id: "killed",
        directory: lab.workspace,
        harness: { id: "host", access: "native" }
      })
      await runtime.turns.start({ sessionId: "killed", messageId: "m", text: "go on" })
      let isKilled = false
      const events = await finish(runtime, ({ payload }) => {
        if (isKilled || payload.type !== "tool-output") return
        isKilled = true
        const { pid } = JSON.parse(readFileSync(join(lab.stateDir, "host.json"), "utf8")) as { pid: number }
        process.kill(pid, "SIGKILL")
      })
      const outcome = await runtime.turns.wait("killed", "m")
      assert.strictEqual(outcome.status, "completed")
      assert.deepStrictEqual(lines(lab), ["one", "two"])
      const exits = events.filter(({ payload }) => payload.type === "process-status")
      assert.strictEqual(exits.length, 1)
      await runtime.dispose()
      assert.deepStrictEqual(told(events), told(await hostJournal(lab)))
    }
  )
})
