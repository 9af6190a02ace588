/**
 * Durable appends through the runtime's SQLite store beside bare inserts of the same rows in transactions of the same size,
 * both WAL with `synchronous=FULL`.
 */
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { atLeast, compare, type Bench, type Row } from "./Report.ts"
import { entries, type NewEntry, type RuntimeStore } from "./SampleEvents.ts"
import { inRounds } from "./Statistics.ts"

const measure = "appends"
const turnId = "trn_01HZX5J3X0ABCDEFGHJKMNPQRS"
const sessionOf = (n: number): string => `ses_01HZX5J3X0ABCDEFGHJKMNP${String(n).padStart(3, "0")}`
const harness = { id: "scripted", access: "native" } as const

const rowOf = (id: string) => ({
  id,
  workspaceId: "default",
  directory: "/srv/app",
  harnessId: harness.id,
  access: harness.access,
  parentId: null,
  rootId: id,
  toolCallId: null,
  title: null,
  titleSource: null,
  status: null,
  phase: null,
  lastTurn: null,
  config: { harness },
  metadata: null,
  tags: [],
  harnessPayload: null,
  commands: null,
  owner: null,
  queueRevision: 0,
  queueHeld: null,
  createdAt: 0,
  updatedAt: 0,
  archivedAt: null,
  closedAt: null
})

/** A store with that many sessions in it. */
const openStore = async (root: string, sessions: number): Promise<RuntimeStore> => {
  const store = createSqliteRuntimeStore({ root })
  await Effect.runPromise(
    store.createSessions(
      Array.from({ length: sessions }, (_, n) => ({
        row: rowOf(sessionOf(n)),
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

const slices = (list: ReadonlyArray<NewEntry>, size: number): ReadonlyArray<ReadonlyArray<NewEntry>> =>
  Array.from({ length: Math.floor(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size))

const rawRate = (root: string, list: ReadonlyArray<NewEntry>, { batch, calls }: Batching): number => {
  mkdirSync(root, { recursive: true })
  const db = new Database(join(root, "raw.db"))
  try {
    db.pragma("journal_mode = WAL")
    db.pragma("synchronous = FULL")
    db.exec(rawTable)
    const insert = db.prepare(rawInsert)
    const rows = slices(list, batch).map((slice, n) =>
      slice.map(({ payload }, i) => ({
        sessionId: sessionOf(calls === "one" ? 0 : i),
        seq: calls === "one" ? n * batch + i + 2 : n + 2,
        type: payload.type,
        payload: JSON.stringify(payload)
      }))
    )
    const began = performance.now()
    for (const slice of rows) {
      db.exec("BEGIN IMMEDIATE")
      for (const row of slice) {
        insert.run(row.sessionId, row.seq, 1_700_000_000_000, row.type, turnId, null, row.payload, null)
      }
      db.exec("COMMIT")
    }
    return (rows.length * batch) / ((performance.now() - began) / 1_000)
  } finally {
    db.close()
  }
}

const ourRate = async (root: string, list: ReadonlyArray<NewEntry>, { batch, calls }: Batching): Promise<number> => {
  const store = await openStore(root, calls === "one" ? 1 : batch)
  try {
    const batches = slices(list, batch)
    const program = Effect.forEach(
      batches,
      (slice) =>
        calls === "one"
          ? store.append(sessionOf(0), 0, slice)
          : Effect.forEach(slice, (entry, i) => store.append(sessionOf(i), 0, [entry]), {
              concurrency: "unbounded",
              discard: true
            }),
      { discard: true }
    )
    const began = performance.now()
    await Effect.runPromise(program)
    return (batches.length * batch) / ((performance.now() - began) / 1_000)
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
  const rounds = bench.isQuick ? 5 : 11
  const rows: Array<Row> = []
  let stores = 0
  const folder = (): string => {
    stores += 1
    return join(bench.folder, `appends-${stores}`)
  }
  for (const batching of batchings) {
    const count = Math.ceil((bench.isQuick ? 1_500 : 4_000) * (batching.batch === 1 ? 0.5 : 2))
    const list = entries(count, turnId, batching.onlyDeltas)
    const results = await inRounds(rounds, [
      { name: "ours", run: () => ourRate(folder(), list, batching) },
      { name: "raw", run: () => Promise.resolve(rawRate(folder(), list, batching)) }
    ])
    rows.push(
      compare({
        measure,
        name: batching.name,
        unit: "/s",
        ours: results.get("ours") ?? [],
        baseline: "raw better-sqlite3",
        theirs: results.get("raw") ?? [],
        bar: (ratio) => atLeast(0.6, ratio, "≥ 0.6")
      })
    )
  }
  return rows
}
