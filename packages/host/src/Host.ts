/**
 * The host: state directory, catalogs, runtime, native agent and handlers put together, for any face (D-26, D-27).
 *
 * It owns the order of opening and closing and nothing else. Two ways to open one: with the lock of the state directory,
 * as the run-protocol host that recovers and continues what it left; without, as a command-line face that shares store and
 * catalogs and settles only what it opens (D-8, D-31). Everything lives as long as the scope; turns that run when it
 * closes are left to recovery (D-7). Failure to open is `StartupFailed`, and nothing stays open then.
 */
import type { RuntimeError } from "@tackroom/protocol"
import {
  effectiveLimits,
  ProviderUnavailable,
  StartupFailed,
  type Counters,
  type HostConfig
} from "@tackroom/protocol/run"
import type { Interaction } from "@tackroom/protocol/events"
import type { TurnBudget } from "@tackroom/sdk/adapters"
import type { PolicyDecision, RuntimeStore } from "@tackroom/sdk/effect"
import {
  AgentRuntime,
  HarnessRegistry,
  Hub,
  type KnownSecrets,
  type SecretFollower,
  McpServers,
  Recovery,
  Secrets
} from "@tackroom/sdk/effect"
import {
  identityOfInstance,
  instanceIdOf,
  isSameProcess,
  makeProcessOwner,
  ProcessOwner,
  startTime,
  type ProcessOwnerService
} from "@tackroom/sdk/process"
import { loadScenario } from "@tackroom/sdk/scenario"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { Clock, Context, Effect, Exit, FiberSet, Layer, Scope } from "effect"
import * as path from "node:path"
import * as Agents from "./catalog/Agents.ts"
import * as Catalog from "./catalog/Catalog.ts"
import * as Providers from "./catalog/Providers.ts"
import { harnessFactory, hasHarness, isNative, takesMcp } from "./harnesses/Harnesses.ts"
import * as HostServers from "./mcp/HostServers.ts"
import * as SessionServers from "./mcp/SessionServers.ts"
import * as SignIns from "./harnesses/SignIns.ts"
import * as Handlers from "./methods/Handlers.ts"
import { Models, warm } from "./models/Models.ts"
import { executeTool, streamModel } from "./native/Adapters.ts"
import { clientTools } from "./native/ClientTools.ts"
import { native, nativeCapabilities } from "./native/NativeHarness.ts"
import type { SessionTool } from "./native/SessionSetup.ts"
import * as ClientServers from "./runs/ClientServers.ts"
import * as Changes from "./runs/Changes.ts"
import { harnessOf, type HostSession, type KeptDefinition } from "./runs/HostRows.ts"
import * as HostRuntime from "./runs/HostRuntime.ts"
import { hostStore } from "./runs/HostStore.ts"
import { hostTables } from "./runs/HostTables.ts"
import * as Offers from "./runs/Offers.ts"
import * as Policy from "./runs/Policy.ts"
import * as Resumption from "./runs/Resumption.ts"
import { settleOps } from "./runs/RunEnding.ts"
import * as Runs from "./runs/Runs.ts"
import * as Sessions from "./runs/Sessions.ts"
import type { Configuration } from "./state/Configuration.ts"
import * as StateDirectory from "./state/StateDirectory.ts"
import { ClientSides } from "./tools/ClientSide.ts"
import { bindingText, makeTools, splitQualifiedName, type ToolsService } from "./tools/Tools.ts"
import { ToolRunner } from "./tools/ToolRunner.ts"

