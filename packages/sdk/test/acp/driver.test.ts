import { mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { EventPayload } from "@tackroom/protocol/events"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { AcpOptions } from "../../src/harness/acp/index.ts"
import { isGroupAlive } from "../../src/process/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { type AgentFlags, open, type Place, place, testAgent, textIn } from "./Kit.ts"

interface Opened {
  readonly at: Place
  readonly runtime: Effect.Success<ReturnType<typeof open>>
  /** Closes the runtime and opens another on the same store, with an agent that may behave differently. */
  readonly reopened: (
    flags?: AgentFlags
  ) => Effect.Effect<Effect.Success<ReturnType<typeof open>>, unknown, Scope.Scope>
  readonly processes: Effect.Effect<ReadonlyArray<number>>
}

const within = <A, E>(
  flags: AgentFlags,
  program: (opened: Opened) => Effect.Effect<A, E, Scope.Scope>,
  options: Partial<AcpOptions> = {}
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const at = yield* place
      const store = createMemoryRuntimeStore()
      yield* Effect.addFinalizer(() => store.close)
      const runtime = yield* open(testAgent(at, flags, options), store)
      return yield* program({
        at,
        runtime,
        reopened: (other = flags) => Effect.andThen(runtime.close, open(testAgent(at, other, options), store)),
        processes: Effect.map(Effect.orDie(store.processes), (rows) => rows.map((row) => row.pgid))
      })
    })
  )

const has = (events: ReadonlyArray<EventPayload>, wanted: Record<string, unknown>): boolean =>
  events.some((event) => Object.entries(wanted).every(([key, value]) => Reflect.get(event, key) === value))

const lines = (at: Place, word: string): number => at.log().filter((line) => line.split(" ")[0] === word).length

