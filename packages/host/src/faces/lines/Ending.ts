/** How the end of a turn reads on the lines: status, stop reason, errors and their codes (4.3, 4.5). Pure. */
import type { EventOf, TerminalEvent } from "@tackroom/protocol/events"
import { serveLimits, type CancelCause, type RunFault, type StopReason } from "@tackroom/protocol/serve"
import { headBytes } from "@tackroom/protocol/text"
import { noAsks, type End } from "./Item.ts"

/** Code of the diagnostic that names the budget which stopped a turn (SRV-269). */
const stopCode = "stop"

/** The budget that stopped a turn, as its journal says: which one, and how many rounds it allowed. */
export interface BudgetStop {
  readonly cause: Extract<CancelCause, "timeout" | "max_rounds">
  readonly rounds: number | undefined
}

const roundsOf = (details: unknown): number | undefined =>
  typeof details === "object" && details !== null && "maxRounds" in details && typeof details.maxRounds === "number"
    ? details.maxRounds
    : undefined

export const budgetStop = (event: EventOf<"error"> | EventOf<"diagnostic">): BudgetStop | undefined => {
  const diagnostics = event.type === "error" ? (event.diagnostics ?? []) : [event.diagnostic]
  const found = diagnostics.find(({ code }) => code === stopCode)
  if (found !== undefined) {
    return { cause: found.message === "timeout" ? "timeout" : "max_rounds", rounds: roundsOf(found.details) }
  }
  if (event.type === "diagnostic") return undefined
  if (event.code === "budget") return { cause: "max_rounds", rounds: undefined }
  return event.code === "timeout" ? { cause: "timeout", rounds: undefined } : undefined
}

/** A message at its bound. */
export const shortMessage = (message: string): string => headBytes(message, serveLimits.messageBytes)

const codeOf = (code: EventOf<"error">["code"]): RunFault["code"] => {
  switch (code) {
    case "budget":
    case "timeout":
      return code
    case "harness_protocol":
      return "protocol"
    default:
      return "unknown"
  }
}

export const faultOf = (event: Pick<EventOf<"error">, "code" | "error" | "errorClass">): RunFault => ({
  code: codeOf(event.code),
  message: shortMessage(event.error),
  ...(event.errorClass === undefined ? {} : { class: event.errorClass }),
  runtimeCode: event.code
})

const stopOfError = (code: EventOf<"error">["code"]): StopReason => {
  switch (code) {
    case "budget":
      return "max_rounds"
    case "timeout":
      return "timeout"
    case "truncated":
      return "max_tokens"
    case "turn_interrupted":
      return "interrupted"
    default:
      return "error"
  }
}

/** The end of a run that never started: it used nothing (SRV-143). */
export const neverStarted = (fault: RunFault): End => ({
  cursor: undefined,
  status: "failed",
  stopReason: "error",
  cancelled: false,
  answer: "",
  errors: [fault],
  usage: { input: 0, output: 0, rounds: 0 },
  usageDetail: undefined,
  uncertain: [],
  asks: noAsks,
  committed: true
})

const cancelledElsewhere: RunFault = { code: "cancelled", message: "the turn was cancelled, and not from here" }

/** What the terminal event says by itself; `asked` when a cancel was asked for here. */
export const endOf = (
  event: TerminalEvent,
  asked: boolean
): {
  readonly status: "completed" | "failed" | "cancelled"
  readonly stopReason: StopReason
  readonly cancelled: boolean
  readonly errors: ReadonlyArray<RunFault>
} => {
  switch (event.type) {
    case "finish":
      return { status: "completed", stopReason: event.reason, cancelled: false, errors: [] }
    case "cancelled":
      return {
        status: "cancelled",
        stopReason: "cancelled",
        cancelled: true,
        errors: asked ? [] : [cancelledElsewhere]
      }
    case "error":
      return { status: "failed", stopReason: stopOfError(event.code), cancelled: false, errors: [faultOf(event)] }
  }
}
