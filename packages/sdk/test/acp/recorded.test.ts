/**
 * The driver against what real agents said. Each folder of `recorded/` is one agent, recorded by `test/e2e/agents`; the
 * replaying program holds the driver to the words that the agent answered.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { EventPayload } from "@tackroom/protocol/events"
import { Effect, Fiber } from "effect"
import { acp } from "../../src/harness/acp/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { open, place, textIn } from "./Kit.ts"

const recorded = fileURLToPath(new URL("recorded/", import.meta.url))
const program = fileURLToPath(new URL("programs/replay.ts", import.meta.url))

const replay = (agent: string, recording: string) =>
  acp("recorded", { binary: process.execPath, args: [program, join(recorded, agent, `${recording}.jsonl`)] })

type Runtime = Effect.Success<ReturnType<typeof open>>

/** A turn in which everything asked is answered alike. */
const asked = (runtime: Runtime, sessionId: string, text: string, decision: "allow_once" | "deny") =>
  Effect.gen(function* () {
    const before = (yield* runtime.journal(sessionId)).length
    const turn = yield* Effect.forkChild(runtime.run(sessionId, text))
    yield* runtime.until(sessionId, (event) => event.type === "permission-request", before)
    const [ask] = yield* runtime.interactions.list({ sessionId })
    yield* runtime.interactions.respond(ask?.id ?? "", { decision })
    yield* Fiber.join(turn)
    return { ask, events: (yield* runtime.journal(sessionId)).slice(before) }
  })

const ofCall = (events: ReadonlyArray<EventPayload>, toolCallId: string) =>
  events.filter((event) => "toolCallId" in event && event.toolCallId === toolCallId)

describe.each(readdirSync(recorded))("%s as recorded", (agent) => {
  it.live("talks, calls a tool that a person allowed, takes a refusal, is cancelled, and is reopened [HRN-004]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* place
        const store = createMemoryRuntimeStore()
        yield* Effect.addFinalizer(() => store.close)
        const runtime = yield* open(replay(agent, "conversation"), store)
        const { id } = yield* runtime.create(at.directory)

        yield* runtime.run(id, "say hello")
        assert.strictEqual(textIn(yield* runtime.journal(id)), "Hello there.")

        const allowed = yield* asked(runtime, id, "make a file", "allow_once")
        assert.deepInclude(allowed.ask, { kind: "permission", category: "exec", toolCallId: "call_allowed" })
        const call = ofCall(allowed.events, "call_allowed")
        assert.strictEqual(call.filter(({ type }) => type === "tool-output").length, 1)
        assert.include(JSON.stringify(call.at(-1)), "hello-allowed")
        assert.strictEqual(textIn(allowed.events), "It is made.")

        const refused = yield* asked(runtime, id, "make another", "deny")
        assert.deepInclude(ofCall(refused.events, "call_refused").at(-1), { type: "tool-error", code: "denied" })

        const before = (yield* runtime.journal(id)).length
        yield* runtime.start(id, "talk on")
        yield* runtime.until(id, (event) => event.type === "text-delta", before)
        yield* runtime.turns.abort(id)
        assert.deepInclude((yield* runtime.sessions.get(id))?.lastTurn, { status: "cancelled", reason: "requested" })
        yield* runtime.close

        const again = yield* open(replay(agent, "reopened"), store)
        assert.strictEqual((yield* again.run(id, "what was it")).status, "completed")
        const asking = yield* asked(again, id, "is it there", "allow_once")
        assert.strictEqual(textIn(asking.events), "It is there.")
        yield* again.close

        const elsewhere = yield* open(replay(agent, "missing"), store)
        const outcome = yield* elsewhere.run(id, "are you the same")
        assert.strictEqual(
          outcome.status === "failed" ? outcome.error.code : outcome.status,
          // Its error says nothing of the conversation, so nobody may say that it is gone.
          agent === "opencode" ? "harness_error" : "session_missing"
        )
      })
    )
  )
})
