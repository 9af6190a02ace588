/** What a launch came to, as its one record: made where one is wanted, and said in the pane where it cannot be written. */
import { Effect } from "effect"
import type { AgentInfo } from "../agent/Opening.ts"
import type { SeatConfiguration } from "../command/Configuration.ts"
import type { NotOpened } from "../seat/Ending.ts"
import { producerOf, type RecordContent, writeRecord } from "./RecordFile.ts"

/** Records what was opened, or why nothing was. A new conversation that could not be opened leaves no record. */
export interface Recorder {
  readonly opened: (nativeRef: string, agent: AgentInfo | undefined) => Effect.Effect<void>
  readonly notOpened: (outcome: NotOpened, agent: AgentInfo | undefined) => Effect.Effect<void>
}

export const makeRecorder = (options: {
  readonly configuration: Pick<SeatConfiguration, "harness" | "record">
  readonly version: string
  readonly redact: (text: string) => string
  readonly say: (line: string) => void
}): Recorder => {
  const { configuration, redact, say, version } = options

  const write = (content: RecordContent, agent: AgentInfo | undefined): Effect.Effect<void> => {
    const { harness, record } = configuration
    if (record === undefined) return Effect.void
    const producer = redact(producerOf(version, agent))
    return writeRecord(record.path, { format: 1, attempt: record.attempt, harness, ...content, producer }).pipe(
      Effect.catch(({ code }) => Effect.sync(() => say(`error > the launch record could not be written: ${code}`)))
    )
  }

  return {
    opened: (nativeRef, agent) => write({ nativeRef }, agent),
    notOpened: (outcome, agent) => {
      switch (outcome._tag) {
        case "Failed":
          return Effect.void
        case "Other":
          return write({ nativeRef: outcome.nativeRef }, agent)
        case "Missing":
          return write({ error: "missing" }, agent)
        case "Unconfirmed":
          return write({ error: "unconfirmed" }, agent)
      }
    }
  }
}
