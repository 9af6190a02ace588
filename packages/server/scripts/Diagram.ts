/** The picture of the activity state machine, made from the table that the service runs (`src/rig/ActivityTable.ts`). */
import { readings, type Transition, transitions } from "../src/rig/ActivityTable.ts"

const values = ["unknown", "working", "idle", "needs_input"] as const

const rows: ReadonlyArray<Transition> = Object.values(transitions)

/** Inputs that lead to a reading, whatever was read before. */
const arrows = (): ReadonlyArray<string> =>
  values.flatMap((value) =>
    rows.filter(({ reads }) => reads === value).map(({ id, input }) => `  any --> ${value}: ${id} ${input}`)
  )

/** Readings that end by themselves. */
const ends: ReadonlyArray<string> = [
  "  working --> unknown: evidence ran out",
  "  idle --> unknown: no newer idle report",
  "  unknown --> working: screen changed"
]

const steps = {
  attention: { keep: "", clear: "cleared", raise: "raised", add_ask: "ask added", remove_ask: "ask removed" },
  working: { keep: "", start: "15 s", end: "ends" },
  beat: { keep: "", start: "its liveness", end: "ends" },
  idle: { keep: "", none: "none", start: "2 × liveness" },
  exited: { keep: "", yes: "yes", no: "no" },
  turn: { keep: "", open: "opened", close: "closed", close_own: "closed if it is this one", forget: "forgotten" },
  asks: {
    keep: "",
    withdraw_other_turns: "those of other turns are withdrawn",
    withdraw_turn: "those of the turn are withdrawn",
    withdraw_all: "all are withdrawn",
    stale_earlier: "those of earlier occupants are stale"
  }
} as const

const cells = (row: Transition): ReadonlyArray<string> => [
  row.id,
  row.input,
  steps.attention[row.attention],
  steps.working[row.working],
  steps.beat[row.beat],
  steps.idle[row.idle],
  steps.exited[row.exited],
  steps.turn[row.turn],
  steps.asks[row.asks]
]

const table = (head: ReadonlyArray<string>, body: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...body].map((line) => `| ${line.join(" | ")} |`).join("\n")

export const diagram = (): string => `# The activity of a seat

Generated from \`src/rig/ActivityTable.ts\` by \`node packages/server/scripts/generate.ts\`; a test compares the two.

\`\`\`mermaid
stateDiagram-v2
  state "any reading" as any
  state "needs input" as needs_input
  [*] --> unknown
${[...arrows(), ...ends].join("\n")}
\`\`\`

An arrow is what an input leads to when no stronger reading holds. What a seat reads is decided in this order:

${table(
  ["row", "when", "reads", "source"],
  readings.map(({ id, when, value, source }) => [
    id,
    when.replace("_", " "),
    value.replace("_", " "),
    when === "attention" ? "post or ask" : when === "working" ? "post or beat" : source
  ])
)}

What each input does to the fields; an empty cell leaves the field as it is:

${table(["row", "input", "attention", "working until", "beat until", "idle until", "exited", "turn", "open asks"], rows.map(cells))}
`
