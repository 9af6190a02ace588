import { assert, describe, it } from "@effect/vitest"
import type { ActivityKind } from "@tackroom/protocol/seat"
import { Effect, Schema } from "effect"
import {
  type ActivityState,
  afterRestart,
  apply,
  applyPost,
  forever,
  initialActivity,
  type JudgedPost,
  judge,
  nextChange,
  type Occupancy,
  openAsk,
  read,
  screenChanged,
  screenMatters
} from "../../src/rig/ActivityMachine.ts"
import { type TransitionName, transitions } from "../../src/rig/ActivityTable.ts"

const t0 = 1_000_000
const runner: Occupancy = { live: true, pending: false, runner: true }

const post = (kind: ActivityKind, fields: Partial<JudgedPost> = {}): JudgedPost => ({
  kind,
  key: { at: t0, sequence: 1 },
  turnId: undefined,
  liveness: undefined,
  generation: "live",
  ...fields
})

/** A seat at which these posts counted, one millisecond and one sequence apart. */
const after = (...posts: ReadonlyArray<readonly [ActivityKind, Partial<JudgedPost>?]>): ActivityState =>
  posts.reduce((state, [kind, fields], index) => {
    const applied = applyPost(
      state,
      runner,
      post(kind, { key: { at: t0 + index, sequence: index + 1 }, ...fields }),
      t0
    )
    assert.strictEqual(applied.why, "counted", `${kind} at ${index}`)
    return applied.state
  }, initialActivity)

const value = (state: ActivityState, now: number) => {
  const reading = read(state, true, now)
  return `${reading.value} ${reading.source}`
}

const atWork = after(["accepted", { turnId: "1" }])

