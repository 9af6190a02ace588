/**
 * The MCP servers of the host, registered by the app or in its configuration (RUN-250 to RUN-255). Agents select their
 * tools by qualified name.
 *
 * It owns which servers there are, with whose values, and where each stands. It does not own what a server does over its
 * life (`Server.ts`), nor which agent has which tool. Values of `env` and `headers` stand in memory only: after a restart a
 * server that had any waits until the same registration brings them again; another is started by its first call.
 *
 * Failure: a registration that is refused, or whose server does not come up, leaves nothing behind. One of the configuration
 * that is not up when the host goes on without it is shown as it stands, and as failed when it does not come up at all.
 */
import {
  Conflict,
  InvalidParams,
  LimitExceeded,
  limits,
  StartupFailed,
  type McpRegisterParams,
  type McpServer as ShownServer,
  type ProviderUnavailable,
  type StorageFailed
} from "@tackroom/protocol/run"
import { makeRedactor } from "@tackroom/protocol/text"
import { KnownSecrets, type SecretFollower } from "@tackroom/sdk/effect"
import { Effect, Exit, Fiber, Option, Scope, Semaphore } from "effect"
import { createHmac } from "node:crypto"
import type { Catalog, ServerRecord } from "../catalog/Catalog.ts"
import type { ExecuteTool, SessionTool } from "../native/SessionSetup.ts"
import { splitQualifiedName } from "../tools/Tools.ts"
import { connect, type ConnectionParts } from "./Connection.ts"
import {
  type HostServer,
  type Missing,
  newHostServer,
  recordOf,
  shown,
  toolOf,
  toolsOf,
  unavailable
} from "./HostServer.ts"
import { onThisMachine } from "./Reach.ts"
import {
  categoryOf,
  hasValues,
  isSame,
  type Registration,
  secretsOf,
  selects,
  serverOf,
  transportProblem,
  unknownTool,
  withoutValues
} from "./Registration.ts"
import * as Server from "./Server.ts"
import { type ListedTool, mostTools, read } from "./ServerTools.ts"

export interface HostServersConfig extends ConnectionParts {
  readonly catalog: Pick<Catalog, "servers" | "putServer">
  /** Of keyed digests (RUN-255). */
  readonly key: Uint8Array
  readonly isAliasTaken: (alias: string) => boolean
}

export type RegisterFailure = Conflict | InvalidParams | LimitExceeded | ProviderUnavailable | StorageFailed

export interface HostServers {
  readonly register: (
    params: McpRegisterParams
  ) => Effect.Effect<{ readonly server: ShownServer; readonly duplicate: boolean }, RegisterFailure>
  /**
   * Takes what the configuration has. New servers are started and waited for: one that is needed until it is up, another
   * for a moment, and it goes on behind (RUN-040). One that is known comes up with `startConfigured`, or with its first
   * call. Gives a warning for each that is not up; the host does without it.
   */
  readonly configure: (
    servers: ReadonlyArray<McpRegisterParams>,
    isNeeded: (name: string) => boolean
  ) => Effect.Effect<ReadonlyArray<string>, StartupFailed>
  /** Starts the known servers of the configuration: loading the library for them holds up whatever else runs. */
  readonly startConfigured: Effect.Effect<void>
  readonly list: () => ReadonlyArray<ShownServer>
  readonly has: (name: string) => boolean
  /** Waits for the servers of these tools that start for the first time; not for long (RUN-040). */
  readonly awaitFirst: (qualifiedNames: ReadonlyArray<string>) => Effect.Effect<void>
  /** The tool as it is now, or as it was when its server was up last. */
  readonly find: (qualifiedName: string) => SessionTool | undefined
  readonly findAlias: (alias: string) => SessionTool | undefined
  /** True for a tool that an agent may be given now: its server is up, or comes up with the first call (RUN-331). */
  readonly isPresent: (qualifiedName: string) => boolean
  /** True for a tool whose server waits to be registered again: an application that comes back does that soon. */
  readonly isAwaited: (qualifiedName: string) => boolean
  /** Tells of every registration. */
  readonly onRegistered: (listener: () => void) => void
  readonly execute: (call: Parameters<ExecuteTool>[0]) => ReturnType<ExecuteTool> | undefined
  /** Tells of every value that was given, those so far at once, and of those of no registration (RUN-174). */
  readonly onSecret: (listener: SecretFollower) => void
}

const invalid = (path: string, expected: string) => new InvalidParams({ path, expected, issues: [{ path, expected }] })

/** How long the host's start waits for a new server that nobody asked for, and a registration for one that it names. */
const startPatience = "2 seconds"
const namedPatience = "4 seconds"

