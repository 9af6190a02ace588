/** What a host does with the work that another left (run-protocol 18). */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { bare, sse } from "../models/Providers.ts"
import { wires } from "../models/Wires.ts"
import {
  answer,
  approval,
  at,
  awaitEvent,
  call,
  ended,
  failed,
  first,
  interrupted,
  journal,
  ofType,
  respond,
  run,
  say,
  settled,
  stage,
  type Stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]
const ask = call("ask_user", { question: "Which?" })
const shell = (command: string) => call("shell.run", { command })
const slow = [say("Half"), { delay_ms: 60_000 }, say(" and whole.")]

const phases = (on: Stage) =>
  Effect.map(on.api["session/state"]({ sessionId: on.sessionId }), (state) => [
    state.state,
    ...state.phases.map(({ phase }) => phase)
  ])

describe("recovery", () => {
  it.live("a model step without a complete response is repeated, its part retracted first [RUN-520]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("Half"), { delay_ms: 1_500 }, say(" and whole.")]] })
      yield* start(on)
      yield* awaitEvent(on, "text-delta")
      const again = yield* on.reopen()
      const state = yield* ended(again)
      assert.deepStrictEqual([state.status, state.finalOutput], ["completed", "Half and whole."])
      const events = yield* journal(again)
      const types = events.map(({ type }) => type)
      assert.lengthOf(ofType(events, "user-message"), 1)
      assert.lengthOf(ofType(events, "turn-start"), 1)
      assert.lengthOf(ofType(events, "response-start"), 2)
      assert.isBelow(types.indexOf("response-retracted"), types.lastIndexOf("response-start"))
      assert.strictEqual(state.usage.rounds, 1)
      assert.lengthOf(
        ofType(events, "harness-notice").filter((event) => event["code"] === "turn_resumed"),
        1
      )
    })
  )

  it.live(
    "nothing goes on before initialize; until then the run shows phase recovering [RUN-124] [RUN-520] [RUN-360]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[say("Half"), { delay_ms: 1_000 }, say(" and whole.")]] })
        yield* start(on)
        yield* awaitEvent(on, "text-delta")
        const again = yield* on.reopen({ initialize: false })
        assert.deepStrictEqual(yield* phases(again), ["running", "recovering"])
        const before = yield* journal(again)
        yield* again.wire("initialize", {})
        assert.strictEqual((yield* ended(again)).status, "completed")
        assert.deepStrictEqual((yield* journal(again)).slice(0, before.length), before)
      })
  )

  it.live(
    "a pending question stays pending under its id, and its answer goes on with the turn [RUN-445] [RUN-520]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[ask], done] })
        yield* start(on)
        const before = yield* interrupted(on)
        const again = yield* on.reopen()
        const after = yield* interrupted(again)
        assert.deepStrictEqual(after.interruptions, before.interruptions)
        yield* answer(again, first(after).id, "red")
        assert.strictEqual((yield* ended(again)).status, "completed")
        const events = yield* journal(again)
        assert.lengthOf(ofType(events, "question"), 1)
        assert.deepStrictEqual(
          ofType(events, "tool-output").map((event) => event["output"]),
          [{ answer: "red" }]
        )
      })
  )

  it.live("an answer given before the turn went on is applied once [RUN-520]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[shell("echo once >> log")], done], agent: { tools: ["shell.run"] } })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      const again = yield* on.reopen({ initialize: false })
      assert.strictEqual((yield* interrupted(again)).status, "interrupted")
      yield* respond(again, pending.id, "once")
      yield* again.wire("initialize", {})
      assert.strictEqual((yield* ended(again)).status, "completed")
      const events = yield* journal(again)
      assert.lengthOf(ofType(events, "permission-request"), 1)
      assert.lengthOf(ofType(events, "tool-output"), 1)
    })
  )

  it.live(
    "a tool that ran when the host closed is unknown, the model is told, and it is not run again [HRN-260] [RUN-522] [RUN-520] [RUN-524] [AGT-035]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [[shell("echo x >> log; sleep 60"), shell("touch second")], done],
          agent: { tools: ["shell.run"], approvals: { mode: "never" } }
        })
        yield* start(on)
        yield* awaitEvent(on, "tool-status")
        const again = yield* on.reopen()
        const state = yield* ended(again)
        assert.strictEqual(state.status, "completed")
        const events = yield* journal(again)
        const unknown = ofType(events, "tool-status").find((event) => event["status"] === "uncertain")
        assert.include(unknown?.["metadata"], { tool: "shell__run", outcome: "unknown" })
        assert.lengthOf(
          ofType(events, "tool-status").filter(
            (event) => event["tool_call_id"] === unknown?.["tool_call_id"] && event["status"] === "running"
          ),
          1
        )
        // The second call had no dispatch record: it is decided and run now.
        assert.isTrue(existsSync(join(on.folder.workspace, "second")))
      })
  )

  it.live("a response that was complete is not asked again: a cut one stays cut [RUN-520] [AGT-009]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask, shell("true")], done], agent: { tools: ["shell.run"] } })
      yield* start(on)
      const { interruptions } = yield* interrupted(on, "m-1", 2)
      const again = yield* on.reopen()
      assert.lengthOf(ofType(yield* journal(again), "response-start"), 1)
      const after = yield* interrupted(again, "m-1", 2)
      assert.deepStrictEqual(after.interruptions, interruptions)
      yield* answer(again, interruptions.find(({ kind }) => kind === "question")?.id ?? "", "x")
      yield* respond(again, interruptions.find(({ kind }) => kind === "approval")?.id ?? "", "deny")
      assert.strictEqual((yield* ended(again)).status, "completed")
      assert.lengthOf(ofType(yield* journal(again), "response-start"), 2)
    })
  )

  it.live("a recovered turn may be cancelled before it goes on [RUN-473]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [slow] })
      yield* start(on)
      yield* awaitEvent(on, "text-delta")
      const again = yield* on.reopen({ initialize: false })
      const result = yield* again.api["run/cancel"]({ sessionId: on.sessionId })
      assert.deepStrictEqual(result.errors, {})
      assert.strictEqual((yield* settled(again)).status, "cancelled")
      assert.lengthOf(ofType(yield* journal(again), "cancelled"), 1)
    })
  )

  it.live("a turn taken up for the third time without an event of its own fails with interrupted [RUN-523]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [slow] })
      yield* start(on)
      yield* awaitEvent(on, "text-delta")
      let now: Stage = on
      for (let n = 0; n < 2; n++) {
        now = yield* now.reopen({ initialize: false })
        assert.deepStrictEqual(yield* phases(now), ["running", "recovering"])
      }
      now = yield* now.reopen({ initialize: false })
      const state = yield* settled(now)
      failed(state, "interrupted")
      assert.strictEqual(state.error?.kind, "turn_interrupted")
    })
  )

  it.effect("time between two hosts, and time a person took, is no working time [AGT-200] [RUN-445]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask], done], agent: { timeoutSeconds: 60 } })
      yield* start(on)
      yield* interrupted(on)
      yield* TestClock.adjust("2 hours")
      yield* on.close
      yield* TestClock.adjust("2 hours")
      const again = yield* on.reopen()
      const pending = first(yield* interrupted(again))
      yield* TestClock.adjust("2 hours")
      yield* answer(again, pending.id, "red")
      assert.strictEqual((yield* ended(again)).status, "completed")
    })
  )

  const keyed = Effect.gen(function* () {
    const wire = wires["chat-completions"]
    const server = yield* bare((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const question = JSON.stringify({ question: "Which?" })
      response.end(sse(server.requests.length === 1 ? wire.call("c1", "ask_user", question) : wire.text("Done.", null)))
    })
    const on = yield* stage({ agent: { model: { connection: "keyed", model: "m" } } })
    const setKey = (on: Stage) =>
      on.api["provider/set"]({
        name: "keyed",
        api: "chat-completions",
        baseUrl: `${server.url}/v1`,
        credentials: { apiKey: "a-key-in-memory", storage: "memory" }
      })
    yield* setKey(on)
    yield* start(on)
    const pending = first(yield* interrupted(on))
    return { on, pending, setKey }
  })

  it.effect("a turn whose key was in memory goes on when the key is set again [RUN-521] [RUN-124]", () =>
    Effect.gen(function* () {
      const { on, pending, setKey } = yield* keyed
      const again = yield* on.reopen()
      yield* answer(again, pending.id, "red")
      assert.deepStrictEqual(yield* phases(again), ["running", "recovering"])
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual(yield* phases(again), ["running", "recovering"])
      yield* setKey(again)
      assert.strictEqual((yield* ended(again)).status, "completed")
    })
  )

  it.effect("without it the turn goes on after 60 s and fails in the ordinary way [RUN-521]", () =>
    Effect.gen(function* () {
      const { on, pending } = yield* keyed
      const again = yield* on.reopen()
      yield* answer(again, pending.id, "red")
      yield* TestClock.adjust("60 seconds")
      failed(yield* ended(again), "credentials_missing")
    })
  )

  it.live("session/attach tells where everything stands and starts nothing [RUN-356] [RUN-357]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done, [ask], done] })
      yield* run(on)
      yield* start(on, "q-7")
      const pending = first(yield* interrupted(on, "q-7"))
      const again = yield* on.reopen()
      const attached = yield* again.api["session/attach"]({ sessionId: on.sessionId })
      assert.deepStrictEqual(yield* again.api["session/attach"]({ sessionId: on.sessionId }), attached)
      assert.deepStrictEqual(
        attached.runs.map(({ status, submissionId }) => [submissionId, status]),
        [
          ["q-7", "interrupted"],
          ["m-1", "completed"]
        ]
      )
      assert.deepStrictEqual(
        [attached.state.state, attached.state.interactions.map(({ id }) => id), attached.state.turn?.submissionId],
        ["waiting", [pending.id], "q-7"]
      )
      assert.isAtLeast(attached.cursors[on.sessionId] ?? 0, attached.runs[1]?.endCursors?.[on.sessionId] ?? Infinity)
      assert.deepStrictEqual(attached.session, {
        sessionId: on.sessionId,
        agent: "helper",
        journalId: attached.state.journalId,
        workspace: at(attached.state, "workspace") as string
      })
      yield* answer(again, pending.id, "2025")
      assert.strictEqual((yield* ended(again, "q-7")).status, "completed")
    })
  )
})
