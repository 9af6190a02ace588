/** What the demonstration has to prove, from the journal alone and from what the client saw. Pure. */
import type { RunItem } from "../../packages/sdk/src/client/index.ts"

export interface Check {
  readonly name: string
  readonly good: boolean
  readonly detail: string
}

interface Record {
  readonly seq: number
  readonly type: string
  readonly [field: string]: unknown
}

const check = (name: string, good: boolean, detail: string): Check => ({ name, good, detail })

const isDispatch = (event: Record): boolean => {
  const { metadata, status, type } = event
  return (
    type === "tool-status" &&
    status === "running" &&
    typeof metadata === "object" &&
    metadata !== null &&
    "dispatch" in metadata &&
    metadata.dispatch === true
  )
}

const counts = (values: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const found = new Map<string, number>()
  for (const value of values) found.set(value, (found.get(value) ?? 0) + 1)
  return found
}

export const isIncreasingByOne = (numbers: ReadonlyArray<number>, first: number): boolean =>
  numbers.every((number, index) => number === first + index)

/** The journal from its start, and the events which the two clients were given, in order. */
export const journalChecks = (
  journal: ReadonlyArray<Record>,
  seen: ReadonlyArray<Pick<RunItem, "wire">>,
  startCursor: number
): ReadonlyArray<Check> => {
  const numbers = journal.map(({ seq }) => seq)
  const given = seen.map(({ wire }) => wire.seq)
  const same = given.every((seq, index) => JSON.stringify(seen[index]?.wire) === JSON.stringify(journal[seq - 1]))
  const messages = journal.filter(({ type }) => type === "user-message")
  const dispatched = counts(journal.filter(isDispatch).map((event) => String(event["tool_call_id"])))
  const twice = [...dispatched].filter(([, times]) => times > 1)
  const terminals = journal.filter(({ type }) => type === "finish" || type === "error" || type === "cancelled")
  return [
    check("the journal has events 1 to N without a gap", isIncreasingByOne(numbers, 1), `N = ${numbers.length}`),
    check(
      "the client saw every event of the run once, across the crash",
      isIncreasingByOne(given, startCursor + 1) && given.at(-1) === numbers.at(-1),
      `${given[0] ?? 0} to ${given.at(-1) ?? 0}`
    ),
    check("and byte for byte what the journal has", same, `${given.length} compared`),
    check("there is one user message", messages.length === 1, `${messages.length}`),
    check("no tool call ran twice", twice.length === 0 && dispatched.size > 0, `${dispatched.size} calls`),
    check("the run has one end", terminals.length === 1, terminals.map(({ type }) => type).join(", "))
  ]
}

export const plain = check
