import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schedule } from "effect"
import { Interactions, Sessions, Turns } from "../../src/effect.ts"
import type { PermissionDecision } from "../../src/harness/Harness.ts"
import {
  create,
  failing,
  gate,
  journal,
  openRuntime,
  outcome,
  programmable,
  scene,
  start,
  stores,
  types,
  until
} from "./Kit.ts"
import type { TurnScript } from "./Programmable.ts"

const ask = (s: TurnScript, got: Array<PermissionDecision>) =>
  s.context.ask
    .permission({
      sessionId: s.input.binding.sessionId,
      turnId: s.input.turnId,
      nativeRequestId: "1",
      tool: "shell",
      options: [{ id: "yes", label: "Yes", kind: "allow_once" }]
    })
    .pipe(
      Effect.map((decision) => void got.push(decision)),
      Effect.ignore
    )

for (const kind of stores) {
  describe(`recovery over ${kind.name}`, () => {
    it.live("a turn that was left is continued by its driver under the same ids [RT-028, RT-170, RT-171, RT-174]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(
            store,
            programmable({
              turn: (s) =>
                Effect.andThen(
                  s.emit(
                    { type: "tool-start", toolCallId: "c", toolName: "t" },
                    { type: "tool-status", toolCallId: "c", status: "running" }
                  ),
                  held.pass
                )
            })
          )
          const session = yield* first.run(create(root))
          const running = yield* first.run(until(session.id, (payload) => payload.type === "tool-status"))
          const admission = yield* first.run(start(session.id, "m"))
          yield* held.begun
          yield* running
          yield* first.close("leave")
          const left = yield* Effect.orDie(store.openTurns({ sessionId: session.id }))
          assert.isTrue(left[0]?.handedOver)
          const driver = programmable({ recover: (s) => s.emit(s.finish("done")) })
          const second = yield* openRuntime(store, driver)
          yield* second.life.ready
          const ended = yield* second.run(outcome(session.id, "m"))
          assert.isTrue(ended.status === "completed" && ended.turnId === admission.turnId)
          assert.strictEqual(driver.prompts.length, 0)
          assert.strictEqual(driver.recovered.length, 1)
          assert.deepStrictEqual(driver.resumed, [session.id])
          const events = types(yield* second.run(journal(session.id)))
          assert.deepStrictEqual(events, [
            "session-created",
            "user-message",
            "session-status",
            "turn-start",
            "tool-start",
            "tool-status",
            "tool-status",
            "session-status",
            "session-status",
            "finish",
            "session-status"
          ])
          yield* second.close()
        })
      )
    )

    it.live(
      "a driver without recovery gets its turn interrupted, the queue is held, the question withdrawn [RT-170, RT-172, RT-263]",
      () =>
        scene(kind, (root, store) =>
          Effect.gen(function* () {
            const first = yield* openRuntime(store, programmable({ turn: (s) => ask(s, []) }))
            const session = yield* first.run(create(root))
            const asked = yield* first.run(until(session.id, (payload) => payload.type === "permission-request"))
            yield* first.run(start(session.id, "m"))
            const request = (yield* asked).payload
            yield* first.run(start(session.id, "q", "x", { delivery: "queue" }))
            yield* first.close("leave")
            const second = yield* openRuntime(store, programmable({ capabilities: { turnRecovery: "none" } }))
            yield* second.life.ready
            const ended = yield* second.run(outcome(session.id, "m"))
            assert.isTrue(ended.status === "failed" && ended.error.code === "turn_interrupted")
            assert.deepStrictEqual(types(yield* second.run(journal(session.id))).slice(-4), [
              "interaction-withdrawn",
              "error",
              "session-status",
              "queue-update"
            ])
            const id = request.type === "permission-request" ? request.requestId : ""
            assert.strictEqual(
              yield* failing(
                second.run(Effect.flatMap(Effect.service(Interactions), (all) => all.respond(id, { decision: "deny" })))
              ),
              "interaction_withdrawn"
            )
            assert.strictEqual((yield* Effect.orDie(store.queue(session.id))).held, "turn_failed")
            yield* second.close()
          })
        )
    )

    it.live(
      "a pending ask stays pending under its id and is answered once to the continued turn [RT-171, RT-261]",
      () =>
        scene(kind, (root, store) =>
          Effect.gen(function* () {
            const first = yield* openRuntime(store, programmable({ turn: (s) => ask(s, []) }))
            const session = yield* first.run(create(root))
            const asked = yield* first.run(until(session.id, (payload) => payload.type === "permission-request"))
            yield* first.run(start(session.id, "m"))
            const request = (yield* asked).payload
            const id = request.type === "permission-request" ? request.requestId : ""
            yield* first.close("leave")
            // Answered while nobody works on the turn: recorded, delivered later.
            const got: Array<PermissionDecision> = []
            const second = yield* openRuntime(
              store,
              programmable({ recover: (s) => Effect.andThen(ask(s, got), s.emit(s.finish())) }),
              { autoStart: false }
            )
            yield* second.life.ready
            assert.deepStrictEqual(second.life.waitingForStart(), [session.id])
            const turns = yield* second.run(Effect.service(Turns))
            assert.strictEqual(turns.phase(session.id), "recovering")
            assert.strictEqual(yield* failing(second.run(start(session.id, "n"))), "session_recovering")
            const answered = yield* second.run(
              Effect.flatMap(Effect.service(Interactions), (all) => all.respond(id, { decision: "allow_once" }))
            )
            assert.deepStrictEqual([answered.status, answered.delivered], ["resolved", false])
            yield* second.life.startRecovered()
            yield* second.run(outcome(session.id, "m"))
            assert.deepStrictEqual(
              got.map((decision) => [decision.interactionId, decision.optionId]),
              [[id, "yes"]]
            )
            const requests = (yield* second.run(journal(session.id))).filter(
              (event) => event.payload.type === "permission-request"
            )
            assert.strictEqual(requests.length, 1)
            yield* second.close()
          })
        )
    )

    it.live("a turn that waits to be continued can be cancelled or left again [RT-028, RT-162, RT-168]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }))
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "m"))
          yield* held.begun
          yield* first.close("leave")
          const idle = yield* openRuntime(store, programmable(), { autoStart: false })
          yield* idle.life.ready
          yield* idle.close("leave")
          const driver = programmable()
          const second = yield* openRuntime(store, driver, { autoStart: false })
          yield* second.life.ready
          assert.deepStrictEqual(second.life.waitingForStart(), [session.id])
          const turns = yield* second.run(Effect.service(Turns))
          assert.deepStrictEqual(yield* turns.abort(session.id), { ok: true, status: "cancelled" })
          const ended = yield* second.run(outcome(session.id, "m"))
          assert.isTrue(ended.status === "cancelled" && ended.reason === "forced")
          assert.strictEqual(driver.recovered.length, 0)
          yield* second.life.startRecovered()
          yield* second.close()
        })
      )
    )

    it.live("an ask that the continued turn does not offer again is withdrawn [RT-263]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const first = yield* openRuntime(store, programmable({ turn: (s) => ask(s, []) }))
          const session = yield* first.run(create(root))
          const asked = yield* first.run(until(session.id, (payload) => payload.type === "permission-request"))
          yield* first.run(start(session.id, "m"))
          yield* asked
          yield* first.close("leave")
          const second = yield* openRuntime(store, programmable({ recover: () => Effect.never }), { reofferMs: 20 })
          const withdrawn = yield* second.run(
            until(session.id, (payload) => payload.type === "interaction-withdrawn", 0)
          )
          yield* second.life.ready
          const event = (yield* withdrawn).payload
          assert.isTrue(event.type === "interaction-withdrawn" && event.reason === "process_lost")
          yield* second.close()
        })
      )
    )

    it.live("a turn that waited for its place is run, its turn-start is not repeated [RT-171]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }), { maxActiveTurns: 1 })
          const one = yield* first.run(create(root))
          const two = yield* first.run(create(root))
          yield* first.run(start(one.id, "a"))
          yield* held.begun
          yield* first.run(start(two.id, "b"))
          yield* first.close("leave")
          const driver = programmable({ capabilities: { turnRecovery: "none" } })
          const second = yield* openRuntime(store, driver)
          yield* second.life.ready
          assert.strictEqual((yield* second.run(outcome(two.id, "b"))).status, "completed")
          assert.strictEqual(driver.prompts.length, 1)
          const starts = (yield* second.run(journal(two.id))).filter((event) => event.payload.type === "turn-start")
          assert.strictEqual(starts.length, 1)
          const interrupted = yield* second.run(outcome(one.id, "a"))
          assert.strictEqual(interrupted.status, "failed")
          yield* second.close()
        })
      )
    )

    it.live("with recover opened only the opened session is settled, whatever its driver could do [RT-175]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }))
          const one = yield* first.run(create(root))
          const two = yield* first.run(create(root))
          yield* first.run(start(one.id, "a"))
          yield* first.run(start(two.id, "b"))
          yield* held.begun
          yield* first.close("leave")
          const driver = programmable()
          const second = yield* openRuntime(store, driver, { recover: "opened" })
          yield* second.life.ready
          assert.strictEqual((yield* Effect.orDie(store.openTurns({}))).length, 2)
          yield* second.run(Effect.flatMap(Effect.service(Sessions), (sessions) => sessions.open(one.id)))
          assert.strictEqual((yield* second.run(outcome(one.id, "a"))).status, "failed")
          assert.strictEqual(driver.recovered.length, 0)
          assert.strictEqual((yield* Effect.orDie(store.openTurns({}))).length, 1)
          assert.strictEqual((yield* second.run(start(two.id, "c"))).delivery, "start")
          yield* second.close()
        })
      )
    )

    it.live("only sessions of the same owner are taken up [RT-170]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }), { owner: "host-a" })
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "a"))
          yield* held.begun
          yield* first.close("leave")
          const other = yield* openRuntime(store, programmable(), { owner: "host-b" })
          yield* other.life.ready
          assert.strictEqual((yield* Effect.orDie(store.openTurns({}))).length, 1)
          yield* other.close()
          const same = yield* openRuntime(store, programmable(), { owner: "host-a" })
          yield* same.life.ready
          assert.strictEqual((yield* same.run(outcome(session.id, "a"))).status, "completed")
          yield* same.close()
        })
      )
    )

    it.live("a turn taken up three times without progress is given up [RUN-523]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }))
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "a"))
          yield* held.begun
          yield* first.close("leave")
          for (let i = 0; i < 2; i++) {
            const stuck = gate()
            const next = yield* openRuntime(
              store,
              programmable({
                recover: (s) =>
                  Effect.andThen(s.emit({ type: "harness-notice", code: "turn_resumed", message: "again" }), stuck.pass)
              })
            )
            yield* next.life.ready
            yield* stuck.begun
            yield* next.close("leave")
          }
          const last = yield* openRuntime(store, programmable())
          yield* last.life.ready
          const ended = yield* last.run(outcome(session.id, "a"))
          assert.isTrue(ended.status === "failed" && ended.error.code === "turn_interrupted")
          yield* last.close()
        })
      )
    )

    it.live(
      "another runtime's session is taken over after its lease, and the former owner writes nothing more [RT-026, RT-130, RT-131, RT-132, RT-134]",
      () =>
        scene(kind, (root, store) =>
          Effect.gen(function* () {
            const go = Deferred.makeUnsafe<void>()
            const held = gate()
            const slow = programmable({
              turn: (s) =>
                held.pass.pipe(
                  Effect.andThen(Deferred.await(go)),
                  Effect.andThen(s.emit({ type: "harness-notice", code: "stale", message: "late" }, s.finish()))
                )
            })
            // It never renews: as a process that is stopped.
            const first = yield* openRuntime(store, slow, { leaseMs: 100, leaseRenewMs: 60_000 })
            const session = yield* first.run(create(root))
            yield* first.run(start(session.id, "a"))
            yield* held.begun
            const fast = programmable({ capabilities: { turnRecovery: "none" } })
            const second = yield* openRuntime(store, fast)
            yield* second.life.ready
            // Refused while the lease is held, and admitted once it has run out.
            const admitted = yield* second.run(start(session.id, "b2")).pipe(
              Effect.retry({
                while: (error) => error._tag === "SessionTurnInProgress",
                schedule: Schedule.spaced("10 millis"),
                times: 500
              })
            )
            assert.strictEqual(admitted.delivery, "start")
            yield* held.release
            yield* Deferred.succeed(go, undefined)
            yield* second.run(outcome(session.id, "b2"))
            yield* first.run(Effect.flatMap(Effect.service(Turns), (turns) => turns.whenIdle(session.id)))
            const events = yield* second.run(journal(session.id))
            assert.isFalse(
              events.some((event) => event.payload.type === "harness-notice" && event.payload.code === "stale")
            )
            assert.deepStrictEqual(
              events.map((event) => event.cursor),
              events.map((_, i) => i + 1)
            )
            assert.strictEqual(
              events.filter((event) => event.turnId !== undefined && event.payload.type === "error").length,
              1
            )
            yield* first.close()
            yield* second.close()
          })
        )
    )
  })
}
