/**
 * Sessions of agents: creation, closing, what a session was made with, and its grants (run-protocol 13, 21).
 *
 * It owns the host's session rows and the setup that the native agent reads. It does not own turns and runs. A session
 * keeps the definition, model, scenario and tool bindings it was made with, whatever happens to catalog and config later
 * (RUN-330, AGT-122, AGT-333). On failure of a creation nothing remains.
 */
import {
  Conflict,
  defaultModel,
  fallbackModel,
  InvalidParams,
  InvalidState,
  NotFound,
  ProviderUnavailable,
  type AgentSessionParams,
  type CredentialsMissing,
  type FullAgentDefinition,
  type SessionRef
} from "@tackroom/protocol/run"
import { HarnessUnavailable, type HarnessError, type RuntimeError } from "@tackroom/protocol"
import type { EventPayload, McpEntry } from "@tackroom/protocol/events"
import type { Scenario } from "@tackroom/protocol/scenario"
import { canonicalJson } from "@tackroom/protocol/text"
import { Clock, Effect, Semaphore } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Agents } from "../catalog/Agents.ts"
import type { Providers } from "../catalog/Providers.ts"
import type { SessionServers } from "../mcp/SessionServers.ts"
import type { ModelTarget, SessionSetup, SessionTool } from "../native/SessionSetup.ts"
import { isNative, nativeHarness } from "../harnesses/Harnesses.ts"
import { isScripted, type HostSession, type KeptDefinition } from "./HostRows.ts"
import type { Failure, HostRuntime } from "./HostRuntime.ts"
import { op, type HostStore } from "./HostStore.ts"

export interface SessionsConfig {
  readonly runtime: HostRuntime
  readonly rows: HostStore
  readonly agents: Agents
  readonly providers: Providers
  readonly hostId: string
  readonly stateDir: string
  /** The tools of an agent by its definition: the selected ones and the internal ones of its flags (AGT-030). */
  readonly toolsOf: (member: FullAgentDefinition | KeptDefinition["member"]) => ReadonlyArray<SessionTool>
  readonly bindingOf: (qualifiedName: string) => string | undefined
  /** The tools of servers that sessions brought along; they are in no definition. */
  readonly servers: Pick<SessionServers, "tools" | "bindingOf" | "bindingChanged">
  /** Takes known secrets out of what a client says, before any of it is kept (RUN-174). */
  readonly redact: <A>(value: A, sessionId: string) => A
  readonly loadScenario: (provider: string, file: string) => Effect.Effect<Scenario, ProviderUnavailable>
}

export type CreateFailure =
  | NotFound
  | InvalidState
  | InvalidParams
  | Conflict
  | CredentialsMissing
  | ProviderUnavailable
  | Failure

/** What a face gives besides, that no client of the run protocol can. */
export interface Given {
  /** MCP servers that the client brought, by name. Their values stay in memory and are no part of a creation's digest. */
  readonly mcp?: Readonly<Record<string, McpEntry>>
}

export interface Created {
  readonly session: SessionRef
  readonly duplicate: boolean
  readonly warnings?: ReadonlyArray<string>
}

