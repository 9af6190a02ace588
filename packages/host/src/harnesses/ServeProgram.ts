/** The harness `serve` with options of a configuration: those of its factory. */
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { serve } from "@tackroom/sdk/harnesses/serve"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const milliseconds = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const words = Schema.Array(Schema.String)

const Options = Schema.Struct({
  command: Schema.NonEmptyString,
  args: Schema.optionalKey(words),
  env: Schema.optionalKey(words),
  protocolVersions: Schema.optionalKey(Schema.Array(Schema.Int)),
  initializeTimeoutMs: Schema.optionalKey(milliseconds),
  maxFrameBytes: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})

const decode = Schema.decodeUnknownResult(Options)

export const load = (given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> => {
  const options = decode(given)
  return Result.isSuccess(options)
    ? Effect.succeed(serve(options.success))
    : Effect.fail({ path: "", expected: options.failure.message })
}
