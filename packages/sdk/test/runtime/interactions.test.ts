import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import type { PermissionOption, Question } from "@tackroom/protocol/events"
import { Interactions, Permissions, Questions, Sessions, Turns } from "../../src/effect.ts"
import type { PermissionDecision, QuestionAnswer } from "../../src/harness/Harness.ts"
import { create, failing, journal, outcome, programmable, start, stores, types, until, within } from "./Kit.ts"
import type { TurnScript } from "./Programmable.ts"

const usual: ReadonlyArray<PermissionOption> = [
  { id: "yes", label: "Yes", kind: "allow_once" },
  { id: "no", label: "No", kind: "reject_once" }
]

const ask = (s: TurnScript, id: string, options = usual, tool = "shell") =>
  s.context.ask.permission({
    sessionId: s.input.binding.sessionId,
    turnId: s.input.turnId,
    nativeRequestId: id,
    tool,
    options
  })

const questions = (s: TurnScript, id: string, list: ReadonlyArray<Question>) =>
  s.context.ask.question({
    sessionId: s.input.binding.sessionId,
    turnId: s.input.turnId,
    nativeRequestId: id,
    questions: list
  })

const asking = (
  run: (s: TurnScript, answers: Array<PermissionDecision | QuestionAnswer>) => Effect.Effect<void, unknown>
) => {
  const answers: Array<PermissionDecision | QuestionAnswer> = []
  return {
    answers,
    driver: programmable({ turn: (s) => Effect.orDie(Effect.andThen(run(s, answers), s.emit(s.finish()))) })
  }
}

