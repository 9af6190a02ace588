/**
 * One MCP server over its life: started without holding anyone, started again when a call needs it, stopped with its scope.
 *
 * It owns the connection that is open now, what the server's tools are now, and what they were when it was first ready.
 * It does not own the connection itself (`Connection.ts`) nor whose server it is.
 *
 * Invariants: the tools that the first listing had are all there will ever be, so that a server cannot hand an agent more
 * later, unless agents choose tools by name; one that is gone is not run, one that changed is bound otherwise (RUN-256). A call goes to a server that is up, or
 * it is not dispatched (RUN-257). What a start does is the server's, not the caller's: a caller that gives up stops no start.
 */
import { Clock, Deferred, Effect, Exit, Latch, Queue, Scope, type Schema } from "effect"
import type { SessionTool, ToolOutput, ToolProblem } from "../native/SessionSetup.ts"
import { toOutput } from "./CallResult.ts"
import { type Connection, NotConnected } from "./Connection.ts"
import { withRestart } from "./RestartLimit.ts"
import { type ListedTool, type Listing, type ServerTool } from "./ServerTools.ts"

/** What becomes of a server, as a session is told. */
export interface ServerState {
  readonly status: "starting" | "ready" | "failed"
  readonly error?: string
}

export interface ServerOptions {
  /** Opens a connection; told of changed tools. */
  readonly connect: (onToolsChanged: () => void) => Effect.Effect<Connection, NotConnected, Scope.Scope>
  /** Names and binds what the server lists; `before` gives the alias that a tool had. */
  readonly read: (
    version: string,
    listed: ReadonlyArray<ListedTool>,
    before: (qualifiedName: string) => string | undefined
  ) => Listing
  /** Tools that the server had at an earlier time. Then it is started by the first call, unless `start` is asked for. */
  readonly known?: ReadonlyArray<ServerTool>
  /** Tools that the first listing did not have are taken too, for those who ask for them by name. */
  readonly takesNew?: boolean
  readonly tell: (state: ServerState) => Effect.Effect<void>
  /** Told of every listing that was read. */
  readonly listed?: (version: string, tools: ReadonlyArray<ServerTool>) => Effect.Effect<void>
  readonly leftOut: (left: Listing["leftOut"]) => Effect.Effect<void>
}

export interface ServerCall {
  readonly qualifiedName: string
  /** What the tool was when the call was checked and approved. */
  readonly boundTo: string | undefined
  readonly arguments: Schema.Json
  readonly beforeDispatch: Effect.Effect<void>
  readonly ifInterrupted: (problem: ToolProblem) => void
  readonly keep: (mime: string, bytes: Uint8Array) => Effect.Effect<string, { readonly message: string }>
}

export interface Server {
  /** Starts the server unless it is up or about to be, and waits for it. */
  readonly start: Effect.Effect<void, NotConnected>
  /** What the server says it is, since it was up. */
  readonly version: () => string
  /** The tools as they are now; none before the server was ready. */
  readonly tools: () => ReadonlyArray<SessionTool>
  readonly find: (qualifiedName: string) => SessionTool | undefined
  /** Its binding is not what it was at first. */
  readonly bindingChanged: (qualifiedName: string) => boolean
  readonly call: (call: ServerCall) => Effect.Effect<ToolOutput, ToolProblem>
}

/** A handshake and the first listing take at most this long (RUN-250). */
const startMs = 30_000

/** How long a call waits for the list of tools, after the server said that it changed. */
const listingMs = 2_000

const notRun = (message: string): ToolProblem => ({ outcome: "not_run", message })

/** A server is told of a cancel and not waited for, so nobody knows how far it came (RUN-258, RUN-472). */
const cancelledAtWork: ToolProblem = {
  outcome: "unknown",
  message: "the turn was cancelled while the server worked on it"
}

