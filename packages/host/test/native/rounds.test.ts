/** The rounds of a turn: what is asked, what is kept, how it ends (AGT-001 to AGT-013). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  at,
  awaitEvent,
  call,
  ended,
  failed,
  journal,
  ofType,
  run,
  say,
  settled,
  type Stage,
  stage,
  start,
  type Steps
} from "../runs/Kit.ts"

const plan = (content: string) => call("plan.update", { items: [{ content, status: "pending" }] })

/** Lets the clock pass each wait between attempts, as long as the run goes on. Gives the waits. */
const throughRetries = Effect.fnUntraced(function* (on: Stage) {
  const delays: Array<number> = []
  let after = 0
  while (true) {
    const page = yield* on.api["event/read"]({ sessionId: on.sessionId, after, waitMs: 5_000 })
    after = page.cursor
    for (const event of page.events as ReadonlyArray<Record<string, unknown>>) {
      if (event["type"] === "session-retry") {
        const delay = Number(event["delay_ms"])
        delays.push(delay)
        yield* TestClock.adjust(delay)
      }
      if (["finish", "error", "cancelled"].includes(String(event["type"]))) return delays
    }
  }
})

const assertDelays = (delays: ReadonlyArray<number>, expected: ReadonlyArray<number>) => {
  assert.lengthOf(delays, expected.length)
  for (const [index, delay] of delays.entries()) {
    assert.isAtLeast(delay, (expected[index] ?? 0) * 0.75)
    assert.isAtMost(delay, (expected[index] ?? 0) * 1.25)
  }
}

