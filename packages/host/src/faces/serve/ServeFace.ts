/**
 * Serve mode: ops in, lines out, one session, runs one after another (serve-mode 3 to 8).
 *
 * It owns the run that is active and which run ids were used, and nothing else: what a run is, how it ends and what it
 * may use is the host's (`Runs`), and the journal has the rest. Ops are handled in order, each to its reply (SRV-090);
 * none waits for a turn, a tool or an answer.
 *
 * It ends when input ended, when `shutdown` or a signal came, when the driver is gone, or when a run could not be
 * committed; the result is the exit code. In every drain the active run's result is written first (SRV-225).
 */
import type { RuntimeError } from "@tackroom/protocol"
import { isRunError } from "@tackroom/protocol/run"
import {
  capabilitiesOf,
  checkAnswer,
  checkCancel,
  checkSubmit,
  errorLine,
  readOp,
  refuse,
  serveLimits,
  serveVersion,
  type CancelCause,
  type EventSet,
  type LastRun,
  type ReadOp,
  type ReadyLine,
  type Refusal,
  type RunFault,
  type ServeView
} from "@tackroom/protocol/serve"
import { Deferred, Effect, Exit, Fiber, Result, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { Readable } from "node:stream"
import { harnessKeyOf } from "../../harnesses/Harnesses.ts"
import { harnessOf } from "../../runs/HostRows.ts"
import type { Broken } from "../../runs/HostRuntime.ts"
import { authors } from "../lines/AskQueue.ts"
import { neverStarted, shortMessage } from "../lines/Ending.ts"
import { Projection } from "../lines/Projection.ts"
import { followRun } from "../lines/RunFeed.ts"
import { RunLines } from "../lines/RunLines.ts"
import type { Baseline } from "../lines/Spending.ts"
import type { FaceBudgets, FaceSession } from "../start/FaceHost.ts"
import { exitCodes } from "../start/NotStarted.ts"
import { readValues } from "./AnswerValues.ts"
import { readBackground } from "./Background.ts"
import { nextChunk } from "./Chunks.ts"
import type { LinesOut } from "../lines/LinesOut.ts"
import { makeOpLines, type ReadLine } from "./OpLines.ts"
import { LiveRun } from "../lines/LiveRun.ts"
import { noDriver } from "./Unattended.ts"

export interface ServeFaceOptions {
  readonly input: Readable
  readonly out: LinesOut
  readonly face: FaceSession
  readonly version: string
  readonly pid: number
  readonly budgets: FaceBudgets
  readonly eof: "cancel" | "finish"
  readonly events: EventSet
  readonly lastRun: LastRun | undefined
  /** From now on nobody is there to answer: the host decides what would be asked (SRV-223). */
  readonly unattended: () => void
  /** Completes when the reader of the lines is gone. */
  readonly gone: Effect.Effect<void>
  /** Completes at the first signal. */
  readonly signalled: Effect.Effect<void>
}

/** Why the face ends. */
type Ending =
  | { readonly cause: Extract<CancelCause, "eof" | "gone" | "signal" | "shutdown">; readonly opId?: string }
  | { readonly cause: "broken" }

/** How long a drain waits for a run that was cancelled, or for lines that nobody reads (SRV-226, SRV-229). */
const drainPatience = "10 seconds"

const refusalOfStart = (error: unknown, submissionId: string): Refusal | undefined => {
  if (!isRunError(error)) return tagged(error) === "SubmissionConflict" ? conflict(submissionId) : undefined
  if (error._tag === "InvalidState" && error.reason === "run_active") return refuse("busy", { activeRunId: null })
  return error._tag === "Conflict" && error.reason === "submission_text_differs" ? conflict(submissionId) : undefined
}

const conflict = (submissionId: string): Refusal => refuse("submission_conflict", { submissionId })

const tagged = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""

const isStoreTrouble = (tag: string): boolean => /^(?:RuntimeStore|Store|OpFailed)/u.test(tag)

/** Why a run never started (SRV-143). */
const startFault = (error: { readonly message: string }): RunFault => {
  const tag = tagged(error)
  const message = shortMessage(error.message)
  if (tag === "PromptInvalid") return { code: "nothing", message }
  if (tag === "CredentialsMissing") return { code: "unknown", message, class: "credential" }
  if (isStoreTrouble(tag)) return { code: "unknown", message, runtimeCode: "store_unavailable" }
  return { code: "unknown", message, class: tag === "InvalidState" ? "session" : "unknown" }
}

export const readyLine = (options: ServeFaceOptions, head: number): ReadyLine => {
  const { budgets, eof, events, face, lastRun, pid, version } = options
  const { agent, model, resumed, scripted, session, warnings } = face
  return {
    protocol: serveVersion,
    type: "ready",
    pid,
    protocolVersion: serveVersion,
    capabilities: capabilitiesOf(events),
    server: { name: "tackroom", version },
    sessionId: session.sessionId,
    resumed,
    sessionCursor: head,
    ...(agent === undefined ? {} : { agent }),
    harness: harnessKeyOf(harnessOf(session)),
    ...(model === undefined ? {} : { model }),
    ...(scripted ? { scripted } : {}),
    project: session.workspace,
    limits: { lineBytes: serveLimits.lineBytes, depth: serveLimits.depth },
    budgets,
    eof,
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(lastRun === undefined ? {} : { lastRun })
  }
}

/** Serves until there is a reason to end; the result is the exit code. */
export const serveFace = (options: ServeFaceOptions): Effect.Effect<number, RuntimeError, Scope.Scope> =>
  Effect.gen(function* () {
    const { budgets, events, face, input, out } = options
    const { runs } = face.host
    const { sessionId } = face.session
    const used = new Set<string>()
    const broken = Deferred.makeUnsafe<Broken>()
    let active: LiveRun | undefined
    let following: Fiber.Fiber<unknown> | undefined
    let baseline: Baseline = new Map()
    let seen = yield* runs.head(sessionId)

    const view = (): ServeView => ({
      activeRunId: active?.runId ?? null,
      isOver: active !== undefined && !runs.isWorking(sessionId),
      isCancelling: active?.isCancelling ?? false,
      wasUsed: (runId) => used.has(runId),
      openAsk: active?.openAsk?.requestId,
      missedAsk: active?.missedAsk
    })

    const error = (refusal: Refusal, opId: string | undefined): void => out.control(errorLine(refusal, opId))

    const linesOf = (op: Extract<ReadOp, { readonly op: "submit" }>, duplicate: boolean): RunLines =>
      new RunLines({
        face: "serve",
        runId: op.runId,
        opId: op.opId,
        events,
        warnings: [
          ...face.warnings,
          ...op.ignored.map((name) => `${name} of a submit is ignored: no op sets a budget`)
        ],
        model: face.model,
        sessionId: undefined,
        duplicate
      })

    const submit = Effect.fnUntraced(function* (op: Extract<ReadOp, { readonly op: "submit" }>) {
      const refusal = checkSubmit(op, view())
      if (refusal !== undefined) return error(refusal, op.opId)
      const submissionId = op.submissionId ?? `msg_${randomUUID()}`
      const started = yield* Effect.result(runs.start({ sessionId, submissionId, text: op.prompt }))
      if (Result.isFailure(started)) {
        const refused = refusalOfStart(started.failure, submissionId)
        if (refused !== undefined) return error(refused, op.opId)
        used.add(op.runId)
        const fault = startFault(started.failure)
        const lone = linesOf(op, false).lines([{ type: "result", end: neverStarted(fault) }])
        for (const line of lone) out.run(line)
        return
      }
      used.add(op.runId)
      const { cursors, duplicate, turn } = started.success
      const after = cursors[sessionId] ?? 0
      const projection = new Projection({
        turnId: turn.turnId,
        answerTimeout: budgets.answerTimeout ?? undefined,
        reportsRounds: face.capabilities.rounds,
        baseline
      })
      const background = duplicate ? [] : yield* readBackground(runs, sessionId, seen, after)
      const run = new LiveRun({
        runId: op.runId,
        lines: linesOf(op, duplicate),
        projection,
        out,
        background,
        onResult: () => {
          active = undefined
          baseline = projection.spending.baseline
        }
      })
      active = run
      following = yield* Effect.forkScoped(
        Effect.map(followRun({ runs, sessionId, after, projection, take: (items) => run.take(items) }), (end) => {
          if (!duplicate) seen = Math.max(seen, projection.end?.cursor ?? seen)
          if (end !== "committed") Deferred.doneUnsafe(broken, Exit.succeed(end))
        })
      )
    })

    const startCancel = (run: LiveRun, cause: CancelCause, opId: string | undefined) =>
      run.cancel(cause, opId)
        ? Effect.asVoid(
            Effect.forkScoped(
              runs
                .cancel({ sessionId })
                .pipe(Effect.catch((failure) => Effect.logWarning("a cancel could not be asked for", failure._tag)))
            )
          )
        : Effect.void

    const answer = Effect.fnUntraced(function* (op: Extract<ReadOp, { readonly op: "answer" }>) {
      const refusal = checkAnswer(op, view())
      const run = active
      const ask = run?.openAsk
      if (refusal !== undefined || run === undefined || ask === undefined) {
        return error(refusal ?? refuse("no_pending_ask", {}), op.opId)
      }
      const read = readValues(ask, op.answers)
      if (Result.isFailure(read)) return error(read.failure, op.opId)
      run.answered(ask.requestId, op.opId)
      const settled = yield* Effect.result(
        runs.settle({ sessionId, interactionId: ask.requestId, resolution: read.success }, { by: authors.driver })
      )
      if (Result.isSuccess(settled) && !settled.success.alreadyResolved) return
      // Somebody else was first, or the ask ended by itself.
      run.unanswered(ask.requestId)
      if (Result.isFailure(settled)) yield* Effect.logInfo("an answer came too late", tagged(settled.failure))
      error(refuse("no_pending_ask", {}), op.opId)
    })

    /** Handles one op to its reply; answers how the face is to end, if so. */
    const handleOp = (op: ReadOp): Effect.Effect<Ending | undefined, RuntimeError, Scope.Scope> => {
      const opId = op.opId === undefined ? {} : { opId: op.opId }
      switch (op.op) {
        case "submit":
          return Effect.as(submit(op), undefined)
        case "answer":
          return Effect.as(answer(op), undefined)
        case "cancel": {
          const refusal = checkCancel(op, view())
          if (refusal !== undefined || active === undefined) {
            error(refusal ?? refuse("unknown_run", { runId: op.runId, activeRunId: null }), op.opId)
            return Effect.succeed(undefined)
          }
          return Effect.as(startCancel(active, "cancel", op.opId), undefined)
        }
        case "hello":
          if (op.refusal !== undefined) error(op.refusal, op.opId)
          else {
            out.control({
              protocol: serveVersion,
              type: "hello",
              protocolVersion: serveVersion,
              capabilities: capabilitiesOf(events),
              pid: options.pid,
              ...opId
            })
          }
          return Effect.succeed(undefined)
        case "ping":
          out.control({ protocol: serveVersion, type: "pong", ...opId })
          return Effect.succeed(undefined)
        case "shutdown":
          return Effect.succeed({ cause: "shutdown", ...opId })
      }
    }

    const handle = (line: ReadLine): Effect.Effect<Ending | undefined, RuntimeError, Scope.Scope> =>
      Effect.suspend(() => {
        if (line._tag === "Refused") {
          error(line.refusal, undefined)
          return Effect.succeed(undefined)
        }
        const op = readOp(line.fields)
        if (Result.isSuccess(op)) return handleOp(op.success)
        error(op.failure.refusal, op.failure.opId)
        return Effect.succeed(undefined)
      })

    const opLines = makeOpLines()
    const ops = Effect.gen(function* () {
      while (true) {
        const chunk = yield* nextChunk(input)
        for (const line of chunk === undefined ? opLines.end() : opLines.push(chunk)) {
          yield* out.ready
          const ending = yield* Effect.uninterruptible(handle(line))
          if (ending !== undefined) return ending
        }
        if (chunk === undefined) return { cause: "eof" } as const
      }
    })

    // ------------------------------------------------------------ the end

    const whenOver = Effect.suspend(() =>
      following === undefined ? Effect.void : Effect.asVoid(Fiber.await(following))
    )

    /** Settles whatever is asked from now on, and what is open, until the turn is over. */
    const settleAlone = Effect.gen(function* () {
      options.unattended()
      while (runs.isWorking(sessionId)) {
        const version = runs.moved.version(sessionId)
        for (const interaction of yield* runs.pending(sessionId)) {
          const resolution = noDriver(interaction)
          yield* Effect.ignore(
            runs.settle(
              { sessionId, interactionId: interaction.id, resolution },
              { by: authors.nobody, origin: "system" }
            )
          )
        }
        if (!runs.isWorking(sessionId)) return
        yield* runs.moved.since(sessionId, version)
      }
    })

    const cancelled = (cause: CancelCause, opId: string | undefined) =>
      Effect.suspend(() =>
        active === undefined
          ? Effect.void
          : Effect.andThen(startCancel(active, cause, opId), Effect.timeoutOption(whenOver, drainPatience))
      )

    /** The run goes on to its result, unless a signal comes (SRV-222, SRV-228). */
    const finished = Effect.raceFirst(
      Effect.andThen(settleAlone, Effect.timeoutOption(whenOver, drainPatience)),
      Effect.andThen(options.signalled, cancelled("signal", undefined))
    )

    out.control(readyLine(options, seen))
    const ending: Ending = yield* Effect.raceAllFirst<Effect.Effect<Ending, RuntimeError, Scope.Scope>>([
      ops,
      Effect.as(options.gone, { cause: "gone" } as const),
      Effect.as(options.signalled, { cause: "signal" } as const),
      Effect.as(Deferred.await(broken), { cause: "broken" } as const)
    ])
    if (ending.cause !== "broken" && active !== undefined) {
      const finishes = options.eof === "finish" && (ending.cause === "eof" || ending.cause === "gone")
      yield* finishes ? finished : cancelled(ending.cause, "opId" in ending ? ending.opId : undefined)
    }
    yield* Effect.timeoutOption(out.flushed, drainPatience)
    return Deferred.isDoneUnsafe(broken) ? exitCodes.ended : exitCodes.completed
  })
