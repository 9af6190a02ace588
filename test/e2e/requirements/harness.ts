/** Rules HRN- of harness drivers, as far as the native, the scripted and the ACP harness and all children are concerned. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

const sdk = "comes with the harnesses of other programs"

export const harnessRules: ReadonlyArray<Requirement> = [
  // 10.2 Turn and session rules
  { id: "HRN-001", title: "an undeclared call is unsupported, never empty success" },
  { id: "HRN-002", title: "every declared capability is exercised by the kit" },
  { id: "HRN-003", title: "opening a session twice yields one native session" },
  { id: "HRN-004", title: "resume reopens the bound conversation or fails" },
  { id: "HRN-005", title: "missing is said on the harness's own evidence only" },
  { id: "HRN-006", title: "a pending handle may be created again" },
  { id: "HRN-007", title: "another real path is an unconfirmed resume" },
  { id: "HRN-008", title: "replayed frames are suppressed as a block" },
  { id: "HRN-009", title: "one terminal event, then the stream ends" },
  { id: "HRN-010", title: "updates of a session still opening are kept" },
  { id: "HRN-011", title: "the driver reads between turns too" },
  { id: "HRN-012", title: "one prompt at a time per native session" },
  { id: "HRN-013", title: "no prompt and no tool call is sent twice" },
  { id: "HRN-014", title: "a repeated tool start updates its call" },
  { id: "HRN-015", title: "native limits map to truncated, budget and refusal" },
  { id: "HRN-016", title: "error classes come from structured data first" },
  { id: "HRN-017", title: "usage is converted by golden cases" },
  { id: "HRN-018", title: "a restart for a config change waits for the turn" },
  { id: "HRN-019", title: "what drivers share is written once" },
  // 10.3 Processes
  { id: "HRN-030", title: "every child leads a group that ends whole" },
  { id: "HRN-031", title: "a child sees the short list and what was named" },
  { id: "HRN-032", title: "a child is recorded before its use" },
  { id: "HRN-033", title: "children of a dead owner are ended at start-up, reused pids spared" },
  { id: "HRN-034", title: "no child group survives its killed owner" },
  { id: "HRN-035", title: "a child's exit fails its calls at once" },
  { id: "HRN-036", title: "the tail of stderr is bounded and redacted" },
  { id: "HRN-037", title: "writing to a dead child fails that call only" },
  { id: "HRN-038", title: "an early exit fails the opening call with its reason" },
  { id: "HRN-039", title: "shutdown goes end of input, TERM, KILL" },
  { id: "HRN-040", title: "an idle child is ended, a working one is not" },
  { id: "HRN-041", title: "a start racing with disposal leaves no child" },
  { id: "HRN-042", title: "cycles leave no process behind" },
  { id: "HRN-043", title: "lines split at the newline byte; bad lines are counted and skipped" },
  { id: "HRN-044", title: "noise is tolerated up to a hundred lines in a row" },
  { id: "HRN-045", title: "Windows launches resolve real executables" },
  // 10.5 Configured connections
  { id: "HRN-060", title: "unusable connections fail closed", open: sdk },
  { id: "HRN-061", title: "leased secrets equal the referenced ones", open: sdk },
  { id: "HRN-062", title: "a connection id selects no native factory", open: sdk },
  { id: "HRN-063", title: "provider exceptions reach callers as codes", open: sdk },
  // 10.8 Test kits
  { id: "HRN-070", title: "the kit covers the whole list of situations" },
  { id: "HRN-071", title: "each kit case is failed by a broken driver made for it" },
  { id: "HRN-072", title: "runs of real programs are gated and skipped loudly" },
  // 11.6 Harness rules: acp, serve, host, native, scripted
  { id: "HRN-100", title: "an ACP agent is offered neither files nor terminals; other requests are unknown" },
  { id: "HRN-101", title: "signing in happens where it was asked for, and is named where it is needed" },
  { id: "HRN-102", title: "config options come before modes, and only what is offered is set" },
  { id: "HRN-103", title: "an empty answer to load or resume is success" },
  { id: "HRN-104", title: "goals of an ACP agent are read as negotiated", open: "no goals in the driver contract yet" },
  {
    id: "HRN-105",
    title: "shared agent processes are keyed by all that shapes them",
    open: "one process a session only"
  },
  { id: "HRN-106", title: "profiles hold what is known of an agent: evidence, asking mode, faults" },
  { id: "HRN-107", title: "request id 0 is an id" },
  { id: "HRN-108", title: "options are chosen by kind and passed on unchanged" },
  { id: "HRN-220", title: "serve: the run's id is the turn's, asks are bound by id, a result with errors is failed" },
  { id: "HRN-221", title: "serve: an error line without a result is a fault of the protocol" },
  { id: "HRN-240", title: "host: the message id is the submission id, a restart finds the run again" },
  { id: "HRN-241", title: "host: the place in the host's journal is kept with each batch, nothing is taken twice" },
  {
    id: "HRN-242",
    title: "host: a callback lost with its process leaves its call uncertain",
    open: "our host takes no tools of applications yet"
  },
  { id: "HRN-260", title: "native goes on from the journal and repeats no tool" },
  { id: "HRN-280", title: "scenarios are deterministic and say that they are scripted" },
  { id: "HRN-281", title: "a fixture replays with its spacing or at once" }
]
