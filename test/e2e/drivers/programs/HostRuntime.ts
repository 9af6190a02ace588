/**
 * A runtime on SQLite that drives a host of its own, to be killed: `HostRuntime.ts <root> <agent>`. It runs the turn `m` of
 * the session `killed`, allows what is asked, writes each event of it as one line, and never ends by itself.
 */
import { readFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { HostConfig, wireCodec } from "@tackroom/protocol/run"
import { createAgentRuntime, isEnvelope } from "@tackroom/sdk"
import { host } from "@tackroom/sdk/harnesses/host"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { Result } from "effect"
import { hostProgram } from "../../support/RawHost.ts"

const [root = "", agent = ""] = process.argv.slice(2)

const config = wireCodec(HostConfig).decode(JSON.parse(readFileSync(join(root, "config.json"), "utf8")))
if (Result.isFailure(config)) throw config.failure
const runtime = createAgentRuntime({
  store: createSqliteRuntimeStore({ root: join(root, "store") }),
  harnesses: [host({ command: process.execPath, args: [hostProgram], config: config.success, agent })]
})
await runtime.ready()
const session = await runtime.sessions.create({
  id: "killed",
  directory: join(root, "work"),
  harness: { id: "host", access: "native" },
  agent
})
const live = runtime.events.subscribe({ sessionId: session.id, after: 0 })
await runtime.turns.start({ sessionId: session.id, messageId: "m", text: "go on" })
for await (const item of live) {
  if (!isEnvelope(item)) continue
  const { cursor, payload } = item
  writeSync(1, `${JSON.stringify({ cursor, type: payload.type })}\n`)
  if (payload.type === "permission-request") await runtime.permissions.respond(payload.requestId, "allow_once")
  if (payload.type === "finish" || payload.type === "error" || payload.type === "cancelled") break
}