export interface HostOptions {
  readonly version: string
  /** What children may be given from; already scrubbed. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** True for the one run-protocol host of a state directory; false for a command-line face beside it (D-8). */
  readonly lock: boolean
  readonly counters: () => Counters
  /** Asked first, before the agent's own policy (D-29): the policy of `tackroom run`. */
  readonly decide?: (interaction: Interaction) => PolicyDecision | undefined
  /** Asked last, when a person would be: decides where nobody is there who could (SRV-223). */
  readonly decideAlone?: (interaction: Interaction) => PolicyDecision | undefined
  /** Holds for every turn of this process besides the budget of its agent (SRV-260). */
  readonly turnBudget?: TurnBudget
  /** After this time a request of an agent is withdrawn (RT-256); none by default. */
  readonly interactionTimeoutMs?: number
  /** How long a cancel waits for the harness, and then for the end of its process (RT-160). */
  readonly cancelGraceMs?: number
  readonly killGraceMs?: number
  /** Told of every secret that becomes known or is forgotten, for what is written beside the journal (RUN-174, ACP-218). */
  readonly onSecret?: SecretFollower
  /** How the tool runner is started when the configuration names none: this program. */
  readonly runner: { readonly command: string; readonly args: ReadonlyArray<string> }
}

export interface Host {
  readonly methods: Handlers.HostMethods
  /** What the configuration has and the host does without. */
  readonly warnings: ReadonlyArray<string>
  readonly stateDir: string
  readonly providers: Providers.Providers
  readonly agents: Agents.Agents
  readonly sessions: Sessions.Sessions
  readonly runs: Runs.Runs
  readonly offers: Offers.Offers
  readonly clientServers: ClientServers.ClientServers
  /** What the clients of a face do themselves; a face fills it. */
  readonly clientSides: ClientSides
  readonly signIns: SignIns.SignIns
  /** Lets recovered turns go on; after `initialize` was answered (RUN-124). */
  readonly initialized: () => void
}

const sandbox = {
  selected: "none",
  available: ["none"],
  reason: "the walls come with a later version: tools have the rights of the user"
} as const

const warmUpAfter = "100 millis"

const sandboxWarning = "no wall is around tools (sandbox none): shell commands have the rights of the user"

const telemetryWarning = "telemetry is configured, and this version does not export any"

/** Variables that the configuration names and a host may keep (RUN-084). */
export const namedVariables = (config: HostConfig): ReadonlyArray<string> => [
  ...(config.storage?.type === "postgres" ? [config.storage.connectionEnv] : []),
  ...(config.telemetry?.headers ?? []).map((header) => header.valueEnv)
]

/** A variable that the configuration names has to be there (RUN-080). */
const missingVariable = (config: HostConfig, environment: HostOptions["environment"]): StartupFailed | undefined => {
  const headers = config.telemetry?.headers ?? []
  const index = headers.findIndex(({ valueEnv }) => environment[valueEnv] === undefined)
  const name = headers[index]?.valueEnv
  return name === undefined
    ? undefined
    : new StartupFailed({
        reason: "bad_config",
        path: `telemetry.headers[${index}].value_env`,
        detail: `the variable ${name} is not set`
      })
}

/** What this version cannot be configured to do is refused at the start, not ignored. */
const refuseLater = (config: HostConfig): StartupFailed | undefined => {
  const later = (at: string, what: string) =>
    new StartupFailed({ reason: "bad_config", path: at, detail: `${at}: ${what} is not available in this version` })
  if (config.storage?.type === "postgres") return later("storage", "PostgreSQL")
  if (config.sandbox !== undefined && config.sandbox !== "none") return later("sandbox", `the wall ${config.sandbox}`)
  return undefined
}

const storageFailed = (root: string, cause: RuntimeError) =>
  new StartupFailed({ reason: "storage", path: root, detail: cause.message })

/** Opens a host for the life of the scope; when it cannot be opened, nothing of it stays open. */
export const open = (
  configuration: Configuration,
  options: HostOptions
): Effect.Effect<Host, StartupFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* build(configuration, options).pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })

