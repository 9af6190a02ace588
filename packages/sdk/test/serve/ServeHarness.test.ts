import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { EventPayload } from "@tackroom/protocol/events"
import { Effect } from "effect"
import {
  AgentRuntime,
  Interactions,
  Sessions,
  Turns,
  type AgentRuntimeOptions,
  type RuntimeServices
} from "../../src/effect.ts"
import { serve, type ServeHarnessOptions } from "../../src/harness/serve/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { failing, journal, outcome, until } from "../runtime/Kit.ts"
import { referenceMain } from "./Reference.ts"

const scripted = fileURLToPath(new URL("programs/Scripted.ts", import.meta.url))
const ref = { id: "serve", access: "native" } as const

const against = <A, E>(
  options: Partial<ServeHarnessOptions>,
  program: (directory: string) => Effect.Effect<A, E, RuntimeServices>,
  more: Partial<AgentRuntimeOptions> = {}
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "tackroom-serve-")))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const harness = serve({ command: process.execPath, ...options })
      const layer = AgentRuntime.layer({ store: createMemoryRuntimeStore(), harnesses: [harness], ...more })
      return yield* Effect.provide(program(directory), layer)
    })
  )

type Steps = ReadonlyArray<string | Record<string, unknown>>

const capabilities = ["submit", "answer", "cancel", "ping", "shutdown", "ask_id", "hello", "op_id"]
const ready = JSON.stringify({ protocol: 1, type: "ready", pid: 1, protocol_version: 1, capabilities })

/** A program that says what is written. */
const saying = (script: {
  readonly start?: Steps
  readonly submit?: Steps
  readonly cancel?: Steps
  readonly answer?: Steps
}) => ({
  args: [scripted, JSON.stringify({ start: [ready], ...script })]
})

const line = (type: string, seq: number, more: object = {}): string =>
  JSON.stringify({ protocol: 1, type, seq, run_id: "RUN", ...more })

const started = line("start", 1, { prompt: "go", warnings: [] })
const result = (seq: number, more: object = {}): string =>
  line("result", seq, { answer: "hi", errors: [], error_messages: [], cancelled: false, ...more })

const create = (directory: string, more: Record<string, unknown> = {}) =>
  Effect.flatMap(Effect.service(Sessions), (sessions) =>
    sessions.create({ id: "s", directory, harness: ref, title: "t", ...more })
  )

const start = (text = "go", messageId = "m", more: Record<string, unknown> = {}) =>
  Effect.flatMap(Effect.service(Turns), (turns) => turns.start({ sessionId: "s", messageId, text, ...more }))

const run = Effect.fnUntraced(function* (directory: string, text = "go") {
  yield* create(directory)
  yield* start(text)
  return yield* outcome("s", "m")
})

const told = Effect.map(journal("s"), (events): ReadonlyArray<EventPayload> =>
  events.flatMap(({ payload, turnId }) => (turnId === undefined ? [] : [payload]))
)

