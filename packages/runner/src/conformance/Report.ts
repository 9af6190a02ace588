/**
 * The report of a run, for programs and for people. Pure.
 *
 * Both say what the run is: evidence for the versions that were run, no certificate; and both say so when times were scaled.
 */
import { realTiming, type Timing } from "./Timing.ts"
import { type Profile, type Result, type Summary, summarize } from "./Verdict.ts"

export interface Stopped {
  readonly why: string
  readonly unfinished: ReadonlyArray<string>
}

export interface RunFacts {
  /** Name and version of this kit. */
  readonly kit: string
  readonly family: string
  readonly command: ReadonlyArray<string>
  readonly profile: Profile
  readonly startedAt: string
  readonly durationMs: number
  readonly timing: Timing
  /** Why the run ended before all was judged, and what was not. */
  readonly stopped?: Stopped
  /** What a person still has to look at, and other words of the family at the end of a report. */
  readonly closing: ReadonlyArray<string>
}

export interface JsonReport {
  readonly format: 1
  readonly kit: string
  readonly family: string
  readonly command: ReadonlyArray<string>
  readonly profile: Profile
  readonly startedAt: string
  readonly durationMs: number
  /** Present when times were not the real ones: then this is no evidence of compatibility. */
  readonly timeScale?: number
  /** Present when the run ended before all was judged: why, and the promises without a result. */
  readonly stopped?: Stopped
  readonly summary: Summary
  readonly results: ReadonlyArray<Result>
  readonly notice: string
}

/** What a report says of a program that was not heard: `needs:` alone would not tell. */
export const silenceNotice = (cases: number): string =>
  `The program was not heard in any case: it started no agent, posted nothing and wrote no record. After ${cases} failed musts the rest was not run.`

const notice = "Passing is evidence of compatibility for the versions named here. It is not a certificate."

const scaledNotice = (timing: Timing): string =>
  `Times were scaled by ${timing.scale}: this run tests a program that was told to live at that scale, and is no evidence of compatibility.`

export const jsonReport = (facts: RunFacts, results: ReadonlyArray<Result>): JsonReport => {
  const { closing: _, timing, ...run } = facts
  const scaled = timing.scale !== realTiming.scale
  return {
    format: 1,
    ...run,
    ...(scaled ? { timeScale: timing.scale } : {}),
    summary: summarize(results),
    results,
    notice: scaled ? scaledNotice(timing) : notice
  }
}

// oxlint-disable-next-line no-control-regex -- what a pane got must not reach the reader's terminal as control
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/gu

/** On one line, and harmless to the terminal that shows it. */
const visible = (text: string): string =>
  text.replace(control, (unit) => {
    const named = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[unit]
    return named ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  })

const mark = { pass: "ok  ", fail: "FAIL", skip: "skip" } as const

/** One line a promise, and under a failed one what was seen. */
export const resultLines = (result: Result): ReadonlyArray<string> => {
  const level = result.level === "must" ? "must  " : "should"
  const seconds = `${(result.durationMs / 1_000).toFixed(1)} s`
  const reason = result.verdict === "skip" && result.reason !== undefined ? `: ${result.reason}` : ""
  const line = `${mark[result.verdict]} ${result.id} ${level} ${result.title}${reason} (${seconds})`
  if (result.verdict !== "fail") return [line]
  return [
    line,
    `       ${visible(result.reason ?? "broken")}`,
    ...result.evidence.map(
      ({ at, kind, text }) => `       ${String(at).padStart(6)} ms ${kind.padEnd(7)} ${visible(text)}`
    )
  ]
}

export const headLines = (facts: RunFacts): ReadonlyArray<string> => [
  `${facts.kit}: ${facts.family}`,
  `command: ${facts.command.join(" ")}`,
  `profile: ${facts.profile}`,
  ...(facts.timing.scale === realTiming.scale ? [] : [scaledNotice(facts.timing)]),
  ""
]

export const closingLines = (facts: RunFacts, results: ReadonlyArray<Result>): ReadonlyArray<string> => {
  const { fail, pass, skip } = summarize(results)
  return [
    "",
    ...(facts.stopped === undefined ? [] : [facts.stopped.why, ""]),
    `${pass} passed, ${fail} failed, ${skip} skipped in ${(facts.durationMs / 1_000).toFixed(1)} s`,
    facts.timing.scale === realTiming.scale ? notice : scaledNotice(facts.timing),
    ...(facts.closing.length === 0 ? [] : ["", ...facts.closing])
  ]
}

export const humanReport = (facts: RunFacts, results: ReadonlyArray<Result>): string =>
  [...headLines(facts), ...results.flatMap(resultLines), ...closingLines(facts, results), ""].join("\n")
