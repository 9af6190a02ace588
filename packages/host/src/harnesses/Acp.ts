/**
 * The harness `acp:ID` with options of a configuration: `binary`, `args`, `env` with `names` and `variables`, `authMethod`,
 * and the times `idleMs` and `initializeTimeoutMs`.
 */
import type { HarnessFactory } from "@tackroom/sdk/adapters"
import { acp } from "@tackroom/sdk/harnesses/acp"
import { Effect, Result, Schema } from "effect"
import type { BadOptions, HarnessOptions } from "./Harnesses.ts"

const optional = Schema.optionalKey
const Milliseconds = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const Options = Schema.Struct({
  binary: Schema.NonEmptyString,
  args: optional(Schema.Array(Schema.String)),
  env: optional(
    Schema.Struct({
      names: optional(Schema.Array(Schema.String)),
      variables: optional(Schema.Record(Schema.String, Schema.String))
    })
  ),
  authMethod: optional(Schema.String),
  idleMs: optional(Milliseconds),
  initializeTimeoutMs: optional(Milliseconds)
})

const decode = Schema.decodeUnknownResult(Options)

export const load = (id: string, given: HarnessOptions): Effect.Effect<HarnessFactory, BadOptions> => {
  const options = decode(given)
  return Result.isFailure(options)
    ? Effect.fail({ path: "", expected: options.failure.message })
    : Effect.succeed(acp(id, options.success))
}
