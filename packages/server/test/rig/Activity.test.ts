import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { pass } from "../../src/rig/Retention.ts"
import { Lab, plainRunner } from "./support/Lab.ts"

let lab: Lab
beforeAll(async () => {
  lab = await new Lab().start()
  lab.runner("otter", plainRunner())
  lab.preset("plain", { command: ["sh", "-c", "while read -r line; do echo got $line; done"] })
  await lab.rig({ member: "a" }, { member: "b" }, { member: "c" }, { member: "p", harness: "plain" })
  await lab.api("upRig", { rig: "mill" })
})
afterAll(() => lab.dispose())

interface Answer {
  readonly activity: { readonly state: string; readonly stale: boolean }
  readonly tackroom: { readonly counted: boolean; readonly why: string }
}

/** A runner of one seat, numbering its posts. */
const runnerOf = async (member: string) => {
  const seat = `dev-${member}@mill`
  const view = await lab.seat(seat)
  let sequence = 0
  const base = Date.parse("2026-11-30T09:00:00.000Z")
  return {
    seat,
    view,
    generation: view.launch.generation ?? "",
    post: async (hookEvent: string, subtype: string, fields: Readonly<Record<string, unknown>> = {}) => {
      sequence += 1
      const reply = await lab.post({
        sessionName: seat,
        nodeId: view.nodeId,
        runtime: "otter",
        generation: view.launch.generation,
        sequence,
        occurredAt: new Date(base + sequence * 1_000).toISOString(),
        hookEvent,
        subtype,
        ...fields
      })
      assert.strictEqual(reply.status, 200, JSON.stringify(reply))
      const { activity, tackroom } = reply.body as unknown as Answer
      return `${activity.state} ${tackroom.why}`
    }
  }
}

describe("posts of a runner", () => {
  it("are answered with the seat's state after them and why they count [RIG-S2, RIG-S3, RIG-S4, RIG-S5]", async () => {
    const { post, seat } = await runnerOf("a")
    assert.strictEqual(await post("Stop", "idle_heartbeat", { livenessSeconds: 60 }), "idle counted")
    assert.strictEqual(await post("UserPromptSubmit", "accepted", { turnId: "1" }), "running counted")
    assert.strictEqual(await post("active", "liveness", { turnId: 1, livenessSeconds: 30 }), "running counted")
    assert.strictEqual(await post("active", "liveness", { turnId: "2" }), "running beat_ignored:wrong_turn")
    assert.strictEqual(await post("Notification", "runtime_error"), "running recorded_only")
    assert.strictEqual(await post("Notification", "elsewhere"), "running unmapped")
    assert.strictEqual(await post("Stop", "end_turn", { occurredAt: "2026-11-30T08:00:00Z" }), "running older")
    assert.strictEqual(await post("Stop", "end_turn", { generation: "of-before" }), "running other_generation")
    assert.strictEqual(await post("Notification", "permission_prompt"), "needs_input counted")
    assert.strictEqual((await lab.api("clearAttention", { seat }, { reason: "looked" })).status, 200)
    assert.strictEqual(await post("Stop", "otter_exited"), "unknown counted")
    const old = await lab.post({ sessionName: seat, hookEvent: "Stop", subtype: "end_turn", generation: "of-before" })
    assert.isTrue((old.body as unknown as Answer).activity.stale)
    const plain = await lab.post({ sessionName: "dev-p@mill", hookEvent: "Stop", subtype: "end_turn" })
    assert.strictEqual((plain.body as unknown as Answer).tackroom.why, "plain_seat")
  })

  it("are stored one after the other, each once, and seats do not wait on each other [RIG-120]", async () => {
    const { view, seat, generation } = await runnerOf("b")
    const { store } = lab.service
    const before = store.logs.countPosts(view.nodeId)
    const posts = Array.from({ length: 60 }, (_, index) => ({
      sessionName: seat,
      generation,
      sequence: index + 1,
      occurredAt: new Date(1_000_000 + index).toISOString(),
      hookEvent: "PreToolUse",
      subtype: `kind-${index}`
    }))
    const replies = await Promise.all(posts.map((body) => lab.post(body)))
    assert.isTrue(replies.every(({ status }) => status === 200))
    assert.strictEqual(store.logs.countPosts(view.nodeId), before + posts.length)
    const last = store.live.get(view.nodeId).activity.last
    const counted = store.logs.posts(view.nodeId).filter(({ why }) => why === "counted")
    // Whatever order they arrived in, what counted rises.
    const sequences = counted.map(({ sequence }) => sequence ?? 0)
    assert.deepStrictEqual(
      sequences,
      sequences.toSorted((one, other) => one - other)
    )
    assert.strictEqual(last?.sequence, sequences.at(-1))
  })

  it("a reading that ends by itself is one feed event within its time [RIG-R4, RIG-R7, RIG-291]", async () => {
    const { post, seat } = await runnerOf("c")
    const head = lab.head
    assert.strictEqual(await post("UserPromptSubmit", "accepted", { turnId: "1" }), "running counted")
    assert.strictEqual(await post("Stop", "idle_heartbeat", { livenessSeconds: 1 }), "idle counted")
    const stopped = performance.now()
    const isOurs = (type: string, data: unknown): data is Awaited<ReturnType<Lab["seat"]>> =>
      type === "seat.activity" && typeof data === "object" && data !== null && "seat" in data && data.seat === seat
    const values: Array<string> = []
    await lab.feedUntil(head, ({ type, data }) => {
      if (!isOurs(type, data)) return false
      values.push(data.activity.value)
      return values.length === 3
    })
    assert.deepStrictEqual(values, ["working", "idle", "unknown"])
    assert.isAtLeast(performance.now() - stopped, 1_900)
    assert.isBelow(performance.now() - stopped, 2_000 + 4 * 250)
  })
})

