/**
 * One handler per method of the table, without any transport (D-27): stdio adds framing, order and overload, the embedded
 * host calls these.
 *
 * They hand over to the service that owns the matter. They do not own what a connection has to keep: `initialize` first
 * and once, capabilities, draining are checked where a request arrives (`faces/stdio/Dispatch`). What a later version
 * brings answers `unsupported` with the name of its capability (RUN-123).
 */
import {
  capabilityName,
  eventContract,
  effectiveWaitMs,
  isMethodName,
  methodNames,
  methods,
  Unsupported,
  type Capabilities,
  type Counters,
  type ErrorOf,
  type EventReadParams,
  type Handlers,
  type HostInfo,
  type InitializeResult,
  type Limits,
  type MethodName,
  type ParamsOf,
  type ResultOf,
  type RunError,
  type RunWaitParams,
  type SandboxInfo
} from "@tackroom/protocol/run"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { Agents } from "../catalog/Agents.ts"
import type { Providers } from "../catalog/Providers.ts"
import { waitReady, type WaitHandler } from "../faces/stdio/WaitHandler.ts"
import type { HostServers } from "../mcp/HostServers.ts"
import type { Runs } from "../runs/Runs.ts"
import type { Sessions } from "../runs/Sessions.ts"
import { answering, type HandlerFailure } from "./Answering.ts"

export interface HandlersConfig {
  readonly version: string
  readonly pid: number
  readonly startedAt: string
  readonly journalId: string
  readonly storage: "memory" | "sqlite"
  readonly sandbox: SandboxInfo
  readonly limits: Limits
  readonly warnings: ReadonlyArray<string>
  readonly agents: Agents
  readonly providers: Providers
  readonly servers: Pick<HostServers, "register" | "list" | "awaitFirst">
  readonly sessions: Sessions
  readonly runs: Runs
  readonly counters: () => Counters
}

/** What the host can do; the rest answers `unsupported`. */
export const capabilities: Capabilities = {
  agentRuns: true,
  dynamicAgents: true,
  applicationCallbacks: false,
  sessionSend: true,
  sessionModelOverride: true,
  memoryTools: false,
  scheduledTasks: false,
  providers: true,
  mcpServers: true,
  teams: false,
  artifacts: true,
  sessionList: true,
  secureStorage: false,
  scriptedProvider: true
}

export interface HostMethods {
  readonly capabilities: Capabilities
  readonly handlers: Handlers
  /** The same two methods as something to look at and wait for (RUN-033). */
  readonly waits: {
    readonly "run/wait": (params: RunWaitParams) => WaitHandler<ResultOf<"run/wait">, RunError>
    readonly "event/read": (params: EventReadParams) => WaitHandler<ResultOf<"event/read">, RunError>
  }
  /** From now on `host/info` says so; refusing what would start work is the face's (RUN-524). */
  readonly drain: () => void
}

const hostName = "tackroom"

