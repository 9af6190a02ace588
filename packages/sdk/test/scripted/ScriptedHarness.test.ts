import { assert, describe, it } from "@effect/vitest"
import type { HarnessEvent, PromptInput } from "@tackroom/protocol/events"
import { eventSchemas, isTerminal } from "@tackroom/protocol/events"
import type { Scenario } from "@tackroom/protocol/scenario"
import { Effect, Fiber, Queue, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { TurnInput } from "../../src/harness/Harness.ts"
import { scripted, type ScriptedOptions } from "../../src/harness/scripted/index.ts"
import { admit, type BenchOptions, binding, journaled, makeBench, makeJournal, only, turnInput } from "./bench.ts"

const scenario = (name: string, ...responses: ReadonlyArray<Scenario["default"] & {}>): Scenario => ({
  scenario: 1,
  name,
  default: responses.flat()
})

/** A driver over a fresh journal; each turn is admitted, run to its end and journaled. */
const setup = Effect.fnUntraced(function* (options: ScriptedOptions = {}, bench: Omit<BenchOptions, "journal"> = {}) {
  const journal = makeJournal()
  const { context, asks } = yield* makeBench({
    journal,
    decide: () => "allow_once",
    answer: () => [["Green"]],
    ...bench
  })
  const driver = yield* scripted({ speed: 0, ...options }).make(context)
  let count = 0
  const run = (text: string, more?: Partial<TurnInput>) => {
    const turn = admit(journal, `trn_${++count}`, text, more)
    return journaled(journal, turn.turnId, driver.runTurn(turn))
  }
  return { journal, context, asks, driver, run }
})

const textOf = (events: ReadonlyArray<HarnessEvent>): string =>
  only(events, "text-delta")
    .map((event) => event.delta)
    .join("")

describe("scripted harness", () => {
  it.effect("demo plays text, tools, a plan and approvals, and finishes once [AGT-335] [HRN-009]", () =>
    Effect.gen(function* () {
      const { run, journal } = yield* setup()
      const events = yield* run("show me")
      for (const event of events) {
        assert.isTrue(Schema.is(eventSchemas[event.type] as Schema.Codec<unknown>)(event), JSON.stringify(event))
      }
      assert.strictEqual(events.filter(isTerminal).length, 1)
      const finish = events.at(-1)
      assert.strictEqual(finish?.type, "finish")
      assert.include(finish?.type === "finish" ? finish.finalText : "", "scripted")
      assert.deepStrictEqual(
        only(events, "tool-start").map((event) => event.toolName),
        ["files.read", "files.read", "files.write", "shell.run"]
      )
      assert.strictEqual(only(events, "tool-output").length, 4)
      assert.strictEqual(only(events, "response-start").length, 4)
      assert.strictEqual(only(events, "usage").length, 4)
      assert.strictEqual(only(events, "file-diff").length, 1)
      assert.isAtLeast(only(events, "todo-update").length, 3)
      const types = journal.types()
      assert.strictEqual(types.filter((type) => type === "permission-request").length, 2)
      assert.isBelow(types.indexOf("tool-start"), types.indexOf("permission-request"))
    })
  )

  it.effect("the session is labelled once: a notice, a title and model ids that say scripted [HRN-280] [AGT-334]", () =>
    Effect.gen(function* () {
      const { run, driver } = yield* setup()
      const first = yield* run("first line\nsecond")
      assert.deepStrictEqual(
        only(first, "session-title").map((event) => event.title),
        ["first line (scripted)"]
      )
      assert.strictEqual(only(first, "harness-notice")[0]?.code, "scripted")
      const second = yield* run("again")
      assert.deepStrictEqual([only(second, "session-title").length, only(second, "harness-notice").length], [0, 0])
      const models = yield* driver.models("/tmp")
      assert.strictEqual(models[0]?.modelID, "scripted-demo")
      assert.isTrue(models.every((model) => model.providerID === "script" && model.modelID.includes("scripted")))
    })
  )

  it.effect("every text part is closed with its whole text, and deltas are streamed", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({
        scenarios: [
          scenario("parts", [
            [{ thinking: "hm " }, { thinking: "ok" }, { text: "one " }, { delayMs: 5 }, { text: "two" }]
          ])
        ]
      })
      const events = yield* run("x")
      assert.deepStrictEqual(
        only(events, "text-end").map((event) => [event.channel, event.text]),
        [
          ["thinking", "hm ok"],
          ["text", "one two"]
        ]
      )
      assert.strictEqual(textOf(events), "one two")
    })
  )

  it.effect("the next turn takes the next response; after the last the scenario is exhausted [AGT-330] [AGT-332]", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({ scenarios: [scenario("two", [[{ text: "first" }], [{ text: "second" }]])] })
      assert.strictEqual(textOf(yield* run("a")), "first")
      assert.strictEqual(textOf(yield* run("b")), "second")
      const last = (yield* run("c")).at(-1)
      assert.deepInclude(last, { type: "error", code: "harness_error", errorClass: "model" })
    })
  )

  it.effect("a refused permission ends the call as denied and the turn goes on", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({}, { decide: (ask) => (ask.tool === "files.write" ? "deny" : "allow_once") })
      const events = yield* run("x")
      assert.deepStrictEqual(
        only(events, "tool-error").map((event) => event.code),
        ["denied"]
      )
      assert.strictEqual(only(events, "file-diff").length, 0)
      assert.strictEqual(events.at(-1)?.type, "finish")
    })
  )

  it.effect("all asks of one response are pending together; its calls run in their order", () =>
    Effect.gen(function* () {
      const call = (path: string) => ({
        call: { tool: "files.write", arguments: { path, content: path }, ask: true, output: path }
      })
      const { run, asks } = yield* setup(
        { scenarios: [scenario("asks", [[call("a"), call("b"), call("c")], [{ text: "done" }]])] },
        { decide: () => undefined }
      )
      const fiber = yield* Effect.forkChild(run("x"))
      const seen = [yield* Queue.take(asks), yield* Queue.take(asks), yield* Queue.take(asks)]
      assert.strictEqual(new Set(seen.map((ask) => ask.nativeRequestId)).size, 3)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("allow always holds for the session, also in the next turn", () =>
    Effect.gen(function* () {
      const write = { call: { tool: "files.write", arguments: { path: "a" }, ask: true as const, output: 1 } }
      const { run, journal } = yield* setup(
        { scenarios: [scenario("always", [[write, write], [{ text: "x" }], [write], [{ text: "y" }]])] },
        { decide: () => "allow_always" }
      )
      yield* run("a")
      const asked = journal.types().filter((type) => type === "permission-request").length
      yield* run("b")
      assert.strictEqual(journal.types().filter((type) => type === "permission-request").length, asked)
    })
  )

  it.effect("the permission mode full asks nothing, ask asks for all but reading, within the ceiling", () =>
    Effect.gen(function* () {
      const calls = [
        { call: { tool: "files.read", arguments: {} } },
        { call: { tool: "shell.run", arguments: { command: "ls" } } },
        { call: { tool: "files.write", arguments: {}, ask: true as const } }
      ]
      const asked = (permissionMode: string, permissionCeiling?: "ask" | "auto") =>
        Effect.gen(function* () {
          const { run, journal } = yield* setup({ scenarios: [scenario("modes", [calls, [{ text: "x" }]])] })
          yield* run("a", {
            config: {
              harness: { id: "scripted", access: "native" },
              permissionMode,
              ...(permissionCeiling === undefined ? {} : { permissionCeiling })
            }
          })
          return journal.types().filter((type) => type === "permission-request").length
        })
      assert.deepStrictEqual(
        [yield* asked("full"), yield* asked("auto"), yield* asked("ask"), yield* asked("full", "ask")],
        [0, 1, 2, 2]
      )
    })
  )

  it.effect("a question waits for its answer inside the response", () =>
    Effect.gen(function* () {
      const { run, journal } = yield* setup()
      const events = yield* run("/question")
      const types = journal.types()
      assert.isBelow(types.indexOf("question-answered"), types.lastIndexOf("text-end"))
      assert.include(textOf(events), "Thank you")
    })
  )

  it.effect("a command plays a scenario from its start, whatever was played before", () =>
    Effect.gen(function* () {
      const { run, driver } = yield* setup()
      yield* run("/hello")
      assert.include(textOf(yield* run("/hello again")), "Hello from a scripted agent.")
      assert.isTrue((yield* driver.commands("/tmp")).some((command) => command.name === "hello"))
    })
  )

  it.effect("the model of the prompt or of the session chooses the scenario; an unknown one fails by name", () =>
    Effect.gen(function* () {
      const { run, driver } = yield* setup()
      const harness = { id: "scripted", access: "native" as const }
      const model = (modelID: string) => ({ config: { harness, model: { providerID: "script", modelID } } })
      assert.include(textOf(yield* run("x", model("scripted-hello"))), "Hello")
      const failed = (yield* run("x", model("gpt-9"))).at(-1)
      assert.deepInclude(failed, { type: "error", errorClass: "model" })
      const open = { sessionId: "ses_2", workspaceId: "w", directory: "/tmp" }
      const error = yield* Effect.flip(driver.openSession({ ...open, model: "gpt-9" }))
      assert.include(error.message, "demo")
      yield* driver.openSession({ ...open, model: "script/scripted-demo" })
      const config = yield* driver.configure(binding, { model: { providerID: "script", modelID: "demo" }, agent: null })
      assert.strictEqual(config.model?.modelID, "demo")
      yield* Effect.flip(driver.configure(binding, { model: { providerID: "script", modelID: "gpt-9" } }))
    })
  )

  it.effect("opening and resuming always succeed with the same handle [HRN-003] [HRN-004]", () =>
    Effect.gen(function* () {
      const { driver } = yield* setup()
      const input = { sessionId: "ses_test", workspaceId: "default", directory: "/tmp" }
      const opened = yield* driver.openSession(input)
      assert.deepStrictEqual(yield* driver.openSession(input), opened)
      assert.strictEqual((yield* driver.resumeSession(binding)).upstreamSessionId, opened.upstreamSessionId)
      assert.strictEqual(opened.upstreamState, "confirmed")
    })
  )

  it.effect("faults that pass are retried with growing waits, and what was said is withdrawn [AGT-331]", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({ speed: 1 })
      const fiber = yield* Effect.forkChild(run("/unreliable"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("2 seconds")
      const events = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        only(events, "session-retry").map((event) => [event.attempt, event.delayMs]),
        [
          [1, 1000],
          [2, 2000]
        ]
      )
      assert.deepStrictEqual(
        only(events, "response-start").map((event) => event.attempt),
        [1, 2, 3]
      )
      assert.strictEqual(only(events, "response-retracted").length, 2)
      assert.strictEqual(events.at(-1)?.type, "finish")
    })
  )

  it.effect("a fault that does not pass fails the turn with its class [AGT-331]", () =>
    Effect.gen(function* () {
      const failing = (fail: "rate_limit" | "server" | "disconnect" | "auth" | "overflow") =>
        Effect.gen(function* () {
          const { run } = yield* setup({ scenarios: [scenario("faults", [[{ fail, attempts: 99 }]])] })
          const last = (yield* run("x")).at(-1)
          return last?.type === "error" ? [last.code, last.errorClass] : []
        })
      assert.deepStrictEqual(yield* failing("rate_limit"), ["harness_error", "usage_limit"])
      assert.deepStrictEqual(yield* failing("server"), ["harness_error", "model"])
      assert.deepStrictEqual(yield* failing("disconnect"), ["harness_error", "model"])
      assert.deepStrictEqual(yield* failing("auth"), ["harness_error", "credential"])
      assert.deepStrictEqual(yield* failing("overflow"), ["truncated", undefined])
    })
  )

  it.effect("an overflow compacts once with the scenario's compaction and repeats the step [AGT-193]", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({
        scenarios: [
          { ...scenario("room", [[{ fail: "overflow" }, { text: "fits now" }]]), compaction: [[{ text: "short" }]] }
        ]
      })
      const events = yield* run("x")
      assert.deepStrictEqual(
        only(events, "session-compaction").map((event) => [event.phase, event.summary]),
        [
          ["started", undefined],
          ["completed", "short"]
        ]
      )
      assert.strictEqual(textOf(events), "fits now")
    })
  )

  it.effect("a stop at the output limit is truncated; a spent budget is budget [HRN-015]", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({
        scenarios: [scenario("limits", [[{ text: "half" }, { stop: "length" }], [{ text: "x" }]])]
      })
      assert.deepInclude((yield* run("x")).at(-1), { type: "error", code: "truncated" })
      const spent = yield* run("y", { roundFits: Effect.succeed(false) })
      assert.deepInclude(spent.at(-1), { type: "error", code: "budget" })
      assert.strictEqual(only(spent, "response-start").length, 0)
    })
  )

  it.effect("exit ends the turn with the harness's process; a call without an end stays open [AGT-335]", () =>
    Effect.gen(function* () {
      const open = { call: { tool: "shell.run", arguments: { command: "make" } } }
      const { run } = yield* setup({ scenarios: [scenario("exit", [[open, { exit: 3 }], [{ text: "never" }]])] })
      const events = yield* run("x")
      assert.deepInclude(only(events, "process-status")[0], { state: "exited", code: 3 })
      assert.deepInclude(events.at(-1), { type: "error", code: "harness_process_exited", process: { code: 3 } })
      assert.strictEqual(only(events, "tool-output").length + only(events, "tool-error").length, 0)
      assert.strictEqual(only(events, "tool-status")[0]?.status, "running")
    })
  )

  it.effect("any event of a harness can be played; the turn's own ids are filled in [AGT-335]", () =>
    Effect.gen(function* () {
      const { run } = yield* setup({
        scenarios: [
          scenario("events", [
            [
              { event: { type: "rate-limit", status: "limited", used_percent: 90 } },
              { event: { type: "finish", reason: "refusal" } }
            ]
          ])
        ]
      })
      const events = yield* run("x")
      assert.deepInclude(only(events, "rate-limit")[0], { status: "limited", usedPercent: 90 })
      assert.deepInclude(events.at(-1), {
        type: "finish",
        reason: "refusal",
        sessionId: "ses_test",
        assistantMessageId: "trn_1-m_r"
      })
      assert.strictEqual(events.filter(isTerminal).length, 1)
    })
  )

  it.effect("waits are on the Effect clock: a turn under the test clock is the same every time [HRN-280]", () =>
    Effect.gen(function* () {
      const once = Effect.gen(function* () {
        const { run } = yield* setup({ speed: 1 })
        const fiber = yield* Effect.forkChild(run("x"), { startImmediately: true })
        yield* TestClock.adjust("1 hour")
        return yield* Fiber.join(fiber)
      })
      assert.deepStrictEqual(yield* once, yield* once)
    })
  )

  it.effect("a long answer streams in many pieces", () =>
    Effect.gen(function* () {
      const { run } = yield* setup()
      const events = yield* run("/long")
      assert.isAbove(only(events, "text-delta").length, 9_900)
      assert.strictEqual(only(events, "text-end").length, 1)
      assert.strictEqual(only(events, "text-end")[0]?.text, textOf(events))
    })
  )
})

