/**
 * The command line of `tackroom-conformance`. Pure: it reads words.
 *
 * Everything before `--` is for the kit, everything behind it is the command under test. Flags that all families have are
 * read here; a family adds its own, each with one value.
 */
import { parseArgs } from "node:util"
import type { Family } from "./Family.ts"
import { idsOf } from "./Selection.ts"
import { realTiming, type Timing } from "./Timing.ts"
import type { Profile } from "./Verdict.ts"

export interface CheckArguments {
  readonly _tag: "Check"
  readonly family: Family
  readonly command: ReadonlyArray<string>
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly only: ReadonlyArray<string>
  readonly skip: ReadonlyArray<string>
  readonly profile: Profile
  readonly jobs: number
  readonly json: string | undefined
  readonly report: string | undefined
  readonly keep: boolean
  readonly timing: Timing
}

/** The checks of a family are checked themselves. */
export interface SelfTestArguments {
  readonly _tag: "SelfTest"
  readonly family: Family
  readonly seed: number | undefined
  readonly others: number
  readonly jobs: number
  readonly timing: Timing
}

export type Arguments =
  | CheckArguments
  | SelfTestArguments
  | { readonly _tag: "Help"; readonly family: Family | undefined }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Usage"; readonly message: string }

const flags = {
  only: { type: "string", multiple: true },
  skip: { type: "string", multiple: true },
  profile: { type: "string" },
  jobs: { type: "string" },
  json: { type: "string" },
  report: { type: "string" },
  keep: { type: "boolean" },
  "time-scale": { type: "string" },
  patience: { type: "string" }
} as const

const selfTestFlags = {
  seed: { type: "string" },
  others: { type: "string" },
  jobs: { type: "string" },
  "time-scale": { type: "string" },
  patience: { type: "string" }
} as const

const usage = (message: string): Arguments => ({ _tag: "Usage", message })

const isProfile = (value: string): value is Profile => value === "contract" || value === "tackroom"

const parse = (args: ReadonlyArray<string>, family: Family) => {
  const own = Object.fromEntries(Object.keys(family.flags).map((name) => [name, { type: "string" } as const]))
  try {
    return parseArgs({ args: [...args], options: { ...own, ...flags }, allowPositionals: false, strict: true })
  } catch (cause) {
    return cause instanceof Error ? (cause.message.split(". ")[0] ?? cause.message) : "the flags are not understood"
  }
}

const numberIn = (text: string | undefined, usual: number, from: number, to: number): number | undefined => {
  if (text === undefined) return usual
  const number = Number(text)
  return text.trim() !== "" && number >= from && number <= to ? number : undefined
}

const parseSelfTest = (args: ReadonlyArray<string>, families: ReadonlyArray<Family>): Arguments => {
  const [name, ...rest] = args
  const family = families.find((one) => one.name === name)
  if (family === undefined) return usage("self-test: say which check is to be tested")
  try {
    const { values } = parseArgs({ args: rest, options: selfTestFlags, allowPositionals: false, strict: true })
    const seed = values.seed === undefined ? undefined : numberIn(values.seed, 0, 0, 2 ** 32 - 1)
    if (values.seed !== undefined && seed === undefined) return usage("--seed is a number from 0 to 4294967295")
    const others = values.others === "all" ? Number.POSITIVE_INFINITY : numberIn(values.others, 10, 0, 1_000)
    if (others === undefined) return usage("--others is a number from 0 to 1000, or all")
    const jobs = numberIn(values.jobs, 4, 1, 64)
    if (jobs === undefined) return usage("--jobs is a whole number from 1 to 64")
    const scale = numberIn(values["time-scale"], 0.1, 0.01, 1)
    if (scale === undefined) return usage("--time-scale is a number from 0.01 to 1")
    const patience = numberIn(values.patience, 3, 1, 20)
    if (patience === undefined) return usage("--patience is a number from 1 to 20")
    return { _tag: "SelfTest", family, seed, others, jobs, timing: { scale, patience } }
  } catch (cause) {
    return usage(
      cause instanceof Error ? (cause.message.split(". ")[0] ?? cause.message) : "the flags are not understood"
    )
  }
}

export const parseArguments = (argv: ReadonlyArray<string>, families: ReadonlyArray<Family>): Arguments => {
  const end = argv.indexOf("--")
  const words = end < 0 ? argv : argv.slice(0, end)
  const command = end < 0 ? [] : argv.slice(end + 1)
  const [name, ...args] = words
  const family = families.find((one) => one.name === name)
  if (words.includes("--help") || words.includes("-h") || name === "help") {
    return { _tag: "Help", family: family ?? families.find((one) => one.name === args[0]) }
  }
  if (name === "--version" || name === "-V") return { _tag: "Version" }
  if (name === undefined) return usage("say which wire to check")
  if (name === "self-test") return parseSelfTest(args, families)
  if (family === undefined) return usage(`there is no check ${JSON.stringify(name)}`)

  const parsed = parse(args, family)
  if (typeof parsed === "string") return usage(parsed)
  const { values } = parsed
  const empty = Object.entries(values).find(([, value]) => value === "")
  if (empty !== undefined) return usage(`--${empty[0]} needs a value`)
  if (command.length === 0) return usage("the command under test is missing: put it behind --")

  const profile = values.profile ?? "contract"
  if (!isProfile(profile)) return usage("--profile is contract or tackroom")
  const jobs = numberIn(values.jobs, 2, 1, 64)
  if (jobs === undefined || !Number.isInteger(jobs)) return usage("--jobs is a whole number from 1 to 64")
  const scale = numberIn(values["time-scale"], realTiming.scale, 0.01, 1)
  if (scale === undefined) return usage("--time-scale is a number from 0.01 to 1")
  const patience = numberIn(values.patience, realTiming.patience, 1, 20)
  if (patience === undefined) return usage("--patience is a number from 1 to 20")

  const own = new Set(Object.keys(family.flags))
  return {
    _tag: "Check",
    family,
    command,
    flags: Object.fromEntries(
      Object.entries(values).flatMap(([flag, value]) =>
        own.has(flag) && typeof value === "string" ? [[flag, value]] : []
      )
    ),
    only: (values.only ?? []).flatMap(idsOf),
    skip: (values.skip ?? []).flatMap(idsOf),
    profile,
    jobs,
    json: values.json,
    report: values.report,
    keep: values.keep ?? false,
    timing: { scale, patience }
  }
}
