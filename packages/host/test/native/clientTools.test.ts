/** Calls that a client carries out, and a client that does not answer as it should (ACP-211 to ACP-213). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { rename, symlink } from "node:fs/promises"
import { join } from "node:path"
import { clientTools } from "../../src/native/ClientTools.ts"
import type { ExecuteTool, ToolProblem } from "../../src/native/SessionSetup.ts"
import { ClientRefused, type ClientSide, type ClientTerminal } from "../../src/tools/ClientSide.ts"
import { RunnerLost } from "../../src/tools/RunnerConnection.ts"
import type { ToolCall, ToolRunnerService } from "../../src/tools/ToolRunner.ts"
import { makeFolder } from "../tools/fixtures/Folder.ts"

type Call = Parameters<ExecuteTool>[0]

type Runner = Pick<ToolRunnerService, "call">

const noRunner: Runner = { call: () => Effect.die(new Error("nothing is done on the disk")) }

/** A session in a folder of its own, whose client does what `side` says; what it is asked is counted. */
const stage = Effect.fnUntraced(function* (side: (asked: () => void) => ClientSide, runner = noRunner) {
  const folder = yield* Effect.promise(makeFolder)
  const asked = yield* Deferred.make<void>()
  const events: Array<string> = []
  const note = (): void => {
    events.push("asked")
    Deferred.doneUnsafe(asked, Exit.void)
  }
  const own = side(note)
  const tools = clientTools({
    sides: { find: (sessionId) => (sessionId === "ses_1" ? own : undefined) },
    stateDir: folder.stateDir,
    shellSecondsMax: 600,
    runner
  })
  let interrupted: ToolProblem | undefined
  const execute = (tool: string, args: Call["arguments"], sessionId = "ses_1") =>
    tools.execute({
      sessionId,
      workspace: folder.root,
      tool,
      arguments: args,
      beforeDispatch: Effect.sync(() => void events.push("dispatched")),
      onDelta: (stream, delta) => Effect.sync(() => void events.push(`${stream}: ${delta}`)),
      onTerminal: (id) => Effect.sync(() => void events.push(`terminal ${id}`)),
      ifInterrupted: (problem) => {
        interrupted = problem
      },
      keepArtifact: () => Effect.succeed("art_1")
    })
  const call = (tool: string, args: Call["arguments"]) => {
    const running = execute(tool, args)
    assert.isDefined(running, `${tool} is not the client's`)
    return running as NonNullable<typeof running>
  }
  return { ...folder, asked: Deferred.await(asked), events, execute, call, interrupted: () => interrupted }
})

const deaf: ClientSide = {
  readText: () => Effect.never,
  writeText: () => Effect.never,
  openTerminal: () => Effect.never
}

const none = new ClientRefused({ message: "there is none" })

/** A client that is asked and never answers. */
const silent = (asked: () => void): ClientSide => ({
  readText: () => Effect.andThen(Effect.sync(asked), Effect.never),
  writeText: () => Effect.andThen(Effect.sync(asked), Effect.never),
  openTerminal: () => Effect.andThen(Effect.sync(asked), Effect.never)
})

const readable = (text: string, more: ClientSide = {}): ClientSide => ({
  readText: () => Effect.succeed(text),
  ...more
})

/** A terminal of a command that goes on until it is killed, or for ever. */
const terminalOf =
  (parts: Partial<ClientTerminal>, released: () => void, opened: () => void = () => undefined) =>
  () =>
    Effect.acquireRelease(
      Effect.sync((): ClientTerminal => {
        opened()
        return {
          id: "t1",
          exit: Effect.never,
          output: Effect.succeed({ text: "said", truncated: false }),
          kill: Effect.void,
          ...parts
        }
      }),
      () => Effect.sync(released)
    )

const write = { path: "a.txt", content: "x" }

