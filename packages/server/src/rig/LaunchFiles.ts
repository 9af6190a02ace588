/** The private folder of each launch: the record that its program writes, and its first input (seat contract 4, RIG-057). */
import { seatLimits } from "@tackroom/protocol/seat"
import * as fs from "node:fs"
import * as path from "node:path"
import type { ServiceLog } from "./ServiceLog.ts"

export interface LaunchFiles {
  readonly folder: (attempt: string) => string
  readonly record: (attempt: string) => string
  readonly input: (attempt: string) => string
  /** What the record's file holds: a regular file of this user, small enough; of a guest seat any owner's. */
  readonly recordText: (attempt: string, anyOwner: boolean) => string | undefined
  readonly removeInput: (attempt: string) => void
  readonly removeFolder: (attempt: string) => void
}

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : "unknown cause")

const readRecord = (file: string, anyOwner: boolean): string | undefined => {
  let descriptor: number
  try {
    descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
  } catch {
    // Not there yet, or a link: as if absent.
    return undefined
  }
  try {
    const stat = fs.fstatSync(descriptor)
    const uid = process.getuid?.()
    if (!stat.isFile() || stat.size > seatLimits.launchRecordBytes) return undefined
    if (!anyOwner && uid !== undefined && stat.uid !== uid) return undefined
    return fs.readFileSync(descriptor, "utf8")
  } catch {
    // A file that cannot be read is as if absent; the service looks again.
    return undefined
  } finally {
    fs.closeSync(descriptor)
  }
}

export const make = (launches: string, log: ServiceLog): LaunchFiles => {
  const folder = (attempt: string): string => path.join(launches, attempt)
  const record = (attempt: string): string => path.join(folder(attempt), "result.json")
  const input = (attempt: string): string => path.join(folder(attempt), "first-input")
  /** Files that are done with. One that cannot be removed is told of and stops nothing. */
  const remove = (file: string): void => {
    try {
      fs.rmSync(file, { recursive: true, force: true })
    } catch (cause) {
      log.write("warn", "a file of a launch could not be removed", { file, cause: messageOf(cause) })
    }
  }
  return {
    folder,
    record,
    input,
    recordText: (attempt, anyOwner) => readRecord(record(attempt), anyOwner),
    removeInput: (attempt) => remove(input(attempt)),
    removeFolder: (attempt) => remove(folder(attempt))
  }
}
