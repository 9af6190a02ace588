import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { cli } from "../command/Program.ts"
import { type AcpProgram, makeFolders, reasonOf, refusal, startAcp } from "./AcpProgram.ts"
import { schemaProblems } from "./ProtocolSchema.ts"

/** Signing in to an agent behind the face. */

const agentProgram = path.resolve(import.meta.dirname, "../../../sdk/test/acp/programs/agent.ts")
const { project, root } = makeFolders()
const programs: Array<AcpProgram> = []

afterAll(async () => {
  await Promise.all(programs.map((one) => one.end()))
  fs.rmSync(root, { recursive: true, force: true })
}, 30_000)

const key = { id: "key", name: "API key", description: "Reads it" }
const login = { type: "terminal", id: "login", name: "Log in", args: ["--sign-in", "login"] }

const words = (name: string, flags: object, ...more: ReadonlyArray<string>): ReadonlyArray<string> => {
  const file = path.join(root, `${name}.json`)
  const variables = {
    NODE_COMPILE_CACHE: path.join(os.tmpdir(), "tackroom-test-cache"),
    AGENT_STATE: path.join(root, `agent-${name}`),
    AGENT_FLAGS: JSON.stringify({ auth: true, ...flags })
  }
  const harness = { binary: process.execPath, args: [agentProgram], env: { variables } }
  fs.writeFileSync(file, JSON.stringify({ harnesses: { "acp:test": harness } }))
  return ["--config", file, "--harness", "acp:test", ...more]
}

const start = async (name: string, args: ReadonlyArray<string>, terminal = false): Promise<AcpProgram> => {
  const capabilities = terminal ? { auth: { terminal: true } } : {}
  const program = await startAcp({ state: path.join(root, `state-${name}`), args, capabilities })
  programs.push(program)
  return program
}

/** It takes its seconds while the others go on. */
const startSilent = async () => {
  const before = performance.now()
  const program = await start("silent", words("silent", { silent: true, mcpHttp: true }, "--probe"))
  return { program, took: performance.now() - before }
}

let silent: ReturnType<typeof startSilent>

beforeAll(() => {
  silent = startSilent()
  silent.catch(() => undefined)
})

describe("signing in", () => {
  it("the ways are known once the agent was started, and one that is run lets sessions be set up [ACP-030, ACP-035, ACP-036]", async () => {
    const program = await start("plain", words("plain", {}))
    const { agent } = program
    assert.deepStrictEqual(program.frames[0]?.result?.["authMethods"], [])
    assert.isFalse(fs.existsSync(path.join(root, "agent-plain")), "nothing was started")
    assert.strictEqual(await reasonOf(agent.request("authenticate", { methodId: "key" })), "-32602 invalid")
    const refused = await refusal(agent.request("session/new", { cwd: project, mcpServers: [] }))
    assert.deepStrictEqual(refused, { code: -32_000, data: { reason: "auth_required", authMethods: [key] } })
    assert.deepStrictEqual((await program.initialize()).authMethods, [key])
    assert.strictEqual(await reasonOf(agent.request("authenticate", { methodId: "none" })), "-32602 invalid")
    assert.deepStrictEqual(await agent.request("authenticate", { methodId: "key" }), {})
    const sessionId = await program.newSession(project)
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
    assert.deepStrictEqual(
      program.frames.flatMap((frame) => schemaProblems(frame, program.methods)),
      []
    )
  }, 60_000)

  it("asked for before, they are in the first answer; what the agent refuses is told [ACP-035, ACP-037]", async () => {
    const args = words("probed", { refuseAuth: true, mcpHttp: true }, "--probe")
    const program = await start("probed", args)
    const { result } = program.frames[0] ?? {}
    assert.deepStrictEqual(result?.["authMethods"], [key])
    assert.deepInclude(result?.["agentCapabilities"], { mcpCapabilities: { http: true, sse: false } })
    assert.strictEqual(
      await reasonOf(program.agent.request("authenticate", { methodId: "key" })),
      "-32000 auth_required"
    )
    assert.include(JSON.stringify(program.frames.at(-1)?.error), "the key is not right")
    assert.strictEqual(await reasonOf(program.agent.request("authenticate", { methodId: "login" })), "-32602 invalid")
  }, 60_000)

  it("one of a terminal is for a client that has one, which runs it as this program says [ACP-035, ACP-037]", async () => {
    const args = words("terminal", { authFile: path.join(root, "signed-in") }, "--probe")
    const program = await start("terminal", args, true)
    assert.deepStrictEqual(program.frames[0]?.result?.["authMethods"], [key, login])
    assert.strictEqual(await reasonOf(program.agent.request("authenticate", { methodId: "login" })), "-32602 invalid")
    const state = path.join(root, "state-terminal")
    const again = [cli, "acp", "--state-dir", state, ...args, "--sign-in", "login"]
    const env = { PATH: process.env["PATH"], HOME: process.env["HOME"] }
    const { status, stdout } = spawnSync(process.execPath, again, { encoding: "utf8", env })
    assert.deepStrictEqual([status, stdout], [0, "logged in with LOGIN=1\n"])
    assert.match(await program.newSession(project), /^ses_/u)
  }, 60_000)

  it("an agent that never says what it is does not hold the answer to initialize [ACP-010]", async () => {
    const { program, took } = await silent
    assert.isBelow(took, 25_000)
    const { result } = program.frames[0] ?? {}
    assert.deepStrictEqual(result?.["authMethods"], [])
    assert.deepInclude(result?.["agentCapabilities"], { mcpCapabilities: { http: false, sse: false } })
    assert.deepStrictEqual((await program.agent.request("session/list", {})).sessions, [])
  }, 60_000)
})