describe("a client that does not answer", () => {
  it.effect("is not waited for: a read fails, a write is unknown [ACP-212]", () =>
    Effect.gen(function* () {
      const reading = yield* stage(silent)
      const read = yield* Effect.forkChild(Effect.flip(reading.call("files.read", { path: "a.txt" })))
      yield* reading.asked
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(yield* Fiber.join(read), {
        outcome: "failed",
        code: "timeout",
        message: '"a.txt" was not read: the client did not answer within 60 seconds'
      })
      const writing = yield* stage((asked) => ({ ...silent(asked), readText: () => Effect.fail(none) }))
      const wrote = yield* Effect.forkChild(Effect.flip(writing.call("files.write", write)))
      yield* writing.asked
      assert.deepStrictEqual(writing.events, ["dispatched", "asked"])
      yield* TestClock.adjust("60 seconds")
      assert.deepInclude(yield* Fiber.join(wrote), { outcome: "unknown" })
    })
  )

  it.effect("is not waited for when it opens a terminal, or says what was written to it [ACP-213]", () =>
    Effect.gen(function* () {
      const opening = yield* stage(silent)
      const opened = yield* Effect.forkChild(Effect.flip(opening.call("shell.run", { command: "true" })))
      yield* opening.asked
      yield* TestClock.adjust("30 seconds")
      assert.deepInclude(yield* Fiber.join(opened), { outcome: "unknown" })
      let released = 0
      const ended = { exit: Effect.succeed({ code: 0, signal: null }) }
      const quiet = yield* stage((asked) => ({
        openTerminal: terminalOf(
          { ...ended, output: Effect.andThen(Effect.sync(asked), Effect.never) },
          () => (released += 1)
        )
      }))
      const ran = yield* Effect.forkChild(Effect.flip(quiet.call("shell.run", { command: "true" })))
      yield* quiet.asked
      yield* TestClock.adjust("30 seconds")
      assert.deepInclude(yield* Fiber.join(ran), { outcome: "unknown" })
      assert.strictEqual(released, 1)
    })
  )

  it.effect(
    "a killed command that does not end is not waited for, and its terminal is given back [ACP-213, AGT-071]",
    () =>
      Effect.gen(function* () {
        let released = 0
        const kills: Array<string> = []
        const on = yield* stage((asked) => ({
          openTerminal: terminalOf({ kill: Effect.sync(() => void kills.push("kill")) }, () => (released += 1), asked)
        }))
        const running = yield* Effect.forkChild(on.call("shell.run", { command: "sleep 60", timeout_seconds: 5 }))
        yield* on.asked
        yield* TestClock.adjust("5 seconds")
        yield* TestClock.adjust("2 seconds")
        const { output } = yield* Fiber.join(running)
        assert.deepInclude(output, { exit_code: null, timed_out: true, stdout: "said" })
        assert.deepStrictEqual([kills, released], [["kill"], 1])
      })
  )

  it.effect("a cancelled command is killed, and unknown when nobody says that it ended [ACP-213]", () =>
    Effect.gen(function* () {
      for (const end of ["ends", "goes on"]) {
        const killed = yield* Deferred.make<void>()
        let released = 0
        const on = yield* stage((asked) => ({
          openTerminal: terminalOf(
            {
              exit: Effect.as(end === "ends" ? Deferred.await(killed) : Effect.never, { code: null, signal: "KILL" }),
              kill: Effect.asVoid(Deferred.succeed(killed, undefined))
            },
            () => (released += 1),
            asked
          )
        }))
        const running = yield* Effect.forkChild(on.call("shell.run", { command: "sleep 60" }))
        yield* on.asked
        yield* Effect.forkChild(Fiber.interrupt(running))
        yield* Deferred.await(killed)
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.await(running)
        assert.strictEqual(on.interrupted()?.outcome, end === "ends" ? undefined : "unknown")
        assert.deepStrictEqual([released, on.events.at(-1)], [1, "combined: said"])
      }
    })
  )

  it.effect("a write that was cancelled on its way is unknown, and a read is not [ACP-212]", () =>
    Effect.gen(function* () {
      for (const [tool, args] of [
        ["files.write", write],
        ["files.read", { path: "a.txt" }]
      ] as const) {
        const on = yield* stage((asked) => ({
          ...silent(asked),
          ...(tool === "files.write" ? { readText: () => Effect.fail(none) } : {})
        }))
        const running = yield* Effect.forkChild(on.call(tool, args))
        yield* on.asked
        yield* Fiber.interrupt(running)
        assert.strictEqual(on.interrupted()?.outcome, tool === "files.write" ? "unknown" : undefined)
      }
    })
  )
})

