/**
 * One run of the command: prepares a family, runs the selected checks, writes the reports, says the exit code.
 *
 * It owns the order of these and the form of the messages. The process (streams, signals, exit) is `main`'s.
 */
import { Clock, Effect, Exit } from "effect"
import { writeFileSync } from "node:fs"
import { performance } from "node:perf_hooks"
import { findProgram } from "@tackroom/sdk/process"
import { acpFamily } from "./acp/AcpFamily.ts"
import { type Arguments, type CheckArguments, parseArguments, type SelfTestArguments } from "./Arguments.ts"
import { type Family, type Place, Usage } from "./Family.ts"
import { type KitFailed, kitFailed } from "./Check.ts"
import { helpText } from "./Help.ts"
import {
  closingLines,
  headLines,
  humanReport,
  jsonReport,
  resultLines,
  type RunFacts,
  silenceNotice
} from "./Report.ts"
import { failureOf, runAll } from "./Schedule.ts"
import { select } from "./Selection.ts"
import { complaints, runTwins } from "./SelfTest.ts"
import { runnerFamily } from "./runner/RunnerFamily.ts"
import { serveFamily } from "./serve/ServeFamily.ts"
import { exitCode, exitCodes, type Result } from "./Verdict.ts"

/** The wires that can be checked. */
const families: ReadonlyArray<Family> = [runnerFamily, serveFamily, acpFamily]

export interface Output {
  readonly out: (text: string) => void
  readonly error: (text: string) => void
}

const writeReport = (path: string, text: string): Effect.Effect<void, KitFailed> =>
  Effect.try({
    try: () => writeFileSync(path, text),
    catch: (cause) =>
      kitFailed(`the report cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`)
  })

/** Why the command under test cannot be started at all. Words of the kit in it are filled in later. */
const absentProgram = ([word = ""]: ReadonlyArray<string>, { cwd, env }: Place): string | undefined =>
  process.platform === "win32" || word.includes("{") || findProgram(word, cwd, env["PATH"]) !== undefined
    ? undefined
    : `the command under test cannot be started: ${word} is no program`

const check = Effect.fn("Conformance.check")(function* (
  args: CheckArguments,
  place: Place,
  version: string,
  output: Output
) {
  const { family } = args
  const startedAt = new Date(yield* Clock.currentTimeMillis).toISOString()
  const began = performance.now()
  const prepared = yield* family.prepare(
    { command: args.command, flags: args.flags, timing: args.timing, keep: args.keep },
    place
  )
  const selection = select(prepared.checks, args)
  if ("unknown" in selection) return yield* new Usage({ message: `there is no check ${selection.unknown.join(", ")}` })

  const facts = (): RunFacts => ({
    kit: `tackroom-conformance ${version}`,
    family: family.name,
    command: args.command,
    profile: args.profile,
    startedAt,
    durationMs: Math.round(performance.now() - began),
    timing: args.timing,
    closing: prepared.closing
  })
  let silence = false
  const say = (lines: ReadonlyArray<string>): void => {
    if (args.json !== "-") output.out(`${lines.join("\n")}\n`)
  }
  const absent = absentProgram(args.command, place)
  if (absent !== undefined) return yield* new Usage({ message: absent })
  const report = (end: RunFacts, results: ReadonlyArray<Result>) =>
    Effect.gen(function* () {
      say(closingLines(end, results))
      const json = `${JSON.stringify(jsonReport(end, results), undefined, 2)}\n`
      if (args.json === "-") output.out(json)
      else if (args.json !== undefined) yield* writeReport(args.json, json)
      if (args.report !== undefined) yield* writeReport(args.report, humanReport(end, results))
    })
  say(headLines(facts()))
  const { silentCases } = prepared
  const judged = new Map<string, Result>()
  /** What a run that was ended from outside came to: what was judged by then. */
  const cutOff = Effect.suspend(() => {
    const results = selection.checks.flatMap(({ id }) => judged.get(id) ?? [])
    const unfinished = selection.checks.flatMap(({ id }) => (judged.has(id) ? [] : [id]))
    return report(
      { ...facts(), stopped: { why: "The run was ended from outside before its end.", unfinished } },
      results
    )
  }).pipe(Effect.catch(({ message }) => Effect.sync(() => output.error(`tackroom-conformance: ${message}\n`))))
  const results = yield* runAll(selection.checks, {
    jobs: args.jobs,
    profile: args.profile,
    excluded: selection.excluded,
    ...(silentCases === undefined ? {} : { silentCases }),
    onSilence: () => {
      silence = true
    },
    onResult: (result) => {
      judged.set(result.id, result)
      say(resultLines(result))
    }
  }).pipe(Effect.onInterrupt(() => cutOff))
  yield* report(
    silence && silentCases !== undefined
      ? { ...facts(), stopped: { why: silenceNotice(silentCases), unfinished: [] } }
      : facts(),
    results
  )
  return exitCode(results)
})