describe("steering and cancelling", () => {
  const waiting: Scenario = scenario("waiting", [[{ text: "a" }, { delayMs: 60_000 }, { text: "b" }]])
  const steered: PromptInput = { text: "left", messageId: "msg_s" }

  const running = Effect.fnUntraced(function* () {
    const all = yield* setup({ scenarios: [waiting], speed: 1 })
    const turn = admit(all.journal, "trn_9", "go")
    const fiber = yield* Effect.forkChild(journaled(all.journal, turn.turnId, all.driver.runTurn(turn)), {
      startImmediately: true
    })
    yield* TestClock.adjust(1)
    return { ...all, turn, fiber }
  })

  it.effect("a steered message is taken and confirmed at the next step", () =>
    Effect.gen(function* () {
      const { driver, turn, fiber } = yield* running()
      assert.strictEqual(yield* driver.steer(turn, steered), "taken")
      yield* TestClock.adjust("1 minute")
      const events = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        only(events, "input-incorporated").map((event) => event.messageId),
        ["msg_s"]
      )
      assert.strictEqual(yield* driver.steer(turn, steered), "no_active_turn")
    })
  )

  it.effect("a cancel is acknowledged, and the turn ends with cancelled and nothing after it", () =>
    Effect.gen(function* () {
      const { driver, turn, fiber } = yield* running()
      assert.strictEqual(yield* driver.cancel(turn), "acknowledged")
      const events = yield* Fiber.join(fiber)
      assert.deepInclude(events.at(-1), { type: "cancelled", reason: "requested" })
      assert.strictEqual(textOf(events), "a")
      assert.strictEqual(yield* driver.cancel(turn), "idle")
    })
  )

  it.effect("a cancel while a person is asked withdraws nothing itself and ends the turn", () =>
    Effect.gen(function* () {
      const { driver, journal, asks } = yield* setup({}, { decide: () => undefined })
      const turn = admit(journal, "trn_1", "go")
      const fiber = yield* Effect.forkChild(journaled(journal, turn.turnId, driver.runTurn(turn)))
      yield* Queue.take(asks)
      assert.strictEqual(yield* driver.cancel(turn), "acknowledged")
      assert.strictEqual((yield* Fiber.join(fiber)).at(-1)?.type, "cancelled")
    })
  )

  it.effect("a reader that leaves ends the turn without a terminal event: it stays open in the journal", () =>
    Effect.gen(function* () {
      const { driver, turn, fiber, journal } = yield* running()
      yield* Fiber.interrupt(fiber)
      assert.isFalse(journal.rows.some((row) => isTerminal(row.payload)))
      assert.strictEqual(yield* driver.cancel(turn), "idle")
    })
  )

  it.effect("a reader that leaves in the middle of a flood does not hang", () =>
    Effect.gen(function* () {
      const { driver, journal } = yield* setup()
      const turn = admit(journal, "trn_1", "/long")
      yield* driver.runTurn(turn).pipe(Stream.take(3), Stream.runDrain)
      assert.strictEqual((yield* driver.health()).sessions, 0)
    })
  )
})

