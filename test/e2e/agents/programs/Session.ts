/**
 * A program that runs an agent and is killed: opens a session on the store of its stage, plays one turn, prints the
 * session's id and waits. Its argument says which agent, where, and with which variables (JSON).
 */
import { createAgentRuntime } from "@tackroom/sdk"
import { acp } from "@tackroom/sdk/harnesses/acp"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { agents } from "../Agents.ts"
import { optionsOf } from "../Stage.ts"

const {
  agent: id,
  directory,
  root,
  text,
  variables
} = JSON.parse(process.argv[2] ?? "{}") as Record<string, string> & {
  readonly variables: Record<string, string>
}
const agent = agents.find((each) => each.id === id)
if (agent === undefined || directory === undefined || root === undefined || text === undefined) {
  throw new Error("no such agent, or no place for it")
}
const runtime = createAgentRuntime({
  store: createSqliteRuntimeStore({ root }),
  harnesses: [acp(agent.id, optionsOf(agent, { variables }))],
  leaseMs: 2_000
})
const session = await runtime.sessions.create({ directory, harness: { id: agent.id, access: "acp" } })
await runtime.turns.start({ sessionId: session.id, messageId: "first", text })
await runtime.turns.wait(session.id, "first")
process.stdout.write(`${session.id}\n`)
setInterval(() => undefined, 60_000)
