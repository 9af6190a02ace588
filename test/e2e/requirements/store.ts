/** Rules STO- of the stores. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

const postgres = "PostgreSQL comes with the HTTP service"

export const storeRules: ReadonlyArray<Requirement> = [
  // 13.1 Interface
  { id: "STO-001", title: "entries and projections of a call are stored together" },
  { id: "STO-002", title: "numbers are allocated under the row lock, without gaps" },
  { id: "STO-003", title: "every turn write is checked against the fence" },
  { id: "STO-004", title: "settling twice gives the first result" },
  { id: "STO-005", title: "projections can be rebuilt from events" },
  { id: "STO-006", title: "the store writes what its reader accepts" },
  { id: "STO-007", title: "a crash leaves a state before or after" },
  { id: "STO-008", title: "a page costs memory for that page" },
  { id: "STO-009", title: "a wakeup follows its commit" },
  { id: "STO-010", title: "rows of extensions commit with the call" },
  { id: "STO-011", title: "other sessions' writes commit with the call and respect leases" },
  { id: "STO-012", title: "text columns hold well-formed text" },
  // 13.3 Memory
  { id: "STO-020", title: "the memory store passes the contract" },
  { id: "STO-021", title: "a snapshot keeps numbers, receipts and identities" },
  { id: "STO-022", title: "values are copied in and out" },
  // 13.4 SQLite
  { id: "STO-040", title: "pragmas are set and read back" },
  { id: "STO-041", title: "what a reader saw was committed with full durability" },
  { id: "STO-042", title: "calls waiting together share a commit and fail alone" },
  { id: "STO-043", title: "a busy file never blocks the process for long" },
  { id: "STO-044", title: "ten processes on one file lose nothing" },
  { id: "STO-045", title: "migrations run forward, each in a transaction" },
  { id: "STO-046", title: "a newer or foreign file is refused unchanged" },
  { id: "STO-047", title: "an undecodable row fails for its session" },
  { id: "STO-048", title: "a full disk fails the write and not the process" },
  { id: "STO-049", title: "a log cut anywhere reopens to a committed prefix" },
  { id: "STO-050", title: "the driver package is loaded on open" },
  // 13.5 PostgreSQL
  { id: "STO-060", title: "numbers are allocated by a fenced update", open: postgres },
  { id: "STO-061", title: "lease times use the database clock", open: postgres },
  { id: "STO-062", title: "wakeups are batched notifications", open: postgres },
  { id: "STO-063", title: "a lost listener reopens and re-reads", open: postgres },
  { id: "STO-064", title: "migrations take an advisory lock", open: postgres },
  { id: "STO-065", title: "conflicts are retried, then busy", open: postgres },
  { id: "STO-066", title: "a lost connection is unavailability, not a harness error", open: postgres },
  { id: "STO-067", title: "PostgreSQL passes the contract", open: postgres },
  { id: "STO-068", title: "credentials appear nowhere", open: postgres },
  { id: "STO-069", title: "cursors and tokens are safe integers", open: postgres },
  { id: "STO-070", title: "closing with open queries is bounded", open: postgres }
]
