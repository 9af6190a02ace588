/**
 * The errors that only a client can have. What a host answers comes as the classes of `@tackroom/protocol/run`.
 */
import { Data } from "effect"

/**
 * The host's process is gone (RUN-573, RT-352). Every request that was open rejects with it within 100 ms; whether such a
 * request took effect is unknown. `exitCode` is null when a signal ended the process, and for a host in this process.
 */
export class HostExited extends Data.TaggedError("HostExited")<{
  readonly exitCode: number | null
  readonly signal: string | null
  /** The end of what the host wrote to stderr, at most 4 KiB. */
  readonly stderrTail: string
}> {
  override get message(): string {
    const how = this.signal === null ? `with code ${this.exitCode ?? "unknown"}` : `by ${this.signal}`
    return `the host ended ${how}${this.stderrTail === "" ? "" : `: ${this.stderrTail.trimEnd().split("\n").at(-1)}`}`
  }
}

/** The host could not be started, or its program does not speak this protocol. Nothing was sent to it but `initialize`. */
export class LaunchFailed extends Data.TaggedError("LaunchFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** The client was closed by its owner; what waited was given up (RT-357). */
export class ClientClosed extends Data.TaggedError("ClientClosed")<object> {
  override get message(): string {
    return "the client is closed"
  }
}

/** An answer does not fit the protocol: the other side is not a host of this version. */
export class ProtocolViolation extends Data.TaggedError("ProtocolViolation")<{
  readonly method: string
  readonly message: string
}> {}

/**
 * Some members of a session could not be cancelled or closed; the others were (RUN-574, RT-355). `errors` is the host's
 * map by session id, `done` the sessions that were reached.
 */
export class PartialFailure extends Data.TaggedError("PartialFailure")<{
  readonly action: "cancel" | "close"
  readonly done: ReadonlyArray<string>
  readonly errors: Readonly<Record<string, { readonly kind: string; readonly message: string }>>
}> {
  override get message(): string {
    const failed = Object.entries(this.errors).map(([session, error]) => `${session}: ${error.kind}`)
    return `${this.action} failed for ${failed.join(", ")}`
  }
}

/** An interaction holds another response than the one given (RT-354). */
export class AnsweredDifferently extends Data.TaggedError("AnsweredDifferently")<{
  readonly interactionId: string
  readonly response: string
}> {
  override get message(): string {
    return `interaction ${this.interactionId} was answered already, differently`
  }
}