describe("transitions", () => {
  it("an accepted prompt reads working for 15 s, opens its turn and ends asks of other turns [RIG-D1]", () => {
    const before = openAsk(after(["permission_prompt"], ["stop"]), "ask_1", t0, t0)
    const applied = applyPost(before, runner, post("accepted", { turnId: "7", key: { at: t0 + 9, sequence: 9 } }), t0)
    assert.strictEqual(value(applied.state, t0 + 14_999), "working post")
    assert.strictEqual(value(applied.state, t0 + 15_000), "unknown none")
    assert.deepStrictEqual(applied.state.turn, { turnId: "7", withGeneration: true, closed: false })
    assert.deepStrictEqual(applied.asks, {
      _tag: "Withdraw",
      which: "other_turns",
      turnId: "7",
      reason: "turn_ended"
    })
    assert.isFalse(applied.state.attentionPost)
    assert.deepStrictEqual(applied.state.attentionAsks, [])
  })

  for (const [id, kind] of [
    ["RIG-D2", "agent_message"],
    ["RIG-D3", "tool"],
    ["RIG-D4", "permission_resolved"]
  ] as const) {
    it(`${kind} reads working and clears attention, and leaves the turn alone [${id}]`, () => {
      const held = after(["accepted", { turnId: "1" }], ["permission_prompt"])
      assert.strictEqual(value(held, t0), "needs_input post")
      const applied = applyPost(held, runner, post(kind, { key: { at: t0 + 9, sequence: 9 } }), t0 + 20_000)
      assert.strictEqual(value(applied.state, t0 + 20_000), "working post")
      assert.deepStrictEqual(applied.state.turn, held.turn)
      assert.strictEqual(applied.asks._tag, "Keep")
    })
  }

  it("agent text, tool use and a resolved permission are three rows [RIG-D2, RIG-D3, RIG-D4]", () => {
    assert.deepStrictEqual(
      (["agent_message", "tool", "permission_resolved"] as const).map((name) => transitions[name].id),
      ["D2", "D3", "D4"]
    )
  })

  it("a beat reads working for its own time, cut to 5 to 60 s, and clears nothing [RIG-D5]", () => {
    const beat = (liveness: unknown) =>
      applyPost(
        atWork,
        runner,
        post("beat", { turnId: "1", liveness, key: { at: t0 + 10, sequence: 10 } }),
        t0 + 14_000
      ).state
    assert.strictEqual(value(beat(20), t0 + 33_999), "working beat")
    assert.strictEqual(value(beat(20), t0 + 34_000), "unknown none")
    assert.strictEqual(value(beat(1), t0 + 18_999), "working beat")
    assert.strictEqual(value(beat(1_000), t0 + 74_000), "unknown none")
    assert.strictEqual(value(beat("soon"), t0 + 43_999), "working beat")
    assert.deepStrictEqual(beat(20).turn, atWork.turn)
  })

  it("a permission prompt reads needs input without end and stops beats [RIG-D6]", () => {
    const beaten = after(["accepted", { turnId: "1" }], ["beat", { turnId: "1", liveness: 60 }])
    const held = applyPost(beaten, runner, post("permission_prompt", { key: { at: t0 + 9, sequence: 9 } }), t0).state
    assert.strictEqual(value(held, t0 + 1e9), "needs_input post")
    assert.strictEqual(held.beatUntil, 0)
  })

  it("a stop reads idle for twice its liveness, or until the next post, and ends its turn's asks [RIG-D7]", () => {
    const stop = (fields: Partial<JudgedPost>) =>
      applyPost(atWork, runner, post("stop", { key: { at: t0 + 9, sequence: 9 }, ...fields }), t0)
    assert.strictEqual(value(stop({ turnId: "1", liveness: 60 }).state, t0 + 119_999), "idle post")
    assert.strictEqual(value(stop({ turnId: "1", liveness: 60 }).state, t0 + 120_000), "unknown none")
    for (const liveness of [undefined, 0, 1.5, 3_601, "60"]) {
      assert.strictEqual(stop({ liveness }).state.idleUntil, forever)
    }
    assert.deepStrictEqual(stop({ turnId: "1" }).asks, {
      _tag: "Withdraw",
      which: "turn",
      turnId: "1",
      reason: "turn_ended"
    })
    assert.deepStrictEqual(stop({}).asks, { _tag: "Withdraw", which: "all", reason: "turn_ended" })
    assert.strictEqual(stop({ turnId: "1" }).state.turn?.closed, true)
    assert.strictEqual(stop({ turnId: "0" }).state.turn?.closed, false)
  })

  it("an idle heartbeat reads idle, closes the turn and ends no ask [RIG-D8]", () => {
    const applied = applyPost(
      atWork,
      runner,
      post("idle_heartbeat", { liveness: 30, key: { at: t0 + 9, sequence: 9 } }),
      t0
    )
    assert.strictEqual(value(applied.state, t0 + 59_999), "idle post")
    assert.strictEqual(value(applied.state, t0 + 60_000), "unknown none")
    assert.strictEqual(applied.state.turn?.closed, true)
    assert.strictEqual(applied.asks._tag, "Keep")
  })

  it("an exit reads unknown, never idle, and ends every ask [RIG-D9]", () => {
    const applied = applyPost(
      after(["permission_prompt"]),
      runner,
      post("exit", { key: { at: t0 + 9, sequence: 9 } }),
      t0
    )
    assert.strictEqual(value(applied.state, t0), "unknown exit")
    assert.isNull(applied.state.idleUntil)
    assert.deepStrictEqual(applied.asks, { _tag: "Withdraw", which: "all", reason: "exited" })
  })

  it("an ask that opens stands among the posts: what was done before it cannot clear it [RIG-D11]", () => {
    const asked = openAsk(atWork, "ask_1", t0 + 100, t0)
    assert.strictEqual(value(asked, t0 + 1e9), "needs_input ask")
    const late = applyPost(asked, runner, post("agent_message", { key: { at: t0 + 99, sequence: 5 } }), t0)
    assert.strictEqual(late.why, "older")
    assert.strictEqual(value(late.state, t0), "needs_input ask")
    // Attention is raised also when the request is older than what counted last.
    assert.strictEqual(value(openAsk(atWork, "ask_1", t0 - 100, t0), t0), "needs_input ask")
    assert.deepStrictEqual(openAsk(atWork, "ask_1", t0 - 100, t0).last, atWork.last)
  })

  it("an ask without a grant takes its attention along, one with an option leaves it [RIG-D12, RIG-D13]", () => {
    const asked = openAsk(openAsk(atWork, "ask_1", t0 + 1, t0), "ask_2", t0 + 2, t0)
    const ended = apply(asked, "ask_ended", { now: t0, askId: "ask_1" }).state
    assert.deepStrictEqual(ended.attentionAsks, ["ask_2"])
    assert.deepStrictEqual(apply(asked, "ask_granted", { now: t0, askId: "ask_1" }).state, asked)
  })

  it("an operator's clearing leaves the asks open [RIG-D14]", () => {
    const applied = apply(openAsk(after(["permission_prompt"]), "ask_1", t0 + 5, t0), "attention_cleared", { now: t0 })
    assert.strictEqual(applied.asks._tag, "Keep")
    assert.strictEqual(value(applied.state, t0), "unknown none")
  })

  it("an occupant that registers and one that ends start afresh [RIG-D15, RIG-D16]", () => {
    const full = screenChanged(
      openAsk(after(["accepted", { turnId: "1" }], ["permission_prompt"]), "ask_1", t0 + 5, t0),
      t0
    )
    const registered = apply(full, "registered", { now: t0 })
    assert.deepStrictEqual(registered.state, initialActivity)
    assert.strictEqual(registered.asks._tag, "Stale")
    const ended = apply(full, "ended", { now: t0 })
    assert.deepStrictEqual(ended.state, initialActivity)
    assert.deepStrictEqual(ended.asks, { _tag: "Withdraw", which: "all", reason: "exited" })
  })
})

