/** The harness `serve` with options of a configuration: the program of serve mode that it starts. */
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { serve } from "@tackroom/sdk/harnesses/serve"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const Options = Schema.Struct({
  command: Schema.String,
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  env: Schema.optionalKey(Schema.Array(Schema.String)),
  initializeTimeoutMs: Schema.optionalKey(Schema.Natural),
  maxFrameBytes: Schema.optionalKey(Schema.Natural)
})

const decode = Schema.decodeUnknownResult(Options)

export const load = (given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> => {
  const options = decode(given)
  return Result.isSuccess(options)
    ? Effect.succeed(serve(options.success))
    : Effect.fail({ path: "", expected: options.failure.message })
}
