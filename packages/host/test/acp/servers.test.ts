import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type * as acp from "@agentclientprotocol/sdk"
import { isGroupAlive } from "@tackroom/sdk/process"
import { Effect, Exit, Scope } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { checkServers } from "../../src/faces/acp/SetupParams.ts"
import { httpServer } from "../mcp/HttpServer.ts"
import { cli } from "../command/Program.ts"
import { type AcpProgram, makeFolders, reasonOf, startAcp } from "./AcpProgram.ts"
import { schemaProblems } from "./ProtocolSchema.ts"

/** MCP servers that an editor brings, with an ACP agent and with our own agent behind the face. */

const agentProgram = path.resolve(import.meta.dirname, "../../../sdk/test/acp/programs/agent.ts")
const serverProgram = path.resolve(import.meta.dirname, "../mcp/fixtures/server.ts")

const token = "canary-90ab-token"
const folders = makeFolders()
const { project, root } = folders
const programs: Array<AcpProgram> = []

const closing: Array<() => unknown> = []

afterAll(async () => {
  for (const close of closing) close()
  await Promise.all(programs.map((one) => one.end()))
  fs.rmSync(root, { recursive: true, force: true })
}, 30_000)

const start = async (name: string, config: object, flags: ReadonlyArray<string>): Promise<AcpProgram> => {
  const file = path.join(root, `${name}.json`)
  fs.writeFileSync(file, JSON.stringify(config))
  const program = await startAcp({
    state: path.join(root, `state-${name}`),
    args: ["--config", file, ...flags],
    capabilities: { session: { notices: {} } }
  })
  programs.push(program)
  return program
}

const foreign = (name: string, flags: object = {}): Promise<AcpProgram> => {
  const variables = {
    NODE_COMPILE_CACHE: path.join(os.tmpdir(), "tackroom-test-cache"),
    AGENT_STATE: path.join(root, `agent-${name}`),
    AGENT_FLAGS: JSON.stringify(flags)
  }
  const harness = { binary: process.execPath, args: [agentProgram], env: { variables } }
  return start(name, { harnesses: { "acp:test": harness } }, ["--harness", "acp:test"])
}

const own = (
  name: string,
  responses: ReadonlyArray<ReadonlyArray<object>> = [],
  withServer = false
): Promise<AcpProgram> => {
  const scenario = path.join(root, `${name}.scenario.json`)
  fs.writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "acp", default: responses, exhausted: "echo" }))
  const transport = { type: "stdio", command: process.execPath, args: [serverProgram] }
  const config = {
    providers: [{ name: "script", api: "script", scenario }],
    servers: withServer ? [{ name: "house", transport }] : []
  }
  return start(name, config, ["--model", "script/acp"])
}

const env = [{ name: "TOKEN", value: token }]
const real = (name: string, manner: object = {}): acp.McpServer => ({
  name,
  command: process.execPath,
  args: [serverProgram, JSON.stringify(manner)],
  env
})

const told = (answer: { readonly _meta?: { readonly [key: string]: unknown } | null }): unknown => {
  const meta = answer._meta?.["tackroom"]
  return typeof meta === "object" && meta !== null ? Reflect.get(meta, "mcp") : undefined
}

/** The servers that the agent behind the driver was given, call by call. */
const given = (name: string): ReadonlyArray<string> =>
  fs
    .readFileSync(path.join(root, `agent-${name}`, "log"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [method = ""] = line.split(" ")
      if (!["new", "load", "resume"].includes(method)) return []
      const servers = JSON.parse(line.slice(line.indexOf("["))) as ReadonlyArray<{ readonly name: string }>
      return [`${method} ${servers.map((server) => server.name).join(" ")}`.trim()]
    })

/** Everything that a program wrote: its frames, its log, and the files of its state directory. */
const written = (name: string, program: AcpProgram): ReadonlyArray<readonly [string, string]> => {
  const state = path.join(root, `state-${name}`)
  const files = fs
    .readdirSync(state, { recursive: true, encoding: "utf8" })
    .filter((file) => fs.statSync(path.join(state, file)).isFile())
  return [
    ["frames", JSON.stringify(program.frames)],
    ["stderr", program.stderr()],
    ...files.map((file) => [file, fs.readFileSync(path.join(state, file), "latin1")] as const)
  ]
}