/** Starts the server in the scope, and returns before it is up. */
export const make = Effect.fnUntraced(function* (options: ServerOptions): Effect.fn.Return<Server, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const changes = yield* Queue.sliding<void>(1)
  // Closed from the word that the tools changed until they were read again.
  const isListed = yield* Latch.make(true)
  const first = new Map<string, { readonly alias: string; readonly boundTo: string }>()
  let current = new Map((options.known ?? []).map((one) => [one.tool.qualifiedName, one]))
  for (const { tool } of current.values()) first.set(tool.qualifiedName, tool)
  let wasReady = options.known !== undefined
  /** The connection that calls use, and the one that is open, which may not have said yet what it has. */
  let connection: Connection | undefined
  let latest: Connection | undefined
  let flight: Deferred.Deferred<Connection, NotConnected> | undefined
  let version = ""
  let restarts: ReadonlyArray<number> = []

  const list = Effect.fnUntraced(function* (from: Connection) {
    const listed = yield* from.listTools
    const { leftOut, tools } = options.read(from.version, listed, (name) => first.get(name)?.alias)
    for (const { tool } of tools) {
      if (!wasReady || (options.takesNew === true && !first.has(tool.qualifiedName)))
        first.set(tool.qualifiedName, tool)
    }
    if (!wasReady && leftOut.length > 0) yield* options.leftOut(leftOut)
    wasReady = true
    current = new Map(
      tools.flatMap((one) => (first.has(one.tool.qualifiedName) ? [[one.tool.qualifiedName, one] as const] : []))
    )
    version = from.version
    if (options.listed !== undefined) yield* options.listed(version, [...current.values()])
  })

  /** Watches a connection to its end. */
  const watch = Effect.fnUntraced(function* (opened: Connection, its: Scope.Closeable) {
    const why = yield* opened.over
    if (connection === opened) {
      connection = undefined
      yield* options.tell({ status: "failed", error: why.message })
    }
    // Not here: closing the scope interrupts whatever was forked in it.
    yield* Effect.forkIn(Scope.close(its, Exit.void), scope)
  })

  const open = Effect.fnUntraced(function* () {
    const its = yield* Scope.fork(scope)
    return yield* Effect.gen(function* () {
      const opened = yield* options.connect(() => {
        isListed.closeUnsafe()
        Queue.offerUnsafe(changes, undefined)
      })
      latest = opened
      yield* list(opened)
      if (opened.isOver()) return yield* new NotConnected({ ...(yield* opened.over) })
      connection = opened
      yield* options.tell({ status: "ready" })
      yield* Effect.forkIn(watch(opened, its), scope)
      return opened
    }).pipe(
      Effect.timeoutOrElse({
        duration: startMs,
        orElse: () => Effect.fail(new NotConnected({ message: "it did not answer in time" }))
      }),
      Scope.provide(its),
      // Its end may take a while, and nobody waits for that.
      Effect.onError((cause) => Effect.forkIn(Scope.close(its, Exit.failCause(cause)), scope)),
      Effect.tapError((error) => options.tell({ status: "failed", error: error.message }))
    )
  })

  /** Starts the server unless a start is under way, and says so. The start belongs to the server's scope. */
  const start = Effect.fnUntraced(function* () {
    if (flight !== undefined) return flight
    const started = Deferred.makeUnsafe<Connection, NotConnected>()
    flight = started
    yield* options.tell({ status: "starting" })
    yield* Effect.interruptible(open()).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          flight = undefined
          Deferred.doneUnsafe(started, exit)
        })
      ),
      Effect.ignore,
      Effect.forkIn(scope)
    )
    return started
  }, Effect.uninterruptible)

  /** A server that is up: the one that is, the one that is starting, or one that is started again. */
  const ready = Effect.fnUntraced(function* (): Effect.fn.Return<Connection, ToolProblem> {
    if (connection !== undefined && !connection.isOver()) return connection
    if (flight === undefined) {
      const counted = withRestart(restarts, yield* Clock.currentTimeMillis)
      if (counted === undefined) return yield* Effect.fail(notRun("the server ended too often and is given a rest"))
      restarts = counted
    }
    const starting = yield* start()
    return yield* Deferred.await(starting).pipe(
      Effect.mapError(({ message }) => notRun(`the server could not be started: ${message}`))
    )
  })

  const upToDate = Effect.timeoutOption(isListed.await, listingMs)

  const call = Effect.fnUntraced(function* (request: ServerCall): Effect.fn.Return<ToolOutput, ToolProblem> {
    const { arguments: args, qualifiedName } = request
    const up = yield* ready()
    yield* upToDate
    const found = current.get(qualifiedName)
    if (found === undefined) return yield* Effect.fail(notRun("the server no longer has this tool"))
    if (found.tool.boundTo !== request.boundTo) {
      return yield* Effect.fail(notRun("the tool changed after this call was made; look at it again"))
    }
    if (!isObject(args)) return yield* Effect.fail(notRun("the arguments are not a JSON object"))
    yield* request.beforeDispatch
    request.ifInterrupted(cancelledAtWork)
    const answer = yield* up.call(found.name, args).pipe(
      Effect.mapError((error): ToolProblem => ({
        outcome: error._tag === "CallLost" ? "unknown" : "failed",
        message: error.message
      }))
    )
    // A server that changes its tools in a call says so before it answers: the next step is to know.
    yield* upToDate
    return yield* toOutput(answer, request.keep)
  })

  const listAgain = Effect.suspend(() => (latest === undefined ? Effect.void : list(latest))).pipe(
    Effect.timeoutOption(startMs),
    Effect.catch(({ message }) => Effect.logWarning("an MCP server's changed tools could not be read", message)),
    Effect.ensuring(
      Effect.sync(() => {
        if (Queue.sizeUnsafe(changes) === 0) isListed.openUnsafe()
      })
    )
  )

  if (options.known === undefined) yield* start()
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(changes), () => listAgain)))

  return {
    start: Effect.suspend(() =>
      connection !== undefined && !connection.isOver()
        ? Effect.void
        : Effect.flatMap(start(), (starting) => Effect.asVoid(Deferred.await(starting)))
    ),
    version: () => version,
    tools: () => [...current.values()].map(({ tool }) => tool),
    find: (qualifiedName) => current.get(qualifiedName)?.tool,
    bindingChanged: (qualifiedName) => {
      const known = first.get(qualifiedName)
      return known !== undefined && known.boundTo !== current.get(qualifiedName)?.tool.boundTo
    },
    call
  }
})

const isObject = (value: Schema.Json): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
