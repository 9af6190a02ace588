/**
 * The harness `host` (agent-runtime 11): an agent of any host that speaks the run protocol, behind the driver contract.
 *
 * One host serves all sessions of the driver. A session is a session of the host's agent, bound by its id there; a turn is
 * a run (`HostTurn`). The driver keeps nothing that the two journals do not: after a crash of either side a session is
 * attached again, and a turn goes on behind the last event that was told.
 */
import {
  HarnessRejected,
  type HarnessError,
  ResumeUnconfirmed,
  SessionMissing,
  UnsupportedOperation
} from "@tackroom/protocol"
import type { ExecutionBinding, PromptInput } from "@tackroom/protocol/events"
import { InvalidCursor, InvalidState, NotFound } from "@tackroom/protocol/run"
import { Deferred, Effect, type Scope, Stream } from "effect"
import { noCapabilities, type HarnessCapabilities } from "../Capabilities.ts"
import { AGENT_HARNESS_DEFINITIONS } from "../Definitions.ts"
import type {
  HarnessContext,
  HarnessDriver,
  HarnessFactory,
  HarnessItem,
  NativeSession,
  OpenSession,
  TurnInput,
  TurnRef
} from "../Harness.ts"
import { givenSetting, plainPrompt } from "../PlainPrompt.ts"
import { makeTurnFibers } from "../TurnFibers.ts"
import {
  type HostAccess,
  type HostConnection,
  type HostFailed,
  harnessErrorOf,
  makeHostConnection
} from "./HostConnection.ts"
import { followRun, makeRunningRun, persist, type RunningRun } from "./HostTurn.ts"

/** @since 0.1.0 */
export type HostHarnessOptions = HostAccess & {
  /**
   * The agent whose sessions these are, when a session names none: one that is registered with the host, or stands in
   * `config.agents`.
   */
  readonly agent: string
}

const id = "host"
const access = "native"

const unsupported = (operation: string) => Effect.fail(new UnsupportedOperation({ harness: id, operation }))

/** What a session of a host cannot be given: it is its agent's, by definition. */
const agentsOwn = ["model", "variant", "instructions", "permissionMode"] as const

