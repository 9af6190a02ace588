/**
 * The face `acp`: any agent of the runtime as an Agent Client Protocol agent (serve-mode 12). It decodes a request, calls a
 * service of the host and encodes what it said; a turn is started, cancelled and settled by `Runs`, as everywhere (D-26).
 *
 * What it holds lives with the connection: which sessions the client has set up, and which of its requests are not answered.
 */
import {
  type AgentConnection,
  type AgentRequestContext,
  agent as agentApp,
  type AnyMessage,
  type InitializeResponse,
  RequestError
} from "@agentclientprotocol/sdk"
import { Effect, Exit, Fiber, FiberSet, Option, type Scope } from "effect"
import { isNative } from "../../harnesses/Harnesses.ts"
import type { SignIns } from "../../harnesses/SignIns.ts"
import type { Host } from "../../Host.ts"
import { harnessOf, type Setup } from "../start/Setup.ts"
import { authMethods, runnable } from "./AuthMethods.ts"
import { Arrivals } from "./Arrivals.ts"
import { makeChoosing } from "./Choosing.ts"
import { clientOf } from "./Client.ts"
import type { Connection } from "./Connection.ts"
import { OpenSessions } from "./OpenSessions.ts"
import { makePrompting } from "./Prompting.ts"
import { authRequired, internal, refusalOf } from "./Refusals.ts"
import { makeSetup } from "./SettingUp.ts"
import type { Taking } from "./SetupParams.ts"

/** How long an answer may take whatever a harness does (ACP-010). */
const patience = { setup: "60 seconds", close: "15 seconds", list: "10 seconds", signIn: "10 minutes" } as const

/** How long `initialize` waits for an agent that is asked first: with the start of this program not over the limit. */
const probePatience = "6 seconds"

export interface AcpFaceParts {
  readonly host: Host
  readonly setup: Setup
  readonly version: string
  /** A script plays the model (SRV-008). */
  readonly scripted: boolean
  /** A cap of rounds was asked for: a harness that reports none is not served (SRV-007). */
  readonly needsRounds: boolean
  /** Where the agent is started to sign in. */
  readonly cwd: string
  /** The agent is started once, to know more of it. */
  readonly probe: boolean
}

/** The face of one connection. */
export interface AcpFace {
  readonly connect: (connection: Connection) => AgentConnection
  /** A message was read; in order of arrival (ACP-008). */
  readonly onRead: (message: AnyMessage) => void
  readonly onWritten: (message: AnyMessage) => void
  /** Ends every turn and every request of the client; completes when all prompts were answered. */
  readonly drain: Effect.Effect<void>
}

const paramsOf = (message: AnyMessage): Readonly<Record<string, unknown>> => {
  const params = "params" in message ? message.params : undefined
  return typeof params === "object" && params !== null ? (params as Readonly<Record<string, unknown>>) : {}
}

const cancelled = (requestId: unknown): RequestError => RequestError.requestCancelled({ requestId })

/**
 * The MCP servers that the agent says it takes. One that has not answered in time goes on behind: what it says of signing in
 * is known from then on.
 */
const probed = (asked: ReturnType<SignIns["probe"]>, unasked: Taking["takes"]) =>
  Effect.gen(function* () {
    const asking = yield* Effect.forkScoped(
      asked.pipe(
        Effect.map(({ mcp }) => mcp),
        Effect.catch((error) => Effect.as(Effect.logWarning("The agent could not be asked", error.message), unasked))
      )
    )
    const takes = yield* Effect.timeoutOption(Fiber.join(asking), probePatience)
    if (Option.isSome(takes)) return takes.value
    yield* Effect.logWarning(`The agent did not say what it is in ${probePatience}`)
    return unasked
  })

