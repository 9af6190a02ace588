/**
 * The file of a store: made with narrow permissions, looked at before it is touched, opened with pragmas that are read
 * back (STO-040), migrated under the write lock (STO-045).
 *
 * Everything here is synchronous and may throw a driver error; a busy one means "try again".
 */
import type BetterSqlite3 from "better-sqlite3"
import { UnsupportedRuntimeStoreSchema, StoreUnavailable } from "@tackroom/protocol"
import { chmodSync, closeSync, openSync, statSync } from "node:fs"
import { join } from "node:path"
import { makePrivateFolder } from "../../process/PrivateFolder.ts"
import { codeOf } from "./Failures.ts"
import { bootstrap, migrations, schemaMajor, schemaMinor, storeName, type Migration } from "./Schema.ts"

/** The driver's constructor. */
export type Driver = typeof BetterSqlite3

/** An open database of the driver. */
export type Connection = BetterSqlite3.Database

/** Migrations of an extension, recorded under its name. */
export interface ExtensionMigrations {
  readonly name: string
  readonly migrations: ReadonlyArray<Migration>
}

/** What a file says about itself. */
export interface Identity {
  readonly journalId: string
  readonly schemaVersion: string
}

/** The store's file in its root directory. */
const fileOf = (root: string): string => join(root, "agent-runtime.db")

const wanted = `${schemaMajor}.${schemaMinor}`

const unsupported = (found: string) => new UnsupportedRuntimeStoreSchema({ found, wanted })

/** Makes root (0700) and file (0600) when they are missing. */
const prepareFile = (root: string): string => {
  makePrivateFolder(root)
  const path = fileOf(root)
  closeSync(openSync(path, "a", 0o600))
  chmodSync(path, 0o600)
  return path
}

const tableNames = (db: Connection): ReadonlySet<string> =>
  new Set(
    db
      .prepare<[], string>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
      )
      .pluck()
      .all()
  )

const metaValue = (db: Connection, key: string): string | undefined =>
  db.prepare<[string], string>("SELECT value FROM tr_meta WHERE key = ?").pluck().get(key)

const parseVersion = (version: string): readonly [number, number] | undefined => {
  const match = /^(\d+)\.(\d+)$/u.exec(version)
  return match === null ? undefined : [Number(match[1]), Number(match[2])]
}

/** Refuses what is no store, or one of a newer major version, before anything is written (STO-046). */
const checkIdentity = (db: Connection): void => {
  const names = tableNames(db)
  if (names.size === 0) return
  if (!names.has("tr_meta") || !names.has("tr_migration")) throw unsupported("another database")
  const version = metaValue(db, "schema_version")
  const parsed = version === undefined ? undefined : parseVersion(version)
  if (parsed === undefined) throw unsupported(version ?? "no version")
  if (parsed[0] > schemaMajor) throw unsupported(`${parsed[0]}.${parsed[1]}`)
}

/** Looks at an existing file over a read-only connection, which changes nothing. */
const probe = (driver: Driver, path: string, busyTimeoutMs: number): void => {
  if (statSync(path).size === 0) return
  const db = new driver(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs })
  try {
    checkIdentity(db)
  } catch (error) {
    throw codeOf(error) === "SQLITE_NOTADB" ? unsupported("not a database") : error
  } finally {
    db.close()
  }
}

const setPragma = (db: Connection, name: string, value: string, expected: unknown): void => {
  db.pragma(`${name} = ${value}`)
  const found = db.pragma(name, { simple: true })
  if (found !== expected) throw new StoreUnavailable({ reason: `pragma ${name} is ${String(found)}, not ${value}` })
}

const walBytes = 64 << 20

const setPragmas = (db: Connection, busyTimeoutMs: number): void => {
  setPragma(db, "busy_timeout", String(busyTimeoutMs), busyTimeoutMs)
  setPragma(db, "journal_mode", "WAL", "wal")
  setPragma(db, "synchronous", "FULL", 2)
  setPragma(db, "foreign_keys", "ON", 1)
  // A write-ahead log that grew under a long read is cut back after the next checkpoint.
  setPragma(db, "journal_size_limit", String(walBytes), walBytes)
}

const inTransaction = (db: Connection, body: () => void): void => {
  db.exec("BEGIN IMMEDIATE")
  try {
    body()
    db.exec("COMMIT")
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK")
    throw error
  }
}

const isMade = (db: Connection): boolean => tableNames(db).has("tr_meta")

const applied = (db: Connection): ReadonlySet<string> =>
  new Set(db.prepare<[], string>("SELECT name FROM tr_migration").pluck().all())

/** Runs what is missing, one transaction each. Another process may be doing the same: each asks again under the lock. */
const migrate = (
  db: Connection,
  extensions: ReadonlyArray<ExtensionMigrations>,
  mint: { readonly journalId: () => string; readonly now: () => number }
): void => {
  if (!isMade(db)) {
    inTransaction(db, () => {
      checkIdentity(db)
      if (isMade(db)) return
      db.exec(bootstrap)
      const put = db.prepare("INSERT INTO tr_meta (key, value) VALUES (?, ?)")
      put.run("journal_id", mint.journalId())
      put.run("schema_version", `${schemaMajor}.0`)
    })
  }
  const all = [{ name: storeName, migrations }, ...extensions].flatMap((owner) =>
    owner.migrations.map((migration) => ({
      name: `${owner.name}/${migration.id}_${migration.name}`,
      sql: migration.sql
    }))
  )
  const known = applied(db)
  for (const { name, sql } of all) {
    if (known.has(name)) continue
    inTransaction(db, () => {
      if (applied(db).has(name)) return
      db.exec(sql)
      db.prepare("INSERT INTO tr_migration (name, applied_at) VALUES (?, ?)").run(name, mint.now())
    })
  }
  const version = parseVersion(metaValue(db, "schema_version") ?? wanted) ?? [schemaMajor, 0]
  if (version[0] < schemaMajor || (version[0] === schemaMajor && version[1] < schemaMinor)) {
    inTransaction(db, () => {
      db.prepare("UPDATE tr_meta SET value = ? WHERE key = 'schema_version'").run(wanted)
    })
  }
}

/** An open store file. */
export interface OpenDatabase {
  readonly db: Connection
  readonly identity: Identity
  /** Whether the path still leads to the file that was opened. Costs one `stat`. */
  readonly isInPlace: () => boolean
}

const placeOf = (path: string): (() => boolean) => {
  const opened = statSync(path, { bigint: true })
  return () => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    return found !== undefined && found.ino === opened.ino && found.dev === opened.dev
  }
}

/** Opens, verifies and migrates the store's file. Closes what it opened when it fails. */
export const openDatabase = (
  driver: Driver,
  options: {
    readonly root: string
    readonly busyTimeoutMs: number
    readonly extensions: ReadonlyArray<ExtensionMigrations>
    readonly journalId: () => string
    readonly now: () => number
  }
): OpenDatabase => {
  const path = prepareFile(options.root)
  probe(driver, path, options.busyTimeoutMs)
  const db = new driver(path, { timeout: options.busyTimeoutMs })
  try {
    setPragmas(db, options.busyTimeoutMs)
    migrate(db, options.extensions, options)
    const journalId = metaValue(db, "journal_id")
    const schemaVersion = metaValue(db, "schema_version")
    if (journalId === undefined || schemaVersion === undefined) throw unsupported("a store without identity")
    return { db, identity: { journalId, schemaVersion }, isInPlace: placeOf(path) }
  } catch (error) {
    db.close()
    throw error
  }
}
