import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { TerminalEvent } from "@tackroom/protocol/events"
import {
  admit,
  admitWhileRecovering,
  cancelStep,
  classify,
  queueLimit,
  settle,
  type AdmissionRequest,
  type AdmissionView,
  type CancelFact,
  type CancelInput,
  type CancelState
} from "../../src/runtime/TurnMachine.ts"

const idle: AdmissionView = {
  receipt: undefined,
  archived: false,
  closed: false,
  openTurn: undefined,
  queueLength: 0,
  queueHeld: false,
  child: false
}
const plain: AdmissionRequest = {
  digest: "d",
  delivery: undefined,
  fromQueue: false,
  mayStartChild: false,
  fallback: false
}
const busy: AdmissionView = { ...idle, openTurn: { live: true, here: true } }

describe("admission", () => {
  const rows: ReadonlyArray<readonly [string, Partial<AdmissionView>, Partial<AdmissionRequest>, string]> = [
    ["an idle session starts", {}, {}, "Start"],
    ["a held queue does not hinder a start", { queueLength: 2, queueHeld: true }, {}, "Start"],
    ["a queue that is about to start makes the session busy", { queueLength: 1 }, {}, "Busy"],
    ["the same submission again is a duplicate", { receipt: { digest: "d", state: "settled" } }, {}, "Duplicate"],
    ["the id with other content is a conflict", { receipt: { digest: "x", state: "queued" } }, {}, "Conflict"],
    ["a busy session refuses a plain start", { openTurn: busy.openTurn }, {}, "Busy"],
    ["a busy session queues on request", { openTurn: busy.openTurn }, { delivery: "queue" }, "Queue"],
    [
      "a full queue takes no more",
      { openTurn: busy.openTurn, queueLength: queueLimit },
      { delivery: "queue" },
      "QueueFull"
    ],
    ["a busy session steers on request", { openTurn: busy.openTurn }, { delivery: "steer" }, "Steer"],
    ["another process's turn is not steered", { openTurn: { live: true, here: false } }, { delivery: "steer" }, "Busy"],
    ["a refused steer waits in the queue", { openTurn: busy.openTurn }, { delivery: "steer", fallback: true }, "Queue"],
    ["a refused steer starts when the turn is over", {}, { delivery: "steer", fallback: true }, "Start"],
    ["an archived session is closed", { archived: true }, {}, "Closed"],
    ["a child session takes no prompts", { child: true }, {}, "ReadOnly"],
    ["the embedding package may start a child's turn", { child: true }, { mayStartChild: true }, "Start"],
    ["a turn without a live owner is recovered first", { openTurn: { live: false, here: false } }, {}, "RecoverFirst"]
  ]
  for (const [name, view, request, expected] of rows) {
    it(`${name} [RT-081, RT-082, RT-112, RT-296]`, () => {
      assert.strictEqual(admit({ ...idle, ...view }, { ...plain, ...request })._tag, expected)
    })
  }

  it("a session being rebound takes queue entries and duplicates only [RT-022]", () => {
    const kind = (view: Partial<AdmissionView>, request: Partial<AdmissionRequest>) =>
      admitWhileRecovering({ ...busy, ...view }, { ...plain, ...request })._tag
    assert.strictEqual(kind({}, {}), "Recovering")
    assert.strictEqual(kind({}, { delivery: "steer" }), "Recovering")
    assert.strictEqual(kind({}, { delivery: "queue" }), "Queue")
    assert.strictEqual(kind({ receipt: { digest: "d", state: "admitted" } }, {}), "Duplicate")
  })
})

const Command = Schema.Struct({
  receipt: Schema.NullOr(Schema.Literals(["d", "x"])),
  delivery: Schema.NullOr(Schema.Literals(["steer", "queue"])),
  open: Schema.NullOr(Schema.Literals(["here", "elsewhere", "dead"])),
  queueLength: Schema.Literals([0, 1, 63, 64]),
  queueHeld: Schema.Boolean,
  archived: Schema.Boolean,
  child: Schema.Boolean,
  fallback: Schema.Boolean
})

it.prop(
  "no view starts a turn beside an open one, and a known id never starts anything [RT-081]",
  [Command],
  ([command]) => {
    const view: AdmissionView = {
      ...idle,
      receipt: command.receipt === null ? undefined : { digest: command.receipt, state: "admitted" },
      openTurn: command.open === null ? undefined : { live: command.open !== "dead", here: command.open === "here" },
      queueLength: command.queueLength,
      queueHeld: command.queueHeld,
      archived: command.archived,
      child: command.child
    }
    const kind = admit(view, { ...plain, delivery: command.delivery ?? undefined, fallback: command.fallback })
    if (kind._tag === "Start") {
      assert.isUndefined(view.openTurn)
      assert.isFalse(view.archived)
      assert.isFalse(view.child)
      if (!command.fallback) assert.isUndefined(view.receipt)
    }
    if (kind._tag === "Queue") assert.isTrue(view.queueLength < queueLimit)
    if (kind._tag === "Steer") assert.isTrue(view.openTurn?.live === true && view.openTurn.here)
  }
)

