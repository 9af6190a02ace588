import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type * as acp from "@agentclientprotocol/sdk"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type AcpProgram, allow, makeFolders, reasonOf, refusal, startAcp } from "./AcpProgram.ts"
import { schemaProblems } from "./ProtocolSchema.ts"

/** The agent of the sdk's own tests, behind the harness `acp:test`: what it does is chosen by the words of the prompt. */
const agentProgram = path.resolve(import.meta.dirname, "../../../sdk/test/acp/programs/agent.ts")

const folders = makeFolders()
const { project, root, state } = folders

const configure = (
  flags: Record<string, unknown>,
  name = "config",
  more: Record<string, unknown> = {}
): ReadonlyArray<string> => {
  const file = path.join(root, `${name}.json`)
  const NODE_COMPILE_CACHE = path.join(os.tmpdir(), "tackroom-test-cache")
  const variables = {
    NODE_COMPILE_CACHE,
    AGENT_STATE: path.join(root, `agent-${name}`),
    AGENT_FLAGS: JSON.stringify(flags)
  }
  const binary = process.execPath
  fs.writeFileSync(
    file,
    JSON.stringify({ harnesses: { "acp:test": { binary, args: [agentProgram], env: { variables }, ...more } } })
  )
  return ["--config", file, "--harness", "acp:test"]
}

const agentLog = (name = "config"): ReadonlyArray<string> =>
  fs
    .readFileSync(path.join(root, `agent-${name}`, "log"), "utf8")
    .trim()
    .split("\n")

type Answer = (request: acp.RequestPermissionRequest, signal: AbortSignal) => Promise<acp.RequestPermissionResponse>
const allowing: Answer = (request) => Promise.resolve(allow(request))
const cancelling: Answer = () => Promise.resolve({ outcome: { outcome: "cancelled" } })
const never: Answer = () => new Promise(() => undefined)

const programs: Array<AcpProgram> = []
let program: AcpProgram
/** A session for tests that need no fresh one. */
let shared: string
let answer: Answer = allowing
let form: (request: acp.CreateElicitationRequest) => Promise<acp.CreateElicitationResponse> = () =>
  Promise.resolve({ action: "cancel" })

const start = async (...args: Parameters<typeof startAcp>): Promise<AcpProgram> => {
  const started = await startAcp(...args)
  programs.push(started)
  return started
}

beforeAll(async () => {
  program = await start({
    state,
    args: configure({ modes: "options", chatty: true }),
    capabilities: { elicitation: { form: {} }, session: { notices: {} } },
    permission: (request, signal) => answer(request, signal),
    elicitation: (request) => form(request)
  })
  shared = await open()
}, 60_000)

afterAll(async () => {
  await Promise.all(programs.map((one) => one.end()))
  fs.rmSync(root, { recursive: true, force: true })
}, 30_000)

const open = (): Promise<string> => program.newSession(project)
const kinds = (sessionId: string, from: AcpProgram = program): ReadonlyArray<string> =>
  from.updates(sessionId).map(({ sessionUpdate }) => sessionUpdate)
const calls = (sessionId: string, id: string) =>
  program.updates(sessionId).filter((update) => "toolCallId" in update && update.toolCallId === id)

const shown = (sessionId: string, what: string): Promise<true> =>
  program.until(() => (kinds(sessionId).includes(what) ? true : undefined))

const asked = (sessionId: string) =>
  program.until((all) =>
    all.find((frame) => frame.method === "session/request_permission" && frame.params?.["sessionId"] === sessionId)
  )