describe("calls that a client carries out", () => {
  it.effect(
    "are those that it offers, for its session alone; all others are the tool runner's [ACP-210, ACP-211]",
    () =>
      Effect.gen(function* () {
        const edit = { path: "a.txt", edits: [{ old: "a", new: "b" }] }
        const digest = { ...write, expect_sha256: "0".repeat(64) }
        const calls: ReadonlyArray<readonly [tool: string, args: Call["arguments"], needs: string]> = [
          ["files.read", { path: "a.txt" }, "r"],
          ["files.read", { path: "a.txt", encoding: "base64" }, "never"],
          ["files.write", write, "r|w"],
          ["files.write", digest, "r|w"],
          ["files.edit", edit, "r|w"],
          ["files.list", {}, "never"],
          ["files.search", { pattern: "a" }, "never"],
          ["shell.run", { command: "true" }, "t"],
          ["shell.run", { command: "true", stdin: "" }, "t"],
          ["shell.run", { command: "true", stdin: "x" }, "never"],
          ["web.fetch", { url: "https://example.com" }, "never"]
        ]
        for (const offered of ["", "r", "w", "t", "rw", "rwt"]) {
          const { readText, writeText, openTerminal } = deaf
          const on = yield* stage(() => ({
            ...(offered.includes("r") && readText !== undefined ? { readText } : {}),
            ...(offered.includes("w") && writeText !== undefined ? { writeText } : {}),
            ...(offered.includes("t") && openTerminal !== undefined ? { openTerminal } : {})
          }))
          for (const [tool, args, needs] of calls) {
            const is = needs.split("|").some((one) => offered.includes(one))
            assert.strictEqual(on.execute(tool, args) !== undefined, is, `${tool} of ${offered}`)
            assert.isUndefined(on.execute(tool, args, "ses_2"))
          }
        }
      })
  )

  it.effect(
    "a client that only reads or only writes does its part, and the tool runner the other [ACP-211, ACP-212]",
    () =>
      Effect.gen(function* () {
        const sha256 = createHash("sha256").update("new").digest("hex")
        const diff = { path: "a.txt", oldText: "old", newText: "new" }
        const parts: Array<ToolCall["client"]> = []
        const working: Runner = {
          call: ({ client }) => {
            parts.push(client)
            return Effect.succeed({ tool: "files.edit", output: { path: "a.txt", replacements: 1, sha256 }, diff })
          }
        }
        const lost: Runner = { call: () => Effect.fail(new RunnerLost({ message: "it died" })) }
        const written: Array<string> = []
        const reads = (): ClientSide => readable("old")
        const writes = (): ClientSide => ({ writeText: (_, text) => Effect.sync(() => void written.push(text)) })
        const args = { path: "a.txt", edits: [{ old: "old", new: "new" }] }
        for (const side of [reads, writes]) {
          const { output } = yield* (yield* stage(side, working)).call("files.edit", args)
          assert.deepInclude(output, { sha256 })
        }
        assert.deepStrictEqual([parts, written], [[{ old: "old" }, { takes: true }], ["new"]])
        const outcome = (side: () => ClientSide, runner: Runner) =>
          Effect.gen(function* () {
            return (yield* Effect.flip((yield* stage(side, runner)).call("files.edit", args))).outcome
          })
        // What the runner writes may be written when it dies, and what it only makes is not.
        assert.deepStrictEqual([yield* outcome(reads, lost), yield* outcome(writes, lost)], ["unknown", "failed"])
        const lossy: Runner = {
          call: () =>
            Effect.succeed({
              tool: "files.edit",
              output: { path: "a.txt", replacements: 1, sha256: "0".repeat(64) },
              diff
            })
        }
        assert.strictEqual(yield* outcome(writes, lossy), "failed")
        assert.deepStrictEqual(written, ["new"])
      })
  )

  it.effect("a path that is exchanged while the client reads gives nothing [AGT-060]", () =>
    Effect.gen(function* () {
      const on = yield* stage(() =>
        readable("", {
          readText: (path) =>
            Effect.promise(async () => {
              await rename(path, `${path}.away`)
              await symlink("../secret.txt", path)
              return "the secret"
            })
        })
      )
      yield* Effect.promise(() => on.put("a.txt", "one"))
      const problem = yield* Effect.flip(on.call("files.read", { path: "a.txt" }))
      assert.deepStrictEqual(problem, {
        outcome: "failed",
        code: "failed",
        message: '"a.txt" changed while it was being opened; nothing was read or written'
      })
    })
  )

  it.effect("a workspace that was lost fails the call, and no client is asked [RUN-351]", () =>
    Effect.gen(function* () {
      const on = yield* stage(() => readable("one"))
      yield* Effect.promise(() => rename(on.root, join(on.base, "moved")))
      const problem = yield* Effect.flip(on.call("files.read", { path: "a.txt" }))
      assert.strictEqual(problem.outcome, "failed")
      assert.deepStrictEqual(on.events, ["dispatched"])
    })
  )

  it.effect("changes of one file wait for each other, so that none is lost [ACP-211]", () =>
    Effect.gen(function* () {
      let text = "one two"
      const on = yield* stage(() =>
        readable("", {
          readText: () =>
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => text)
            ),
          writeText: (_, written) =>
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => void (text = written))
            )
        })
      )
      yield* Effect.promise(() => on.put("a.txt", text))
      const edit = (from: string, to: string) =>
        on.call("files.edit", { path: "a.txt", edits: [{ old: from, new: to }] })
      yield* Effect.all([edit("one", "1"), edit("two", "2")], { concurrency: "unbounded" })
      assert.strictEqual(text, "1 2")
    })
  )

  it.effect("a file is new when neither the disk nor the client has something of it [ACP-211]", () =>
    Effect.gen(function* () {
      for (const [held, created] of [
        [Effect.succeed(""), true],
        [Effect.fail(none), true],
        [Effect.succeed("not saved yet"), false]
      ] as const) {
        const on = yield* stage(() => readable("", { readText: () => held, writeText: () => Effect.void }))
        assert.deepInclude((yield* on.call("files.write", write)).output, { created })
      }
    })
  )

  it.effect("what has no text, and what is too long, is refused as from the disk [ACP-211]", () =>
    Effect.gen(function* () {
      const binary = yield* stage(() => readable("a\0b", { writeText: () => Effect.void }))
      const message = (tool: string, args: Call["arguments"], on = binary) =>
        Effect.map(Effect.flip(on.call(tool, args)), (problem) => problem.message)
      assert.strictEqual(
        yield* message("files.read", { path: "a" }),
        '"a" is a binary file; read it with encoding base64'
      )
      const edits = [{ old: "a", new: "b" }]
      assert.strictEqual(
        yield* message("files.edit", { path: "a", edits }),
        '"a" is a binary file; nothing was changed'
      )
      const long = yield* stage(() => readable("é".repeat(2_097_153), { writeText: () => Effect.void }))
      assert.strictEqual(yield* message("files.edit", { path: "a", edits }, long), '"a" is larger than 4194304 bytes')
    })
  )

  it.effect("output of which the client forgot the beginning says so [ACP-213]", () =>
    Effect.gen(function* () {
      const exit = Effect.succeed({ code: 0, signal: null })
      const on = yield* stage(() => ({
        openTerminal: terminalOf({ exit, output: Effect.succeed({ text: "end\n", truncated: true }) }, () => undefined)
      }))
      const { output } = yield* on.call("shell.run", { command: "yes" })
      assert.deepInclude(output, { stdout: "[the beginning is missing: a terminal keeps the last 1 MiB]\nend\n" })
    })
  )
})
