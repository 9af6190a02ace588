/** How a turn of an ACP agent ends: the terminal event of its prompt's answer, or of none. Pure. */
import type { HarnessEvent } from "@tackroom/protocol/events"
import { classifyTurnError } from "../Definitions.ts"
import type { TurnInput } from "../Harness.ts"
import { fieldsOf } from "./Fields.ts"

export const failed = (
  turn: TurnInput,
  error: string,
  code: "harness_error" | "truncated" | "budget" | "session_missing"
) => {
  const errorClass = code === "session_missing" ? "session" : classifyTurnError(error)
  return {
    type: "error" as const,
    error,
    code,
    ...(code === "truncated" || code === "budget" ? {} : { errorClass }),
    assistantMessageId: turn.assistantMessageId
  }
}

/** The terminal event of an answered prompt (HRN-015). */
export const endOf = (turn: TurnInput, answer: unknown): HarnessEvent => {
  const ids = { sessionId: turn.binding.sessionId, assistantMessageId: turn.assistantMessageId }
  const reason = fieldsOf(answer)?.["stopReason"]
  switch (reason) {
    case "end_turn":
    case "refusal":
      return { type: "finish", reason, ...ids }
    case "cancelled":
      return { type: "cancelled", reason: "requested", ...ids }
    case "max_tokens":
      return failed(turn, "The agent stopped at its limit of output", "truncated")
    case "max_turn_requests":
      return failed(turn, "The agent stopped at its limit of model requests", "budget")
    default:
      return failed(turn, "The agent ended the turn for a reason that this version does not know", "harness_error")
  }
}

/** The process was ended with a turn that was being cancelled. */
export const forcedEnd = (turn: TurnInput): HarnessEvent => ({
  type: "cancelled",
  reason: "forced",
  sessionId: turn.binding.sessionId,
  assistantMessageId: turn.assistantMessageId
})
