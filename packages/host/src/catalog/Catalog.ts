/**
 * The host's own catalogs on disk, `sdk-agents.sqlite` in the state directory: agent definitions that were registered,
 * providers without their keys (RUN-327), and MCP servers without their values, with the tools they had last (RUN-255).
 *
 * It owns rows, not rules: `Agents`, `Providers` and `HostServers` decide what may be written. One host at a time has the file, because
 * the state directory is locked. A write that fails is `StorageFailed` with outcome `not_written`.
 */
import { StorageFailed, type FullAgentDefinition, type ProviderApi, type StartupFailed } from "@tackroom/protocol/run"
import { Effect, type Scope } from "effect"
import type { Registration } from "../mcp/Registration.ts"
import type { ListedTool } from "../mcp/ServerTools.ts"
import { openDatabase, type OpenDatabase } from "./Database.ts"

export interface ProviderRecord {
  readonly name: string
  readonly api: ProviderApi
  readonly baseUrl: string | null
  readonly scenario: string | null
  /** It was given a key at some time, so it is never used without one (RUN-228). */
  readonly hadCredentials: boolean
}

/** An MCP server as it is kept. */
export interface ServerRecord {
  readonly registration: Registration
  /** It stands in the configuration, which may change it or leave it out the next time. */
  readonly configured: boolean
  /** What the server said it was. */
  readonly version: string
  /** Its selected tools, each with the alias that it keeps. */
  readonly tools: ReadonlyArray<ListedTool & { readonly alias: string }>
}

export interface Catalog {
  readonly servers: () => ReadonlyArray<ServerRecord>
  readonly putServer: (record: ServerRecord) => Effect.Effect<void, StorageFailed>
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
  },
  {
    name: "0002_mcp_server",
    sql: `
      CREATE TABLE mcp_server (
        name TEXT PRIMARY KEY, registration TEXT NOT NULL, configured INTEGER NOT NULL, version TEXT NOT NULL,
        tools TEXT NOT NULL, ordinal INTEGER NOT NULL
      ) STRICT;`
  }
]

interface ServerColumns {
  readonly registration: string
  readonly configured: number
  readonly version: string
  readonly tools: string
}

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
    const servers = db.prepare<[], ServerColumns>("SELECT * FROM mcp_server ORDER BY ordinal")
    const putServer = db.prepare<[string, string, number, string, string]>(
      `INSERT INTO mcp_server (name, registration, configured, version, tools, ordinal)
       VALUES (?, ?, ?, ?, ?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM mcp_server))
       ON CONFLICT (name) DO UPDATE SET registration = excluded.registration, configured = excluded.configured,
         version = excluded.version, tools = excluded.tools`
    )
    return {
      servers: () =>
        servers.all().map((row) => ({
          registration: JSON.parse(row.registration) as Registration,
          configured: row.configured === 1,
          version: row.version,
          tools: JSON.parse(row.tools) as ServerRecord["tools"]
        })),
      putServer: ({ configured, registration, tools, version }) =>
        readOnly
          ? Effect.void
          : written("mcp/register", () =>
              putServer.run(
                registration.name,
                JSON.stringify(registration),
                configured ? 1 : 0,
                version,
                JSON.stringify(tools)
              )
            ),
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
