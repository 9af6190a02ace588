/**
 * Model providers and their keys (run-protocol 9).
 *
 * It owns the registry: what a name means (durable, in the catalog) and its key (in memory only). It does not talk to a
 * model. A key goes in and is given to the model layer alone: no answer, event, log or row shows it (RUN-225); whoever
 * redacts is told of it (`onSecret`).
 *
 * Failure: a refused change changes nothing. The system keychain is not there yet: `secure` answers `unsupported`.
 */
import {
  Conflict,
  CredentialsMissing,
  InvalidParams,
  LimitExceeded,
  limits,
  NotFound,
  StartupFailed,
  Unsupported,
  type Connection,
  type ConnectionSetParams,
  type KeyStorage,
  type ProviderApi,
  type ProviderConfig,
  type ProviderRow,
  type ProviderSetParams,
  type ProviderSetResult,
  type StorageFailed
} from "@tackroom/protocol/run"
import type { Secret } from "@tackroom/protocol/text"
import { Effect } from "effect"
import type { Catalog, ProviderRecord } from "./Catalog.ts"

/** What a model request needs of its provider. */
export interface ResolvedProvider {
  readonly name: string
  readonly api: ProviderApi
  readonly baseUrl: string | undefined
  readonly key: string | undefined
  readonly scenario: string | undefined
}

export interface Providers {
  readonly set: (
    params: ProviderSetParams
  ) => Effect.Effect<ProviderSetResult, Conflict | Unsupported | InvalidParams | LimitExceeded | StorageFailed>
  readonly list: () => ReadonlyArray<ProviderRow>
  readonly connect: (
    params: ConnectionSetParams
  ) => Effect.Effect<
    { readonly connection: Connection; readonly created: boolean },
    NotFound | Unsupported | InvalidParams | LimitExceeded | StorageFailed
  >
  readonly connections: () => ReadonlyArray<Connection>
  readonly disconnect: (name: string) => Effect.Effect<boolean, NotFound | StorageFailed>
  /** The provider with its key; one that had a key and has none now is never used without (RUN-228). */
  readonly resolve: (name: string) => Effect.Effect<ResolvedProvider, NotFound | CredentialsMissing>
  readonly find: (name: string) => ProviderRecord | undefined
  /** Tells of every key, those given so far at once: what must be redacted, also after it was replaced (RUN-174). */
  readonly onSecret: (listener: (secret: Secret) => void) => void
  /** Tells that a provider was made or given a key. */
  readonly onChange: (listener: () => void) => void
}

const defaultApis: ReadonlyMap<string, ProviderApi> = new Map([
  ["openai", "responses"],
  ["anthropic", "anthropic"]
])

/** URLs are compared in normal form: scheme and host in lower case, no default port, no slash at the end (RUN-221). */
export const normalUrl = (url: string): string => new URL(url).href.replace(/\/+$/, "")

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)

const keyWouldLeak = (baseUrl: string | null): boolean => {
  if (baseUrl === null) return false
  const url = new URL(baseUrl)
  return url.protocol === "http:" && !isLoopback(url.hostname)
}

/** A key travels in a header, which takes no other characters. */
const cannotBeSent = (key: string): boolean => /[^\u0020-\u007e\u00a0-\u00ff]/u.test(key)

const noKeychain = () =>
  new Unsupported({
    feature: "secure_storage",
    hint: 'storage: "memory"',
    message: 'no keychain is available here; use storage "memory"'
  })

const invalid = (path: string, expected: string) => new InvalidParams({ path, expected, issues: [{ path, expected }] })

