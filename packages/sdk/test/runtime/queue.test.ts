import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Queue, Sessions } from "../../src/effect.ts"
import { create, failing, gate, journal, openRuntime, outcome, programmable, start, stores, within } from "./Kit.ts"
import { directory } from "./Kit.ts"

const queued = { delivery: "queue" }

for (const kind of stores) {
  describe(`the queue over ${kind.name}`, () => {
    it.live("queued messages start one after another when a turn completes [RT-111, RT-113, RT-118]", () => {
      const held = gate()
      const order: Array<string> = []
      const driver = programmable({
        turn: (s) => {
          order.push(s.input.messageId)
          return s.input.messageId === "m" ? Effect.andThen(held.pass, s.emit(s.finish())) : s.emit(s.finish())
        }
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const queue = yield* Queue
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          const first = yield* start(session.id, "q1", "one", queued)
          assert.strictEqual(first.delivery, "queue")
          assert.isUndefined(first.turnId)
          yield* start(session.id, "q2", "two", queued)
          const list = yield* queue.list(session.id)
          assert.deepStrictEqual(
            list.entries.map((entry) => [entry.messageId, entry.position, entry.preview]),
            [
              ["q1", 0, "one"],
              ["q2", 1, "two"]
            ]
          )
          const again = yield* start(session.id, "q1", "one", queued)
          assert.isTrue(again.duplicate)
          yield* held.release
          yield* outcome(session.id, "q2")
          assert.deepStrictEqual(order, ["m", "q1", "q2"])
          const updates = (yield* journal(session.id)).flatMap((event) =>
            event.payload.type === "queue-update"
              ? [[event.payload.revision, event.payload.entries.map((entry) => entry.messageId).join()]]
              : []
          )
          assert.deepStrictEqual(updates, [
            [1, "q1"],
            [2, "q1,q2"],
            [3, "q2"],
            [4, ""]
          ])
          assert.strictEqual(yield* failing(queue.remove(session.id, "q1")), "queue_entry_started")
          const sessions = yield* Sessions
          assert.strictEqual((yield* sessions.receipt(session.id, "q2")).state, "settled")
        })
      )
    })

    it.live(
      "changes name a revision, keep the whole list and use the id up [RT-113, RT-114, RT-115, RT-116, RT-117]",
      () => {
        const held = gate()
        const driver = programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const queue = yield* Queue
            const sessions = yield* Sessions
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            for (const id of ["a", "b", "c"]) yield* start(session.id, id, id, queued)
            const ids = (list: { readonly entries: ReadonlyArray<{ readonly messageId: string }> }) =>
              list.entries.map((entry) => entry.messageId).join("")
            assert.strictEqual(ids(yield* queue.move(session.id, "c", { before: "a" })), "cab")
            assert.strictEqual(yield* failing(queue.reorder(session.id, ["a", "b"], { revision: 4 })), "queue_invalid")
            assert.strictEqual(
              yield* failing(queue.reorder(session.id, ["a", "b", "c"], { revision: 1 })),
              "queue_revision_conflict"
            )
            assert.strictEqual(ids(yield* queue.reorder(session.id, ["a", "b", "c"], { revision: 4 })), "abc")
            yield* queue.edit(session.id, "b", [{ type: "text", text: "other" }])
            assert.strictEqual(yield* failing(start(session.id, "b", "b", queued)), "submission_conflict")
            assert.isTrue((yield* start(session.id, "b", "other", queued)).duplicate)
            assert.strictEqual(ids(yield* queue.remove(session.id, "a")), "bc")
            assert.strictEqual((yield* sessions.receipt(session.id, "a")).state, "removed")
            assert.isTrue((yield* start(session.id, "a", "a", queued)).duplicate)
            yield* queue.remove(session.id, "b")
            yield* queue.remove(session.id, "c")
            yield* held.release
            yield* outcome(session.id, "m")
          })
        )
      }
    )

    it.live("64 messages wait, one more is refused [RT-113]", () => {
      const held = gate()
      const driver = programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          for (let i = 0; i < 64; i++) yield* start(session.id, `q${i}`, "x", queued)
          assert.strictEqual(yield* failing(start(session.id, "q64", "x", queued)), "queue_full")
        })
      )
    })

    it.live("a failed turn holds the queue until it is released [RT-112]", () => {
      const held = gate()
      const driver = programmable({
        turn: (s) =>
          s.input.messageId === "m"
            ? Effect.andThen(
                held.pass,
                s.emit({ type: "error", error: "x", code: "harness_error", assistantMessageId: "a" })
              )
            : s.emit(s.finish())
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const queue = yield* Queue
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          yield* start(session.id, "q", "x", queued)
          yield* held.release
          yield* outcome(session.id, "m")
          const list = yield* queue.list(session.id)
          assert.deepStrictEqual([list.held, list.heldReason, list.entries.length], [true, "turn_failed", 1])
          assert.strictEqual(driver.prompts.length, 1)
          const released = yield* queue.release(session.id)
          assert.isFalse(released.held)
          assert.strictEqual((yield* outcome(session.id, "q")).status, "completed")
        })
      )
    })

    it.live("queued messages survive a restart in order and start after the pass [RT-110, RT-119]", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* directory
          const store = kind.make(root)
          yield* Effect.addFinalizer(() => store.close)
          const held = gate()
          const first = yield* openRuntime(
            store,
            programmable({ capabilities: { turnRecovery: "resume" }, turn: () => held.pass })
          )
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "m"))
          yield* held.begun
          yield* first.run(start(session.id, "q1", "x", queued))
          yield* first.run(start(session.id, "q2", "x", queued))
          yield* first.close("leave")
          const second = yield* openRuntime(store, programmable({ recover: (s) => s.emit(s.finish()) }))
          yield* second.life.ready
          assert.strictEqual((yield* second.run(outcome(session.id, "q2"))).status, "completed")
          const order = (yield* second.run(journal(session.id))).flatMap((event) =>
            event.payload.type === "turn-start" ? [event.payload.messageId] : []
          )
          assert.deepStrictEqual(order, ["m", "q1", "q2"])
          yield* second.close()
        })
      )
    )
  })
}
