/**
 * Artifact chunks that never got their row (RT-211): put ahead of an event that was not committed, because the process
 * ended in between. Chunks name their writer, so that those of a process which is still putting are left alone.
 */
import type { Connection } from "./Database.ts"

const live = new Set<string>()

/** This store in this process, as the writer of its chunks. */
export interface Writer {
  readonly name: () => string
  readonly release: () => void
}

/** Names a writer, when it first writes: process id and a token. */
export const makeWriter = (random: (bytes: number) => Uint8Array): Writer => {
  let token: string | undefined
  return {
    name: () => {
      if (token === undefined) {
        token = Array.from(random(8), (byte) => byte.toString(16).padStart(2, "0")).join("")
        live.add(token)
      }
      return `${process.pid}:${token}`
    },
    release: () => {
      if (token !== undefined) live.delete(token)
    }
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

const isWriting = (writer: string): boolean => {
  const [pid, token] = writer.split(":")
  return Number(pid) === process.pid ? live.has(token ?? "") : isAlive(Number(pid))
}

/** Ids of artifacts without a row whose writer is gone. */
export const orphans = (db: Connection): ReadonlyArray<string> => {
  const writer = db.prepare<[string], string>("SELECT writer FROM tr_artifact_chunk WHERE id = ? LIMIT 1").pluck()
  return db
    .prepare<[], string>("SELECT DISTINCT id FROM tr_artifact_chunk EXCEPT SELECT id FROM tr_artifact")
    .pluck()
    .all()
    .filter((id) => !isWriting(writer.get(id) ?? ""))
}
