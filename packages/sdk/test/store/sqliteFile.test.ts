import { assert, describe, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { mkdirSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openDatabase } from "../../src/store/sqlite/Database.ts"
import type { SqliteStoreExtension } from "../../src/store/sqlite/index.ts"
import { createSession, journalOf, note, notesForSqlite, putNote } from "../../src/testing/storeContractKit.ts"
import { fileIn, startChild, storeAt, temporaryRoot } from "./sqliteKit.ts"

const edit = (root: string, ...statements: ReadonlyArray<string>) =>
  Effect.sync(() => {
    const db = new Database(fileIn(root))
    for (const statement of statements) db.exec(statement)
    db.close()
  })

const migrationsOf = (root: string): ReadonlyArray<unknown> => {
  const db = new Database(fileIn(root), { readonly: true })
  const names = db.prepare("SELECT name FROM tr_migration ORDER BY id").pluck().all()
  db.close()
  return names
}

/** A store file with one session, closed. */
const madeStore = Effect.fnUntraced(function* () {
  const root = yield* temporaryRoot
  yield* Effect.scoped(Effect.flatMap(storeAt(root), (store) => createSession(store, "ses_a")))
  return root
})

describe("the file of a SQLite store", () => {
  it.live("pragmas are set and read back [STO-040]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const { db } = openDatabase(Database, {
        root,
        busyTimeoutMs: 17,
        extensions: [],
        journalId: () => "jrn_x",
        now: () => 0
      })
      const pragma = (name: string) => db.pragma(name, { simple: true })
      assert.deepStrictEqual(["journal_mode", "synchronous", "busy_timeout", "foreign_keys"].map(pragma), [
        "wal",
        2,
        17,
        1
      ])
      db.close()
    })
  )

  it.live("root is made with mode 0700, file and its side files with 0600 [STO-040]", () =>
    Effect.gen(function* () {
      const root = join(yield* temporaryRoot, "deep", "er")
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      assert.strictEqual(statSync(root).mode & 0o777, 0o700)
      const modes = readdirSync(root).map((name) => [name, statSync(join(root, name)).mode & 0o777])
      assert.deepStrictEqual(modes.sort(), [
        ["agent-runtime.db", 0o600],
        ["agent-runtime.db-shm", 0o600],
        ["agent-runtime.db-wal", 0o600]
      ])
    })
  )

  it.live("migrations run once, the store's before the extensions', each under its name [STO-045]", () =>
    Effect.gen(function* () {
      const root = yield* madeStore()
      assert.deepStrictEqual(migrationsOf(root), [
        "store/0001_tables",
        "store/0002_usage_totals",
        "store/0003_peer_cursor"
      ])
      const second: SqliteStoreExtension = {
        ...notesForSqlite,
        migrations: [
          ...notesForSqlite.migrations,
          { id: "0002", name: "mark", sql: "ALTER TABLE nt_note ADD COLUMN mark TEXT" }
        ]
      }
      for (const extension of [notesForSqlite, notesForSqlite, second]) {
        yield* Effect.scoped(
          Effect.flatMap(storeAt(root, { extensions: [extension] }), (store) =>
            store.appendUnfenced("ses_a", [], { ops: [putNote("n")] })
          )
        )
      }
      assert.deepStrictEqual(migrationsOf(root), [
        "store/0001_tables",
        "store/0002_usage_totals",
        "store/0003_peer_cursor",
        "notes/0001_note",
        "notes/0002_mark"
      ])
      const store = yield* storeAt(root, { extensions: [notesForSqlite] })
      assert.deepStrictEqual(yield* note(store, "n"), { text: "kept", puts: 3 })
    })
  )

  it.live("a migration that fails changes nothing and fails the opening [STO-045]", () =>
    Effect.gen(function* () {
      const root = yield* madeStore()
      const broken: SqliteStoreExtension = {
        name: "broken",
        migrations: [{ id: "0001", name: "half", sql: "CREATE TABLE br_half (x); CREATE TABLE tr_session (y)" }],
        ops: {},
        queries: {}
      }
      const store = yield* storeAt(root, { extensions: [broken] })
      const failures = yield* Effect.all([Effect.flip(store.open), Effect.flip(store.head("ses_a"))])
      assert.deepStrictEqual(
        failures.map((failure) => failure._tag),
        ["StoreUnavailable", "StoreUnavailable"]
      )
      const db = new Database(fileIn(root), { readonly: true })
      assert.strictEqual(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'br_half'").get(), undefined)
      db.close()
      const good = yield* storeAt(root)
      assert.strictEqual(yield* good.head("ses_a"), 1)
    })
  )

  it.live("a file of a newer minor version is used as it is [STO-045]", () =>
    Effect.gen(function* () {
      const root = yield* madeStore()
      yield* edit(
        root,
        "UPDATE tr_meta SET value = '1.7' WHERE key = 'schema_version'",
        "ALTER TABLE tr_turn ADD COLUMN later TEXT"
      )
      const store = yield* storeAt(root)
      assert.strictEqual((yield* store.open).schemaVersion, "1.7")
      yield* createSession(store, "ses_b")
      assert.strictEqual(yield* store.head("ses_b"), 1)
    })
  )

  it.live("a newer major version, another database and another file are refused and left as they are [STO-046]", () =>
    Effect.gen(function* () {
      const newer = yield* madeStore()
      yield* edit(
        newer,
        "UPDATE tr_meta SET value = '2.0' WHERE key = 'schema_version'",
        "PRAGMA wal_checkpoint(TRUNCATE)"
      )
      const foreign = yield* temporaryRoot
      yield* edit(foreign, "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')")
      const foreignWal = yield* temporaryRoot
      yield* edit(foreignWal, "PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)")
      const text = yield* temporaryRoot
      writeFileSync(fileIn(text), "this is no database, and longer than a header of one hundred bytes ".repeat(4))
      for (const [root, found] of [
        [newer, "2.0"],
        [foreign, "another database"],
        [foreignWal, "another database"],
        [text, "not a database"]
      ] as const) {
        const before = readFileSync(fileIn(root))
        const store = yield* storeAt(root)
        const failure = yield* Effect.flip(store.open)
        assert.deepStrictEqual(
          failure._tag === "UnsupportedRuntimeStoreSchema" ? [failure.found, failure.wanted] : failure,
          [found, "1.2"]
        )
        assert.strictEqual((yield* Effect.flip(store.head("ses_a")))._tag, "UnsupportedRuntimeStoreSchema")
        yield* store.close
        assert.isTrue(readFileSync(fileIn(root)).equals(before), `${found} is unchanged`)
      }
    })
  )

  it.live("a root that cannot be made fails every call with the same error [RT-020]", () =>
    Effect.gen(function* () {
      const base = yield* temporaryRoot
      writeFileSync(join(base, "file"), "")
      const store = yield* storeAt(join(base, "file", "under"))
      const calls: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string; readonly reason?: string }>> = [
        store.open,
        store.info,
        Effect.mapError(store.head("ses_a"), (error) => error as { readonly _tag: string; readonly reason?: string }),
        store.instances
      ]
      for (const call of calls) {
        const failure = yield* Effect.flip(call)
        assert.deepStrictEqual([failure._tag, failure.reason], ["StoreUnavailable", "ENOTDIR"])
      }
    })
  )

  it.live("a missing driver package is named with the command that installs it [STO-050, RT-003]", () =>
    Effect.gen(function* () {
      const child = yield* startChild("withoutDriver", yield* temporaryRoot)
      const failures = JSON.parse((yield* child.line) ?? child.stderr()) as ReadonlyArray<{
        _tag: string
        message: string
      }>
      assert.deepStrictEqual(
        failures.map((failure) => failure._tag),
        ["StoreDependencyMissing", "StoreDependencyMissing"]
      )
      assert.include(failures[0]?.message, "npm install better-sqlite3@")
    })
  )

  it.live("a row that does not decode fails its own session only [STO-047, RT-053]", () =>
    Effect.gen(function* () {
      const root = yield* madeStore()
      yield* Effect.scoped(Effect.flatMap(storeAt(root), (store) => createSession(store, "ses_b")))
      yield* edit(
        root,
        "UPDATE tr_session SET config = '{half' WHERE id = 'ses_a'",
        "INSERT INTO tr_todo VALUES ('ses_a', 0, 'x')"
      )
      const store = yield* storeAt(root)
      const failure = yield* Effect.flip(store.getSession("ses_a"))
      assert.deepStrictEqual(failure._tag === "RuntimeStoreCorruptRow" ? [failure.table, failure.key] : failure, [
        "tr_session",
        "ses_a"
      ])
      assert.strictEqual((yield* Effect.flip(store.todos("ses_a")))._tag, "RuntimeStoreCorruptRow")
      assert.strictEqual((yield* Effect.flip(store.updateSession("ses_a", {}, [])))._tag, "RuntimeStoreCorruptRow")
      assert.strictEqual((yield* store.getSession("ses_b"))?.head, 1)
      const listed = yield* store.listSessions({ limit: 10 })
      assert.deepStrictEqual(
        listed.map((row) => [row.id, row.corrupt]),
        [
          ["ses_a", "config"],
          ["ses_b", undefined]
        ]
      )
      yield* edit(root, "UPDATE tr_session SET config = '{}', status = 'dancing' WHERE id = 'ses_a'")
      assert.strictEqual((yield* Effect.flip(store.getSession("ses_a")))._tag, "RuntimeStoreCorruptRow")
    })
  )

  it.live(
    "an event that does not decode is a diagnostic with its cursor; an unknown type is given as stored [RT-186]",
    () =>
      Effect.gen(function* () {
        const root = yield* madeStore()
        yield* Effect.scoped(
          Effect.flatMap(storeAt(root), (store) =>
            store.appendUnfenced(
              "ses_a",
              Array.from({ length: 4 }, () => ({ payload: { type: "todo-update", todos: [] } as const }))
            )
          )
        )
        yield* edit(
          root,
          "UPDATE tr_event SET payload = '{\"type\":' WHERE seq = 2",
          "UPDATE tr_event SET payload = 'null' WHERE seq = 3",
          'UPDATE tr_event SET type = \'later-thing\', payload = \'{"type":"later-thing","x":1}\' WHERE seq = 4'
        )
        const store = yield* storeAt(root)
        const events = yield* journalOf(store, "ses_a")
        assert.deepStrictEqual(
          events.map((event) => [
            event.seq,
            event.type,
            event.payload.type === "diagnostic" ? event.payload.diagnostic.code : ""
          ]),
          [
            [1, "session-created", ""],
            [2, "diagnostic", "event_undecodable"],
            [3, "diagnostic", "event_undecodable"],
            [4, "later-thing", ""],
            [5, "todo-update", ""]
          ]
        )
        assert.deepStrictEqual(events[3]?.payload as unknown, { type: "later-thing", x: 1 })
      })
  )

  it.live("a file that is removed or replaced while it is open takes no more commits and is still read [RUN-064]", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      const store = yield* storeAt(root)
      yield* createSession(store, "ses_a")
      const aside = `${fileIn(root)}.aside`
      renameSync(fileIn(root), aside)
      const removed = yield* Effect.flip(createSession(store, "ses_b"))
      writeFileSync(fileIn(root), "")
      const replaced = yield* Effect.flip(createSession(store, "ses_b"))
      for (const failure of [removed, replaced]) {
        assert.strictEqual(failure._tag, "StoreUnavailable")
        assert.match(failure.message, /removed or replaced while it was open/u)
      }
      assert.strictEqual((yield* journalOf(store, "ses_a")).length, 1)
      renameSync(aside, fileIn(root))
      yield* createSession(store, "ses_b")
      assert.strictEqual((yield* journalOf(store, "ses_b")).length, 1)
    })
  )

  it.live("a root that exists keeps its mode [STO-040]", () =>
    Effect.gen(function* () {
      const root = join(yield* temporaryRoot, "mine")
      mkdirSync(root, { mode: 0o755 })
      yield* Effect.flatMap(storeAt(root), (store) => store.open)
      assert.strictEqual(statSync(root).mode & 0o777, 0o755)
    })
  )
})
