import { assert, describe, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import {
  canonical,
  createSession,
  delta,
  failsWith,
  journalOf,
  note,
  notesForSqlite,
  putNote,
  startTurn
} from "../../src/testing/storeContractKit.ts"
import { rebuilds } from "../../src/testing/storeContractReads.ts"
import { fileIn, startChild, storeAt, temporaryRoot, walFrames } from "./sqliteKit.ts"

const raw = (root: string) => new Database(fileIn(root))

describe("a SQLite store after a crash", () => {
  it.live(
    "a process killed while it appends leaves every acknowledged event and no half of a call [STO-007, RT-180]",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryRoot
        yield* Effect.scoped(Effect.flatMap(storeAt(root), (store) => createSession(store, "ses_a")))
        for (let round = 1; round <= 6; round++) {
          const child = yield* startChild("append", root, "ses_a", "forever", "3")
          let acknowledged = 0
          for (let i = 0; i < round * 7; i++) acknowledged = Number((yield* child.line)?.slice(5))
          child.process.kill("SIGKILL")
          for (let line = yield* child.line; line !== undefined; line = yield* child.line)
            acknowledged = Number(line.slice(5))
          yield* child.exit
          const store = yield* storeAt(root)
          const events = yield* journalOf(store, "ses_a")
          assert.isAtLeast(events.length, acknowledged)
          assert.strictEqual(events.length % 3, 1, "calls of three events, after the first one of the session")
          assert.deepStrictEqual(
            events.map((event) => event.seq),
            Array.from({ length: events.length }, (_, i) => i + 1)
          )
          assert.strictEqual(yield* store.head("ses_a"), events.length)
          yield* rebuilds(store, "ses_a")
          yield* store.close
        }
      })
  )

  it.live(
    "a write-ahead log cut anywhere opens to a committed prefix [STO-049]",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryRoot
        const options = { extensions: [notesForSqlite] }
        yield* Effect.scoped(Effect.flatMap(storeAt(root, options), (store) => createSession(store, "ses_a")))
        const store = yield* storeAt(root, options)
        const turn = yield* startTurn(store, "ses_a")
        const states: Array<string> = []
        const state = Effect.suspend(() => Effect.all([journalOf(store, "ses_a"), note(store, "n")]))
        for (let i = 0; i < 4; i++) {
          states.push(canonical(yield* state))
          yield* store.append(
            "ses_a",
            turn.fence,
            [delta(turn, `${i}`, `p${i}`), delta(turn, "x".repeat(5000), `p${i}`)],
            {
              ops: [putNote("n", `${i}`)]
            }
          )
        }
        states.push(canonical(yield* state))
        const wal = `${fileIn(root)}-wal`
        const frames = walFrames(wal)
        const commits = frames.flatMap((frame, i) =>
          frame.isCommit ? [frames[i + 1]?.offset ?? readFileSync(wal).length] : []
        )
        const lasting = commits.slice(-5)
        const whole = lasting.at(-1) ?? 0
        const cuts = new Set<number>([whole])
        for (const { offset } of frames.filter((frame) => frame.offset >= (lasting[0] ?? 0))) {
          for (let byte = 0; byte <= 24; byte++) cuts.add(offset + byte)
          for (let byte = 0; byte < 4120; byte += 401) cuts.add(Math.min(offset + byte, whole))
          cuts.add(offset - 1)
        }
        const copy = yield* temporaryRoot
        for (const cut of [...cuts].filter((byte) => byte >= (lasting[0] ?? 0)).sort((a, b) => a - b)) {
          rmSync(`${fileIn(copy)}-shm`, { force: true })
          copyFileSync(fileIn(root), fileIn(copy))
          copyFileSync(wal, `${fileIn(copy)}-wal`)
          truncateSync(`${fileIn(copy)}-wal`, cut)
          const survived = lasting.filter((end) => end <= cut).length
          const db = new Database(fileIn(copy), { readonly: true })
          const head = db.prepare("SELECT head FROM tr_session WHERE id = 'ses_a'").pluck().get()
          const last = db.prepare("SELECT max(seq) FROM tr_event WHERE session_id = 'ses_a'").pluck().get()
          db.close()
          assert.deepStrictEqual([head, last], [4 + (survived - 1) * 2, 4 + (survived - 1) * 2], `cut at ${cut}`)
        }
        for (const [i, end] of lasting.entries()) {
          rmSync(`${fileIn(copy)}-shm`, { force: true })
          copyFileSync(fileIn(root), fileIn(copy))
          copyFileSync(wal, `${fileIn(copy)}-wal`)
          truncateSync(`${fileIn(copy)}-wal`, Math.min(end + 1000, whole))
          const reopened = yield* storeAt(copy, options)
          const found = yield* Effect.all([journalOf(reopened, "ses_a"), note(reopened, "n")])
          assert.strictEqual(canonical(found), states[i])
          yield* rebuilds(reopened, "ses_a")
          yield* reopened.close
        }
      }),
    60_000
  )

  it.live("chunks of an artifact whose event was never committed are removed at the next open [RT-211]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const first = yield* storeAt(root)
      yield* createSession(first, "ses_a")
      const child = yield* startChild("artifact", root, "ses_a")
      const id = (yield* child.line) ?? ""
      const chunks = () => {
        const db = raw(root)
        const count = db.prepare("SELECT count(*) FROM tr_artifact_chunk WHERE id = ?").pluck().get(id)
        db.close()
        return count
      }
      const own = yield* first.putArtifact("ses_a", "text/plain", new Uint8Array(10))
      yield* Effect.scoped(Effect.flatMap(storeAt(root), (store) => store.open))
      assert.strictEqual(chunks(), 3, "the writer is alive")
      child.process.kill("SIGKILL")
      yield* child.exit
      yield* Effect.scoped(Effect.flatMap(storeAt(root), (store) => store.open))
      assert.strictEqual(chunks(), 0)
      yield* first.appendUnfenced("ses_a", [{ payload: { type: "todo-update", todos: [] }, artifactRows: [own] }])
      assert.strictEqual((yield* first.artifactBytes(own.id, 0, 99)).length, 10, "those of a store that is open stay")
    })
  )

  it.live("a deleted session leaves no chunk of its artifacts [RT-051]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const row = yield* store.putArtifact("ses_a", "x/y", new Uint8Array(10 << 20))
      yield* store.appendUnfenced("ses_a", [{ payload: { type: "todo-update", todos: [] }, artifactRows: [row] }])
      yield* store.deleteSession("ses_a")
      const db = raw(root)
      assert.strictEqual(db.prepare("SELECT count(*) FROM tr_artifact_chunk").pluck().get(), 0)
      db.close()
    })
  )

  it.live("what a deletion left over is removed at the next open [RT-051]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* storeAt(root)
          yield* createSession(store, "ses_a")
          const turn = yield* startTurn(store, "ses_a")
          yield* store.append(
            "ses_a",
            turn.fence,
            Array.from({ length: 3000 }, () => delta(turn, "x"))
          )
        })
      )
      const db = raw(root)
      db.exec("INSERT INTO tr_tombstone VALUES ('ses_a', 0, 0, 99); DELETE FROM tr_session")
      const store = yield* storeAt(root)
      yield* failsWith("reading", "SessionGone", store.read("ses_a", 0, 1))
      const left = ["tr_event", "tr_message", "tr_part", "tr_turn", "tr_receipt"].map((table) =>
        db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
      )
      assert.deepStrictEqual(left, [0, 0, 0, 0, 0])
      assert.deepStrictEqual(db.prepare("SELECT session_id, purged FROM tr_tombstone").raw().all(), [["ses_a", 1]])
      db.close()
      assert.isTrue(existsSync(join(root, "agent-runtime.db")))
    })
  )
})
