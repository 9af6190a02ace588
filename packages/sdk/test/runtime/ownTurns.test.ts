import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Queue, Stream } from "effect"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { OwnTurn } from "../../src/adapters.ts"
import { Turns } from "../../src/effect.ts"
import {
  create,
  directory,
  gate,
  journal,
  openRuntime,
  outcome,
  programmable,
  start,
  stores,
  until,
  within
} from "./Kit.ts"
import { finishOf, text } from "./Programmable.ts"

/** A harness that says and begins what the test tells it to, between turns. */
const talking = (turn?: Parameters<typeof programmable>[0], only?: string) => {
  const said = Effect.runSync(Queue.unbounded<HarnessEvent | OwnTurn, Cause.Done>())
  return {
    say: (item: HarnessEvent | OwnTurn) => Queue.offer(said, item),
    driver: programmable({
      ...turn,
      driver: () => ({
        betweenTurns: (binding) =>
          only === undefined || binding.sessionId === only ? Stream.fromQueue(said) : Stream.empty
      })
    })
  }
}

for (const kind of stores) {
  describe(`turns that a harness begins, ${kind.name}`, () => {
    it.live("such a turn has a lease, a turn-start of its origin and one terminal event [RT-147] [RT-148]", () => {
      const { driver, say } = talking()
      return within(kind, driver, ({ root, store }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* outcome(session.id, "m")
          const before = (yield* journal(session.id)).length
          const ended = yield* until(session.id, (payload) => payload.type === "finish")
          const fences = Deferred.makeUnsafe<number>()
          yield* say(
            new OwnTurn({
              origin: "harness",
              run: (turn) =>
                Stream.unwrap(
                  Effect.gen(function* () {
                    const lease = yield* Effect.orDie(store.lease(turn.binding.sessionId))
                    yield* Deferred.succeed(fences, lease?.fence ?? 0)
                    return Stream.make(text(turn, "awake"), finishOf(turn, "awake"))
                  })
                )
            })
          )
          yield* ended
          assert.strictEqual(yield* Deferred.await(fences), 2)
          yield* Effect.flatMap(Turns, (turns) => turns.whenIdle(session.id))
          const events = (yield* journal(session.id)).slice(before)
          assert.deepStrictEqual(
            events.map((event) => event.payload.type),
            ["session-status", "turn-start", "text-delta", "text-end", "finish", "session-status"]
          )
          const begun = events[1]?.payload
          assert.isTrue(begun?.type === "turn-start" && begun.origin === "harness" && begun.parentMessageId === "m")
          const [turn] = yield* Effect.orDie(store.turnsOf(session.id, 1))
          assert.isTrue(turn?.outcome?.status === "completed" && turn.origin === "harness")
          assert.strictEqual(driver.prompts.length, 1)
          const messages = yield* Effect.orDie(store.messages(session.id, { limit: 10 }))
          assert.deepStrictEqual(
            messages.map(({ message }) => [message.role, message.parentId]),
            [
              ["user", null],
              ["assistant", "m"],
              ["assistant", "m"]
            ]
          )
        })
      )
    })

    it.live("it waits while a turn runs, and a person's cancel ends it [RT-147] [RT-160]", () => {
      const held = gate()
      const { driver, say } = talking({
        turn: (s) => Effect.andThen(held.pass, s.emit(s.finish()))
      })
      return within(
        kind,
        driver,
        ({ root, store }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            const second = yield* until(
              session.id,
              (payload) => payload.type === "turn-start" && payload.origin === "goal"
            )
            yield* say(new OwnTurn({ origin: "goal", run: () => Stream.never }))
            yield* held.release
            yield* outcome(session.id, "m")
            yield* second
            // The test's driver knows nothing of this turn, so the cancel has to be forced.
            assert.isTrue((yield* turns.abort(session.id)).ok)
            const [turn] = yield* Effect.orDie(store.turnsOf(session.id, 1))
            assert.isTrue(turn?.outcome?.status === "cancelled")
          }),
        { cancelGraceMs: 20, killGraceMs: 20 }
      )
    })

    it.live("one that never reached its harness is not run from nothing after a restart [RT-147] [RT-171]", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* directory
          const store = kind.make(root)
          yield* Effect.addFinalizer(() => store.close)
          const held = gate()
          const { driver, say } = talking({ turn: () => held.pass }, "own")
          const first = yield* openRuntime(store, driver, { maxActiveTurns: 1 })
          const busy = yield* first.run(create(root))
          const session = yield* first.run(create(root, { id: "own" }))
          yield* first.run(start(busy.id, "m"))
          yield* held.begun
          const begun = yield* first.run(until(session.id, (payload) => payload.type === "turn-start"))
          // There is no place for it: it is admitted and waits.
          yield* say(new OwnTurn({ origin: "harness", run: () => Stream.never }))
          yield* begun
          yield* first.close("leave")
          const second = yield* openRuntime(store, programmable())
          yield* second.life.ready
          const [turn] = yield* store.turnsOf(session.id, 1)
          assert.isTrue(turn?.outcome?.status === "failed" && turn.outcome.error.code === "turn_interrupted")
          yield* second.close()
        })
      )
    )
  })
}
