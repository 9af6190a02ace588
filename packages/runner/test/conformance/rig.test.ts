import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber } from "effect"
import * as Rig from "../../src/conformance/runner/rig/Rig.ts"
import type { Seen } from "../../src/conformance/runner/Seen.ts"
import * as Timeline from "../../src/conformance/Timeline.ts"

const token = "canary-of-the-rig"

class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly cause: unknown }> {}

interface Answered {
  readonly status: number
  readonly body: Record<string, unknown>
}

const rig = Effect.gen(function* () {
  const timeline = Timeline.make<Seen>()
  const made = yield* Rig.make(timeline, token)
  const call = (method: string, path: string, body?: unknown, authorization = `Bearer ${token}`) =>
    Effect.tryPromise({
      try: async (signal): Promise<Answered> => {
        const response = await fetch(`${made.url}${path}`, {
          method,
          signal,
          headers: { authorization, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        return { status: response.status, body: (await response.json()) as Record<string, unknown> }
      },
      catch: (cause) => new NoAnswer({ cause })
    })
  return { made, timeline, call }
})

const hooks = "/api/activity/hooks"
const requests = "/api/activity/permission-requests"

describe("the rig of a case", () => {
  it.live("takes posts with the right token, and keeps everything else as stray", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { call, timeline } = yield* rig
        assert.strictEqual((yield* call("POST", hooks, { sequence: 1 })).status, 200)
        const refused = yield* call("POST", hooks, { sequence: 2 }, "Bearer other")
        assert.deepStrictEqual([refused.status, refused.body["code"]], [401, "activity_hook_unauthorized"])
        assert.strictEqual((yield* call("GET", hooks)).status, 405)
        assert.strictEqual((yield* call("POST", hooks, [1])).body["code"], "invalid_json")
        assert.strictEqual((yield* call("GET", "/api/rig/v1/seats")).status, 404)
        assert.deepStrictEqual(
          timeline.seen.map(({ what }) => what),
          ["post", "stray", "stray", "stray", "stray"]
        )
      })
    )
  )

  it.live("makes an ask of a submit; a read waits until it is settled", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { call, made, timeline } = yield* rig
        const submit = yield* call("POST", requests, { requestId: 7, turnId: "1" })
        const askId = String(submit.body["askId"])
        assert.deepStrictEqual(submit.body, { ok: true, askId, created: true })
        const pending = yield* call("GET", `${requests}/${askId}?waitSeconds=0`)
        assert.deepStrictEqual(pending.body, { ok: true, askId, state: "pending" })

        const read = yield* Effect.forkChild(call("GET", `${requests}/${askId}?waitSeconds=25`))
        yield* timeline.until("the read", () => timeline.seen.filter(({ what }) => what === "read")[1], 5_000)
        made.asks[0]?.settle({ state: "answered", optionId: "yes-once" })
        assert.deepStrictEqual((yield* Fiber.join(read)).body, {
          ok: true,
          askId,
          state: "answered",
          optionId: "yes-once"
        })

        const late = yield* call("POST", `${requests}/${askId}/withdraw`, { reason: "turn_ended" })
        assert.deepStrictEqual(late.body, { ok: true, askId, state: "answered" })
        assert.strictEqual((yield* call("POST", `${requests}/${askId}/withdraw`, { reason: "bored" })).status, 400)
        assert.strictEqual((yield* call("GET", `${requests}/ask_other`)).status, 404)
      })
    )
  )

  it.live("can be silent, rude, slow and gone", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { call, made, timeline } = yield* rig
        made.onPost = () => Rig.reset
        assert.strictEqual((yield* Effect.flip(call("POST", hooks, {})))._tag, "NoAnswer")
        made.onPost = () => Rig.answer(200, { ok: true }, 100)
        const before = timeline.now()
        yield* call("POST", hooks, {})
        assert.isAtLeast(timeline.now() - before, 95)
        made.onPost = () => Rig.silence
        const silent = yield* Effect.forkChild(call("POST", hooks, {}))
        yield* timeline.until("the third post", () => timeline.seen[2], 5_000)
        assert.isUndefined(silent.pollUnsafe())
        yield* made.disappear
        assert.strictEqual((yield* Effect.flip(Fiber.join(silent)))._tag, "NoAnswer")
        assert.strictEqual((yield* Effect.flip(call("POST", hooks, {})))._tag, "NoAnswer")
      })
    )
  )
})
