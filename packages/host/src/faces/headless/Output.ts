/** The reserved stdout as promises, for the edge of the process. */
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"

/** Completes when the reader of stdout is gone. */
export const whenClosed = (output: ProtocolOutput): Promise<void> => Effect.runPromise(Effect.asVoid(output.closed))

/** Completes when everything written is with the system, or its reader is gone. */
export const flushed = (output: ProtocolOutput): Promise<void> => Effect.runPromise(Effect.ignore(output.below(0)))
