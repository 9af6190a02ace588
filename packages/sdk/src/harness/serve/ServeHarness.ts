/**
 * The harness `serve` (agent-runtime 11): any program that speaks serve mode, behind the driver contract.
 *
 * A session is a process, started in the session's directory, and its memory: what the process knew is lost with it, and
 * that is said (`harness_context_lost`) and never papered over with a fresh conversation, unless the prompt allows one.
 * Beyond the contract that all such programs share, a name of `capabilities` is needed for everything that is used.
 */
import { HarnessRejected, type HarnessError, UnsupportedOperation } from "@tackroom/protocol"
import type { ExecutionBinding, HarnessEvent } from "@tackroom/protocol/events"
import { serveVersion } from "@tackroom/protocol/serve"
import { Deferred, Effect, Exit, Scope, Semaphore, Stream } from "effect"
import { noCapabilities, type HarnessCapabilities } from "../Capabilities.ts"
import { AGENT_HARNESS_DEFINITIONS } from "../Definitions.ts"
import {
  type HarnessContext,
  type HarnessDriver,
  type HarnessFactory,
  type HarnessItem,
  type OpenSession,
  type TurnInput,
  TurnLost,
  type TurnRef
} from "../Harness.ts"
import { givenSetting, plainPrompt } from "../PlainPrompt.ts"
import { makeTurnFibers } from "../TurnFibers.ts"
import { openProgram, type ServeCommand, type ServeProcess } from "./ServeProcess.ts"
import { followServe, makeRunningTurn, type RunningTurn } from "./ServeTurn.ts"

/** @since 0.1.0 */
export interface ServeHarnessOptions {
  /** The program, found on PATH. */
  readonly command: string
  readonly args?: ReadonlyArray<string>
  /** Names of variables that the program gets beside the short list of HRN-031. */
  readonly env?: ReadonlyArray<string>
  /** Versions to agree on. Default: the only one there is, 1. */
  readonly protocolVersions?: ReadonlyArray<number>
  /** How long a program may take until it is ready. Milliseconds, default 30,000. */
  readonly initializeTimeoutMs?: number
  /** The longest line that is read. Bytes, default 32 MiB. */
  readonly maxFrameBytes?: number
}

const id = "serve"
const access = "native"

const unsupported = (operation: string) => Effect.fail(new UnsupportedOperation({ harness: id, operation }))

/** A session's process and what it was told. */
interface Conversation {
  readonly program: ServeProcess
  readonly scope: Scope.Closeable
  readonly instructions: string | undefined
  /** Runs that were handed to it. */
  runs: number
}

/** What no op of serve mode can carry: the program has it by its own command line. */
const programsOwn = ["model", "variant", "agent", "permissionMode"] as const

