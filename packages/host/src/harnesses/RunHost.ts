/**
 * The harness `host` with options of a configuration: a host of its own, started with the `config` that stands there in the
 * form of a configuration file.
 */
import { HostConfig, wireCodec } from "@tackroom/protocol/run"
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { host } from "@tackroom/sdk/harnesses/host"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const words = Schema.Array(Schema.String)

const Options = Schema.Struct({
  agent: Schema.NonEmptyString,
  command: Schema.NonEmptyString,
  args: Schema.optionalKey(words),
  config: Schema.Json,
  env: Schema.optionalKey(words),
  initializeTimeoutMs: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})

const decode = Schema.decodeUnknownResult(Options)
const codec = wireCodec(HostConfig)

export const load = (given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> => {
  const options = decode(given)
  if (Result.isFailure(options)) return Effect.fail({ path: "", expected: options.failure.message })
  const config = codec.decode(options.success.config)
  if (Result.isFailure(config)) {
    const { expected, path } = config.failure
    return Effect.fail({ path: path === "" ? "config" : `config.${path}`, expected })
  }
  return Effect.succeed(host({ ...options.success, config: config.success }))
}
