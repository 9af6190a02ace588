/** The harness `host` with options of a configuration: the run-protocol host that it starts, and the agent it drives. */
import { HostConfig, wireCodec } from "@tackroom/protocol/run"
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { host } from "@tackroom/sdk/harnesses/host"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const Options = Schema.Struct({
  command: Schema.String,
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  /** In wire form, as a configuration file has it. */
  config: Schema.JsonObject,
  agent: Schema.String,
  env: Schema.optionalKey(Schema.Array(Schema.String)),
  initializeTimeoutMs: Schema.optionalKey(Schema.Natural)
})

const decode = Schema.decodeUnknownResult(Options)
const config = wireCodec(HostConfig)

export const load = (given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> => {
  const options = decode(given)
  if (Result.isFailure(options)) return Effect.fail({ path: "", expected: options.failure.message })
  const decoded = config.decode(options.success.config)
  if (Result.isSuccess(decoded)) return Effect.succeed(host({ ...options.success, config: decoded.success }))
  const { expected, path } = decoded.failure
  return Effect.fail({ path: path === "" ? "config" : `config.${path}`, expected: `expected ${expected}` })
}
