/**
 * The flags that `tackroom serve` and `tackroom run` share (serve-mode 1.1, SRV-001). Pure: it reads words, not files and
 * not the environment. A message in the place of a value says why a word is not understood; nothing was done then.
 */
import { parseArgs, type ParseArgsOptionsConfig } from "node:util"
import type { EventSet } from "@tackroom/protocol/serve"

/** What both faces are told. A null budget is one that was switched off; undefined leaves it to the configuration. */
export interface SharedArguments {
  readonly agent: string | undefined
  readonly harness: string | undefined
  /** As it was given: a connection and its model, or a foreign harness's own name. */
  readonly model: string | undefined
  readonly keyEnv: string | undefined
  readonly baseUrl: string | undefined
  readonly project: string | undefined
  readonly session: string | undefined
  readonly stateDir: string | undefined
  readonly config: string | undefined
  readonly maxRounds: number | null | undefined
  /** Seconds. */
  readonly timeout: number | null | undefined
  readonly events: EventSet | undefined
}

/** Why a command line is not understood. */
export class Usage {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const text = { type: "string" } as const

export const sharedOptions = {
  agent: text,
  harness: text,
  model: text,
  "key-env": text,
  "base-url": text,
  project: text,
  session: text,
  "state-dir": text,
  config: text,
  "max-rounds": text,
  timeout: text,
  events: text
} as const

type SharedValues = { readonly [K in keyof typeof sharedOptions]?: string }

/** A negative number is the value of the flag before it, not a flag. */
const joinNumbers = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let passed = false
  for (const arg of args) {
    const before = out.at(-1)
    if (arg === "--") passed = true
    if (!passed && /^-\d/u.test(arg) && before !== undefined && /^--[a-z-]+$/u.test(before)) {
      out[out.length - 1] = `${before}=${arg}`
    } else out.push(arg)
  }
  return out
}

/** The words of a command line by flag, or why they are not understood. */
export const readWords = <const Options extends ParseArgsOptionsConfig>(
  args: ReadonlyArray<string>,
  options: Options
) => {
  const end = args.indexOf("--")
  const flags = end < 0 ? args : args.slice(0, end)
  try {
    const parsed = parseArgs({ args: [...joinNumbers(args)], options, allowPositionals: true, strict: true })
    const empty = Object.entries(parsed.values).find(([, value]) => value === "")
    return empty === undefined ? parsed : new Usage(`--${empty[0]} needs a value`)
  } catch (cause) {
    const message = cause instanceof Error ? (cause.message.split(". ")[0] ?? cause.message) : ""
    return new Usage(message === "" ? `not understood: ${flags.join(" ")}` : message)
  }
}

/** The largest time that a timer takes, in seconds. */
const longestSeconds = 2_147_483

/** A time in seconds; null when it is switched off. */
export const readSeconds = (
  flag: string,
  given: string | undefined,
  atLeast = 0
): number | null | undefined | Usage => {
  if (given === undefined) return undefined
  const value = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/u.test(given) ? Number(given) : Number.NaN
  if (Number.isNaN(value)) return new Usage(`--${flag} is a number of seconds`)
  if (value <= 0) return null
  return value < atLeast || value > longestSeconds
    ? new Usage(`--${flag} is ${atLeast > 0 ? `from ${atLeast} to` : "at most"} ${longestSeconds} seconds`)
    : value
}

const readRounds = (given: string | undefined): number | null | undefined | Usage => {
  if (given === undefined) return undefined
  const value = /^[+-]?\d+$/u.test(given) ? Number(given) : Number.NaN
  if (!Number.isSafeInteger(value)) return new Usage("--max-rounds is an integer")
  return value <= 0 ? null : value
}

export const readChoice = <const Choice extends string>(
  flag: string,
  given: string | undefined,
  choices: ReadonlyArray<Choice>
): Choice | undefined | Usage => {
  if (given === undefined) return undefined
  return choices.find((choice) => choice === given) ?? new Usage(`--${flag} is one of ${choices.join(", ")}`)
}

const connectionName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/u

/** `CONNECTION/MODEL`, split at the first slash; undefined when it is not that. */
export const splitModel = (given: string): { readonly connection: string; readonly model: string } | undefined => {
  const slash = given.indexOf("/")
  const connection = given.slice(0, Math.max(0, slash))
  const model = given.slice(slash + 1)
  return connectionName.test(connection) && model !== "" && [...model].length <= 128 ? { connection, model } : undefined
}

const isHttpUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { hash, password, protocol, search, username } = new URL(value)
  return (protocol === "http:" || protocol === "https:") && `${username}${password}${search}${hash}` === ""
}

/** What is wrong with the model and what belongs to it. An agent may be one of another harness: its model is its own. */
const modelProblem = (values: SharedValues): string | undefined => {
  const { agent, "base-url": baseUrl, harness, "key-env": keyEnv, model } = values
  const isOurs = harness === undefined ? agent === undefined : harness === "native"
  const split = model === undefined ? undefined : splitModel(model)
  if (model !== undefined && isOurs && split === undefined)
    return "--model is CONNECTION/MODEL, as in openai/gpt-5-mini"
  if (keyEnv !== undefined && !variableName.test(keyEnv)) return "--key-env is the name of a variable, not a key"
  if (baseUrl !== undefined && !isHttpUrl(baseUrl)) return "--base-url is an http or https URL"
  if (keyEnv === undefined && baseUrl === undefined) return undefined
  if (split === undefined) return "--key-env and --base-url belong to the connection of --model"
  return split.connection === "script" ? "the connection script has neither key nor endpoint" : undefined
}

/** What the shared flags say. */
export const readShared = (values: SharedValues): SharedArguments | Usage => {
  if (values.agent !== undefined && values.harness !== undefined) {
    return new Usage("--agent and --harness exclude each other")
  }
  const problem = modelProblem(values)
  if (problem !== undefined) return new Usage(problem)
  const maxRounds = readRounds(values["max-rounds"])
  if (maxRounds instanceof Usage) return maxRounds
  const timeout = readSeconds("timeout", values.timeout)
  if (timeout instanceof Usage) return timeout
  const events = readChoice("events", values.events, ["full", "source"])
  if (events instanceof Usage) return events
  return {
    agent: values.agent,
    harness: values.harness,
    model: values.model,
    keyEnv: values["key-env"],
    baseUrl: values["base-url"],
    project: values.project,
    session: values.session,
    stateDir: values["state-dir"],
    config: values.config,
    maxRounds,
    timeout,
    events
  }
}