describe("a serve-mode program as a harness", () => {
  it.live(
    "is started in the session's directory; its run has the turn's id, and its lines are the turn [HRN-220]",
    () =>
      against({ args: [referenceMain] }, (directory) =>
        Effect.gen(function* () {
          const ended = yield* run(directory, "#tools 2")
          assert.strictEqual(ended.status, "completed")
          const events = yield* told
          assert.deepStrictEqual(
            events.filter((event) => event.type === "response-start").length,
            3,
            "every round shows as a response"
          )
          const ends = events.flatMap((event) =>
            event.type === "tool-output" ? [[event.toolCallId, event.output]] : []
          )
          assert.deepStrictEqual(ends, [
            ["c1", "looked"],
            ["c2", "looked"]
          ])
          const last = events.at(-1)
          assert.isTrue(last?.type === "finish" && last.finalText === "Done.")
        })
      )
  )

  it.live("gets the instructions before its first prompt, and no other option", () =>
    against({ args: [referenceMain] }, (directory) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* failing(create(directory, { permissionMode: "full" })), "harness_rejected")
        yield* create(directory, { instructions: "Be kind." })
        yield* start("hello")
        yield* outcome("s", "m")
        yield* start("again", "m2")
        yield* outcome("s", "m2")
        const answers = (yield* told).flatMap((event) => (event.type === "finish" ? [event.finalText] : []))
        assert.deepStrictEqual(answers, ["Be kind.\n\nhello", "again"])
      })
    )
  )

  const ask = (
    options: Partial<ServeHarnessOptions>,
    prompt: string,
    answers: ReadonlyArray<ReadonlyArray<string>> | null
  ) =>
    against(options, (directory) =>
      Effect.gen(function* () {
        yield* create(directory)
        const asked = yield* until("s", (payload) => payload.type === "question")
        yield* start(prompt)
        const { payload } = yield* asked
        if (payload.type !== "question") return assert.fail("no question")
        const interactions = yield* Interactions
        yield* interactions.respond(payload.requestId, { answers })
        yield* outcome("s", "m")
        const last = (yield* told).at(-1)
        return { question: payload.questions[0], end: last }
      })
    )

  it.live("asks through questions: a confirmation is a yes or a no, or one of its options [HRN-220]", () =>
    Effect.gen(function* () {
      const bare = { args: [referenceMain, "--bare"] }
      const full = { args: [referenceMain] }
      const said = (answer: string) => (got: { readonly end: EventPayload | undefined } | undefined) =>
        assert.isTrue(got?.end?.type === "finish" && got.end.finalText === `${answer}: Done.`, JSON.stringify(got?.end))
      const yes = yield* ask(bare, "#confirm", [["Yes"]])
      assert.deepStrictEqual(
        yes?.question?.options.map((option) => option.label),
        ["Yes", "No"]
      )
      said("allowed")(yes)
      said("refused")(yield* ask(bare, "#confirm", [["No"]]))
      said("refused")(yield* ask(bare, "#confirm", null))
      const option = yield* ask(full, "#confirm", [["Allow"]])
      assert.deepStrictEqual(
        option?.question?.options.map(({ label }) => label),
        ["Allow", "Never"]
      )
      said("allowed")(option)
      said("refused")(yield* ask(full, "#confirm", [["Never"]]))
      said("Red")(yield* ask(bare, "#ask", [["Red"]]))
      said("Unanswered")(yield* ask(bare, "#ask", null))
    })
  )

  it.live("an answer that it refuses ends the run, and is not passed over", () =>
    against({ args: [referenceMain] }, (directory) =>
      Effect.gen(function* () {
        yield* create(directory)
        const asked = yield* until("s", (payload) => payload.type === "question")
        yield* start("#ask")
        const { payload } = yield* asked
        if (payload.type !== "question") return
        // Rejected: this program takes one of the options only.
        yield* Effect.flatMap(Effect.service(Interactions), (all) => all.respond(payload.requestId, { answers: null }))
        const ended = yield* outcome("s", "m")
        assert.isTrue(ended.status === "failed" && ended.error.message.includes("answer"))
        yield* start("#say and go on", "m2")
        assert.strictEqual((yield* outcome("s", "m2")).status, "completed")
      })
    )
  )
})

describe("how a run of a serve-mode program ends", () => {
  const failed = (code: string, more: object = {}) => [
    started,
    result(2, { answer: "", errors: [{ code, message: "m", ...more }] })
  ]
  for (const [what, steps, code, errorClass] of [
    ["a spent budget", failed("budget"), "budget", undefined],
    ["a spent time", failed("timeout"), "timeout", undefined],
    ["another error", failed("unknown", { message: "the api key is wrong" }), "harness_error", "credential"],
    ["an error with its class", failed("unknown", { class: "model" }), "harness_error", "model"],
    ["an answer cut short", failed("unknown", { runtime_code: "truncated" }), "truncated", "unknown"]
  ] as const) {
    it.live(`${what} is a failed turn, ${code} [HRN-015, HRN-016, HRN-220]`, () =>
      against(saying({ submit: [...steps] }), (directory) =>
        Effect.gen(function* () {
          const ended = yield* run(directory)
          const error = ended.status === "failed" ? ended.error : undefined
          assert.deepStrictEqual([error?.code, error?.errorClass], [code, errorClass])
        })
      )
    )
  }

  it.live("an error line without a result is a fault of the protocol [HRN-221]", () =>
    against({ args: [referenceMain, "--fault", "SRV-145"] }, (directory) =>
      Effect.gen(function* () {
        const ended = yield* run(directory, "#refused")
        assert.isTrue(ended.status === "failed" && ended.error.code === "harness_protocol")
      })
    )
  )

  it.live("a program that is still closing its last run is asked again, if it is a bare one [HRN-013]", () =>
    against({ args: [referenceMain, "--bare", "--fault", "SRV-144"] }, (directory) =>
      Effect.gen(function* () {
        yield* run(directory, "one")
        yield* start("two", "m2")
        const ended = yield* outcome("s", "m2")
        assert.strictEqual(ended.status, "completed")
      })
    )
  )

  it.live("a cancel is acknowledged by the result, and forced when none comes [HRN-220] [RT-160]", () =>
    Effect.gen(function* () {
      const cancelled = (args: ReadonlyArray<string>) =>
        against(
          { args: [referenceMain, ...args] },
          (directory) =>
            Effect.gen(function* () {
              yield* create(directory)
              const working = yield* until("s", (payload) => payload.type === "text-delta")
              yield* start("#hang")
              yield* working
              const turns = yield* Turns
              yield* turns.abort("s")
              const ended = yield* outcome("s", "m")
              return ended.status === "cancelled" ? ended.reason : ended.status
            }),
          { cancelGraceMs: 200, killGraceMs: 200 }
        )
      assert.strictEqual(yield* cancelled([]), "requested")
      assert.strictEqual(yield* cancelled(["--fault", "SRV-221"]), "forced")
    })
  )

  it.live("usage counts what is not cached, and every round once [HRN-017]", () =>
    against(
      saying({
        submit: [
          started,
          line("notify", 2, { kind: "usage", data: { input: 310, output: 24, rounds: 1 } }),
          line("notify", 3, { kind: "usage", data: { input: 655, output: 29, rounds: 2 } }),
          result(4, {
            usage: { input: 655, output: 29, rounds: 2 },
            usage_detail: { cache_read: 300, cache_write: 5, reasoning: 7, cost: null }
          })
        ]
      }),
      (directory) =>
        Effect.gen(function* () {
          yield* run(directory)
          const events = yield* told
          const last = events.findLast((event) => event.type === "usage")
          assert.deepStrictEqual(last?.type === "usage" ? last.observation?.tokens : undefined, {
            input: 350,
            output: 29,
            reasoning: 7,
            cache: { read: 300, write: 5 }
          })
          assert.strictEqual(events.filter((event) => event.type === "response-start").length, 2)
        })
    )
  )
})