describe("an ACP agent's turn", () => {
  it.live("shows what the agent says and does, once, under our ids", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        assert.strictEqual((yield* runtime.run(session.id, "hello")).status, "completed")
        yield* runtime.run(session.id, "tool")
        const events = yield* runtime.journal(session.id)
        assert.strictEqual(textIn(events), "Hello, world.|Let me see. |Done.")
        assert.isTrue(has(events, { type: "text-end", channel: "thinking", text: "hm" }))
        assert.strictEqual(events.filter((event) => event.type === "user-message").length, 2)
        assert.deepStrictEqual(
          events.flatMap((event) => ("toolCallId" in event && event.toolCallId === "c1" ? [event.type] : [])),
          ["tool-start", "tool-input", "tool-status", "file-diff", "tool-output"]
        )
        const [output] = events.flatMap((event) => (event.type === "tool-output" ? [event.output] : []))
        assert.deepStrictEqual(output, { files: ["a"] })
      })
    )
  )

  it.live("a stop at a limit fails with the limit's code, a refusal completes [HRN-015]", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        const ended = (reason: string) =>
          Effect.map(runtime.run(session.id, `stop ${reason}`), (outcome) =>
            outcome.status === "failed" ? outcome.error.code : `${outcome.status} ${outcome.reason}`
          )
        assert.strictEqual(yield* ended("max_tokens"), "truncated")
        assert.strictEqual(yield* ended("max_turn_requests"), "budget")
        assert.strictEqual(yield* ended("refusal"), "completed refusal")
        assert.strictEqual(yield* ended("cancelled"), "cancelled requested")
      })
    )
  )

  it.live("plans, usage, titles, commands, media and notices have their events; one odd frame costs itself alone", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        const outcome = yield* runtime.run(session.id, "everything")
        assert.strictEqual(outcome.status, "completed")
        const events = yield* runtime.journal(session.id)
        for (const type of [
          "todo-update",
          "usage",
          "session-title",
          "available-commands-update",
          "image-delta",
          "resource-link-delta"
        ]) {
          assert.isTrue(has(events, { type }), type)
        }
        assert.isTrue(has(events, { type: "harness-notice", code: "agent_notice", message: "Careful" }))
        assert.isTrue(has(events, { type: "harness-notice", code: "unknown_native_event" }))
        assert.isTrue(has(events, { type: "diagnostic" }))
        assert.deepStrictEqual(
          (yield* (yield* runtime.driver).commands(at.directory, session.id)).map(({ name }) => name),
          ["go"]
        )
      })
    )
  )

  it.live("what the agent says after its answer joins the turn before and ends nothing", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        const outcome = yield* runtime.run(session.id, "late")
        assert.strictEqual(outcome.status, "completed")
        yield* runtime.until(session.id, (event) => event.type === "text-delta" || event.type === "text-end")
        assert.strictEqual((yield* runtime.sessions.get(session.id))?.lastTurn?.status, "completed")
      })
    )
  )

  it.live("an agent that talks faster than the journal writes loses nothing", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "burst 5000")
        assert.strictEqual(textIn(yield* runtime.journal(session.id)), "x".repeat(5000))
      })
    )
  )

  it.live("noise on stdout is skipped, and a hundred such lines in a row end the conversation [HRN-044]", () =>
    within({ noise: 99 }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        assert.strictEqual((yield* runtime.run(session.id, "hello")).status, "completed")
        const second = yield* reopened({ noise: 100 })
        const outcome = yield* second.run(session.id, "hello")
        assert.strictEqual(outcome.status === "failed" ? outcome.error.code : outcome.status, "harness_protocol")
      })
    )
  )

  it.live(
    "a crash fails the turn with the exit and the words on stderr; the next turn reopens the conversation [HRN-035]",
    () =>
      within({}, ({ at, processes, runtime }) =>
        Effect.gen(function* () {
          const session = yield* runtime.create(at.directory)
          yield* runtime.run(session.id, "hello")
          const [group] = yield* processes
          const outcome = yield* runtime.run(session.id, "crash")
          assert.strictEqual(
            outcome.status === "failed" ? outcome.error.code : outcome.status,
            "harness_process_exited"
          )
          const events = yield* runtime.journal(session.id)
          assert.isTrue(has(events, { type: "tool-status", toolCallId: "x1", status: "uncertain" }))
          assert.isFalse(isGroupAlive(group ?? 0))
          assert.strictEqual((yield* runtime.run(session.id, "hello")).status, "completed")
          assert.strictEqual(lines(at, "load"), 1)
          assert.strictEqual(lines(at, "new"), 1)
        })
      )
  )

  it.live("a cancelled turn is one that the agent says it cancelled", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.start(session.id, "long")
        yield* runtime.until(session.id, (event) => event.type === "text-delta")
        const answer = yield* runtime.turns.abort(session.id)
        assert.deepStrictEqual(answer, { ok: true, status: "cancelled" })
        assert.strictEqual(lines(at, "cancel"), 1)
        const last = (yield* runtime.sessions.get(session.id))?.lastTurn
        assert.deepInclude(last, { status: "cancelled", reason: "requested" })
      })
    )
  )

  it.live("an agent deaf to cancels is ended, with its group, and the turn is cancelled by force", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* place
        const store = createMemoryRuntimeStore()
        yield* Effect.addFinalizer(() => store.close)
        const runtime = yield* open(testAgent(at), store, { cancelGraceMs: 100 })
        const session = yield* runtime.create(at.directory)
        yield* runtime.start(session.id, "deaf")
        yield* runtime.until(session.id, (event) => event.type === "text-delta")
        const [row] = yield* store.processes
        yield* runtime.turns.abort(session.id)
        assert.deepInclude((yield* runtime.sessions.get(session.id))?.lastTurn, {
          status: "cancelled",
          reason: "forced"
        })
        assert.isFalse(isGroupAlive(row?.pgid ?? 0))
      })
    )
  )
})

