/**
 * Reads a scenario file: at most 1 MiB, UTF-8, JSON, decoded with the path of what is wrong. A provider that plays it
 * refuses steps that only a harness knows (AGT-333, AGT-336).
 *
 * @since 0.1.0
 */
import { decodeScenario, harnessOnlySteps, maxScenarioBytes, type Scenario } from "@tackroom/protocol/scenario"
import { Data, Effect, Result } from "effect"
import { platform } from "#platform"

/**
 * A scenario that cannot be played. The message names the file and says where in it and why.
 *
 * @since 0.1.0
 */
export class ScenarioInvalid extends Data.TaggedError("ScenarioInvalid")<{
  readonly path: string
  readonly reason: "missing" | "too_large" | "not_json" | "not_a_scenario" | "harness_only" | "unsupported"
  readonly message: string
}> {}

/** For whom a scenario is read. A provider knows fewer steps than the harness (AGT-336). @since 0.1.0 */
export type ScenarioUse = "provider" | "harness"

const utf8 = new TextDecoder("utf-8", { fatal: true })

const parse = (path: string, text: string): Effect.Effect<unknown, ScenarioInvalid> =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) =>
      new ScenarioInvalid({
        path,
        reason: "not_json",
        message: `The scenario ${path} is not JSON: ${error instanceof Error ? error.message : "it does not parse"}`
      })
  })

/** Checks a parsed scenario; `path` names it in errors. @since 0.1.0 */
export const validateScenario = (
  path: string,
  json: unknown,
  use: ScenarioUse
): Effect.Effect<Scenario, ScenarioInvalid> => {
  const decoded = decodeScenario(json)
  if (Result.isFailure(decoded)) {
    const message = `The scenario ${path} is not valid: ${decoded.failure}`
    return Effect.fail(new ScenarioInvalid({ path, reason: "not_a_scenario", message }))
  }
  const places = use === "provider" ? harnessOnlySteps(decoded.success) : []
  if (places.length === 0) return Effect.succeed(decoded.success)
  return Effect.fail(
    new ScenarioInvalid({
      path,
      reason: "harness_only",
      message: `The scenario ${path} has a step that only the harness "scripted" can play: ${places.slice(0, 3).join(", ")}`
    })
  )
}

/** Reads and checks a scenario file. @since 0.1.0 */
export const loadScenario = Effect.fn("Scenario.load")(function* (path: string, use: ScenarioUse) {
  const bytes = yield* Effect.mapError(platform.readFile(path, maxScenarioBytes), (error) =>
    error._tag === "UnsupportedOperation"
      ? new ScenarioInvalid({ path, reason: "unsupported", message: error.message })
      : new ScenarioInvalid({
          path,
          reason: error.code === "EFBIG" ? "too_large" : "missing",
          message: `The scenario cannot be read: ${error.message}`
        })
  )
  const text = yield* Effect.try({
    try: () => utf8.decode(bytes),
    catch: () => new ScenarioInvalid({ path, reason: "not_json", message: `The scenario ${path} is not UTF-8 text` })
  })
  return yield* validateScenario(path, yield* parse(path, text), use)
})
