/** Why a command line that was understood came to nothing: no session was opened, or no run admitted. */
import { Data } from "effect"

/** Exit codes of the command-line faces (serve-mode 1.2); a second signal is 128 and its number. */
export const exitCodes = { completed: 0, ended: 1, usage: 2, notStarted: 3 } as const

export class NotStarted extends Data.TaggedError("NotStarted")<{
  /** `restore`: the session cannot be resumed. `nothing`: there is nothing to send. */
  readonly kind: "nothing" | "restore" | "unknown"
  readonly message: string
  readonly errorClass?: string
}> {
  /** The exit code that says so. */
  get code(): number {
    return this.kind === "nothing" ? exitCodes.usage : exitCodes.notStarted
  }
}

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

export const tagOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "_tag" in cause && typeof cause._tag === "string"
    ? cause._tag
    : undefined

/** Nothing was started, and this is why. */
export const notStarted = (message: string, errorClass?: string): NotStarted =>
  new NotStarted({ kind: "unknown", message, ...(errorClass === undefined ? {} : { errorClass }) })

/** The session cannot be resumed, and this is why (HDL-006). */
export const notResumed = (message: string): NotStarted => new NotStarted({ kind: "restore", message })
