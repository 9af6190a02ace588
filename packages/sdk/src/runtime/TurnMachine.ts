/**
 * The decisions of a turn's life, as pure functions: who is admitted (5.1), how a turn ended (5.4), how far a cancel has
 * come (5.5), and what recovery does with what it finds (5.6). Nothing here reads a clock, a store or a harness.
 *
 * @since 0.1.0
 */
import type { CancelReason, TerminalEvent, TurnFailureCode } from "@tackroom/protocol/events"

// ---------------------------------------------------------------- admission (5.1)

/** What the admission decision looks at; a plain view of the rows read under the session's lock. */
export interface AdmissionView {
  /** The receipt of this message id, if one exists. `queuedNow`: it waits in the queue. */
  readonly receipt: { readonly digest: string; readonly state: string } | undefined
  readonly archived: boolean
  readonly closed: boolean
  /** A turn that is not settled. `live`: a process with a valid lease works on it. */
  readonly openTurn: { readonly live: boolean; readonly here: boolean } | undefined
  readonly queueLength: number
  readonly queueHeld: boolean
  /** The session is a subagent's (RT-296). */
  readonly child: boolean
}

/** What is asked. */
export interface AdmissionRequest {
  readonly digest: string
  readonly delivery: "steer" | "queue" | undefined
  /** The runtime itself takes this entry out of the queue (RT-111). */
  readonly fromQueue: boolean
  /** The embedding package may start turns of child sessions (D-30). */
  readonly mayStartChild: boolean
  /** A steer already failed: the message falls back to the queue (table 5.1). */
  readonly fallback: boolean
}

/** The outcome of table 5.1. */
export type AdmissionKind =
  | { readonly _tag: "Start" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "Conflict" }
  | { readonly _tag: "Busy" }
  | { readonly _tag: "Recovering" }
  | { readonly _tag: "Queue" }
  | { readonly _tag: "QueueFull" }
  | { readonly _tag: "Steer" }
  | { readonly _tag: "Closed" }
  | { readonly _tag: "ReadOnly" }
  /** The open turn has no live owner: recover the session, then ask again (RT-131). */
  | { readonly _tag: "RecoverFirst" }

/** Entries that may wait in one session's queue (3.1). */
export const queueLimit = 64

/** Table 5.1, row by row. Implements RT-081, RT-082, RT-111, RT-112, RT-133, RT-169, RT-296. */
export const admit = (view: AdmissionView, request: AdmissionRequest): AdmissionKind => {
  const own = request.fromQueue || request.fallback
  if (view.receipt !== undefined && !own) {
    return view.receipt.digest === request.digest ? { _tag: "Duplicate" } : { _tag: "Conflict" }
  }
  if (view.closed || view.archived) return { _tag: "Closed" }
  if (view.child && !request.mayStartChild) return { _tag: "ReadOnly" }
  const turn = view.openTurn
  if (turn !== undefined && !turn.live) return { _tag: "RecoverFirst" }
  if (request.fromQueue) {
    if (view.receipt === undefined || view.receipt.state !== "queued" || view.queueHeld) return { _tag: "Busy" }
    return turn === undefined ? { _tag: "Start" } : { _tag: "Busy" }
  }
  const about = view.queueLength > 0 && !view.queueHeld
  if (turn === undefined && !about) return { _tag: "Start" }
  switch (request.delivery) {
    case "queue":
      return view.queueLength >= queueLimit ? { _tag: "QueueFull" } : { _tag: "Queue" }
    case "steer":
      if (request.fallback || turn === undefined) {
        return view.queueLength >= queueLimit ? { _tag: "QueueFull" } : { _tag: "Queue" }
      }
      // Only the process that runs the turn can hand the message over.
      return turn.here ? { _tag: "Steer" } : { _tag: "Busy" }
    case undefined:
      return { _tag: "Busy" }
  }
}

/** While its harness is being rebound a session takes queue entries only (5.1). */
export const admitWhileRecovering = (view: AdmissionView, request: AdmissionRequest): AdmissionKind => {
  const kind = admit(view, request)
  switch (kind._tag) {
    case "Busy":
    case "Steer":
    case "Start":
      return { _tag: "Recovering" }
    default:
      return kind
  }
}

// ---------------------------------------------------------------- settling (5.4)

/** Why the stream of a turn is over. */
export type StreamEnd =
  | { readonly _tag: "Terminal"; readonly event: TerminalEvent }
  | { readonly _tag: "Quiet" }
  | {
      readonly _tag: "Failed"
      readonly code: TurnFailureCode
      readonly message: string
      readonly errorClass?: string
      /** The turn did not survive a restart; its interactions are withdrawn for that reason. */
      readonly restart?: boolean
    }
  | { readonly _tag: "Defect" }

/** How the turn's own cancel stands when it ends. */
export type CancelFact =
  | { readonly _tag: "None" }
  /** Asked for and acknowledged by the harness. */
  | { readonly _tag: "Acknowledged"; readonly reason: CancelReason }
  /** Never acknowledged; the harness's process is gone. */
  | { readonly _tag: "Forced" }
  /** Never acknowledged; the process must not be ended (RT-161). */
  | { readonly _tag: "Unacknowledged" }
  /** Asked for, not answered yet; `reason` is who asked. */
  | { readonly _tag: "Asked"; readonly reason: CancelReason }
  /** A budget of the turn is spent (D-28). */
  | {
      readonly _tag: "Budget"
      readonly code: "budget" | "timeout"
      readonly message: string
      readonly stop: BudgetStop
    }

/** Which part of a turn's budget is spent; in the journal it is the diagnostic `stop` (SRV-269). */
export type BudgetStop = "max_rounds" | "max_output_tokens" | "timeout"