const leaks = (name: string, program: AcpProgram): ReadonlyArray<string> =>
  written(name, program).flatMap(([where, text]) => (text.includes(token) ? [where] : []))

/** Process groups of the programs that a process started and that have this in their command line. */
const childrenOf = (pid: number | undefined, mark: string): ReadonlyArray<number> =>
  spawnSync("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="], { encoding: "utf8" })
    .stdout.split("\n")
    .flatMap((line) => {
      const [child, parent] = line.trim().split(/\s+/u).map(Number)
      return parent === pid && child !== undefined && line.includes(mark) ? [child] : []
    })

/** An MCP server behind a door that is shut: nobody who asks is answered before it is opened. */
const shutServer = async () => {
  const scope = Scope.makeUnsafe()
  const behind = await Effect.runPromise(Scope.provide(httpServer(), scope))
  const opened = Promise.withResolvers<void>()
  const passOn = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    await opened.promise
    const { headers, method = "POST", url = "/" } = request
    const onward = http.request(new URL(url, behind.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  }
  const door = http.createServer((request, response) => void passOn(request, response))
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve))
  closing.push(() => (door.closeAllConnections(), door.close(), Effect.runPromise(Scope.close(scope, Exit.void))))
  const { port } = door.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${new URL(behind.url).pathname}`, open: () => opened.resolve() }
}

/** It takes its five seconds while the others go on. */
const setUpSlowly = async () => {
  const { open, url } = await shutServer()
  const call = { call: { tool: "late.plain", arguments: {} } }
  const program = await own("slow", [[{ text: "Hello." }], [call], [{ text: "Done." }]])
  const mcpServers: Array<acp.McpServer> = [{ type: "http", name: "late", url, headers: [] }]
  const before = performance.now()
  const made = await program.agent.request("session/new", { cwd: project, mcpServers })
  return { made, mcpServers, open, program, took: performance.now() - before }
}

let slow: ReturnType<typeof setUpSlowly>

beforeAll(() => {
  slow = setUpSlowly()
  slow.catch(() => undefined)
})

describe("MCP servers of an editor", () => {
  it("go to the agent behind the face, those of the last setup, and their values nowhere else [ACP-073, ACP-218]", async () => {
    const program = await foreign("foreign")
    const { agent } = program
    const files: acp.McpServer = { name: "My Files", command: "/bin/files", args: ["-r"], env }
    const made = await agent.request("session/new", { cwd: project, mcpServers: [files] })
    // The agent starts them and says nothing of them: nothing is made up.
    assert.isUndefined(made._meta)
    const { sessionId } = made
    await program.prompt(sessionId, "hello")
    const place = { sessionId, cwd: project }
    await agent.request("session/load", { ...place, mcpServers: [files] })
    assert.deepStrictEqual(given("foreign"), ["new My Files"], "the same servers start nothing again")
    await agent.request("session/load", { ...place, mcpServers: [{ ...files, name: "other" }] })
    await agent.request("session/resume", { ...place, mcpServers: [] })
    await program.prompt(sessionId, "hello")
    assert.deepStrictEqual(given("foreign"), ["new My Files", "load other", "load"])
    assert.deepStrictEqual(leaks("foreign", program), [])
    assert.include(fs.readFileSync(path.join(root, "agent-foreign", "log"), "utf8"), token)
  }, 60_000)

  it("what an agent says of a server that it cannot start is told without its values [ACP-218]", async () => {
    const program = await foreign("refusing", { refuseServers: true })
    const mcpServers = [{ name: "files", command: "/bin/files", args: [], env }]
    const refused = program.agent.request("session/new", { cwd: project, mcpServers })
    assert.strictEqual(await reasonOf(refused), "-32603 harness_unavailable")
    assert.include(JSON.stringify(program.frames), "it could not start")
    assert.deepStrictEqual(leaks("refusing", program), [])
  }, 60_000)

  it("a kind that is not advertised is refused, also where the agent might take it [ACP-034, ACP-216]", async () => {
    const program = await foreign("http", { mcpHttp: true })
    const capabilities = program.frames[0]?.result?.["agentCapabilities"]
    assert.deepInclude(capabilities, { mcpCapabilities: { http: false, sse: false } })
    const url = "https://mcp.example"
    for (const type of ["http", "sse"] as const) {
      const server = { type, name: "a", url, headers: [{ name: "authorization", value: token }] }
      const refused = program.agent.request("session/new", { cwd: project, mcpServers: [server] })
      assert.strictEqual(await reasonOf(refused), "-32602 mcp_unsupported")
    }
    assert.isFalse(fs.existsSync(path.join(root, "agent-http")), "nothing was started to know it")
    assert.deepStrictEqual(leaks("http", program), [])
  }, 60_000)

  it("what cannot be a server is refused before its kind [ACP-215, ACP-216]", () => {
    const taking = { takes: "stdio+http" as const, isUsed: (name: string) => name === "mine" }
    const stdio = { name: "a", command: "/bin/true", args: [], env: [] }
    const remote = { type: "http" as const, name: "a", url: "https://mcp.example", headers: [] }
    const reason = (servers: ReadonlyArray<acp.McpServer>, takes: "none" | "stdio" | "stdio+http" = "stdio+http") => {
      const refused = checkServers(servers, { ...taking, takes })
      return refused === undefined ? undefined : Reflect.get(refused.data, "reason")
    }
    assert.isUndefined(reason([stdio, { ...remote, name: "b" }, { ...remote, name: "c", url: "http://[::1]:1" }]))
    for (const wrong of [
      [stdio, { ...remote, name: "a" }],
      [{ ...stdio, name: "mine" }],
      [{ ...stdio, name: " " }],
      [{ ...stdio, command: "true" }],
      [{ ...stdio, args: ["a\0b"] }],
      [{ ...stdio, env: [{ name: "A", value: "\0" }] }],
      [{ ...remote, headers: [{ name: "A", value: "1\n2" }] }],
      [{ ...stdio, env: [...env, ...env] }],
      [{ ...remote, url: "http://mcp.example" }],
      [{ ...remote, url: "nonsense" }],
      [{ ...remote, url: `https://me:${token}@mcp.example` }],
      [
        {
          ...remote,
          headers: [
            { name: "A", value: "1" },
            { name: "a", value: "2" }
          ]
        }
      ],
      Array.from({ length: 17 }, (_, i) => ({ ...stdio, name: `s${i}` }))
    ]) {
      assert.strictEqual(reason(wrong), "mcp_invalid")
      assert.strictEqual(reason(wrong, "none"), "mcp_invalid")
    }
    assert.strictEqual(reason([stdio], "none"), "mcp_unsupported")
    assert.strictEqual(reason([remote], "stdio"), "mcp_unsupported")
    assert.strictEqual(reason([{ ...remote, type: "sse" as const }]), "mcp_unsupported")
  })

  it("a name that the host has itself is refused, and one that only looks like it is not [ACP-215]", async () => {
    const program = await own("house", [], true)
    const attempt = (name: string) => program.agent.request("session/new", { cwd: project, mcpServers: [real(name)] })
    assert.strictEqual(await reasonOf(attempt("house")), "-32602 mcp_invalid")
    assert.deepStrictEqual(told(await attempt("House")), [{ name: "House", status: "ready" }])
  }, 60_000)

  it("our own agent has them ready with the answer, works with them, and they end with the session [ACP-073, ACP-214, ACP-217, ACP-218]", async () => {
    const call = { call: { tool: "manners.environment", arguments: {} } }
    const program = await own("own", [[call], [{ text: "Done." }]])
    const { agent, child } = program
    assert.deepInclude(program.frames[0]?.result?.["agentCapabilities"], {
      mcpCapabilities: { http: true, sse: false }
    })
    const dies = "process.stderr.write(`no ${process.env.TOKEN}\n`); process.exit(4)"
    const itsEnv = [{ name: "TOKEN", value: "canary-90ab-other" }]
    const broken: acp.McpServer = { name: "Broken One", command: process.execPath, args: ["-e", dies], env: itsEnv }
    const mcpServers = [real("manners"), broken]
    const made = await agent.request("session/new", { cwd: project, mcpServers })
    assert.deepStrictEqual(told(made), [
      { name: "manners", status: "ready" },
      { name: "Broken One", status: "failed", error: "it ended (exit code 4): no [redacted:Broken One.TOKEN]" }
    ])

    const { sessionId } = made
    assert.strictEqual((await program.prompt(sessionId, "Look around")).stopReason, "end_turn")
    const output = program.updates(sessionId).find((update) => "status" in update && update.status === "completed")
    assert.match(JSON.stringify(output), /"TOKEN":"\[redacted:[\w .]+\]/u)

    const servers = childrenOf(child.pid, serverProgram)
    assert.strictEqual(servers.length, 1)
    const place = { sessionId, cwd: project }
    const loaded = await agent.request("session/load", { ...place, mcpServers: [real("other")] })
    assert.deepStrictEqual(told(loaded), [{ name: "other", status: "ready" }])
    assert.deepStrictEqual(servers.filter(isGroupAlive), [])
    const next = childrenOf(child.pid, serverProgram)
    assert.strictEqual(next.length, 1)
    await agent.request("session/close", { sessionId })
    assert.deepStrictEqual(next.filter(isGroupAlive), [])

    assert.deepStrictEqual(leaks("own", program), [])
    assert.deepStrictEqual(await program.end(), { code: 0, signal: null })
    assert.deepStrictEqual(leaks("own", program), [])
    assert.deepStrictEqual(
      program.frames.flatMap((frame) => schemaProblems(frame, program.methods)),
      []
    )

    // Another process has the session, and not the values.
    const words = ["run", "--state-dir", path.join(root, "state-own"), "--config", path.join(root, "own.json")]
    const { PATH, HOME } = process.env
    const ran = spawnSync(process.execPath, [cli, ...words, "--session", sessionId, "Go on"], {
      cwd: project,
      encoding: "utf8",
      env: { PATH, HOME }
    })
    assert.include(ran.stderr, "the MCP server other is left out: ")
    assert.strictEqual(ran.status, 0, ran.stderr)
    const second = await startAcp({
      state: path.join(root, "state-own"),
      args: ["--config", path.join(root, "own.json")]
    })
    programs.push(second)
    const resumed = await second.agent.request("session/resume", { ...place, mcpServers: [] })
    assert.isUndefined(resumed._meta)
  }, 60_000)

  it("tools that are left out are told with the answer, also where nothing shows a notice [ACP-124, ACP-217]", async () => {
    const tools = Array.from({ length: 130 }, (_, n) => `tool-${n}`)
    const program = await own("many")
    const mcpServers = [real("many", { tools })]
    const made = await program.agent.request("session/new", { cwd: project, mcpServers })
    assert.deepStrictEqual(told(made), [{ name: "many", status: "ready", leftOut: 2 }])
    const notice = await program.until((frames) =>
      frames.find(({ params }) => JSON.stringify(params ?? null).includes("left out"))
    )
    const title = "2 tools of the MCP server many are left out"
    assert.deepStrictEqual(notice.params?.["update"], { sessionUpdate: "notice", severity: "warning", title })
    const loaded = await program.agent.request("session/load", { sessionId: made.sessionId, cwd: project, mcpServers })
    assert.deepStrictEqual(told(loaded), [{ name: "many", status: "ready", leftOut: 2 }])
    await program.end()
    const plain = await startAcp({
      state: path.join(root, "state-many"),
      args: ["--config", path.join(root, "many.json"), "--model", "script/acp"]
    })
    programs.push(plain)
    const other = await plain.agent.request("session/new", { cwd: project, mcpServers })
    const ended = await plain.prompt(other.sessionId, "hello")
    assert.deepInclude(ended._meta?.["tackroom"], { notices: [{ severity: "warning", title }] })
  }, 60_000)

  it("a server that is late holds the answer for five seconds; its tools are there when it is [ACP-217]", async () => {
    const { made, mcpServers, open, program, took } = await slow
    const { sessionId } = made
    assert.isBelow(took, 20_000)
    assert.deepStrictEqual(told(made), [{ name: "late", status: "starting" }])
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
    open()
    // With the same servers nothing starts again; the answer only waits for them.
    const loaded = await program.agent.request("session/load", { sessionId, cwd: project, mcpServers })
    assert.deepStrictEqual(told(loaded), [{ name: "late", status: "ready" }])
    assert.strictEqual((await program.prompt(sessionId, "call it")).stopReason, "end_turn")
    const done = program.updates(sessionId).find((update) => "status" in update && update.status === "completed")
    assert.include(JSON.stringify(done), "plain")
    await program.agent.request("session/close", { sessionId })
  }, 60_000)
})
