/**
 * What a serve-mode program says it can do, in `ready` and in `hello` (SRV-123, SRV-124).
 *
 * @since 0.1.0
 */

/** The names of the contract that any serve-mode program shares, in their order. @since 0.1.0 */
export const contractCapabilities = [
  "submit",
  "answer",
  "cancel",
  "ping",
  "shutdown",
  "ask_id",
  "usage_notify",
  "error_codes",
  "per_run_budget",
  "signal_drain",
  "hello",
  "op_id"
] as const

/** The names that are ours, in their order. @since 0.1.0 */
export const ownCapabilities = [
  "op_id_run",
  "error_reason",
  "line_limit",
  "unique_run_id",
  "submit_after_result",
  "answer_groups",
  "confirm_options",
  "ask_resolved",
  "tool_status",
  "cancel_ladder",
  "durable_session",
  "submission_id",
  "cursor"
] as const

/** Which notify kinds are written: all of them, or those of the contract. @since 0.1.0 */
export type EventSet = "full" | "source"

const withoutSource: ReadonlySet<string> = new Set(["ask_resolved", "tool_status"])

/** The list of a process: a name stands in it only when its behaviour is in force (SRV-124). @since 0.1.0 */
export const capabilitiesOf = (events: EventSet): ReadonlyArray<string> =>
  [...contractCapabilities, ...ownCapabilities].filter((name) => events === "full" || !withoutSource.has(name))
