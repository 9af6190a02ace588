/**
 * Opens a small database of the host and brings its schema up to date, each migration in a transaction of its own.
 *
 * It owns the settings that make a commit durable. Failure is `StartupFailed` with reason `storage`; the file is closed
 * and unchanged then.
 */
import { StartupFailed } from "@tackroom/protocol/run"
import Database from "better-sqlite3"
import { Effect, type Scope } from "effect"
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
  const applied = new Set(
    db
      .prepare<[], { readonly name: string }>("SELECT name FROM migration")
      .all()
      .map((row) => row.name)
  )
  const unknown = [...applied].find((name) => !steps.some((step) => step.name === name))
  if (unknown !== undefined) throw new Error(`it was written by a newer version (${unknown})`)
  const record = db.prepare("INSERT INTO migration (name, applied_at) VALUES (?, unixepoch('subsec') * 1000)")
  for (const step of steps) {
    if (applied.has(step.name)) continue
    db.transaction(() => {
      db.exec(step.sql)
      record.run(step.name)
    }).immediate()
  }
}

/** The open database, closed with the scope. */
export const openDatabase = (
  file: string,
  steps: ReadonlyArray<SchemaStep>
): Effect.Effect<OpenDatabase, StartupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
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
      },
      catch: (cause) => failed(file, cause)
    }),
    (db) => Effect.sync(() => db.close())
  )
