import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Events, Hub, isEnvelope, Sessions, type Subscription, type SubscriptionItem } from "../../src/effect.ts"
import type { Identity } from "../../src/effect.ts"
import { create, failing, journal, outcome, programmable, start, stores, types, within } from "./Kit.ts"

const notes = (count: number, from = 0): ReadonlyArray<HarnessEvent> =>
  Array.from({ length: count }, (_, i) => ({ type: "harness-notice", code: "n", message: `${from + i}` }))

const drain = (subscription: Subscription, last: number, count = Infinity): Effect.Effect<Array<SubscriptionItem>> =>
  Effect.gen(function* () {
    const items: Array<SubscriptionItem> = []
    while (true) {
      if (items.length >= count) return items
      const item = yield* Effect.orDie(subscription.next)
      if (item === undefined) return items
      items.push(item)
      if (isEnvelope(item) && item.cursor >= last) return items
    }
  })

const cursors = (items: ReadonlyArray<SubscriptionItem>): ReadonlyArray<number> =>
  items.flatMap((item) => (isEnvelope(item) ? [item.cursor] : []))

const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

const identity: Identity = {
  connectionId: "c",
  actorId: "a",
  actorKind: "human",
  workspaceId: "default",
  role: "viewer"
}

for (const kind of stores) {
  describe(`subscriptions over ${kind.name}`, () => {
    it.live("replay from any cursor, then live, each event once, with one mark between [RT-182, RT-221, RT-220]", () =>
      within(kind, programmable({ turn: (s) => s.emit(...notes(30), s.finish()) }), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          yield* start(session.id, "m1")
          yield* outcome(session.id, "m1")
          const head = (yield* events.head(session.id)).cursor
          const open = range(0, head).map((after) => ({
            after,
            subscription: events.subscribe({ sessionId: session.id, after })
          }))
          yield* start(session.id, "m2")
          yield* outcome(session.id, "m2")
          const all = yield* journal(session.id)
          const end = all.length
          for (const { after, subscription } of open) {
            const items = yield* drain(subscription, end)
            if (!items.some((item) => !isEnvelope(item))) items.push(...(yield* drain(subscription, -1, 1)))
            assert.deepStrictEqual(cursors(items), range(after + 1, end))
            const marks = items.filter((item) => !isEnvelope(item))
            assert.strictEqual(marks.length, 1)
            assert.strictEqual(
              marks[0]?.payload.type === "harness-notice" ? marks[0].payload.code : "",
              "runtime.subscription_synced"
            )
            assert.deepStrictEqual(items.filter(isEnvelope), all.slice(after))
            yield* subscription.close
          }
        })
      )
    )

    it.live("wrong cursors and unknown sessions fail at the first read [RT-184, RT-222]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          const code = (after: number) => failing(events.subscribe({ sessionId: session.id, after }).next)
          assert.strictEqual(yield* code(99), "cursor_ahead")
          assert.strictEqual(yield* code(-1), "cursor_invalid")
          assert.strictEqual(yield* code(0.5), "cursor_invalid")
          assert.strictEqual(yield* failing(events.subscribe({ sessionId: "nobody" }).next), "session_not_found")
          assert.strictEqual(yield* failing(events.read(session.id, { after: 99 })), "cursor_ahead")
          assert.strictEqual(yield* failing(events.read(session.id, { after: -1 })), "cursor_invalid")
          assert.strictEqual(yield* failing(events.read("nobody")), "session_not_found")
        })
      )
    )

    it.live(
      "a full buffer stops filling and the rest is read from the journal, without a notice [RT-223, RT-226]",
      () =>
        within(
          kind,
          programmable({ turn: (s) => s.emit(...notes(300), s.finish()) }),
          ({ root }) =>
            Effect.gen(function* () {
              const events = yield* Events
              const session = yield* create(root)
              const slow = events.subscribe({ sessionId: session.id })
              const never = events.subscribe({ sessionId: session.id })
              yield* start(session.id, "m")
              yield* outcome(session.id, "m")
              const end = (yield* events.head(session.id)).cursor
              const items = yield* drain(slow, end)
              assert.deepStrictEqual(cursors(items), range(2, end))
              assert.isTrue(items.every(isEnvelope))
              yield* never.close
            }),
          { subscriberBufferSize: 4 }
        )
    )

    it.live("with overflow close the subscription ends with one notice that says where to resume [RT-224]", () =>
      within(
        kind,
        programmable({ turn: (s) => s.emit(...notes(50), s.finish()) }),
        ({ root }) =>
          Effect.gen(function* () {
            const events = yield* Events
            const session = yield* create(root)
            const closing = events.subscribe({ sessionId: session.id, overflow: "close" })
            yield* start(session.id, "m")
            yield* outcome(session.id, "m")
            const items = yield* drain(closing, 1_000)
            const last = items.at(-1)
            assert.isTrue(last !== undefined && !isEnvelope(last))
            assert.isTrue(
              last?.payload.type === "harness-notice" && last.payload.code === "runtime.subscription_overflow"
            )
            const seen = cursors(items).at(-1) ?? 0
            const rest = events.subscribe({ sessionId: session.id, after: seen })
            const end = (yield* events.head(session.id)).cursor
            assert.deepStrictEqual(cursors(yield* drain(rest, end)), range(seen + 1, end))
            yield* rest.close
          }),
        { subscriberBufferSize: 4 }
      )
    )

    it.live("closing ends a waiting reader at once, and the last one leaving stops no turn [RT-225, RT-229]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          const subscription = events.subscribe({ sessionId: session.id })
          const reading = yield* Effect.forkChild(subscription.next)
          yield* start(session.id, "m")
          yield* subscription.close
          yield* Effect.flatMap(
            Effect.promise(() => import("effect/Fiber")),
            (fiber) => fiber.await(reading)
          )
          assert.isUndefined(yield* subscription.next)
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
        })
      )
    )

    it.live("subscribing while a turn settles still yields its end [RT-228]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          for (let i = 0; i < 60; i++) {
            const before = (yield* events.head(session.id)).cursor
            yield* start(session.id, `m${i}`)
            for (let n = 0; n < i % 12; n++) yield* Effect.yieldNow
            const subscription = events.subscribe({ sessionId: session.id, after: before })
            let ended = false
            while (!ended) {
              const item = yield* subscription.next
              if (item !== undefined && isEnvelope(item)) ended = item.payload.type === "finish"
            }
            yield* subscription.close
            yield* outcome(session.id, `m${i}`)
          }
        })
      )
    )

    it.live(
      "a policy is asked for every event; omit skips, terminate ends with its notice [RT-240, RT-241, RT-242, RT-243]",
      () => {
        const asked: Array<number> = []
        return within(
          kind,
          programmable({ turn: (s) => s.emit(...notes(3), s.finish()) }),
          ({ root }) =>
            Effect.gen(function* () {
              const events = yield* Events
              const session = yield* create(root)
              yield* start(session.id, "m")
              yield* outcome(session.id, "m")
              assert.strictEqual(
                yield* failing(events.subscribe({ sessionId: session.id, after: 0 }).next),
                "subscription_identity_required"
              )
              const internal = events.subscribe({ sessionId: session.id, after: 0, hostInternal: true })
              assert.isTrue((yield* internal.next) !== undefined)
              yield* internal.close
              const seen = yield* drain(events.subscribe({ sessionId: session.id, after: 0, identity }), 1_000)
              assert.deepStrictEqual(cursors(seen), [1, 3, 4, 5])
              const last = seen.at(-1)
              assert.isTrue(
                last?.payload.type === "harness-notice" && last.payload.code === "runtime.subscription_terminated"
              )
              assert.deepStrictEqual(asked, [1, 2, 3, 4, 5, 6])
            }),
          {
            eventDelivery: {
              authorize: ({ envelope }) => {
                asked.push(envelope.cursor)
                if (envelope.cursor === 6) throw new Error("policy trouble")
                return envelope.cursor === 2 ? "omit" : Promise.resolve("deliver")
              }
            }
          }
        )
      }
    )

    it.live("a denied root denies before replay, and children come with their root only [RT-244, RT-245]", () =>
      within(
        kind,
        programmable(),
        ({ root }) =>
          Effect.gen(function* () {
            const events = yield* Events
            const sessions = yield* Sessions
            const parent = yield* create(root, { id: "parent" })
            const other = yield* create(root, { id: "denied" })
            const [child] = yield* sessions.createMany([
              { directory: root, harness: { id: "test", access: "native" }, parentSessionId: parent.id, title: "c" }
            ])
            yield* sessions.createMany([
              { directory: root, harness: { id: "test", access: "native" }, parentSessionId: other.id, title: "x" }
            ])
            assert.strictEqual(
              yield* failing(events.subscribe({ sessionId: other.id, after: 0, identity }).next),
              "subscription_denied"
            )
            const tree = events.subscribe({ sessionId: parent.id, after: 0, includeChildren: true, identity })
            const items: Array<SubscriptionItem> = []
            while (items.filter((item) => !isEnvelope(item)).length === 0) {
              const item = yield* tree.next
              if (item !== undefined) items.push(item)
            }
            assert.deepStrictEqual(
              new Set(items.flatMap((item) => (isEnvelope(item) ? [item.sessionId] : []))),
              new Set([parent.id, child?.id])
            )
            yield* tree.close
          }),
        {
          eventDelivery: {
            authorize: () => "deliver",
            subscribe: ({ rootSessionId }) => (rootSessionId === "denied" ? "deny" : "allow")
          }
        }
      )
    )

    it.live("a listener that throws is removed, and the others get the event [RT-227]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const hub = yield* Hub
          const session = yield* create(root)
          const seen: Array<string> = []
          let thrown = 0
          hub.subscribe([session.id], () => {
            thrown += 1
            throw new Error("a broken subscriber")
          })
          const stop = hub.subscribe([session.id], (envelope) => seen.push(envelope.payload.type))
          yield* start(session.id, "m")
          yield* outcome(session.id, "m")
          stop()
          assert.strictEqual(thrown, 1)
          assert.deepStrictEqual(seen, types(yield* journal(session.id)).slice(1))
        })
      )
    )

    if (kind.name === "memory") {
      it.effect("a policy that takes over 5 seconds for one event ends the subscription [RT-246]", () =>
        within(
          kind,
          programmable(),
          ({ root }) =>
            Effect.gen(function* () {
              const events = yield* Events
              const session = yield* create(root)
              const subscription = events.subscribe({ sessionId: session.id, after: 0, identity })
              const reading = yield* Effect.forkChild(subscription.next)
              yield* TestClock.adjust(4_900)
              assert.isUndefined(reading.pollUnsafe())
              yield* TestClock.adjust(200)
              const item = yield* Fiber.join(reading)
              assert.isTrue(
                item !== undefined &&
                  item.payload.type === "harness-notice" &&
                  item.payload.code === "runtime.subscription_terminated"
              )
              assert.isUndefined(yield* subscription.next)
            }),
          { eventDelivery: { authorize: () => Effect.never } }
        )
      )
    }

    it.live("a workspace subscription sees sessions made after it [RT-220]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const subscription = events.subscribe({ workspaceId: "default" })
          const session = yield* create(root)
          const first = yield* subscription.next
          assert.isTrue(
            first !== undefined && isEnvelope(first) && first.sessionId === session.id && first.cursor === 1
          )
          yield* subscription.close
        })
      )
    )

    it.live("changes tell the latest row of each session [RT-050]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          const { runForEachWhile } = yield* Effect.promise(() => import("effect/Stream"))
          const snapshot = Deferred.makeUnsafe<void>()
          const done = yield* Effect.forkChild(
            runForEachWhile(events.changes(), (change) =>
              Effect.sync(() => {
                if (change.type === "snapshot") Deferred.doneUnsafe(snapshot, Exit.void)
                return !(change.type === "session" && change.row.lastTurn?.status === "completed")
              })
            )
          )
          yield* Deferred.await(snapshot)
          yield* start(session.id, "m")
          yield* Effect.flatMap(
            Effect.promise(() => import("effect/Fiber")),
            (fiber) => fiber.join(done)
          )
        })
      )
    )
  })
}
