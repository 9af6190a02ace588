/**
 * Whole turns over stdio with a model that answers at once: from `run/start` to the terminal `run/wait`. What is left is
 * the host's own.
 */
import Database from "better-sqlite3"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { processorMs } from "./MeasuredProcess.ts"
import { atMost, type Bench, type Row } from "./Report.ts"
import { median, percentile } from "./Statistics.ts"
import {
  createSession,
  echoAgent,
  finishRun,
  scripted,
  startRun,
  withHost,
  type Host,
  type ScriptedAgent
} from "./TackroomHost.ts"

const measure = "turns"
const limitMs = 10
const turnsPerSession = 20

const writeCall = (n: number) => ({
  call: { tool: "files.write", arguments: { path: `note-${n}.txt`, content: "written by a turn\n" } }
})

/** A call that a person approves, then an answer; for as many turns as a session makes. */
const approvalAgent: ScriptedAgent = {
  id: "approval",
  tools: ["files.write"],
  approvals: "always",
  responses: Array.from({ length: turnsPerSession + 2 }, (_, n) => [[writeCall(n)], [{ text: "Written." }]]).flat()
}

/** The same without a person: the host approves. */
const toolAgent: ScriptedAgent = { ...approvalAgent, id: "tool", approvals: "never" }

/** Milliseconds of one durable commit of a small row: the floor under every durable step. */
const commitMs = (folder: string, count: number): number => {
  mkdirSync(folder, { recursive: true })
  const db = new Database(join(folder, "commit.db"))
  try {
    db.pragma("journal_mode = WAL")
    db.pragma("synchronous = FULL")
    db.exec("CREATE TABLE event (seq INTEGER PRIMARY KEY, payload TEXT NOT NULL)")
    const insert = db.prepare("INSERT INTO event (payload) VALUES (?)")
    const times = Array.from({ length: count }, () => {
      const began = performance.now()
      insert.run("x".repeat(200))
      return performance.now() - began
    })
    return median(times)
  } finally {
    db.close()
  }
}

const turn = async (host: Host, sessionId: string, submissionId: string): Promise<number> => {
  const began = performance.now()
  await startRun(host, sessionId, submissionId, "Please answer.")
  await finishRun(host, sessionId, submissionId)
  return performance.now() - began
}

const agents = [
  { agent: echoAgent, name: "one text" },
  { agent: toolAgent, name: "a tool and a text, two rounds" },
  { agent: approvalAgent, name: "an approval, a tool and a text" }
]

export const turns = (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const config = scripted(
    join(bench.folder, "turns"),
    agents.map(({ agent }) => agent)
  )
  return withHost(bench, { stateDir: join(bench.folder, "turns-state"), config }, async (host) => {
    const sessions = bench.isQuick ? 3 : 12
    const times = new Map(agents.map(({ agent }) => [agent.id, new Array<number>()]))
    const processor = new Map<string, Array<number>>()
    for (const { agent } of agents) processor.set(agent.id, [])
    for (let session = 0; session <= sessions; session++) {
      for (const { agent } of agents) {
        const id = await createSession(host, agent.id)
        const before = processorMs(host.program.pid)
        for (let n = 0; n < turnsPerSession; n++) {
          const ms = await turn(host, id, `m-${n}`)
          // The first session of each warms up: code, and the process in which tools run.
          if (session > 0) times.get(agent.id)?.push(ms)
        }
        const after = processorMs(host.program.pid)
        if (session > 0 && before !== undefined && after !== undefined) {
          processor.get(agent.id)?.push((after - before) / turnsPerSession)
        }
      }
    }
    const commit = commitMs(join(bench.folder, "turns-commit"), 300)
    return agents.map(({ agent, name }): Row => {
      const all = times.get(agent.id) ?? []
      const value = median(all)
      const spent = processor.get(agent.id) ?? []
      return {
        measure,
        name,
        value,
        unit: "ms",
        p95: percentile(all, 0.95),
        baseline: { name: "one bare durable commit", value: commit },
        ratio: value / commit,
        bar: atMost(limitMs, value, `< ${limitMs} ms`),
        note: `${spent.length === 0 ? "unknown" : median(spent).toFixed(1)} ms of processor time a turn`
      }
    })
  })
}