export const makeAcpFace = (parts: AcpFaceParts): Effect.Effect<AcpFace, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { cwd, host, needsRounds, probe, scripted, setup, version } = parts
    const run = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>()
    const open = yield* OpenSessions.make(host.runs, host.clientSides)
    const arrivals = new Arrivals()
    const harness = harnessOf(setup)
    const { clientServers, signIns } = host
    const always = clientServers.takes(harness)
    const takes = probe ? yield* probed(signIns.probe(harness, cwd), always) : always
    const ways = () => authMethods(signIns.known(harness), open.client)
    const sessions = makeSetup({
      host,
      setup,
      // Another agent knows nothing of the host's own servers.
      taking: { takes, isUsed: (name) => isNative(harness) && clientServers.isUsed(name) },
      open,
      needsRounds,
      cancelPrompts: (sessionId) => arrivals.cancel({ sessionId })
    })
    const choosing = makeChoosing(host, open)
    const prompt = makePrompting(host, open)
    const prompts = new Set<Promise<unknown>>()

    /** Runs a handler; what it fails with becomes an error of ACP, and a request that the client cancelled ends as one. */
    const answer = async <A>(
      { requestId, signal }: Pick<AgentRequestContext<unknown>, "requestId" | "signal">,
      sessionId: string,
      work: Effect.Effect<A, unknown>
    ): Promise<A> => {
      const exit = await run(Effect.exit(work), { signal }).catch(() => Promise.reject(cancelled(requestId)))
      if (Exit.isSuccess(exit)) return exit.value
      if (signal.aborted) throw cancelled(requestId)
      const failure = Exit.findErrorOption(exit)
      const { code, data, message } =
        failure._tag === "Some"
          ? refusalOf(failure.value, sessionId)
          : internal("internal", "Something went wrong inside")
      // Whoever is not signed in learns here how to be: before the agent was started nobody could tell.
      const more = code === -32_000 ? { authMethods: ways() } : {}
      throw new RequestError(code, message, { ...data, ...more })
    }

    const within = <A, E>(duration: (typeof patience)[keyof typeof patience], work: Effect.Effect<A, E>) =>
      Effect.timeoutOrElse(work, {
        duration,
        orElse: () => Effect.fail(internal("harness_unavailable", `It was not done in ${duration}`))
      })

    const initialized = (): InitializeResponse => ({
      protocolVersion: 1,
      agentInfo: { name: "tackroom", title: scripted ? "Tackroom (scripted model)" : "Tackroom", version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: false, audio: false, embeddedContext: true },
        mcpCapabilities: { http: takes === "stdio+http", sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        auth: {}
      },
      authMethods: ways()
    })

    const app = agentApp({ name: "tackroom" })
      .onRequest("initialize", ({ params }) => {
        open.client = clientOf(params.clientCapabilities)
        return initialized()
      })
      .onRequest("authenticate", (context) => {
        const { methodId } = context.params
        if (runnable(signIns.known(harness), methodId) === undefined) {
          throw new RequestError(-32_602, "There is no way to sign in of that id", { reason: "invalid" })
        }
        const signedIn = signIns.use(harness, methodId, cwd).pipe(
          Effect.mapError((error) => {
            // What the agent itself says is worth more than how to sign in, which the client knows.
            const said = "native" in error ? error.native?.message : undefined
            return authRequired(said ?? error.message)
          })
        )
        return answer(context, "", within(patience.signIn, Effect.as(signedIn, {})))
      })
      .onRequest("session/new", (context) => answer(context, "", within(patience.setup, sessions.create(context))))
      .onRequest("session/load", (context) =>
        answer(context, context.params.sessionId, within(patience.setup, sessions.load(context)))
      )
      .onRequest("session/resume", (context) =>
        answer(context, context.params.sessionId, within(patience.setup, sessions.resume(context)))
      )
      .onRequest("session/list", (context) => answer(context, "", within(patience.list, sessions.list(context.params))))
      .onRequest("session/close", (context) => {
        const { sessionId } = context.params
        return answer(context, sessionId, within(patience.close, Effect.as(sessions.close(sessionId), {})))
      })
      .onRequest("session/delete", (context) => {
        const { sessionId } = context.params
        return answer(context, sessionId, within(patience.close, Effect.as(sessions.remove(sessionId), {})))
      })
      .onRequest("session/set_mode", (context) => {
        const { modeId, sessionId } = context.params
        return answer(context, sessionId, within(patience.setup, Effect.as(choosing.setMode(sessionId, modeId), {})))
      })
      .onRequest("session/set_config_option", (context) =>
        answer(context, context.params.sessionId, within(patience.setup, choosing.setOption(context.params)))
      )
      .onRequest("session/prompt", ({ params, requestId }) => {
        const arrival = arrivals.begin(requestId, params.sessionId)
        // A cancel of the request is a cancel of its turn, not the end of the request (ACP-183).
        const { signal } = new AbortController()
        const answered = answer({ requestId, signal }, params.sessionId, prompt(params, arrival))
        const settled = answered.catch(() => undefined)
        prompts.add(settled)
        void settled.then(() => prompts.delete(settled))
        return answered
      })
      // It was taken when it was read (ACP-008); the SDK checks its shape.
      .onNotification("session/cancel", () => undefined)

    return {
      connect: ({ room, stream, tell }) => {
        const connection = app.connect(stream)
        open.connected({ asked: connection.client, tell, room })
        return connection
      },
      onRead: (message) => {
        if (!("method" in message)) return
        const params = paramsOf(message)
        const { sessionId } = params
        if (message.method === "session/prompt" && "id" in message && typeof sessionId === "string") {
          arrivals.read(message.id, sessionId)
        } else if (message.method === "session/cancel" && typeof sessionId === "string") arrivals.cancel({ sessionId })
        else if (message.method === "$/cancel_request") {
          const id = params["requestId"]
          if (typeof id === "string" || typeof id === "number") arrivals.cancel({ id })
        }
      },
      onWritten: (message) => {
        if ("method" in message || !("id" in message)) return
        arrivals.answered(message.id)
        open.written(message.id)
      },
      drain: Effect.gen(function* () {
        arrivals.cancelAll()
        open.left()
        yield* Effect.promise(() => Promise.all(prompts))
      })
    }
  })
