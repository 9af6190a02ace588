/**
 * A database file of a service: made private, opened with settings that make a commit durable, migrated forward.
 *
 * A step is `0001_name` and never edited once released. `major` rises with a step that an older program could not live
 * with; a file of a newer major version is refused before anything in it changes. Everything here is synchronous and may
 * throw a driver error; a busy one means "try again".
 */
import Database from "better-sqlite3"
import { Data, Effect, Schedule, type Scope } from "effect"
import * as fs from "node:fs"

export type Connection = Database.Database

export interface SchemaStep {
  readonly name: string
  readonly sql: string
}

export interface FileSchema {
  readonly major: number
  readonly minor: number
  readonly steps: ReadonlyArray<SchemaStep>
}

/** The file cannot be used; it is closed and as it was. */
export class DatabaseUnusable extends Data.TaggedError("DatabaseUnusable")<{
  readonly file: string
  readonly detail: string
}> {}

/** Another process holds the file for a moment. */
class FileBusy extends Data.TaggedError("FileBusy")<{ readonly cause: unknown }> {}

/** Longest inline wait for a lock: a longer one would hold the event loop (D-23). */
const inlineWaitMs = 20

export const isBusy = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && String(cause.code).startsWith("SQLITE_BUSY")

const versionOf = (db: Connection): readonly [number, number] | undefined => {
  const found = db.prepare<[], string>("SELECT value FROM file_meta WHERE key = 'schema_version'").pluck().get()
  const match = found === undefined ? null : /^(\d+)\.(\d+)$/u.exec(found)
  return match === null ? undefined : [Number(match[1]), Number(match[2])]
}

const prepareTables = `
  CREATE TABLE IF NOT EXISTS file_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS file_migration (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;`

const migrate = (db: Connection, schema: FileSchema): void => {
  db.transaction(() => {
    const known = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
    if (known.length > 0 && !known.includes("file_meta")) throw new Error("it is another program's database")
    db.exec(prepareTables)
    const found = versionOf(db)
    if (found !== undefined && found[0] > schema.major) throw new Error(`its version is ${found[0]}.${found[1]}`)
  }).immediate()
  const applied = db.prepare<[string], number>("SELECT 1 FROM file_migration WHERE name = ?").pluck()
  const record = db.prepare("INSERT INTO file_migration (name, applied_at) VALUES (?, unixepoch())")
  for (const { name, sql } of schema.steps) {
    if (applied.get(name) === 1) continue
    db.transaction(() => {
      // Another process may have been first.
      if (applied.get(name) === 1) return
      db.exec(sql)
      record.run(name)
    }).immediate()
  }
  const found = versionOf(db) ?? [0, 0]
  if (found[0] === schema.major && found[1] >= schema.minor) return
  db.prepare("INSERT OR REPLACE INTO file_meta (key, value) VALUES ('schema_version', ?)").run(
    `${schema.major}.${schema.minor}`
  )
}

const open = (file: string, schema: FileSchema): Connection => {
  if (!fs.existsSync(file)) fs.closeSync(fs.openSync(file, "a", 0o600))
  const db = new Database(file, { timeout: inlineWaitMs })
  try {
    db.pragma("journal_mode = WAL")
    db.pragma("synchronous = FULL")
    db.pragma("foreign_keys = ON")
    db.pragma(`journal_size_limit = ${64 << 20}`)
    migrate(db, schema)
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

/** The open database, closed with the scope. A file that is busy is tried again for five seconds. */
export const openFile = (
  file: string,
  schema: FileSchema
): Effect.Effect<Connection, DatabaseUnusable, Scope.Scope> => {
  const unusable = (cause: unknown) =>
    new DatabaseUnusable({ file, detail: cause instanceof Error ? cause.message : "unknown cause" })
  return Effect.acquireRelease(
    Effect.try({
      try: () => open(file, schema),
      catch: (cause) => (isBusy(cause) ? new FileBusy({ cause }) : unusable(cause))
    }).pipe(
      Effect.retry({ while: (error) => error._tag === "FileBusy", times: 200, schedule: Schedule.spaced("25 millis") }),
      Effect.catchTag("FileBusy", ({ cause }) => Effect.fail(unusable(cause)))
    ),
    (db) => Effect.sync(() => db.close())
  )
}
