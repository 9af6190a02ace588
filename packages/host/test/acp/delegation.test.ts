import { afterAll, assert, describe, it } from "@effect/vitest"
import type * as acp from "@agentclientprotocol/sdk"
import { isGroupAlive } from "@tackroom/sdk/process"
import Database from "better-sqlite3"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { type AcpProgram, allow, makeFolders, startAcp } from "./AcpProgram.ts"
import { type Editor, everything, makeEditor } from "./EditorClient.ts"
import { schemaProblems } from "./ProtocolSchema.ts"

/** Our own agent behind the face, and a client that does itself what it can: every call is a real one. */

const roots: Array<string> = []
const programs: Array<AcpProgram> = []

afterAll(async () => {
  await Promise.all(programs.map((program) => program.end()))
  for (const root of roots) fs.rmSync(root, { recursive: true, force: true })
}, 30_000)

type Step = Readonly<Record<string, unknown>>

const call = (tool: string, args: unknown): Step => ({ call: { tool, arguments: args } })
const read = (file: string, more: object = {}) => call("files.read", { path: file, ...more })
const write = (file: string, content: string, more: object = {}) =>
  call("files.write", { path: file, content, ...more })
const edit = (file: string, from: string, to: string, more: object = {}) =>
  call("files.edit", { path: file, edits: [{ old: from, new: to }], ...more })
const run = (command: string, more: object = {}) => call("shell.run", { command, ...more })

/** A command that does not end by itself. */
const sleeping = [run("echo begun; sleep 60")]

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

interface Stage {
  readonly program: AcpProgram
  readonly editor: Editor
  readonly sessionId: string
  readonly project: string
  readonly state: string
  readonly file: (name: string) => string
}

/** A program whose model makes these calls, and a session of it. */
const stage = async (
  calls: ReadonlyArray<Step>,
  {
    capabilities = everything,
    cwd = (project) => project,
    permission = (request) => Promise.resolve(allow(request))
  }: {
    readonly capabilities?: acp.ClientCapabilities
    readonly cwd?: (project: string) => string
    readonly permission?: (request: acp.RequestPermissionRequest) => Promise<acp.RequestPermissionResponse>
  } = {}
): Promise<Stage> => {
  const { project, root, state } = makeFolders()
  roots.push(root)
  const scenario = path.join(root, "scenario.json")
  const responses = [...calls.map((one) => [one]), [{ text: "Done." }]]
  fs.writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "acp", default: responses, exhausted: "echo" }))
  const config = path.join(root, "config.json")
  fs.writeFileSync(config, JSON.stringify({ providers: [{ name: "script", api: "script", scenario }] }))
  const editor = makeEditor()
  const program = await startAcp({
    state,
    args: ["--config", config, "--model", "script/acp"],
    capabilities,
    permission,
    offer: editor.offer
  })
  programs.push(program)
  const sessionId = await program.newSession(cwd(project))
  return { program, editor, sessionId, project, state, file: (name) => path.join(project, name) }
}

type Ended = acp.ToolCallUpdate & { readonly sessionUpdate: "tool_call_update" }

/** The last word on each call, in order. */
const ends = ({ program, sessionId }: Stage): ReadonlyArray<Ended> =>
  program
    .updates(sessionId)
    .filter(
      (update): update is Ended =>
        update.sessionUpdate === "tool_call_update" && (update.status === "completed" || update.status === "failed")
    )

const outputs = (on: Stage): ReadonlyArray<unknown> => ends(on).map(({ rawOutput }) => rawOutput)

const textOf = (update: Ended | undefined): string =>
  (update?.content ?? [])
    .flatMap((content) => (content.type === "content" && content.content.type === "text" ? [content.content.text] : []))
    .join("\n")

