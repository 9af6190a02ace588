/** Reads a long journal from its start, page by page, as a client does that comes late. */
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { join } from "node:path"
import { compare, type Bench, type Row } from "./Report.ts"
import { entries } from "./SampleEvents.ts"
import { inRounds } from "./Statistics.ts"
import { createSession, echoAgent, scripted, withHost, type Host } from "./TackroomHost.ts"

const measure = "replay"
const pageSize = 1_000

/** Appends to a session that a host made, while no host is there. */
const fill = (stateDir: string, sessionId: string, count: number): Promise<void> => {
  const store = createSqliteRuntimeStore({ root: stateDir })
  const list = entries(count, undefined, false)
  const slices = Array.from({ length: Math.ceil(count / 500) }, (_, n) => list.slice(n * 500, (n + 1) * 500))
  return Effect.runPromise(
    Effect.forEach(slices, (slice) => store.appendUnfenced(sessionId, slice), { discard: true }).pipe(
      Effect.ensuring(store.close)
    )
  )
}

interface Page {
  readonly events: ReadonlyArray<unknown>
  readonly cursor: number
  readonly more_events: boolean
}

const replayRate = async (host: Host, sessionId: string): Promise<number> => {
  let after = 0
  let events = 0
  const began = performance.now()
  for (;;) {
    const page = await host.client.request<Page>("event/read", {
      session_id: sessionId,
      after,
      max_events: pageSize
    })
    events += page.events.length
    after = page.cursor
    if (!page.more_events) return events / ((performance.now() - began) / 1_000)
  }
}

const rawRate = (stateDir: string, sessionId: string): number => {
  const db = new Database(join(stateDir, "agent-runtime.db"), { readonly: true })
  try {
    const select = db.prepare<[string, number, number], { readonly seq: number; readonly payload: string }>(
      "SELECT seq, at, type, turn_id, payload, artifacts FROM tr_event WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    const began = performance.now()
    let after = 0
    let events = 0
    for (;;) {
      const page = select.all(sessionId, after, pageSize)
      for (const row of page) JSON.parse(row.payload)
      events += page.length
      after = page.at(-1)?.seq ?? after
      if (page.length < pageSize) return events / ((performance.now() - began) / 1_000)
    }
  } finally {
    db.close()
  }
}

export const replay = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const count = bench.isQuick ? 20_000 : 100_000
  const options = {
    stateDir: join(bench.folder, "replay-state"),
    config: scripted(join(bench.folder, "replay"), [echoAgent])
  }
  const sessionId = await withHost(bench, options, (host) => createSession(host, echoAgent.id))
  await fill(options.stateDir, sessionId, count)
  return withHost(bench, options, async (host) => {
    const results = await inRounds(bench.isQuick ? 3 : 5, [
      { name: "ours", run: () => replayRate(host, sessionId) },
      { name: "raw", run: () => Promise.resolve(rawRate(options.stateDir, sessionId)) }
    ])
    return [
      compare({
        measure,
        name: `${count.toLocaleString("en-US")} events by event/read`,
        unit: "/s",
        ours: results.get("ours") ?? [],
        baseline: "raw better-sqlite3, JSON parsed, no pipe",
        theirs: results.get("raw") ?? []
      })
    ]
  })
}
