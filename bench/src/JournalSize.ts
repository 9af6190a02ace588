/**
 * What a long answer costs in the journal: 10,000 tokens at 100 tokens a second.
 *
 * That takes 100 s. Unless asked for in full, two shorter answers are played at the true pace at the same time and the
 * line through them is drawn on to 10,000: rows and bytes grow evenly once a part is older than 250 ms (D-44).
 */
import Database from "better-sqlite3"
import { join } from "node:path"
import { atMost, type Bench, type Row } from "./Report.ts"
import { createSession, finishRun, scripted, startRun, withHost, type ScriptedAgent } from "./TackroomHost.ts"

const measure = "journal"
const tokens = 10_000
const tokensPerSecond = 100
const rowLimit = 1_100

/** One token of a model and the time to the next. */
const paced = (count: number): ScriptedAgent => ({
  id: `paced-${count}`,
  responses: [Array.from({ length: count }, () => [{ text: " token" }, { delay_ms: 1_000 / tokensPerSecond }]).flat()]
})

interface Size {
  readonly tokens: number
  readonly deltaRows: number
  readonly deltaBytes: number
  readonly rows: number
  readonly bytes: number
  readonly seconds: number
}

const sizeOf = (db: Database.Database, sessionId: string): Omit<Size, "tokens" | "seconds"> => {
  const select = (where: string) =>
    db
      .prepare<[string], { readonly rows: number; readonly bytes: number }>(
        `SELECT count(*) AS rows, coalesce(sum(length(CAST(payload AS BLOB)) + length(session_id) + length(type) +
         coalesce(length(turn_id), 0) + 16), 0) AS bytes FROM tr_event WHERE session_id = ? ${where}`
      )
      .get(sessionId) ?? { rows: 0, bytes: 0 }
  const all = select("")
  const deltas = select("AND type = 'text-delta'")
  return { rows: all.rows, bytes: all.bytes, deltaRows: deltas.rows, deltaBytes: deltas.bytes }
}

export const journalSize = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const counts = bench.isFull ? [tokens] : bench.isQuick ? [200, 400] : [500, 1_000]
  const agents = counts.map(paced)
  const stateDir = join(bench.folder, "journal-state")
  const options = { stateDir, config: scripted(join(bench.folder, "journal"), agents) }
  const played = await withHost(bench, options, (host) =>
    Promise.all(
      agents.map(async ({ id }, n) => {
        const sessionId = await createSession(host, id)
        const began = performance.now()
        await startRun(host, sessionId, "m-1", "Answer at length.")
        await finishRun(host, sessionId, "m-1")
        return { sessionId, tokens: counts[n] ?? 0, seconds: (performance.now() - began) / 1_000 }
      })
    )
  )
  const db = new Database(join(stateDir, "agent-runtime.db"), { readonly: true })
  const sizes = played.map((one): Size => Object.assign(sizeOf(db, one.sessionId), one))
  db.close()

  const [short] = sizes
  const long = sizes.at(-1)
  if (short === undefined || long === undefined) return []
  const drawnOn = (of: (size: Size) => number): number =>
    short === long
      ? of(long)
      : of(long) + ((of(long) - of(short)) / (long.tokens - short.tokens)) * (tokens - long.tokens)
  const pace = `${(long.tokens / long.seconds).toFixed(0)} tokens a second were reached`
  const how = short === long ? `played in full; ${pace}` : `drawn on from ${counts.join(" and ")} tokens; ${pace}`
  const deltaRows = drawnOn(({ deltaRows }) => deltaRows)
  return [
    {
      measure,
      name: "rows of deltas for 10,000 tokens",
      value: deltaRows,
      unit: "rows",
      baseline: { name: "a row a token", value: tokens },
      ratio: deltaRows / tokens,
      bar: atMost(rowLimit, deltaRows, `≤ ${rowLimit} rows`),
      note: how
    },
    { measure, name: "bytes of those rows", value: drawnOn(({ deltaBytes }) => deltaBytes) / 1_000, unit: "KB" },
    {
      measure,
      name: "bytes of the whole turn's journal",
      value: drawnOn(({ bytes }) => bytes) / 1_000,
      unit: "KB",
      baseline: { name: "the text itself", value: (tokens * " token".length) / 1_000 },
      ratio: drawnOn(({ bytes }) => bytes) / (tokens * " token".length),
      note: `${drawnOn(({ rows }) => rows).toFixed(0)} rows in all`
    }
  ]
}