describe("what an ACP agent asks", () => {
  it.live(
    "an ask has the agent's id and options unchanged, also id 0; the answer goes by kind [HRN-107, HRN-108]",
    () =>
      within({}, ({ at, runtime }) =>
        Effect.gen(function* () {
          const session = yield* runtime.create(at.directory)
          yield* runtime.start(session.id, "always")
          yield* runtime.until(session.id, (event) => event.type === "permission-request")
          const [ask] = yield* runtime.interactions.list({ sessionId: session.id })
          assert.isDefined(ask)
          assert.strictEqual(ask.nativeRequestId, "0")
          assert.deepStrictEqual(
            ask.kind === "permission" ? ask.options.map(({ id, kind, label }) => [id, label, kind]) : [],
            [
              ["always", "allow_always 0", "allow_always"],
              ["yes", "allow_once 1", "allow_once"],
              ["yes", "allow_once 2", "allow_once"],
              ["o3", "reject_once 3", "reject_once"],
              ["o4", "reject_always 4", "reject_always"]
            ]
          )
          yield* runtime.interactions.respond(ask.id, { decision: "allow_once" })
          yield* runtime.turns.whenIdle(session.id)
          assert.isTrue(has(yield* runtime.journal(session.id), { type: "tool-output", toolCallId: "a1" }))
        })
      )
  )

  it.live("a refused call ends denied, and the turn goes on", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.start(session.id, "permission")
        yield* runtime.until(session.id, (event) => event.type === "permission-request")
        const [ask] = yield* runtime.interactions.list({ sessionId: session.id })
        yield* runtime.interactions.respond(ask?.id ?? "", { decision: "deny" })
        yield* runtime.turns.whenIdle(session.id)
        assert.isTrue(has(yield* runtime.journal(session.id), { type: "tool-error", toolCallId: "p1", code: "denied" }))
        assert.strictEqual((yield* runtime.sessions.get(session.id))?.lastTurn?.status, "completed")
      })
    )
  )

  it.live("a request with nothing but a title is asked", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.start(session.id, "titleonly")
        yield* runtime.until(session.id, (event) => event.type === "permission-request")
        const [ask] = yield* runtime.interactions.list({ sessionId: session.id })
        assert.deepInclude(ask, { title: "Only a title", toolCallId: "t1" })
        yield* runtime.interactions.respond(ask?.id ?? "", { decision: "allow_once" })
        yield* runtime.turns.whenIdle(session.id)
      })
    )
  )

  it.live("a form is a question, and its answer goes back under the form's own values", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.start(session.id, "question")
        yield* runtime.until(session.id, (event) => event.type === "question")
        const [ask] = yield* runtime.interactions.list({ sessionId: session.id })
        yield* runtime.interactions.respond(ask?.id ?? "", { answers: [["Green"]] })
        yield* runtime.turns.whenIdle(session.id)
        assert.strictEqual(textIn(yield* runtime.journal(session.id)), '{"action":"accept","content":{"colour":"g"}}')
      })
    )
  )

  it.live("files and terminals are neither offered nor served [HRN-100]", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "files")
        assert.strictEqual(textIn(yield* runtime.journal(session.id)), "-32601 -32601 -32601")
        const said = at.log().find((line) => line.startsWith("initialize ")) ?? ""
        assert.deepInclude(JSON.parse(said.slice("initialize ".length)), {
          fs: { readTextFile: false, writeTextFile: false },
          terminal: false
        })
      })
    )
  )
})

