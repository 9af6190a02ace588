/**
 * Turns whatever a handler ended with into an error of the run protocol (run-protocol 5): run errors as they are, errors
 * of the runtime by the table in `protocol`, anything unexpected as `internal` with a reference that the log has too.
 * No stack, argument or secret goes into an answer.
 */
import { isRuntimeError, type RuntimeError } from "@tackroom/protocol"
import { fromRuntimeError, InternalFailure, isRunError, type RunError } from "@tackroom/protocol/run"
import { Cause, Effect } from "effect"
import { randomBytes } from "node:crypto"

export interface AnsweringContext {
  readonly journalId: string
}

const reference = (): string => `ref_${randomBytes(6).toString("hex")}`

const isOpFailed = (value: unknown): value is { readonly _tag: "OpFailed"; readonly error: unknown } =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "OpFailed"

/** The failure as the wire knows it; undefined when the table has no place for it. */
const known = (failure: unknown, context: AnsweringContext, operation: string, ref: string): RunError | undefined => {
  if (isRunError(failure)) return failure
  if (isRuntimeError(failure)) return fromRuntimeError(failure, { journalId: context.journalId, ref, operation })
  return isOpFailed(failure) ? known(failure.error, context, operation, ref) : undefined
}

/** What a handler may fail with before it is answered. */
export type HandlerFailure = RunError | RuntimeError | { readonly _tag: "OpFailed"; readonly error: unknown }

/** The handler's effect with nothing but run errors in its error channel. Interruption stays interruption. */
export const answering =
  (context: AnsweringContext, operation: string) =>
  <A>(effect: Effect.Effect<A, HandlerFailure>): Effect.Effect<A, RunError> =>
    Effect.catchCause(effect, (cause): Effect.Effect<never, RunError> => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const ref = reference()
      const squashed = Cause.squash(cause)
      const answer = known(squashed, context, operation, ref)
      if (answer !== undefined && answer._tag !== "InternalFailure") return Effect.fail(answer)
      return Effect.andThen(
        Effect.logError(`${operation} failed inside the host (${ref})`, cause),
        Effect.fail(answer ?? new InternalFailure({ ref }))
      )
    })
