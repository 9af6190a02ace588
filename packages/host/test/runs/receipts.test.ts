/** Starting runs: what one submission id stands for (run-protocol 14). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  agent,
  at,
  awaitEvent,
  call,
  ended,
  failure,
  folder,
  interrupted,
  journal,
  ofType,
  openHost,
  run,
  say,
  stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]

describe("receipts", () => {
  it.live(
    "a start answers turn and cursors; a repeat answers the same, for ever and after a restart [RUN-383] [RUN-384] [RUN-382]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [done, done] })
        const before = (yield* on.api["session/state"]({ sessionId: on.sessionId })).cursors
        const first = yield* start(on)
        assert.deepStrictEqual(first.cursors, before)
        assert.isFalse(first.duplicate)
        assert.deepStrictEqual(yield* start(on), { ...first, duplicate: true })
        yield* ended(on)
        assert.deepStrictEqual(yield* start(on), { ...first, duplicate: true })
        const again = yield* on.reopen()
        assert.deepStrictEqual(yield* start(again), { ...first, duplicate: true })
        assert.lengthOf(ofType(yield* journal(again), "user-message"), 1)
      })
  )

  it.live("any number of identical starts at once make one turn and one user message [RUN-384]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const starts = yield* Effect.all(
        Array.from({ length: 20 }, () => start(on)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(starts.map(({ turn }) => turn.turnId)).size, 1)
      assert.lengthOf(
        starts.filter(({ duplicate }) => !duplicate),
        1
      )
      yield* ended(on)
      assert.lengthOf(ofType(yield* journal(on), "user-message"), 1)
    })
  )

  it.live("of two different starts at once one is refused with the other's id [RUN-380] [RUN-385]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[call("ask_user", { question: "Go?" })], done] })
      const results = yield* Effect.all([Effect.result(start(on, "m-1")), Effect.result(start(on, "m-2"))], {
        concurrency: "unbounded"
      })
      const [won] = results.flatMap((result) => (result._tag === "Success" ? [result.success] : []))
      const [lost] = results.flatMap((result) => (result._tag === "Failure" ? [result.failure] : []))
      assert.deepStrictEqual(
        [at(lost, "kind"), at(lost, "reason"), at(lost, "submissionId")],
        ["invalid_state", "run_active", won?.submissionId]
      )
      // The refused id was not used up.
      yield* interrupted(on, won?.submissionId)
      const other = won?.submissionId === "m-1" ? "m-2" : "m-1"
      const refused = yield* failure(start(on, other))
      assert.deepStrictEqual(
        [refused["kind"], refused["reason"], refused["submissionId"]],
        ["invalid_state", "run_active", won?.submissionId]
      )
      yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      assert.isFalse((yield* start(on, other)).duplicate)
    })
  )

  it.live("an id with another text is a conflict; texts are compared exactly [RUN-380] [RUN-381]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      yield* run(on, "m-1", "Tell me")
      for (const text of ["Tell me ", "tell me", "Tell  me", "Te\u200bll me"]) {
        const error = yield* failure(start(on, "m-1", text))
        assert.deepStrictEqual(
          [error["kind"], error["reason"], error["id"]],
          ["conflict", "submission_text_differs", "m-1"]
        )
      }
    })
  )

  it.live("params are checked before anything is kept [RUN-380]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const wire = (params: object) =>
        failure(on.wire("run/start", { session_id: on.sessionId, submission_id: "m-1", text: "x", ...params }))
      const paths: ReadonlyArray<readonly [object, string]> = [
        [{ text: " \n\t" }, "text"],
        [{ text: 7 }, "text"],
        [{ submission_id: "" }, "submission_id"],
        [{ submission_id: "a\u0000b" }, "submission_id"],
        [{ submission_id: "team/1" }, "submission_id"],
        [{ submission_id: "ow-schedule/1/2" }, "submission_id"]
      ]
      for (const [params, path] of paths) {
        const error = yield* wire(params)
        assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", path])
      }
      const long = yield* wire({ text: "x".repeat(524_289) })
      assert.include(["invalid_params", "limit_exceeded"], long["kind"])
      const unknown = yield* failure(on.api["run/start"]({ sessionId: "ses_unknown", submissionId: "m-1", text: "x" }))
      assert.deepStrictEqual([unknown["kind"], unknown["what"]], ["not_found", "session"])
      assert.strictEqual((yield* failure(on.api["run/wait"]({ sessionId: on.sessionId })))["kind"], "not_found")
    })
  )

  it.live("a closed session takes no run [RUN-380]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      yield* on.api["agent/close"]({ sessionId: on.sessionId })
      const error = yield* failure(start(on))
      assert.deepStrictEqual([error["kind"], error["reason"]], ["invalid_state", "session_closed"])
    })
  )

  it.live("a model that cannot be used refuses the submission for good, a repaired one needs a new id [RUN-386]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const on = yield* openHost({
        stateDir: place.stateDir,
        agents: [agent({ model: { connection: "later", model: "m" } })]
      })
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: place.workspace })
      const { sessionId } = session
      const begin = (submissionId: string) => on.api["run/start"]({ sessionId, submissionId, text: "Go on" })
      const error = yield* failure(begin("m-1"))
      assert.deepStrictEqual(
        [error["kind"], error["what"], error["id"], error["receipt"]],
        ["not_found", "provider", "later", "not_accepted"]
      )
      const scenario = place.scenario("later", { default: [done] })
      yield* on.api["provider/set"]({ name: "later", api: "script", scenario })
      assert.deepStrictEqual(yield* failure(begin("m-1")), error)
      const state = yield* on.api["run/wait"]({ sessionId, submissionId: "m-1", cursors: {} })
      assert.deepStrictEqual(
        [state.status, state.failure, state.error?.kind, state.events, state.moreEvents],
        ["failed", "not_accepted", "not_found", [], false]
      )
      // It is not the latest admitted run.
      assert.strictEqual((yield* failure(on.api["run/wait"]({ sessionId })))["kind"], "not_found")
      assert.isFalse((yield* begin("m-2")).duplicate)
    })
  )

  it.live("turns beyond the limit wait in phase queued [RUN-387] [RUN-360]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("ask_user", { question: "Go?" })], done],
        config: { limits: { activeTurns: 1 } }
      })
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      const second = { ...on, sessionId: session.sessionId }
      yield* start(on)
      yield* interrupted(on)
      yield* start(second)
      const state = yield* on.api["session/state"]({ sessionId: second.sessionId })
      assert.deepStrictEqual([state.state, state.phases.map(({ phase }) => phase)], ["running", ["queued"]])
      yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      assert.strictEqual((yield* interrupted(second)).status, "interrupted")
    })
  )

  it.live("turn/start is the same admission with the session's own cursor [RUN-388]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const input = { sessionId: on.sessionId, submissionId: "m-1", text: "Go on" }
      const turn = yield* on.api["turn/start"](input)
      const { cursors, ...rest } = yield* on.api["run/start"](input)
      assert.deepStrictEqual({ ...turn, duplicate: true }, { ...rest, cursor: cursors[on.sessionId] ?? -1 })
      yield* awaitEvent(on, "finish")
    })
  )
})
