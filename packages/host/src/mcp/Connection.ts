/**
 * One live connection to an MCP server, over the official SDK.
 *
 * It owns the server's process or HTTP session from its start to its end with the scope, and the words for how a call
 * failed. It does not own when a server is started again, nor what its tools are called here. The SDK is loaded when the
 * first server is started, so that a host without servers does not pay for it.
 *
 * Invariants: an open connection shook hands; when it is over, every call that waits has failed. A process of a server
 * leads a group of its own, is recorded and guarded, has the environment of RUN-085 and ends by the ladder of RUN-259.
 */
import type * as Mcp from "@modelcontextprotocol/client"
import type { McpServer } from "@tackroom/sdk/adapters"
import { type ChildExit, type ProcessOwnerService, StdinClosed } from "@tackroom/sdk/process"
import { Data, Deferred, Effect, Exit, FiberSet, Schema, type Scope } from "effect"
import type { Answer } from "./CallResult.ts"
import { childTransport, type RunPromise } from "./ChildTransport.ts"
import { httpTransport } from "./HttpTransport.ts"
import type { Reach } from "./Reach.ts"
import { type ListedTool, listedTool, mostTools } from "./ServerTools.ts"

/** How a connection came to its end. */
export interface Ended {
  readonly message: string
  readonly exitCode?: number
  /** The last that the server's process wrote to stderr. */
  readonly stderrTail?: string
}

/** The server could not be started or reached, did not shake hands, or does not say what tools it has. */
export class NotConnected extends Data.TaggedError("NotConnected")<Ended> {}

/** The server, or the way to it, answered that the call failed. */
export class CallFailed extends Data.TaggedError("CallFailed")<{ readonly message: string }> {}

/** The call may have had its effect, and no answer will come (RUN-258). */
export class CallLost extends Data.TaggedError("CallLost")<{ readonly message: string }> {}

/** What a connection needs of its host. */
export interface ConnectionParts {
  readonly owner: ProcessOwnerService
  /** What the client says it is. */
  readonly version: string
  /** Variables of the host that no child gets (RUN-085). */
  readonly withheld: ReadonlyArray<string>
  /** Takes secrets out of what a server says: of itself and its tools, in errors, and in the kept end of stderr. */
  readonly redact: <A>(value: A, sessionId?: string) => A
}

export interface ConnectionPlace {
  /** Where a process is started; default: where the host was. */
  readonly directory?: string
  readonly sessionId?: string
  readonly mayReach: Reach
  /** Told whenever the server says that its tools changed. */
  readonly onToolsChanged: () => void
}

export interface Connection {
  /** What the server says it is, as a part of its tools' bindings. */
  readonly version: string
  readonly listTools: Effect.Effect<ReadonlyArray<ListedTool>, NotConnected>
  /** Interruption tells the server that the call is cancelled, and waits for nothing. */
  readonly call: (name: string, args: Schema.JsonObject) => Effect.Effect<Answer, CallFailed | CallLost>
  /** Completes when the connection is over, with why. */
  readonly over: Effect.Effect<Ended>
  readonly isOver: () => boolean
}

/** How long the end of a session over HTTP is waited for. */
const endSessionMs = 2_000
/** How long an exit waits for what the server wrote last, and the end of its output for its exit. */
const lastWordsMs = 50
const exitWaitMs = 1_000
/** A call has no time limit but its turn's; this is the longest a timer can wait. */
const longestMs = 2_147_483_647
const mostPages = 64
const messageChars = 2_000

const loadSdk = Effect.tryPromise({
  try: () => import("@modelcontextprotocol/client"),
  catch: () => new NotConnected({ message: "the MCP client library cannot be loaded" })
})

/** A page of tools, whatever each of them is: the SDK's own schema refuses all for one. */
const toolsPage = Schema.toStandardSchemaV1(
  Schema.Struct({ tools: Schema.Array(Schema.Unknown), nextCursor: Schema.optional(Schema.String) })
)

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const oneLine = (text: string): string => text.replace(/\s+/gu, " ").trim().slice(0, 500)

/** What an answer of HTTP says, besides that it is no success. */
const statusOf = ({ message, status, statusText }: Mcp.SdkHttpError): string => {
  const words = [status, statusText].filter((word) => word !== undefined && word !== "").join(" ")
  // The SDK puts the body behind words of its own, and `null` where there is none.
  const said = oneLine(message.replace(/^Error POSTing to endpoint: (?:null$)?/u, ""))
  return `it answered with HTTP ${words}${said === "" ? "" : `: ${said}`}`
}

