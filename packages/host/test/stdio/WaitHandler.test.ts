import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { waitReady } from "../../src/faces/stdio/WaitHandler.ts"

describe("waitReady", () => {
  it.effect("returns at the change that makes it ready [RUN-590]", () =>
    Effect.gen(function* () {
      let value = 0
      let change = Deferred.makeUnsafe<void>()
      const handler = {
        current: Effect.sync(() => ({ ready: value > 1, result: value })),
        changed: Effect.suspend(() => Deferred.await(change))
      }
      const fiber = yield* Effect.forkChild(waitReady(handler, 5_000), { startImmediately: true })
      for (let step = 0; step < 2; step++) {
        value += 1
        const last = change
        change = Deferred.makeUnsafe<void>()
        yield* Deferred.succeed(last, undefined)
        yield* Effect.yieldNow
      }
      assert.strictEqual(yield* Fiber.join(fiber), 2)
    })
  )

  it.effect("answers with the state when its time is over, and at once without one [RUN-036]", () =>
    Effect.gen(function* () {
      const handler = { current: Effect.succeed({ ready: false, result: "now" }), changed: Effect.never }
      assert.strictEqual(yield* waitReady(handler, 0), "now")
      const fiber = yield* Effect.forkChild(waitReady(handler, 1_000), { startImmediately: true })
      yield* TestClock.adjust(999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "now")
    })
  )
})