const build = (configuration: Configuration, options: HostOptions): Effect.Effect<Host, StartupFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { config, warnings } = configuration
    const later = refuseLater(config) ?? missingVariable(config, options.environment)
    if (later !== undefined) return yield* later
    const limits = effectiveLimits(config.limits)
    const configured = config.harnesses ?? {}
    const state = yield* StateDirectory.open(config.stateDir, { lock: options.lock })
    const catalog = yield* Catalog.open(path.join(state.path, "sdk-agents.sqlite"), {
      // A command-line face reads the catalogs of the host and writes none (D-8).
      readOnly: !options.lock,
      without: {
        agents: options.lock ? [] : (config.agents ?? []).map((agent) => agent.id),
        providers: options.lock ? [] : (config.providers ?? []).map((provider) => provider.name)
      }
    })
    const tools = makeTools({ shellSecondsMax: limits.shellTimeoutSMax })
    const store = createSqliteRuntimeStore({ root: state.path, extensions: [hostTables] })
    yield* Effect.acquireRelease(store.open, () => store.close).pipe(
      Effect.mapError((cause) => storageFailed(state.path, cause))
    )
    const rows = hostStore(store)

    const owner = makeProcessOwner({
      instanceId: instanceIdOf({ pid: process.pid, started: startTime(process.pid) ?? "" }),
      environment: options.environment,
      records: { add: (record) => store.addProcess(record), remove: (id) => store.removeProcess(id) }
    })
    yield* Effect.acquireRelease(Effect.succeed(owner), () => owner.dispose)
    if (options.lock) yield* reap(store, owner).pipe(Effect.mapError((cause) => storageFailed(state.path, cause)))
    // What the runtime keeps out of its events is kept out of what the agent remembers, and of receipts (RUN-174).
    let secrets: KnownSecrets | undefined
    const mcp = {
      owner,
      version: options.version,
      withheld: namedVariables(config),
      redact: <A>(value: A, sessionId?: string): A => secrets?.value(value, sessionId) ?? value
    }
    const isAliasTaken = (alias: string) => tools.findAlias(alias) !== undefined
    const hostServers = yield* HostServers.make({ ...mcp, catalog, key: state.key, isAliasTaken })
    // What an agent of the configuration names has to be known, or the agent cannot be checked (RUN-331).
    const named = new Set(
      (config.agents ?? []).flatMap(({ tools = [] }) => tools.map((tool) => splitQualifiedName(tool)?.provider))
    )
    const missingServers = yield* hostServers.configure(config.servers ?? [], (name) => named.has(name))
    for (const warning of missingServers) yield* Effect.logWarning(warning)
    const servers = yield* SessionServers.make({
      ...mcp,
      isAliasTaken: (alias) => isAliasTaken(alias) || hostServers.findAlias(alias) !== undefined,
      isNameTaken: hostServers.has
    })
    const agents = yield* Agents.make({
      catalog,
      configured: config.agents ?? [],
      hasTool: (name) => tools.find(name)?.source === "native" || hostServers.isPresent(name),
      hadTool: (name) => hostServers.find(name) !== undefined,
      hasHarness: (ref) => hasHarness(ref, configured),
      hasSearch: config.web?.searchUrl !== undefined
    }).pipe(Effect.catchTag("StorageFailed", catalogFailed(state.path)))
    const providers = yield* Providers.make(catalog, config.providers ?? []).pipe(
      Effect.catchTag("StorageFailed", catalogFailed(state.path))
    )

    const runner = yield* ToolRunner.make({
      command: config.runner ?? options.runner.command,
      args: config.runner === undefined ? options.runner.args : ["tool-runner"],
      version: options.version,
      stateDir: state.path,
      withheld: namedVariables(config),
      shellSecondsMax: limits.shellTimeoutSMax
    }).pipe(Effect.provideService(ProcessOwner, owner))
    if (config.runner !== undefined) {
      yield* runner.start.pipe(
        Effect.mapError((cause) => new StartupFailed({ reason: "bad_config", path: "runner", detail: cause.message }))
      )
    }

    // The runtime asks the sessions, which are made on the runtime: the loop is closed here, once.
    let sessions: Sessions.Sessions | undefined
    const { redact } = mcp
    const known = Effect.suspend(() =>
      sessions === undefined ? Effect.die(new Error("the host's sessions are not open yet")) : Effect.succeed(sessions)
    )
    const models = yield* Effect.map(Layer.build(Models.layer), (context) => Context.get(context, Models))
    const clientSides = new ClientSides()
    const harness = native({
      store,
      setup: (sessionId) => Effect.flatMap(known, (sessions) => sessions.setup(sessionId)),
      streamModel: streamModel(models.stream, providers, (id) =>
        Effect.flatMap(known, (sessions) => sessions.find(id))
      ),
      execute: executeTool(runner, [
        servers,
        hostServers,
        clientTools({ runner, sides: clientSides, stateDir: state.path, shellSecondsMax: limits.shellTimeoutSMax })
      ]),
      servers,
      redact
    })
    const services = yield* Layer.build(
      AgentRuntime.layer(
        {
          store,
          harnesses: [harness],
          resolveHarness: (ref) => harnessFactory(ref, configured),
          ...(options.interactionTimeoutMs === undefined ? {} : { interactionTimeoutMs: options.interactionTimeoutMs }),
          ...(options.cancelGraceMs === undefined ? {} : { cancelGraceMs: options.cancelGraceMs }),
          ...(options.killGraceMs === undefined ? {} : { killGraceMs: options.killGraceMs }),
          maxActiveTurns: limits.activeTurns,
          autoStart: false,
          recover: options.lock ? "all" : "opened",
          ...(options.lock ? { owner: state.hostId } : {}),
          decide: (interaction) =>
            Effect.flatMap(known, (sessions) => {
              const decided = options.decide?.(interaction)
              return decided === undefined
                ? Effect.map(
                    Policy.decide(sessions, rows, interaction),
                    (own) => own ?? options.decideAlone?.(interaction)
                  )
                : Effect.succeed<PolicyDecision | undefined>(decided)
            })
        },
        {
          settleOps: settleOps(redact),
          budgets: (session) => HostRuntime.tighter(HostRuntime.budgetOf(session), options.turnBudget),
          processes: owner
        }
      )
    )
    // Turns that run when the host closes are left to its next start (D-7).
    yield* Effect.addFinalizer(() => Context.get(services, AgentRuntime).shutdown({ turns: "leave" }))
    yield* Context.get(services, AgentRuntime).ready.pipe(Effect.mapError((cause) => storageFailed(state.path, cause)))
    secrets = Context.get(services, Secrets).known
    secrets.follow((secret, news) => options.onSecret?.(secret, news))
    providers.onSecret(({ name, value }) => secrets?.add(name, value))
    hostServers.onSecret(secrets.take)
    const runtime = yield* Effect.provide(HostRuntime.make, services).pipe(
      Effect.mapError((cause) => storageFailed(state.path, cause))
    )
    const changes = Changes.make()
    Context.get(services, Hub).subscribe("*", changes.moved)
    const made = Sessions.make({
      runtime,
      redact,
      rows,
      agents,
      providers,
      hostId: state.hostId,
      stateDir: state.path,
      toolsOf: toolsOf((name) => tools.find(name) ?? hostServers.find(name)),
      bindingOf: (name) => bindingOf(tools)(name) ?? hostServers.find(name)?.boundTo,
      servers,
      loadScenario: (provider, file) =>
        loadScenario(file, "provider").pipe(
          Effect.mapError(
            (cause) => new ProviderUnavailable({ what: "scenario", name: provider, detail: cause.message })
          )
        )
    })
    sessions = made
    const runs = Runs.make({
      runtime,
      redact,
      rows,
      sessions: made,
      providers,
      changes,
      aliases: (session) => {
        const brought = servers.tools(session.sessionId)
        return (alias) =>
          (tools.findAlias(alias) ?? hostServers.findAlias(alias) ?? brought.find((tool) => tool.alias === alias))
            ?.qualifiedName ?? alias
      },
      maxEvents: limits.maxEventsMax
    })
    const recovery = Context.get(services, Recovery)
    const startedAt = new Date(yield* Clock.currentTimeMillis).toISOString()
    const methods = Handlers.make({
      version: options.version,
      pid: process.pid,
      startedAt,
      journalId: runtime.journalId,
      storage: "sqlite",
      sandbox,
      limits,
      warnings: [
        ...warnings,
        ...missingServers,
        sandboxWarning,
        ...(config.telemetry == null ? [] : [telemetryWarning])
      ],
      agents,
      providers,
      servers: hostServers,
      sessions: made,
      runs,
      counters: options.counters
    })
    const fork = yield* FiberSet.makeRuntime<never>()
    return {
      methods,
      warnings: missingServers,
      stateDir: state.path,
      providers,
      agents,
      sessions: made,
      runs,
      offers: Offers.make(runtime),
      signIns: SignIns.make(Context.get(services, HarnessRegistry)),
      clientServers: ClientServers.make(runtime, Context.get(services, McpServers), {
        takes: (ref) => (isNative(ref) ? nativeCapabilities.mcp : takesMcp(ref, configured)),
        isUsed: hostServers.has
      }),
      clientSides,
      initialized: () => {
        providers.onChange(() => void fork(warmUp(providers)))
        fork(warmUp(providers))
        fork(Effect.delay(hostServers.startConfigured, warmUpAfter))
        fork(
          Resumption.resume({
            recovery,
            ready: (sessionId) =>
              Effect.flatMap(known, (sessions) => sessions.find(sessionId)).pipe(
                Effect.tap(canAsk(providers)),
                Effect.map(({ definition }) => !definition.member.tools.some(hostServers.isAwaited)),
                Effect.catch(() => Effect.succeed(false))
              ),
            onChange: (listener) => {
              providers.onChange(listener)
              hostServers.onRegistered(listener)
            }
          })
        )
      }
    }
  })

