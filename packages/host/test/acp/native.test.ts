import { afterAll, assert, describe, it } from "@effect/vitest"
import { isGroupAlive } from "@tackroom/sdk/process"
import Database from "better-sqlite3"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { makeFolders, refusal, startAcp } from "./AcpProgram.ts"

/** Our own agent behind the face, its model played from a file: every call of it is a real one. */

const roots: Array<string> = []

afterAll(() => {
  for (const root of roots) fs.rmSync(root, { recursive: true, force: true })
})

type Step = Readonly<Record<string, unknown>>

const scene = (responses: ReadonlyArray<ReadonlyArray<Step>>) => {
  const folders = makeFolders()
  roots.push(folders.root)
  const scenario = path.join(folders.root, "scenario.json")
  fs.writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "acp", default: responses, exhausted: "echo" }))
  const config = path.join(folders.root, "config.json")
  fs.writeFileSync(config, JSON.stringify({ providers: [{ name: "script", api: "script", scenario }] }))
  return { ...folders, args: ["--config", config, "--model", "script/acp"] }
}

const run = (command: string): Step => ({ call: { tool: "shell.run", arguments: { command } } })

/** Process groups of the children that a process has. */
const childrenOf = (pid: number): ReadonlyArray<number> =>
  spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
    .stdout.split("\n")
    .map((line) => line.trim().split(/\s+/u).map(Number))
    .flatMap(([child, parent]) => (parent === pid && child !== undefined ? [child] : []))

const waitingFor = () => {
  let reached: () => void = () => undefined
  const asked = new Promise<void>((resolve) => {
    reached = resolve
  })
  return { asked, never: () => (reached(), new Promise<never>(() => undefined)) }
}

