import { assert, describe, it } from "@effect/vitest"
import { ResumeUnconfirmed, SessionMissing } from "@tackroom/protocol"
import { Effect } from "effect"
import { create, journal, openRuntime, outcome, programmable, scene, start, stores, types } from "./Kit.ts"

const missing = () => Effect.fail(new SessionMissing({ harness: "test", operation: "resumeSession" }))
const unconfirmed = () => Effect.fail(new ResumeUnconfirmed({ harness: "test", operation: "resumeSession" }))

for (const kind of stores) {
  describe(`resuming over ${kind.name}`, () => {
    it.live("a conversation whose resumption is not confirmed keeps its binding; the turn fails [HRN-005]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const first = yield* openRuntime(store, programmable())
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "a"))
          yield* first.run(outcome(session.id, "a"))
          const bound = yield* store.binding(session.id)
          yield* first.close()
          const driver = programmable({ driver: () => ({ resumeSession: unconfirmed }) })
          const second = yield* openRuntime(store, driver)
          yield* second.run(start(session.id, "b"))
          const ended = yield* second.run(outcome(session.id, "b"))
          assert.isTrue(ended.status === "failed" && ended.error.errorClass === "session")
          assert.deepStrictEqual(yield* store.binding(session.id), bound)
          assert.deepStrictEqual([driver.opened, driver.prompts], [[], []])
          yield* second.close()
        })
      )
    )

    it.live(
      "a conversation that is gone is replaced only where that was allowed, and says so [HRN-005] [HRN-004]",
      () =>
        scene(kind, (root, store) =>
          Effect.gen(function* () {
            const first = yield* openRuntime(store, programmable())
            const session = yield* first.run(create(root))
            yield* first.run(start(session.id, "a"))
            yield* first.run(outcome(session.id, "a"))
            yield* first.close()
            const driver = programmable({ driver: () => ({ resumeSession: missing }) })
            const second = yield* openRuntime(store, driver)
            yield* second.run(start(session.id, "b"))
            const refused = yield* second.run(outcome(session.id, "b"))
            assert.isTrue(refused.status === "failed" && refused.error.code === "session_missing")
            yield* second.run(start(session.id, "c", "go", { allowFreshContext: true }))
            assert.strictEqual((yield* second.run(outcome(session.id, "c"))).status, "completed")
            assert.deepStrictEqual([driver.opened.length, driver.prompts.length], [1, 1])
            assert.include(types(yield* second.run(journal(session.id))), "conversation-reset")
            yield* second.close()
          })
        )
    )

    it.live("a handle that the harness never confirmed is made again under its id, without a reset [HRN-006]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const pending = () => Effect.succeed({ upstreamSessionId: "ours", upstreamState: "pending" as const })
          const first = yield* openRuntime(store, programmable({ driver: () => ({ openSession: pending }) }))
          const session = yield* first.run(create(root))
          assert.strictEqual((yield* store.binding(session.id))?.upstreamState, "pending")
          yield* first.close()
          const driver = programmable({
            driver: () => ({
              resumeSession: missing,
              openSession: () => Effect.succeed({ upstreamSessionId: "ours", upstreamState: "confirmed" as const })
            })
          })
          const second = yield* openRuntime(store, driver)
          yield* second.run(start(session.id, "a"))
          assert.strictEqual((yield* second.run(outcome(session.id, "a"))).status, "completed")
          const bound = yield* store.binding(session.id)
          assert.deepStrictEqual([bound?.upstreamSessionId, bound?.upstreamState], ["ours", "confirmed"])
          assert.notInclude(types(yield* second.run(journal(session.id))), "conversation-reset")
          yield* second.close()
        })
      )
    )
  })
}