/** Loads the client libraries of live providers when the client has said what it says first. */
const warmUp = (providers: Providers.Providers): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() => {
      const apis = new Set(providers.list().flatMap(({ api }) => (api === "script" ? [] : [api])))
      return Effect.forEach(apis, warm, { discard: true })
    }),
    warmUpAfter
  )

/** Succeeds when the session's model can be asked. */
const canAsk = (providers: Providers.Providers) => (session: HostSession) =>
  session.model === null || !isNative(harnessOf(session))
    ? Effect.void
    : Effect.asVoid(providers.resolve(session.model.connection))

const catalogFailed = (root: string) => (cause: { readonly message: string }) =>
  Effect.fail(new StartupFailed({ reason: "storage", path: root, detail: cause.message }))

/** Ends what an earlier process left running, and forgets it (RUN-090). Children of a face that still runs are its own. */
const reap = Effect.fnUntraced(function* (store: RuntimeStore, owner: ProcessOwnerService) {
  const left = (yield* store.processes).filter((record) => !isSameProcess(identityOfInstance(record.instanceId)))
  if (left.length === 0) return
  yield* owner.reap(left)
  yield* Effect.forEach(left, (record) => store.removeProcess(record.id), { discard: true })
})

const internalTools = (member: KeptDefinition["member"]): ReadonlyArray<string> => [
  ...(member.planning ? ["plan.update"] : []),
  ...(member.questions ? ["ask_user"] : [])
]

/** The selected tools and the internal ones of the agent's flags, and no others (AGT-030). */
const toolsOf =
  (find: (qualifiedName: string) => SessionTool | undefined) =>
  (member: KeptDefinition["member"]): ReadonlyArray<SessionTool> =>
    [...member.tools, ...internalTools(member)].flatMap((name) => find(name) ?? [])

const bindingOf =
  (tools: ToolsService) =>
  (qualifiedName: string): string | undefined => {
    const binding = tools.find(qualifiedName)?.binding
    return binding === undefined ? undefined : bindingText(binding)
  }
