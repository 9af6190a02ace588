/**
 * A runtime on SQLite whose turn is watched and killed: `CrashChild.ts <root> <directory> <harness>`. It writes each event
 * it sees as one line, and never ends by itself.
 */
import { writeSync } from "node:fs"
import { Effect } from "effect"
import { createAgentRuntime, isEnvelope } from "../../../src/index.ts"
import { scripted } from "../../../src/harness/index.ts"
import { createSqliteRuntimeStore } from "../../../src/store/sqlite/index.ts"
import { makeBarrier } from "../../../src/harness/Harness.ts"
import { programmable, text } from "../Programmable.ts"

const [root = "", directory = "", harness = "test"] = process.argv.slice(2)

const driver = programmable({
  turn: (s) =>
    Effect.gen(function* () {
      for (let i = 0; i < 6; i++) {
        yield* s.emit({ type: "response-start", responseId: `r${i}` }, text(s.input, `word ${i} `, `p${i}`))
        yield* s.emit(
          { type: "tool-start", toolCallId: `c${i}`, toolName: "t" },
          { type: "tool-status", toolCallId: `c${i}`, status: "running" }
        )
        const barrier = yield* makeBarrier
        yield* s.emit(barrier)
        yield* Effect.yieldNow
        yield* s.emit({ type: "tool-output", toolCallId: `c${i}`, output: i })
      }
      yield* s.emit(s.finish())
    })
})

const store = createSqliteRuntimeStore({ root })
const runtime = createAgentRuntime({ store, harnesses: [driver.factory, scripted({ speed: 0 })] })
const session = await runtime.sessions.create({
  id: "crash",
  directory,
  harness: { id: harness, access: "native" },
  title: "crash",
  ...(harness === "scripted" ? { permissionMode: "full" } : {})
})
const live = runtime.events.subscribe({ sessionId: session.id, after: 0 })
await runtime.turns.start({ sessionId: session.id, messageId: "m", text: "go" })
await runtime.turns.start({ sessionId: session.id, messageId: "q", text: "next", delivery: "queue" })
for await (const item of live) {
  if (isEnvelope(item)) writeSync(1, `${JSON.stringify({ cursor: item.cursor, type: item.payload.type })}\n`)
}
