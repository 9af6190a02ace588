/** Events a second that reach a client which follows its run: many small parts, one long answer, a tool with much output. */
import { join } from "node:path"
import type { Bench, Row } from "./Report.ts"
import { median, percentile } from "./Statistics.ts"
import { createSession, followRun, scripted, startRun, withHost, type ScriptedAgent } from "./TackroomHost.ts"

const measure = "streaming"

/** Words of a long answer; each is one delta of the model. */
const answerWords = 5_000
/** Parts of thinking and text by turns, so that no two deltas can be joined. */
const parts = 400
const outputMegabytes = 4

const repeat = <A>(count: number, of: (n: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, n) => of(n))

const turnsPlayed = 7

const agents: ReadonlyArray<ScriptedAgent> = [
  {
    id: "parts",
    responses: repeat(turnsPlayed, () =>
      repeat(parts, (n) => (n % 2 === 0 ? { thinking: " considering it" } : { text: " answering it" }))
    )
  },
  { id: "answer", responses: repeat(turnsPlayed, () => repeat(answerWords, () => ({ text: " word" }))) },
  {
    id: "output",
    tools: ["shell.run"],
    responses: repeat(turnsPlayed, () => [
      [
        {
          call: {
            tool: "shell.run",
            arguments: {
              command: `yes "a line of output of a build or a test" | head -c ${outputMegabytes * 1_000_000}`
            }
          }
        }
      ],
      [{ text: "Done." }]
    ]).flat()
  }
]

export const streaming = (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const config = scripted(join(bench.folder, "streaming"), agents)
  return withHost(bench, { stateDir: join(bench.folder, "streaming-state"), config }, async (host) => {
    const turns = bench.isQuick ? 3 : turnsPlayed - 1
    const sessions = new Map<string, string>()
    for (const { id } of agents) sessions.set(id, await createSession(host, id))
    const results = new Map(agents.map(({ id }) => [id, new Array<{ events: number; seconds: number }>()]))
    for (let turn = 0; turn <= turns; turn++) {
      for (const { id } of agents) {
        const sessionId = sessions.get(id) ?? ""
        const began = performance.now()
        await startRun(host, sessionId, `m-${turn}`, "Go on.")
        const { events } = await followRun(host, sessionId, `m-${turn}`)
        // The first turn of each warms up.
        if (turn > 0) results.get(id)?.push({ events, seconds: (performance.now() - began) / 1_000 })
      }
    }
    const rates = (id: string, of: (one: { events: number; seconds: number }) => number) =>
      (results.get(id) ?? []).map(of)
    const eventsOf = (id: string) => median(rates(id, ({ events }) => events))
    const row = (
      id: string,
      name: string,
      unit: "/s" | "MB/s",
      of: (one: { events: number; seconds: number }) => number,
      note: string
    ): Row => {
      const values = rates(id, of)
      return { measure, name, value: median(values), unit, p95: percentile(values, 0.05), note }
    }
    return [
      row(
        "parts",
        "events journaled and delivered, parts that cannot be joined",
        "/s",
        ({ events, seconds }) => events / seconds,
        `${eventsOf("parts")} events a turn`
      ),
      row(
        "answer",
        "deltas of the model taken in, one long answer",
        "/s",
        ({ seconds }) => answerWords / seconds,
        `${answerWords} deltas a turn, joined to ${eventsOf("answer")} events`
      ),
      row(
        "output",
        "output of a shell command",
        "MB/s",
        ({ seconds }) => outputMegabytes / seconds,
        `${outputMegabytes} MB a turn, ${eventsOf("output")} events, the whole kept as an artifact`
      )
    ]
  })
}
