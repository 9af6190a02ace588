/**
 * How a run of a host ends the turn that it is (11.3): its status is the evidence, its lead's last words the detail. Pure.
 */
import type { ErrorClass, EventOf, EventPayload, HarnessEvent, TurnFailureCode } from "@tackroom/protocol/events"
import type { Failure, RunState } from "@tackroom/protocol/run"
import type { HostFailed } from "./HostConnection.ts"
import { tagOf } from "./HostConnection.ts"

/** Whose end it is. */
export interface EndedTurn {
  readonly sessionId: string
  readonly assistantMessageId: string
}

/** What the lead said last, as far as it was read. */
export interface LastWords {
  terminal?: EventPayload
  text?: string
}

type ErrorDetail = Pick<EventOf<"error">, "code" | "errorClass">

/** Values of a run's `failure` and what they are here: the reverse of AGT-202. */
const failures: Readonly<Record<Failure, ErrorDetail>> = {
  truncated: { code: "truncated" },
  budget: { code: "budget" },
  not_accepted: { code: "not_accepted" },
  timeout: { code: "timeout" },
  interrupted: { code: "turn_interrupted" },
  credentials_missing: { code: "harness_error", errorClass: "credential" },
  sandbox_unavailable: { code: "harness_error", errorClass: "workspace" },
  model_error: { code: "harness_error", errorClass: "model" },
  internal: { code: "harness_error", errorClass: "harness" }
}

/** The end of a failed turn. */
export const failed = (
  turn: EndedTurn,
  message: string,
  code: TurnFailureCode,
  errorClass?: ErrorClass
): HarnessEvent => ({
  type: "error",
  error: message,
  code,
  ...(errorClass === undefined ? {} : { errorClass }),
  assistantMessageId: turn.assistantMessageId
})

/** The terminal event of a run that is over. */
export const endOfRun = (turn: EndedTurn, state: RunState, last: LastWords): HarnessEvent => {
  switch (state.status) {
    case "completed": {
      // A long output is a preview in the state; the text that was streamed is whole.
      const text = state.finalOutputArtifact === undefined ? (state.finalOutput ?? undefined) : last.text
      return {
        type: "finish",
        sessionId: turn.sessionId,
        assistantMessageId: turn.assistantMessageId,
        reason: last.terminal?.type === "finish" ? last.terminal.reason : "end_turn",
        ...(text === undefined ? {} : { finalText: text })
      }
    }
    case "cancelled":
      return {
        type: "cancelled",
        sessionId: turn.sessionId,
        assistantMessageId: turn.assistantMessageId,
        reason: "requested"
      }
    default: {
      if (last.terminal?.type === "error") return { ...last.terminal, assistantMessageId: turn.assistantMessageId }
      const failure = state.failure ?? "internal"
      const { code, errorClass } = failures[failure]
      return failed(turn, state.error?.message ?? `the run of the host failed: ${failure}`, code, errorClass)
    }
  }
}

/** The end of a turn whose run the host did not take, by the error's kind; undefined for an error that is no refusal. */
export const refusal = (turn: EndedTurn, error: HostFailed): HarnessEvent | undefined => {
  const { message } = error
  switch (tagOf(error.cause)) {
    case "CredentialsMissing":
      return failed(turn, message, "harness_error", "credential")
    case "SandboxUnavailable":
      return failed(turn, message, "harness_error", "workspace")
    case "ProviderUnavailable":
      return failed(turn, message, "harness_error", "model")
    case "NotFound":
      return failed(turn, message, "session_missing", "session")
    case "InvalidCursor":
      // Its journal was replaced or cut: what this session was is not there any more.
      return failed(turn, message, "harness_context_lost", "session")
    case "InvalidState":
    case "Conflict":
      return failed(turn, message, "not_accepted", "session")
    case "InvalidParams":
    case "LimitExceeded":
    case "Unsupported":
      return failed(turn, message, "not_accepted")
    default:
      return undefined
  }
}
