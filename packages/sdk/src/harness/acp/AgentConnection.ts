/**
 * One agent process that speaks ACP: started, greeted, signed in where that was asked for, and ended with its scope. It knows
 * no session; what the agent says goes to the listener.
 *
 * Invariants: the process is ready when `open` returns, or nothing of it is left (HRN-038); when it is gone, every call that
 * waits fails with how it went (HRN-035); a write to it that fails ends that conversation and nothing else (HRN-037).
 */
import type * as Acp from "@agentclientprotocol/sdk"
import {
  HarnessDependencyMissing,
  type HarnessError,
  HarnessTimeout,
  HarnessVersionUnsupported,
  isHarnessError
} from "@tackroom/protocol"
import { Deferred, Effect, Exit, FiberSet, Scope } from "effect"
import type { Child, EnvironmentSpec, ProcessOwnerService } from "../../process/index.ts"
import { type AgentFacts, agentFactsOf } from "./AgentFacts.ts"
import { agentErrorOf, brokeProtocol, exitedWith, notStarted, refusedBy } from "./Failures.ts"
import { makeMessageStream, type MessageListener, type RunPromise } from "./MessageStream.ts"

/** How an agent is started. */
export interface AgentCommand {
  readonly harness: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: EnvironmentSpec
  readonly redact: (text: string) => string
  readonly authMethod: string | undefined
  readonly client: Acp.Implementation | undefined
  readonly initializeTimeoutMs: number
  readonly maxFrameBytes: number | undefined
  /** Ways to sign in that need a terminal are asked for too. */
  readonly terminalAuth?: boolean
}

/** What the agent asks. Each answer is the agent's; a failure is one too. */
export interface AgentListener extends MessageListener {
  readonly permission: (
    request: Acp.RequestPermissionRequest,
    requestId: string,
    run: RunPromise
  ) => Promise<Acp.RequestPermissionResponse>
  readonly elicitation: (
    request: Acp.CreateElicitationRequest,
    requestId: string,
    run: RunPromise
  ) => Promise<Acp.CreateElicitationResponse>
}

/** A ready agent. */
export interface AgentConnection {
  readonly child: Child
  readonly facts: AgentFacts
  /** A request to the agent; `answered` is run at the answer's place among the updates. */
  readonly request: <Method extends Acp.AgentRequestMethod>(
    method: Method,
    params: Acp.AgentRequestParamsByMethod[Method],
    answered?: Effect.Effect<void>
  ) => Effect.Effect<unknown, HarnessError | AgentRefused>
  readonly notify: (method: "session/cancel", params: Acp.CancelNotification) => Effect.Effect<void, HarnessError>
  /** Completes when the conversation is over, with why. */
  readonly over: Effect.Effect<HarnessError>
  readonly isOver: () => boolean
}

/** The agent answered with an error; `failure` is what a caller is told. */
export class AgentRefused {
  readonly _tag = "AgentRefused"
  readonly code: number
  readonly message: string
  readonly data: unknown
  readonly failure: HarnessError
  constructor(
    error: { readonly code: number; readonly message: string; readonly data?: unknown },
    failure: HarnessError
  ) {
    this.code = error.code
    this.message = error.message
    this.data = error.data
    this.failure = failure
  }
}

/** Turns an answered error into the caller's. */
export const orFail = <A>(call: Effect.Effect<A, HarnessError | AgentRefused>): Effect.Effect<A, HarnessError> =>
  Effect.mapError(call, (error) => (error._tag === "AgentRefused" ? error.failure : error))

/** How long an exit waits for what the agent said last, and the end of its output for its exit. */
const lastWordsMs = 50

const exitWaitMs = 1_000

type Sdk = typeof Acp

/** The official SDK, loaded at the first use; it is an optional peer (RT-003). */
export const loadSdk = (harness: string): Effect.Effect<Sdk, HarnessError> =>
  Effect.tryPromise({
    try: () => import("@agentclientprotocol/sdk"),
    catch: () =>
      new HarnessDependencyMissing({ harness, package: "@agentclientprotocol/sdk", range: "^2.4.0" }) as HarnessError
  })

/** Opens an agent for the life of the scope. */
export const openAgent = (
  parts: {
    readonly sdk: Sdk
    readonly owner: ProcessOwnerService
    readonly command: AgentCommand
    readonly listener: AgentListener
  },
  place: { readonly directory: string; readonly sessionId: string | undefined }
): Effect.Effect<AgentConnection, HarnessError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* greet(parts, place).pipe(
      Effect.timeoutOrElse({
        duration: parts.command.initializeTimeoutMs,
        orElse: () => Effect.fail(new HarnessTimeout({ harness: parts.command.harness, operation: "initialize" }))
      }),
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })

