import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { StoreBusy, StoreFull, StoreUnavailable } from "@tackroom/protocol"
import { ActiveTurns, Turns } from "../../src/effect.ts"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import {
  create,
  failing,
  gate,
  journal,
  outcome,
  programmable,
  start,
  stores,
  types,
  until,
  within,
  type StoreKind
} from "./Kit.ts"
import { text } from "./Programmable.ts"

/** A store with trouble that the test switches. */
const troubled = (kind: StoreKind, change: (store: RuntimeStore) => Partial<RuntimeStore>): StoreKind => ({
  name: kind.name,
  make: (root) => {
    const store = kind.make(root)
    return { ...store, ...change(store) }
  }
})

for (const kind of stores) {
  describe(`trouble with the store over ${kind.name}`, () => {
    it.live("a settlement that cannot be written is written when it can be, once [RT-140, STO-048]", () => {
      let tries = 0
      const flaky = troubled(kind, (store) => ({
        settle: (...call) =>
          Effect.suspend(() =>
            ++tries <= 2 ? Effect.fail(tries === 1 ? new StoreBusy({}) : new StoreFull({})) : store.settle(...call)
          )
      }))
      return within(flaky, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          assert.strictEqual(tries, 3)
          assert.deepStrictEqual(types(yield* journal(session.id)), [
            "session-created",
            "user-message",
            "session-status",
            "turn-start",
            "text-delta",
            "text-end",
            "finish",
            "session-status"
          ])
        })
      )
    })

    it.live("a session that cannot be stored is not left open with its harness [RT-044]", () => {
      let full = true
      const driver = programmable()
      const flaky = troubled(kind, (store) => ({
        createSessions: (...call) =>
          Effect.suspend(() => (full ? Effect.fail(new StoreFull({})) : store.createSessions(...call)))
      }))
      return within(flaky, driver, ({ root }) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* failing(create(root, { id: "one" })), "store_full")
          assert.deepStrictEqual([driver.opened, driver.closed], [["one"], ["one"]])
          full = false
          const session = yield* create(root, { id: "one" })
          yield* start(session.id, "m")
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          assert.deepStrictEqual(driver.closed, ["one"])
        })
      )
    })

    it.live("a full disk ends the turn as store_unavailable, and its events are not lost [STO-048, RT-200]", () => {
      let full = true
      const driver = programmable({
        turn: (s) => Effect.andThen(s.emit(text(s.input, "kept"), { type: "usage", contextUsed: 1 }), Effect.never)
      })
      const flaky = troubled(kind, (store) => ({
        append: (...call) =>
          Effect.suspend(() => {
            if (full) return Effect.fail(new StoreFull({}))
            return store.append(...call)
          })
      }))
      return within(flaky, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          const ended = yield* outcome(session.id, "m")
          assert.isTrue(ended.status === "failed" && ended.error.code === "store_unavailable")
          full = false
          assert.deepStrictEqual(types(yield* journal(session.id)).slice(4), [
            "text-delta",
            "usage",
            "text-end",
            "error",
            "session-status"
          ])
        })
      )
    })

    it.live("a short trouble while a turn runs costs nothing [RT-200]", () => {
      let tries = 0
      const flaky = troubled(kind, (store) => ({
        append: (...call) =>
          Effect.suspend(() => (++tries <= 2 ? Effect.fail(new StoreUnavailable({})) : store.append(...call)))
      }))
      const held = gate()
      const driver = programmable({
        turn: (s) =>
          s.emit({ type: "usage", contextUsed: 1 }).pipe(Effect.andThen(held.pass), Effect.andThen(s.emit(s.finish())))
      })
      return within(flaky, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          const usage = yield* until(session.id, (payload) => payload.type === "usage")
          yield* start(session.id, "m")
          yield* usage
          yield* held.release
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
        })
      )
    })

    it.live(
      "an event that could not be read for subscribers comes later, not with the next one [RT-223] [STO-009]",
      () => {
        let tries = 0
        const flaky = troubled(kind, (store) => ({
          read: (...call) =>
            Effect.suspend(() => (++tries === 1 ? Effect.fail(new StoreBusy({})) : store.read(...call)))
        }))
        return within(flaky, programmable(), ({ root, store }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            const seen = yield* until(session.id, (payload) => payload.type === "session-info")
            // As another process would: this runtime hears of it only by the store's hint.
            yield* store.appendUnfenced(session.id, [{ payload: { type: "session-info", tags: ["x"] } }])
            assert.strictEqual((yield* seen).cursor, 2)
            assert.isAtLeast(tries, 2)
          })
        )
      }
    )

    it.live("an owner that cannot renew its lease stops its harness work at once [RT-132]", () => {
      const held = gate()
      const driver = programmable({ turn: () => held.pass })
      const stopped = troubled(kind, () => ({ renewLeases: () => Effect.fail(new StoreUnavailable({})) }))
      return within(
        stopped,
        driver,
        ({ root, store }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const actives = yield* ActiveTurns
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            const before = yield* journal(session.id)
            // Nobody took it over: it is open in the store, and nobody here works on it.
            const active = actives.get(session.id)
            if (active !== undefined) yield* Deferred.await(active.gone)
            assert.isUndefined(turns.phase(session.id))
            assert.deepStrictEqual(yield* journal(session.id), before)
            assert.strictEqual((yield* Effect.orDie(store.openTurns({ sessionId: session.id }))).length, 1)
          }),
        { leaseMs: 100, leaseRenewMs: 30 }
      )
    })
  })
}
