/**
 * What the end of a driver's stream, or its failure to open a session, means for the turn (3.2, RT-143). Pure.
 *
 * @since 0.1.0
 */
import { isHarnessError, type HarnessError } from "@tackroom/protocol"
import type { TurnFailureCode } from "@tackroom/protocol/events"
import { Exit } from "effect"
import type { TurnLost } from "../harness/Harness.ts"
import type { OpenFailure } from "./NativeSessions.ts"
import type { StreamEnd } from "./TurnMachine.ts"

/** The failure code of a turn for an error of its driver (3.2). */
const codeOf = (error: HarnessError): TurnFailureCode => {
  switch (error._tag) {
    case "HarnessTimeout":
      return "harness_timeout"
    case "HarnessProcessExited":
      return "harness_process_exited"
    case "HarnessProtocol":
      return "harness_protocol"
    default:
      return "harness_error"
  }
}

const classOf = (error: HarnessError): string => (error._tag === "HarnessAuthRequired" ? "credential" : "harness")

/** The end of a turn whose session could not be opened. */
export const openFailed = (error: OpenFailure): StreamEnd => {
  if (isHarnessError(error)) {
    return { _tag: "Failed", code: codeOf(error), message: error.message, errorClass: classOf(error) }
  }
  switch (error._tag) {
    case "SessionMissing":
      return { _tag: "Failed", code: "session_missing", message: error.message, errorClass: "session" }
    case "HarnessContextLost":
      return { _tag: "Failed", code: "harness_context_lost", message: error.message, errorClass: "session" }
    case "ResumeUnconfirmed":
      return { _tag: "Failed", code: "harness_error", message: error.message, errorClass: "session" }
    default:
      return { _tag: "Failed", code: "store_unavailable", message: error.message }
  }
}

/** What the end of a stream without a terminal event means. */
export const endOf = (exit: Exit.Exit<void, HarnessError | TurnLost>): StreamEnd => {
  if (Exit.isSuccess(exit)) return { _tag: "Quiet" }
  const error = Exit.findErrorOption(exit)
  if (error._tag === "None") return { _tag: "Defect" }
  const failure = error.value
  return failure._tag === "TurnLost"
    ? { _tag: "Failed", code: "turn_interrupted", message: failure.message }
    : { _tag: "Failed", code: codeOf(failure), message: failure.message, errorClass: classOf(failure) }
}