export const make = (
  catalog: Catalog,
  configured: ReadonlyArray<ProviderConfig>
): Effect.Effect<Providers, StartupFailed | StorageFailed> =>
  Effect.gen(function* () {
    const records = new Map(catalog.providers().map((record) => [record.name, record]))
    const keys = new Map<string, string>()
    const secretListeners: Array<(secret: Secret) => void> = []
    const changeListeners: Array<() => void> = []

    const setKey = (name: string, value: string) => {
      keys.set(name, value)
      for (const listener of secretListeners) listener({ name, value })
    }
    const changed = () => {
      for (const listener of changeListeners) listener()
    }
    const hasKey = (name: string) => keys.has(name)
    const storageOf = (name: string): KeyStorage | null => (hasKey(name) ? "memory" : null)
    const row = (record: ProviderRecord) => ({
      name: record.name,
      api: record.api,
      baseUrl: record.baseUrl,
      hasCredentials: hasKey(record.name),
      storage: storageOf(record.name)
    })
    const connection = ({ name, api, hasCredentials, storage }: ReturnType<typeof row>): Connection => ({
      name,
      api,
      hasCredentials,
      storage
    })
    /** Nothing of a record but `hadCredentials` ever changes. */
    const save = (record: ProviderRecord) =>
      records.get(record.name)?.hadCredentials === record.hadCredentials
        ? Effect.succeed(record)
        : Effect.map(catalog.putProvider(record), () => {
            records.set(record.name, record)
            return record
          })

    const set = Effect.fnUntraced(function* (params: ProviderSetParams) {
      const known = records.get(params.name)
      const baseUrl = params.baseUrl === undefined ? (known?.baseUrl ?? null) : normalUrl(params.baseUrl)
      const scenario = params.scenario ?? null
      if (known !== undefined) {
        const differs = [
          ...(known.api === params.api ? [] : ["api"]),
          ...(known.baseUrl === baseUrl ? [] : ["base_url"]),
          ...(known.scenario === scenario ? [] : ["scenario"])
        ]
        if (differs.length > 0) {
          return yield* new Conflict({
            reason: "provider_immutable",
            id: params.name,
            differingFields: differs,
            message: `provider ${params.name} exists with another ${differs.join(", ")}`
          })
        }
      } else {
        if (params.api === "chat-completions" && baseUrl === null) {
          return yield* invalid("base_url", "the URL of the endpoint, which a chat-completions provider needs")
        }
        if (records.size >= limits.providers) {
          return yield* new LimitExceeded({ limit: "providers", max: limits.providers })
        }
      }
      if (params.credentials !== undefined) {
        if (keyWouldLeak(baseUrl)) {
          return yield* invalid("base_url", "https, or http on loopback: a key is not sent over plain http")
        }
        if (cannotBeSent(params.credentials.apiKey)) {
          return yield* invalid("credentials.api_key", "a key of characters that a header can carry")
        }
        if (params.credentials.storage === "secure") return yield* noKeychain()
      }
      const record: ProviderRecord = {
        name: params.name,
        api: params.api,
        baseUrl,
        scenario,
        hadCredentials: (known?.hadCredentials ?? false) || params.credentials !== undefined
      }
      yield* save(record)
      if (params.credentials !== undefined) setKey(params.name, params.credentials.apiKey)
      changed()
      return { provider: row(record), created: known === undefined }
    })

    const connect = Effect.fnUntraced(function* (params: ConnectionSetParams) {
      const known = records.get(params.connection)
      const api = known?.api ?? defaultApis.get(params.connection)
      if (api === undefined) {
        return yield* new NotFound({ what: "provider", id: params.connection, hint: "provider/set" })
      }
      if (cannotBeSent(params.apiKey)) {
        return yield* invalid("api_key", "a key of characters that a header can carry")
      }
      if ((params.storage ?? "secure") === "secure") return yield* noKeychain()
      if (keyWouldLeak(known?.baseUrl ?? null)) {
        return yield* invalid("connection", "a provider with https, or http on loopback")
      }
      if (known === undefined && records.size >= limits.providers) {
        return yield* new LimitExceeded({ limit: "providers", max: limits.providers })
      }
      const record = yield* save({
        ...(known ?? { name: params.connection, api, baseUrl: null, scenario: null }),
        hadCredentials: true
      })
      setKey(record.name, params.apiKey)
      changed()
      return { connection: connection(row(record)), created: known === undefined }
    })

    const resolve = Effect.fnUntraced(function* (name: string) {
      const record = records.get(name)
      if (record === undefined) return yield* new NotFound({ what: "provider", id: name })
      const key = keys.get(name)
      if (key === undefined && record.hadCredentials) return yield* new CredentialsMissing({ provider: name })
      return {
        name,
        api: record.api,
        baseUrl: record.baseUrl ?? undefined,
        key,
        scenario: record.scenario ?? undefined
      }
    })

    for (const [index, provider] of configured.entries()) {
      const { credentials: _credentials, apiKey: _apiKey, ...params } = provider
      yield* set(params).pipe(
        Effect.mapError((error) =>
          error._tag === "StorageFailed"
            ? error
            : new StartupFailed({
                reason: "bad_config",
                path: `providers[${index}]${error._tag === "InvalidParams" ? `.${error.path}` : ""}`,
                detail: error.message
              })
        )
      )
    }

    return {
      set,
      list: () => [...records.values()].map((record) => ({ ...row(record), scripted: record.api === "script" })),
      connect,
      connections: () => [...records.values()].map((record) => connection(row(record))),
      disconnect: (name) =>
        records.has(name)
          ? Effect.sync(() => keys.delete(name))
          : Effect.fail(new NotFound({ what: "provider", id: name, hint: "provider/set" })),
      resolve,
      find: (name) => records.get(name),
      onSecret: (listener) => {
        secretListeners.push(listener)
        for (const [name, value] of keys) listener({ name, value })
      },
      onChange: (listener) => void changeListeners.push(listener)
    }
  })
