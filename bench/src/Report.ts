/** What a measure answers, and how it is shown. A bar is a goal that is shown, never a gate. */
import { median, percentile, ratioOf } from "./Statistics.ts"

export type Unit = "ms" | "/s" | "MB" | "MB/s" | "rows" | "KB" | "×"

export interface Bar {
  readonly text: string
  readonly isMet: boolean
}

export interface Row {
  readonly measure: string
  readonly name: string
  /** Null when it was not measured; `note` says why. */
  readonly value: number | null
  readonly unit: Unit
  readonly p95?: number
  readonly baseline?: { readonly name: string; readonly value: number }
  /** Ours over the baseline. */
  readonly ratio?: number
  readonly bar?: Bar
  readonly note?: string
}

/** What every measure is given. */
export interface Bench {
  readonly isQuick: boolean
  /** The 10,000-token answer in real time instead of a projection. */
  readonly isFull: boolean
  /** A folder of its own, removed at the end. */
  readonly folder: string
  /** The built program. */
  readonly tackroom: string
  /** `PATH` of the children. */
  readonly path: string
  /** Where packages of other agents are looked for, each a folder that holds `node_modules`. */
  readonly peerRoots: ReadonlyArray<string>
}

export const atMost = (limit: number, value: number, text: string): Bar => ({ text, isMet: value <= limit })
export const atLeast = (limit: number, value: number, text: string): Bar => ({ text, isMet: value >= limit })

/** A row beside a baseline of the same rounds. */
export const compare = (input: {
  readonly measure: string
  readonly name: string
  readonly unit: Unit
  readonly ours: ReadonlyArray<number>
  readonly baseline: string
  readonly theirs: ReadonlyArray<number>
  readonly bar?: (ratio: number) => Bar
  readonly note?: string
}): Row => {
  const ratio = ratioOf(input.ours, input.theirs)
  return {
    measure: input.measure,
    name: input.name,
    value: median(input.ours),
    unit: input.unit,
    p95: percentile(input.ours, input.unit === "ms" ? 0.95 : 0.05),
    baseline: { name: input.baseline, value: median(input.theirs) },
    ratio,
    ...(input.bar === undefined ? {} : { bar: input.bar(ratio) }),
    ...(input.note === undefined ? {} : { note: input.note })
  }
}

const digits = (value: number): string => {
  if (!Number.isFinite(value)) return "–"
  if (value >= 100) return Math.round(value).toLocaleString("en-US")
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

const amount = (value: number | null | undefined, unit: Unit): string =>
  value === null || value === undefined ? "–" : `${digits(value)} ${unit}`

const headings = ["measure", "what", "ours", "p95/p5", "beside", "their value", "ratio", "bar", "met"]

const cells = (row: Row): ReadonlyArray<string> => [
  row.measure,
  row.name,
  row.value === null ? "not measured" : amount(row.value, row.unit),
  row.p95 === undefined ? "" : amount(row.p95, row.unit),
  row.baseline?.name ?? "",
  row.baseline === undefined ? "" : amount(row.baseline.value, row.unit),
  row.ratio === undefined ? "" : row.ratio.toFixed(2),
  row.bar?.text ?? "",
  row.bar === undefined ? "" : row.bar.isMet ? "yes" : "NO"
]

/** A table for people, with the notes below it. p95 of times is the 95th percentile, of rates the 5th: the bad end. */
export const table = (rows: ReadonlyArray<Row>): string => {
  const lines = [headings, ...rows.map(cells)]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const drawn = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  )
  drawn.splice(1, 0, widths.map((width) => "-".repeat(width)).join("  "))
  const notes = rows.flatMap(({ measure, name, note }) =>
    note === undefined ? [] : [`  ${measure} · ${name}: ${note}`]
  )
  return [...drawn, ...(notes.length === 0 ? [] : ["", "Notes", ...notes])].join("\n")
}
