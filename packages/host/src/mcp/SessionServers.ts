/**
 * The MCP servers that sessions brought along (ACP-214, D-39): each session's are its own, and end with it.
 *
 * It owns which servers a session has now and gives its agent their tools. It does not own what a server does over its
 * life (`Server.ts`). Nothing here is durable: the values in a server's description stay in memory (ACP-218), so after a
 * restart a session has no servers until it is opened with some again.
 */
import type { HarnessEvent } from "@tackroom/protocol/events"
import { makeRedactor, type Secret } from "@tackroom/protocol/text"
import type { McpServer } from "@tackroom/sdk/adapters"
import { Effect, Exit, Fiber, Scope } from "effect"
import type { ExecuteTool, SessionTool } from "../native/SessionSetup.ts"
import { splitQualifiedName } from "../tools/Tools.ts"
import { connect, type ConnectionParts } from "./Connection.ts"
import { overTls } from "./Reach.ts"
import * as Server from "./Server.ts"
import { fittedNames } from "./ServerName.ts"
import { read } from "./ServerTools.ts"

/** Servers of one session. */
export const mostServers = 16

export interface SessionServersConfig extends ConnectionParts {
  /** True for an alias or a provider's name that the host's own tools have. */
  readonly isAliasTaken: (alias: string) => boolean
  readonly isNameTaken: (name: string) => boolean
}

export interface SessionPlace {
  readonly sessionId: string
  readonly directory: string
  readonly tell: (event: HarnessEvent) => Effect.Effect<void>
}

export interface SessionServers {
  /** Replaces the session's servers by these. Returns when each is being started; those of before end meanwhile. */
  readonly open: (place: SessionPlace, servers: ReadonlyArray<McpServer>) => Effect.Effect<void>
  /** Ends the session's servers; returns when nothing is left of them, nor of those that they replaced. */
  readonly close: (sessionId: string) => Effect.Effect<void>
  readonly tools: (sessionId: string) => ReadonlyArray<SessionTool>
  /** The binding of a tool as it is now, undefined for one that is no tool of the session's servers. */
  readonly bindingOf: (sessionId: string, qualifiedName: string) => string | undefined
  readonly bindingChanged: (sessionId: string, qualifiedName: string) => boolean
  /** Runs a call of a tool of the session's servers; undefined for any other tool. */
  readonly execute: (call: Parameters<ExecuteTool>[0]) => ReturnType<ExecuteTool> | undefined
}

const statusOf = (server: McpServer, { error, status }: Server.ServerState): HarnessEvent => ({
  type: "mcp-server-status",
  serverName: server.name,
  status,
  ...(error === undefined ? {} : { error })
})

const secretsOf = (server: McpServer): ReadonlyArray<Secret> =>
  Object.entries(server.transport === "stdio" ? server.env : server.headers).map(([key, value]) => ({
    name: `${server.name}.${key}`,
    value
  }))

interface Opened {
  readonly servers: Map<string, Server.Server>
  readonly scope: Scope.Closeable
}

/** Keeps the servers of sessions for the life of the scope. Starts nothing and loads nothing before the first is opened. */
export const make = Effect.fnUntraced(function* (
  config: SessionServersConfig
): Effect.fn.Return<SessionServers, never, Scope.Scope> {
  const parent = yield* Effect.scope
  const opened = new Map<string, Opened>()
  /** Servers that others took the place of, as long as they end. */
  const ending = new Map<string, Set<Fiber.Fiber<void>>>()

  const serverOf = (sessionId: string, qualifiedName: string): Server.Server | undefined => {
    const provider = splitQualifiedName(qualifiedName)?.provider
    return provider === undefined ? undefined : opened.get(sessionId)?.servers.get(provider)
  }

  const tools = (sessionId: string): ReadonlyArray<SessionTool> =>
    [...(opened.get(sessionId)?.servers.values() ?? [])].flatMap((server) => server.tools())

  /** Takes the session's servers away at once; what is returned ends them. */
  const take = (sessionId: string): Effect.Effect<void> => {
    const before = opened.get(sessionId)
    opened.delete(sessionId)
    return before === undefined ? Effect.void : Scope.close(before.scope, Exit.void)
  }

  const startOne = (place: SessionPlace, scope: Scope.Scope, server: McpServer, name: string) => {
    const { sessionId } = place
    // What it says of itself has its own names, also where another server of the session has the same value.
    const own = makeRedactor(secretsOf(server).filter(({ value }) => config.redact(value, sessionId) !== value))
    const parts: ConnectionParts = { ...config, redact: (value) => config.redact(own.json(value), sessionId) }
    const isTaken = (alias: string) =>
      config.isAliasTaken(alias) ||
      tools(sessionId).some((tool) => tool.alias === alias && splitQualifiedName(tool.qualifiedName)?.provider !== name)
    return Server.make({
      connect: (onToolsChanged) => connect(server, parts, { ...place, mayReach: overTls, onToolsChanged }),
      read: (version, listed, aliasBefore) =>
        // Hints of the server are not asked: its tools reach outside until somebody says otherwise (RUN-254).
        read({ name, version, source: "session", categoryOf: () => "external", aliasBefore, isTaken }, listed),
      tell: (state) => place.tell(statusOf(server, state)),
      leftOut: (left) =>
        place.tell({
          type: "harness-notice",
          code: "mcp_tools_left_out",
          severity: "warn",
          message: `${left.length} tools of the MCP server ${server.name} are left out`,
          details: { server: server.name, count: left.length, tools: left.slice(0, 20).map((one) => ({ ...one })) }
        })
    }).pipe(Scope.provide(scope))
  }

  const open = Effect.fnUntraced(function* (place: SessionPlace, given: ReadonlyArray<McpServer>) {
    const { sessionId } = place
    const replaced = yield* Effect.forkIn(take(sessionId), parent)
    const others = ending.get(sessionId) ?? new Set()
    ending.set(sessionId, others.add(replaced))
    replaced.addObserver(() => {
      others.delete(replaced)
      if (others.size === 0) ending.delete(sessionId)
    })
    if (given.length === 0) return
    const scope = yield* Scope.fork(parent)
    const servers = new Map<string, Server.Server>()
    opened.set(sessionId, { servers, scope })
    const names = fittedNames(
      given.map(({ name }) => name),
      config.isNameTaken
    )
    for (const [index, server] of given.entries()) {
      const name = names[index]
      if (name === undefined || index >= mostServers) {
        yield* place.tell(statusOf(server, { status: "failed", error: `a session may have ${mostServers} servers` }))
      } else servers.set(name, yield* startOne(place, scope, server, name))
    }
  })

  return {
    open,
    close: (sessionId) =>
      Effect.suspend(() => Effect.andThen(take(sessionId), Fiber.awaitAll(ending.get(sessionId) ?? []))),
    tools,
    bindingOf: (sessionId, qualifiedName) => serverOf(sessionId, qualifiedName)?.find(qualifiedName)?.boundTo,
    bindingChanged: (sessionId, qualifiedName) =>
      serverOf(sessionId, qualifiedName)?.bindingChanged(qualifiedName) ?? false,
    execute: (call) => {
      const server = serverOf(call.sessionId, call.tool)
      if (server === undefined) return undefined
      return server.call({
        qualifiedName: call.tool,
        boundTo: call.boundTo,
        arguments: call.arguments,
        beforeDispatch: call.beforeDispatch,
        ifInterrupted: call.ifInterrupted,
        keep: call.keepArtifact
      })
    }
  }
})