/** The journaled events of a session. */
const journal = ({ sessionId, state }: Stage): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const db = new Database(path.join(state, "agent-runtime.db"), { readonly: true })
  const rows = db.prepare("SELECT type, payload FROM tr_event WHERE session_id = ? ORDER BY seq").all(sessionId)
  db.close()
  return (rows as ReadonlyArray<{ readonly type: string; readonly payload: string }>).map(({ payload, type }) => ({
    type,
    ...(JSON.parse(payload) as object)
  }))
}

/** Waits until a terminal is shown. */
const working = ({ program, sessionId }: Stage, terminalId: string) =>
  program.until(() =>
    program.updates(sessionId).find((update) => {
      const shown = update.sessionUpdate === "tool_call_update" ? update.content?.[0] : undefined
      return shown?.type === "terminal" && shown.terminalId === terminalId
    })
  )

const asked = ({ editor }: Stage) => editor.asked.map(([what]) => what)

describe("files of the client", () => {
  it("what the person has not saved is read, edited and written, and the disk stays as it is [ACP-211]", async () => {
    const on = await stage([
      read("a.txt", { start_line: 2, max_lines: 1 }),
      edit("a.txt", "unsaved", "edited", { expect_sha256: sha256("one\nunsaved\nthree\n") }),
      write("new/b.txt", "fresh\n"),
      read("a.txt", { encoding: "base64" }),
      call("files.list", {})
    ])
    const { editor, file, program, sessionId } = on
    fs.writeFileSync(file("a.txt"), "saved\n")
    editor.buffers.set(file("a.txt"), "one\nunsaved\nthree\n")
    assert.strictEqual((await program.prompt(sessionId, "Work")).stopReason, "end_turn")
    const [seen, edited, written, saved, list] = outputs(on)
    assert.deepStrictEqual(seen, {
      path: "a.txt",
      bytes: 18,
      sha256: sha256("one\nunsaved\nthree\n"),
      content: "unsaved\n",
      start_line: 2,
      end_line: 2,
      total_lines: 3,
      truncated: true
    })
    assert.deepStrictEqual(edited, { path: "a.txt", replacements: 1, sha256: sha256("one\nedited\nthree\n") })
    assert.deepStrictEqual(written, { path: "new/b.txt", bytes: 6, sha256: sha256("fresh\n"), created: true })
    assert.deepInclude(saved, { content: Buffer.from("saved\n").toString("base64") })
    assert.deepInclude((list as { readonly entries: ReadonlyArray<unknown> }).entries[0], { path: "a.txt" })
    assert.deepStrictEqual(
      [editor.buffers.get(file("a.txt")), editor.buffers.get(file("new/b.txt"))],
      ["one\nedited\nthree\n", "fresh\n"]
    )
    assert.deepStrictEqual(fs.readdirSync(on.project), ["a.txt"])
    assert.strictEqual(fs.readFileSync(file("a.txt"), "utf8"), "saved\n")
    assert.deepStrictEqual(ends(on)[1]?.content?.[0], {
      type: "diff",
      path: file("a.txt"),
      oldText: "one\nunsaved\nthree\n",
      newText: "one\nedited\nthree\n"
    })
    assert.deepStrictEqual(asked(on), ["read", "read", "write", "read", "write"])
  }, 30_000)

  it("a refusal of the client is the tool's, and the disk is not used in its place [ACP-212]", async () => {
    const on = await stage([read("a.txt"), edit("a.txt", "disk", "x"), write("a.txt", "x"), write("b.txt", "x")])
    const { editor, file, program, sessionId } = on
    fs.writeFileSync(file("a.txt"), "on disk\n")
    editor.instead = (what, about) =>
      what === "write" ? Promise.reject(new Error(`${path.basename(about)} is locked`)) : undefined
    assert.strictEqual((await program.prompt(sessionId, "Work")).stopReason, "end_turn")
    assert.deepStrictEqual(
      ends(on).map((update) => [update.status, textOf(update)]),
      [
        ["failed", 'the client could not read "a.txt": Internal error: this editor has no such file'],
        ["failed", 'the client could not read "a.txt": Internal error: this editor has no such file'],
        ["failed", 'the client could not write "a.txt": Internal error: a.txt is locked'],
        ["failed", 'the client could not write "b.txt": Internal error: b.txt is locked']
      ]
    )
    assert.deepStrictEqual(fs.readdirSync(on.project), ["a.txt"])
    assert.strictEqual(fs.readFileSync(file("a.txt"), "utf8"), "on disk\n")
  }, 30_000)

  it("the workspace's rules come first: what they refuse is asked of nobody [ACP-211, AGT-060, AGT-063]", async () => {
    const on = await stage([
      read("../secret.txt"),
      write("up/new.txt", "x"),
      edit("up/secret.txt", "a", "b"),
      run("true", { cwd: "up" }),
      write("a.txt", "x", { expect_sha256: sha256("another") }),
      write("no/a.txt", "x", { create_dirs: false }),
      read("sub")
    ])
    const { editor, file, program, sessionId } = on
    fs.symlinkSync(path.dirname(on.project), file("up"))
    fs.mkdirSync(file("sub"))
    editor.buffers.set(file("a.txt"), "one")
    await program.prompt(sessionId, "Work")
    const outside = (given: string) => `the path "${given}" is outside the workspace or not open to tools`
    assert.deepStrictEqual(ends(on).map(textOf), [
      outside("../secret.txt"),
      outside("up/new.txt"),
      outside("up/secret.txt"),
      outside("up"),
      '"a.txt" has changed: its sha256 is not the expected one; nothing was written',
      '"no/a.txt" does not exist',
      '"sub" is a directory'
    ])
    assert.deepStrictEqual(editor.asked, [["read", file("a.txt")]])
    const dispatched = journal(on).filter(({ type, status }) => type === "tool-status" && status === "running")
    assert.strictEqual(dispatched.length, 3)
  }, 30_000)

  it("only what the client offers is asked of it, and what it offers now counts [ACP-210, ACP-211, ACP-033]", async () => {
    const offers = [
      { readTextFile: true, writeTextFile: false },
      { readTextFile: false, writeTextFile: true }
    ]
    const offer = () =>
      on.program.agent.request("initialize", { protocolVersion: 1, clientCapabilities: { fs: offers.shift() ?? {} } })
    const on: Stage = await stage(
      [
        read("a.txt"),
        // Here it comes to read, and only that.
        write("b.txt", "b"),
        read("a.txt"),
        write("c.txt", "c"),
        edit("a.txt", "buffer", "edited", { expect_sha256: sha256("buffer") }),
        // And here to write, and only that.
        write("d.txt", "d"),
        edit("a.txt", "edited", "again", { expect_sha256: sha256("edited") }),
        write("a.txt", "x", { expect_sha256: sha256("another") }),
        run("true")
      ],
      {
        capabilities: {},
        permission: async (request) => {
          if (["b.txt", "d.txt"].some((name) => request.toolCall.title?.endsWith(name))) await offer()
          return allow(request)
        }
      }
    )
    const { editor, file, program, sessionId } = on
    fs.writeFileSync(file("a.txt"), "disk")
    editor.buffers.set(file("a.txt"), "buffer")
    await program.prompt(sessionId, "Work")
    assert.deepStrictEqual(editor.asked, [
      ["read", file("b.txt")],
      ["read", file("a.txt")],
      ["read", file("c.txt")],
      ["read", file("a.txt")],
      ["write", file("d.txt")],
      ["write", file("a.txt")]
    ])
    assert.deepInclude(outputs(on)[0], { content: "disk" })
    assert.deepInclude(outputs(on)[2], { content: "buffer" })
    assert.deepStrictEqual(fs.readdirSync(on.project).toSorted(), ["a.txt", "b.txt", "c.txt"])
    assert.strictEqual(fs.readFileSync(file("a.txt"), "utf8"), "edited")
    assert.deepStrictEqual([editor.buffers.get(file("a.txt")), editor.buffers.get(file("d.txt"))], ["again", "d"])
    assert.match(textOf(ends(on)[7]), /has changed: its sha256/u)
  }, 30_000)

  it("files have the names that the client gave their folder [ACP-211]", async () => {
    const link = (project: string) => {
      const other = path.join(path.dirname(project), "link")
      fs.symlinkSync(project, other)
      return other
    }
    const on = await stage([read("sub/../a.txt"), run("pwd -P")], { cwd: link })
    const { editor, project, program, sessionId } = on
    const opened = path.join(path.dirname(project), "link")
    fs.mkdirSync(path.join(project, "sub"))
    editor.buffers.set(path.join(opened, "a.txt"), "unsaved")
    await program.prompt(sessionId, "Work")
    assert.deepInclude(outputs(on)[0], { path: "a.txt", content: "unsaved" })
    assert.strictEqual(editor.opened[0]?.cwd, opened)
    assert.deepInclude(outputs(on)[1], { stdout: `${project}\n` })
  }, 30_000)

  it("a write that was sent to a client that is gone, or was cancelled, is uncertain [ACP-212]", async () => {
    const on = await stage([write("a.txt", "x"), write("b.txt", "x")])
    const { editor, program, sessionId } = on
    let reached: () => void = () => undefined
    editor.instead = (what) => (what === "write" ? (reached(), new Promise<never>(() => undefined)) : undefined)
    for (const end of ["cancelled", "gone"]) {
      const writing = new Promise<void>((resolve) => {
        reached = resolve
      })
      const prompted = program.prompt(sessionId, "Work").catch(() => undefined)
      await writing
      if (end === "gone") assert.deepStrictEqual(await program.end(), { code: 0, signal: null })
      else await program.agent.notify("session/cancel", { sessionId })
      await prompted
      assert.deepInclude(ends(on).at(-1), { status: "failed", _meta: { tackroom: { uncertain: true } } }, end)
    }
    const states = journal(on).filter(({ type }) => type === "tool-status" || type === "tool-error")
    assert.deepStrictEqual(
      states.map(({ status }) => status),
      ["running", "uncertain", "running", "uncertain"]
    )
    assert.deepStrictEqual(fs.readdirSync(on.project), [])
  }, 30_000)
})

