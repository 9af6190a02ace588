/**
 * The launch record on disk: written once, whole or not at all, readable by its owner alone (SEAT-220, SEAT-221). The folder
 * is the service's; none is made here.
 */
import * as fs from "node:fs"
import { headCodePoints } from "@tackroom/protocol/text"
import { type LaunchRecord, writeLaunchRecord } from "@tackroom/protocol/seat"
import { Data, Effect } from "effect"
import type { AgentInfo } from "../agent/Opening.ts"

/** What a record says of the conversation. */
export type RecordContent = { readonly nativeRef: string } | { readonly error: string }

/** The record could not be written. `code` is the system's. */
export class RecordFailed extends Data.TaggedError("RecordFailed")<{ readonly code: string }> {}

const longestProducer = 500

/** Who made the record. */
export const producerOf = (version: string, agent: AgentInfo | undefined): string =>
  headCodePoints(
    [`tackroom-seat ${version}`, ...(agent === undefined ? [] : [`${agent.name} ${agent.version}`]), "ACP 1"].join(
      "; "
    ),
    longestProducer
  )

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error ? String(error.code) : "not a usable record"

/** Writes the record beside its place and moves it there, so that a reader sees all of it or nothing. */
export const writeRecord = (path: string, record: LaunchRecord): Effect.Effect<void, RecordFailed> =>
  Effect.try({
    try: () => {
      const text = writeLaunchRecord(record)
      const beside = `${path}.${process.pid}.tmp`
      try {
        const descriptor = fs.openSync(beside, "wx", 0o600)
        try {
          fs.writeFileSync(descriptor, text)
          fs.fsyncSync(descriptor)
        } finally {
          fs.closeSync(descriptor)
        }
        fs.renameSync(beside, path)
      } catch (error) {
        fs.rmSync(beside, { force: true })
        throw error
      }
    },
    catch: (error) => new RecordFailed({ code: codeOf(error) })
  })