describe("opening and reopening", () => {
  it.live("updates before the answer to session/new are kept until the session is known [HRN-010]", () =>
    within({ early: 3 }, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.until(session.id, (event) => event.type === "text-delta" || event.type === "text-end")
        yield* runtime.run(session.id, "hello")
        const said = (yield* runtime.journal(session.id)).flatMap((event) =>
          event.type === "text-delta" ? [event.delta] : []
        )
        assert.isTrue(said.join("").startsWith("early 0 early 1 early 2 "), said.join(""))
      })
    )
  )

  it.live("the past that a load repeats is told to nobody, what follows the answer is [HRN-008, HRN-103]", () =>
    within({ afterLoad: true, emptyAnswer: true }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        const before = (yield* runtime.journal(session.id)).length
        const second = yield* reopened()
        assert.strictEqual((yield* second.run(session.id, "other words")).status, "completed")
        yield* second.until(session.id, (event) => event.type === "session-title" && event.title === "after the load")
        const after = (yield* second.journal(session.id)).slice(before)
        assert.strictEqual(textIn(after), "You said: other words")
        assert.strictEqual(lines(at, "load"), 1)
      })
    )
  )

  it.live("resume is preferred to load, and an agent with neither says that it resumes nothing", () =>
    within({ resume: true }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        const second = yield* reopened()
        yield* second.run(session.id, "hello")
        assert.deepStrictEqual([lines(at, "resume"), lines(at, "load")], [1, 0])
        const capabilities = yield* (yield* second.driver).capabilities({ directory: at.directory })
        assert.strictEqual(capabilities.resume, "exact")
        const third = yield* Effect.andThen(
          second.close,
          open(testAgent(at, { load: false }), createMemoryRuntimeStore())
        )
        const poor = yield* (yield* third.driver).capabilities({ directory: at.directory })
        assert.strictEqual(poor.resume, "none")
      })
    )
  )

  const forget = (at: Place): void => {
    for (const name of readdirSync(at.state)) if (name.endsWith(".json")) rmSync(join(at.state, name))
  }

  it.live("missing is what the agent's own error says of this very conversation [HRN-005]", () =>
    within({}, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        forget(at)
        const gone = yield* reopened()
        const outcome = yield* gone.run(session.id, "hello")
        assert.strictEqual(outcome.status === "failed" ? outcome.error.code : outcome.status, "session_missing")
        const fresh = yield* gone.run(session.id, "hello", { allowFreshContext: true })
        assert.strictEqual(fresh.status, "completed")
        assert.isTrue(has(yield* gone.journal(session.id), { type: "conversation-reset" }))
      })
    )
  )

  it.live.each([
    { name: "any-agent", missing: { code: -32_603, message: "Internal error" }, code: "harness_error" },
    {
      name: "any-agent",
      missing: { code: -32_002, message: "Resource not found", data: { uri: "another" } },
      code: "harness_error"
    },
    {
      name: "qwen-code",
      missing: { code: -32_002, message: "Resource not found", data: { uri: "session:{id}" } },
      code: "session_missing"
    },
    { name: "claude-agent-acp", missing: { code: -32_002, message: "Resource not found" }, code: "session_missing" },
    {
      name: "codex-acp",
      missing: { code: -32_603, message: "Internal error", data: { details: "no rollout found for thread id" } },
      code: "session_missing"
    },
    {
      name: "codex-acp",
      missing: { code: -32_603, message: "Internal error", data: { details: "disk full" } },
      code: "harness_error"
    },
    {
      name: "OpenCode",
      missing: { code: -32_603, message: "Internal error: OpenCode service failure" },
      code: "harness_error"
    }
  ])("$name answering $missing.code is $code [HRN-106]", ({ code, missing, name }) =>
    within({ name, missing }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        forget(at)
        const second = yield* reopened()
        const outcome = yield* second.run(session.id, "hello")
        assert.strictEqual(outcome.status === "failed" ? outcome.error.code : outcome.status, code)
      })
    )
  )

  it.live("an agent whose load does harm is not asked to reopen [HRN-106]", () =>
    within({ name: "gemini-cli" }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        assert.strictEqual((yield* (yield* runtime.driver).capabilities({ directory: at.directory })).resume, "none")
        yield* runtime.run(session.id, "hello")
        const second = yield* reopened()
        const outcome = yield* second.run(session.id, "hello")
        assert.strictEqual(outcome.status === "failed" ? outcome.error.code : outcome.status, "harness_context_lost")
        assert.strictEqual(lines(at, "load"), 0)
      })
    )
  )

  it.live(
    "a list that names the conversation overrules the error; one with another directory stops the reopening [HRN-005, HRN-007]",
    () =>
      within({ list: true }, ({ at, reopened, runtime }) =>
        Effect.gen(function* () {
          const session = yield* runtime.create(at.directory)
          yield* runtime.run(session.id, "hello")
          const second = yield* reopened({
            list: true,
            load: true,
            missing: { code: -32_002, message: "no" },
            refuseLoad: true
          })
          const doubt = yield* second.run(session.id, "hello")
          assert.strictEqual(doubt.status === "failed" ? doubt.error.code : doubt.status, "harness_error")
          const third = yield* Effect.andThen(second.close, reopened({ list: true, listedIn: "/" }))
          const elsewhere = yield* third.run(session.id, "hello")
          assert.match(elsewhere.status === "failed" ? elsewhere.error.message : "", /directory_mismatch/)
        })
      )
  )

  it.live("a directory that is another one now is not reopened [HRN-007]", () =>
    within({}, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const work = join(at.directory, "work")
        const other = join(at.directory, "other")
        mkdirSync(work)
        mkdirSync(other)
        const session = yield* runtime.create(work)
        yield* runtime.run(session.id, "hello")
        rmSync(work, { recursive: true })
        symlinkSync(other, work)
        const second = yield* reopened()
        const outcome = yield* second.run(session.id, "hello")
        assert.match(outcome.status === "failed" ? outcome.error.message : "", /directory_mismatch/)
        assert.strictEqual(lines(at, "load"), 0)
      })
    )
  )

  it.live("a conversation that had no turn yet may be made again when the agent kept nothing [HRN-006]", () =>
    within({}, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        forget(at)
        const second = yield* reopened()
        assert.strictEqual((yield* second.run(session.id, "hello")).status, "completed")
        assert.strictEqual(lines(at, "new"), 2)
      })
    )
  )

  it.live("an agent that needs a sign-in says how; one that was named is used [HRN-101]", () =>
    within({ auth: true }, ({ at, runtime }) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(runtime.create(at.directory))
        assert.strictEqual(error._tag, "HarnessAuthRequired")
        assert.match(error.message, /API key \(key\)/)
        assert.strictEqual(lines(at, "authenticate"), 0)
        const signed = yield* open(testAgent(at, { auth: true }, { authMethod: "key" }), createMemoryRuntimeStore())
        const session = yield* signed.create(at.directory)
        assert.strictEqual((yield* signed.run(session.id, "hello")).status, "completed")
        const wrong = yield* open(testAgent(at, { auth: true }, { authMethod: "other" }), createMemoryRuntimeStore())
        assert.strictEqual((yield* Effect.flip(wrong.create(at.directory)))._tag, "HarnessAuthRequired")
      })
    )
  )

  it.live("another version, a missing program and an early exit fail the opening with their reason [HRN-038]", () =>
    within({ version: 2 }, ({ at, processes, runtime }) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(runtime.create(at.directory)))._tag, "HarnessVersionUnsupported")
        const missing = yield* open(
          testAgent(at, {}, { binary: "/no/such/agent", args: [] }),
          createMemoryRuntimeStore()
        )
        assert.strictEqual((yield* Effect.flip(missing.create(at.directory)))._tag, "HarnessProgramMissing")
        const args = ["-c", "echo token=abcdefgh >&2; exit 4"]
        const early = yield* open(
          testAgent(at, {}, { binary: "/bin/sh", args, env: { variables: { TOKEN: "abcdefgh" } } }),
          createMemoryRuntimeStore()
        )
        const error = yield* Effect.flip(early.create(at.directory))
        assert.strictEqual(error._tag === "HarnessProcessExited" ? error.exitCode : undefined, 4)
        assert.strictEqual(error._tag === "HarnessProcessExited" ? error.stderrTail : undefined, "token=[secret]\n")
        assert.deepStrictEqual(yield* processes, [])
      })
    )
  )

  it.live("an agent that does not answer the greeting is ended at its deadline", () =>
    within(
      { silent: true },
      ({ at, processes, runtime }) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(runtime.create(at.directory)))._tag, "HarnessTimeout")
          assert.deepStrictEqual(yield* processes, [])
        }),
      { initializeTimeoutMs: 500 }
    )
  )

  it.effect(
    "an idle process is ended and the conversation reopened; one with work going on is left alone [HRN-040]",
    () =>
      within(
        {},
        ({ at, runtime }) =>
          Effect.gen(function* () {
            const session = yield* runtime.create(at.directory)
            yield* runtime.run(session.id, "hello")
            yield* TestClock.adjust(999)
            yield* runtime.run(session.id, "hello")
            assert.strictEqual(lines(at, "start"), 1)
            yield* TestClock.adjust(1_000)
            yield* runtime.run(session.id, "open")
            assert.deepStrictEqual([lines(at, "start"), lines(at, "load")], [2, 1])
            yield* TestClock.adjust(5_000)
            yield* runtime.run(session.id, "hello")
            assert.strictEqual(lines(at, "start"), 2)
          }),
        { idleMs: 1_000 }
      )
  )
})