export const make = (config: HandlersConfig): HostMethods => {
  const { agents, providers, runs, servers, sessions } = config
  let draining = false

  const info = (): HostInfo => ({
    host: { name: hostName, version: config.version },
    pid: config.pid,
    startedAt: config.startedAt,
    journalId: config.journalId,
    storage: { type: config.storage },
    sandbox: config.sandbox,
    state: draining ? "draining" : "ready",
    counters: config.counters()
  })

  const initialized: InitializeResult = {
    protocolVersion: 1,
    host: { name: hostName, version: config.version },
    capabilities,
    limits: config.limits,
    journalId: config.journalId,
    eventContract,
    sandbox: config.sandbox,
    warnings: config.warnings
  }

  const send = (params: ParamsOf<"session/send">) => {
    const { input } = params
    if (input.type === "message") {
      const submissionId = params.submissionId ?? `msg_${randomUUID()}`
      return Effect.map(
        runs.start({ sessionId: params.sessionId, submissionId, text: input.text }),
        (result) => ({ type: "message", ...result }) as const
      )
    }
    const { type } = input
    return Effect.map(
      runs.respondFor({
        sessionId: params.sessionId,
        targetSessionId: input.targetSessionId ?? params.sessionId,
        ...(params.submissionId === undefined ? {} : { submissionId: params.submissionId }),
        interactionId: input.interactionId,
        ...(input.type === "approval" ? { decision: input.decision } : { answer: input.text })
      }),
      (result) => ({ type, ...result })
    )
  }

  type Served = { readonly [M in MethodName]?: (params: ParamsOf<M>) => Effect.Effect<ResultOf<M>, HandlerFailure> }
  const served: Served = {
    initialize: () => Effect.succeed(initialized),
    "host/info": () => Effect.sync(info),
    "agent/register": ({ agent }) => Effect.andThen(servers.awaitFirst(agent.tools ?? []), agents.register(agent)),
    "agent/list": () => Effect.sync(() => ({ agents: agents.profiles() })),
    "agent/session": (params) => sessions.create(params),
    "agent/close": ({ sessionId }) => runs.close(sessionId),
    "run/start": (params) => runs.start(params),
    "run/wait": (params) => waitReady(runs.wait(params), effectiveWaitMs(params.waitMs)),
    "run/respond": (params) => runs.respond(params),
    "run/cancel": (params) => runs.cancel(params),
    "session/send": send,
    "session/state": ({ sessionId }) => runs.state(sessionId),
    "session/attach": (params) => runs.attach(params),
    "session/list": (params) => runs.list(params),
    "session/revoke": (params) => runs.revoke(params),
    "turn/start": (params) =>
      Effect.map(runs.start(params), ({ cursors, ...rest }) => ({ ...rest, cursor: cursors[params.sessionId] ?? 0 })),
    "event/read": (params) => waitReady(runs.events(params), effectiveWaitMs(params.waitMs, 0)),
    "interaction/respond": (params) => runs.respond(params),
    "artifact/read": (params) => runs.artifact(params),
    "provider/set": (params) => providers.set(params),
    "provider/list": () => Effect.sync(() => ({ providers: providers.list() })),
    "connection/set": (params) => providers.connect(params),
    "connection/list": () => Effect.sync(() => ({ connections: providers.connections() })),
    "connection/remove": ({ connection }) => Effect.map(providers.disconnect(connection), (removed) => ({ removed })),
    "mcp/register": (params) => servers.register(params),
    "mcp/list": () => Effect.sync(() => ({ servers: servers.list() }))
  }

  const handlerOf = <M extends MethodName>(method: M) => {
    const answer = answering({ journalId: config.journalId }, method)
    const serve = served[method] as ((params: ParamsOf<M>) => Effect.Effect<ResultOf<M>, HandlerFailure>) | undefined
    const { capability } = methods[method]
    const missing = new Unsupported({ feature: capability === null ? method : capabilityName(capability) })
    return (params: ParamsOf<M>): Effect.Effect<ResultOf<M>, ErrorOf<M>> =>
      answer(serve === undefined ? Effect.fail(missing) : Effect.suspend(() => serve(params))) as Effect.Effect<
        ResultOf<M>,
        ErrorOf<M>
      >
  }

  const waiting = <P, R>(method: MethodName, make: (params: P) => WaitHandler<R, HandlerFailure>) => {
    const answer = answering({ journalId: config.journalId }, method)
    return (params: P): WaitHandler<R, RunError> => {
      const { changed, current } = make(params)
      return { current: answer(current), changed }
    }
  }

  return {
    capabilities,
    handlers: Object.fromEntries(
      methodNames.filter(isMethodName).map((method) => [method, handlerOf(method)])
    ) as unknown as Handlers,
    waits: { "run/wait": waiting("run/wait", runs.wait), "event/read": waiting("event/read", runs.events) },
    drain: () => {
      draining = true
    }
  }
}
