/** What `tackroom-seat` does with its command line: help, version, a list of problems, or a seat. */
import { existsSync, writeSync } from "node:fs"
import { join } from "node:path"
import { rigFiles, seatVariables } from "@tackroom/protocol/seat"
import { Effect, Exit, Result } from "effect"
import type { EnvironmentView } from "../rig/Endpoint.ts"
import { exitCodes } from "../seat/Ending.ts"
import { runSeat } from "../seat/Seat.ts"
import { paneOutput } from "../terminal/PaneOutput.ts"
import type { SeatSignals } from "../terminal/Signals.ts"
import type { SeatTerminal } from "../terminal/Terminal.ts"
import { configure, isHarness } from "./Configuration.ts"
import { readCommandLine, readFlagVariables } from "./Flags.ts"
import { help } from "./Help.ts"
import { version } from "./Version.ts"

export interface ProgramOptions {
  readonly terminal: SeatTerminal
  readonly signals: SeatSignals
  readonly argv: ReadonlyArray<string>
  readonly environment: EnvironmentView
  /** Where the SDK of the agent's protocol writes its complaints. */
  readonly onComplaint: (listener: (text: string) => void) => void
  readonly exit: (code: number) => void
}

const standardOutput = 1
const standardError = 2

/** The preset that a rig started this seat from: it lies in the rig's home under the name of the runtime. */
const presetOfRig = (environment: EnvironmentView): string | undefined => {
  const home = environment[seatVariables.home]
  const runtime = environment[seatVariables.runtime]
  if (home === undefined || home === "" || runtime === undefined || !isHarness(runtime)) return undefined
  const file = join(home, rigFiles.presets, `${runtime}.yaml`)
  return existsSync(file) ? file : undefined
}

/** Reads what is configured, the preset included. Its parser is loaded only where there is one. */
const readConfiguration = async (argv: ReadonlyArray<string>, environment: EnvironmentView) => {
  const line = readCommandLine(argv)
  const named = line.flags.preset?.[0] ?? readFlagVariables(environment).flags.preset?.[0]
  const file = named ?? presetOfRig(environment)
  if (file === undefined) return configure(line, environment, undefined)
  const { readPreset } = await import("./Preset.ts")
  const preset = readPreset(file)
  if (Result.isSuccess(preset)) return configure(line, environment, preset.success)
  const rest = configure(line, environment, undefined)
  return Result.fail([...preset.failure, ...(Result.isFailure(rest) ? rest.failure : [])])
}

export const run = async (options: ProgramOptions): Promise<void> => {
  const { argv, environment, exit, signals, terminal } = options
  const leave = (code: number, descriptor: number, text: string): void => {
    terminal.restore()
    writeSync(descriptor, text)
    exit(code)
  }
  const { wants } = readCommandLine(argv)
  if (wants === "help") return leave(exitCodes.done, standardOutput, help)
  if (wants === "version") return leave(exitCodes.done, standardOutput, `${version()}\n`)

  const configuration = await readConfiguration(argv, environment)
  if (Result.isFailure(configuration)) {
    const lines = configuration.failure.map((problem) => `error > ${problem}\n`).join("")
    return leave(exitCodes.usage, standardError, lines)
  }
  const result = await Effect.runPromiseExit(
    runSeat({
      configuration: configuration.success,
      environment,
      terminal,
      signals,
      sink: paneOutput(standardOutput),
      version: version(),
      onComplaint: options.onComplaint
    })
  )
  terminal.restore()
  exit(Exit.isSuccess(result) ? result.value : exitCodes.internal)
}