describe("the process of a serve-mode program", () => {
  it.live(
    "that cannot be started, ends early or speaks another version fails the opening with its reason [HRN-038]",
    () =>
      Effect.gen(function* () {
        const opening = (options: Partial<ServeHarnessOptions>) =>
          against(options, (directory) => Effect.flip(create(directory)))
        const missing = yield* opening({ command: "/no/such/program" })
        assert.strictEqual(missing._tag, "HarnessProgramMissing")
        const early = yield* opening(saying({ start: [{ stderr: "no model\n" }, { exit: 3 }] }))
        assert.isTrue(
          early._tag === "HarnessProcessExited" && early.exitCode === 3 && early.stderrTail?.includes("no model")
        )
        const other = yield* opening(saying({ start: [ready.replaceAll(":1,", ":2,").replace("hello", "nothing")] }))
        assert.isTrue(other._tag === "HarnessVersionUnsupported" && other.detail?.includes("version 2"), other.message)
        const slow = yield* opening({ ...saying({ start: [] }), initializeTimeoutMs: 100 })
        assert.strictEqual(slow._tag, "HarnessTimeout")
      })
  )

  it.live("may print what it likes between its lines, in any pieces [HRN-043, HRN-044]", () => {
    const bytes = (text: string | Buffer) => ({ bytes: Buffer.from(text).toString("base64") })
    return against(
      saying({
        start: ["Loading model…", bytes(Buffer.from([0xff, 0xfe, 0x0a])), "", "{not json", bytes(`${ready}\r\n`)],
        submit: [
          "noise",
          started,
          ...Array.from({ length: 90 }, () => "more noise"),
          line("delta", 2, { text: "one\u2028line" }),
          line("never-heard-of", 3),
          line("notify", 4, { kind: "from_the_future", data: 1 }),
          line("notify", 5, { kind: "tool_running", data: { wrong: true } }),
          result(6, { answer: "one\u2028line" })
        ]
      }),
      (directory) =>
        Effect.gen(function* () {
          const ended = yield* run(directory)
          assert.strictEqual(ended.status, "completed")
          const events = yield* told
          const text = events.find((event) => event.type === "text-end")
          assert.isTrue(text?.type === "text-end" && text.text === "one\u2028line")
          const notices = events.flatMap((event) => (event.type === "harness-notice" ? [event.code] : []))
          assert.deepStrictEqual(notices, ["unknown_native_event", "unknown_native_event"])
          assert.strictEqual(events.filter((event) => event.type === "diagnostic").length, 1)
        })
    )
  })

  it.live("that says nothing but noise is no program of this mode [HRN-044]", () =>
    against(saying({ start: Array.from({ length: 150 }, () => "noise") }), (directory) =>
      Effect.map(Effect.flip(create(directory)), (error) => assert.strictEqual(error._tag, "HarnessProtocol"))
    )
  )

  it.live("that exits in a run fails it with how it ended, and its question is withdrawn [HRN-035, HRN-036]", () =>
    against(
      saying({
        submit: [
          started,
          line("notify", 2, { kind: "tool_start", data: ["look"] }),
          line("notify", 3, { kind: "tool_running", data: "look" }),
          line("notify", 4, { kind: "ask", data: { kind: "ask", ask_id: 7, questions: [{ question: "Which?" }] } })
        ],
        answer: [{ stderr: "it broke\n" }, { exit: 9 }]
      }),
      (directory) =>
        Effect.gen(function* () {
          yield* create(directory)
          const asked = yield* until("s", (payload) => payload.type === "question")
          yield* start()
          const { payload } = yield* asked
          if (payload.type !== "question") return
          yield* Effect.flatMap(Effect.service(Interactions), (all) =>
            all.respond(payload.requestId, { answers: [["x"]] })
          )
          const ended = yield* outcome("s", "m")
          assert.isTrue(ended.status === "failed" && ended.error.code === "harness_process_exited")
          const events = yield* told
          const last = events.at(-1)
          assert.isTrue(
            last?.type === "error" && last.process?.code === 9 && last.process.stderrTail?.includes("it broke")
          )
          assert.isTrue(events.some((event) => event.type === "tool-status" && event.status === "uncertain"))
        })
    )
  )

  it.live("that closed its input fails the turn and nothing else [HRN-037]", () =>
    against(saying({ start: [ready, { close: true }] }), (directory) =>
      Effect.gen(function* () {
        const ended = yield* run(directory, "x".repeat(200_000))
        assert.isTrue(ended.status === "failed" && ended.error.code === "harness_protocol", JSON.stringify(ended))
        const sessions = yield* Sessions
        assert.strictEqual((yield* sessions.get("s"))?.id, "s")
      })
    )
  )

  it.live("whose conversation is lost says so, and begins a fresh one only when that is allowed [HRN-004]", () =>
    against(saying({ submit: [started, result(2), { exit: 0 }] }), (directory) =>
      Effect.gen(function* () {
        yield* create(directory)
        const gone = yield* until("s", (payload) => payload.type === "process-status")
        yield* start()
        yield* outcome("s", "m")
        yield* gone
        yield* start("go on", "m2")
        const lost = yield* outcome("s", "m2")
        assert.isTrue(lost.status === "failed" && lost.error.code === "harness_context_lost")
        yield* start("begin again", "m3", { allowFreshContext: true })
        const fresh = yield* outcome("s", "m3")
        assert.strictEqual(fresh.status, "completed")
        assert.isTrue((yield* told).some((event) => event.type === "conversation-reset"))
      })
    )
  )
})

