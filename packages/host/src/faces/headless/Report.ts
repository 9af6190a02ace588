/**
 * The lines of `tackroom run --json`: one `start`, one `event` per event of the run, and exactly one `result`, last
 * (HDL-016). Pure; names on the wire are in snake_case.
 */
import type { RunState, WireEvent } from "@tackroom/protocol/run"
import { wireJson } from "@tackroom/protocol/text"
import type { Asks } from "./Settlement.ts"
import { noAsks } from "./Settlement.ts"

export interface Start {
  readonly sessionId: string
  readonly submissionId: string
  readonly agent: string
  readonly project: string
  readonly scripted: boolean
  readonly warnings: ReadonlyArray<string>
}

export interface End {
  readonly status: "completed" | "failed" | "cancelled"
  readonly failure?: string
  /** Why it failed, in words; with `code` when no run was admitted. */
  readonly error?: {
    readonly message: string
    readonly code?: "nothing" | "restore" | "unknown"
    readonly class?: string
  }
  readonly answer: string
  readonly usage: RunState["usage"]
  readonly sessionId: string | null
  readonly scripted: boolean
  readonly asks: Asks
}

/** The end of a command line that was understood and of which no run came. */
export const notStarted = (
  code: "nothing" | "restore" | "unknown",
  message: string,
  errorClass?: string,
  sessionId: string | null = null
): End => ({
  status: "failed",
  error: { message, code, ...(errorClass === undefined ? {} : { class: errorClass }) },
  answer: "",
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, rounds: 0 },
  sessionId,
  scripted: false,
  asks: noAsks
})

// Readers that take U+0085 for a line end exist.
const line = (
  runId: string | undefined,
  value: { readonly type: string; readonly [name: string]: unknown }
): string => {
  const { type, ...rest } = value
  const json = wireJson({ type, ...(runId === undefined ? {} : { run_id: runId }), ...rest })
  return `${json.replaceAll("\u0085", "\\u0085")}\n`
}

export const startLine = (runId: string | undefined, start: Start): string =>
  line(runId, {
    type: "start",
    session_id: start.sessionId,
    submission_id: start.submissionId,
    agent: start.agent,
    project: start.project,
    scripted: start.scripted,
    warnings: start.warnings
  })

export const eventLine = (
  runId: string | undefined,
  entry: { readonly agent: string; readonly sessionId: string; readonly wire: WireEvent; readonly summary: unknown }
): string =>
  line(runId, {
    type: "event",
    agent: entry.agent,
    session_id: entry.sessionId,
    event: entry.wire,
    summary: entry.summary
  })

export const resultLine = (runId: string | undefined, end: End): string =>
  line(runId, {
    type: "result",
    status: end.status,
    ...(end.failure === undefined ? {} : { failure: end.failure }),
    ...(end.error === undefined ? {} : { error: end.error }),
    answer: end.answer,
    usage: {
      input_tokens: end.usage.inputTokens,
      output_tokens: end.usage.outputTokens,
      cached_input_tokens: end.usage.cachedInputTokens,
      rounds: end.usage.rounds
    },
    session_id: end.sessionId,
    scripted: end.scripted,
    asks: end.asks
  })
