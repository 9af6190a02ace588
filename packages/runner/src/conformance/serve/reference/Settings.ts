/**
 * What the reference program was told on its command line, and the fault that is switched on. Pure.
 *
 * A fault is named by the rule it breaks, so that a broken twin is this program with one flag. The reference shares no code
 * with `tackroom serve`: it is small on purpose and stands beside the checks as their own proof.
 */
import { parseArgs } from "node:util"

const contract = [
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
]

const own = [
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
  "submission_id"
]

export interface Settings {
  /** Only what every program of this mode has. */
  readonly bare: boolean
  readonly capabilities: ReadonlyArray<string>
  readonly maxRounds: number | undefined
  readonly timeoutMs: number | undefined
  readonly answerTimeoutMs: number | undefined
  /** Where the session is kept, and which one is to be resumed. */
  readonly state: string | undefined
  readonly session: string | undefined
  readonly broken: (rule: string) => boolean
}

const positive = (text: string | undefined): number | undefined => {
  const value = Number(text ?? "0")
  return value > 0 ? value : undefined
}

const inMs = (seconds: number | undefined): number | undefined => (seconds === undefined ? undefined : seconds * 1_000)

export const readSettings = (argv: ReadonlyArray<string>): Settings => {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      bare: { type: "boolean" },
      fault: { type: "string" },
      "max-rounds": { type: "string" },
      timeout: { type: "string" },
      "answer-timeout": { type: "string" },
      state: { type: "string" },
      session: { type: "string" }
    }
  })
  const bare = values.bare === true
  const broken = (rule: string): boolean => values.fault === rule
  return {
    bare,
    capabilities: bare ? contract : [...contract, ...own],
    maxRounds: broken("SRV-263") ? undefined : positive(values["max-rounds"]),
    timeoutMs: broken("SRV-265") ? undefined : inMs(positive(values.timeout)),
    answerTimeoutMs: inMs(positive(values["answer-timeout"])),
    state: values.state,
    session: broken("SRV-292") ? undefined : values.session,
    broken
  }
}
