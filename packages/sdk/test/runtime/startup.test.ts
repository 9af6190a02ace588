import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { create, gate, openRuntime, outcome, programmable, scene, start, stores } from "./Kit.ts"

const queued = { delivery: "queue" }

for (const kind of stores) {
  describe(`start-up over ${kind.name}`, () => {
    it.live("a receipt that is still steering becomes uncertain; another owner's stays [RT-088]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }), { owner: "a" })
          const session = yield* first.run(create(root))
          const foreign = yield* first.run(create(root, {}))
          yield* first.run(start(session.id, "m"))
          yield* held.begun
          const steering = (sessionId: string) =>
            store.admit(sessionId, "s", (state) => ({
              _tag: "Steering",
              turn: state.openTurn ?? ({ id: "trn_none" } as never),
              receipt: {
                sessionId,
                messageId: "s",
                digest: "d",
                state: "steering",
                turnId: state.openTurn?.id ?? null,
                endSeq: null,
                outcome: null
              }
            }))
          yield* steering(session.id)
          yield* steering(foreign.id)
          yield* store.updateSession(foreign.id, { owner: "b" }, [])
          yield* first.close("leave")
          const second = yield* openRuntime(store, programmable(), { owner: "a" })
          yield* second.life.ready
          assert.strictEqual((yield* store.receipt(session.id, "s"))?.state, "uncertain")
          assert.strictEqual((yield* store.receipt(foreign.id, "s"))?.state, "steering")
          assert.deepStrictEqual(yield* store.receipts({ state: "steering", owner: "a" }), [])
          yield* second.close()
        })
      )
    )

    it.live("an idle session with an unheld queue starts its first entry, a held one does not [RT-119] [RT-112]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }))
          const waiting = yield* first.run(create(root))
          const stopped = yield* first.run(create(root))
          for (const session of [waiting, stopped]) {
            yield* first.run(start(session.id, `m-${session.id}`))
            yield* first.run(start(session.id, `q-${session.id}`, "next", queued))
          }
          // A process that dies between the end of a turn and the begin of the next leaves this.
          const [turn] = yield* store.openTurns({ sessionId: waiting.id })
          assert.isDefined(turn)
          yield* first.close("leave")
          if (turn === undefined) return
          yield* store.settle(waiting.id, turn.fence, {
            turnId: turn.id,
            outcome: {
              status: "completed",
              reason: "end_turn",
              turnId: turn.id,
              messageId: turn.messageId,
              assistantMessageId: turn.assistantId,
              completedAt: new Date(0).toISOString()
            },
            entries: [],
            session: { status: null, phase: null }
          })
          assert.deepStrictEqual(yield* store.waitingQueues({}), [waiting.id, stopped.id].toSorted())
          const second = yield* openRuntime(store, programmable({ capabilities: { turnRecovery: "none" } }))
          yield* second.life.ready
          assert.strictEqual((yield* second.run(outcome(waiting.id, `q-${waiting.id}`))).status, "completed")
          const queue = yield* store.queue(stopped.id)
          assert.deepStrictEqual([queue.held, queue.entries.length], ["turn_failed", 1])
          assert.deepStrictEqual(yield* store.waitingQueues({}), [])
          yield* second.close()
        })
      )
    )

    it.live("a harness that does not answer holds up no other session's recovery [RT-173] [RT-022]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const held = gate()
          const first = yield* openRuntime(store, programmable({ turn: () => held.pass }), {
            harnesses: [
              programmable({ turn: () => held.pass }).factory,
              programmable({ id: "deaf", turn: () => held.pass }).factory
            ]
          })
          const deaf = yield* Effect.forEach(Array.from({ length: 20 }), () =>
            first.run(create(root, { harness: { id: "deaf", access: "native" } }))
          )
          const session = yield* first.run(create(root))
          for (const each of [...deaf, session]) yield* first.run(start(each.id, "m"))
          yield* first.close("leave")
          const second = yield* openRuntime(store, programmable({ recover: (s) => s.emit(s.finish()) }), {
            probeTimeoutMs: 300,
            harnesses: [
              programmable({ recover: (s) => s.emit(s.finish()) }).factory,
              programmable({ id: "deaf", driver: () => ({ capabilities: () => Effect.never }) }).factory
            ]
          })
          assert.strictEqual((yield* second.run(outcome(session.id, "m"))).status, "completed")
          assert.isAbove((yield* store.openTurns({})).length, 10)
          yield* second.life.ready
          assert.deepStrictEqual(yield* store.openTurns({}), [])
          yield* second.close()
        })
      )
    )
  })
}
