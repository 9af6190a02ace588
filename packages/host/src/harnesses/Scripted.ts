/** The harness `scripted` with options of a configuration: `scenarios`, paths of scenario files, and `speed`. */
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { scripted } from "@tackroom/sdk/harnesses/scripted"
import { loadScenario } from "@tackroom/sdk/scenario"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const Options = Schema.Struct({
  scenarios: Schema.optionalKey(Schema.Array(Schema.String)),
  speed: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
})

const decode = Schema.decodeUnknownResult(Options)

export const load = (given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> =>
  Effect.gen(function* () {
    const options = decode(given)
    if (Result.isFailure(options)) return yield* Effect.fail({ path: "", expected: options.failure.message })
    const { scenarios = [], speed } = options.success
    const loaded = yield* Effect.forEach(scenarios, (file, index) =>
      Effect.mapError(loadScenario(file, "harness"), ({ message }) => ({
        path: `scenarios[${index}]`,
        expected: message
      }))
    )
    return scripted({ scenarios: loaded, ...(speed === undefined ? {} : { speed }) })
  })
