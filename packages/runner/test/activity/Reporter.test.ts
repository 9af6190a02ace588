import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Told, Weight } from "../../src/activity/ActivityQueue.ts"
import { makeReporter, stopSubtype, toolSubtype } from "../../src/activity/Reporter.ts"

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const told: Array<Told & { readonly weight: Weight; readonly at: number }> = []
  let sealed = false
  const reporter = yield* makeReporter({
    queue: {
      add: (post, weight) => {
        if (!sealed) told.push({ ...post, weight, at: clock.currentTimeMillisUnsafe() / 1_000 })
      },
      dropSoft: () => undefined,
      seal: () => {
        sealed = true
      }
    },
    harness: "otter",
    livenessSeconds: 30,
    idleLivenessSeconds: 60
  })
  const story = (): ReadonlyArray<string> => told.map(({ at, subtype }) => `${at} ${subtype}`)
  const startTurn = (id = "1"): void => {
    reporter.turnStarted(id)
    reporter.accepted()
  }
  return { reporter, told, story, startTurn }
})

describe("a working seat", () => {
  it.effect("accepted is told once, when the agent has the prompt [SEAT-127]", () =>
    Effect.gen(function* () {
      const { reporter, told } = yield* make
      reporter.turnStarted("1")
      assert.deepStrictEqual(told, [])
      reporter.accepted()
      reporter.accepted()
      assert.deepStrictEqual(told, [
        { hookEvent: "UserPromptSubmit", subtype: "accepted", turnId: "1", weight: "boundary", at: 0 }
      ])
    })
  )

  it.effect("text is told at once after a boundary, then every five seconds while it comes [SEAT-128]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, story } = yield* make
      startTurn()
      for (let i = 0; i < 16; i++) {
        reporter.heard()
        yield* TestClock.adjust(1_000)
      }
      assert.deepStrictEqual(story(), [
        "0 accepted",
        "0 agent_message",
        "5 agent_message",
        "10 agent_message",
        "15 agent_message"
      ])
    })
  )

  it.effect("a tool is told once by its kind, at most one each second [SEAT-128]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, told } = yield* make
      startTurn()
      reporter.toolStarted("t1", "execute")
      reporter.toolStarted("t1", "execute")
      reporter.toolStarted("t2", "edit")
      yield* TestClock.adjust(1_000)
      reporter.toolStarted("t2", "edit")
      reporter.toolStarted("t3", undefined)
      assert.deepStrictEqual(
        told.slice(1).map(({ hookEvent, subtype, weight }) => `${hookEvent}/${subtype} ${weight}`),
        ["PreToolUse/execute soft", "PreToolUse/other soft"]
      )
      assert.strictEqual(toolSubtype("Weird Kind"), "other")
    })
  )

  it.effect("a quiet turn beats ten seconds after its last sign, with its turn [SEAT-129]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, story, told } = yield* make
      startTurn("7")
      yield* TestClock.adjust(4_000)
      reporter.heard()
      yield* TestClock.adjust(30_500)
      reporter.turnEnded("end_turn")
      yield* TestClock.adjust(20_000)
      assert.deepStrictEqual(story(), [
        "0 accepted",
        "4 agent_message",
        "14 liveness",
        "24 liveness",
        "34 liveness",
        "34.5 end_turn"
      ])
      const [, , beat, , , stop] = told
      assert.deepStrictEqual([beat?.turnId, beat?.livenessSeconds, beat?.weight], ["7", 30, "soft"])
      assert.deepStrictEqual([stop?.turnId, stop?.livenessSeconds, stop?.weight], ["7", 60, "boundary"])
    })
  )

  it("a stop reason that says something else is told as other [SEAT-130]", () => {
    for (const reason of ["end_turn", "cancelled", "max_tokens", "refusal"])
      assert.strictEqual(stopSubtype(reason), reason)
    for (const reason of ["otter_exited", "idle_heartbeat", "", "End", "a b", "x".repeat(65)]) {
      assert.strictEqual(stopSubtype(reason), "other")
    }
  })
})