describe("which posts count", () => {
  const nobody = { live: false, pending: false, runner: false }
  const why = (occupancy: Occupancy, fields: Partial<JudgedPost>, kind: ActivityKind = "agent_message") =>
    judge(atWork, occupancy, post(kind, { key: { at: t0 + 5, sequence: 5 }, ...fields }))

  it("none without an occupant, for a plain seat, or of another generation [RIG-S2, RIG-S3]", () => {
    assert.strictEqual(why(nobody, {}), "no_occupant")
    assert.strictEqual(why({ ...nobody, pending: true }, {}), "generation_pending")
    assert.strictEqual(why({ ...runner, runner: false }, {}), "plain_seat")
    assert.strictEqual(why(runner, { generation: "other" }), "other_generation")
    assert.strictEqual(why(runner, { generation: "absent" }), "counted")
  })

  it("neither what has no meaning nor a runtime error, and neither moves the order [RIG-S4, RIG-D10]", () => {
    for (const [kind, word] of [
      ["unmapped", "unmapped"],
      ["runtime_error", "recorded_only"]
    ] as const) {
      const applied = applyPost(atWork, runner, post(kind, { key: { at: t0 + 5, sequence: 5 } }), t0)
      assert.strictEqual(applied.why, word)
      assert.deepStrictEqual(applied.state, atWork)
    }
  })

  it("only newer ones: by time, then by sequence, then by arrival [RIG-S5]", () => {
    const state = after(["accepted", { key: { at: t0, sequence: 5 } }])
    const older = (at: number, sequence: number | null) =>
      judge(state, runner, post("stop", { key: { at, sequence } })) === "older"
    assert.deepStrictEqual(
      [older(t0 - 1, 9), older(t0 + 1, 1), older(t0, 5), older(t0, 4), older(t0, 6), older(t0, null)],
      [true, false, true, true, false, false]
    )
  })

  it("of beats those for which every condition holds; the first that fails is named [RIG-S6]", () => {
    const key = { at: t0 + 50, sequence: 50 }
    const cause = (state: ActivityState, fields: Partial<JudgedPost> = {}) =>
      judge(state, runner, post("beat", { turnId: "1", key, ...fields }))
    assert.strictEqual(cause(atWork), "counted")
    assert.strictEqual(cause(atWork, { generation: "absent" }), "beat_ignored:no_generation")
    assert.strictEqual(cause(openAsk(atWork, "ask_1", t0 + 1, t0)), "beat_ignored:attention")
    assert.strictEqual(cause(initialActivity), "beat_ignored:turn_unknown")
    assert.strictEqual(
      cause(after(["accepted", { turnId: "1", generation: "absent" }])),
      "beat_ignored:opener_without_generation"
    )
    assert.strictEqual(cause(atWork, { turnId: "2" }), "beat_ignored:wrong_turn")
    assert.strictEqual(cause(atWork, { turnId: undefined }), "beat_ignored:wrong_turn")
    assert.strictEqual(
      cause(after(["accepted", { turnId: "1" }], ["stop", { turnId: "1" }])),
      "beat_ignored:turn_closed"
    )
    assert.strictEqual(cause(after(["accepted", { turnId: "1" }], ["exit"])), "beat_ignored:turn_closed")
    assert.strictEqual(cause(atWork, { key: { at: t0 + 50, sequence: null } }), "beat_ignored:no_sequence")
    const high = after(["accepted", { turnId: "1", key: { at: t0, sequence: 60 } }])
    assert.strictEqual(cause(high), "beat_ignored:sequence_not_higher")
    // After a restart the open turn is not known any more.
    assert.strictEqual(cause(afterRestart(atWork, t0)), "beat_ignored:turn_unknown")
  })
})

