import { assert, describe, it } from "@effect/vitest"
import { isTerminalType } from "@tackroom/protocol/events"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { Events, Hub, isEnvelope, Store, Turns } from "../../src/effect.ts"
import { create, programmable, start, stores, within } from "./Kit.ts"
import { text } from "./Programmable.ts"

/** Numbers that are the same in every run. */
const numbers = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Lets the event loop turn. */
const turnLoop: Effect.Effect<void> = Effect.callback((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

const repeat = (times: number, step: Effect.Effect<void>): Effect.Effect<void> =>
  times <= 0 ? Effect.void : Effect.flatMap(step, () => repeat(times - 1, step))

/** Waits as a face does: looks, and looks again after every event of the session that was committed since. */
const lookAgain = (sessionId: string, messageId: string) =>
  Effect.gen(function* () {
    const hub = yield* Hub
    const store = yield* Store
    let changed = Deferred.makeUnsafe<void>()
    const stop = hub.subscribe("*", (envelope) => {
      if (envelope.sessionId === sessionId) Deferred.doneUnsafe(changed, Exit.void)
    })
    yield* Effect.gen(function* () {
      while (true) {
        changed = Deferred.makeUnsafe<void>()
        const receipt = yield* store.receipt(sessionId, messageId)
        if (receipt?.outcome != null) return
        yield* Deferred.await(changed)
      }
    }).pipe(Effect.ensuring(Effect.sync(stop)))
  })

const followed = (sessionId: string, turnId: string, after: number) =>
  Effect.gen(function* () {
    const events = yield* Events
    const subscription = events.subscribe({ sessionId, after })
    while (true) {
      const item = yield* subscription.next
      if (item === undefined) return yield* Effect.die("the subscription ended")
      if (isEnvelope(item) && item.turnId === turnId && isTerminalType(item.payload.type)) break
    }
    yield* subscription.close
  })

const turnsPerStore = { memory: 1_400, sqlite: 600 }
const sessionCount = 12
/** Four times the second that a wait may last after its turn ended (D-37). */
const bound = 4_000

for (const kind of stores) {
  describe(`waiting, ${kind.name}`, () => {
    it.live(
      "whoever waits for a turn hears of its end, whenever the wait began [RT-152] [RT-181] [RT-228]",
      () => {
        const random = numbers(4_711)
        const driver = programmable({
          turn: ({ emit, finish, input }) =>
            Effect.gen(function* () {
              yield* repeat(random(4), turnLoop)
              if (random(2) === 0) yield* emit(text(input, "hello"))
              yield* repeat(random(3), turnLoop)
              yield* emit(finish("done"))
            })
        })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const slow: Array<string> = []
            const timed = (
              name: string,
              settled: Effect.Effect<unknown, unknown>,
              wait: Effect.Effect<unknown, unknown, Hub | Store | Events>
            ) =>
              Effect.raceFirst(
                Effect.asVoid(wait),
                Effect.flatMap(Effect.andThen(settled, Effect.sleep(bound)), () =>
                  Effect.sync(() => void slow.push(name))
                )
              ).pipe(Effect.orDie)
            const one = Effect.fnUntraced(function* (sessionId: string, i: number) {
              const messageId = `${sessionId}-${i}`
              const admitted = yield* start(sessionId, messageId)
              const settled = turns.wait(sessionId, messageId)
              const kinds: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown, Hub | Store | Events>]> = [
                ["wait", turns.wait(sessionId, messageId)],
                ["look again", lookAgain(sessionId, messageId)],
                ["subscription", followed(sessionId, admitted.turnId ?? "", admitted.startCursor)],
                ["idle", turns.whenIdle(sessionId)]
              ]
              const waiters: Array<Fiber.Fiber<void>> = []
              for (const [name, wait] of kinds) {
                const after = random(8)
                waiters.push(
                  yield* Effect.forkChild(Effect.andThen(repeat(after, turnLoop), timed(name, settled, wait)))
                )
              }
              for (const fiber of waiters) yield* Fiber.join(fiber)
            })
            const perSession = Math.ceil(turnsPerStore[kind.name] / sessionCount)
            yield* Effect.forEach(
              Array.from({ length: sessionCount }, (_, i) => i),
              () =>
                Effect.gen(function* () {
                  const session = yield* create(root)
                  for (let i = 0; i < perSession; i++) yield* one(session.id, i)
                }),
              { concurrency: "unbounded", discard: true }
            )
            assert.deepStrictEqual(slow, [])
          })
        )
      },
      120_000
    )
  })
}
