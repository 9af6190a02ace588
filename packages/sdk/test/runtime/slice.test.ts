import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { createAgentRuntime, isEnvelope, type SubscriptionItem } from "../../src/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { programmable } from "./Programmable.ts"

const directory = mkdtempSync(join(tmpdir(), "tackroom-runtime-"))
const harness = { id: "test", access: "native" } as const

it("a turn runs from its start to its end and is read, listed and replayed [RT-080, RT-085, RT-140]", async () => {
  const driver = programmable()
  const store = createMemoryRuntimeStore()
  const runtime = createAgentRuntime({ store, harnesses: [driver.factory] })
  const session = await runtime.sessions.create({ directory, harness })
  const live = runtime.events.subscribe({ sessionId: session.id })
  const admission = await runtime.turns.start({ sessionId: session.id, messageId: "m1", text: "say hello" })
  assert.strictEqual(admission.delivery, "start")
  assert.strictEqual(admission.duplicate, false)
  const outcome = await runtime.turns.wait(session.id, "m1")
  assert.strictEqual(outcome.status, "completed")
  const page = await runtime.events.read(session.id)
  assert.deepStrictEqual(
    page.events.map((event) => event.payload.type),
    [
      "session-created",
      "user-message",
      "session-status",
      "turn-start",
      "session-title",
      "text-delta",
      "text-end",
      "finish",
      "session-status"
    ]
  )
  assert.deepStrictEqual(
    page.events.map((event) => event.cursor),
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
  )
  const seen: Array<SubscriptionItem> = []
  for await (const item of live) {
    seen.push(item)
    if (isEnvelope(item) && item.cursor === 9) break
  }
  assert.deepStrictEqual(seen, page.events.slice(1))
  const again = await runtime.turns.start({ sessionId: session.id, messageId: "m1", text: "say hello" })
  assert.deepStrictEqual(again, { ...admission, duplicate: true })
  const after = await runtime.sessions.get(session.id)
  assert.strictEqual(after?.status, null)
  assert.strictEqual(after?.lastTurn?.status, "completed")
  assert.strictEqual(after?.title, "say hello")
  await runtime.dispose()
  await import("effect").then(({ Effect }) => Effect.runPromise(store.close))
})