describe("terminals of the client", () => {
  it("a command runs there as anywhere, is shown, and its terminal is given back [ACP-213, AGT-070, AGT-072]", async () => {
    const on = await stage([
      run('cat; echo "$EDITOR_SAYS $MORE"; pwd; echo oops >&2; exit 3', { cwd: "sub", env: { MORE: "world" } }),
      run("cat", { stdin: "by the runner" }),
      run("kill -9 $$")
    ])
    const { editor, file, program, sessionId } = on
    fs.mkdirSync(file("sub"))
    await program.prompt(sessionId, "Work")
    const [first, second, third] = outputs(on) as ReadonlyArray<Readonly<Record<string, unknown>>>
    const said = `hello world\n${file("sub")}\noops\n`
    assert.deepInclude(first, { exit_code: 3, timed_out: false, stderr: "", stdout_bytes: said.length })
    assert.sameMembers(String(first?.["stdout"]).split("\n"), said.split("\n"))
    assert.deepInclude(second, { exit_code: 0, stdout: "by the runner" })
    assert.deepInclude(third, { exit_code: null, signal: "SIGKILL" })
    assert.deepInclude(editor.opened[0], { sessionId, cwd: file("sub"), outputByteLimit: 1_048_576 })
    assert.deepStrictEqual(asked(on), [
      "create",
      "wait_for_exit",
      "output",
      "release",
      "create",
      "wait_for_exit",
      "output",
      "release"
    ])
    const shown = program.frames.findIndex(
      ({ method, params }) => method === "session/update" && JSON.stringify(params).includes('"terminalId":"term-1"')
    )
    const released = program.frames.findIndex(({ method }) => method === "terminal/release")
    assert.isTrue(shown >= 0 && shown < released)
    assert.deepStrictEqual(ends(on)[0]?.content, [{ type: "terminal", terminalId: "term-1" }])
    assert.deepStrictEqual([...editor.terminals.keys()], [])
  }, 30_000)

  it("at its time-out, at a cancel and with its session a command is killed [ACP-213, ACP-077, AGT-071]", async () => {
    const on = await stage([run("sleep 60", { timeout_seconds: 1 }), ...sleeping, ...sleeping])
    const { editor, program, sessionId } = on
    const released = (count: number) =>
      program.until((all) => all.filter(({ method }) => method === "terminal/release")[count - 1])
    const timedOut = program.prompt(sessionId, "Work").catch(() => undefined)
    await working(on, "term-2")
    assert.deepInclude(outputs(on)[0], { exit_code: null, timed_out: true })
    await editor.terminals.get("term-2")?.spoke
    await program.agent.notify("session/cancel", { sessionId })
    assert.deepInclude(await timedOut, { stopReason: "cancelled" })
    assert.deepStrictEqual(editor.groups.filter(isGroupAlive), [])
    assert.deepInclude(ends(on).at(-1), { status: "failed" })
    assert.isUndefined(ends(on).at(-1)?._meta)
    const events = journal(on)
    assert.deepInclude(
      events.find(({ type }) => type === "tool-error"),
      { code: "cancelled" }
    )
    assert.deepInclude(
      events.find(({ type }) => type === "tool-output-delta"),
      { delta: "begun\n", stream: "combined" }
    )
    await released(2)
    const closed = program.prompt(sessionId, "Work").catch(() => undefined)
    await working(on, "term-3")
    await program.agent.request("session/close", { sessionId })
    assert.deepInclude(await closed, { stopReason: "cancelled" })
    await released(3)
    assert.deepStrictEqual(editor.groups.filter(isGroupAlive), [])
  }, 30_000)

  it("a cancel does not wait for a deaf client, and its late terminal is given back [ACP-213, ACP-181]", async () => {
    const on = await stage([run("echo made > made")])
    const { editor, program, sessionId } = on
    let answer: () => void = () => undefined
    let reached: () => void = () => undefined
    const opening = new Promise<void>((resolve) => {
      reached = resolve
    })
    const late = new Promise<void>((resolve) => {
      answer = resolve
    })
    editor.instead = (what) => (what === "create" ? (reached(), late.then(() => undefined as never)) : undefined)
    const prompted = program.prompt(sessionId, "Work")
    await opening
    await program.agent.notify("session/cancel", { sessionId })
    assert.strictEqual((await prompted).stopReason, "cancelled")
    assert.deepInclude(ends(on).at(-1), { status: "failed", _meta: { tackroom: { uncertain: true } } })
    answer()
    await program.until((all) => all.find(({ method }) => method === "terminal/release"))
  }, 30_000)

  it("at the end of its input a command is told to end, and its terminal is given back [ACP-213, ACP-185]", async () => {
    const on = await stage(sleeping)
    const { program, sessionId } = on
    const prompted = program.prompt(sessionId, "Work").catch(() => undefined)
    await working(on, "term-1")
    assert.deepStrictEqual(await program.end(), { code: 0, signal: null })
    await prompted
    const told = program.frames.flatMap(({ method }) => (method?.startsWith("terminal/") ? [method] : []))
    assert.includeMembers(told, ["terminal/kill", "terminal/release"])
  }, 30_000)
})

describe("everything that was written", () => {
  it("fits the protocol's own schema [ACP-012]", () => {
    const problems = programs.flatMap(({ frames, methods }) =>
      frames.flatMap((frame) => schemaProblems(frame, methods))
    )
    assert.deepStrictEqual([...new Set(problems)], [])
  })
})
