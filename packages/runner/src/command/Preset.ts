/** A preset file, as far as its runner reads it: what is wrong with it in lines for a person, or what it says. */
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import { checkPreset, type Preset, seatLimits } from "@tackroom/protocol/seat"
import { Result } from "effect"
import * as Yaml from "effect/encoding/Yaml"

const fault = (error: unknown): string => (error instanceof Error ? error.message : "not YAML")

export const readPreset = (file: string): Result.Result<Preset, ReadonlyArray<string>> => {
  const named = (problem: string): string => `${file}: ${problem}`
  const text = Result.try(() => readFileSync(file))
  if (Result.isFailure(text)) return Result.fail([named("the preset cannot be read")])
  if (text.success.length > seatLimits.presetBytes) return Result.fail([named("the preset is larger than 64 KiB")])
  const parsed = Result.try({ try: () => Yaml.parse(text.success.toString("utf8")), catch: fault })
  if (Result.isFailure(parsed)) return Result.fail([named(parsed.failure)])
  const { preset, problems } = checkPreset(parsed.success, basename(file).replace(/\.ya?ml$/u, ""))
  return preset === undefined
    ? Result.fail(problems.filter(({ severity }) => severity === "error").map(({ message }) => named(message)))
    : Result.succeed(preset)
}
