/**
 * Opens a small database of the host and brings its schema up to date, each migration in a transaction of its own.
 *
 * It owns the settings that make a commit durable. Failure is `StartupFailed` with reason `storage`; the file is closed
 * and unchanged then.
 */
import { StartupFailed } from "@tackroom/protocol/run"
import Database from "better-sqlite3"
import { Data, Effect, Schedule, type Scope } from "effect"
import * as fs from "node:fs"

export type OpenDatabase = Database.Database

export interface SchemaStep {
  /** `0001_name`, forward only. */
  readonly name: string
  readonly sql: string
}

const failed = (file: string, cause: unknown) =>
  new StartupFailed({
    reason: "storage",
    path: file,
    detail: `the database could not be opened: ${cause instanceof Error ? cause.message : "unknown cause"}`
  })

const migrate = (db: Database.Database, steps: ReadonlyArray<SchemaStep>): void => {
  db.exec("CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT")
  const names = db.prepare<[], string>("SELECT name FROM migration").pluck()
  const applied = new Set(names.all())
  const unknown = [...applied].find((name) => !steps.some((step) => step.name === name))
  if (unknown !== undefined) throw new Error(`it was written by a newer version (${unknown})`)
  const record = db.prepare("INSERT INTO migration (name, applied_at) VALUES (?, unixepoch('subsec') * 1000)")
  for (const step of steps) {
    if (applied.has(step.name)) continue
    db.transaction(() => {
      // Another process may have been first.
      if (names.all().includes(step.name)) return
      db.exec(step.sql)
      record.run(step.name)
    }).immediate()
  }
}

/** Another process holds the file for a moment, mostly because it opens it for the first time too. */
class FileBusy extends Data.TaggedError("FileBusy")<{ readonly cause: unknown }> {}

const isBusy = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && String(cause.code).startsWith("SQLITE_BUSY")

const open = (file: string, steps: ReadonlyArray<SchemaStep>): Database.Database => {
  if (!fs.existsSync(file)) fs.closeSync(fs.openSync(file, "a", 0o600))
  const db = new Database(file, { timeout: 20 })
  try {
    db.pragma("journal_mode = WAL")
    db.pragma("synchronous = FULL")
    db.pragma("foreign_keys = ON")
    migrate(db, steps)
  } catch (cause) {
    db.close()
    throw cause
  }
  return db
}

/** The open database, closed with the scope. A file that is busy is tried again for five seconds. */
export const openDatabase = (
  file: string,
  steps: ReadonlyArray<SchemaStep>
): Effect.Effect<OpenDatabase, StartupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => open(file, steps),
      catch: (cause) => (isBusy(cause) ? new FileBusy({ cause }) : failed(file, cause))
    }).pipe(
      Effect.retry({ while: (error) => error._tag === "FileBusy", times: 200, schedule: Schedule.spaced("25 millis") }),
      Effect.catchTag("FileBusy", ({ cause }) => Effect.fail(failed(file, cause)))
    ),
    (db) => Effect.sync(() => db.close())
  )
