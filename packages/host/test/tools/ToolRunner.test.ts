import { execFileSync, spawn } from "node:child_process"
import { createReadStream, existsSync } from "node:fs"
import { mkdir, readFile, symlink } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { isGroupAlive, ProcessOwner, type ProcessOwnerService } from "@tackroom/sdk/process"
import { Cause, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { type ToolCall, ToolRunner, type ToolRunnerOptions } from "../../src/tools/ToolRunner.ts"
import { makeFolder } from "./fixtures/Folder.ts"

const fixture = (name: string) => new URL(`fixtures/${name}`, import.meta.url).pathname
const version = "1.2.3"

const setup = Effect.fnUntraced(function* (
  options: Partial<ToolRunnerOptions> = {},
  environment: Record<string, string | undefined> = process.env,
  groups?: ProcessOwnerService["groups"]
) {
  const folder = yield* Effect.promise(makeFolder)
  const owner = yield* ProcessOwner.make({ instanceId: "test", environment })
  const runner = yield* ToolRunner.make({
    command: process.execPath,
    args: [fixture("runner.ts"), version],
    version,
    stateDir: folder.stateDir,
    ...options
  }).pipe(Effect.provideService(ProcessOwner, groups === undefined ? owner : { ...owner, groups }))
  const call = <E = never>(tool: string, args: unknown, more: Partial<ToolCall<E>> = {}) =>
    runner.call<E>({ tool, arguments: args, workspace: folder.root, ...more })
  const shell = (command: string, more: Partial<ToolCall> = {}) => call("shell.run", { command }, more)
  return { ...folder, owner, runner, call, shell }
})

const lie = (what: unknown) => ({
  args: [fixture("liar.ts"), version, typeof what === "string" ? what : JSON.stringify(what)]
})

describe("ToolRunner", () => {
  it.live("starts one runner at the first call and calls it for all [AGT-065] [RUN-092]", () =>
    Effect.gen(function* () {
      const { owner, call, put } = yield* setup()
      assert.deepStrictEqual(yield* owner.list, [])
      yield* Effect.promise(() => put("a.txt", "hello\n"))
      const [read, list] = yield* Effect.all([call("files.read", { path: "a.txt" }), call("files.list", {})], {
        concurrency: "unbounded"
      })
      assert.deepInclude(read.output, { path: "a.txt", content: "hello\n" })
      assert.deepInclude(list.output, { truncated: false })
      const running = (yield* owner.list).filter((process) => process.role === "tool")
      assert.strictEqual(running.length, 1)
      assert.notStrictEqual(running[0]?.pid, process.pid)
      const where = yield* call("shell.run", { command: "echo $PPID" })
      assert.strictEqual(where.tool === "shell.run" ? Number(where.output.stdout) : 0, running[0]?.pid)
    })
  )

  it.live("every tool returns its result through the runner", () =>
    Effect.gen(function* () {
      const { call, root } = yield* setup()
      const wrote = yield* call("files.write", { path: "d/a.txt", content: "one\ntwo\n" })
      assert.deepStrictEqual(wrote.diff, { path: "d/a.txt", newText: "one\ntwo\n" })
      const edited = yield* call("files.edit", { path: "d/a.txt", edits: [{ old: "two", new: "2" }] })
      assert.deepStrictEqual(edited.diff, { path: "d/a.txt", oldText: "one\ntwo\n", newText: "one\n2\n" })
      assert.strictEqual(yield* Effect.promise(() => readFile(join(root, "d/a.txt"), "utf8")), "one\n2\n")
      const found = yield* call("files.search", { pattern: "^2$", regex: true })
      assert.deepStrictEqual(found.output, {
        matches: [{ path: "d/a.txt", line: 2, column: 1, text: "2" }],
        truncated: false
      })
      const ran = yield* call("shell.run", { command: "printf 'a\\rb'; cat >&2", stdin: "\ufeffé\u2028", cwd: "d" })
      assert.deepInclude(ran.output, { exit_code: 0, stdout: "a\rb", stderr: "\ufeffé\u2028", timed_out: false })
    })
  )

  it.live("a path outside is not run, and no dispatch record is made [AGT-035] [AGT-060] [AGT-061]", () =>
    Effect.gen(function* () {
      const { call, base, root, put } = yield* setup()
      yield* Effect.promise(() => put("a.txt", "x"))
      yield* Effect.promise(() => symlink(base, join(root, "up")))
      let dispatched = 0
      const beforeDispatch = Effect.sync(() => {
        dispatched += 1
      })
      const calls: ReadonlyArray<readonly [string, unknown]> = [
        ["files.read", { path: "../secret.txt" }],
        ["files.read", { path: ".state/host.key" }],
        ["files.list", { path: "up" }],
        ["files.search", { pattern: "secret", path: "/" }],
        ["files.write", { path: "up/new", content: "x" }],
        ["files.edit", { path: "up/secret.txt", edits: [{ old: "the", new: "a" }] }],
        ["shell.run", { command: "ls", cwd: "up" }],
        ["shell.run", { command: "ls", cwd: "a.txt" }],
        ["files.search", { pattern: "(", regex: true }],
        ["files.write", { path: "x", content: "\ud800" }]
      ]
      for (const [tool, args] of calls) {
        const ended = yield* Effect.flip(call(tool, args, { beforeDispatch }))
        assert.strictEqual(ended._tag, "ToolNotRun", tool)
      }
      assert.strictEqual(dispatched, 0)
      assert.isFalse(existsSync(join(base, "new")))
    })
  )

  it.live("the dispatch record comes before the effect, and its failure prevents it [AGT-033]", () =>
    Effect.gen(function* () {
      const { call, root } = yield* setup()
      const file = join(root, "made")
      let seen: boolean | undefined
      yield* call(
        "files.write",
        { path: "made", content: "" },
        { beforeDispatch: Effect.sync(() => (seen = existsSync(file))) }
      )
      assert.deepStrictEqual([seen, existsSync(file)], [false, true])
      const ended = yield* Effect.flip(
        call<"no disk">("files.write", { path: "other", content: "" }, { beforeDispatch: Effect.fail("no disk") })
      )
      assert.strictEqual(ended, "no disk")
      assert.isFalse(existsSync(join(root, "other")))
    })
  )

  it.live("a failure in the tool is told in words", () =>
    Effect.gen(function* () {
      const { call } = yield* setup()
      const ended = yield* Effect.flip(call("files.read", { path: "nope" }))
      assert.deepInclude(ended, { _tag: "ToolFailed", code: "failed", message: '"nope" does not exist' })
    })
  )

  it.live("tools that this host does not run are not run [AGT-082]", () =>
    Effect.gen(function* () {
      const { call, owner } = yield* setup()
      for (const tool of ["web.fetch", "web.search", "memory.add"]) {
        assert.deepInclude(yield* Effect.flip(call(tool, {})), { _tag: "ToolNotRun", reason: "unsupported" })
      }
      assert.deepStrictEqual(yield* owner.list, [])
    })
  )

  it.live("a runner of another version is refused and ended [RUN-092]", () =>
    Effect.gen(function* () {
      const { call, runner, owner } = yield* setup({ args: [fixture("runner.ts"), "1.2.4"] })
      const early = yield* Effect.flip(runner.start)
      assert.strictEqual(early.message, "the tool runner is version 1.2.4, the host 1.2.3")
      const ended = yield* Effect.flip(call("files.list", {}))
      assert.deepInclude(ended, { _tag: "ToolNotRun", reason: "runner", message: early.message })
      assert.deepStrictEqual(
        (yield* owner.list).filter((each) => each.role === "tool" && each.state === "running"),
        []
      )
    })
  )

  it.live("a runner that cannot start, or says nothing and ends, refuses the call [RUN-092]", () =>
    Effect.gen(function* () {
      const missing = yield* setup({ command: "/nothing/here" })
      assert.deepInclude(yield* Effect.flip(missing.call("files.list", {})), { _tag: "ToolNotRun", reason: "runner" })
      const silent = yield* setup({ command: "/bin/false", args: [] })
      assert.deepInclude(yield* Effect.flip(silent.call("files.list", {})), { _tag: "ToolNotRun", reason: "runner" })
    })
  )

  it.live("output comes while the command runs, the first 64 KiB of it; the result has all", () =>
    Effect.gen(function* () {
      const { shell } = yield* setup()
      let streamed = 0
      const first = yield* Deferred.make<string>()
      const result = yield* shell("echo begin; head -c 1000000 /dev/zero | tr '\\0' z; echo end >&2", {
        onDelta: ({ text }) =>
          Effect.andThen(
            Deferred.succeed(first, text),
            Effect.sync(() => {
              streamed += text.length
            })
          )
      })
      assert.isTrue((yield* Deferred.await(first)).startsWith("begin\n"))
      assert.isAbove(streamed, 64 * 1024)
      assert.isBelow(streamed, 64 * 1024 * 3)
      assert.deepInclude(result.output, { stdout: `begin\n${"z".repeat(1_000_000)}`, stderr: "end\n" })
    })
  )

  it.live("a cancel ends the command's group and keeps its output [AGT-071]", () =>
    Effect.gen(function* () {
      const { shell, call } = yield* setup()
      const begun = yield* Deferred.make<string>()
      const ended = yield* Effect.flip(
        shell("echo $$; sleep 300 & sleep 300", {
          onDelta: ({ text }) => Deferred.succeed(begun, text),
          cancel: Deferred.await(begun)
        })
      )
      const group = yield* Deferred.await(begun)
      assert.isFalse(isGroupAlive(Number(group)))
      assert.deepInclude(ended, { _tag: "ToolFailed", code: "cancelled" })
      assert.strictEqual(ended._tag === "ToolFailed" ? ended.output?.stdout : "", group)
      assert.strictEqual((yield* call("files.list", {})).tool, "files.list")
    })
  )

  it.live("interrupting a call returns when its group is gone [AGT-071]", () =>
    Effect.gen(function* () {
      const { shell } = yield* setup()
      const begun = yield* Deferred.make<string>()
      const fiber = yield* Effect.forkChild(
        shell("echo $$; (trap '' TERM; while :; do sleep 0.2; done) & sleep 300", {
          onDelta: ({ text }) => Deferred.succeed(begun, text)
        })
      )
      const group = Number(yield* Deferred.await(begun))
      assert.isTrue(isGroupAlive(group))
      yield* Fiber.interrupt(fiber)
      assert.isFalse(isGroupAlive(group))
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    })
  )

  it.live("calls run at the same time and end on their own", () =>
    Effect.gen(function* () {
      const { shell, call, root } = yield* setup()
      execFileSync("mkfifo", [join(root, "gate")])
      const waiting = yield* Effect.forkChild(shell("cat gate"))
      const reads = yield* Effect.forEach(Array.from({ length: 50 }), () => call("files.list", {}), { concurrency: 8 })
      assert.strictEqual(reads.length, 50)
      yield* shell("echo opened > gate")
      assert.deepInclude((yield* Fiber.join(waiting)).output, { stdout: "opened\n" })
    })
  )

  it.live(
    "a runner that dies in a call leaves its outcome unknown and no process; the next call starts another [RUN-090]",
    () =>
      Effect.gen(function* () {
        const { shell, call, owner } = yield* setup()
        const groups: Array<number> = []
        const ended = yield* Effect.flip(
          shell("echo $$ $PPID; sleep 300 & sleep 300", {
            onDelta: ({ text }) =>
              Effect.sync(() => {
                const [group, runner] = text.trim().split(" ").map(Number)
                groups.push(group ?? 0)
                process.kill(runner ?? 0, "SIGKILL")
              })
          })
        )
        assert.deepInclude(ended, { _tag: "RunnerLost", message: "the tool runner ended (SIGKILL)" })
        assert.strictEqual(groups.length, 1)
        assert.isFalse(isGroupAlive(groups[0] ?? 0))
        assert.strictEqual((yield* call("files.list", {})).tool, "files.list")
        const states = (yield* owner.list).filter((each) => each.role === "tool").map((each) => each.state)
        assert.deepStrictEqual(states.toSorted(), ["exited", "running"])
      })
  )

  it.live("a runner lost before the dispatch is replaced and the call goes on", () =>
    Effect.gen(function* () {
      const { call, owner } = yield* setup()
      yield* call("files.list", {})
      const first = (yield* owner.list).find((each) => each.role === "tool")
      process.kill(first?.pid ?? 0, "SIGSTOP")
      const fiber = yield* Effect.forkChild(call("files.list", {}), { startImmediately: true })
      process.kill(first?.pid ?? 0, "SIGKILL")
      assert.strictEqual((yield* Fiber.join(fiber)).tool, "files.list")
    })
  )

  it.live("what the runner returns is checked for form, encoding and size [AGT-155]", () =>
    Effect.gen(function* () {
      const lies: ReadonlyArray<unknown> = [
        '{"type":"result","id":ID,"output":{"entries":[{"path":"a","type":"file","bytes":"1"}],"truncated":false}}',
        '{"type":"result","id":ID,"output":null}',
        '{"type":"result","id":ID,"output":{"entries":[],"truncated":false},"diff":{"path":"a","newText":"x"}}',
        '{"type":"delta","id":ID,"stream":"stdout","text":"x"}',
        '{"type":"result","id":99,"output":{"entries":[],"truncated":false}}',
        '{"type":"spawned","id":ID,"group":1}',
        `{"type":"spawned","id":ID,"group":${process.pid}}`,
        '{"type":"odd"}',
        "not json",
        "bytes",
        "flood",
        "exit"
      ]
      for (const what of lies) {
        const { call } = yield* setup(lie(what))
        const ended = yield* Effect.flip(call("files.list", {}))
        assert.strictEqual(ended._tag, "RunnerLost", String(what))
      }
    }).pipe(Effect.scoped)
  )

  it.live("a refusal after the dispatch counts as a failure [AGT-035] [AGT-155]", () =>
    Effect.gen(function* () {
      const { call } = yield* setup(lie('{"type":"not_run","id":ID,"code":"failed","message":"no"}'))
      assert.deepInclude(yield* Effect.flip(call("files.list", {})), {
        _tag: "ToolFailed",
        code: "failed",
        message: "no"
      })
    })
  )

  it.live("arguments that do not fit in a line are refused", () =>
    Effect.gen(function* () {
      const { call } = yield* setup()
      const edits = [{ old: "x".repeat(17 * 1024 * 1024), new: "y".repeat(17 * 1024 * 1024) }]
      assert.deepInclude(yield* Effect.flip(call("files.edit", { path: "a", edits })), {
        _tag: "ToolNotRun",
        reason: "refused"
      })
    })
  )

  it.live("a result of megabytes of escaped chars passes", () =>
    Effect.gen(function* () {
      const { call, put } = yield* setup()
      yield* Effect.promise(() => put("a", "\u0001".repeat(4 * 1024 * 1024 - 1) + "x"))
      const edited = yield* call("files.edit", { path: "a", edits: [{ old: "x", new: "\u0002" }] })
      assert.strictEqual(edited.diff?.newText.length, 4 * 1024 * 1024)
    })
  )

  it.live("unknown members of a result do not pass [AGT-155]", () =>
    Effect.gen(function* () {
      const { call } = yield* setup(lie('{"type":"result","id":ID,"output":{"entries":[],"truncated":true,"extra":1}}'))
      assert.deepStrictEqual((yield* call("files.list", {})).output, { entries: [], truncated: true })
    })
  )

  it.live("commands get the limited environment and no withheld name [RUN-085]", () =>
    Effect.gen(function* () {
      const { shell } = yield* setup(
        { withheld: ["LC_SECRET"] },
        {
          ...process.env,
          LC_SECRET: "canary",
          LC_OTHER: "fine",
          API_KEY: "canary",
          NODE_OPTIONS: "",
          HTTPS_PROXY: "canary"
        }
      )
      const result = yield* shell("env")
      const text = result.tool === "shell.run" ? result.output.stdout : ""
      assert.include(text, "LC_OTHER=fine")
      assert.notInclude(text, "canary")
      assert.notInclude(text, "NODE_OPTIONS")
    })
  )

  it.live("a group is told before its command runs, and again when it is gone [RUN-090]", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      let file = ""
      const { shell, root } = yield* setup({}, process.env, {
        add: (group) => Effect.sync(() => events.push(`add ${isGroupAlive(group)} ${existsSync(file)}`)),
        remove: (group) => Effect.sync(() => events.push(`remove ${isGroupAlive(group)} ${existsSync(file)}`))
      })
      file = join(root, "ran")
      yield* shell("touch ran")
      assert.deepStrictEqual(events, ["add true false", "remove false true"])
    })
  )

  it.live("closing the host's scope ends commands at work [RUN-090]", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { shell } = yield* setup().pipe(Scope.provide(scope))
      const begun = yield* Deferred.make<string>()
      const fiber = yield* Effect.forkChild(
        Effect.flip(shell("echo $$; sleep 300", { onDelta: ({ text }) => Deferred.succeed(begun, text) }))
      )
      const group = Number(yield* Deferred.await(begun))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isGroupAlive(group))
      yield* Fiber.join(fiber)
    })
  )

  it.live("a limit of the configuration bounds every command", () =>
    Effect.gen(function* () {
      const { shell } = yield* setup({ shellSecondsMax: 1 })
      const result = yield* shell("sleep 300")
      assert.deepInclude(result.output, { timed_out: true, exit_code: null })
    })
  )

  for (const [what, both] of [
    ["killed", false],
    ["killed together with its runner", true]
  ] as const) {
    it.live(`when the host is ${what}, no command survives [RUN-090]`, () =>
      Effect.gen(function* () {
        const folder = yield* Effect.promise(makeFolder)
        yield* Effect.promise(() => mkdir(join(folder.base, "pipes")))
        const pipe = join(folder.base, "pipes", "life")
        execFileSync("mkfifo", [pipe])
        const host = spawn(
          process.execPath,
          [fixture("host.ts"), folder.root, `exec 4>${pipe}; echo $PPID >&4; sleep 300 & sleep 300`],
          { stdio: ["ignore", "ignore", "inherit"] }
        )
        // The pipe ends when the last process that could write to it is gone.
        yield* Effect.callback<void>((resume) => {
          const life = createReadStream(pipe, "utf8")
          life.on("data", (runner) => {
            if (both) process.kill(Number(runner), "SIGKILL")
            host.kill("SIGKILL")
          })
          life.on("end", () => resume(Effect.void))
        }).pipe(Effect.timeout("20 seconds"))
      })
    )
  }
})