describe("calls of a program that has no ids for them", () => {
  it.live("are told apart by name and order, and end without an output that nobody told [HRN-014]", () =>
    against(
      saying({
        submit: [
          started,
          line("notify", 2, { kind: "tool_start", data: ["look", "look"] }),
          line("notify", 3, {
            kind: "tool_calls",
            data: [
              { name: "look", args: '{"a":1}' },
              { name: "look", args: "not json" }
            ]
          }),
          line("notify", 4, { kind: "usage", data: { input: 1, output: 1, rounds: 1 } }),
          line("notify", 5, { kind: "tool_running", data: "look" }),
          line("notify", 6, { kind: "tools", data: null }),
          line("notify", 7, { kind: "tool_running", data: "look" }),
          line("notify", 8, { kind: "tools", data: null }),
          line("delta", 9, { text: "void" }),
          line("notify", 10, { kind: "retry", data: null }),
          line("delta", 11, { text: "said" }),
          result(12, { answer: "said" })
        ]
      }),
      (directory) =>
        Effect.gen(function* () {
          yield* run(directory)
          const events = yield* told
          const calls = events.flatMap((event) =>
            event.type === "tool-start" || event.type === "tool-input" || event.type === "tool-output"
              ? [[event.type, event.toolCallId, event.type === "tool-input" ? event.input : undefined]]
              : []
          )
          const [first, second] = events.flatMap((event) => (event.type === "tool-start" ? [event.toolCallId] : []))
          assert.deepStrictEqual(calls, [
            ["tool-start", first, undefined],
            ["tool-input", first, { a: 1 }],
            ["tool-start", second, undefined],
            ["tool-input", second, "not json"],
            ["tool-output", first, undefined],
            ["tool-output", second, undefined]
          ])
          const responses = events.flatMap((event) => (event.type === "response-start" ? [event.attempt] : []))
          assert.deepStrictEqual(responses, [1, 1, 2])
          assert.strictEqual(events.filter((event) => event.type === "response-retracted").length, 1)
        })
    )
  )
})
