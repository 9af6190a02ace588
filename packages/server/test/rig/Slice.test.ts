import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Lab, plainRunner } from "./support/Lab.ts"

let lab: Lab
beforeEach(async () => {
  lab = await new Lab().start()
})
afterEach(() => lab.dispose())

describe("one seat from its launch to its stop", () => {
  it("starts, works, asks, is answered, goes on and is stopped", async () => {
    lab.runner("otter", plainRunner())
    const made = await lab.rig({ member: "builder" })
    assert.strictEqual(made.status, 200, JSON.stringify(made))
    const seat = "dev-builder@mill"
    const launched = await lab.api("launchSeat", { seat })
    assert.strictEqual(launched.status, 200, JSON.stringify(launched))
    const view = await lab.seat(seat)
    assert.strictEqual(view.launch.state, "ready")
    assert.strictEqual(view.nativeRef, "c-1")
    const { generation } = view.launch
    const common = { sessionName: seat, nodeId: view.nodeId, runtime: "otter", generation }
    const accepted = await lab.post({
      ...common,
      sequence: 1,
      occurredAt: "2026-11-30T09:00:00.000Z",
      hookEvent: "UserPromptSubmit",
      subtype: "accepted",
      turnId: "1"
    })
    assert.strictEqual(accepted.status, 200, JSON.stringify(accepted))
    assert.strictEqual((await lab.seat(seat)).activity.value, "working")

    const added = await lab.api("addPerson", {}, { id: "op1", name: "Ann" })
    assert.strictEqual(added.status, 200, JSON.stringify(added))
    const token = lab.service.hookToken
    const asked = await lab.http("POST", "/api/activity/permission-requests", {
      token,
      body: {
        ...common,
        nativeRef: "c-1",
        turnId: "1",
        requestId: 7,
        toolCall: { title: "Edit src/a.ts", kind: "edit" },
        options: [
          { optionId: "allow", name: "Allow", kind: "allow_once" },
          { optionId: "reject", name: "Reject", kind: "reject_once" }
        ],
        occurredAt: "2026-11-30T09:00:01.000Z"
      }
    })
    assert.strictEqual(asked.status, 200, JSON.stringify(asked))
    const askId = String(asked.body["askId"])
    assert.strictEqual((await lab.seat(seat)).activity.value, "needs_input")
    const waiting = lab.http("GET", `/api/activity/permission-requests/${askId}?waitSeconds=20`, { token })
    const answered = await lab.api("answerAsk", { ask: askId }, { by: "op1", text: "Yes, please." })
    assert.strictEqual(answered.status, 200, JSON.stringify(answered))
    assert.deepStrictEqual((await waiting).body, { ok: true, askId, state: "answered", optionId: "allow" })

    const stopped = await lab.api("stopSeat", { seat })
    assert.strictEqual((stopped.body["outcome"] as { outcome: string }).outcome, "stopped", JSON.stringify(stopped))
    assert.strictEqual((await lab.seat(seat)).launch.state, "stopped")
  })
})
