/**
 * The configuration a host is started with: JSON text, or `@` and the absolute path of a file with it (run-protocol 6).
 *
 * It decodes and says what is wrong by its path; a key that no field knows becomes a warning. It reads one file and owns
 * nothing. Failure is `StartupFailed` with reason `bad_config` or `coworkers`.
 */
import { HostConfig, maxConfigFileBytes, StartupFailed, unknownFields, wireCodec } from "@tackroom/protocol/run"
import { Effect, Result } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"

export interface Configuration {
  readonly config: HostConfig
  readonly warnings: ReadonlyArray<string>
}

const codec = wireCodec(HostConfig)

const bad = (detail: string, at?: string) =>
  new StartupFailed({ reason: "bad_config", detail, ...(at === undefined ? {} : { path: at }) })

const readFile = (file: string): Effect.Effect<string, StartupFailed> =>
  Effect.gen(function* () {
    if (!path.isAbsolute(file)) return yield* bad("the path of a configuration file must be absolute", file)
    return yield* Effect.try({
      try: () => {
        const stat = fs.statSync(file)
        if (!stat.isFile()) throw bad("the configuration is not a regular file", file)
        if (stat.size > maxConfigFileBytes) {
          throw bad(`the configuration file has more than ${maxConfigFileBytes} bytes`, file)
        }
        return fs.readFileSync(file, "utf8")
      },
      catch: (cause) => (cause instanceof StartupFailed ? cause : bad("the configuration file could not be read", file))
    })
  })

/** Decodes a parsed configuration. */
export const decode = (json: unknown): Effect.Effect<Configuration, StartupFailed> => {
  const decoded = codec.decode(json)
  if (Result.isFailure(decoded)) {
    const { expected, path: at } = decoded.failure
    return Effect.fail(bad(`${at === "" ? "the configuration" : at}: expected ${expected}`, at))
  }
  const config = decoded.success
  if ((config.coworkers ?? []).length > 0) {
    return Effect.fail(
      new StartupFailed({ reason: "coworkers", path: "coworkers", detail: "coworkers must be empty; use agents" })
    )
  }
  const warnings = unknownFields(HostConfig, json).map((field) => `unknown field in the configuration: ${field}`)
  return Effect.succeed({ config, warnings })
}

/** Reads the argument of `tackroom harness-stdio`. */
export const load = (argument: string): Effect.Effect<Configuration, StartupFailed> =>
  Effect.gen(function* () {
    const text = argument.startsWith("@") ? yield* readFile(argument.slice(1)) : argument
    const json = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => bad("the configuration is not JSON")
    })
    return yield* decode(json)
  })