/** A server that waits for its values is asked for in vain. */
const waitsForValues = {
  outcome: "not_run",
  message: "the MCP server waits until the app registers it again"
} as const

/** Opens what the catalog has, for the life of the scope. Starts nothing. */
export const make = Effect.fnUntraced(function* (
  config: HostServersConfig
): Effect.fn.Return<HostServers, never, Scope.Scope> {
  const parent = yield* Effect.scope
  const entries = new Map<string, HostServer>()
  const secrets = new KnownSecrets()
  const digest = (value: string): string => createHmac("sha256", config.key).update(value).digest("hex")

  const allTools = () => [...entries.values()].flatMap(toolsOf)
  const entryOf = (qualifiedName: string): HostServer | undefined => {
    const provider = splitQualifiedName(qualifiedName)?.provider
    return provider === undefined ? undefined : entries.get(provider)
  }
  const find = (qualifiedName: string): SessionTool | undefined => {
    const entry = entryOf(qualifiedName)
    return entry === undefined ? undefined : toolOf(entry, qualifiedName)
  }

  const readFor =
    (registration: Registration): Server.ServerOptions["read"] =>
    (version, listed, aliasBefore) =>
      read(
        {
          name: registration.name,
          version,
          source: "mcp",
          categoryOf: (tool) => categoryOf(registration, tool),
          aliasBefore,
          isTaken: (alias) =>
            config.isAliasTaken(alias) ||
            [...entries.values()].some(
              (other) =>
                other.registration.name !== registration.name && toolsOf(other).some((tool) => tool.alias === alias)
            )
        },
        listed.filter(({ name }) => selects(registration, name))
      )

  const learn = (given: McpRegisterParams) => {
    for (const { name, value } of secretsOf(given)) secrets.add(name, value)
  }

  /** Of a registration that was not kept: no mark may name it. Its server may still end, and what it says is its own's. */
  const unlearn = (given: McpRegisterParams, entry: HostServer) => {
    if ((entries.get(given.name) ?? entry) !== entry) return
    for (const { name, value } of secretsOf(given)) secrets.forget(name, value)
  }

  /** Gives the entry a server of its own, made of what was given; it is not started when its tools are known. */
  const equip = Effect.fnUntraced(function* (entry: HostServer, given: McpRegisterParams, seen: Set<string>) {
    learn(given)
    const { name, transport } = given
    const own = makeRedactor(secretsOf(given))
    const parts: ConnectionParts = { ...config, redact: (value) => config.redact(own.json(value)) }
    const scope = yield* Scope.fork(parent)
    const readTools = readFor(entry.registration)
    entry.scope = scope
    entry.server = yield* Server.make({
      connect: (onToolsChanged) =>
        connect(serverOf(given), parts, {
          ...(transport.type === "stdio" && transport.cwd !== undefined ? { directory: transport.cwd } : {}),
          mayReach: onThisMachine,
          onToolsChanged
        }),
      read: (version, listed, aliasBefore) => {
        for (const tool of listed) seen.add(tool.name)
        return readTools(version, listed, aliasBefore)
      },
      takesNew: true,
      known: entry.known,
      listed: (version, tools) => {
        entry.known = tools
        // A registration is saved when it is accepted; here what its tools have become since.
        return entry.isAccepted && entries.get(name) === entry
          ? config.catalog
              .putServer(recordOf(entry, version))
              .pipe(
                Effect.catch((cause) =>
                  Effect.logWarning("the tools of an MCP server could not be saved", cause.message)
                )
              )
          : Effect.void
      },
      tell: ({ error, status }) =>
        Effect.sync(() => {
          entry.state = status
          entry.error = error
        }),
      leftOut: (left) =>
        Effect.logWarning(
          `tools of the MCP server ${name} are left out`,
          left.slice(0, 20).map((tool) => `${tool.name}: ${tool.why}`)
        )
    }).pipe(Scope.provide(scope))
    return entry.server
  })

  /** Takes the entry's server away; nobody waits for its end, which may take a while. */
  const strip = (entry: HostServer) =>
    Effect.suspend(() => {
      const { scope } = entry
      entry.server = undefined
      entry.scope = undefined
      return scope === undefined ? Effect.void : Effect.asVoid(Effect.forkIn(Scope.close(scope, Exit.void), parent))
    })

  const accepted = (given: McpRegisterParams): Effect.Effect<Registration, InvalidParams> => {
    const problem = transportProblem(given)
    return problem === undefined
      ? Effect.succeed(withoutValues(given, digest))
      : Effect.fail(invalid(problem.path, problem.expected))
  }

  const checkPlace = ({ transport }: McpRegisterParams) =>
    transport.type === "stdio"
      ? Effect.void
      : Effect.flatMap(
          Effect.promise(() => Promise.resolve(onThisMachine(new URL(transport.url)))),
          (may) =>
            may
              ? Effect.void
              : Effect.fail(invalid("transport.url", "an address of this machine: 127.0.0.0/8, ::1, localhost"))
        )

  /** What is wrong with a registration, now that its server said what it has (RUN-253). */
  const checkTools = (given: McpRegisterParams, entry: HostServer, seen: ReadonlySet<string>) => {
    const unknown = unknownTool(given, seen)
    if (unknown !== undefined) return invalid(unknown.path, unknown.expected)
    const selected = [...seen].filter((name) => selects(entry.registration, name)).length
    if (selected > mostTools) return new LimitExceeded({ limit: "mcp_tools", max: mostTools, observed: selected })
    const taken = [...entries.values()].flatMap((other) => (other === entry ? [] : toolsOf(other)))
    // Another registration was quicker.
    if (toolsOf(entry).some(({ alias }) => taken.some((tool) => tool.alias === alias))) {
      return invalid("name", "a name under which no tool has the alias of another")
    }
    const count = taken.length + toolsOf(entry).length
    return count > limits.mcpTools
      ? new LimitExceeded({ limit: "mcp_tools", max: limits.mcpTools, observed: count })
      : undefined
  }

  /** Where one is that is not known yet, before it is started. */
  const newEntry = Effect.fnUntraced(function* (
    given: McpRegisterParams,
    registration: Registration,
    configured: boolean
  ) {
    yield* checkPlace(given)
    const others = entries.size - (entries.has(given.name) ? 1 : 0)
    if (others >= limits.mcpServers) {
      return yield* new LimitExceeded({ limit: "mcp_servers", max: limits.mcpServers, observed: others + 1 })
    }
    return newHostServer({ registration, configured, state: "starting", known: [] })
  })

  /** Brings a new server up, for the first time. */
  const bringUp = (given: McpRegisterParams, entry: HostServer): Effect.Effect<void, Missing> => {
    const seen = new Set<string>()
    return Effect.gen(function* () {
      const server = yield* equip(entry, given, seen)
      yield* server.start.pipe(Effect.mapError((cause) => unavailable(given.name, cause)))
      const refused = checkTools(given, entry, seen)
      if (refused !== undefined) return yield* Effect.fail(refused)
      yield* config.catalog.putServer(recordOf(entry, server.version()))
      entry.isAccepted = true
      entries.set(given.name, entry)
    }).pipe(
      Effect.onError(() =>
        Effect.andThen(
          strip(entry),
          Effect.sync(() => unlearn(given, entry))
        )
      )
    )
  }

  const add = Effect.fnUntraced(function* (given: McpRegisterParams, registration: Registration) {
    const entry = yield* newEntry(given, registration, false)
    yield* bringUp(given, entry)
    return entry
  })

  /** Starts a new server of the configuration; gives a warning when the host goes on without it. */
  const addConfigured = Effect.fnUntraced(function* (
    given: McpRegisterParams,
    registration: Registration,
    isNeeded: boolean
  ) {
    const { name } = given
    const entry = yield* newEntry(given, registration, true)
    entries.set(name, entry)
    let isLate = false
    const fall = (error: Missing) =>
      Effect.suspend(() => {
        if (!isLate) {
          entries.delete(name)
          return Effect.void
        }
        entry.state = "failed"
        entry.known = []
        entry.error ??= error.message
        return Effect.logWarning(error.message)
      })
    const coming = yield* bringUp(given, entry).pipe(
      Effect.tapError(fall),
      Effect.ensuring(
        Effect.sync(() => {
          entry.coming = undefined
        })
      ),
      Effect.forkIn(parent)
    )
    if (coming.pollUnsafe() === undefined) entry.coming = coming
    const up = Effect.as(Fiber.join(coming), true)
    const isUp = isNeeded ? yield* up : Option.isSome(yield* Effect.timeoutOption(up, startPatience))
    isLate = !isUp
    return isUp ? [] : [`mcp server ${name} is still starting`]
  })

  /** The values of a known registration are here again (RUN-255). */
  const revive = Effect.fnUntraced(function* (entry: HostServer, given: McpRegisterParams) {
    const server = entry.server ?? (yield* equip(entry, given, new Set()))
    yield* server.start.pipe(
      Effect.mapError((cause) => unavailable(given.name, cause)),
      Effect.onError(() =>
        Effect.andThen(
          strip(entry),
          Effect.sync(() => {
            entry.state = "needs_registration"
            entry.error = undefined
          })
        )
      )
    )
  })

  const registered: Array<() => void> = []
  const registering = Semaphore.makeUnsafe(1)
  const register: HostServers["register"] = (given) =>
    registering.withPermits(1)(
      Effect.gen(function* () {
        const registration = yield* accepted(given)
        const entry = entries.get(given.name)
        if (entry !== undefined && !isSame(entry.registration, registration)) {
          return yield* new Conflict({ reason: "mcp_immutable", id: given.name })
        }
        if (entry?.coming !== undefined) yield* Fiber.join(entry.coming)
        if (entry === undefined || !entry.isAccepted) {
          return { server: shown(yield* add(given, registration)), duplicate: false }
        }
        if (entry.state === "needs_registration") {
          yield* revive(entry, given)
          for (const listener of registered) listener()
        }
        return { server: shown(entry), duplicate: true }
      })
    )

  const load = Effect.fnUntraced(function* (record: ServerRecord) {
    const { registration, tools, version } = record
    const aliases = new Map(tools.map(({ alias, name }) => [`${registration.name}.${name}`, alias]))
    const listed: ReadonlyArray<ListedTool> = tools
    const entry = newHostServer({
      registration,
      configured: record.configured,
      state: hasValues(registration) ? "needs_registration" : "stopped",
      known: readFor(registration)(version, listed, (name) => aliases.get(name)).tools
    })
    entry.isAccepted = true
    if (!hasValues(registration)) yield* equip(entry, registration, new Set())
    entries.set(registration.name, entry)
  })

  for (const record of config.catalog.servers()) if (!record.configured) yield* load(record)
  const configuredBefore = new Map(
    config.catalog
      .servers()
      .flatMap((record) => (record.configured ? [[record.registration.name, record] as const] : []))
  )

  const toStart = new Set<HostServer>()
  const configureOne = Effect.fnUntraced(function* (
    given: McpRegisterParams,
    isNeeded: boolean
  ): Effect.fn.Return<ReadonlyArray<string>, RegisterFailure> {
    const registration = yield* accepted(given)
    const saved = configuredBefore.get(given.name)
    if (entries.get(given.name) === undefined && saved !== undefined && isSame(saved.registration, registration)) {
      yield* load(saved)
    }
    const entry = entries.get(given.name)
    if (entry === undefined) {
      return yield* addConfigured(given, registration, isNeeded).pipe(
        Effect.catchTag("ProviderUnavailable", ({ message }) => Effect.succeed([message]))
      )
    }
    if (!isSame(entry.registration, registration)) {
      return yield* new Conflict({ reason: "mcp_immutable", id: given.name })
    }
    if (entry.server === undefined) yield* equip(entry, given, new Set())
    if (entry.state === "needs_registration") entry.state = "stopped"
    toStart.add(entry)
    return []
  })

  return {
    register,
    configure: (servers, isNeeded) =>
      Effect.map(
        Effect.forEach(
          servers,
          (given, index) =>
            configureOne(given, isNeeded(given.name)).pipe(
              Effect.mapError(
                ({ message }) => new StartupFailed({ reason: "bad_config", path: `servers[${index}]`, detail: message })
              )
            ),
          { concurrency: "unbounded" }
        ),
        (warnings) => warnings.flat()
      ),
    startConfigured: Effect.suspend(() =>
      Effect.forEach(toStart, ({ server }) => (server === undefined ? Effect.void : Effect.ignore(server.start)), {
        concurrency: "unbounded",
        discard: true
      })
    ),
    list: () => [...entries.values()].map(shown),
    has: (name) => entries.has(name),
    awaitFirst: (qualifiedNames) =>
      Effect.suspend(() => {
        const coming = new Set(qualifiedNames.flatMap((name) => entryOf(name)?.coming ?? []))
        return coming.size === 0
          ? Effect.void
          : Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll(coming), namedPatience))
      }),
    find,
    findAlias: (alias) => allTools().find((tool) => tool.alias === alias),
    isPresent: (qualifiedName) =>
      find(qualifiedName) !== undefined && entryOf(qualifiedName)?.state !== "needs_registration",
    isAwaited: (qualifiedName) => entryOf(qualifiedName)?.state === "needs_registration",
    onRegistered: (listener) => void registered.push(listener),
    execute: (call) => {
      const entry = entryOf(call.tool)
      if (entry === undefined) return undefined
      return entry.server === undefined
        ? Effect.fail(waitsForValues)
        : entry.server.call({
            qualifiedName: call.tool,
            boundTo: call.boundTo,
            arguments: call.arguments,
            beforeDispatch: call.beforeDispatch,
            ifInterrupted: call.ifInterrupted,
            keep: call.keepArtifact
          })
    },
    onSecret: (listener) => secrets.follow(listener)
  }
})
