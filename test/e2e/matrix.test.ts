/**
 * Every harness behind every face, through one scenario: text, a call, a question, and an answer that makes use of it. What
 * a client of the face is told must be the same, whatever works behind it.
 */
import { spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { fromWireEvent } from "@tackroom/protocol/run"
import { afterAll, beforeAll } from "vitest"
import { makeUnownedLab, type Lab } from "./support/Lab.ts"
import { hostProgram, type Loose } from "./support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const question = { question: "Which colour?", options: ["Green", "Red"] }

/** What a model says; our own agent runs the calls. */
const played = {
  default: [
    [{ text: "I look first." }, call("files.list", {})],
    [{ text: "One question." }, call("ask_user", { ...question, allow_text: false })],
    [{ text: "Thank you." }]
  ]
}

/** The same as a whole harness says it; calls are played. */
const scripted = {
  scenario: 1,
  name: "matrix",
  default: [
    [{ text: "I look first." }, { call: { tool: "files.list", arguments: {}, output: "nothing" } }],
    [
      { text: "One question." },
      {
        question: { question: question.question, options: question.options.map((label) => ({ label })), custom: false }
      },
      { text: "Thank you." }
    ]
  ]
}

/** What a client was told, without how the face says it. */
interface Told {
  readonly text: string
  readonly tools: ReadonlyArray<string>
  readonly questions: ReadonlyArray<unknown>
  readonly answer: string
  readonly status: string
}

const expected: Told = {
  text: "I look first.One question.Thank you.",
  tools: ["files.list completed"],
  questions: [question],
  answer: "Thank you.",
  status: "completed"
}

const named = (alias: string): string => alias.replace("__", ".")

const harnesses = ["native", "scripted", "serve", "host", "acp:inner"] as const

const refOf = (key: string) =>
  key.startsWith("acp:") ? { id: key.slice("acp:".length), access: "acp" } : { id: key, access: "native" }

const agentOf = (key: string): string => key.replace(":", "-")

/** A place of its own for one harness behind one face: nothing is shared, so that all of them run at once. */
interface Place {
  readonly agent: string
  readonly workspace: string
  readonly config: Record<string, unknown>
  readonly file: string
}

describe("a harness behind a face", () => {
  let lab: Lab
  beforeAll(() => {
    lab = makeUnownedLab({ scenarios: { inner: played } })
  })
  afterAll(() => lab.remove())

  const placeOf = (face: string, harness: string): Place => {
    const folder = join(lab.root, `${face}-${agentOf(harness)}`)
    const workspace = join(folder, "work")
    mkdirSync(workspace, { recursive: true })
    const write = (name: string, value: object): string => {
      const path = join(folder, name)
      writeFileSync(path, JSON.stringify(value))
      return path
    }
    const play = { instructions: "Play.", tools: ["files.list"], model: { connection: "inner", model: "script" } }
    const base = (name: string, agent: object) => ({
      state_dir: join(folder, name),
      sandbox: "none",
      providers: lab.config["providers"],
      agents: [agent]
    })
    const inner = base("inner", { id: "inner", ...play })
    const node = process.execPath
    const through = (name: string): ReadonlyArray<string> => [hostProgram, name, "--config", write("inner.json", inner)]
    const agent = agentOf(harness)
    const config = {
      ...base(
        "outer",
        harness === "native" ? { id: agent, ...play } : { id: agent, instructions: "", harness: refOf(harness) }
      ),
      harnesses: {
        scripted: { scenarios: [write("scripted.json", scripted)], speed: 0 },
        serve: { command: node, args: through("serve") },
        "acp:inner": { binary: node, args: through("acp") },
        host: { agent: "inner", command: node, args: [hostProgram], config: inner }
      }
    }
    return { agent, workspace, config, file: write("outer.json", config) }
  }

  const overStdio = async ({ agent, config, workspace }: Place): Promise<Told> => {
    const raw = lab.start({ config })
    await raw.call("initialize", { protocol_version: 1 })
    const { session } = await raw.call("agent/session", { agent, workspace })
    const run = { session_id: session.session_id, submission_id: "m" }
    await raw.call("run/start", { ...run, text: "go" })
    const told = { text: "", tools: [] as Array<string>, questions: [] as Array<unknown> }
    const names = new Map<string, string>()
    const cursors: Record<string, number> = {}
    for (;;) {
      const state = await raw.call("run/wait", { ...run, cursors, wait_ms: 5_000 })
      Object.assign(cursors, state.cursors)
      for (const { event } of state.events) {
        const payload: Loose = fromWireEvent(event)?.payload
        if (payload?.type === "text-end" && payload.channel === "text") told.text += payload.text
        if (payload?.type === "tool-start") names.set(payload.toolCallId, named(payload.toolName))
        if (payload?.type === "tool-output" && names.get(payload.toolCallId) !== "ask_user") {
          told.tools.push(`${names.get(payload.toolCallId)} completed`)
        }
      }
      for (const one of state.interruptions) {
        if (told.questions.length > 0) continue
        told.questions.push({ question: one.question, options: one.options })
        await raw.call("run/respond", { session_id: one.session_id, interaction_id: one.id, answer: "Green" })
      }
      if (["completed", "failed", "cancelled"].includes(state.status) && !state.more_events) {
        await raw.close()
        return { ...told, answer: state.final_output, status: state.status }
      }
    }
  }

  const overServe = async ({ agent, file, workspace }: Place): Promise<Told> => {
    const child = spawn(
      process.execPath,
      [hostProgram, "serve", "--config", file, "--agent", agent, "--project", workspace],
      { stdio: ["pipe", "pipe", "inherit"], env: { PATH: process.env["PATH"], HOME: lab.root } }
    )
    const send = (op: object): void => void child.stdin.write(`${JSON.stringify(op)}\n`)
    const told = { text: "", tools: [] as Array<string>, questions: [] as Array<unknown> }
    let result: Loose
    for await (const text of createInterface({ input: child.stdout })) {
      const line: Loose = JSON.parse(text)
      if (line.type === "ready") send({ op: "submit", run_id: "1", prompt: "go" })
      if (line.type === "delta") told.text += line.text
      if (line.kind === "tool_status" && line.data.status === "completed" && line.data.name !== "ask_user") {
        told.tools.push(`${named(line.data.name)} completed`)
      }
      if (line.kind === "ask") {
        const [{ options, question: asked }] = line.data.questions
        told.questions.push({ question: asked, options })
        send({ op: "answer", run_id: "1", ask_id: line.data.ask_id, answers: ["Green"] })
      }
      if (line.type === "result") {
        result = line
        child.stdin.end()
      }
    }
    return { ...told, answer: result?.answer, status: result?.status }
  }

  const overAcp = async ({ agent, file, workspace }: Place): Promise<Told> => {
    const child = spawn(process.execPath, [hostProgram, "acp", "--config", file, "--agent", agent], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env["PATH"], HOME: lab.root }
    })
    const send = (frame: object): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`)
    const told = { text: "", tools: [] as Array<string>, questions: [] as Array<unknown> }
    const names = new Map<string, string>()
    let stopReason: string | undefined
    let last = ""
    send({
      id: 1,
      method: "initialize",
      params: { protocolVersion: 1, clientCapabilities: { elicitation: { form: {} } } }
    })
    for await (const text of createInterface({ input: child.stdout })) {
      const frame: Loose = JSON.parse(text)
      if (frame.error !== undefined) throw new Error(text)
      if (frame.id === 1) send({ id: 2, method: "session/new", params: { cwd: workspace, mcpServers: [] } })
      if (frame.id === 2 && frame.method === undefined) {
        const { sessionId } = frame.result
        send({ id: 3, method: "session/prompt", params: { sessionId, prompt: [{ type: "text", text: "go" }] } })
      }
      if (frame.id === 3 && frame.method === undefined) {
        stopReason = frame.result.stopReason
        child.stdin.end()
      }
      if (frame.method === "elicitation/create") {
        const [[name, property]] = Object.entries<Loose>(frame.params.requestedSchema.properties) as [[string, Loose]]
        const options = property.oneOf.map((one: Loose) => one.const)
        told.questions.push({ question: frame.params.message, options })
        send({ id: frame.id, result: { action: "accept", content: { [name]: "Green" } } })
      }
      if (frame.method !== "session/update") continue
      const { update } = frame.params
      if (update.sessionUpdate === "agent_message_chunk") {
        told.text += update.content.text
        last += update.content.text
      }
      if (update.sessionUpdate === "tool_call") {
        names.set(update.toolCallId, named(update.name ?? update.title))
        last = ""
      }
      if (update.status === "completed" && names.get(update.toolCallId) !== "ask_user") {
        told.tools.push(`${names.get(update.toolCallId)} completed`)
        last = ""
      }
    }
    return {
      ...told,
      answer: last.replace(/^One question\./u, ""),
      status: stopReason === "end_turn" ? "completed" : `${stopReason}`
    }
  }

  const faces = [
    ["stdio", overStdio],
    ["serve", overServe],
    ["acp", overAcp]
  ] as const
  for (const harness of harnesses) {
    for (const [face, drive] of faces) {
      it.concurrent(`${harness} is told over ${face} as it is`, async () => {
        assert.deepStrictEqual(await drive(placeOf(face, harness)), expected)
      })
    }
  }
})