/** The terminal state of a turn, before it is dressed with ids and times. */
export type Ending =
  | { readonly status: "completed"; readonly reason: "end_turn" | "refusal"; readonly finalText?: string }
  | { readonly status: "cancelled"; readonly reason: CancelReason }
  | {
      readonly status: "failed"
      readonly code: TurnFailureCode
      readonly message: string
      readonly errorClass?: string
      readonly event?: TerminalEvent
    }

/**
 * The order of 5.4: acknowledged cancel, then `error`, then `finish`. `erred` is the first `error` of the stream, which
 * a later `finish` does not undo (RT-142); a stream without a terminal event is a protocol failure (RT-143).
 */
export const settle = (end: StreamEnd, erred: TerminalEvent | undefined, cancel: CancelFact): Ending => {
  if (cancel._tag === "Budget") {
    // Of two budgets that are spent together the rounds are told (SRV-266).
    if (end._tag === "Terminal" && end.event.type === "error" && ["budget", cancel.code].includes(end.event.code))
      return ofError(end.event)
    return { status: "failed", code: cancel.code, message: cancel.message }
  }
  if (cancel._tag === "Acknowledged") return { status: "cancelled", reason: cancel.reason }
  if (end._tag === "Terminal" && end.event.type === "cancelled") {
    return { status: "cancelled", reason: cancel._tag === "Asked" ? cancel.reason : end.event.reason }
  }
  if (erred !== undefined) return ofError(erred)
  if (end._tag === "Terminal") {
    if (end.event.type === "error") return ofError(end.event)
    if (end.event.type === "finish") {
      return end.event.finalText === undefined
        ? { status: "completed", reason: end.event.reason }
        : { status: "completed", reason: end.event.reason, finalText: end.event.finalText }
    }
  }
  if (cancel._tag === "Forced") return { status: "cancelled", reason: "forced" }
  if (cancel._tag === "Unacknowledged") {
    return { status: "failed", code: "cancel_unacknowledged", message: "The harness did not acknowledge the cancel" }
  }
  if (end._tag === "Failed") {
    return end.errorClass === undefined
      ? { status: "failed", code: end.code, message: end.message }
      : { status: "failed", code: end.code, message: end.message, errorClass: end.errorClass }
  }
  if (end._tag === "Defect") return { status: "failed", code: "internal", message: "The harness driver failed" }
  return {
    status: "failed",
    code: "harness_protocol",
    message: "The harness stopped without saying how the turn ended"
  }
}

const ofError = (event: TerminalEvent): Ending =>
  event.type === "error"
    ? event.errorClass === undefined
      ? { status: "failed", code: event.code, message: event.error, event }
      : { status: "failed", code: event.code, message: event.error, errorClass: event.errorClass, event }
    : { status: "failed", code: "internal", message: "The harness driver failed" }

// ---------------------------------------------------------------- cancelling (5.5)

/** Where the ladder of a cancel stands. */
export type CancelState =
  | { readonly _tag: "Idle" }
  | { readonly _tag: "Requested"; readonly at: number }
  | { readonly _tag: "Acknowledged" }
  /** Closing the native session and ending its process. */
  | { readonly _tag: "Forcing" }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Stuck" }
  | { readonly _tag: "Settled" }

export type CancelInput =
  | { readonly _tag: "Request"; readonly at: number }
  | { readonly _tag: "Acknowledge" }
  | { readonly _tag: "GraceOver"; readonly shared: boolean }
  | { readonly _tag: "ProcessGone" }
  | { readonly _tag: "TurnSettled" }

/** Request → acknowledgement within the grace → close and kill → settle. A settled turn stays settled (RT-163, RT-165). */
export const cancelStep = (state: CancelState, input: CancelInput): CancelState => {
  if (state._tag === "Settled" || input._tag === "TurnSettled") return { _tag: "Settled" }
  switch (input._tag) {
    case "Request":
      return state._tag === "Idle" ? { _tag: "Requested", at: input.at } : state
    case "Acknowledge":
      return state._tag === "Requested" || state._tag === "Forcing" ? { _tag: "Acknowledged" } : state
    case "GraceOver":
      if (state._tag !== "Requested") return state
      return input.shared ? { _tag: "Stuck" } : { _tag: "Forcing" }
    case "ProcessGone":
      return state._tag === "Forcing" || state._tag === "Requested" ? { _tag: "Gone" } : state
  }
}

// ---------------------------------------------------------------- recovery (5.6)

export interface RecoveryView {
  readonly handedOver: boolean
  readonly cancelRequested: boolean
  /** How often recovery took the turn up without a new event of its own (RUN-523). */
  readonly recoveries: number
  readonly turnRecovery: "none" | "reattach" | "resume"
  readonly policy: "all" | "opened"
  /** The harness began it itself: there is no prompt to run it from (RT-147). */
  readonly own?: boolean
}

export type RecoveryKind =
  /** Nothing happened yet: run it now, `turn-start` is not repeated. */
  | "run"
  /** The driver continues it from its own durable record. */
  | "continue"
  /** Fail it with `turn_interrupted`. */
  | "interrupt"
  /** A cancel was recorded before the crash: finish it as cancelled. */
  | "cancel"

/** A turn taken up this often without an event of its own is given up (RUN-523). */
export const recoveryLimit = 2

/** Table 5.6. Implements RT-162, RT-171, RT-175, RUN-523. */
export const classify = (view: RecoveryView): RecoveryKind => {
  if (view.cancelRequested) return "cancel"
  if (view.policy === "opened") return "interrupt"
  if (view.recoveries >= recoveryLimit) return "interrupt"
  if (!view.handedOver) return view.own === true ? "interrupt" : "run"
  return view.turnRecovery === "none" ? "interrupt" : "continue"
}