describe("what a seat reads", () => {
  it("without an occupant unknown, whatever the fields say [RIG-R1]", () => {
    assert.deepStrictEqual(read(after(["permission_prompt"]), false, t0), {
      value: "unknown",
      source: "none",
      until: null
    })
  })

  it("by the first row that holds: attention, exit, work, idle, screen, nothing [RIG-R2, RIG-R3, RIG-R4, RIG-R5, RIG-R6, RIG-R7]", () => {
    const everything: ActivityState = {
      ...screenChanged(initialActivity, t0),
      attentionPost: true,
      exited: true,
      workingUntil: t0 + 10,
      beatUntil: t0 + 20,
      idleUntil: forever
    }
    const steps: ReadonlyArray<readonly [Partial<ActivityState>, string]> = [
      [{}, "needs_input post"],
      [{ attentionPost: false, attentionAsks: ["ask_1"] }, "needs_input ask"],
      [{ attentionAsks: [] }, "unknown exit"],
      [{ exited: false }, "working post"],
      [{ workingUntil: t0 }, "working beat"],
      [{ beatUntil: t0 }, "idle post"],
      [{ idleUntil: null }, "working screen"],
      [{ screenUntil: t0 }, "unknown none"]
    ]
    steps.reduce((before, [change, expected]) => {
      const state = Object.assign({}, before, change)
      assert.strictEqual(value(state, t0), expected)
      return state
    }, everything)
  })

  it("a changed screen reads working for three seconds, and matters only below other evidence [RIG-R6]", () => {
    const changed = screenChanged(initialActivity, t0)
    assert.strictEqual(value(changed, t0 + 2_999), "working screen")
    assert.strictEqual(value(changed, t0 + 3_000), "unknown none")
    assert.isTrue(screenMatters(changed, t0))
    for (const state of [atWork, after(["stop"]), after(["exit"]), after(["permission_prompt"])]) {
      assert.isFalse(screenMatters(state, t0))
    }
  })

  it("deadlines after a restart are no longer than their full length, however far the clock went back", () => {
    const before = after(["accepted", { turnId: "1" }], ["beat", { turnId: "1", liveness: 60 }])
    const back = afterRestart(before, t0 - 1e9)
    assert.strictEqual(back.workingUntil, t0 - 1e9 + 15_000)
    assert.strictEqual(back.beatUntil, t0 - 1e9 + 60_000)
    assert.strictEqual(afterRestart(after(["stop"]), t0 - 1e9).idleUntil, forever)
    assert.strictEqual(afterRestart(after(["stop", { liveness: 3_600 }]), t0 - 1e9).idleUntil, t0 - 1e9 + 7_200_000)
    // A beat that counted keeps its remaining life.
    assert.strictEqual(afterRestart(before, t0 + 30_000).beatUntil, before.beatUntil)
  })
})

const kinds = [
  "accepted",
  "agent_message",
  "tool",
  "permission_resolved",
  "beat",
  "permission_prompt",
  "stop",
  "idle_heartbeat",
  "exit",
  "runtime_error",
  "unmapped"
] as const

const Step = Schema.Struct({
  kind: Schema.Literals(kinds),
  at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })),
  sequence: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))),
  turnId: Schema.Literals(["1", "2"]),
  generation: Schema.Literals(["live", "live", "absent", "other"]),
  liveness: Schema.Literals([1, 30, 60, 9_999]),
  pass: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20_000 }))
})

describe("over any sequence of posts", () => {
  it.effect.prop(
    "what does not count changes nothing, beats clear nothing, an exit never reads idle, and no evidence outlives its length [RIG-S5, RIG-S6, RIG-D10]",
    [Schema.Array(Step)],
    ([steps]) =>
      Effect.sync(() => {
        let state = initialActivity
        let now = t0
        for (const step of steps) {
          now += step.pass
          const judged = post(step.kind, {
            key: { at: t0 + step.at, sequence: step.sequence },
            turnId: step.turnId,
            generation: step.generation,
            liveness: step.liveness
          })
          const before = state
          const applied = applyPost(before, runner, judged, now)
          ;({ state } = applied)
          if (applied.why !== "counted") assert.deepStrictEqual(state, before)
          else assert.deepStrictEqual(state.last, judged.key)
          if (step.kind === "beat" && applied.why === "counted") {
            assert.strictEqual(before.attentionPost, false)
            assert.deepStrictEqual(state.turn, before.turn)
            assert.strictEqual(state.exited, before.exited)
          }
          if (step.kind === "exit" && applied.why === "counted")
            assert.strictEqual(read(state, true, now).value, "unknown")
          assert.isAtMost(state.workingUntil, now + 15_000)
          assert.isAtMost(state.beatUntil, now + 60_000)
          // The reading stays as it is until the moment that is named for its next change.
          const next = nextChange(state, now)
          if (next !== undefined) {
            assert.isAbove(next, now)
            assert.strictEqual(read(state, true, next - 1).value, read(state, true, now).value)
          }
        }
      }),
    { arbitrary: { runs: 300 } }
  )

  it("every transition of the table is applied without a hole", () => {
    for (const name of Object.keys(transitions) as ReadonlyArray<TransitionName>) {
      assert.doesNotThrow(() => apply(atWork, name, { now: t0, turnId: "1", askId: "ask_1" }))
    }
  })
})