for (const kind of stores) {
  describe(`interactions over ${kind.name}`, () => {
    it.live(
      "the first of two people decides; both events are in the journal in order [RT-250, RT-251, RT-253, RT-255]",
      () => {
        const { answers, driver } = asking((s, got) =>
          s.emit({ type: "tool-start", toolCallId: "c1", toolName: "edit" }).pipe(
            Effect.andThen(ask(s, "1")),
            Effect.map((decision) => void got.push(decision))
          )
        )
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const permissions = yield* Permissions
            const sessions = yield* Sessions
            const turns = yield* Turns
            const session = yield* create(root)
            const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
            yield* start(session.id, "m")
            const request = (yield* asked).payload
            const id = request.type === "permission-request" ? request.requestId : ""
            assert.match(id, /^int_/)
            assert.strictEqual(turns.phase(session.id), "approval")
            const shown = yield* sessions.get(session.id)
            assert.deepStrictEqual([shown?.status, shown?.phase, shown?.attention], ["busy", "waiting", 1])
            assert.strictEqual((yield* permissions.list({ sessionId: session.id }))[0]?.id, id)
            assert.strictEqual(
              yield* failing(permissions.respond(id, "allow_once", { optionId: "other" })),
              "option_not_offered"
            )
            assert.strictEqual(yield* failing(permissions.respond(id, "allow_always")), "option_not_offered")
            assert.strictEqual(
              yield* failing(permissions.respond(id, "deny", { sessionId: "other" })),
              "scope_mismatch"
            )
            assert.strictEqual(yield* failing(permissions.respond("int_none", "deny")), "interaction_not_found")
            const won = yield* permissions.respond(id, "allow_once", { by: "ana" })
            assert.deepStrictEqual([won.status, won.delivered], ["resolved", true])
            assert.strictEqual(
              yield* failing(permissions.respond(id, "deny", { by: "ben" })),
              "interaction_already_resolved"
            )
            const again = yield* permissions.respond(id, "allow_once")
            assert.strictEqual(again.status, "already_resolved")
            yield* outcome(session.id, "m")
            assert.strictEqual((yield* permissions.respond(id, "allow_once")).status, "already_resolved")
            const decision = answers[0]
            assert.isTrue(decision !== undefined && "decision" in decision && decision.optionId === "yes")
            const events = types(yield* journal(session.id))
            assert.isTrue(events.indexOf("permission-request") < events.indexOf("permission-resolved"))
            assert.isTrue(events.indexOf("permission-resolved") < events.indexOf("finish"))
          })
        )
      }
    )

    it.live("of two simultaneous decisions exactly one is stored [RT-252]", () => {
      const { driver } = asking((s) => ask(s, "1"))
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const permissions = yield* Permissions
          const session = yield* create(root)
          const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
          yield* start(session.id, "m")
          const request = (yield* asked).payload
          const id = request.type === "permission-request" ? request.requestId : ""
          const results = yield* Effect.forEach(
            ["allow_once", "deny", "allow_once", "deny"] as const,
            (decision) => Effect.exit(permissions.respond(id, decision)),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(
            results.filter((exit) => Exit.isSuccess(exit) && exit.value.status === "resolved").length,
            1
          )
          yield* outcome(session.id, "m")
          const events = yield* journal(session.id)
          assert.strictEqual(events.filter((event) => event.payload.type === "permission-resolved").length, 1)
        })
      )
    })

    it.live("parallel asks are answered in any order, and one id is one ask [RT-250, RT-258]", () => {
      const { answers, driver } = asking((s, got) =>
        Effect.forEach(["1", "2", "3", "1"], (id) => ask(s, id), { concurrency: "unbounded" }).pipe(
          Effect.map((all) => void got.push(...all))
        )
      )
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const permissions = yield* Permissions
          const session = yield* create(root)
          let count = 0
          const asked = yield* until(session.id, (payload) => payload.type === "permission-request" && ++count === 3)
          yield* start(session.id, "m")
          yield* asked
          const pending = yield* permissions.list({ sessionId: session.id })
          assert.strictEqual(pending.length, 3)
          for (const row of pending.toSorted((a, b) => (a.nativeRequestId < b.nativeRequestId ? 1 : -1))) {
            yield* permissions.respond(row.id, row.nativeRequestId === "2" ? "deny" : "allow_once")
          }
          yield* outcome(session.id, "m")
          assert.deepStrictEqual(
            answers.map((answer) => ("decision" in answer ? answer.decision : "")),
            ["allow_once", "deny", "allow_once", "allow_once"]
          )
        })
      )
    })

    it.live("a decision without an option takes the first of its kind, or the plain refusal [RT-254]", () => {
      const { answers, driver } = asking((s, got) =>
        Effect.gen(function* () {
          got.push(yield* ask(s, "1", []))
          got.push(yield* ask(s, "2", [{ id: "a", label: "A", kind: "reject_always" }, ...usual]))
        })
      )
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const permissions = yield* Permissions
          const session = yield* create(root)
          for (const [i, decision] of (["deny", "reject_always"] as const).entries()) {
            const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
            if (i === 0) yield* start(session.id, "m")
            const pending = yield* permissions.list({ sessionId: session.id })
            const id =
              pending[0]?.id ?? (yield* asked.pipe(Effect.map((e) => (e.payload as { requestId: string }).requestId)))
            yield* permissions.respond(id, decision)
          }
          yield* outcome(session.id, "m")
          assert.deepStrictEqual(
            answers.map((answer) => ("decision" in answer ? [answer.decision, answer.optionId] : [])),
            [
              ["deny", undefined],
              ["reject_always", "a"]
            ]
          )
        })
      )
    })

    it.live("answers must fit their questions; a secret one is stored nowhere [RT-259, RT-260, RT-320]", () => {
      const secret = "hunter2-hunter2"
      const { answers, driver } = asking((s, got) =>
        questions(s, "q", [
          { question: "Which?", options: [{ label: "a" }, { label: "b" }], custom: false },
          { question: "Key?", options: [], secret: true }
        ]).pipe(
          Effect.tap((answer) => Effect.sync(() => got.push(answer))),
          Effect.andThen(s.emit({ type: "text-delta", delta: `it is ${secret}`, messageId: "x", partId: "p" }))
        )
      )
      return within(kind, driver, ({ root, store }) =>
        Effect.gen(function* () {
          const all = yield* Questions
          const session = yield* create(root)
          const asked = yield* until(session.id, (payload) => payload.type === "question")
          yield* start(session.id, "m")
          const request = (yield* asked).payload
          const id = request.type === "question" ? request.requestId : ""
          assert.strictEqual(yield* failing(all.answer(id, [["a"]])), "answer_invalid")
          assert.strictEqual(yield* failing(all.answer(id, [["c"], [secret]])), "answer_invalid")
          assert.strictEqual(yield* failing(all.answer(id, [["a", "b"], [secret]])), "answer_invalid")
          const done = yield* all.answer(id, [["a"], [secret]])
          assert.isTrue(done.delivered)
          yield* outcome(session.id, "m")
          assert.deepStrictEqual(answers, [{ interactionId: id, answers: [["a"], [secret]] }])
          const stored = JSON.stringify([yield* journal(session.id), yield* store.interaction(id)])
          assert.isFalse(stored.includes(secret))
          assert.isTrue(stored.includes("[secret]"))
        })
      )
    })

    it.live("a policy settles an ask before it is shown, in one transaction with its origin [RT-264]", () => {
      const { answers, driver } = asking((s, got) =>
        Effect.gen(function* () {
          got.push(yield* ask(s, "1", usual, "read"))
          got.push(yield* ask(s, "2", usual, "shell"))
        })
      )
      return within(
        kind,
        driver,
        ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* outcome(session.id, "m")
            const events = yield* journal(session.id)
            const found = events.flatMap((event) =>
              event.payload.type === "permission-resolved" ? [[event.payload.decision, event.payload.origin]] : []
            )
            assert.deepStrictEqual(found, [
              ["allow_once", "policy"],
              ["deny", "app_policy"]
            ])
            const at = events.findIndex((event) => event.payload.type === "permission-request")
            assert.strictEqual(events[at + 1]?.payload.type, "permission-resolved")
            assert.strictEqual(answers.length, 2)
          }),
        {
          decide: (interaction) =>
            interaction.kind === "permission" && interaction.tool === "read"
              ? { decision: "allow_once", origin: "policy" }
              : Promise.resolve({ decision: "deny", origin: "app_policy" })
        }
      )
    })

    it.live("with a time-out a waiting ask is withdrawn, never decided [RT-256]", () => {
      const said = Deferred.makeUnsafe<string>()
      const driver = programmable({
        turn: (s) =>
          ask(s, "1").pipe(
            Effect.asVoid,
            Effect.catch((error) => Deferred.succeed(said, error._tag === "Withdrawn" ? error.reason : "other")),
            Effect.andThen(s.emit(s.finish()))
          )
      })
      return within(
        kind,
        driver,
        ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            yield* start(session.id, "m")
            assert.strictEqual(yield* Deferred.await(said), "expired")
            yield* outcome(session.id, "m")
            assert.isTrue(types(yield* journal(session.id)).includes("interaction-withdrawn"))
            assert.isFalse(types(yield* journal(session.id)).includes("permission-resolved"))
          }),
        { interactionTimeoutMs: 1000 }
      )
    })

    it.live("an ask beyond 64 pending ones fails and approves nothing [RT-250]", () => {
      const details = Deferred.makeUnsafe<number>()
      const driver = programmable({
        turn: (s) =>
          Effect.gen(function* () {
            let refused = 0
            yield* Effect.forEach(
              Array.from({ length: 70 }, (_, i) => `${i}`),
              (id) =>
                ask(s, id).pipe(
                  Effect.asVoid,
                  Effect.catch((error) => {
                    if (error._tag === "HarnessRejected" && error.detail === "too_many_interactions") refused += 1
                    if (refused === 6) Deferred.doneUnsafe(details, Exit.succeed(refused))
                    return Effect.void
                  })
                ),
              { concurrency: "unbounded" }
            )
          })
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          assert.strictEqual(yield* Deferred.await(details), 6)
          const turns = yield* Turns
          yield* turns.abort(session.id)
          const interactions = yield* Interactions
          assert.deepStrictEqual(yield* interactions.list({ sessionId: session.id }), [])
        })
      )
    })

    it.live("text that is sent as a message answers nothing [RT-257]", () => {
      const { driver } = asking((s) => ask(s, "1"))
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const permissions = yield* Permissions
          const session = yield* create(root)
          const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
          yield* start(session.id, "m")
          yield* asked
          assert.strictEqual(yield* failing(start(session.id, "n", "yes")), "session_turn_in_progress")
          const pending = yield* permissions.list({ sessionId: session.id })
          assert.strictEqual(pending.length, 1)
          yield* permissions.respond(pending[0]?.id ?? "", "deny")
          yield* outcome(session.id, "m")
        })
      )
    })

    it.live("the embedding package answers with an origin and settles further asks with it [RT-264]", () => {
      const { answers, driver } = asking((s, got) =>
        Effect.forEach(["1", "2"], (id) => ask(s, id), { concurrency: "unbounded" }).pipe(
          Effect.map((all) => void got.push(...all))
        )
      )
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const interactions = yield* Interactions
          const session = yield* create(root)
          let count = 0
          const asked = yield* until(session.id, (payload) => payload.type === "permission-request" && ++count === 2)
          yield* start(session.id, "m")
          yield* asked
          const [first] = yield* interactions.list({ sessionId: session.id })
          const done = yield* interactions.respond(
            first?.id ?? "",
            { decision: "allow_once" },
            {
              origin: "reviewer",
              also: (pending) =>
                pending.map((row) => ({ id: row.id, response: { decision: "allow_once" }, origin: "grant" }))
            }
          )
          assert.strictEqual(done.also.length, 1)
          yield* outcome(session.id, "m")
          const origins = (yield* journal(session.id)).flatMap((event) =>
            event.payload.type === "permission-resolved" ? [event.payload.origin] : []
          )
          assert.deepStrictEqual(origins, ["reviewer", "grant"])
          assert.strictEqual(answers.length, 2)
        })
      )
    })
  })
}
