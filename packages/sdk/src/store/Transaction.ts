/**
 * Running a program of row operations to its end at once, for stores whose effects are synchronous: nothing else runs
 * between its first row and its last.
 */
import { RuntimeStoreCorruptRow, StoreUnavailable } from "@tackroom/protocol"
import { Cause, Effect, Exit } from "effect"
import { OpFailed, type StoreFailure } from "./RuntimeStore.ts"

/** The driver's error behind a failed program, if it has one. */
export const defectOf = (exit: Exit.Exit<unknown, unknown>): unknown => {
  if (Exit.isSuccess(exit)) return undefined
  return exit.cause.reasons.find(Cause.isDieReason)?.defect
}

const runNow = <A, E>(program: () => Effect.Effect<A, E>): Exit.Exit<A, E> => {
  try {
    return Effect.runSyncExit(program())
  } catch (error) {
    return Exit.die(error)
  }
}

/** Runs the program; a row that does not decode is its failure, not a defect (STO-047). */
export const runRows = <A, E>(program: () => Effect.Effect<A, E>): Exit.Exit<A, E | StoreFailure> => {
  const exit = runNow(program)
  const defect = defectOf(exit)
  return defect instanceof RuntimeStoreCorruptRow ? Exit.fail(defect) : exit
}

const isTagged = (error: unknown): error is { readonly _tag: string } =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"

/**
 * Runs an extension's op: a tagged error is its refusal and becomes `OpFailed`; a failure of the store keeps its type;
 * anything else is a defect.
 */
export const runOp = (
  extension: string,
  op: string,
  run: () => unknown
): Effect.Effect<unknown, OpFailed | StoreFailure> =>
  Effect.suspend((): Effect.Effect<unknown, OpFailed | StoreFailure> => {
    try {
      return Effect.succeed(run())
    } catch (error) {
      if (error instanceof RuntimeStoreCorruptRow) return Effect.fail(error)
      return isTagged(error) ? Effect.fail(new OpFailed({ extension, op, error })) : Effect.die(error)
    }
  })

/** The failure of every call after `close`. */
export const closed = (): StoreUnavailable => new StoreUnavailable({ reason: "the store is closed", retryable: false })