const make = (options: HostHarnessOptions, connection: HostConnection, context: HarnessContext): HarnessDriver => {
  const turns = makeTurnFibers()
  const running = new Map<string, RunningRun>()
  /** Sessions that this process opened or attached, and whether their host takes messages into a running turn. */
  const open = new Map<string, { readonly steering: boolean }>()

  const opened = (
    binding: Pick<ExecutionBinding, "sessionId">,
    hostSession: string,
    journal: string,
    steering: boolean
  ) => {
    open.set(binding.sessionId, { steering })
    return { upstreamSessionId: hostSession, upstreamState: "confirmed", ownerKey: journal } satisfies NativeSession
  }

  const openSession = Effect.fnUntraced(function* (input: OpenSession) {
    const agent = input.agent ?? options.agent
    const field = givenSetting(input, agentsOwn)
    if (field !== undefined) {
      return yield* new HarnessRejected({
        harness: id,
        operation: "openSession",
        detail: `${field} belongs to the host's agent ${agent} and cannot be given with a session`
      })
    }
    return yield* persist(connection, "agent/session", {
      agent,
      workspace: input.directory,
      // The same session asked for twice, also after a crash between the answer and its binding, is one (HRN-003).
      creationId: input.sessionId,
      ...(input.title === undefined ? {} : { name: input.title })
    }).pipe(
      Effect.flatMap(({ session }) =>
        // Every host can be attached to; `session/state` is a capability of its own.
        Effect.map(persist(connection, "session/attach", { sessionId: session.sessionId }), ({ state }) =>
          opened(input, session.sessionId, session.journalId, state.capabilities.steering)
        )
      ),
      Effect.mapError((failed) => harnessErrorOf("openSession", failed))
    )
  })

  const unconfirmed = (reason: string) => new ResumeUnconfirmed({ harness: id, operation: "resumeSession", reason })

  const resumeSession = Effect.fnUntraced(function* (
    binding: ExecutionBinding
  ): Effect.fn.Return<NativeSession, HarnessError | ResumeUnconfirmed | SessionMissing> {
    const attached = yield* persist(connection, "session/attach", {
      sessionId: binding.upstreamSessionId,
      ...(binding.ownerKey === undefined ? {} : { journalId: binding.ownerKey })
    }).pipe(Effect.mapError((failed) => resumeFailure(failed)))
    if (attached.session.sessionId !== binding.upstreamSessionId) return yield* unconfirmed("another_session")
    if (attached.session.workspace !== binding.directory) return yield* unconfirmed("directory_mismatch")
    if (attached.state.state === "closed") return yield* unconfirmed("session_closed")
    const { journalId, sessionId } = attached.session
    return opened(binding, sessionId, journalId, attached.state.capabilities.steering)
  })

  /** Only the host's own word that it has no such session is evidence that it is gone (11.2). */
  const resumeFailure = (failed: HostFailed) => {
    const { cause } = failed
    if (cause instanceof NotFound && cause.what === "session") {
      return new SessionMissing({ harness: id, operation: "resumeSession", reason: cause.message })
    }
    if (cause instanceof InvalidCursor) return unconfirmed(cause.reason)
    if (cause instanceof InvalidState) return unconfirmed(cause.reason)
    return harnessErrorOf("resumeSession", failed)
  }

  const start = (turn: TurnInput): Stream.Stream<HarnessItem, HarnessError> =>
    Stream.suspend(() => {
      const run = makeRunningRun()
      running.set(turn.turnId, run)
      return turns
        .run(turn, (output) => followRun({ turn, output, running: run, connection, context }))
        .pipe(Stream.ensuring(Effect.sync(() => running.delete(turn.turnId))))
    })

  /** Acknowledged by the run's own status, which the turn's stream tells (11.3). */
  const cancel = Effect.fnUntraced(function* (turn: TurnRef) {
    const run = running.get(turn.turnId)
    if (run === undefined) return "idle" as const
    // A start under way is answered first: what the host has not seen it cannot cancel.
    yield* Deferred.await(run.admitted)
    yield* persist(connection, "run/cancel", { sessionId: turn.binding.upstreamSessionId }).pipe(
      Effect.mapError((failed) => harnessErrorOf("cancel", failed))
    )
    const end = yield* Deferred.await(run.over)
    return end.type === "cancelled" ? ("acknowledged" as const) : ("idle" as const)
  })

  const steer = Effect.fnUntraced(function* (turn: TurnRef, prompt: PromptInput) {
    if (open.get(turn.binding.sessionId)?.steering !== true) return yield* unsupported("steer")
    const run = running.get(turn.turnId)
    if (run === undefined) return "no_active_turn" as const
    yield* Deferred.await(run.admitted)
    if (run.hostTurnId === undefined) return "no_active_turn" as const
    const plain = plainPrompt(prompt)
    if ("refused" in plain) return "declined" as const
    // Under its own id it can be found again if it came too late; without one it could run twice.
    if (prompt.messageId === undefined) return "declined" as const
    const sent = yield* connection
      .call("session/send", {
        sessionId: turn.binding.upstreamSessionId,
        submissionId: prompt.messageId,
        input: { type: "message", text: plain.text }
      })
      .pipe(
        Effect.catch((failed) =>
          failed.cause instanceof InvalidState && failed.cause.reason === "run_active"
            ? Effect.succeed(undefined)
            : Effect.fail(harnessErrorOf("steer", failed))
        )
      )
    if (sent === undefined) return "declined" as const
    // Another turn: it came after the end, and is found again as the run of this message when the runtime starts it.
    return sent.type === "message" && sent.turn.turnId === run.hostTurnId
      ? ("taken" as const)
      : ("no_active_turn" as const)
  })

  const capabilitiesFor = (sessionId: string | undefined): HarnessCapabilities => ({
    ...capabilities,
    steer: sessionId !== undefined && open.get(sessionId)?.steering === true,
    movable: "connection" in options
  })

  return {
    capabilities: ({ sessionId }) => Effect.sync(() => capabilitiesFor(sessionId)),
    openSession,
    resumeSession,
    runTurn: start,
    recoverTurn: start,
    betweenTurns: () => Stream.empty,
    steer,
    cancel,
    configure: () => unsupported("configure"),
    configOptions: () => unsupported("configOptions"),
    models: () => unsupported("models"),
    commands: () => unsupported("commands"),
    // The host's session stays: closing it there is final, and this one may be opened again.
    closeSession: (binding) => Effect.sync(() => void open.delete(binding.sessionId)),
    deleteSession: (binding) =>
      persist(connection, "agent/close", { sessionId: binding.upstreamSessionId }).pipe(
        Effect.asVoid,
        Effect.catch((failed) =>
          failed.cause instanceof NotFound ? Effect.void : Effect.fail(harnessErrorOf("deleteSession", failed))
        ),
        Effect.ensuring(Effect.sync(() => open.delete(binding.sessionId)))
      ),
    health: () =>
      Effect.sync(() => {
        const status = connection.status()
        const sessions = open.size
        if (status === "ready" || status === "unused") return { status: "ok", sessions }
        return status === "failed" || status === "closed"
          ? { status: "unavailable", sessions, reason: `host_${status}` }
          : { status: "degraded", sessions, reason: `host_${status}` }
      })
  }
}

const capabilities: HarnessCapabilities = {
  ...noCapabilities({ id, access }),
  abort: true,
  reconnect: true,
  replay: true,
  resume: "exact",
  turnRecovery: "reattach",
  permissions: true,
  questions: true,
  todos: true,
  instructionChannel: "native",
  rounds: true,
  processScope: "shared"
}

/**
 * The factory of the harness `host`. Nothing is started before the first session.
 *
 * ```ts
 * createAgentRuntime({ store, harnesses: [host({ connection: await launchHost({ config }), agent: "helper" })] })
 * ```
 *
 * With a `connection` the application keeps its tools, keys and MCP servers, and the connection; callbacks stay with the
 * process that registered them (HRN-242). With a `command` the driver starts a host of its own for the runtime's life.
 *
 * A session of this runtime is found again in the host by its id, so two stores that use one host must not give the same
 * ids to sessions of one directory.
 *
 * @since 0.1.0
 */
export const host = (options: HostHarnessOptions): HarnessFactory => ({
  id,
  access,
  definition: AGENT_HARNESS_DEFINITIONS.host.definition,
  make: (context): Effect.Effect<HarnessDriver, never, Scope.Scope> =>
    Effect.map(makeHostConnection(options, context), (connection) => make(options, connection, context))
})
