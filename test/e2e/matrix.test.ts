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

const harnesses = ["native", "scripted", "serve", "host"] as const

describe("a harness behind a face", () => {
  let lab: Lab
  let config: Record<string, unknown>
  beforeAll(() => {
    lab = makeUnownedLab({ scenarios: { inner: played } })
    const write = (name: string, value: object): string => {
      const path = join(lab.root, name)
      writeFileSync(path, JSON.stringify(value))
      return path
    }
    const inner = (name: string) => ({
      state_dir: join(lab.root, `state-${name}`),
      sandbox: "none",
      providers: lab.config["providers"],
      agents: [
        { id: "inner", instructions: "Play.", tools: ["files.list"], model: { connection: "inner", model: "script" } }
      ]
    })
    config = {
      ...inner("outer"),
      agents: harnesses.map((id) =>
        id === "native"
          ? { id, instructions: "Play.", tools: ["files.list"], model: { connection: "inner", model: "script" } }
          : { id, instructions: "", harness: { id, access: "native" } }
      ),
      harnesses: {
        scripted: { scenarios: [write("scripted.json", scripted)], speed: 0 },
        serve: {
          command: process.execPath,
          args: [hostProgram, "serve", "--config", write("serve.json", inner("serve"))]
        },
        host: { agent: "inner", command: process.execPath, args: [hostProgram], config: inner("host") }
      }
    }
    write("outer.json", config)
  })
  afterAll(() => lab.remove())

  const overStdio = async (agent: string): Promise<Told> => {
    const raw = lab.start({ config })
    await raw.call("initialize", { protocol_version: 1 })
    const workspace = join(lab.root, `work-stdio-${agent}`)
    mkdirSync(workspace)
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

  const overServe = async (agent: string): Promise<Told> => {
    const workspace = join(lab.root, `work-serve-${agent}`)
    mkdirSync(workspace)
    const child = spawn(
      process.execPath,
      [hostProgram, "serve", "--config", join(lab.root, "outer.json"), "--agent", agent, "--project", workspace],
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

  for (const harness of harnesses) {
    it(`${harness} is told over stdio as it is`, async () => {
      assert.deepStrictEqual(await overStdio(harness), expected)
    })
    it(`${harness} is told over serve mode as it is`, async () => {
      assert.deepStrictEqual(await overServe(harness), expected)
    })
  }
})
