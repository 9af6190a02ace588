/** The configuration of a host (run-protocol section 6), and the same for the command-line faces. */
import { Schema } from "effect"
import { AgentDefinition } from "./Agent.ts"
import { AbsolutePath, chars, HttpUrl, list, map, optional, SandboxKind, VariableName } from "./Bounds.ts"
import { LoweredLimits, limits } from "./Limits.ts"
import { McpRegisterParams } from "./Mcp.ts"
import { ProviderConfig } from "./Provider.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Where sessions are stored. `connectionEnv` names the variable that holds the connection string. */
export const StorageConfig = lazySchema(() =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("sqlite") }),
    Schema.Struct({ type: Schema.Literal("postgres"), connectionEnv: VariableName })
  ]).annotate({ identifier: "StorageConfig", expected: "a storage of type sqlite or postgres" })
)
/** Where sessions are stored. */
export type StorageConfig = typeof StorageConfig.Type

/** OTLP over HTTP; a header's value comes from the variable that `valueEnv` names. */
export const TelemetryConfig = lazySchema(() =>
  Schema.Struct({
    endpoint: HttpUrl,
    headers: optional(list(Schema.Struct({ name: chars(1, 256), valueEnv: VariableName }), 16)),
    serviceName: optional(chars(1, 256))
  }).annotate({ identifier: "TelemetryConfig" })
)
/** OTLP over HTTP. */
export type TelemetryConfig = typeof TelemetryConfig.Type

/** What widens or narrows the wall around runner tools. */
export const SandboxOptions = lazySchema(() =>
  Schema.Struct({
    allowedDomains: optional(list(chars(1, 253), 64)),
    allowWrite: optional(list(AbsolutePath, 64)),
    denyRead: optional(list(AbsolutePath, 64))
  }).annotate({ identifier: "SandboxOptions" })
)
/** What widens or narrows the wall around runner tools. */
export type SandboxOptions = typeof SandboxOptions.Type

const seconds = Schema.Finite.check(Schema.isLessThanOrEqualTo(2_147_483, { expected: "at most 2147483 seconds" }))

/** What the command-line faces take from the configuration; harness-stdio does not use it (serve-mode 1.1). */
export const ServeConfig = lazySchema(() =>
  Schema.Struct({
    agent: optional(chars(1, 128)),
    maxRounds: optional(Schema.NullOr(Schema.Int)),
    timeout: optional(Schema.NullOr(seconds)),
    answerTimeout: optional(Schema.NullOr(seconds)),
    eof: optional(Schema.Literals(["cancel", "finish"])),
    events: optional(Schema.Literals(["full", "source"])),
    keys: optional(map(VariableName, 64))
  }).annotate({ identifier: "ServeConfig" })
)
/** What the command-line faces take from the configuration. */
export type ServeConfig = typeof ServeConfig.Type

const common = {
  runner: optional(AbsolutePath),
  sandbox: optional(SandboxKind),
  sandboxOptions: optional(SandboxOptions),
  coworkers: optional(Schema.Array(Schema.Json)),
  agents: optional(list(AgentDefinition, limits.agents)),
  servers: optional(list(McpRegisterParams, limits.mcpServers)),
  providers: optional(list(ProviderConfig, limits.providers)),
  storage: optional(StorageConfig),
  telemetry: optional(Schema.NullOr(TelemetryConfig)),
  web: optional(Schema.Struct({ searchUrl: optional(HttpUrl) })),
  harnesses: optional(map(Schema.Record(Schema.String, Schema.Json), 64)),
  serve: optional(ServeConfig),
  limits: optional(LoweredLimits)
}

/**
 * The configuration of `tackroom harness-stdio` and of an embedded host. `coworkers` must be empty: anything in it makes
 * start-up fail with reason `coworkers`, which is for the host to say. `harnesses` maps a harness id to the options of
 * its factory, whose names are the factory's own.
 */
export const HostConfig = lazySchema(() =>
  Schema.Struct({ stateDir: AbsolutePath, ...common }).annotate({ identifier: "HostConfig" })
)
/** The configuration of `tackroom harness-stdio` and of an embedded host. */
export type HostConfig = typeof HostConfig.Type

/** The configuration of `tackroom serve`, `run` and `acp`: the same, but `stateDir` may be absent. */
export const FaceConfig = lazySchema(() =>
  Schema.Struct({ stateDir: optional(AbsolutePath), ...common }).annotate({
    identifier: "FaceConfig"
  })
)
/** The configuration of `tackroom serve`, `run` and `acp`. */
export type FaceConfig = typeof FaceConfig.Type

/** The largest configuration file, in bytes. */
export const maxConfigFileBytes = 4_194_304
