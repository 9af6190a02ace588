/**
 * What the seat runs with: the command line, then the variables of its flags, then the preset, then the defaults. Every
 * problem is told at once, and none of them repeats a secret (SEAT-004). Pure.
 */
import {
  type PresetRunner,
  PresetName,
  type Preset,
  seatLimits,
  seatVariables,
  splitCommand
} from "@tackroom/protocol/seat"
import { utf8Length } from "@tackroom/protocol/text"
import { Result, Schema } from "effect"
import type { SeatNames } from "../activity/ActivityQueue.ts"
import type { Reopen } from "../agent/Opening.ts"
import { type CommandLine, type FlagName, type Flags, readFlagVariables } from "./Flags.ts"

export interface SeatConfiguration {
  readonly harness: string
  /** Remarks for the pane about the configuration itself. */
  readonly remarks: ReadonlyArray<string>
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly envNames: ReadonlyArray<string>
  readonly modelVariable: { readonly variable: string; readonly value: string } | undefined
  readonly modelOption: { readonly configId: string; readonly value: string } | undefined
  readonly auth: string | undefined
  readonly reopen: Reopen
  readonly notFoundCodes: ReadonlyArray<number>
  readonly listIsComplete: boolean
  readonly whenUnanswerable: "permit" | "refuse"
  readonly livenessSeconds: number
  readonly idleLivenessSeconds: number
  readonly openTimeoutSeconds: number
  readonly showThoughts: boolean
  readonly showHistory: boolean
  readonly names: SeatNames
  /** Where the launch record goes; `undefined` when none is wanted. */
  readonly record: { readonly path: string; readonly attempt: string } | undefined
  readonly resumeRef: string | undefined
  readonly firstInput: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** The code with which the protocol says that a conversation does not exist. */
const notFound = -32002

/** Whether a text can be a preset's name: it goes into records, posts and a file's path. */
export const isHarness = Schema.is(PresetName)

const given = (text: string | undefined): string | undefined => (text === undefined || text === "" ? undefined : text)

/** A name for the wire; one that no rig would take is left out. */
const wireName = (text: string | undefined): string | undefined => {
  const name = given(text)
  return name !== undefined && utf8Length(name) <= seatLimits.nameBytes ? name : undefined
}

/** Flags over variables, flag by flag. */
const merged = (line: Flags, variables: Flags): Flags => ({ ...variables, ...line })

export const configure = (
  line: CommandLine,
  environment: Environment,
  preset: Preset | undefined
): Result.Result<SeatConfiguration, ReadonlyArray<string>> => {
  const variables = readFlagVariables(environment)
  const problems = [...line.problems, ...variables.problems]
  const remarks: Array<string> = []
  const flags = merged(line.flags, variables.flags)
  const ofPreset: PresetRunner = preset?.tackroom ?? {}

  const one = (name: FlagName): string | undefined => given(flags[name]?.[0])
  const word = <const A extends string>(name: FlagName, words: ReadonlyArray<A>): A | undefined => {
    const text = one(name)
    const found = words.find((candidate) => candidate === text)
    if (text !== undefined && found === undefined) problems.push(`--${name} is one of ${words.join(", ")}`)
    return found
  }
  const whole = (name: FlagName, least: number, most: number): number | undefined => {
    const text = one(name)
    if (text === undefined) return undefined
    const value = /^\d{1,6}$/u.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    problems.push(`--${name} is a whole number from ${least} to ${most}`)
    return undefined
  }
  const on = (name: FlagName): boolean | undefined => {
    const text = one(name)
    return text === undefined ? undefined : text === "true"
  }

  const runtime = given(environment[seatVariables.runtime])
  const flagged = one("harness")
  const harness = flagged ?? runtime ?? preset?.name ?? ""
  if (harness === "") problems.push(`--harness is missing, and ${seatVariables.runtime} is not set`)
  else if (!isHarness(harness)) problems.push("the harness is not a preset's name: 1 to 64 of A-Z a-z 0-9 _ -")
  if (flagged !== undefined && runtime !== undefined && flagged !== runtime) {
    remarks.push(`the seat is told to run ${runtime}; --harness ${flagged} wins`)
  }

  const agentCommand = one("agent-command")
  const commandOf = (): ReadonlyArray<string> => {
    if (line.words !== undefined && line.flags["agent-command"] !== undefined) {
      problems.push("the agent's command is given twice: --agent-command and the words after --")
      return []
    }
    if (line.words !== undefined) return line.words
    if (agentCommand === undefined) return ofPreset.agentCommand ?? []
    const words = splitCommand(agentCommand)
    if (Result.isSuccess(words)) return words.success
    problems.push(`--agent-command: ${words.failure}`)
    return ["", ""]
  }
  const [command = "", ...args] = commandOf()
  if (command === "" && !problems.some((problem) => problem.includes("command"))) {
    problems.push("the agent's command is missing: --agent-command, or its words after --")
  }

  const envNames = flags.env ?? ofPreset.env ?? []
  for (const name of envNames) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/u.test(name)) problems.push("--env takes the name of a variable, without its value")
  }

  const notFoundCodes = flags["not-found-code"]?.map(Number) ?? ofPreset.notFoundCodes ?? []
  if (notFoundCodes.some((code) => !Number.isSafeInteger(code))) problems.push("--not-found-code is a whole number")

  const model = given(environment[seatVariables.model])
  const modelFlags = (["model-env", "model-flag", "model-config"] as const).filter((name) => one(name) !== undefined)
  if (modelFlags.length > 1)
    problems.push(`only one of ${modelFlags.map((name) => `--${name}`).join(", ")} can be used`)
  const useFlags = modelFlags.length > 0
  const modelEnv = useFlags ? one("model-env") : ofPreset.model?.env
  const modelFlag = useFlags ? one("model-flag") : ofPreset.model?.flag
  const modelConfig = useFlags ? one("model-config") : ofPreset.model?.configOption
  if (model !== undefined && modelEnv === undefined && modelFlag === undefined && modelConfig === undefined) {
    problems.push(
      `${seatVariables.model} is set and nothing says where it goes: --model-env, --model-flag or --model-config`
    )
  }

  const attempt = given(environment[seatVariables.launchAttempt])
  const path = given(environment[seatVariables.launchResult])
  const sessionName = wireName(environment[seatVariables.sessionName])
  const nodeId = wireName(environment[seatVariables.nodeId])
  const generation = wireName(environment[seatVariables.generation])

  const configuration: SeatConfiguration = {
    harness,
    remarks,
    command,
    args: [...args, ...(model !== undefined && modelFlag !== undefined ? [modelFlag, model] : [])],
    envNames,
    modelVariable: model !== undefined && modelEnv !== undefined ? { variable: modelEnv, value: model } : undefined,
    modelOption: model !== undefined && modelConfig !== undefined ? { configId: modelConfig, value: model } : undefined,
    auth: one("auth") ?? ofPreset.auth,
    reopen: word("reopen", ["auto", "resume", "load"]) ?? "auto",
    notFoundCodes: notFoundCodes.length === 0 ? [notFound] : notFoundCodes,
    listIsComplete: on("list-is-complete") ?? ofPreset.listIsComplete ?? false,
    whenUnanswerable: word("when-unanswerable", ["permit", "refuse"]) ?? ofPreset.whenUnanswerable ?? "permit",
    livenessSeconds: whole("liveness", seatLimits.beatSecondsMin, seatLimits.beatSecondsMax) ?? 30,
    idleLivenessSeconds: whole("idle-liveness", 1, seatLimits.idleLivenessSeconds) ?? 60,
    openTimeoutSeconds: whole("open-timeout", 1, 86_400) ?? 60,
    showThoughts: on("show-thoughts") ?? ofPreset.showThoughts ?? false,
    showHistory: on("show-history") ?? false,
    names: {
      ...(sessionName === undefined ? {} : { sessionName }),
      ...(nodeId === undefined ? {} : { nodeId }),
      runtime: harness,
      ...(generation === undefined ? {} : { generation })
    },
    record: path === undefined || attempt === undefined ? undefined : { path, attempt },
    resumeRef: environment[seatVariables.resumeRef],
    firstInput: given(environment[seatVariables.firstInput])
  }
  return problems.length === 0 ? Result.succeed(configuration) : Result.fail(problems)
}
