/**
 * Durable appends through the runtime's SQLite store beside bare inserts of the same rows in transactions of the same size,
 * both WAL with `synchronous=FULL`.
 */
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { sessionOf } from "@tackroom/sdk/testing"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { atLeast, compare, type Bench, type Row } from "./Report.ts"
import { entries, type NewEntry, type RuntimeStore } from "./SampleEvents.ts"
import { inRounds, median } from "./Statistics.ts"

const measure = "appends"
const turnId = "trn_01HZX5J3X0ABCDEFGHJKMNPQRS"
const idOf = (n: number): string => `ses_01HZX5J3X0ABCDEFGHJKMNP${String(n).padStart(3, "0")}`
const harness = { id: "scripted", access: "native" } as const

/** A store with that many sessions in it. */
const openStore = async (root: string, sessions: number): Promise<RuntimeStore> => {
  const store = createSqliteRuntimeStore({ root })
  await Effect.runPromise(
    store.createSessions(
      Array.from({ length: sessions }, (_, n) => ({
        row: sessionOf(idOf(n)),
        entries: [{ payload: { type: "session-created", harness } as const }]
      }))
    )
  )
  return store
}

const rawTable = `CREATE TABLE tr_event (session_id TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
  type TEXT NOT NULL, turn_id TEXT, after_turn TEXT, payload TEXT NOT NULL, artifacts TEXT,
  PRIMARY KEY (session_id, seq)) STRICT`
const rawInsert = `INSERT INTO tr_event (session_id, seq, at, type, turn_id, after_turn, payload, artifacts)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

interface Batching {
  readonly name: string
  readonly batch: number
  readonly onlyDeltas: boolean
  /** One call of the whole batch, or one call an event from as many sessions at once. */
  readonly calls: "one" | "many"
}

interface Spent {
  readonly rate: number
  /** Microseconds of a processor an event. */
  readonly processor: number
}

/** Counts events until the time is over, so that a slow disk makes no run longer. */
const stopwatch = (ms: number) => {
  const began = performance.now()
  const before = process.cpuUsage()
  return {
    isOver: () => performance.now() - began >= ms,
    spent: (events: number): Spent => {
      const { system, user } = process.cpuUsage(before)
      return { rate: events / ((performance.now() - began) / 1_000), processor: (system + user) / events }
    }
  }
}

const rawRun = (root: string, list: ReadonlyArray<NewEntry>, ms: number, { batch, calls }: Batching): Spent => {
  mkdirSync(root, { recursive: true })
  const db = new Database(join(root, "raw.db"))
  try {
    db.pragma("journal_mode = WAL")
    db.pragma("synchronous = FULL")
    db.exec(rawTable)
    const insert = db.prepare(rawInsert)
    const begin = db.prepare("BEGIN IMMEDIATE")
    const commit = db.prepare("COMMIT")
    const rows = list.map(({ payload }, i) => ({
      sessionId: idOf(calls === "one" ? 0 : i),
      type: payload.type,
      payload: JSON.stringify(payload)
    }))
    const time = stopwatch(ms)
    let at = 0
    for (let batches = 1; ; batches++) {
      begin.run()
      for (let i = 0; i < batch; i++) {
        const row = rows[calls === "one" ? at % rows.length : i]
        const seq = calls === "one" ? at + 2 : batches + 1
        at += 1
        if (row !== undefined) {
          insert.run(row.sessionId, seq, 1_700_000_000_000, row.type, turnId, null, row.payload, null)
        }
      }
      commit.run()
      if (time.isOver()) return time.spent(at)
    }
  } finally {
    db.close()
  }
}

const ourRun = async (
  root: string,
  list: ReadonlyArray<NewEntry>,
  ms: number,
  { batch, calls }: Batching
): Promise<Spent> => {
  const store = await openStore(root, calls === "one" ? 1 : batch)
  try {
    const slices = Array.from({ length: Math.floor(list.length / batch) }, (_, n) =>
      list.slice(n * batch, (n + 1) * batch)
    )
    const appendBatch = (slice: ReadonlyArray<NewEntry>) =>
      calls === "one"
        ? store.append(idOf(0), 0, slice)
        : Effect.forEach(slice, (entry, i) => store.append(idOf(i), 0, [entry]), {
            concurrency: "unbounded",
            discard: true
          })
    const program = Effect.gen(function* () {
      const time = stopwatch(ms)
      for (let batches = 1; ; batches++) {
        yield* appendBatch(slices[(batches - 1) % slices.length] ?? [])
        if (time.isOver()) return time.spent(batches * batch)
      }
    })
    return await Effect.runPromise(program)
  } finally {
    await Effect.runPromise(store.close)
  }
}

const batchings: ReadonlyArray<Batching> = [
  ...[1, 16, 128].flatMap((batch): ReadonlyArray<Batching> => [
    { name: `a turn's events, batch ${batch}`, batch, onlyDeltas: false, calls: "one" },
    { name: `deltas, batch ${batch}`, batch, onlyDeltas: true, calls: "one" }
  ]),
  ...[16, 128].map((batch): Batching => ({
    name: `${batch} sessions at once, one event each`,
    batch,
    onlyDeltas: true,
    calls: "many"
  }))
]

export const appends = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const rounds = bench.isQuick ? 7 : 21
  const ms = bench.isQuick ? 50 : 120
  const rows: Array<Row> = []
  let stores = 0
  const folder = (): string => {
    stores += 1
    return join(bench.folder, `appends-${stores}`)
  }
  for (const batching of batchings) {
    const list = entries(3_328, turnId, batching.onlyDeltas)
    const processor = { ours: new Array<number>(), raw: new Array<number>() }
    const keep = (kept: Array<number>, spent: Spent): number => {
      kept.push(spent.processor)
      return spent.rate
    }
    const results = await inRounds(rounds, [
      { name: "ours", run: async () => keep(processor.ours, await ourRun(folder(), list, ms, batching)) },
      { name: "raw", run: () => Promise.resolve(keep(processor.raw, rawRun(folder(), list, ms, batching))) }
    ])
    const spent = `${median(processor.ours).toFixed(1)} µs of processor time an event, raw ${median(processor.raw).toFixed(1)} µs`
    rows.push(
      compare({
        measure,
        name: batching.name,
        unit: "/s",
        ours: results.get("ours") ?? [],
        baseline: "raw better-sqlite3",
        theirs: results.get("raw") ?? [],
        ...(batching.calls === "one" ? { bar: (ratio: number) => atLeast(0.6, ratio, "≥ 0.6") } : {}),
        note:
          batching.calls === "one"
            ? spent
            : `${spent}; ours also moves the head of each session: two more statements for each of the baseline's`
      })
    )
  }
  return rows
}
