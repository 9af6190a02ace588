/**
 * How a run ends: the end of its turn in the words of the run protocol, written in the transaction that settles it
 * (RUN-416, RUN-417, AGT-202). Pure; the runtime calls it inside the settlement, recovery's too.
 */
import type { TurnOutcome } from "@tackroom/protocol/events"
import type { Failure as RunFailure } from "@tackroom/protocol/run"
import type { SessionRow, StoreOp, TurnRow } from "@tackroom/sdk/effect"
import { op } from "./HostStore.ts"

/** A failed turn in the words of the run protocol (AGT-202). */
export const failureOf = (outcome: Extract<TurnOutcome, { readonly status: "failed" }>): RunFailure => {
  const { code, errorClass } = outcome.error
  switch (code) {
    case "truncated":
    case "budget":
    case "not_accepted":
    case "timeout":
      return code
    case "harness_timeout":
      return "timeout"
    case "turn_interrupted":
      return "interrupted"
    case "harness_error":
      if (errorClass === "credential") return "credentials_missing"
      return errorClass === "workspace" ? "sandbox_unavailable" : "model_error"
    default:
      return "internal"
  }
}

/** The end of a run, in the transaction that settles its turn (RUN-416, RUN-417). */
export const settleOps =
  (redact: <A>(value: A, sessionId: string) => A) =>
  (settled: {
    readonly session: SessionRow
    readonly turn: TurnRow
    readonly outcome: TurnOutcome
    readonly head: number
    readonly lastText: string | undefined
  }): ReadonlyArray<StoreOp> => {
    const { head, lastText, outcome, session, turn } = settled
    const failed = outcome.status === "failed" ? outcome : undefined
    return [
      op("endRun", {
        sessionId: session.id,
        turnId: turn.id,
        status: outcome.status,
        failure: failed === undefined ? null : failureOf(failed),
        output: lastText === undefined ? (outcome.status === "completed" ? "" : null) : redact(lastText, session.id),
        error:
          failed === undefined ? null : { message: redact(failed.error.message, session.id), kind: failed.error.code },
        endCursors: { [session.id]: head },
        endedAt: Date.parse(outcome.completedAt)
      })
    ]
  }