const make = (options: ServeHarnessOptions, context: HarnessContext, driverScope: Scope.Scope): HarnessDriver => {
  const turns = makeTurnFibers()
  const running = new Map<string, RunningTurn>()
  const conversations = new Map<string, Conversation>()
  const openings = new Map<string, Semaphore.Semaphore>()

  /** One opening of a session at a time; none waits for another session's. */
  const alone = <A, E>(sessionId: string, open: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const lock = openings.get(sessionId) ?? Semaphore.makeUnsafe(1)
      openings.set(sessionId, lock)
      return lock.withPermit(open)
    })

  const command: ServeCommand = {
    harness: id,
    command: options.command,
    args: options.args ?? [],
    env: options.env ?? [],
    versions: options.protocolVersions ?? [serveVersion],
    initializeTimeoutMs: options.initializeTimeoutMs ?? 30_000,
    maxFrameBytes: options.maxFrameBytes
  }

  const close = (sessionId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const conversation = conversations.get(sessionId)
      conversations.delete(sessionId)
      return conversation === undefined ? Effect.void : Scope.close(conversation.scope, Exit.void)
    })

  const openFresh = Effect.fnUntraced(function* (place: {
    readonly sessionId: string
    readonly directory: string
    readonly instructions: string | undefined
  }) {
    const { directory, instructions, sessionId } = place
    const owner = yield* context.processes.pipe(
      Effect.mapError((error) => new HarnessRejected({ harness: id, operation: "openSession", detail: error.message }))
    )
    const scope = yield* Scope.fork(driverScope)
    const program = yield* openProgram(owner, command, { directory, sessionId }).pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
    const conversation: Conversation = { program, scope, instructions, runs: 0 }
    conversations.set(sessionId, conversation)
    return conversation
  })

  const handle = (conversation: Conversation, sessionId: string) => ({
    upstreamSessionId: conversation.program.greeting.sessionId ?? sessionId,
    upstreamState: "confirmed" as const
  })

  const openSession = Effect.fnUntraced(function* (input: OpenSession) {
    const field = givenSetting(input, programsOwn)
    if (field !== undefined) {
      return yield* new HarnessRejected({
        harness: id,
        operation: "openSession",
        detail: `${field} cannot be given to a serve-mode program; it belongs on its command line`
      })
    }
    const { directory, instructions, sessionId } = input
    const known = conversations.get(sessionId)
    if (known !== undefined && known.program.gone() === undefined) return handle(known, sessionId)
    yield* close(sessionId)
    return handle(yield* openFresh({ sessionId, directory, instructions }), sessionId)
  })

  /** The process of a turn: the session's, or a fresh one where nothing is lost with the old, or where that is allowed. */
  const conversationFor = Effect.fnUntraced(function* (turn: TurnInput) {
    const { directory, sessionId } = turn.binding
    const known = conversations.get(sessionId)
    if (known !== undefined && known.program.gone() === undefined) return { conversation: known, isReset: false }
    const isLost = known === undefined || known.runs > 0
    if (isLost && turn.prompt.allowFreshContext !== true) return undefined
    yield* close(sessionId)
    const instructions = known?.instructions ?? turn.config.instructions
    return { conversation: yield* openFresh({ sessionId, directory, instructions }), isReset: isLost }
  })

  const run = (turn: TurnInput): Stream.Stream<HarnessItem, HarnessError> =>
    Stream.suspend(() => {
      const current = makeRunningTurn()
      running.set(turn.turnId, current)
      return turns
        .run(turn, (output) =>
          Effect.gen(function* () {
            const refuse = (error: string, code: "harness_context_lost" | "not_accepted"): Effect.Effect<void> => {
              const event: HarnessEvent = {
                type: "error",
                error,
                code,
                ...(code === "not_accepted" ? {} : { errorClass: "session" }),
                assistantMessageId: turn.assistantMessageId
              }
              output.close()
              Deferred.doneUnsafe(current.submitted, Exit.void)
              Deferred.doneUnsafe(current.over, Exit.succeed(event))
              return output.emit([event])
            }
            const asked = plainPrompt(turn.prompt)
            if ("refused" in asked)
              return yield* refuse(`the program takes text alone, not ${asked.refused}`, "not_accepted")
            const found = yield* alone(turn.binding.sessionId, conversationFor(turn))
            if (found === undefined) {
              return yield* refuse(
                "the program's process is gone, and its conversation with it",
                "harness_context_lost"
              )
            }
            const { conversation, isReset } = found
            if (isReset) yield* output.emit([{ type: "conversation-reset", trigger: "process_lost" }])
            const { instructions } = conversation
            const isFirst = conversation.runs === 0
            conversation.runs += 1
            yield* followServe({
              turn,
              prompt:
                isFirst && instructions !== undefined && instructions !== ""
                  ? `${instructions}\n\n${asked.text}`
                  : asked.text,
              output,
              running: current,
              program: conversation.program,
              context
            })
          })
        )
        .pipe(Stream.ensuring(Effect.sync(() => running.delete(turn.turnId))))
    })

  /** Acknowledged by the result's own word (11.3). */
  const cancel = Effect.fnUntraced(function* (turn: TurnRef) {
    const current = running.get(turn.turnId)
    const program = conversations.get(turn.binding.sessionId)?.program
    if (current === undefined || program === undefined) return "idle" as const
    yield* Deferred.await(current.submitted)
    // A refusal says that the run is over; its end is on its way.
    yield* program.ask(
      { op: "cancel", opId: `${turn.turnId}.cancel`, runId: turn.turnId },
      Deferred.await(current.over)
    )
    const end = yield* Deferred.await(current.over)
    return end.type === "cancelled" ? ("acknowledged" as const) : ("idle" as const)
  })

  /** A process that ends between two turns is told at once; that its conversation is lost, the next turn says. */
  const betweenTurns = (binding: ExecutionBinding): Stream.Stream<HarnessEvent> =>
    Stream.suspend(() => {
      const program = conversations.get(binding.sessionId)?.program
      if (program === undefined) return Stream.empty
      return Stream.fromEffect(program.exited).pipe(
        Stream.filter((error) => error._tag === "HarnessProcessExited"),
        Stream.map((error): HarnessEvent => ({
          type: "process-status",
          processId: `${context.instanceId}.${binding.sessionId}`,
          role: "harness",
          state: "exited",
          ...("exitCode" in error && error.exitCode !== undefined ? { code: error.exitCode } : {}),
          ...("signal" in error && error.signal !== undefined ? { signal: error.signal } : {}),
          ...("stderrTail" in error && error.stderrTail !== undefined ? { stderrTail: error.stderrTail } : {})
        }))
      )
    })

  return {
    capabilities: () => Effect.succeed(capabilities),
    openSession: (input) => alone(input.sessionId, openSession(input)),
    // Nothing is left of a conversation whose process is gone (11.2).
    resumeSession: () =>
      Effect.fail(new HarnessRejected({ harness: id, operation: "resumeSession", detail: "it cannot resume" })),
    runTurn: run,
    recoverTurn: () => Stream.fail(new TurnLost({ message: "The program that worked on this turn is gone." })),
    betweenTurns,
    steer: () => unsupported("steer"),
    cancel,
    configure: () => unsupported("configure"),
    configOptions: () => unsupported("configOptions"),
    models: () => unsupported("models"),
    commands: () => unsupported("commands"),
    closeSession: (binding) => close(binding.sessionId),
    deleteSession: (binding) =>
      Effect.ensuring(
        close(binding.sessionId),
        Effect.sync(() => openings.delete(binding.sessionId))
      ),
    health: () =>
      Effect.sync(() => {
        const all = [...conversations.values()]
        const dead = all.filter(({ program }) => program.gone() !== undefined)
        return dead.length === 0
          ? { status: "ok", sessions: all.length }
          : {
              status: "degraded",
              sessions: all.length,
              reason: "processes_exited",
              message: `${dead.length} programs ended`
            }
      })
  }
}

const capabilities: HarnessCapabilities = {
  ...noCapabilities({ id, access }),
  abort: true,
  questions: true,
  instructionChannel: "prompt-prefix",
  rounds: true,
  processScope: "session"
}

/**
 * The factory of the harness `serve`. A program is started with its session and ends with it.
 *
 * ```ts
 * createAgentRuntime({ store, harnesses: [serve({ command: "python-agent-harness", args: ["serve"] })] })
 * ```
 *
 * @since 0.1.0
 */
export const serve = (options: ServeHarnessOptions): HarnessFactory => ({
  id,
  access,
  definition: AGENT_HARNESS_DEFINITIONS.serve.definition,
  make: (context) => Effect.map(Effect.scope, (scope) => make(options, context, scope))
})