describe("a connection", () => {
  it("says what it is, whatever version it is asked for, as often as it is asked [ACP-030, ACP-031, ACP-033, ACP-034]", async () => {
    const raw = await start({ state, args: configure({}, "quiet"), raw: true })
    raw.send('{"jsonrpc":"2.0","id":"early","method":"session/list","params":{}}\n')
    assert.strictEqual((await raw.answerTo("early")).error?.code, -32_600)
    raw.send('{"jsonrpc":"2.0","id":"bad","method":"initialize","params":{"protocolVersion":"1"}}\n')
    assert.strictEqual((await raw.answerTo("bad")).error?.code, -32_602)
    raw.send('{"jsonrpc":"2.0","id":"far","method":"initialize","params":{"protocolVersion":99}}\n')
    const { result } = await raw.answerTo("far")
    assert.deepInclude(result, { protocolVersion: 1, authMethods: [] })
    assert.deepStrictEqual(result?.["agentCapabilities"], {
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: true },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      auth: {}
    })
    raw.send('{"jsonrpc":"2.0","id":"again","method":"initialize","params":{"protocolVersion":1}}\n')
    assert.deepStrictEqual((await raw.answerTo("again")).result, result)
    assert.isFalse(fs.existsSync(path.join(root, "agent-quiet")), "no agent was started")
    assert.deepStrictEqual(await raw.end(), { code: 0, signal: null })
  })

  it("a request before initialize is refused, and so is a way to sign in that is none [ACP-032, ACP-035]", async () => {
    const raw = await start({ state, args: configure({}, "quiet"), raw: true })
    raw.send('{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n')
    assert.strictEqual((await raw.answerTo(1)).error?.code, -32_600)
    assert.strictEqual(await reasonOf(program.agent.request("authenticate", { methodId: "none" })), "-32602 invalid")
  })

  it("ids are echoed as they came, also two at once [ACP-007]", async () => {
    const ids = ["", "a", -1, 0.5, 9_007_199_254_740_991]
    for (const id of ids) {
      program.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"session/list","params":{}}\n`)
      assert.isDefined((await program.answerTo(id)).result)
    }
    const twice = '{"jsonrpc":"2.0","id":"twice","method":"session/list","params":{}}\n'
    program.send(twice + twice)
    assert.isDefined((await program.answerTo("twice", 1)).result)
  })

  it("unknown methods are refused and unknown notifications ignored [ACP-009, ACP-038, ACP-080]", async () => {
    for (const method of ["no/such", "_tackroom/x", "logout", "session/fork"]) {
      program.send(`{"jsonrpc":"2.0","id":"m-${method}","method":"${method}","params":{}}\n`)
      assert.strictEqual((await program.answerTo(`m-${method}`)).error?.code, -32_601, method)
    }
    program.send('{"jsonrpc":"2.0","method":"no/such"}\n')
    await program.agent.request("session/list", {})
  })

  it("hostile frames are each refused, and the connection goes on [ACP-002, ACP-003, ACP-004, ACP-005]", async () => {
    const before = program.frames.filter(({ id }) => id === null).length
    program.send(new Uint8Array([0xff, 0xfe, 0x0a]))
    program.send("{\n[]\n")
    program.send(`{"jsonrpc":"2.0","id":"big","method":"x","params":"${"y".repeat(33_554_432)}"}\n`)
    program.send('{"jsonrpc":"2.0","id":"after","method":"session/list","params":{}}\n')
    assert.isDefined((await program.answerTo("after")).result)
    const refused = program.frames.filter(({ id }) => id === null).slice(before)
    assert.deepStrictEqual(
      refused.map(({ error }) => [error?.code, error?.data?.["reason"]]),
      [
        [-32_700, "bad_utf8"],
        [-32_700, "bad_json"],
        [-32_600, "batch"],
        [-32_600, "frame_too_large"]
      ]
    )
  })
})

describe("sessions", () => {
  it("a session is set up where it is asked for, or refused with the reason [ACP-060, ACP-215, ACP-216]", async () => {
    const sessionId = await open()
    assert.match(sessionId, /^ses_/)
    const attempt = (params: Partial<acp.NewSessionRequest>) =>
      reasonOf(program.agent.request("session/new", { cwd: project, mcpServers: [], ...params }))
    const stdio = { name: "a", command: "/bin/true", args: [], env: [] }
    assert.strictEqual(await attempt({ cwd: "relative" }), "-32602 cwd_not_absolute")
    assert.strictEqual(await attempt({ cwd: path.join(root, "nowhere") }), "-32602 cwd_not_found")
    assert.strictEqual(await attempt({ cwd: agentProgram }), "-32602 cwd_not_found")
    assert.strictEqual(await attempt({ additionalDirectories: [root] }), "-32602 directories_unsupported")
    assert.strictEqual(await attempt({ mcpServers: [stdio, stdio] }), "-32602 mcp_invalid")
    assert.strictEqual(await attempt({ mcpServers: [{ ...stdio, command: "true" }] }), "-32602 mcp_invalid")
    const remote = { type: "http" as const, name: "a", headers: [] }
    assert.strictEqual(await attempt({ mcpServers: [{ ...remote, url: "http://example.com" }] }), "-32602 mcp_invalid")
    assert.strictEqual(
      await attempt({ mcpServers: [{ ...remote, url: "https://example.com" }] }),
      "-32602 mcp_unsupported"
    )
  })

  it("nothing is said of a session before the answer that names it [ACP-062]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "hello")
    const index = program.frames.findIndex(({ result }) => result?.["sessionId"] === sessionId)
    const first = program.frames.findIndex((frame) => frame.params?.["sessionId"] === sessionId)
    assert.isTrue(index >= 0 && first > index)
  })

  it("a session that is not set up here is not found, by any call [ACP-061]", async () => {
    const gone = { code: -32_002, data: { sessionId: "ses_NONE" } }
    const { agent } = program
    const sessionId = "ses_NONE"
    const prompt = [{ type: "text" as const, text: "hi" }]
    assert.deepStrictEqual(await refusal(agent.request("session/prompt", { sessionId, prompt })), gone)
    assert.deepStrictEqual(await refusal(agent.request("session/set_mode", { sessionId, modeId: "x" })), gone)
    assert.deepStrictEqual(
      await refusal(agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })),
      gone
    )
    assert.deepStrictEqual(await refusal(agent.request("session/resume", { sessionId, cwd: project })), gone)
    for (const method of ["session/close", "session/delete"]) {
      program.send(`${JSON.stringify({ jsonrpc: "2.0", id: method, method, params: { sessionId } })}\n`)
      assert.deepStrictEqual((await program.answerTo(method)).error?.code, -32_002)
    }
  })

  it("load tells the transcript before its answer, under the ids of the live turn, and nothing twice [ACP-063, ACP-064, ACP-065, ACP-067]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "tool")
    await program.prompt(sessionId, "everything")
    const live = program.updates(sessionId)
    const liveIds = new Set(
      live.flatMap((update) => ("messageId" in update && update.messageId != null ? [update.messageId] : []))
    )
    await program.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })
    const replayed = program.updates(sessionId).slice(live.length)
    assert.deepStrictEqual(
      replayed.map(({ sessionUpdate }) => sessionUpdate),
      [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",
        "agent_message_chunk",
        "user_message_chunk",
        "agent_message_chunk",
        "agent_message_chunk",
        "plan",
        "available_commands_update",
        "session_info_update",
        "usage_update"
      ]
    )
    const call = replayed.find((update) => update.sessionUpdate === "tool_call")
    assert.deepInclude(call, { toolCallId: "c1", status: "completed", kind: "execute", rawOutput: { files: ["a"] } })
    const ids = replayed.flatMap((update) =>
      update.sessionUpdate === "agent_message_chunk" && update.messageId != null ? [update.messageId] : []
    )
    assert.isTrue(ids.length > 0 && ids.every((id) => liveIds.has(id)))
    await program.prompt(sessionId, "hello")
    const after = program.updates(sessionId).slice(live.length + replayed.length)
    assert.isFalse(
      after.some(({ sessionUpdate }) => sessionUpdate === "available_commands_update" || sessionUpdate === "plan")
    )
  })

  it("resume tells nothing, and the session goes on [ACP-069]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "hello")
    const before = program.updates(sessionId).length
    await program.agent.request("session/resume", { sessionId, cwd: project })
    assert.strictEqual(program.updates(sessionId).length, before)
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
  })

  it("load and resume want the session's own directory, and a session at rest; so does a prompt [ACP-070, ACP-112]", async () => {
    const sessionId = await open()
    const { agent } = program
    assert.strictEqual(
      await reasonOf(agent.request("session/load", { sessionId, cwd: root, mcpServers: [] })),
      "-32602 cwd_mismatch"
    )
    const link = path.join(root, `link-${sessionId}`)
    fs.symlinkSync(project, link)
    await agent.request("session/resume", { sessionId, cwd: link })
    const running = program.prompt(sessionId, "long")
    await shown(sessionId, "agent_message_chunk")
    assert.strictEqual(
      await reasonOf(agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })),
      "-32600 session_busy"
    )
    assert.strictEqual(
      await reasonOf(agent.request("session/resume", { sessionId, cwd: project })),
      "-32600 session_busy"
    )
    assert.strictEqual(await reasonOf(program.prompt(sessionId, "hello")), "-32600 session_busy")
    await agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
  })

  it("the list has what was made here, newest first, by directory, in pages with positions of their own [ACP-074, ACP-075, ACP-076]", async () => {
    const other = path.join(root, "other")
    fs.mkdirSync(other, { recursive: true })
    const first = await program.newSession(other)
    const second = await program.newSession(other)
    await program.prompt(first, "hello")
    const { agent } = program
    const { sessions } = await agent.request("session/list", { cwd: other })
    assert.deepStrictEqual(
      sessions.map(({ sessionId }) => sessionId),
      [first, second]
    )
    assert.isTrue(sessions.every(({ cwd, updatedAt }) => cwd === other && /^\d{4}-.*Z$/u.test(updatedAt ?? "")))
    assert.deepStrictEqual((await agent.request("session/list", { cwd: path.join(root, "nowhere") })).sessions, [])
    assert.strictEqual(await reasonOf(agent.request("session/list", { cwd: "relative" })), "-32602 cwd_not_absolute")
    assert.strictEqual(await reasonOf(agent.request("session/list", { cursor: "what" })), "-32602 bad_cursor")
  })

  it("close cancels, frees the agent's process and keeps the session; delete removes it [ACP-077, ACP-078]", async () => {
    const sessionId = await open()
    const running = program.prompt(sessionId, "long")
    await shown(sessionId, "agent_message_chunk")
    const starts = agentLog().filter((line) => line.startsWith("start")).length
    await program.agent.request("session/close", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
    assert.isTrue(agentLog().filter((line) => line.startsWith("end")).length > 0)
    assert.strictEqual((await refusal(program.prompt(sessionId, "hello"))).code, -32_002)
    const listed = async () =>
      (await program.agent.request("session/list", { cwd: project })).sessions.some(
        (info) => info.sessionId === sessionId
      )
    assert.isTrue(await listed())
    await program.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
    assert.strictEqual(agentLog().filter((line) => line.startsWith("start")).length, starts + 1)
    await program.agent.request("session/delete", { sessionId })
    assert.isFalse(await listed())
    const again = program.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })
    assert.strictEqual((await refusal(again)).code, -32_002)
  })

  it("what the agent's own conversation says when it is gone, or cannot be opened, is told [ACP-072]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "hello")
    await program.agent.request("session/close", { sessionId })
    const kept = path.join(root, "agent-config")
    const upstream =
      agentLog()
        .findLast((line) => line.startsWith("new "))
        ?.split(" ")[1] ?? ""
    fs.rmSync(path.join(kept, `${upstream}.json`))
    const before = program.updates(sessionId).length
    const gone = await refusal(program.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] }))
    assert.deepStrictEqual(gone, { code: -32_002, data: { reason: "session_missing", sessionId } })
    assert.strictEqual(program.updates(sessionId).length, before)
  })
})

describe("choices", () => {
  it("modes and options are the agent's; one that is set is in force and mirrored [ACP-081, ACP-082, ACP-084]", async () => {
    const made = await program.agent.request("session/new", { cwd: project, mcpServers: [] })
    const { sessionId } = made
    assert.deepStrictEqual(
      made.modes?.availableModes.map(({ id }) => id),
      ["default", "yolo"]
    )
    const options = made.configOptions ?? []
    assert.deepStrictEqual(
      options.map(({ category, currentValue, id }) => [id, category, currentValue]),
      [
        ["model", "model", "large"],
        ["mode", "mode", "yolo"],
        ["effort", "thought_level", "high"]
      ]
    )
    await program.agent.request("session/set_mode", { sessionId, modeId: "default" })
    await shown(sessionId, "current_mode_update")
    const set = await program.agent.request("session/set_config_option", {
      sessionId,
      configId: "model",
      value: "small"
    })
    assert.deepStrictEqual(
      set.configOptions.map(({ currentValue, id }) => [id, currentValue]),
      [
        ["model", "small"],
        ["mode", "default"],
        ["effort", "high"]
      ]
    )
    assert.isTrue(kinds(sessionId).includes("config_option_update"))
    const { agent } = program
    assert.strictEqual(
      await reasonOf(agent.request("session/set_mode", { sessionId, modeId: "no" })),
      "-32602 unknown_mode"
    )
    const bad = { sessionId, configId: "none", value: "x" }
    assert.strictEqual(await reasonOf(agent.request("session/set_config_option", bad)), "-32602 unknown_option")
    const worse = { sessionId, configId: "model", value: "x" }
    assert.strictEqual(await reasonOf(agent.request("session/set_config_option", worse)), "-32602 bad_value")
  })

  it("a choice while a turn runs is answered at once [ACP-085]", async () => {
    const sessionId = await open()
    const running = program.prompt(sessionId, "long")
    await shown(sessionId, "agent_message_chunk")
    await program.agent.request("session/set_mode", { sessionId, modeId: "default" })
    await program.agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
  })
})

describe("prompts", () => {
  it("a turn's updates come before its answer, the user's words are not repeated, and a call is told of once [ACP-114, ACP-115, ACP-118, ACP-119, ACP-120]", async () => {
    const sessionId = await open()
    const { _meta, stopReason } = await program.prompt(sessionId, "tool")
    assert.strictEqual(stopReason, "end_turn")
    assert.strictEqual(program.text(sessionId), "Let me see. Done.")
    assert.isFalse(kinds(sessionId).includes("user_message_chunk"))
    const [first, ...more] = calls(sessionId, "c1")
    assert.deepInclude(first, { sessionUpdate: "tool_call", title: "ls", kind: "execute", status: "pending" })
    assert.isTrue(more.length > 0 && more.every(({ sessionUpdate }) => sessionUpdate === "tool_call_update"))
    const last = more.at(-1)
    assert.deepInclude(last, { status: "completed", rawOutput: { files: ["a"] } })
    const content = last?.sessionUpdate === "tool_call_update" ? (last.content ?? []) : []
    assert.deepStrictEqual(
      content.map(({ type }) => type),
      ["diff", "content"]
    )
    const answered = program.frames.findIndex(
      ({ result }) => result?.["_meta"] !== undefined && JSON.stringify(result["_meta"]) === JSON.stringify(_meta)
    )
    const last2 = program.frames.findLastIndex(
      (frame) => frame.method === "session/update" && frame.params?.["sessionId"] === sessionId
    )
    assert.isTrue(answered > last2)
  })

  it("the answer says which turn it was, where it ended in the journal, and what it cost [ACP-122]", async () => {
    const sessionId = shared
    const { _meta } = await program.prompt(sessionId, "hello")
    const ours = (_meta as { tackroom: Record<string, unknown> }).tackroom
    assert.match(String(ours["turnId"]), /^trn_/)
    assert.isTrue(Number.isSafeInteger(ours["cursor"]))
    assert.deepStrictEqual(ours["usage"], {
      input: null,
      output: null,
      reasoning: null,
      cacheRead: null,
      cacheWrite: null,
      rounds: null
    })
  })

  it("every way to stop has its word, and a failure is an error with its class [ACP-121]", async () => {
    const sessionId = shared
    const stop = async (reason: string) => (await program.prompt(sessionId, `stop ${reason}`)).stopReason
    assert.strictEqual(await stop("refusal"), "refusal")
    assert.strictEqual(await stop("max_tokens"), "max_tokens")
    assert.strictEqual(await stop("max_turn_requests"), "max_turn_requests")
    assert.strictEqual(await stop("cancelled"), "cancelled")
    const failed = await refusal(program.prompt(sessionId, "fail"))
    assert.strictEqual(failed.code, -32_603)
    assert.deepInclude(failed.data, { reason: "turn_failed" })
    const crashed = await refusal(program.prompt(sessionId, "crash"))
    assert.deepInclude(crashed.data, { reason: "turn_failed", runtimeCode: "harness_process_exited" })
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
  })

  it("what a prompt cannot hold is refused with its index, and no turn is started [ACP-110, ACP-111]", async () => {
    const sessionId = shared
    const before = agentLog().length
    const attempt = (prompt: Array<acp.ContentBlock>) =>
      refusal(program.agent.request("session/prompt", { sessionId, prompt }))
    const text = (words: string): acp.ContentBlock => ({ type: "text", text: words })
    const image: acp.ContentBlock = { type: "image", mimeType: "image/png", data: "AAAA" }
    assert.deepStrictEqual(await attempt([]), { code: -32_602, data: { reason: "empty_prompt" } })
    assert.deepStrictEqual(await attempt([text(" \n ")]), { code: -32_602, data: { reason: "empty_prompt" } })
    assert.deepStrictEqual(await attempt([text("a"), image]), {
      code: -32_602,
      data: { reason: "unsupported_content", index: 1 }
    })
    const many = Array.from({ length: 65 }, () => text("a"))
    assert.deepStrictEqual(await attempt(many), { code: -32_602, data: { reason: "prompt_too_large", index: 64 } })
    const large = [text("a".repeat(700_000)), text("b".repeat(400_000))]
    assert.deepStrictEqual(await attempt(large), { code: -32_602, data: { reason: "prompt_too_large", index: 1 } })
    const link: acp.ContentBlock = { type: "resource_link", uri: "ssh://x/y", name: "y" }
    assert.deepStrictEqual(await attempt([link]), { code: -32_602, data: { reason: "unsupported_content", index: 0 } })
    assert.strictEqual(agentLog().length, before)
    await program.agent.request("session/prompt", {
      sessionId,
      prompt: [
        text("see"),
        { type: "resource_link", uri: "file:///a/b.ts", name: "b.ts" },
        { type: "resource", resource: { uri: "file:///c.ts", text: "let c" } }
      ]
    })
    assert.strictEqual(agentLog().at(-1), `prompt ${JSON.stringify(["see\nfile:///a/b.ts\nfile:///c.ts\nlet c"])}`)
  })

  it("a submission is the client's to name: again it starts nothing, with other words it is refused [ACP-113]", async () => {
    const sessionId = shared
    const first = await program.prompt(sessionId, "hello", { submissionId: "mine" })
    const said = program.updates(sessionId).length
    const again = await program.prompt(sessionId, "hello", { submissionId: "mine" })
    const ours = (response: acp.PromptResponse) => (response._meta as { tackroom: Record<string, unknown> }).tackroom
    assert.strictEqual(again.stopReason, "end_turn")
    assert.deepInclude(ours(again), { duplicate: true, turnId: ours(first)["turnId"] })
    assert.strictEqual(program.updates(sessionId).length, said)
    assert.strictEqual(
      await reasonOf(program.prompt(sessionId, "other", { submissionId: "mine" })),
      "-32602 submission_conflict"
    )
    assert.strictEqual(await reasonOf(program.prompt(sessionId, "x", { submissionId: "" })), "-32602 invalid")
  })

  it("plans, usage, titles, commands, pictures and notices have their updates [ACP-123, ACP-124]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "everything")
    const said = program.updates(sessionId)
    const find = (kind: string) => said.find(({ sessionUpdate }) => sessionUpdate === kind)
    assert.deepInclude(find("plan"), { entries: [{ content: "one", priority: "high", status: "in_progress" }] })
    assert.deepInclude(find("usage_update"), { used: 10, size: 100, cost: { amount: 0.5, currency: "USD" } })
    assert.deepInclude(find("available_commands_update"), { availableCommands: [{ name: "go", description: "Goes" }] })
    assert.deepInclude(find("notice"), { severity: "warning", title: "Careful" })
    const blocks = said.flatMap((update) =>
      update.sessionUpdate === "agent_message_chunk" ? [update.content.type] : []
    )
    assert.deepStrictEqual(blocks, ["image", "resource_link"])
  })

  it("sessions work side by side, an open request of one does not hold up another [ACP-011]", async () => {
    const [first, second] = [await open(), await open()]
    let reached: () => void = () => undefined
    const isAsked = new Promise<void>((resolve) => {
      reached = resolve
    })
    answer = (request, signal) => {
      if (request.sessionId !== first) return allowing(request, signal)
      reached()
      return never(request, signal)
    }
    const waiting = program.prompt(first, "permission")
    await isAsked
    assert.strictEqual((await program.prompt(second, "hello")).stopReason, "end_turn")
    assert.strictEqual((await program.prompt(second, "permission")).stopReason, "end_turn")
    await program.agent.notify("session/cancel", { sessionId: first })
    assert.strictEqual((await waiting).stopReason, "cancelled")
    answer = allowing
  })

  it("a cancel that is read with its prompt cancels it, and one before it does not [ACP-008, ACP-180, ACP-182]", async () => {
    const sessionId = shared
    const prompt = JSON.stringify({
      jsonrpc: "2.0",
      id: "both",
      method: "session/prompt",
      params: { sessionId, prompt: [{ type: "text", text: "long" }] }
    })
    const cancel = JSON.stringify({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId } })
    const before = program.frames.length
    program.send(`${cancel}\n${prompt}\n${cancel}\n${cancel}\n`)
    assert.deepInclude((await program.answerTo("both")).result, { stopReason: "cancelled" })
    assert.isFalse(program.frames.slice(before).some((frame) => frame.method === undefined && frame.id === null))
    assert.strictEqual((await program.prompt(sessionId, "hello")).stopReason, "end_turn")
  })

  it("a request that is cancelled ends with its own error; a prompt ends as a cancelled turn [ACP-183]", async () => {
    const sessionId = await open()
    const prompt = (id: string) =>
      `${JSON.stringify({
        jsonrpc: "2.0",
        id,
        method: "session/prompt",
        params: { sessionId, prompt: [{ type: "text", text: "long" }] }
      })}\n`
    program.send(prompt("p"))
    await shown(sessionId, "agent_message_chunk")
    program.send('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}\n')
    assert.deepInclude((await program.answerTo("p")).result, { stopReason: "cancelled" })
    const slow = JSON.stringify({
      jsonrpc: "2.0",
      id: "n",
      method: "session/new",
      params: { cwd: project, mcpServers: [] }
    })
    program.send(`${slow}\n{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"n"}}\n`)
    assert.strictEqual((await program.answerTo("n")).error?.code, -32_800)
  })

  it("texts of any kind go through unharmed [ACP-006]", async () => {
    const sessionId = shared
    const words = "\u2028 \u0000 \ud83d\ude00 \n end"
    await program.prompt(sessionId, words)
    assert.isTrue(program.text(sessionId).endsWith(`You said: ${words}`))
  })

  it("what is said after a turn waits for the next one and comes before it; choices are told at once [ACP-125]", async () => {
    const sessionId = await open()
    await program.prompt(sessionId, "hello")
    await program.agent.request("session/set_mode", { sessionId, modeId: "default" })
    await shown(sessionId, "current_mode_update")
    assert.strictEqual(program.text(sessionId), "Hello, world.")
    await program.prompt(sessionId, "hello")
    assert.strictEqual(program.text(sessionId), "Hello, world.one more thingHello, world.")
  })

  it("what a client adds under _meta is tolerated and not understood [ACP-242]", async () => {
    const _meta = { other: { deep: [1, null] }, tackroom: { unknown: true } }
    const made = await program.agent.request("session/new", { cwd: project, mcpServers: [], _meta })
    const prompt = [{ type: "text" as const, text: "hello", _meta }]
    const request: acp.PromptRequest = { sessionId: made.sessionId, prompt, _meta }
    assert.strictEqual((await program.agent.request("session/prompt", request)).stopReason, "end_turn")
  })

  it("an agent deaf to a cancel is ended, and its prompt is answered as cancelled [ACP-181]", async () => {
    const sessionId = await open()
    const running = program.prompt(sessionId, "deaf")
    await shown(sessionId, "agent_message_chunk")
    await program.agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
  }, 40_000)

  it("a turn of many updates is told whole and in order to a client that reads slowly [ACP-117]", async () => {
    const sessionId = await open()
    program.child.stdout.pause()
    const running = program.prompt(sessionId, "burst 20000")
    program.child.stdout.resume()
    await running
    assert.strictEqual(program.text(sessionId).length, 20_000)
  })
})

describe("permissions", () => {
  it("a request is readable alone, comes after its call, and its answer decides [ACP-150, ACP-152]", async () => {
    const sessionId = await open()
    const [request] = await Promise.all([asked(sessionId), program.prompt(sessionId, "permission")])
    assert.deepStrictEqual(request.params?.["toolCall"], {
      toolCallId: "p1",
      title: "run p1",
      kind: "execute",
      status: "pending",
      rawInput: { command: "run p1" }
    })
    assert.deepStrictEqual(request.params?.["options"], [
      { optionId: "yes", name: "Yes", kind: "allow_once" },
      { optionId: "no", name: "No", kind: "reject_once" }
    ])
    const told = program.frames.findIndex(
      (frame) =>
        (frame.params?.["update"] as { toolCallId?: string } | undefined)?.toolCallId === "p1" &&
        frame.params?.["sessionId"] === sessionId
    )
    assert.isTrue(told >= 0 && told < program.frames.indexOf(request))
    assert.deepInclude(calls(sessionId, "p1").at(-1), { status: "completed" })
  })

  it("what was not offered, a cancel and an error refuse the call, and the turn goes on [ACP-153]", async () => {
    const answers: ReadonlyArray<Answer> = [
      cancelling,
      () => Promise.resolve({ outcome: { outcome: "selected", optionId: "made up" } }),
      () => Promise.reject(new Error("the client broke"))
    ]
    for (const one of answers) {
      const sessionId = await open()
      answer = one
      assert.strictEqual((await program.prompt(sessionId, "permission")).stopReason, "end_turn")
      assert.deepInclude(calls(sessionId, "p1").at(-1), { status: "failed" })
    }
    answer = allowing
  })

  it("requests that are open together are settled each by its own answer [ACP-154]", async () => {
    const sessionId = await open()
    const open2 = new Map<string, (response: acp.RequestPermissionResponse) => void>()
    answer = (request) =>
      new Promise((resolve) => {
        open2.set(request.toolCall.toolCallId, resolve)
        if (open2.size < 2) return
        open2.get("q2")?.({ outcome: { outcome: "selected", optionId: "yes" } })
        open2.get("q1")?.({ outcome: { outcome: "selected", optionId: "no" } })
      })
    assert.strictEqual((await program.prompt(sessionId, "parallel")).stopReason, "end_turn")
    answer = allowing
    assert.deepInclude(calls(sessionId, "q1").at(-1), { status: "failed" })
    assert.deepInclude(calls(sessionId, "q2").at(-1), { status: "completed" })
  })

  it("a cancel takes an open request back without waiting for the client [ACP-155, ACP-184]", async () => {
    const sessionId = await open()
    let taken = false
    answer = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          taken = true
          resolve({ outcome: { outcome: "selected", optionId: "yes" } })
        })
      })
    const running = program.prompt(sessionId, "permission")
    const request = await asked(sessionId)
    await program.agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
    answer = allowing
    assert.isTrue(taken)
    const withdrawn = program.frames.find(
      (frame) => frame.method === "$/cancel_request" && frame.params?.["requestId"] === request.id
    )
    assert.isDefined(withdrawn)
    assert.deepInclude(calls(sessionId, "p1").at(-1), { status: "failed" })
  })
})

describe("questions", () => {
  it("a question is one form, and what is filled in goes back [ACP-160, ACP-161, ACP-162, ACP-165]", async () => {
    const seen: Array<acp.CreateElicitationRequest> = []
    const ask = async (response: acp.CreateElicitationResponse) => {
      form = (request) => {
        seen.push(request)
        return Promise.resolve(response)
      }
      const sessionId = await open()
      const { stopReason } = await program.prompt(sessionId, "question")
      return [stopReason, program.text(sessionId)]
    }
    assert.deepStrictEqual(await ask({ action: "accept", content: { q1: "Green" } }), [
      "end_turn",
      '{"action":"accept","content":{"colour":"g"}}'
    ])
    assert.deepStrictEqual(await ask({ action: "decline" }), ["end_turn", '{"action":"decline"}'])
    const [request] = seen
    assert.deepInclude(request, { mode: "form", message: "Which colour?" })
    const schema = request !== undefined && "requestedSchema" in request ? request.requestedSchema : undefined
    assert.deepStrictEqual((schema as acp.ElicitationSchema).properties?.["q1"], {
      type: "string",
      title: "colour",
      description: "Which colour?",
      oneOf: [
        { const: "Red", title: "Red" },
        { const: "Green", title: "Green" }
      ]
    })
    assert.isFalse(
      program.frames.some(
        ({ method, params }) => method === "elicitation/create" && JSON.stringify(params).includes("run p1")
      )
    )
  })

  it("without forms a question is a choice; notices wait for the answer of the turn [ACP-163, ACP-124, ACP-210]", async () => {
    const plain = await start({
      state: path.join(root, "state-plain"),
      args: configure({}, "plain"),
      permission: (request) => {
        const green = request.options.find(({ name }) => name === "Green")
        return Promise.resolve(
          green === undefined ? allow(request) : { outcome: { outcome: "selected", optionId: green.optionId } }
        )
      }
    })
    const sessionId = await plain.newSession(project)
    await plain.prompt(sessionId, "question")
    assert.strictEqual(plain.text(sessionId), '{"action":"accept","content":{"colour":"g"}}')
    const request = plain.frames.find(({ method }) => method === "session/request_permission")
    assert.deepStrictEqual(request?.params?.["_meta"], { tackroom: { question: true } })
    assert.deepStrictEqual(
      (request?.params?.["options"] as ReadonlyArray<acp.PermissionOption> | undefined)?.map(({ kind, name }) => [
        name,
        kind
      ]),
      [
        ["Red", "allow_once"],
        ["Green", "allow_once"],
        ["Skip", "reject_once"]
      ]
    )
    const { _meta } = await plain.prompt(sessionId, "everything")
    assert.isFalse(kinds(sessionId, plain).includes("notice"))
    const { notices } = (_meta as { tackroom: { notices: ReadonlyArray<unknown> } }).tackroom
    assert.deepStrictEqual(notices[0], { severity: "warning", title: "Careful" })
    assert.isFalse(plain.frames.some(({ method }) => method === "elicitation/create"))
  })
})

describe("agents that need more", () => {
  it("an agent that is not signed in is said to be at once, and its list works [ACP-036]", async () => {
    const locked = await start({ state: path.join(root, "state-locked"), args: configure({ auth: true }, "locked") })
    assert.strictEqual(await reasonOf(locked.newSession(project)), "-32000 auth_required")
    assert.deepStrictEqual((await locked.agent.request("session/list", {})).sessions, [])
  })

  it("an agent that says nothing is given up, and the request is answered [ACP-010]", async () => {
    const silent = await start({
      state: path.join(root, "state-silent"),
      args: configure({ silent: true }, "silent", { initializeTimeoutMs: 300 })
    })
    assert.strictEqual(await reasonOf(silent.newSession(project)), "-32603 harness_unavailable")
  })

  it("a request that nobody answers in time is taken back, and is no grant [ACP-156]", async () => {
    const timed = await start({
      state: path.join(root, "state-timed"),
      args: [...configure({}, "timed"), "--answer-timeout", "1"],
      permission: never
    })
    const sessionId = await timed.newSession(project)
    assert.strictEqual((await timed.prompt(sessionId, "permission")).stopReason, "cancelled")
    const request = timed.frames.find(({ method }) => method === "session/request_permission")
    assert.isTrue(
      timed.frames.some(({ method, params }) => method === "$/cancel_request" && params?.["requestId"] === request?.id)
    )
    const last = timed.updates(sessionId).findLast(({ sessionUpdate }) => sessionUpdate === "tool_call_update")
    assert.deepInclude(last, { status: "failed" })
  })

  it("a cap of rounds is not dropped for an agent that reports none [ACP-126]", async () => {
    const capped = await start({
      state: path.join(root, "state-capped"),
      args: [...configure({}, "capped"), "--max-rounds", "3"]
    })
    assert.strictEqual(await reasonOf(capped.newSession(project)), "-32603 harness_unavailable")
  })

  it("a time that is over stops the turn, and the answer says why [ACP-126]", async () => {
    const hurried = await start({
      state: path.join(root, "state-hurried"),
      args: [...configure({}, "hurried"), "--timeout", "0.5"]
    })
    const sessionId = await hurried.newSession(project)
    const { _meta, stopReason } = await hurried.prompt(sessionId, "long")
    assert.strictEqual(stopReason, "max_turn_requests")
    assert.strictEqual((_meta as { tackroom: { stop: string } }).tackroom.stop, "timeout")
  })
})

describe("everything that was written", () => {
  it("fits the protocol's own schema, and no frame is over its size [ACP-012, ACP-006]", () => {
    const problems = programs.flatMap(({ frames, methods }) =>
      frames.flatMap((frame) => [
        ...schemaProblems(frame, methods),
        ...(JSON.stringify(frame).length > 1_048_576 ? ["a frame is too large"] : [])
      ])
    )
    assert.deepStrictEqual([...new Set(problems)].slice(0, 10), [])
    assert.isTrue(programs.reduce((count, { frames }) => count + frames.length, 0) > 200)
  })
})