/** The reference must pass everything, and each twin is run on its own promise and on others drawn by the seed. */
const selfTest = Effect.fn("Conformance.selfTest")(function* (args: SelfTestArguments, place: Place, output: Output) {
  const { scale } = args.timing
  const subject = args.family.selfTest(place, scale)
  const seed = args.seed ?? (yield* Clock.currentTimeMillis) & 0x7fff_ffff
  output.out(`the check ${args.family.name}, checked: seed ${seed}, times scaled by ${scale}\n\n`)
  const checks = yield* subject.checksOf(undefined, args.timing.patience)
  const results = yield* runAll(checks, {
    jobs: args.jobs,
    profile: "tackroom",
    excluded: new Set(),
    onResult: () => undefined
  })
  const failed = results.filter(({ verdict }) => verdict !== "pass")
  output.out(`reference: ${results.length - failed.length} of ${results.length} promises kept\n`)
  for (const result of failed) output.out(`${resultLines(result).join("\n")}\n`)
  const twins = yield* runTwins(subject, { ...args, seed, patience: args.timing.patience }, (result) => {
    const wrong = complaints([result])
    output.out(`${wrong.length === 0 ? "ok  " : "FAIL"} twin of ${result.twin.id}: ${result.twin.fault}\n`)
    for (const line of wrong) output.out(`       ${line}\n`)
  })
  const wrong = complaints(twins)
  output.out(`\n${twins.length} twins, ${wrong.length} complaints\n`)
  return failed.length === 0 && wrong.length === 0 ? exitCodes.kept : exitCodes.broken
})

const perform = (
  args: Arguments,
  place: Place,
  version: string,
  output: Output
): Effect.Effect<number, KitFailed | Usage> => {
  switch (args._tag) {
    case "Help":
      return Effect.sync(() => {
        output.out(helpText(args.family, families))
        return exitCodes.kept
      })
    case "Version":
      return Effect.sync(() => {
        output.out(`${version}\n`)
        return exitCodes.kept
      })
    case "Usage":
      return Effect.fail(new Usage({ message: args.message }))
    case "Check":
      return Effect.scoped(check(args, place, version, output))
    case "SelfTest":
      return Effect.scoped(selfTest(args, place, output))
  }
}

/** Runs a command line; the result is the exit code. */
export const conformance = (
  argv: ReadonlyArray<string>,
  place: Place,
  version: string,
  output: Output
): Effect.Effect<number> =>
  perform(parseArguments(argv, families), place, version, output).pipe(
    Effect.catchTag("Usage", ({ message }) =>
      Effect.sync(() => {
        output.error(`tackroom-conformance: ${message}\nTry: tackroom-conformance --help\n`)
        return exitCodes.usage
      })
    ),
    Effect.exit,
    Effect.map((exit) => {
      if (Exit.isSuccess(exit)) return exit.value
      output.error(`tackroom-conformance: the kit failed: ${failureOf(exit) ?? ""}\n`)
      return exitCodes.kit
    })
  )
