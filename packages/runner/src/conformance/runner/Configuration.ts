/**
 * What a run of this family was told: the command under test, its preset and names, and where the kit's own programs are.
 */
import type { Timing } from "../Timing.ts"
import type { PresetReading } from "./Preset.ts"

export interface Configuration {
  /** The command; `{agent}` in a word stands for the path of the case's agent. */
  readonly command: ReadonlyArray<string>
  /** The agent is put first on PATH under this name. */
  readonly agentName: string | undefined
  readonly harness: string
  readonly preset: PresetReading | undefined
  readonly timing: Timing
  readonly keep: boolean
  /** The program of the fake agent and the Node that runs it. */
  readonly agentProgram: string
  readonly node: string
  /** What of the kit's own environment a program needs to run at all. */
  readonly baseEnv: Readonly<Record<string, string>>
}

/** What a runner's preset declares beyond being a runner; without a preset nothing is declared. */
export type Feature = "resume" | "first_input" | "passes_model"

export const declares = (configuration: Configuration, feature: Feature): boolean =>
  configuration.preset?.declared[feature] === true
