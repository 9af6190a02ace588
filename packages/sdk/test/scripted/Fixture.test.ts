import { assert, describe, it } from "@effect/vitest"
import { isTerminal } from "@tackroom/protocol/events"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Fixture, scripted } from "../../src/harness/scripted/index.ts"
import { admit, journaled, makeBench, makeJournal, only, turnInput } from "./bench.ts"

const at = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString()
const recorded = (assistant: string) => ({ messageId: `old_${assistant}`, assistantMessageId: assistant })

const fixture: Fixture = {
  events: [
    { at: at(0), payload: { type: "session-created", harness: { id: "claude", access: "native" } } },
    { at: at(10), turnId: "trn_a", payload: { type: "turn-start", ...recorded("r1"), origin: "user" } },
    { at: at(40), turnId: "trn_a", payload: { type: "text-delta", delta: "hi", messageId: "r1", partId: "p1" } },
    {
      at: at(50),
      turnId: "trn_a",
      payload: {
        type: "permission-request",
        requestId: "int_old",
        tool: "edit",
        paths: ["a"],
        options: [{ id: "ok", label: "OK", kind: "allow_once" }]
      }
    },
    {
      at: at(1050),
      turnId: "trn_a",
      payload: {
        type: "permission-resolved",
        requestId: "int_old",
        tool: "edit",
        decision: "allow_once",
        origin: "person"
      }
    },
    {
      at: at(1100),
      turnId: "trn_a",
      payload: { type: "finish", sessionId: "ses_old", assistantMessageId: "r1", reason: "end_turn" }
    },
    { at: at(9000), turnId: "trn_b", payload: { type: "turn-start", ...recorded("r2"), origin: "user" } },
    { at: at(9100), turnId: "trn_b", payload: { type: "text-delta", delta: "half", messageId: "r2", partId: "p2" } }
  ]
}

const setup = Effect.fnUntraced(function* (speed: number) {
  const journal = makeJournal()
  const { context } = yield* makeBench({ journal, decide: () => "allow_once" })
  const driver = yield* scripted({ fixture, speed }).make(context)
  return {
    journal,
    driver,
    run: (turnId: string) => journaled(journal, turnId, driver.runTurn(admit(journal, turnId, "x")))
  }
})

describe("fixture", () => {
  it.effect("replays a turn at once, under the ids of the new turn [HRN-281]", () =>
    Effect.gen(function* () {
      const { run, journal } = yield* setup(0)
      const events = yield* run("trn_1")
      assert.deepStrictEqual(
        events.map((event) => event.type),
        ["text-delta", "finish"]
      )
      assert.strictEqual(only(events, "text-delta")[0]?.messageId, "trn_1-m_r")
      assert.deepInclude(events.at(-1), { sessionId: "ses_test", assistantMessageId: "trn_1-m_r" })
      assert.includeMembers([...journal.types()], ["permission-request", "permission-resolved"])
    })
  )

  it.effect("replays with the original spacing, scaled by speed [HRN-281]", () =>
    Effect.gen(function* () {
      const { run, journal } = yield* setup(2)
      const fiber = yield* Effect.forkChild(run("trn_1"), { startImmediately: true })
      yield* TestClock.adjust(14)
      assert.notInclude(journal.types(), "text-delta")
      yield* TestClock.adjust(1)
      assert.include(journal.types(), "text-delta")
      yield* TestClock.adjust(529)
      assert.notInclude(journal.types(), "finish")
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(fiber)).at(-1)?.type, "finish")
    })
  )

  it.effect(
    "each turn replays the next recorded one; a half or missing one fails with one terminal event [HRN-009]",
    () =>
      Effect.gen(function* () {
        const { run, driver, journal } = yield* setup(0)
        yield* run("trn_1")
        const half = yield* run("trn_2")
        assert.strictEqual(only(half, "text-delta")[0]?.delta, "half")
        assert.deepInclude(half.at(-1), { type: "error", code: "harness_error" })
        const none = yield* run("trn_3")
        assert.strictEqual(none.filter(isTerminal).length, 1)
        const steer = yield* Effect.flip(driver.steer(turnInput(journal, "trn_3", { text: "x" }), { text: "y" }))
        assert.strictEqual(steer._tag, "UnsupportedOperation")
        assert.isFalse((yield* driver.capabilities({ directory: "/tmp" })).steer)
      })
  )
})