describe("tackroom acp with its own agent", () => {
  it("a permission is open, the client cancels; another process tells it again [ACP-068, ACP-155, ACP-180, ACP-184, ACP-241]", async () => {
    const { args, project, state } = scene([[run("rm -r build")]])
    const { asked, never } = waitingFor()
    const first = await startAcp({ state, args, permission: never, capabilities: { session: { notices: {} } } })
    assert.deepInclude(first.frames[0]?.result?.["agentInfo"], { name: "tackroom", title: "Tackroom (scripted model)" })
    const sessionId = await first.newSession(project)
    const running = first.prompt(sessionId, "Tidy up")
    await asked
    const told = first.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === "tool_call")
    assert.deepInclude(told, { name: "shell__run", kind: "execute", status: "pending" })
    const request = first.frames.find(({ method }) => method === "session/request_permission")
    assert.deepInclude(request?.params?.["toolCall"], {
      title: "rm -r build",
      kind: "execute",
      status: "pending",
      rawInput: { command: "rm -r build" }
    })
    await first.agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await running).stopReason, "cancelled")
    assert.isTrue(
      first.frames.some(({ method, params }) => method === "$/cancel_request" && params?.["requestId"] === request?.id)
    )
    const last = first.updates(sessionId).findLast(({ sessionUpdate }) => sessionUpdate === "tool_call_update")
    assert.deepInclude(last, { status: "failed" })
    await first.kill()

    const second = await startAcp({ state, args })
    await second.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })
    const [said, call] = second.updates(sessionId)
    assert.deepInclude(said, { sessionUpdate: "user_message_chunk", content: { type: "text", text: "Tidy up" } })
    assert.deepInclude(call, {
      sessionUpdate: "tool_call",
      toolCallId: told?.sessionUpdate === "tool_call" ? told.toolCallId : "",
      title: "rm -r build",
      status: "failed",
      rawInput: { command: "rm -r build" }
    })
    const prompt = [{ type: "text" as const, text: "hi" }]
    assert.deepStrictEqual(await refusal(second.agent.request("session/prompt", { sessionId: "ses_NONE", prompt })), {
      code: -32_002,
      data: { sessionId: "ses_NONE" }
    })
    assert.strictEqual((await second.prompt(sessionId, "go on")).stopReason, "end_turn")
    assert.deepStrictEqual(await second.end(), { code: 0, signal: null })
  }, 60_000)

  it("killed with a request open, the next process settles it, says so, and runs nothing again [ACP-068, ACP-116, ACP-241]", async () => {
    const { args, project, state } = scene([[{ text: "I make it now." }, run("touch made")]])
    const { asked, never } = waitingFor()
    const first = await startAcp({ state, args, permission: never })
    const sessionId = await first.newSession(project)
    const running = first.prompt(sessionId, "Make it").catch(() => "gone")
    await asked
    const children = childrenOf(first.child.pid ?? 0)
    const said = first.text(sessionId)
    await first.kill()
    assert.strictEqual(await running, "gone")
    assert.strictEqual(said, "I make it now.")

    const second = await startAcp({ state, args })
    await second.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] })
    const call = second.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === "tool_call")
    assert.deepInclude(call, { status: "failed", title: "touch made" })
    assert.match(JSON.stringify(call), /before anybody answered/u)
    // What was told had been committed.
    assert.strictEqual(second.text(sessionId), said)
    assert.isFalse(second.frames.some(({ method }) => method === "session/request_permission"))
    await second.end()
    assert.isFalse(fs.existsSync(path.join(project, "made")))
    assert.deepStrictEqual(children.filter(isGroupAlive), [])
  }, 60_000)

  it("a session whose turn runs in another process is busy, and that turn is not touched [ACP-070]", async () => {
    const { args, project, state } = scene([[run("true")], [{ text: "Done." }]])
    const { asked, never } = waitingFor()
    let settle: (() => void) | undefined
    const first = await startAcp({
      state,
      args,
      permission: (request) =>
        new Promise((resolve) => {
          settle = () => resolve({ outcome: { outcome: "selected", optionId: request.options[0]?.optionId ?? "" } })
          void never()
        })
    })
    const sessionId = await first.newSession(project)
    const running = first.prompt(sessionId, "Run it")
    await asked
    const second = await startAcp({ state, args })
    for (const method of ["session/load", "session/resume"] as const) {
      const attempt = second.agent.request(method, { sessionId, cwd: project, mcpServers: [] })
      assert.deepStrictEqual(await refusal(attempt), { code: -32_600, data: { reason: "session_busy" } })
    }
    const attempt = await refusal(second.agent.request("session/delete", { sessionId }))
    assert.deepStrictEqual(attempt, { code: -32_600, data: { reason: "session_busy" } })
    settle?.()
    assert.strictEqual((await running).stopReason, "end_turn")
    assert.strictEqual(first.text(sessionId), "Done.")
    await Promise.all([first.end(), second.end()])
  }, 60_000)

  it("the end of its input cancels what runs, answers it, and leaves no process [ACP-185, ACP-186]", async () => {
    const { args, project, state } = scene([[run("sleep 60")]])
    const program = await startAcp({ state, args })
    const sessionId = await program.newSession(project)
    program.send(
      `${JSON.stringify({
        jsonrpc: "2.0",
        id: "p",
        method: "session/prompt",
        params: { sessionId, prompt: [{ type: "text", text: "Wait" }] }
      })}\n`
    )
    await program.until(() =>
      program
        .updates(sessionId)
        .find((update) => update.sessionUpdate === "tool_call_update" && update.status === "in_progress")
    )
    const children = childrenOf(program.child.pid ?? 0)
    assert.isTrue(children.length > 0)
    const ended = await program.end()
    assert.deepStrictEqual(ended, { code: 0, signal: null })
    assert.deepInclude((await program.answerTo("p")).result, { stopReason: "cancelled" })
    assert.deepStrictEqual(children.filter(isGroupAlive), [])
  }, 60_000)

  it("a transcript that cannot be read whole is an error and no result [ACP-066]", async () => {
    const { args, project, state } = scene([])
    const first = await startAcp({ state, args })
    const sessionId = await first.newSession(project)
    await first.prompt(sessionId, "Say something")
    await first.end()
    const db = new Database(path.join(state, "agent-runtime.db"))
    const spoilt = db.prepare("UPDATE tr_event SET payload = '{' WHERE session_id = ? AND seq = 3").run(sessionId)
    db.close()
    assert.strictEqual(spoilt.changes, 1)
    const second = await startAcp({ state, args })
    const refused = await refusal(second.agent.request("session/load", { sessionId, cwd: project, mcpServers: [] }))
    assert.strictEqual(refused.code, -32_603)
    await second.end()
  }, 60_000)

  it("what a tool shows while it runs, and what it gave, is its call's content [ACP-119]", async () => {
    const { args, project, state } = scene([
      [
        { call: { tool: "files.write", arguments: { path: "a.txt", content: "one\n" } } },
        run("echo hello; echo oops >&2")
      ],
      [{ text: "Done." }]
    ])
    const program = await startAcp({ state, args })
    const sessionId = await program.newSession(project)
    await program.prompt(sessionId, "Work")
    const contents = program
      .updates(sessionId)
      .flatMap((update) =>
        update.sessionUpdate === "tool_call_update" && update.status === "completed" ? [update.content ?? []] : []
      )
    assert.deepInclude(contents[0]?.[0], {
      type: "diff",
      path: path.join(project, "a.txt"),
      newText: "one\n",
      oldText: null
    })
    assert.include(JSON.stringify(contents[1]), "hello")
    assert.isTrue(fs.existsSync(path.join(project, "a.txt")))
    await program.end()
  }, 60_000)

  it("what does not fit on a page of the list is on the next one, and only there [ACP-074, ACP-076]", async () => {
    const { args, project, root, state } = scene([])
    const { agent, end, newSession } = await startAcp({ state, args })
    const made: Array<string> = []
    for (let n = 0; n < 53; n++) {
      const sessionId = await newSession(project)
      await agent.request("session/close", { sessionId })
      made.push(sessionId)
    }
    const first = await agent.request("session/list", { cwd: project })
    const cursor = first.nextCursor ?? ""
    const second = await agent.request("session/list", { cwd: project, cursor })
    assert.deepStrictEqual([first.sessions.length, second.sessions.length, second.nextCursor ?? null], [50, 3, null])
    const listed = [...first.sessions, ...second.sessions].map(({ sessionId }) => sessionId)
    assert.sameMembers(listed, made)
    for (const other of [{ cwd: root, cursor }, { cursor }]) {
      assert.deepStrictEqual(await refusal(agent.request("session/list", other)), {
        code: -32_602,
        data: { reason: "bad_cursor" }
      })
    }
    assert.deepStrictEqual(await end(), { code: 0, signal: null })
  }, 60_000)

  it("what was allowed for the session is asked once; the calls after it ask nobody [ACP-150, AGT-111]", async () => {
    const { args, project, state } = scene([
      [run("true")],
      [run("true")],
      [run("true"), run("true")],
      [{ text: "Done." }]
    ])
    const program = await startAcp({
      state,
      args,
      permission: ({ options }) => {
        const always = options.find(({ kind }) => kind === "allow_always")
        return Promise.resolve({ outcome: { outcome: "selected", optionId: always?.optionId ?? "" } })
      }
    })
    const sessionId = await program.newSession(project)
    assert.strictEqual((await program.prompt(sessionId, "Work")).stopReason, "end_turn")
    const methods = program.frames.flatMap(({ method }) => method ?? [])
    assert.strictEqual(methods.filter((method) => method === "session/request_permission").length, 1)
    assert.isFalse(methods.includes("$/cancel_request"))
    const approved = program
      .updates(sessionId)
      .filter(({ _meta }) => JSON.stringify(_meta) === '{"tackroom":{"autoApproved":true}}')
    assert.strictEqual(approved.length, 3)
    await program.end()
  }, 60_000)

  it("a command line that is not understood, or cannot start, says so and reads nothing", async () => {
    const { project, state } = scene([])
    const attempt = async (...args: ReadonlyArray<string>) => {
      const program = await startAcp({ state, args, raw: true })
      const { code } = await program.exit
      return [code, program.frames.length, program.stderr().split("\n")[0]] as const
    }
    assert.deepStrictEqual(await attempt("--nonsense"), [2, 0, "tackroom acp: Unknown option '--nonsense'"])
    const [code, frames] = await attempt("--config", path.join(project, "missing.json"))
    assert.deepStrictEqual([code, frames], [3, 0])
  }, 60_000)
})
