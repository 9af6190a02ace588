/** Cancelling runs and closing sessions (run-protocol 17). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  awaitEvent,
  call,
  failure,
  first,
  answer,
  interrupted,
  journal,
  ofType,
  run,
  say,
  settled,
  stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]
const ask = call("ask_user", { question: "Which?" })
const terminal = new Set(["finish", "error", "cancelled"])

describe("run/cancel", () => {
  it.live("it stops the model and ends the run cancelled, with the text so far [RUN-472] [RUN-475]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("So far."), { delay_ms: 60_000 }, say(" More.")]] })
      yield* start(on)
      yield* awaitEvent(on, "text-delta")
      assert.deepStrictEqual(yield* on.api["run/cancel"]({ sessionId: on.sessionId }), {
        cancelled: [on.sessionId],
        teamCancelled: false,
        errors: {}
      })
      const state = yield* settled(on)
      assert.deepStrictEqual([state.status, state.finalOutput, state.failure], ["cancelled", "So far.", undefined])
      assert.lengthOf(ofType(yield* journal(on), "cancelled"), 1)
      const now = yield* on.api["session/state"]({ sessionId: on.sessionId })
      assert.deepStrictEqual([now.state, now.canAcceptMessage, now.phases], ["idle", true, []])
    })
  )

  it.live(
    "while a question is pending it withdraws the question and says cancelled, not failed [RUN-472] [RUN-445]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[ask], done] })
        yield* start(on)
        yield* interrupted(on)
        yield* on.api["run/cancel"]({ sessionId: on.sessionId })
        const state = yield* settled(on)
        assert.deepStrictEqual([state.status, state.interruptions], ["cancelled", []])
        const events = yield* journal(on)
        assert.lengthOf(ofType(events, "interaction-withdrawn"), 1)
        const types = events.map(({ type }) => type)
        assert.isBelow(types.indexOf("interaction-withdrawn"), types.indexOf("cancelled"))
      })
  )

  it.live(
    "on an idle session it does nothing; repeating it is safe; a turn that ended keeps its end [RUN-473] [RUN-474]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [done] })
        const nothing = { cancelled: [], teamCancelled: false, errors: {} }
        assert.deepStrictEqual(yield* on.api["run/cancel"]({ sessionId: on.sessionId }), nothing)
        yield* run(on)
        assert.deepStrictEqual(yield* on.api["run/cancel"]({ sessionId: on.sessionId }), nothing)
        assert.strictEqual((yield* settled(on)).status, "completed")
        assert.strictEqual((yield* failure(on.api["run/cancel"]({ sessionId: "ses_nobody" })))["kind"], "not_found")
      })
  )

  for (const moment of ["at the start", "with an answer", "near the end", "twice"] as const) {
    it.live(`a cancel ${moment} leaves exactly one terminal state [RUN-473]`, () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: moment === "with an answer" ? [[ask], done] : [done] })
        const cancel = on.api["run/cancel"]({ sessionId: on.sessionId })
        switch (moment) {
          case "at the start":
            yield* Effect.all([start(on), cancel], { concurrency: "unbounded" })
            break
          case "with an answer": {
            yield* start(on)
            const { id } = first(yield* interrupted(on))
            yield* Effect.all([Effect.exit(answer(on, id, "red")), cancel], { concurrency: "unbounded" })
            break
          }
          case "near the end":
            yield* start(on)
            yield* awaitEvent(on, "text-end")
            yield* cancel
            break
          case "twice":
            yield* start(on)
            yield* Effect.all([cancel, cancel, cancel], { concurrency: "unbounded" })
        }
        const state = yield* settled(on)
        const ends = (yield* journal(on)).filter(({ type }) => terminal.has(type))
        assert.lengthOf(ends, 1)
        assert.strictEqual(
          state.status,
          { finish: "completed", error: "failed", cancelled: "cancelled" }[ends[0]?.type ?? ""]
        )
      })
    )
  }

  it.effect("it answers after 5 s with busy for a turn that has not ended; its cancellation goes on [RUN-471]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("shell.run", { command: "trap '' TERM; echo up; sleep 60 & wait; wait" })], done],
        agent: { tools: ["shell.run"], approvals: { mode: "never" } }
      })
      yield* start(on)
      yield* awaitEvent(on, "tool-status")
      const cancel = yield* Effect.forkChild(on.api["run/cancel"]({ sessionId: on.sessionId }))
      yield* Effect.yieldNow
      yield* TestClock.adjust("5 seconds")
      const result = yield* Fiber.join(cancel)
      assert.deepStrictEqual([result.cancelled, result.errors[on.sessionId]?.kind], [[], "busy"])
      assert.strictEqual((yield* settled(on)).status, "cancelled")
    })
  )

  it.live("ending a team needs teams [RUN-476]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const error = yield* failure(on.api["run/cancel"]({ sessionId: on.sessionId, team: true }))
      assert.deepStrictEqual([error["kind"], error["feature"]], ["unsupported", "teams"])
    })
  )
})

describe("agent/close", () => {
  it.live("it refuses an active run, closes for good, and repeats the same list [RUN-477]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("shell.run", { command: "true" })], done],
        agent: { tools: ["shell.run"] }
      })
      yield* start(on)
      const pending = first(yield* interrupted(on))
      const busy = yield* on.api["agent/close"]({ sessionId: on.sessionId })
      assert.deepStrictEqual([busy.closed, busy.errors[on.sessionId]?.kind], [[], "busy"])
      yield* on.api["run/respond"]({ sessionId: on.sessionId, interactionId: pending.id, decision: "session" })
      yield* settled(on)
      const closed = { closed: [on.sessionId], errors: {} }
      assert.deepStrictEqual(yield* on.api["agent/close"]({ sessionId: on.sessionId }), closed)
      assert.deepStrictEqual(yield* on.api["agent/close"]({ sessionId: on.sessionId }), closed)
      const again = yield* on.reopen()
      assert.deepStrictEqual(yield* again.api["agent/close"]({ sessionId: on.sessionId }), closed)
      const state = yield* again.api["session/state"]({ sessionId: on.sessionId })
      assert.deepStrictEqual([state.state, state.grants, state.canAcceptMessage], ["closed", [], false])
      const events = yield* journal(again)
      assert.strictEqual(events.at(-1)?.type, "session-closed")
    })
  )
})
