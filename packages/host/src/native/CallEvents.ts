/**
 * The events of one tool call and what the parts of a turn share to write them (AGT-033, AGT-035).
 *
 * Every end carries the alias and the outcome in its metadata, so that a summary needs that event alone.
 */
import type { Attachment, HarnessEvent } from "@tackroom/protocol/events"
import type { HarnessContext } from "@tackroom/sdk/adapters"
import type { Effect, Schema } from "effect"
import type { ExecuteTool, SessionSetup, ToolProblem } from "./SessionSetup.ts"
import type { Call, CallOutcome, ResponseEntry } from "./Transcript.ts"

/** What the calls of a turn need of the loop around them. */
export interface TurnOutput {
  /** Folds the events into the transcript and hands them to the runtime, in this order. */
  readonly emit: (...events: ReadonlyArray<HarnessEvent>) => Effect.Effect<void>
  /** The value as the journal will have it: without known secrets (RUN-174). */
  readonly redact: <A>(value: A) => A
  /** Returns when everything emitted before is durable. */
  readonly durable: Effect.Effect<void>
  /** True once the turn's cancel was asked for: only then is an ended tool recorded as cancelled. */
  readonly cancelling: () => boolean
}

export interface ToolCallsInput {
  readonly context: HarnessContext
  readonly setup: SessionSetup
  readonly execute: ExecuteTool
  readonly output: TurnOutput
  readonly turnId: string
  readonly response: ResponseEntry
}

const metadata = (call: Call, outcome: CallOutcome, rest: { readonly [key: string]: Schema.Json } = {}) => ({
  tool: call.alias,
  outcome,
  ...rest
})

export const notRun = (call: Call, code: "denied" | "failed" | "cancelled", error: string): HarnessEvent => ({
  type: "tool-error",
  toolCallId: call.callId,
  error,
  code,
  metadata: metadata(call, "not_run")
})

export const dispatchRecord = (call: Call): HarnessEvent => ({
  type: "tool-status",
  toolCallId: call.callId,
  status: "running",
  metadata: { dispatch: true, tool: call.alias }
})

export const problemEnd = (call: Call, problem: ToolProblem): HarnessEvent => {
  if (problem.outcome === "unknown") {
    return {
      type: "tool-status",
      toolCallId: call.callId,
      status: "uncertain",
      metadata: metadata(call, "unknown", { reason: problem.message })
    }
  }
  return {
    type: "tool-error",
    toolCallId: call.callId,
    error: problem.message,
    code: problem.code ?? "failed",
    metadata: metadata(call, problem.outcome)
  }
}

export const completed = (
  call: Call,
  output: Schema.Json,
  attachments: ReadonlyArray<Attachment> = []
): HarnessEvent => ({
  type: "tool-output",
  toolCallId: call.callId,
  output,
  ...(attachments.length === 0 ? {} : { attachments }),
  metadata: metadata(call, "completed")
})