/** Where a server over HTTP should listen, with the port. */
const listenerOf = (url: string): string => {
  const { hostname, port, protocol } = new URL(url)
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`
}

const lastLine = (text: string): string | undefined => text.trimEnd().split("\n").at(-1)?.trim().slice(0, 500)

const endedBy = ({ code, signal, stderrTail }: ChildExit): Ended => {
  const how = signal ?? `exit code ${code}`
  const said = lastLine(stderrTail)
  return {
    message: said === undefined || said === "" ? `it ended (${how})` : `it ended (${how}): ${said}`,
    ...(code === null ? {} : { exitCode: code }),
    ...(stderrTail === "" ? {} : { stderrTail })
  }
}

/** A transport that is on, and the word for why it is over. */
interface Link {
  readonly transport: Mcp.Transport
  readonly over: Deferred.Deferred<Ended>
}

const childLink = Effect.fnUntraced(function* (
  server: Extract<McpServer, { readonly transport: "stdio" }>,
  parts: ConnectionParts,
  place: ConnectionPlace
): Effect.fn.Return<Link, NotConnected, Scope.Scope> {
  const child = yield* parts.owner
    .spawn({
      role: "mcp",
      command: server.command,
      args: server.args,
      ...(place.directory === undefined ? {} : { cwd: place.directory }),
      ...(place.sessionId === undefined ? {} : { sessionId: place.sessionId }),
      env: { list: "tool", variables: server.env, never: parts.withheld },
      redact: (text) => parts.redact(text, place.sessionId)
    })
    .pipe(Effect.mapError((cause) => new NotConnected({ message: cause.message })))
  const run: RunPromise = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>() as Effect.Effect<
    RunPromise,
    never,
    Scope.Scope
  >
  const { read, transport } = childTransport(child, run)
  const over = Deferred.makeUnsafe<Ended>()
  const end = (why: Ended): void => {
    if (Deferred.doneUnsafe(over, Exit.succeed(why))) void transport.close()
  }
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      const broken = yield* read
      if (broken !== undefined) return end({ message: broken })
      const exit = yield* Effect.timeoutOption(child.exit, exitWaitMs)
      end(exit._tag === "Some" ? endedBy(exit.value) : { message: "it closed its output" })
    })
  )
  // What holds the pipe open may outlive the server.
  yield* Effect.forkScoped(
    Effect.flatMap(child.exit, (exit) =>
      Effect.andThen(
        Effect.sleep(lastWordsMs),
        Effect.sync(() => end(endedBy(exit)))
      )
    )
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => end({ message: "it was stopped" })))
  return { transport, over }
})

const httpLink = Effect.fnUntraced(function* (
  sdk: typeof Mcp,
  server: Extract<McpServer, { readonly transport: "remote" }>,
  mayReach: Reach
): Effect.fn.Return<Link, NotConnected, Scope.Scope> {
  const { endSession, transport } = httpTransport(sdk, server, mayReach)
  const over = Deferred.makeUnsafe<Ended>()
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() =>
      Deferred.isDoneUnsafe(over)
        ? Effect.void
        : Effect.ignore(Effect.timeoutOption(Effect.tryPromise(endSession), endSessionMs))
    ).pipe(Effect.andThen(Effect.promise(() => transport.close())))
  )
  return { transport, over }
})

/** Opens a connection for the life of the scope. How long it may take is the caller's to say. */
export const connect = Effect.fnUntraced(function* (
  server: McpServer,
  parts: ConnectionParts,
  place: ConnectionPlace
): Effect.fn.Return<Connection, NotConnected, Scope.Scope> {
  const sdk = yield* loadSdk
  const link = yield* server.transport === "stdio"
    ? childLink(server, parts, place)
    : httpLink(sdk, server, place.mayReach)
  // No capability is offered: a server can ask this client for nothing.
  const client = new sdk.Client({ name: "tackroom", version: parts.version }, { capabilities: {} })
  // How a process ended its link says; that the SDK gave it up after a failed write says less.
  if (server.transport === "remote") {
    client.onclose = () => void Deferred.doneUnsafe(link.over, Exit.succeed({ message: "the connection was lost" }))
  }
  client.setNotificationHandler("notifications/tools/list_changed", place.onToolsChanged)

  const brief = (text: string): string => parts.redact(text, place.sessionId).slice(0, messageChars)

  const told = (ended: Ended): Ended => ({ ...ended, message: brief(ended.message) })

  const wordsOf = (cause: unknown): string => {
    if (cause instanceof sdk.SdkHttpError) return statusOf(cause)
    if (cause instanceof sdk.SdkError && cause.code === sdk.SdkErrorCode.InvalidResult) {
      return "its answer has not the form that MCP gives it"
    }
    const code = codeBehind(cause)
    if (code === undefined || server.transport !== "remote") return messageOf(cause)
    const where = listenerOf(server.url)
    return code === "ECONNREFUSED" ? `nobody listens at ${where}` : `${where} cannot be reached (${code})`
  }

  /** Why a request failed. That the connection closed, or a pipe, says less than how the server ended. */
  const reasonOf = (cause: unknown): Effect.Effect<Ended> =>
    Effect.map(
      cause instanceof StdinClosed ||
        (cause instanceof sdk.SdkError && cause.code === sdk.SdkErrorCode.ConnectionClosed)
        ? Effect.timeoutOrElse(Deferred.await(link.over), {
            duration: exitWaitMs,
            orElse: () => Effect.succeed({ message: messageOf(cause) })
          })
        : Effect.succeed({ message: wordsOf(cause) }),
      told
    )

  const ask = <A>(request: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, NotConnected> =>
    Effect.tryPromise({ try: request, catch: (cause) => ({ cause }) }).pipe(
      Effect.catch(({ cause }) =>
        Effect.flatMap(reasonOf(cause), (ended) => Effect.fail(new NotConnected({ ...ended })))
      )
    )

  yield* ask((signal) => client.connect(link.transport, { signal, timeout: longestMs }))

  const listTools = Effect.gen(function* () {
    if (client.getServerCapabilities()?.tools === undefined) return []
    const tools: Array<ListedTool> = []
    let cursor: string | undefined
    for (let page = 0; page < mostPages; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const answer = yield* ask((signal) =>
        client.request({ method: "tools/list", params }, toolsPage, { signal, timeout: longestMs })
      )
      // These are kept; a name with a secret in it does not fit then (RUN-174).
      tools.push(...answer.tools.map((tool) => parts.redact(listedTool(tool), place.sessionId)))
      cursor = answer.nextCursor
      // Some are left out for their names, so more than fit are read; how many is bounded all the same.
      if (cursor === undefined || tools.length >= 4 * mostTools) break
    }
    return tools
  })

  /** An answer that says "no" is known; whatever else happens after a request was sent is not. */
  const failureOf = (cause: unknown): Effect.Effect<CallFailed | CallLost> =>
    Effect.map(reasonOf(cause), ({ message }) => {
      if (cause instanceof sdk.ProtocolError) return new CallFailed({ message })
      if (cause instanceof sdk.SdkHttpError && cause.status >= 400 && cause.status < 500) {
        // The server forgot this session, as one that was started anew.
        if (cause.status === 404) void link.transport.close()
        return new CallFailed({ message })
      }
      if (cause instanceof sdk.SdkError && cause.code === sdk.SdkErrorCode.InvalidResult) {
        return new CallFailed({ message: "the server's answer has not the form of a tool's result" })
      }
      if (!(cause instanceof sdk.SdkError)) void link.transport.close()
      return isRefused(cause)
        ? new CallFailed({ message: "the server cannot be reached" })
        : new CallLost({ message: `the server's answer was lost: ${message}` })
    })

  const send = (name: string, args: Schema.JsonObject): Effect.Effect<Answer, CallFailed | CallLost> =>
    Effect.tryPromise({
      try: (signal): Promise<Answer> =>
        client.request(
          { method: "tools/call", params: { name, arguments: args } },
          { signal, timeout: longestMs, allowInputRequired: false }
        ),
      catch: (cause) => ({ cause })
    }).pipe(Effect.catch(({ cause }) => Effect.flatMap(failureOf(cause), (error) => Effect.fail(error))))

  return {
    version: parts.redact(client.getServerVersion()?.version ?? "", place.sessionId).slice(0, 100),
    listTools,
    call: (name, args) =>
      Effect.suspend(() =>
        Deferred.isDoneUnsafe(link.over)
          ? Effect.fail(new CallFailed({ message: "the server ended before it was given the call" }))
          : send(name, args)
      ),
    over: Effect.map(Deferred.await(link.over), told),
    isOver: () => Deferred.isDoneUnsafe(link.over)
  }
})

/** What the system said of a request that failed under HTTP. */
const codeBehind = (cause: unknown): string | undefined => {
  const inner = cause instanceof Error ? cause.cause : undefined
  const code: unknown = inner instanceof Error ? Reflect.get(inner, "code") : undefined
  return typeof code === "string" ? code : undefined
}

/** Nobody listens at the address: the request never left. */
const isRefused = (cause: unknown): boolean => codeBehind(cause) === "ECONNREFUSED"
