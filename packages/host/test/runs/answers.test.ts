/** Answering approvals and questions (run-protocol 16). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answer,
  approval,
  at,
  call,
  ended,
  failure,
  first,
  interrupted,
  journal,
  ofType,
  question,
  respond,
  say,
  stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]
const ask = (more: object = {}) => call("ask_user", { question: "Which?", ...more })
const shell = (command: string) => call("shell.run", { command })

describe("answers", () => {
  it.live("the wrong field, both, none, or an answer that is not offered is refused with its path [RUN-440]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[ask({ options: ["a", "b"], allow_text: false }), shell("true")], done],
        agent: { tools: ["shell.run"] }
      })
      yield* start(on)
      const state = yield* interrupted(on, "m-1", 2)
      const asked = state.interruptions.find(({ kind }) => kind === "question")
      const approved = state.interruptions.find(({ kind }) => kind === "approval")
      const send = (interactionId: string | undefined, params: object) =>
        failure(on.wire("run/respond", { session_id: on.sessionId, interaction_id: interactionId, ...params }))
      for (const [id, params] of [
        [asked?.id, { decision: "once" }],
        [asked?.id, { answer: "c" }],
        [asked?.id, { answer: "" }],
        [asked?.id, { answer: "a".repeat(16_385) }],
        [asked?.id, {}],
        [asked?.id, { answer: "a", decision: "once" }],
        [approved?.id, { answer: "a" }],
        [approved?.id, { decision: "always" }],
        [approved?.id, {}]
      ] as const) {
        assert.strictEqual((yield* send(id, params))["kind"], "invalid_params", JSON.stringify(params))
      }
      assert.lengthOf((yield* interrupted(on, "m-1", 2)).interruptions, 2)
      yield* answer(on, asked?.id ?? "", "b")
      yield* respond(on, approved?.id ?? "", "once")
      assert.strictEqual((yield* ended(on)).status, "completed")
    })
  )

  it.live(
    "the first answer wins, the same one again is success, another a conflict, also after the end [RUN-441] [RUN-443]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[ask()], done] })
        yield* start(on)
        const { id } = question(yield* interrupted(on))
        const answers = yield* Effect.all(
          ["red", "red", "blue"].map((text) => Effect.result(answer(on, id, text))),
          { concurrency: "unbounded" }
        )
        const first = answers.flatMap((one) => (one._tag === "Success" ? [one.success] : []))
        assert.lengthOf(
          first.filter(({ alreadyResolved }) => !alreadyResolved),
          1
        )
        const [won] = first
        yield* ended(on)
        const again = yield* on.reopen()
        assert.deepStrictEqual(yield* answer(again, id, won?.response ?? ""), {
          alreadyResolved: true,
          response: won?.response ?? ""
        })
        const other = won?.response === "red" ? "blue" : "red"
        const error = yield* failure(answer(again, id, other))
        assert.deepStrictEqual(
          [error["kind"], error["reason"], error["id"], error["response"]],
          ["conflict", "response_differs", id, won?.response]
        )
        const answered = ofType(yield* journal(again), "question-answered")
        assert.lengthOf(answered, 1)
        assert.deepStrictEqual(at(answered[0], "answers"), [[won?.response]])
      })
  )

  it.live("an interaction of another session is not found [RUN-442]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask()], done] })
      yield* start(on)
      const { id } = first(yield* interrupted(on))
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      for (const call of [answer({ ...on, sessionId: session.sessionId }, id, "x"), answer(on, "int_nobody", "x")]) {
        const error = yield* failure(call)
        assert.deepStrictEqual([error["kind"], error["what"]], ["not_found", "interaction"])
      }
    })
  )

  it.live("one that was withdrawn because its turn ended answers turn_ended [RUN-442] [RUN-445] [RUN-472]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask()], done] })
      yield* start(on)
      const { id } = first(yield* interrupted(on))
      yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      const error = yield* failure(answer(on, id, "x"))
      assert.deepStrictEqual(
        [error["kind"], error["reason"], error["interactionId"]],
        ["invalid_state", "turn_ended", id]
      )
      const [withdrawn] = ofType(yield* journal(on), "interaction-withdrawn")
      assert.deepStrictEqual([withdrawn?.["request_id"], withdrawn?.["reason"]], [id, "cancelled"])
    })
  )

  it.live("an answer is durable before it is acknowledged and before the tool starts [RUN-443]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[shell("true")], done], agent: { tools: ["shell.run"] } })
      yield* start(on)
      const { callId, id } = approval(yield* interrupted(on))
      yield* respond(on, id, "once")
      const head = (yield* on.api["session/state"]({ sessionId: on.sessionId })).cursors[on.sessionId] ?? 0
      yield* ended(on)
      const events = yield* journal(on)
      const [resolved] = ofType(events, "permission-resolved")
      assert.isAtMost(resolved?.seq ?? Infinity, head)
      assert.strictEqual(resolved?.["origin"], "person")
      const dispatch = events.find(
        (event) => event.type === "tool-status" && event["tool_call_id"] === callId && event["status"] === "running"
      )
      assert.isAbove(dispatch?.seq ?? 0, resolved?.seq ?? 0)
    })
  )

  it.live("session also settles the other pending approvals of the tool, and of no other [RUN-446] [AGT-120]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [
          [shell("echo 1"), shell("echo 2"), call("files.write", { path: "a", content: "" }), shell("echo 3")],
          done
        ],
        agent: { tools: ["shell.run", "files.write"] }
      })
      yield* start(on)
      const state = yield* interrupted(on, "m-1", 4)
      yield* respond(on, state.interruptions[1]?.id ?? "", "session")
      const left = yield* on.api["run/wait"]({ sessionId: on.sessionId, submissionId: "m-1", waitMs: 0 })
      assert.deepStrictEqual(
        left.interruptions.map((one) => one.kind === "approval" && one.tool),
        ["files__write"]
      )
      yield* respond(on, first(left).id, "deny")
      assert.strictEqual((yield* ended(on)).status, "completed")
      assert.sameDeepMembers(
        ofType(yield* journal(on), "permission-resolved").map((event) => [
          event["tool"],
          event["decision"],
          event["origin"]
        ]),
        [
          ["shell__run", "allow_always", "person"],
          ["shell__run", "allow_once", "grant"],
          ["shell__run", "allow_once", "grant"],
          ["files__write", "deny", "person"]
        ]
      )
    })
  )

  it.live("interaction/respond is run/respond [RUN-441]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask()], done] })
      yield* start(on)
      const { id } = first(yield* interrupted(on))
      const given = { sessionId: on.sessionId, interactionId: id, answer: "x" }
      assert.deepStrictEqual(yield* on.api["interaction/respond"](given), { alreadyResolved: false, response: "x" })
      assert.deepStrictEqual(yield* on.api["run/respond"](given), { alreadyResolved: true, response: "x" })
    })
  )
})

describe("session/send", () => {
  it.live("a message acts as run/start, with an id of the host's when none is given [RUN-362]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done, done] })
      const sent = yield* on.wire("session/send", { session_id: on.sessionId, input: { text: "Go on" } })
      assert.strictEqual(at(sent, "type"), "message")
      const submissionId = at(sent, "submission_id") as string
      assert.match(submissionId, /^msg_/)
      assert.strictEqual((yield* ended(on, submissionId)).status, "completed")
      const given = { session_id: on.sessionId, submission_id: "m-2", input: { type: "message", text: "Again" } }
      assert.strictEqual(at(yield* on.wire("session/send", given), "duplicate"), false)
      assert.strictEqual(at(yield* on.wire("session/send", given), "duplicate"), true)
    })
  )

  it.live("a message answers nothing while a run is active [RUN-364]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask()], done] })
      yield* start(on)
      yield* interrupted(on)
      const error = yield* failure(on.wire("session/send", { session_id: on.sessionId, input: { text: "red" } }))
      assert.deepStrictEqual(
        [error["kind"], error["reason"], error["submissionId"]],
        ["invalid_state", "run_active", "m-1"]
      )
    })
  )

  it.live("answers and approvals act on the member they name, and tell the run's own id [RUN-362] [RUN-363]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask(), shell("true")], done], agent: { tools: ["shell.run"] } })
      yield* start(on)
      const state = yield* interrupted(on, "m-1", 2)
      const asked = state.interruptions.find(({ kind }) => kind === "question")?.id ?? ""
      const approved = state.interruptions.find(({ kind }) => kind === "approval")?.id ?? ""
      const send = (input: object, more: object = {}) =>
        on.wire("session/send", { session_id: on.sessionId, input, ...more })
      const input = { type: "answer", interaction_id: asked, text: "red" }
      const differs = yield* failure(send(input, { submission_id: "m-9" }))
      assert.deepStrictEqual([differs["kind"], differs["reason"]], ["conflict", "request_differs"])
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      for (const target of [session.sessionId, "ses_nobody"]) {
        const error = yield* failure(send({ ...input, target_session_id: target }))
        assert.deepStrictEqual([error["kind"], error["what"]], ["not_found", "session"])
      }
      assert.deepStrictEqual(yield* send({ ...input, target_session_id: on.sessionId }), {
        type: "answer",
        submission_id: "m-1",
        interaction_id: asked,
        already_resolved: false,
        response: "red"
      })
      assert.deepStrictEqual(
        yield* send({ type: "approval", interaction_id: approved, decision: "deny" }, { submission_id: "m-1" }),
        {
          type: "approval",
          submission_id: "m-1",
          interaction_id: approved,
          already_resolved: false,
          response: "deny"
        }
      )
      assert.strictEqual((yield* ended(on)).status, "completed")
    })
  )
})
