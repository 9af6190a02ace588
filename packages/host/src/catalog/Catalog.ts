/**
 * The host's own catalogs on disk, `sdk-agents.sqlite` in the state directory: agent definitions that were registered and
 * providers without their keys (RUN-327).
 *
 * It owns rows, not rules: `Agents` and `Providers` decide what may be written. One host at a time has the file, because
 * the state directory is locked. A write that fails is `StorageFailed` with outcome `not_written`.
 */
import { StorageFailed, type FullAgentDefinition, type ProviderApi, type StartupFailed } from "@tackroom/protocol/run"
import { Effect, type Scope } from "effect"
import { openDatabase, type OpenDatabase } from "./Database.ts"

export interface ProviderRecord {
  readonly name: string
  readonly api: ProviderApi
  readonly baseUrl: string | null
  readonly scenario: string | null
  /** It was given a key at some time, so it is never used without one (RUN-228). */
  readonly hadCredentials: boolean
}

export interface Catalog {
  readonly agents: () => ReadonlyArray<FullAgentDefinition>
  readonly putAgent: (definition: FullAgentDefinition) => Effect.Effect<void, StorageFailed>
  readonly providers: () => ReadonlyArray<ProviderRecord>
  readonly putProvider: (record: ProviderRecord) => Effect.Effect<void, StorageFailed>
}

const migrations = [
  {
    name: "0001_catalog",
    sql: `
      CREATE TABLE agent (id TEXT PRIMARY KEY, definition TEXT NOT NULL, ordinal INTEGER NOT NULL) STRICT;
      CREATE TABLE provider (
        name TEXT PRIMARY KEY, api TEXT NOT NULL, base_url TEXT, scenario TEXT,
        had_credentials INTEGER NOT NULL, ordinal INTEGER NOT NULL
      ) STRICT;`
  }
]

interface ProviderColumns {
  readonly name: string
  readonly api: ProviderApi
  readonly base_url: string | null
  readonly scenario: string | null
  readonly had_credentials: number
}

const written = (operation: string, work: () => void): Effect.Effect<void, StorageFailed> =>
  Effect.try({
    try: work,
    catch: () => new StorageFailed({ store: "catalog", operation, outcome: "not_written" })
  })

export interface CatalogOptions {
  /** What is put is not kept. */
  readonly readOnly: boolean
  /** Saved agents and providers that are not taken over: the configuration names them itself. */
  readonly without: { readonly agents: ReadonlyArray<string>; readonly providers: ReadonlyArray<string> }
}

/** Opens the file, making it when it is not there, for the life of the scope. */
export const open = (
  file: string,
  options: CatalogOptions = { readOnly: false, without: { agents: [], providers: [] } }
): Effect.Effect<Catalog, StartupFailed, Scope.Scope> =>
  Effect.map(openDatabase(file, migrations), (db: OpenDatabase) => {
    const { readOnly, without } = options
    const agents = db.prepare<[], { readonly definition: string }>("SELECT definition FROM agent ORDER BY ordinal")
    const putAgent = db.prepare<[string, string]>(
      "INSERT INTO agent (id, definition, ordinal) VALUES (?, ?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM agent))"
    )
    const providers = db.prepare<[], ProviderColumns>("SELECT * FROM provider ORDER BY ordinal")
    const putProvider = db.prepare<[string, string, string | null, string | null, number]>(
      `INSERT INTO provider (name, api, base_url, scenario, had_credentials, ordinal)
       VALUES (?, ?, ?, ?, ?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM provider))
       ON CONFLICT (name) DO UPDATE SET had_credentials = excluded.had_credentials`
    )
    return {
      agents: () =>
        agents
          .all()
          .map((row) => JSON.parse(row.definition) as FullAgentDefinition)
          .filter((definition) => !without.agents.includes(definition.id)),
      putAgent: (definition) =>
        readOnly
          ? Effect.void
          : written("agent/register", () => putAgent.run(definition.id, JSON.stringify(definition))),
      providers: () =>
        providers
          .all()
          .map((row) => ({
            name: row.name,
            api: row.api,
            baseUrl: row.base_url,
            scenario: row.scenario,
            hadCredentials: row.had_credentials === 1
          }))
          .filter((record) => !without.providers.includes(record.name)),
      putProvider: (record) =>
        readOnly
          ? Effect.void
          : written("provider/set", () =>
              putProvider.run(record.name, record.api, record.baseUrl, record.scenario, record.hadCredentials ? 1 : 0)
            )
    }
  })