const finish: TerminalEvent = { type: "finish", sessionId: "s", assistantMessageId: "a", reason: "end_turn" }
const error: TerminalEvent = { type: "error", error: "boom", code: "truncated", assistantMessageId: "a" }
const cancelled: TerminalEvent = { type: "cancelled", sessionId: "s", assistantMessageId: "a", reason: "requested" }
const none: CancelFact = { _tag: "None" }

describe("settling", () => {
  it("an acknowledged cancel outranks an error, which outranks a finish [RT-142]", () => {
    const ack: CancelFact = { _tag: "Acknowledged", reason: "requested" }
    assert.strictEqual(settle({ _tag: "Terminal", event: error }, undefined, ack).status, "cancelled")
    assert.strictEqual(settle({ _tag: "Terminal", event: finish }, error, none).status, "failed")
    assert.strictEqual(settle({ _tag: "Terminal", event: finish }, undefined, none).status, "completed")
  })
  it("a cancel that was not acknowledged does not undo the harness's own end [RT-163]", () => {
    const asked: CancelFact = { _tag: "Asked", reason: "requested" }
    assert.strictEqual(settle({ _tag: "Terminal", event: finish }, undefined, asked).status, "completed")
    assert.deepStrictEqual(
      settle({ _tag: "Terminal", event: cancelled }, undefined, { _tag: "Asked", reason: "parent" }),
      {
        status: "cancelled",
        reason: "parent"
      }
    )
  })
  it("quiet is never completion [RT-143]", () => {
    const ending = settle({ _tag: "Quiet" }, undefined, none)
    assert.isTrue(ending.status === "failed" && ending.code === "harness_protocol")
  })
  it("a forced cancel is cancelled, an unacknowledged one is failed [RT-160, RT-161]", () => {
    assert.deepStrictEqual(settle({ _tag: "Quiet" }, undefined, { _tag: "Forced" }), {
      status: "cancelled",
      reason: "forced"
    })
    const ending = settle({ _tag: "Quiet" }, undefined, { _tag: "Unacknowledged" })
    assert.isTrue(ending.status === "failed" && ending.code === "cancel_unacknowledged")
  })
  it("of two budgets that are spent together the rounds are told [SRV-266]", () => {
    const timeout: CancelFact = { _tag: "Budget", code: "timeout", stop: "timeout", message: "too long" }
    const error = { type: "error", error: "no round is left", code: "budget", assistantMessageId: "a" } as const
    const ending = settle({ _tag: "Terminal", event: error }, undefined, timeout)
    assert.deepInclude(ending, { status: "failed", code: "budget", message: "no round is left" })
  })

  it("a spent budget is the reason, whatever the harness says [RT-140]", () => {
    const budget: CancelFact = { _tag: "Budget", code: "timeout", stop: "timeout", message: "too long" }
    for (const end of [{ _tag: "Quiet" }, { _tag: "Terminal", event: cancelled }] as const) {
      const ending = settle(end, undefined, budget)
      assert.isTrue(ending.status === "failed" && ending.code === "timeout")
    }
  })
})

const CancelInputs = Schema.Array(
  Schema.Literals(["Request", "Acknowledge", "GraceOver", "GraceOverShared", "ProcessGone", "TurnSettled"])
)

it.prop(
  "a cancel is acknowledged only after it was asked, and a settled turn stays settled [RT-160, RT-165]",
  [CancelInputs],
  ([inputs]) => {
    let state: CancelState = { _tag: "Idle" }
    let asked = false
    let settled = false
    for (const name of inputs) {
      const input: CancelInput =
        name === "Request"
          ? { _tag: "Request", at: 1 }
          : name === "GraceOver" || name === "GraceOverShared"
            ? { _tag: "GraceOver", shared: name === "GraceOverShared" }
            : { _tag: name }
      state = cancelStep(state, input)
      asked ||= name === "Request" && !settled
      settled ||= name === "TurnSettled"
      if (settled) assert.strictEqual(state._tag, "Settled")
      else if (!asked) assert.strictEqual(state._tag, "Idle")
    }
  }
)

describe("recovery", () => {
  const base = {
    handedOver: true,
    cancelRequested: false,
    recoveries: 0,
    turnRecovery: "resume",
    policy: "all"
  } as const
  it("follows the table [RT-162, RT-171, RT-175]", () => {
    assert.strictEqual(classify({ ...base, handedOver: false, turnRecovery: "none" }), "run")
    assert.strictEqual(classify(base), "continue")
    assert.strictEqual(classify({ ...base, turnRecovery: "reattach" }), "continue")
    assert.strictEqual(classify({ ...base, turnRecovery: "none" }), "interrupt")
    assert.strictEqual(classify({ ...base, policy: "opened" }), "interrupt")
    assert.strictEqual(classify({ ...base, handedOver: false, policy: "opened" }), "interrupt")
    assert.strictEqual(classify({ ...base, cancelRequested: true }), "cancel")
  })
  it("gives a turn up at the third recovery without progress [RUN-523]", () => {
    assert.strictEqual(classify({ ...base, recoveries: 1 }), "continue")
    assert.strictEqual(classify({ ...base, recoveries: 2 }), "interrupt")
  })
})