export interface Sessions {
  readonly create: (params: AgentSessionParams, given?: Given) => Effect.Effect<Created, CreateFailure>
  /** The row, whoever made it. */
  readonly find: (sessionId: string) => Effect.Effect<HostSession, NotFound | RuntimeError>
  readonly setup: (sessionId: string) => Effect.Effect<SessionSetup, HarnessError>
  readonly refOf: (session: HostSession) => SessionRef
  /** Forgets what is kept in memory of a session whose row changed. */
  readonly forget: (sessionId: string) => void
  /** The tool's binding in this session as it is now. */
  readonly bindingOf: (sessionId: string, qualifiedName: string) => string | undefined
  /** True when the tool's binding is no longer the one the session was made with (AGT-121). */
  readonly bindingChanged: (session: HostSession, qualifiedName: string) => boolean
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Most sessions are asked about again and again; their rows never change but for closing. */
const cachedSessions = 1_024

const invalid = (at: string, expected: string) =>
  new InvalidParams({ path: at, expected, issues: [{ path: at, expected }] })

const namesOf = ({ definition, model }: HostSession): string =>
  definition.scenarios === undefined
    ? (model?.model ?? "the harness itself")
    : Object.values(definition.scenarios)
        .map(({ name }) => name)
        .join(", ")

/** Of a session whose harness chooses for itself; our own agent, which would ask it, never has such a session. */
const noModel: ModelTarget = { connection: "", model: "" }

/** The runtime's title is bounded in UTF-16 units and never blank; the name itself stays whole in the host's row. */
const titleOf = (name: string | null): { readonly title?: string } => {
  const title = name?.slice(0, 200).toWellFormed().replaceAll("\u0000", "")
  return title === undefined || title.trim() === "" ? {} : { title }
}

const within = (inner: string, outer: string): boolean => {
  const relative = path.relative(outer, inner)
  return relative === "" || (!relative.startsWith("..") && !path.isAbsolute(relative))
}

export const make = (config: SessionsConfig): Sessions => {
  const { agents, providers, rows, runtime } = config
  const cache = new Map<string, HostSession>()

  const remember = (session: HostSession) => {
    if (cache.size >= cachedSessions) {
      const oldest = cache.keys().next().value
      if (oldest !== undefined) forget(oldest)
    }
    cache.set(session.sessionId, session)
    return session
  }
  const forget = (sessionId: string) => {
    cache.delete(sessionId)
  }

  const find = Effect.fnUntraced(function* (sessionId: string) {
    const known = cache.get(sessionId)
    if (known !== undefined) return known
    const row = yield* rows.query("session", { sessionId })
    if (row === null) return yield* new NotFound({ what: "session", id: sessionId })
    return remember(row)
  })

  const refOf = (session: HostSession): SessionRef => ({
    sessionId: session.sessionId,
    agent: session.agentId,
    journalId: runtime.journalId,
    workspace: session.workspace
  })

  const resolveWorkspace = (given: string): Effect.Effect<string, InvalidParams> =>
    Effect.try({
      try: () => {
        const real = fs.realpathSync(given)
        return fs.statSync(real).isDirectory() ? real : undefined
      },
      catch: () => invalid("workspace", "the absolute path of an existing directory")
    }).pipe(
      Effect.flatMap((real) => {
        if (real === undefined) return Effect.fail(invalid("workspace", "the absolute path of an existing directory"))
        if (real === path.parse(real).root) return Effect.fail(invalid("workspace", "a directory that is not the root"))
        return within(real, config.stateDir)
          ? Effect.fail(invalid("workspace", "a directory outside the host's state directory"))
          : Effect.succeed(real)
      })
    )

  /** The model of another harness is the harness's own to know; without one it chooses. */
  const chooseForeign = (definition: FullAgentDefinition, override: ModelTarget | undefined) => ({
    model: override ?? defaultModel(definition) ?? null,
    kept: false
  })

  /** The model of the session and its scenario when it is a scripted one (RUN-353, RUN-354, AGT-333). */
  const chooseModel = Effect.fnUntraced(function* (definition: FullAgentDefinition, override: ModelTarget | undefined) {
    const own = defaultModel(definition)
    const ownScripted = own !== undefined && providers.find(own.connection)?.api === "script"
    const model = ownScripted ? own : (override ?? own)
    if (model === undefined) return yield* new InvalidState({ reason: "no_model", agent: definition.id })
    const provider = providers.find(model.connection)
    if (provider === undefined) {
      if (override !== undefined) return yield* new NotFound({ what: "provider", id: model.connection })
      return { model, kept: false }
    }
    if (override !== undefined && !ownScripted) yield* providers.resolve(model.connection)
    return { model, kept: ownScripted && override !== undefined }
  })

  /** The scenarios of the scripted models that the session may ask (AGT-333). */
  const loadScenarios = Effect.fnUntraced(function* (targets: ReadonlyArray<ModelTarget | undefined>) {
    const scenarios: Record<string, Scenario> = {}
    for (const target of targets) {
      const provider = target === undefined ? undefined : providers.find(target.connection)
      if (provider === undefined || provider.scenario === null) continue
      scenarios[provider.name] ??= yield* config.loadScenario(provider.name, provider.scenario)
    }
    return Object.keys(scenarios).length === 0 ? undefined : scenarios
  })

  const noticesOf = (session: HostSession): ReadonlyArray<EventPayload> => [
    ...(session.sandbox.kind === "none"
      ? [
          {
            type: "harness-notice",
            code: "sandbox_none",
            severity: "warn",
            message: "no wall is around this session's tools: shell commands have the rights of the user"
          } as const
        ]
      : []),
    ...(isScripted(session)
      ? [
          {
            type: "harness-notice",
            code: "scripted",
            severity: "info",
            message: `the model of this session is scripted: ${namesOf(session)}`
          } as const
        ]
      : [])
  ]

  const bindingChanged = (session: HostSession, qualifiedName: string): boolean => {
    const kept = session.definition.bindings[qualifiedName]
    return kept === undefined
      ? config.servers.bindingChanged(session.sessionId, qualifiedName)
      : kept !== config.bindingOf(qualifiedName)
  }

  const bindingOf = (sessionId: string, qualifiedName: string): string | undefined =>
    config.bindingOf(qualifiedName) ?? config.servers.bindingOf(sessionId, qualifiedName)

  const duplicateOf = Effect.fnUntraced(function* (params: AgentSessionParams, digest: string) {
    if (params.creationId === undefined) return undefined
    const row = yield* rows.query("sessionByCreation", { owner: config.hostId, creationId: params.creationId })
    if (row === null) return undefined
    if (row.paramsDigest !== digest) {
      return yield* new Conflict({ reason: "creation_differs", id: params.creationId })
    }
    return row
  })

  // Two creations under one id at once are one (RUN-355); without one there is nothing to wait for.
  const creating = Semaphore.makeUnsafe(1)
  const create: Sessions["create"] = (params, given = {}) =>
    params.creationId === undefined ? createNow(params, given) : creating.withPermits(1)(createNow(params, given))

  const createNow = Effect.fnUntraced(function* (
    params: AgentSessionParams,
    { mcp }: Given
  ): Effect.fn.Return<Created, CreateFailure> {
    const { creationId: _creationId, ...content } = params
    const digest = sha256(canonicalJson(content))
    const known = yield* duplicateOf(params, digest)
    if (known !== undefined) return { session: refOf(known), duplicate: true }

    const agent = agents.find(params.agent)
    if (agent === undefined) return yield* new NotFound({ what: "agent", id: params.agent })
    if (agent._tag === "Worker") {
      return yield* new InvalidState({ reason: "worker_only_agent", agent: params.agent })
    }
    const { definition } = agent
    const workspace = yield* resolveWorkspace(params.workspace)
    const harness = definition.harness ?? nativeHarness
    const isOwn = isNative(harness)
    const { kept, model } = isOwn
      ? yield* chooseModel(definition, params.model)
      : chooseForeign(definition, params.model)
    const scenarios =
      isOwn && model !== null ? yield* loadScenarios([model, fallbackModel(definition, model)]) : undefined
    const now = yield* Clock.currentTimeMillis
    const sessionId = yield* runtime.mintSessionId
    const name = params.name === undefined ? null : config.redact(params.name, sessionId)
    const { subagents: _subagents, scheduling: _scheduling, ...member } = definition
    const session: HostSession = {
      sessionId,
      leadId: sessionId,
      agentId: definition.id,
      role: "lead",
      definition: {
        member,
        bindings: Object.fromEntries(definition.tools.map((name) => [name, config.bindingOf(name) ?? ""])),
        ...(scenarios === undefined ? {} : { scenarios })
      },
      model,
      sandbox: { kind: "none", proved: false },
      workspace,
      name,
      owner: config.hostId,
      creationId: params.creationId ?? null,
      paramsDigest: digest,
      createdAt: now,
      closedAt: null
    }
    yield* runtime.createSessions(
      [
        {
          id: sessionId,
          directory: workspace,
          harness,
          ...(isOwn || model === null ? {} : { model: { providerID: model.connection, modelID: model.model } }),
          ...(isOwn || member.instructions === "" ? {} : { instructions: member.instructions }),
          ...(mcp === undefined ? {} : { mcp }),
          budget: {
            maxRounds: member.maxRounds,
            activeMs: member.timeoutSeconds * 1_000,
            ...(member.maxOutputTokens === undefined ? {} : { maxOutputTokens: member.maxOutputTokens })
          },
          ...titleOf(name),
          notices: noticesOf(session)
        }
      ],
      [op("putSession", session)]
    )
    remember(session)
    const warnings = kept ? ["the agent's own scripted model is kept; the override is not applied"] : []
    return { session: refOf(session), duplicate: false, ...(warnings.length === 0 ? {} : { warnings }) }
  })

  const setup = Effect.fnUntraced(function* (sessionId: string): Effect.fn.Return<SessionSetup, HarnessError> {
    const session = yield* find(sessionId).pipe(
      Effect.mapError(
        (cause) => new HarnessUnavailable({ harness: "native", operation: "setup", message: cause.message })
      )
    )
    const { member } = session.definition
    return {
      sessionId,
      agentId: session.agentId,
      instructions: member.instructions,
      workspace: session.workspace,
      // As they are now: tools of MCP servers come and go.
      tools: [...config.toolsOf(member), ...config.servers.tools(sessionId)],
      model: session.model ?? noModel,
      fallback: session.model === null ? undefined : fallbackModel(member, session.model),
      approvals: { mode: member.approvals.mode, tools: member.approvals.tools ?? [] },
      bindingChanged: (qualifiedName) => bindingChanged(session, qualifiedName)
    }
  })

  return {
    create,
    find,
    setup,
    refOf,
    forget,
    bindingOf,
    bindingChanged
  }
}
