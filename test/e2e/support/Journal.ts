/**
 * The store of a dead host, read without it, and its write-ahead log cut at will.
 *
 * A reader works on a copy, so that looking changes nothing of what the next host finds. What the host's tables mean is
 * the store's own business; here they are only counted and compared.
 */
import Database from "better-sqlite3"
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Loose } from "./RawHost.ts"

const file = "agent-runtime.db"

export interface StoredEvent {
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly turn_id: string | null
  readonly payload: string
}

export interface Stored {
  readonly integrity: unknown
  /** Events of every session, by session id. */
  readonly events: ReadonlyMap<string, ReadonlyArray<StoredEvent>>
  readonly turns: ReadonlyArray<Loose>
  readonly runs: ReadonlyArray<Loose>
  readonly receipts: ReadonlyArray<Loose>
  readonly interactions: ReadonlyArray<Loose>
  readonly messages: ReadonlyArray<Loose>
}

/** Everything that is compared, from a copy of the database. */
export const readStored = (stateDir: string): Stored => {
  const folder = mkdtempSync(join(tmpdir(), "tackroom-e2e-read-"))
  try {
    for (const name of [file, `${file}-wal`]) {
      const from = join(stateDir, name)
      if (existsSync(from)) copyFileSync(from, join(folder, name))
    }
    const db = new Database(join(folder, file))
    try {
      const names = new Set(db.prepare("SELECT name FROM sqlite_schema").pluck().all())
      const all = (table: string): ReadonlyArray<Loose> =>
        names.has(table) ? db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all() : []
      const events = new Map<string, Array<StoredEvent>>()
      for (const event of all("tr_event")) {
        const known = events.get(event.session_id) ?? []
        events.set(event.session_id, known)
        known.push(event)
      }
      return {
        integrity: db.pragma("integrity_check", { simple: true }),
        events,
        turns: all("tr_turn"),
        runs: all("hr_run"),
        receipts: all("tr_receipt"),
        interactions: all("tr_interaction"),
        messages: all("tr_message")
      }
    } finally {
      db.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const walPath = (stateDir: string): string => join(stateDir, `${file}-wal`)

const headerBytes = 32
const frameHeaderBytes = 24

/** The lengths of the write-ahead log after each transaction, as SQLite writes it; the first is the empty log. */
export const commitsOf = (wal: Uint8Array): ReadonlyArray<number> => {
  const view = Buffer.from(wal.buffer, wal.byteOffset, wal.byteLength)
  if (view.length < headerBytes) return [0]
  const frameBytes = frameHeaderBytes + view.readUInt32BE(8)
  const salt = view.subarray(16, 24)
  const ends = [0]
  for (let at = headerBytes; at + frameBytes <= view.length; at += frameBytes) {
    if (!view.subarray(at + 8, at + 16).equals(salt)) break
    if (view.readUInt32BE(at + 4) !== 0) ends.push(at + frameBytes)
  }
  return ends
}

export const readWal = (stateDir: string): Uint8Array => readFileSync(walPath(stateDir))
