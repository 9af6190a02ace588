/**
 * The command line of `tackroom run` (serve-mode 1.1, SRV-001). Pure: it reads words, not files and not the environment.
 * A command line that is not understood is a message; nothing was done then.
 */
import { readChoice, readShared, readWords, sharedOptions, Usage, type SharedArguments } from "../start/Flags.ts"

export type ApproveMode = "ask" | "never" | "reads" | "all"

export interface RunArguments extends SharedArguments {
  /** Undefined: from stdin. */
  readonly prompt: string | undefined
  readonly approve: ApproveMode
  readonly json: boolean
  readonly quiet: boolean
  readonly runId: string | undefined
}

export interface Terminals {
  readonly stdin: boolean
  readonly stderr: boolean
}

const text = { type: "string" } as const
const flag = { type: "boolean" } as const

const options = { ...sharedOptions, approve: text, json: flag, quiet: flag, "run-id": text } as const

/** Reads the arguments behind `run`. */
export const parseRun = (args: ReadonlyArray<string>, terminals: Terminals): RunArguments | Usage => {
  const words = readWords(args, options)
  if (words instanceof Usage) return words
  const { positionals, values } = words
  if (positionals.length > 1) return new Usage("more than one prompt was given; put it in quotes")

  const readsStdin = positionals[0] === "-"
  const prompt = readsStdin ? undefined : positionals[0]
  if (positionals.length === 0 && terminals.stdin) {
    return new Usage('a prompt is missing: tackroom run "PROMPT", or - to read it from stdin')
  }

  const json = values.json ?? false
  const given = readChoice("approve", values.approve, ["ask", "never", "reads", "all"])
  if (given instanceof Usage) return given
  const approve = given ?? (terminals.stdin && terminals.stderr && !json && !readsStdin ? "ask" : "never")
  if (approve === "ask" && json) return new Usage("--approve ask and --json exclude each other")
  if (approve === "ask" && !(terminals.stdin && terminals.stderr)) return new Usage("--approve ask needs a terminal")
  if (approve === "ask" && readsStdin) return new Usage("--approve ask needs stdin for your answers")

  const shared = readShared(values)
  if (shared instanceof Usage) return shared
  const runId = values["run-id"]
  if (runId !== undefined && [...runId].length > 256) return new Usage("--run-id has more than 256 characters")
  return { ...shared, prompt, approve, json, quiet: values.quiet ?? false, runId }
}