const greet = Effect.fnUntraced(function* (
  parts: Parameters<typeof openAgent>[0],
  place: Parameters<typeof openAgent>[1]
) {
  const { command, listener, owner, sdk } = parts
  const { harness } = command
  const child = yield* owner
    .spawn({
      role: "harness",
      command: command.command,
      args: command.args,
      cwd: place.directory,
      env: command.env,
      redact: command.redact,
      ...(place.sessionId === undefined ? {} : { sessionId: place.sessionId })
    })
    .pipe(Effect.mapError((failed) => notStarted(harness, failed)))
  const run: RunPromise = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>() as Effect.Effect<
    RunPromise,
    never,
    Scope.Scope
  >
  const messages = makeMessageStream(child, { run, listener, maxFrameBytes: command.maxFrameBytes })
  const over = Deferred.makeUnsafe<HarnessError>()
  let isOver = false

  const connection = sdk
    .client({ name: "tackroom" })
    .onRequest("session/request_permission", ({ params, requestId }) =>
      listener.permission(params, String(requestId), run)
    )
    .onRequest("elicitation/create", ({ params, requestId }) => listener.elicitation(params, String(requestId), run))
    .connect(messages.stream)

  const end = (why: HarnessError): void => {
    if (isOver) return
    isOver = true
    Deferred.doneUnsafe(over, Exit.succeed(why))
    connection.close(why)
  }

  const reading = Effect.exit(messages.read).pipe(
    Effect.flatMap((exit) =>
      Effect.gen(function* () {
        if (Exit.isFailure(exit)) {
          end(brokeProtocol(harness, "read", "what it writes is not JSON-RPC"))
          yield* Effect.forkDetach(child.terminate)
          return
        }
        // An agent that closed its output can say nothing any more.
        const ended = yield* Effect.timeoutOption(child.exit, exitWaitMs)
        if (ended._tag === "Some") return end(exitedWith(harness, "run", ended.value))
        end(brokeProtocol(harness, "read", "it closed its output"))
        yield* Effect.forkDetach(child.terminate)
      })
    )
  )
  yield* Effect.forkScoped(reading)
  yield* Effect.forkScoped(
    Effect.flatMap(child.exit, (exit) =>
      Effect.andThen(
        Effect.sleep(lastWordsMs),
        Effect.sync(() => end(exitedWith(harness, "run", exit)))
      )
    )
  )
  // Before the process is ended: an end that we want is no failure of the agent.
  yield* Effect.addFinalizer(() => Effect.sync(() => end(brokeProtocol(harness, "close", "it was closed"))))

  let facts: AgentFacts = agentFactsOf(undefined)

  const failureOf = (operation: string, cause: unknown): Effect.Effect<HarnessError | AgentRefused> => {
    if (isHarnessError(cause)) return Effect.succeed(cause)
    const said = agentErrorOf(cause)
    if (said !== undefined) {
      const answer = { ...said, message: command.redact(said.message) }
      return Effect.succeed(new AgentRefused(answer, refusedBy(harness, operation, answer, facts.authMethods)))
    }
    // The pipe broke: how the process ended says why.
    return Effect.map(Effect.timeoutOption(Deferred.await(over), exitWaitMs), (why) =>
      why._tag === "Some" ? why.value : brokeProtocol(harness, operation, "the conversation broke off")
    )
  }

  const send = <A>(operation: string, call: () => Promise<A>): Effect.Effect<A, HarnessError | AgentRefused> =>
    Effect.flatMap(Effect.exit(Effect.tryPromise({ try: call, catch: (cause) => ({ cause }) })), (exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
      const failed = Exit.findErrorOption(exit)
      return failed._tag === "Some"
        ? Effect.flatMap(failureOf(operation, failed.value.cause), (error) => Effect.fail(error))
        : Effect.failCause(exit.cause as never)
    })

  const agent: AgentConnection = {
    child,
    get facts() {
      return facts
    },
    request: (method, params, answered) =>
      send(method, () => {
        if (answered !== undefined) messages.awaitAnswer(method, answered)
        return connection.agent.request(method, params)
      }),
    notify: (method, params) => orFail(send(method, () => connection.agent.notify(method, params))),
    over: Deferred.await(over),
    isOver: () => isOver
  }

  const answer = yield* orFail(
    agent.request("initialize", {
      protocolVersion: sdk.PROTOCOL_VERSION,
      ...(command.client === undefined ? {} : { clientInfo: command.client }),
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        ...(command.terminalAuth === true ? { auth: { terminal: true } } : {}),
        elicitation: { form: {}, url: {} },
        session: { notices: {}, compaction: {}, configOptions: { boolean: {} } }
      }
    })
  )
  facts = agentFactsOf(answer)
  if (facts.protocolVersion !== sdk.PROTOCOL_VERSION) {
    return yield* new HarnessVersionUnsupported({
      harness,
      operation: "initialize",
      detail: `it speaks version ${String(facts.protocolVersion).slice(0, 20)} of the protocol, not ${sdk.PROTOCOL_VERSION}`
    })
  }
  const { authMethod } = command
  if (authMethod !== undefined) {
    if (!facts.authMethods.some(({ id, terminal }) => id === authMethod && terminal === undefined)) {
      const offered = facts.authMethods.map(({ id }) => id).join(", ")
      return yield* refusedBy(
        harness,
        "authenticate",
        { code: -32_000, message: `it offers no method "${authMethod}"${offered === "" ? "" : `, but ${offered}`}` },
        facts.authMethods
      )
    }
    yield* orFail(agent.request("authenticate", { methodId: authMethod }))
  }
  return agent
})
