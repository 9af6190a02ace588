import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Exit, Fiber } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as GroupWrites from "../../src/database/GroupWrites.ts"
import { openFile } from "../../src/database/SqliteFile.ts"

class Refused extends Data.TaggedError("Refused") {}
const refuses = (value: unknown): value is Refused => value instanceof Refused
const schema = {
  major: 1,
  minor: 0,
  steps: [{ name: "0001_words", sql: "CREATE TABLE words (word TEXT PRIMARY KEY) STRICT" }]
}

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "writes-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

const opened = Effect.gen(function* () {
  const file = path.join(yield* folder, "words.sqlite")
  const db = yield* openFile(file, schema)
  const faults: Array<unknown> = []
  const writes = yield* GroupWrites.make(db, refuses, (cause) => faults.push(cause))
  const put = db.prepare("INSERT INTO words (word) VALUES (?)")
  const words = db.prepare<[], string>("SELECT word FROM words ORDER BY word").pluck()
  return { file, db, writes, put, words, faults }
})

describe("writes that share a commit", () => {
  it.live("are each whole or not there, and what follows a commit comes after it", () =>
    Effect.gen(function* () {
      const { writes, put, words, faults } = yield* opened
      const told: Array<string> = []
      const state = { value: "start" }
      const change = (value: string, undo: (work: () => void) => void) => {
        const before = state.value
        state.value = value
        undo(() => (state.value = before))
      }
      const exits = yield* Effect.all(
        [
          writes.write(({ after, undo }) => {
            put.run("a")
            change("a", undo)
            after(() => {
              told.push(`a with ${words.all().join("")}`)
              throw new Error("whoever listens fails")
            })
            return "a"
          }),
          writes.write(({ after, undo }) => {
            put.run("b")
            change("b", undo)
            after(() => told.push("b"))
            return new Refused()
          }),
          writes.write(() => {
            // A mistake of its own: the word is there already.
            put.run("a")
            return state.value
          }),
          writes.write(({ after }) => {
            put.run("c")
            after(() => told.push(`c with ${state.value}`))
            return state.value
          })
        ].map((one) => Effect.exit(one)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, false, true])
      assert.deepStrictEqual(words.all(), ["a", "c"])
      assert.deepStrictEqual(told, ["a with ac", "c with a"])
      assert.strictEqual(state.value, "a")
      assert.lengthOf(faults, 1)
    }).pipe(Effect.scoped)
  )

  it.live("undo what they changed in memory when the commit fails, the last change first", () =>
    Effect.gen(function* () {
      const { db, writes, put, words } = yield* opened
      let state = "start"
      const change = (value: string) =>
        Effect.exit(
          writes.write(({ undo }) => {
            const before = state
            put.run(value)
            state = value
            undo(() => (state = before))
            return value
          })
        )
      // What is deferred fails at the commit and not before.
      db.exec(
        "CREATE TABLE owner (id INTEGER PRIMARY KEY); CREATE TABLE owned (id INTEGER REFERENCES owner (id) DEFERRABLE INITIALLY DEFERRED)"
      )
      const exits = yield* Effect.all(
        [
          change("x"),
          change("y"),
          Effect.exit(writes.write(() => String(db.prepare("INSERT INTO owned VALUES (7)").run().changes)))
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [false, false, false])
      assert.deepStrictEqual([state, words.all()], ["start", []])
      assert.isTrue(Exit.isSuccess(yield* change("z")))
      assert.deepStrictEqual([state, words.all()], ["z", ["z"]])
    }).pipe(Effect.scoped)
  )

  it.live("wait for a file that another holds without holding the process [RIG-320]", () =>
    Effect.gen(function* () {
      const { file, writes, put } = yield* opened
      const other = yield* openFile(file, schema)
      other.exec("BEGIN IMMEDIATE")
      const writing = yield* Effect.forkChild(Effect.exit(writes.write(() => put.run("late").changes)), {
        startImmediately: true
      })
      // The loop turns while the write waits: the longest time between two turns tells.
      const longest = yield* Effect.callback<number>((resume) => {
        let found = 0
        let last = performance.now()
        let turns = 0
        const ticker = setInterval(() => {
          found = Math.max(found, performance.now() - last)
          last = performance.now()
          turns += 1
          if (turns < 80) return
          clearInterval(ticker)
          resume(Effect.succeed(found))
        }, 5)
        return Effect.sync(() => clearInterval(ticker))
      })
      other.exec("COMMIT")
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(writing)))
      assert.isBelow(longest, 4 * 60)
    }).pipe(Effect.scoped)
  )

  it.live("refuse a file of a newer major version, and of another program", () =>
    Effect.gen(function* () {
      const { file, db } = yield* opened
      db.prepare("UPDATE file_meta SET value = '2.0' WHERE key = 'schema_version'").run()
      const newer = yield* Effect.exit(Effect.scoped(openFile(file, schema)))
      assert.isTrue(Exit.isFailure(newer))
      const foreign = path.join(yield* folder, "foreign.sqlite")
      const plain = yield* openFile(foreign, schema)
      plain.exec("DROP TABLE file_meta")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.scoped(openFile(foreign, schema)))))
    }).pipe(Effect.scoped)
  )
})
