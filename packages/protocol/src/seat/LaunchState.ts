/**
 * Where a seat's launch stands (seat contract 4 and 9.2): the states, which of them take sends, and why nothing started.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"

/** What a seat in each launch state does with a send: takes it, needs a reason with force, or refuses it. @since 0.1.0 */
export const launchStates = {
  none: { sends: "seat_not_ready", needsPerson: false },
  starting: { sends: "seat_not_ready", needsPerson: false },
  ready: { sends: "yes", needsPerson: false },
  resumed: { sends: "yes", needsPerson: false },
  attention: { sends: "seat_needs_attention", needsPerson: true },
  unconfirmed: { sends: "seat_needs_attention", needsPerson: true },
  missing: { sends: "seat_needs_attention", needsPerson: true },
  mismatch: { sends: "seat_needs_attention", needsPerson: true },
  not_started: { sends: "seat_stopped", needsPerson: false },
  stopped: { sends: "seat_stopped", needsPerson: false },
  ended: { sends: "seat_stopped", needsPerson: false }
} as const

/** A launch state of a seat. @since 0.1.0 */
export type LaunchState = keyof typeof launchStates

/** @since 0.1.0 */
export const LaunchState = lazySchema(() =>
  Schema.Literals(Object.keys(launchStates) as ReadonlyArray<LaunchState>).annotate({ identifier: "LaunchState" })
)

/** Outcomes of a launch that leave a seat at work. @since 0.1.0 */
export const goodOutcomes = ["ready", "resumed", "already_running"] as const

/** How one seat came out of `up`, `restore`, `launch` or `down`. @since 0.1.0 */
export const SeatOutcomeWord = lazySchema(() =>
  Schema.Literals([
    "ready",
    "resumed",
    "attention",
    "unconfirmed",
    "missing",
    "mismatch",
    "not_started",
    "already_running",
    "stopped",
    "not_running",
    "left_running"
  ]).annotate({ identifier: "SeatOutcomeWord" })
)
/** @since 0.1.0 */
export type SeatOutcomeWord = typeof SeatOutcomeWord.Type
