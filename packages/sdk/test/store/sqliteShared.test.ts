import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { StoreOp } from "../../src/store/RuntimeStore.ts"
import type { SqliteStoreExtension } from "../../src/store/sqlite/index.ts"
import {
  created,
  createSession,
  delta,
  failsWith,
  journalOf,
  readAll,
  startTurn
} from "../../src/testing/storeContractKit.ts"
import { rebuilds } from "../../src/testing/storeContractReads.ts"
import { fileIn, startChild, storeAt, temporaryRoot, walFrames } from "./sqliteKit.ts"

/** Ops that look at the connection from inside a transaction. */
const pragmas: SqliteStoreExtension = {
  name: "pragmas",
  migrations: [],
  ops: {
    synchronous: (tables) => tables.get<{ synchronous: number }>("PRAGMA synchronous")?.synchronous,
    pages: (tables) => tables.get<{ page_count: number }>("PRAGMA page_count")?.page_count,
    limit: (tables, args: { readonly pages: number }) => tables.get(`PRAGMA max_page_count = ${args.pages}`)
  },
  queries: {}
}
const look = (op: string, args: unknown = null): StoreOp => ({ extension: "pragmas", op, args })

/** One turn of the event loop, timers included. */
const turnOfLoop = Effect.callback<void>((resume) => {
  setTimeout(() => resume(Effect.void), 0)
})

