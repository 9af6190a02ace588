import { assert, describe, it } from "@effect/vitest"
import { HarnessUnavailable } from "@tackroom/protocol"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Barrier, makeTurnFibers, Positioned, type HarnessItem } from "../../src/adapters.ts"
import { admit, makeJournal } from "../scripted/bench.ts"

const note = (message: string) => ({ type: "harness-notice", code: "n", message }) as const
const names = (items: ReadonlyArray<HarnessItem>) =>
  items.map((item) => {
    if (item instanceof Barrier) return "barrier"
    const event = item instanceof Positioned ? item.event : item
    return event.type === "harness-notice" ? event.message : event.type
  })

describe("turns of drivers without a process", () => {
  it.effect("a cancel at any moment ends the stream as cancelled, once the body is gone [HRN-019] [RT-160]", () =>
    Effect.gen(function* () {
      for (const when of ["at once", "running"] as const) {
        const turns = makeTurnFibers()
        const begun = Deferred.makeUnsafe<void>()
        let isGone = false
        const turn = admit(makeJournal(), "trn_1", "x")
        const stream = turns.run(turn, ({ emit }) =>
          Effect.gen(function* () {
            yield* emit([note("first")])
            yield* Deferred.succeed(begun, undefined)
            return yield* Effect.never
          }).pipe(
            Effect.ensuring(
              Effect.sync(() => {
                isGone = true
              })
            )
          )
        )
        const reading = yield* Effect.forkChild(Stream.runCollect(stream), { startImmediately: true })
        if (when === "running") yield* Deferred.await(begun)
        assert.strictEqual(yield* turns.cancel(turn.turnId), "acknowledged")
        assert.isTrue(isGone)
        assert.deepStrictEqual(names(yield* Fiber.join(reading)), ["first", "cancelled"])
        assert.deepStrictEqual([turns.size(), turns.state(turn.turnId)], [0, "none"])
        assert.strictEqual(yield* turns.cancel(turn.turnId), "idle")
      }
    })
  )

  it.effect("a turn that ends by itself is too late for a cancel; a failure is the stream's [HRN-019]", () =>
    Effect.gen(function* () {
      const turns = makeTurnFibers()
      const turn = admit(makeJournal(), "trn_1", "x")
      const closing = turns.run(turn, ({ close, emit }) =>
        Effect.gen(function* () {
          close()
          assert.strictEqual(turns.state(turn.turnId), "closing")
          assert.strictEqual(yield* turns.cancel(turn.turnId), "idle")
          yield* emit([note("last")])
        })
      )
      assert.deepStrictEqual(names(yield* Stream.runCollect(closing)), ["last"])
      const error = new HarnessUnavailable({ harness: "test", operation: "runTurn" })
      assert.strictEqual(yield* Effect.flip(Stream.runDrain(turns.run(turn, () => Effect.fail(error)))), error)
    })
  )
})
