/**
 * Durable appends of the SQLite store against raw inserts of the same rows in the same batch sizes, both `synchronous=FULL`.
 * Run by hand: `node test/store/appendBench.ts [directory]`. Gates nothing.
 */
import Database from "better-sqlite3"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createSqliteRuntimeStore } from "../../src/store/sqlite/index.ts"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"

const base = process.argv[2] ?? tmpdir()
const text = "the quick brown fox jumps over the lazy dog and runs on ".repeat(3)
const harness = { id: "scripted", access: "native" } as const
const payload = { type: "text-delta", delta: text, messageId: "msg_1_r", partId: "part_1" } as const
const turnId = "trn_01HZX5J3X0ABCDEFGHJKMNPQRS"
const sessionOf = (i: number) => `ses_01HZX5J3X0ABCDEFGHJKMNP${String(i).padStart(3, "0")}`

const insert = `INSERT INTO tr_event (session_id, seq, at, type, turn_id, after_turn, payload, artifacts)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const raw = (batch: number, commits: number, sessions: number): number => {
  const root = mkdtempSync(join(base, "raw-"))
  const db = new Database(join(root, "raw.db"))
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.exec(`CREATE TABLE tr_event (session_id TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, type TEXT NOT NULL,
    turn_id TEXT, after_turn TEXT, payload TEXT NOT NULL, artifacts TEXT, PRIMARY KEY (session_id, seq)) STRICT`)
  const statement = db.prepare(insert)
  const bytes = JSON.stringify(payload)
  const started = performance.now()
  for (let n = 0; n < commits; n++) {
    db.exec("BEGIN IMMEDIATE")
    for (let i = 0; i < batch; i++) {
      const seq = sessions === 1 ? n * batch + i : n
      statement.run(
        sessionOf(sessions === 1 ? 0 : i),
        seq + 1,
        1_700_000_000_000,
        payload.type,
        turnId,
        null,
        bytes,
        null
      )
    }
    db.exec("COMMIT")
  }
  const rate = (batch * commits) / ((performance.now() - started) / 1000)
  db.close()
  rmSync(root, { recursive: true })
  return rate
}

const create = (store: RuntimeStore, id: string) =>
  store.createSessions([
    {
      row: {
        id,
        workspaceId: "default",
        directory: "/srv/app",
        harnessId: "scripted",
        access: "native",
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
      },
      entries: [{ payload: { type: "session-created", harness } }]
    }
  ])

const ours = (batch: number, commits: number, mode: "one call" | "calls, one session" | "calls, many sessions") =>
  Effect.gen(function* () {
    const root = mkdtempSync(join(base, "tr-"))
    const store = createSqliteRuntimeStore({ root })
    const sessions = mode === "calls, many sessions" ? batch : 1
    for (let i = 0; i < sessions; i++) yield* create(store, sessionOf(i))
    const entry = { payload, turnId }
    const entries = Array.from({ length: batch }, () => entry)
    const calls = Array.from({ length: batch }, (_, i) => i)
    const started = performance.now()
    for (let n = 0; n < commits; n++) {
      if (mode === "one call") yield* store.append(sessionOf(0), 0, entries)
      else {
        yield* Effect.forEach(calls, (i) => store.append(sessionOf(sessions === 1 ? 0 : i), 0, [entry]), {
          concurrency: "unbounded",
          discard: true
        })
      }
    }
    const rate = (batch * commits) / ((performance.now() - started) / 1000)
    yield* store.close
    rmSync(root, { recursive: true })
    return rate
  })

const rounds = 12
const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

const program = Effect.gen(function* () {
  for (const batch of [1, 16, 128]) {
    const commits = Math.min(400, Math.ceil(12_000 / batch))
    for (const mode of ["one call", "calls, one session", "calls, many sessions"] as const) {
      const sessions = mode === "calls, many sessions" ? batch : 1
      const pairs: Array<readonly [number, number]> = []
      for (let round = 0; round < rounds; round++) {
        pairs.push([raw(batch, commits, sessions), yield* ours(batch, commits, mode)])
      }
      const best = [Math.max(...pairs.map(([a]) => a)), Math.max(...pairs.map(([, b]) => b))] as const
      const ratio = median(pairs.map(([a, b]) => b / a))
      process.stdout.write(
        `batch ${batch}, ${mode}: best ${Math.round(best[1])}/s of raw ${Math.round(best[0])}/s = ${(best[1] / best[0]).toFixed(2)}, median ratio ${ratio.toFixed(2)}\n`
      )
    }
  }
})

await Effect.runPromise(program)