describe("rounds", () => {
  it.live("a turn goes on until a response has no calls, and ends with its last text [AGT-001]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[say("Looking."), plan("look")], [plan("look again")], [say("Done.")]]
      })
      const state = yield* run(on)
      assert.deepStrictEqual([state.status, state.finalOutput], ["completed", "Done."])
      const events = yield* journal(on)
      assert.lengthOf(ofType(events, "response-start"), 3)
      assert.lengthOf(ofType(events, "finish"), 1)
      assert.strictEqual(state.usage.rounds, 3)
    })
  )

  it.live("a turn's events come in the documented order [AGT-003] [AGT-033]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[{ thinking: "Hm." }, say("Now."), plan("a")], [say("Done.")]] })
      yield* run(on)
      const events = yield* journal(on)
      const types = events.map(({ type }) => type).filter((type) => !type.endsWith("-delta"))
      const from = types.indexOf("user-message")
      assert.deepStrictEqual(
        types.slice(from).filter((type) => type !== "session-title"),
        [
          "user-message",
          "session-status",
          "turn-start",
          "response-start",
          "text-end",
          "text-end",
          "tool-start",
          "tool-input",
          "usage",
          "todo-update",
          "tool-status",
          "tool-output",
          "response-start",
          "text-end",
          "usage",
          "finish",
          "session-status"
        ]
      )
      const [opened] = ofType(events, "tool-start")
      assert.deepStrictEqual(
        [opened?.["tool_name"], opened?.["metadata"]],
        ["plan__update", { qualified_name: "plan.update" }]
      )
      const [dispatched] = ofType(events, "tool-status")
      assert.deepStrictEqual(dispatched?.["metadata"], { dispatch: true, tool: "plan__update" })
      const [ended] = ofType(events, "tool-output")
      assert.deepStrictEqual(ended?.["metadata"], { tool: "plan__update", outcome: "completed" })
    })
  )

  it.effect("what may pass is tried again after 1, 2, 4 and 8 s, and the text so far is taken back [AGT-006]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[say("Half an answer"), { fail: "server", attempts: 4 }, say(" and the rest.")]]
      })
      yield* start(on)
      const delays = yield* throughRetries(on)
      assertDelays(delays, [1_000, 2_000, 4_000, 8_000])
      const state = yield* ended(on)
      assert.deepStrictEqual([state.status, state.finalOutput], ["completed", "Half an answer and the rest."])
      const events = yield* journal(on)
      const retracted = ofType(events, "response-retracted").flatMap((event) => event["response_ids"])
      const started = ofType(events, "response-start")
      assert.deepStrictEqual(
        started.map((event) => event["attempt"]),
        [1, 2, 3, 4, 5]
      )
      assert.deepStrictEqual(
        retracted,
        started.slice(0, 4).map((event) => event["response_id"])
      )
      assert.strictEqual(state.usage.rounds, 1)
    })
  )

  it.effect("a rate limit is waited out for as long as the provider asks [AGT-006]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[{ fail: "rate_limit", attempts: 2 }, say("Done.")]] })
      yield* start(on)
      assert.deepStrictEqual(yield* throughRetries(on), [1_000, 1_000])
      assert.strictEqual((yield* ended(on)).status, "completed")
    })
  )

  it.effect(
    "a model that cannot be reached fails the turn after the last try, without its text [AGT-006] [AGT-202]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[say("Half"), { fail: "disconnect", attempts: 9 }]] })
        yield* start(on)
        assertDelays(yield* throughRetries(on), [1_000, 2_000, 4_000, 8_000])
        const state = yield* ended(on)
        failed(state, "model_error")
        assert.isNull(state.finalOutput)
      })
  )

  it.effect("the fallback model takes over once, for the rest of the turn, with a notice [AGT-007]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [
          [{ fail: "server", attempts: 5 }, say("Now."), plan("a")],
          [{ fail: "server", attempts: 2 }, say("Done.")]
        ],
        agent: { fallbackModel: "spare" }
      })
      yield* start(on)
      assertDelays(yield* throughRetries(on), [1_000, 2_000, 4_000, 8_000, 1_000, 2_000])
      const state = yield* ended(on)
      assert.deepStrictEqual([state.status, state.finalOutput], ["completed", "Done."])
      const events = yield* journal(on)
      const notices = ofType(events, "harness-notice").filter((event) => event["code"] === "model_fallback")
      assert.lengthOf(notices, 1)
      assert.deepStrictEqual(at(notices[0], "details", "to"), {
        connection: "script",
        model: "spare"
      })
      const ids = ofType(events, "response-start").map((event) => event["response_id"])
      assert.strictEqual(new Set(ids).size, ids.length)
    })
  )

  it.effect("when the fallback cannot be reached either, the turn fails [AGT-007]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[{ fail: "server", attempts: 100 }]],
        agent: { fallbackModel: "spare" }
      })
      yield* start(on)
      assert.lengthOf(yield* throughRetries(on), 8)
      failed(yield* ended(on), "model_error")
    })
  )

  it.live("the pair of fallback model and provider is the model of an agent without one [AGT-007]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const created = yield* Effect.orDie(
        on.api["agent/register"]({
          agent: { id: "spare", instructions: "", planning: true, provider: "script", fallbackModel: "only" }
        })
      )
      const { session } = yield* on.api["agent/session"]({
        agent: created.agent.id,
        workspace: on.folder.workspace
      })
      const state = yield* on.api["session/state"]({ sessionId: session.sessionId })
      assert.deepStrictEqual(state.model, { connection: "script", model: "only" })
    })
  )

  it.live("refused credentials fail the turn at once, without retry or fallback [AGT-008]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[{ fail: "auth" }]], agent: { fallbackModel: "spare" } })
      failed(yield* run(on), "credentials_missing")
      const events = yield* journal(on)
      assert.lengthOf(ofType(events, "session-retry"), 0)
      assert.lengthOf(ofType(events, "response-start"), 1)
    })
  )

  it.live("a response cut by the limit fails the turn and its text is the output [AGT-009]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("As far as"), { stop: "length" }]] })
      const state = yield* run(on)
      failed(state, "truncated")
      assert.strictEqual(state.finalOutput, "As far as")
    })
  )

  it.live("a request larger than the model's context fails with truncated [AGT-193]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[plan("a")], [{ fail: "overflow" }]] })
      const state = yield* run(on)
      failed(state, "truncated")
      assert.lengthOf(ofType(yield* journal(on), "session-retry"), 0)
    })
  )

  it.live("an empty response completes the turn with an empty output, whatever was said before [AGT-010]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("Let me see."), plan("a")], []] })
      const state = yield* run(on)
      assert.deepStrictEqual([state.status, state.finalOutput], ["completed", ""])
    })
  )

  it.live("usage is journaled once per response, null where the model reports nothing [AGT-011]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[plan("a"), { usage: { input: 10, output: 3 } }], [say("Done.")]]
      })
      const state = yield* run(on)
      const usage = ofType(yield* journal(on), "usage").map(
        (event) => (event["observation"] as { readonly kind: string; readonly tokens: Record<string, unknown> }) ?? {}
      )
      assert.deepStrictEqual(
        usage.map(({ kind, tokens }) => [kind, tokens["input"], tokens["output"]]),
        [
          ["delta", 10, 3],
          ["delta", null, null]
        ]
      )
      assert.deepStrictEqual(state.usage, { inputTokens: 10, outputTokens: 3, cachedInputTokens: null, rounds: 2 })
    })
  )

  it.live("a spent budget of rounds fails the turn with the text so far [AGT-200] [AGT-201]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[say("One."), plan("a")], [say("Two."), plan("b")], [say("Three.")]],
        agent: { maxRounds: 2 }
      })
      const state = yield* run(on)
      failed(state, "budget")
      assert.strictEqual(state.finalOutput, "Two.")
    })
  )

  it.effect("attempts that were taken back are no rounds [AGT-200]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[{ fail: "server", attempts: 3 }, plan("a")], [say("Done.")]],
        agent: { maxRounds: 2 }
      })
      yield* start(on)
      yield* throughRetries(on)
      assert.strictEqual((yield* ended(on)).status, "completed")
    })
  )

  it.live("spent output tokens fail the turn [AGT-200] [AGT-201]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[say("One."), plan("a"), { usage: { input: 5, output: 60 } }], [say("Two.")]],
        agent: { maxOutputTokens: 50 }
      })
      const state = yield* run(on)
      failed(state, "budget")
      assert.strictEqual(state.finalOutput, "One.")
    })
  )

  it.effect("time not spent waiting for a person is bounded [AGT-200] [AGT-201]", () =>
    Effect.gen(function* () {
      const slow: Steps = [say("Thinking."), { delay_ms: 60_000 }, say("Done.")]
      const on = yield* stage({
        scenario: [[call("ask_user", { question: "Which?" })], slow],
        agent: { timeoutSeconds: 30 }
      })
      yield* start(on)
      const waiting = yield* settled(on)
      assert.strictEqual(waiting.status, "interrupted")
      yield* TestClock.adjust("10 minutes")
      const [pending] = waiting.interruptions
      yield* on.api["run/respond"]({
        sessionId: on.sessionId,
        interactionId: pending?.id ?? "",
        answer: "This."
      })
      yield* awaitEvent(on, "response-start", waiting.cursor)
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual((yield* on.api["run/wait"]({ sessionId: on.sessionId, waitMs: 0 })).status, "running")
      yield* TestClock.adjust("2 seconds")
      const state = yield* ended(on)
      failed(state, "timeout")
    })
  )
})