describe("choices", () => {
  it.live("an option is set as an option; what the agent does not offer is refused [HRN-102]", () =>
    within({ modes: "options" }, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory, { permissionMode: "default" })
        yield* runtime.config.update(session.id, { model: { providerID: "test", modelID: "small" } })
        const refused = yield* Effect.flip(runtime.config.update(session.id, { permissionMode: "reckless" }))
        assert.strictEqual(refused._tag, "HarnessRejected")
        assert.deepStrictEqual(
          at.log().filter((line) => line.startsWith("set")),
          ["set mode default", "set model small"]
        )
        yield* runtime.run(session.id, "hello", { variant: "low" })
        assert.isTrue(at.log().includes("set effort low"))
        const modes = yield* runtime.config.permissionModes(session.id)
        assert.deepStrictEqual(
          modes.modes.map(({ id }) => id),
          ["default", "yolo"]
        )
      })
    )
  )

  it.live("without an option for it a mode is set by its own call, if it is on the list [HRN-102]", () =>
    within({ modes: "list" }, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.config.update(session.id, { permissionMode: "default" })
        yield* Effect.flip(runtime.config.update(session.id, { permissionMode: "reckless" }))
        assert.deepStrictEqual(
          at.log().filter((line) => line.startsWith("set")),
          ["set_mode default"]
        )
        const unsupported = yield* Effect.flip(runtime.config.update(session.id, { variant: "low" }))
        assert.strictEqual(unsupported._tag, "UnsupportedOperation")
      })
    )
  )

  it.live("an agent that decides by itself is put into the mode in which it asks [HRN-106]", () =>
    within({ modes: "list", name: "qwen-code" }, ({ at, reopened, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        assert.strictEqual(lines(at, "set_mode"), 1)
        // A process that reopens the conversation is in its own mode again.
        const second = yield* reopened()
        yield* second.run(session.id, "hello")
        assert.deepStrictEqual([lines(at, "set_mode"), at.log().includes("set_mode default")], [2, true])
      })
    )
  )

  it.live("instructions go in front of the first prompt, and only there", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory, { instructions: "Be kind." })
        yield* runtime.run(session.id, "hello")
        yield* runtime.run(session.id, "hello")
        assert.deepStrictEqual(
          at.log().filter((line) => line.startsWith("prompt")),
          ['prompt ["Be kind.","hello"]', 'prompt ["hello"]']
        )
      })
    )
  )

  it.live("closing and deleting reach the agent, and its process is gone", () =>
    within({ remove: true }, ({ at, processes, runtime }) =>
      Effect.gen(function* () {
        const session = yield* runtime.create(at.directory)
        yield* runtime.run(session.id, "hello")
        yield* runtime.sessions.close(session.id)
        assert.deepStrictEqual([lines(at, "close"), yield* processes], [1, []])
        yield* runtime.run(session.id, "hello")
        yield* runtime.sessions.remove(session.id)
        assert.deepStrictEqual([lines(at, "delete"), yield* processes], [1, []])
      })
    )
  )

  it.live("two sessions have a process each and work side by side", () =>
    within({}, ({ at, processes, runtime }) =>
      Effect.gen(function* () {
        const first = yield* runtime.create(at.directory)
        const second = yield* runtime.create(at.directory)
        yield* runtime.start(first.id, "permission")
        yield* runtime.until(first.id, (event) => event.type === "permission-request")
        assert.strictEqual((yield* runtime.run(second.id, "hello")).status, "completed")
        assert.strictEqual((yield* processes).length, 2)
        yield* runtime.turns.abort(first.id)
      })
    )
  )
})
