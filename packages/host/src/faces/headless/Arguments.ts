/**
 * The command line of `tackroom run` (serve-mode 1.1, SRV-001). Pure: it reads words, not files and not the environment.
 *
 * A command line that is not understood is a message; nothing was done then. What belongs to a later version is refused
 * by name, so that a cap or a filter is never silently dropped.
 */
import { parseArgs } from "node:util"

export type ApproveMode = "ask" | "never" | "reads" | "all"

export interface RunArguments {
  /** Undefined: from stdin. */
  readonly prompt: string | undefined
  readonly project: string | undefined
  readonly agent: string | undefined
  readonly model: { readonly connection: string; readonly model: string } | undefined
  readonly keyEnv: string | undefined
  readonly baseUrl: string | undefined
  readonly session: string | undefined
  readonly stateDir: string | undefined
  readonly config: string | undefined
  readonly approve: ApproveMode
  readonly json: boolean
  readonly quiet: boolean
  readonly runId: string | undefined
}

export type Parsed =
  | { readonly _tag: "Understood"; readonly options: RunArguments }
  | { readonly _tag: "Usage"; readonly message: string }

export interface Terminals {
  readonly stdin: boolean
  readonly stderr: boolean
}

const approveModes: ReadonlyArray<ApproveMode> = ["ask", "never", "reads", "all"]

/** Flags of the other faces' documents that this version does not have. */
const later: ReadonlySet<string> = new Set(["--harness", "--max-rounds", "--timeout", "--events"])

const text = { type: "string" } as const
const flag = { type: "boolean" } as const

const options = {
  project: text,
  agent: text,
  model: text,
  "key-env": text,
  "base-url": text,
  session: text,
  "state-dir": text,
  config: text,
  approve: text,
  json: flag,
  quiet: flag,
  "run-id": text
} as const

const connectionName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/u

const usage = (message: string): Parsed => ({ _tag: "Usage", message })

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (cause) {
    return cause instanceof Error ? (cause.message.split(". ")[0] ?? cause.message) : "the flags are not understood"
  }
}

/** Reads the arguments behind `run`. */
export const parseRun = (args: ReadonlyArray<string>, terminals: Terminals): Parsed => {
  const end = args.indexOf("--")
  const missing = (end < 0 ? args : args.slice(0, end)).find((arg) => later.has(arg.split("=")[0] ?? ""))
  if (missing !== undefined) return usage(`${missing.split("=")[0]} is not part of this version yet`)
  const parsed = parse(args)
  if (typeof parsed === "string") return usage(parsed)
  const { positionals, values } = parsed
  const empty = Object.entries(values).find(([, value]) => value === "")
  if (empty !== undefined) return usage(`--${empty[0]} needs a value`)
  if (positionals.length > 1) return usage("more than one prompt was given; put it in quotes")

  const readsStdin = positionals[0] === "-"
  const prompt = readsStdin ? undefined : positionals[0]
  if (positionals.length === 0 && terminals.stdin) {
    return usage('a prompt is missing: tackroom run "PROMPT", or - to read it from stdin')
  }

  const json = values.json ?? false
  const approve = values.approve ?? (terminals.stdin && terminals.stderr && !json && !readsStdin ? "ask" : "never")
  if (!isApproveMode(approve)) return usage(`--approve is one of ${approveModes.join(", ")}`)
  if (approve === "ask" && json) return usage("--approve ask and --json exclude each other")
  if (approve === "ask" && !(terminals.stdin && terminals.stderr)) return usage("--approve ask needs a terminal")
  if (approve === "ask" && readsStdin) return usage("--approve ask needs stdin for your answers")

  const slash = values.model?.indexOf("/") ?? -1
  const model =
    values.model === undefined
      ? undefined
      : { connection: values.model.slice(0, Math.max(0, slash)), model: values.model.slice(slash + 1) }
  if (model !== undefined && (!connectionName.test(model.connection) || model.model === "")) {
    return usage("--model is CONNECTION/MODEL, as in openai/gpt-5-mini")
  }
  if ([...(model?.model ?? "")].length > 128) return usage("--model: the model's name has more than 128 characters")

  const keyEnv = values["key-env"]
  if (keyEnv !== undefined && !variableName.test(keyEnv)) return usage("--key-env is the name of a variable, not a key")
  const baseUrl = values["base-url"]
  if (baseUrl !== undefined && !isHttpUrl(baseUrl)) return usage("--base-url is an http or https URL")
  if ((keyEnv !== undefined || baseUrl !== undefined) && model === undefined) {
    return usage("--key-env and --base-url belong to the connection of --model")
  }
  if (model?.connection === "script" && (keyEnv !== undefined || baseUrl !== undefined)) {
    return usage("the connection script has neither key nor endpoint")
  }
  const runId = values["run-id"]
  if (runId !== undefined && [...runId].length > 256) return usage("--run-id has more than 256 characters")

  return {
    _tag: "Understood",
    options: {
      prompt,
      project: values.project,
      agent: values.agent,
      model,
      keyEnv,
      baseUrl,
      session: values.session,
      stateDir: values["state-dir"],
      config: values.config,
      approve,
      json,
      quiet: values.quiet ?? false,
      runId
    }
  }
}

const isApproveMode = (value: string): value is ApproveMode => approveModes.some((mode) => mode === value)

const isHttpUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { hash, password, protocol, search, username } = new URL(value)
  return (protocol === "http:" || protocol === "https:") && `${username}${password}${search}${hash}` === ""
}