describe("an idle seat", () => {
  it.effect("has a heartbeat from its record on, and none in a turn [SEAT-131]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, story, told } = yield* make
      reporter.opened(false)
      yield* TestClock.adjust(31_000)
      startTurn()
      yield* TestClock.adjust(9_000)
      reporter.turnEnded("end_turn")
      yield* TestClock.adjust(31_000)
      assert.deepStrictEqual(story(), [
        "0 idle_heartbeat",
        "30 idle_heartbeat",
        "31 accepted",
        "40 end_turn",
        "70 idle_heartbeat"
      ])
      assert.strictEqual(told[0]?.livenessSeconds, 60)
    })
  )

  it.effect("has no first heartbeat when a prompt waits [SEAT-131]", () =>
    Effect.gen(function* () {
      const { reporter, story } = yield* make
      reporter.opened(true)
      yield* TestClock.adjust(5_000)
      assert.deepStrictEqual(story(), [])
    })
  )
})

describe("a seat with a request", () => {
  it.effect(
    "tells nothing while it waits, then what was delivered, then beats [SEAT-129, SEAT-164, SEAT-165, SEAT-166]",
    () =>
      Effect.gen(function* () {
        const { reporter, startTurn, told, story } = yield* make
        startTurn("4")
        reporter.waiting()
        reporter.heard()
        reporter.toolStarted("t1", "edit")
        yield* TestClock.adjust(40_000)
        reporter.resumed([
          { _tag: "Asked", askId: "ask_B" },
          { _tag: "OwnPermit", toolKind: "execute" },
          { _tag: "Asked", askId: "ask_A" }
        ])
        yield* TestClock.adjust(10_000)
        assert.deepStrictEqual(story(), [
          "0 accepted",
          "40 permission_resolved",
          "40 execute",
          "40 permission_resolved",
          "50 liveness"
        ])
        assert.deepStrictEqual(
          told.slice(1, 4).map(({ askId, turnId }) => [turnId, askId]),
          [
            ["4", "ask_B"],
            [undefined, undefined],
            ["4", "ask_A"]
          ]
        )
      })
  )

  it.effect("that was refused holds: no post until the next prompt, but an exit [SEAT-132, SEAT-171]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, story } = yield* make
      reporter.opened(true)
      startTurn("1")
      reporter.waiting()
      reporter.hold()
      reporter.resumed([{ _tag: "Asked", askId: "ask_A" }])
      reporter.heard()
      reporter.toolStarted("t9", "edit")
      reporter.failed()
      yield* TestClock.adjust(60_000)
      reporter.turnEnding()
      reporter.turnEnded("end_turn")
      yield* TestClock.adjust(120_000)
      assert.deepStrictEqual(story(), ["0 accepted", "0 permission_prompt"])
      assert.isTrue(reporter.isHolding())
      startTurn("2")
      assert.isFalse(reporter.isHolding())
      reporter.hold()
      reporter.exited()
      reporter.failed()
      assert.deepStrictEqual(story().slice(2), ["180 accepted", "180 permission_prompt", "180 otter_exited"])
    })
  )
})

describe("trouble", () => {
  it.effect("an exit is the last post, trouble is told as an error [SEAT-132, SEAT-133]", () =>
    Effect.gen(function* () {
      const { reporter, startTurn, told } = yield* make
      startTurn()
      reporter.failed()
      reporter.exited()
      reporter.turnEnded("end_turn")
      yield* TestClock.adjust(120_000)
      assert.deepStrictEqual(
        told.map(({ hookEvent, subtype }) => `${hookEvent}/${subtype}`),
        ["UserPromptSubmit/accepted", "Notification/runtime_error", "Stop/otter_exited"]
      )
    })
  )
})