describe("the screen", () => {
  it("of a plain seat that changes reads working and a quiet one unknown; the service's own typing is no evidence [RIG-R6]", async () => {
    const seat = "dev-p@mill"
    const head = lab.head
    assert.strictEqual((await lab.seat(seat)).activity.value, "unknown")
    lab.tmux("send-keys", "-t", `=${seat}:`, "hello", "Enter")
    const event = await lab.feedUntil(
      head,
      ({ type, data }) => type === "seat.activity" && "seat" in data && data.seat === seat
    )
    const view = event.data as Awaited<ReturnType<Lab["seat"]>>
    assert.deepStrictEqual([view.activity.value, view.activity.source], ["working", "screen"])
    await lab.feedUntil(
      event.cursor,
      ({ type, data }) =>
        type === "seat.activity" && "activity" in data && data.seat === seat && data.activity.value === "unknown"
    )
  })
})

describe("the end of an occupant", () => {
  it("that nobody asked for is found, and its seat reads unknown and has ended [RIG-D16, RIG-R1]", async () => {
    const head = lab.head
    const { post, seat } = await runnerOf("c")
    await post("UserPromptSubmit", "accepted", { turnId: "9" })
    lab.tmux("kill-session", "-t", `=${seat}`)
    await lab.feedUntil(head, ({ type, data }) => type === "seat.launch" && "seat" in data && data.seat === seat)
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.activity.value, view.session], ["ended", "unknown", "absent"])
    const refused = await lab.api("sendSeat", { seat }, { text: "hello" })
    assert.strictEqual(refused.body["code"], "seat_stopped")
  })

  it("and a new one start afresh [RIG-D15]", async () => {
    const { seat, post } = await runnerOf("b")
    assert.strictEqual(
      await post("Notification", "permission_prompt", { occurredAt: "2027-01-01T00:00:00Z" }),
      "needs_input counted"
    )
    await lab.api("stopSeat", { seat })
    assert.strictEqual(await lab.launch(seat), "resumed")
    assert.strictEqual((await lab.seat(seat)).activity.value, "unknown")
    const next = await runnerOf("b")
    assert.strictEqual(await next.post("Stop", "idle_heartbeat"), "idle counted")
  })
})

describe("what is kept", () => {
  it("old posts and settled asks go, pending asks stay [RIG-121]", async () => {
    const { store } = lab.service
    const { nodeId } = await lab.seat("dev-a@mill")
    const day = 86_400_000
    await Effect.runPromise(
      store.write((tx) => {
        const common = {
          nodeId,
          nativeRef: "",
          turnId: "1",
          requestId: "1",
          toolCall: {},
          options: [],
          content: "",
          why: "x"
        }
        for (const [askId, settledAt] of [
          ["ask_old", tx.wall - 91 * day],
          ["ask_new", tx.wall - 89 * day],
          ["ask_open", undefined]
        ] as const) {
          tx.asks.addAsk({ ...common, askId, generation: askId, rowId: `row_${askId}`, openedAt: 1 }, { person: "op1" })
          if (settledAt !== undefined) {
            tx.asks.settle(askId, { state: "stale", by: "service", how: "replaced", row: "superseded" }, settledAt)
          }
        }
        const row = {
          nodeId,
          generation: null,
          sequence: null,
          occurredAt: 1,
          hookEvent: "a",
          subtype: "b",
          body: "{}",
          why: "older"
        }
        tx.logs.addPost({ ...row, arrivedAt: tx.wall - 31 * day })
        tx.logs.addPost({ ...row, arrivedAt: tx.wall - 29 * day })
      })
    )
    const before = store.logs.countPosts(nodeId)
    await Effect.runPromise(pass(store))
    assert.strictEqual(store.logs.countPosts(nodeId), before - 1)
    assert.deepStrictEqual(
      ["ask_old", "ask_new", "ask_open"].map((askId) => store.asks.ask(askId)?.state),
      [undefined, "stale", "pending"]
    )
    await Effect.runPromise(
      store.write((tx) => {
        for (let count = 0; count < 10_100; count++) {
          tx.logs.addPost({
            nodeId,
            generation: null,
            sequence: count,
            occurredAt: 1,
            arrivedAt: tx.wall,
            hookEvent: "a",
            subtype: "b",
            body: "{}",
            why: "older"
          })
        }
        tx.logs.trimPosts(nodeId)
      })
    )
    assert.strictEqual(store.logs.countPosts(nodeId), 10_000)
  })
})