describe("a SQLite store that is shared", () => {
  it.live("calls pending at the same moment share one commit, at most 256 of them [STO-042]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const wal = `${fileIn(root)}-wal`
      const commits = () => walFrames(wal).filter((frame) => frame.isCommit).length
      const before = commits()
      yield* store.appendUnfenced("ses_a", [created])
      const one = commits()
      assert.strictEqual(one - before, 1)
      yield* Effect.all(
        Array.from({ length: 20 }, () => store.appendUnfenced("ses_a", [created])),
        { concurrency: "unbounded" }
      )
      assert.isAtMost(commits() - one, 5, "one, unless the machine is so slow that the loop has to turn in between")
      const shared = commits()
      yield* Effect.all(
        Array.from({ length: 600 }, () => store.appendUnfenced("ses_a", [created])),
        { concurrency: "unbounded" }
      )
      assert.isAtLeast(commits() - shared, 3)
      assert.isAtMost(commits() - shared, 150)
      assert.strictEqual(yield* store.head("ses_a"), 622)
    })
  )

  it.live("whatever a reader can see is committed with FULL, also beside rows that need less [STO-041]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root, { extensions: [pragmas] })
      yield* createSession(store, "ses_a")
      const beat = store.heartbeat("ins_a")
      const write = store.appendUnfenced("ses_a", [created], { ops: [look("synchronous")] })
      const [, first] = yield* Effect.all([beat, write], { concurrency: "unbounded" })
      yield* beat
      const second = yield* write
      assert.deepStrictEqual([first.ops, second.ops], [[2], [2]])
    })
  )

  it.live("while another process holds the lock, reads and timers go on and the write waits [STO-043]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const holder = yield* startChild("hold", fileIn(root))
      assert.strictEqual(yield* holder.line, "held")
      const write = yield* Effect.forkChild(store.appendUnfenced("ses_a", [created]), { startImmediately: true })
      const stops: Array<number> = []
      for (let i = 0; i < 300; i++) {
        const before = performance.now()
        yield* turnOfLoop
        stops.push(performance.now() - before)
        assert.strictEqual(yield* store.head("ses_a"), 1)
      }
      // Other programs of the machine may stop it now and then; a call that blocked would do so each time.
      assert.isBelow(stops.filter((ms) => ms > 4 * 25).length, 4, "no call stops the loop for long")
      holder.send("release")
      const { value } = yield* Fiber.join(write)
      assert.strictEqual(value, 2)
    })
  )

  it.live("a lock that is not given back fails the call with store_busy and stores nothing [STO-043]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root, { busyLimitMs: 150 })
      yield* createSession(store, "ses_a")
      const holder = yield* startChild("hold", fileIn(root))
      assert.strictEqual(yield* holder.line, "held")
      const calls = Array.from({ length: 3 }, () => Effect.flip(store.appendUnfenced("ses_a", [created])))
      const failures = yield* Effect.all(calls, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        failures.map((failure) => [failure._tag, "retryable" in failure && failure.retryable]),
        Array.from({ length: 3 }, () => ["StoreBusy", true])
      )
      holder.send("release")
      assert.strictEqual(yield* holder.line, "released")
      assert.strictEqual(yield* store.head("ses_a"), 1)
      yield* store.appendUnfenced("ses_a", [created])
      assert.strictEqual(yield* store.head("ses_a"), 2)
    })
  )

  it.live("a call whose caller has gone away while it waits is not made [RT-027]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const holder = yield* startChild("hold", fileIn(root))
      yield* holder.line
      const write = yield* Effect.forkChild(store.appendUnfenced("ses_a", [created]), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(write)
      holder.send("release")
      yield* holder.line
      yield* store.appendUnfenced("ses_a", [{ payload: { type: "todo-update", todos: [] } }])
      assert.deepStrictEqual(
        (yield* journalOf(store, "ses_a")).map((event) => event.type),
        ["session-created", "todo-update"]
      )
    })
  )

  it.live(
    "ten processes on one file lose nothing and number everything once [STO-044, STO-002]",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryRoot
        const store = yield* storeAt(root)
        for (const id of ["ses_a", "ses_b"]) yield* createSession(store, id)
        const children = yield* Effect.all(
          Array.from({ length: 10 }, (_, i) => startChild("append", root, i % 2 === 0 ? "ses_a" : "ses_b", "20", "2"))
        )
        for (const child of children) assert.strictEqual(yield* child.exit, 0, child.stderr())
        for (const id of ["ses_a", "ses_b"]) {
          const events = yield* journalOf(store, id)
          assert.strictEqual(events.length, 1 + 5 * 20 * 2)
          assert.deepStrictEqual(
            events.map((event) => event.seq),
            Array.from({ length: events.length }, (_, i) => i + 1)
          )
          yield* rebuilds(store, id)
        }
      }),
    120_000
  )

  it.live(
    "processes that make the file at the same moment agree on one store [STO-045, STO-044]",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryRoot
        const stores = yield* Effect.all(Array.from({ length: 4 }, () => storeAt(root)))
        const children = yield* Effect.all(Array.from({ length: 4 }, () => startChild("artifact", root, "ses_a")))
        const infos = yield* Effect.all(
          stores.map((store) => store.open),
          { concurrency: "unbounded" }
        )
        for (const child of children) assert.match((yield* child.line) ?? child.stderr(), /^art_/u)
        assert.strictEqual(new Set(infos.map((info) => info.journalId)).size, 1)
      }),
    60_000
  )

  it.live("commits of another process wake those who listen [STO-044, STO-009]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const seen = yield* Effect.forkChild(
        store.wakeups.pipe(
          Stream.filter((wakeup) => wakeup.head >= 6),
          Stream.take(1),
          Stream.runCollect
        ),
        { startImmediately: true }
      )
      const child = yield* startChild("append", root, "ses_a", "5", "1")
      assert.strictEqual(yield* child.exit, 0, child.stderr())
      assert.deepStrictEqual(yield* Fiber.join(seen), [{ sessionId: "ses_a", head: 6 }])
    })
  )

  it.live("a deletion does not make another process's listeners miss a later commit [STO-044]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const [first, second] = [yield* storeAt(root), yield* storeAt(root)]
      for (const id of ["ses_a", "ses_b"]) yield* createSession(first, id)
      const heard = (wanted: string) =>
        second.wakeups.pipe(
          Stream.filter((wakeup) => wakeup.sessionId === wanted),
          Stream.take(1),
          Stream.runCollect
        )
      yield* second.open
      const b = yield* Effect.forkChild(heard("ses_b"), { startImmediately: true })
      yield* first.appendUnfenced("ses_b", [created])
      yield* Fiber.join(b)
      const a = yield* Effect.forkChild(heard("ses_a"), { startImmediately: true })
      yield* first.deleteSession("ses_b")
      yield* first.appendUnfenced("ses_a", [created])
      assert.deepStrictEqual(yield* Fiber.join(a), [{ sessionId: "ses_a", head: 2 }])
    })
  )

  it.live(
    "a full disk fails the write with store_full, changes nothing, and is over when there is room [STO-048]",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryRoot
        const store = yield* storeAt(root, { extensions: [pragmas] })
        yield* createSession(store, "ses_a")
        const turn = yield* startTurn(store, "ses_a")
        const { ops } = yield* store.append("ses_a", turn.fence, [delta(turn, "x")], { ops: [look("pages")] })
        yield* store.append("ses_a", turn.fence, [], { ops: [look("limit", { pages: Number(ops[0]) + 3 })] })
        const before = yield* readAll(store, "ses_a")
        const big = Array.from({ length: 40 }, () => delta(turn, "y".repeat(4000)))
        yield* failsWith("a write that has no room", "StoreFull", store.append("ses_a", turn.fence, big))
        const together = yield* Effect.all(
          [
            Effect.exit(store.append("ses_a", turn.fence, big)),
            Effect.exit(store.append("ses_a", turn.fence, [delta(turn, "small")]))
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          together.map((exit) => exit._tag),
          ["Failure", "Success"],
          "only the call that has no room fails"
        )
        const after = yield* readAll(store, "ses_a")
        assert.strictEqual(after?.journal.length, (before?.journal.length ?? 0) + 1)
        yield* rebuilds(store, "ses_a")
        yield* store.append("ses_a", turn.fence, [], { ops: [look("limit", { pages: 1_000_000 })] })
        yield* store.append("ses_a", turn.fence, big)
        assert.strictEqual(yield* store.head("ses_a"), (after?.journal.length ?? 0) + 40)
      })
  )
})
