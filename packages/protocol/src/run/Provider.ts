/** Model providers and connections (run-protocol section 9). A key goes in and never comes out (RUN-225). */
import { Schema } from "effect"
import { AbsolutePath, BaseUrl, bytes, optional, ProviderName } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** The wire family of a model endpoint; `script` plays a scenario file (ours). */
export const ProviderApi = lazySchema(() =>
  Schema.Literals(["responses", "chat-completions", "anthropic", "script"]).annotate({
    identifier: "ProviderApi"
  })
)
/** The wire family of a model endpoint. */
export type ProviderApi = typeof ProviderApi.Type

/** Where a key is kept: the keychain of the system, or memory until the host ends. */
export const KeyStorage = lazySchema(() => Schema.Literals(["secure", "memory"]).annotate({ identifier: "KeyStorage" }))
/** Where a key is kept. */
export type KeyStorage = typeof KeyStorage.Type

/** A model key: 1 to 4,096 bytes without control characters. */
export const ApiKey = bytes(1, 4_096).check(
  Schema.isPattern(/^\P{Cc}*$/u, {
    expected: "a key without control characters",
    toJsonSchema: () => ({ pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" })
  })
)

const scenarioBelongsToScript = Schema.makeFilter(
  (provider: { readonly api: ProviderApi; readonly scenario?: string }) => {
    if ((provider.api === "script") === (provider.scenario !== undefined)) return true
    return {
      path: ["scenario"],
      issue: provider.api === "script" ? "the absolute path of a scenario file" : "no scenario but with api script"
    }
  },
  {
    toJsonSchema: () => ({
      anyOf: [
        { properties: { api: { const: "script" } }, required: ["scenario"] },
        { properties: { api: { not: { const: "script" } } }, not: { required: ["scenario"] } }
      ]
    })
  }
)

/** Params of `provider/set`. A new `chat-completions` provider needs a `baseUrl` (RUN-222); the host checks that. */
export const ProviderSetParams = lazySchema(() =>
  Schema.Struct({
    name: ProviderName,
    api: ProviderApi,
    baseUrl: optional(BaseUrl),
    credentials: optional(Schema.Struct({ apiKey: ApiKey, storage: KeyStorage })),
    scenario: optional(AbsolutePath)
  }).check(scenarioBelongsToScript)
)
/** Params of `provider/set`. */
export type ProviderSetParams = typeof ProviderSetParams.Type

const noKey = Schema.Never.annotate({ expected: "no key in a configuration: keys go through provider/set" })

/** A provider of the host configuration: no key, under whatever name. */
export const ProviderConfig = lazySchema(() =>
  Schema.Struct({
    name: ProviderName,
    api: ProviderApi,
    baseUrl: optional(BaseUrl),
    scenario: optional(AbsolutePath),
    credentials: optional(noKey),
    apiKey: optional(noKey)
  })
    .check(scenarioBelongsToScript)
    .annotate({ identifier: "ProviderConfig" })
)
/** A provider of the host configuration. */
export type ProviderConfig = typeof ProviderConfig.Type

const providerFields = {
  name: Schema.String,
  api: ProviderApi,
  baseUrl: Schema.NullOr(Schema.String),
  hasCredentials: Schema.Boolean,
  storage: Schema.NullOr(KeyStorage)
}

/** Result of `provider/set`. */
export const ProviderSetResult = lazySchema(() =>
  Schema.Struct({
    provider: Schema.Struct(providerFields),
    created: Schema.Boolean
  }).annotate({ identifier: "ProviderSetResult" })
)
/** Result of `provider/set`. */
export type ProviderSetResult = typeof ProviderSetResult.Type

/** A row of `provider/list`. */
export const ProviderRow = lazySchema(() =>
  Schema.Struct({ ...providerFields, scripted: Schema.Boolean }).annotate({
    identifier: "ProviderRow"
  })
)
/** A row of `provider/list`. */
export type ProviderRow = typeof ProviderRow.Type

/** A connection: the provider of the same name (RUN-229). */
export const Connection = lazySchema(() =>
  Schema.Struct({
    name: Schema.String,
    api: ProviderApi,
    hasCredentials: Schema.Boolean,
    storage: Schema.NullOr(KeyStorage)
  }).annotate({ identifier: "Connection" })
)
/** A connection: the provider of the same name. */
export type Connection = typeof Connection.Type

/** Params of `connection/set`; `storage` defaults to secure. */
export const ConnectionSetParams = lazySchema(() =>
  Schema.Struct({
    connection: ProviderName,
    apiKey: ApiKey,
    storage: optional(KeyStorage)
  })
)
/** Params of `connection/set`. */
export type ConnectionSetParams = typeof ConnectionSetParams.Type