describe("recovery", () => {
  /** Plays a turn, crashes after event number `crash`, continues with a new driver over the same journal. */
  const crashed = Effect.fnUntraced(function* (name: string, crash: number) {
    const journal = makeJournal()
    const bench = yield* makeBench({ journal, decide: () => "allow_once", answer: () => [["Green"]] })
    const options = { speed: 0 }
    const first = yield* scripted(options).make(bench.context)
    const turn = admit(journal, "trn_1", `/${name}`)
    yield* journaled(journal, turn.turnId, first.runTurn(turn), (_, index) => index >= crash)
    const before = journal.rows.length
    const ended = journal.rows.some((row) => isTerminal(row.payload))
    if (!ended) {
      const second = yield* scripted(options).make(bench.context)
      const again = { ...turnInput(journal, "trn_1", turn.prompt), startCursor: turn.startCursor }
      yield* journaled(journal, turn.turnId, second.recoverTurn(again))
    }
    return { journal, before, ended }
  })

  for (const name of ["demo", "tools", "question"]) {
    it.effect(`${name}: after a crash at any event the turn goes on and no call is played twice [AGT-330]`, () =>
      Effect.gen(function* () {
        const whole = yield* crashed(name, Number.MAX_SAFE_INTEGER)
        const count = whole.journal.rows.length
        const lastText = whole.journal.rows
          .flatMap((row) => (row.payload.type === "text-end" ? [row.payload.text] : []))
          .at(-1)
        for (let crash = 0; crash < count; crash += 1) {
          const { journal, ended } = yield* crashed(name, crash)
          const events = journal.rows.map((row) => row.payload)
          assert.strictEqual(events.filter(isTerminal).length, 1, `crash at ${crash}`)
          const resumed = events.filter((event) => event.type === "harness-notice" && event.code === "turn_resumed")
          assert.strictEqual(resumed.length, ended ? 0 : 1)
          const last = events.at(-1)
          assert.strictEqual(last?.type, "finish", `crash at ${crash}`)
          if (last?.type === "finish") assert.strictEqual(last.finalText, lastText)
          const running = events.flatMap((event) =>
            event.type === "tool-status" && event.status === "running" ? [event.toolCallId] : []
          )
          assert.strictEqual(new Set(running).size, running.length, `crash at ${crash}`)
          const started = new Set(events.flatMap((event) => (event.type === "tool-start" ? [event.toolCallId] : [])))
          const closed = new Set(
            events.flatMap((event) =>
              event.type === "tool-output" ||
              event.type === "tool-error" ||
              (event.type === "tool-status" && event.status === "uncertain")
                ? [event.toolCallId]
                : []
            )
          )
          assert.deepStrictEqual(
            [...started].filter((id) => !closed.has(id)),
            [],
            `crash at ${crash}`
          )
        }
      })
    )
  }

  it.effect("a journal that cannot be read fails the turn, not the process", () =>
    Effect.gen(function* () {
      const journal = { ...makeJournal(), read: () => Effect.fail({ message: "the disk is gone" }) }
      const { context } = yield* makeBench({ journal })
      const driver = yield* scripted({ speed: 0 }).make(context)
      const turn = admit(journal, "trn_1", "x")
      const error = yield* Effect.flip(Stream.runDrain(driver.runTurn(turn)))
      assert.include(error.message, "the disk is gone")
    })
  )

  it.effect("a cancel before the player's first step ends the stream as cancelled [RT-160] [HRN-009]", () =>
    Effect.gen(function* () {
      const journal = makeJournal()
      const { context } = yield* makeBench({ journal, decide: () => "allow_once" })
      const driver = yield* scripted({ speed: 0 }).make(context)
      const turn = admit(journal, "trn_early", "x")
      const reading = yield* Effect.forkChild(Stream.runCollect(driver.runTurn(turn)), { startImmediately: true })
      assert.strictEqual(yield* driver.cancel({ ...turn }), "acknowledged")
      const items = yield* Fiber.join(reading)
      assert.deepInclude(items.at(-1), { type: "cancelled" })
    })
  )
})
