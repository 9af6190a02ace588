/** What became of a launch, decided from its record (seat contract section 4, rows N1 to N9). Pure. */
import type { LaunchRecord, LaunchState } from "@tackroom/protocol/seat"

export interface LaunchFacts {
  /** The conversation that a resume asked for, `null` for a new launch. */
  readonly resumes: string | null
  /** Whether the program was to write a record at all. */
  readonly wantsRecord: boolean
  readonly runner: boolean
}

/** What is set: the launch state, and what happens to the stored conversation. */
export interface LaunchOutcome {
  readonly state: LaunchState
  readonly conversation:
    | { readonly _tag: "Keep" }
    | { readonly _tag: "None" }
    | { readonly _tag: "Set"; readonly nativeRef: string }
    | { readonly _tag: "Missing" }
  readonly reason: string | null
  readonly otherRef: string | null
}

const outcome = (
  state: LaunchState,
  conversation: LaunchOutcome["conversation"],
  reason: string | null = null,
  otherRef: string | null = null
): LaunchOutcome => ({ state, conversation, reason, otherRef })

const keep = { _tag: "Keep" } as const
const none = { _tag: "None" } as const

/** What a usable record says; `undefined` when none came within the wait. */
export const launchOutcome = (facts: LaunchFacts, record: LaunchRecord | undefined): LaunchOutcome => {
  if (facts.resumes !== null) {
    if (record === undefined) return outcome("unconfirmed", keep, "no_record")
    if (record.nativeRef === undefined) {
      return record.error === "missing"
        ? outcome("missing", { _tag: "Missing" }, record.error)
        : outcome("unconfirmed", keep, record.error)
    }
    return record.nativeRef === facts.resumes
      ? outcome("resumed", keep)
      : outcome("mismatch", keep, "another_conversation", record.nativeRef)
  }
  if (record === undefined) {
    // A plain program that tells nothing is at work without an identity.
    return facts.wantsRecord && facts.runner ? outcome("attention", none, "no_record") : outcome("ready", none)
  }
  return record.nativeRef === undefined
    ? outcome("attention", none, record.error)
    : outcome("ready", { _tag: "Set", nativeRef: record.nativeRef })
}
