/**
 * The run protocol on a pipe: reads frames, lets requests take effect as `RequestLanes` says, writes the answers. Owns the
 * connection's own facts (initialized or not, draining or not) and the fibers of its requests; no state of sessions or runs.
 *
 * Hot path: one turn of the event loop takes a chunk, every request in it whose effect is synchronous is answered in
 * place, and all answers leave in one write. A fiber exists for a request only while its effect runs.
 *
 * It ends when stdin ended, stdout broke or `stop` was called, and every request read was answered or its time was over
 * (RUN-524, RUN-526). It sets no exit code, ends no child and handles no signal: `Shutdown` and the program do.
 */
import type { Readable } from "node:stream"
import {
  AlreadyInitialized,
  Busy,
  classifyFrame,
  type FrameParams,
  InternalFailure,
  isRunError,
  LimitExceeded,
  limits,
  NotInitialized,
  type RunError,
  ShuttingDown,
  writeError,
  writeNotification,
  writeResult
} from "@tackroom/protocol/run"
import type { RequestId } from "@tackroom/protocol/text"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Cause, Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import type { MutableCounters } from "./Counters.ts"
import { makeFrameReader, type Received } from "./FrameReader.ts"
import { makeFrameWriter } from "./FrameWriter.ts"
import type { Call, Prepare, Prepared, TakeNotification, Wait } from "./Prepared.ts"
import { type Action, type Entry, laneLimits, RequestLanes, type Written } from "./RequestLanes.ts"
import { outline, type StderrLog } from "./StderrLog.ts"

/** Why a face ended. */
export type EndReason = "eof" | "output_closed" | "stopped"

export interface StdioFaceOptions {
  readonly input: Readable
  readonly output: ProtocolOutput
  readonly prepare: Prepare
  readonly takeNotification: TakeNotification
  readonly counters: MutableCounters
  readonly log: StderrLog
  /** Names an internal failure in its answer and in the log. */
  readonly makeRef: () => string
  /** Called when the answer to initialize was handed to the writer (RUN-124). */
  readonly onInitialized?: () => void
  /** Called once, when no new work is taken any more; `host/info` says `draining` from then on. */
  readonly onDraining?: () => void
  /** How long requests that were read may take after the end (RUN-524); then they are interrupted. Default 2,000. */
  readonly drainMs?: number
}

export interface StdioFace {
  /** Sends a notification, between answers. */
  readonly notify: (method: string, params: unknown) => void
  /** Takes no more frames and ends when what was read is answered. Idempotent. */
  readonly stop: () => void
  /** Completes when everything was answered and written, or could not be. */
  readonly ended: Effect.Effect<EndReason>
  readonly isDraining: () => boolean
}

interface Request {
  readonly id: RequestId
  readonly method: string
  readonly prepared: Prepared
  timer: NodeJS.Timeout | undefined
  watch: Fiber.Fiber<unknown, unknown> | undefined
}

/** What a client is told to wait when too much is pending. */
const busyRetryMs = 100
/** After the interruption: how long answers may take to come, and then to be read. */
const lastAnswersMs = 500

export const makeStdioFace = (options: StdioFaceOptions): Effect.Effect<StdioFace, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.contextWith((context) => Effect.sync(() => open(options, Effect.runForkWith(context)))),
    (face) => Effect.sync(face.close)
  )

type RunFork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

const open = (options: StdioFaceOptions, runFork: RunFork): StdioFace & { readonly close: () => void } => {
  const { input, output, prepare, takeNotification, counters, log } = options
  const lanes = new RequestLanes<Request>()
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Waits with a timer or a watch. */
  const parked = new Set<Request>()
  const ended = Deferred.makeUnsafe<EndReason>()
  let initialized = false
  let announced = false
  let draining = false
  let finishing = false
  let reason: EndReason = "stopped"
  let pumping = false
  let deadline: NodeJS.Timeout | undefined
  let giveUp = (): void => undefined

  const writer = makeFrameWriter({
    output,
    lowBytes: laneLimits.outputResumeBytes,
    onPending: (bytes) => {
      lanes.output(bytes)
      pump()
    }
  })

  const internal = (method: string, detail: ReadonlyArray<string>): RunError => {
    const ref = options.makeRef()
    log.log("Error", "a request failed inside the host", { ref, method, detail })
    return new InternalFailure({ ref })
  }

  const written = (frame: string): Written => ({ frame, bytes: Buffer.byteLength(frame) })
  const writtenError = (id: RequestId | null, error: RunError): Written => written(writeError(id, error))

  /** The answer to a request, never larger than a frame may be (RUN-016). */
  const writtenResult = (request: Request, prepared: Call | Wait, result: unknown): Written => {
    let answer: Written
    try {
      // `encode` belongs to the handler that made the result.
      answer = written(writeResult(request.id, prepared.encode(result as never)))
    } catch (defect) {
      return writtenError(request.id, internal(request.method, outline(Cause.die(defect))))
    }
    if (answer.bytes <= limits.frameBytes) return answer
    // Whoever only read can ask for less; whoever changed something must not be told that nothing was changed (RUN-062).
    return writtenError(
      request.id,
      prepared._tag === "Call" && prepared.mutating
        ? internal(request.method, [`the result has ${answer.bytes} bytes`])
        : new LimitExceeded({ limit: "frame_bytes", max: limits.frameBytes, observed: answer.bytes })
    )
  }

  const errorOf = (method: string, cause: Cause.Cause<RunError>): RunError => {
    for (const each of cause.reasons) {
      if (each._tag === "Fail" && isRunError(each.error)) return each.error
    }
    if (Cause.hasInterruptsOnly(cause) && draining) return new ShuttingDown({})
    return internal(method, outline(cause))
  }

  /** Runs an effect; one that needs no waiting is done when this returns. */
  const run = <A>(effect: Effect.Effect<A, RunError>, done: (exit: Exit.Exit<A, RunError>) => void): void => {
    if (Exit.isExit(effect)) return done(effect as Exit.Exit<A, RunError>)
    const fiber = runFork(effect)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return done(exit)
    running.add(fiber)
    fiber.addObserver((exit) => {
      running.delete(fiber)
      done(exit)
      pump()
    })
  }

  const startCall = (entry: Entry<Request>, request: Request, call: Call): void =>
    run(call.effect, (exit) => {
      const answer = Exit.isSuccess(exit)
        ? writtenResult(request, call, exit.value)
        : writtenError(request.id, errorOf(request.method, exit.cause))
      if (request.method === "initialize" && Exit.isSuccess(exit)) initialized = true
      lanes.finished(entry, answer)
    })

  const start = (entry: Entry<Request>): void => {
    const request = entry.data
    if (request === undefined) return
    const { prepared } = request
    const refuse = (error: RunError): void => lanes.finished(entry, writtenError(request.id, error))
    if (request.method === "initialize") {
      if (initialized) return refuse(new AlreadyInitialized({}))
    } else if (!initialized) return refuse(new NotInitialized({}))
    if (prepared._tag === "Impossible") return refuse(prepared.error)
    if (prepared._tag === "Wait") return
    if (draining && prepared.startsWork) return refuse(new ShuttingDown({}))
    startCall(entry, request, prepared)
  }

  const check = (entry: Entry<Request>): void => {
    const request = entry.data
    if (request === undefined || request.prepared._tag !== "Wait") return
    const wait = request.prepared
    if (!initialized) return lanes.checked(entry, true, () => writtenError(request.id, new NotInitialized({})))
    run(wait.handler.current, (exit) =>
      Exit.isSuccess(exit)
        ? lanes.checked(entry, exit.value.ready, () => writtenResult(request, wait, exit.value.result))
        : lanes.checked(entry, true, () => writtenError(request.id, errorOf(request.method, exit.cause)))
    )
  }

  const watch = (entry: Entry<Request>): void => {
    const request = entry.data
    if (request === undefined || request.prepared._tag !== "Wait") return
    const fiber = runFork(request.prepared.handler.changed)
    request.watch = fiber
    const changed = (): void => {
      request.watch = undefined
      lanes.changed(entry)
      pump()
    }
    // Not at once: the change is told inside the commit that others wait for too, and a change that is always there already
    // must not keep the event loop.
    fiber.addObserver((exit) => (Exit.isSuccess(exit) ? void setImmediate(changed) : undefined))
  }

  const release = (request: Request): void => {
    parked.delete(request)
    clearTimeout(request.timer)
    request.watch?.interruptUnsafe()
    request.watch = undefined
  }

  const perform = (action: Action<Request>): void => {
    switch (action._tag) {
      case "PauseReading":
        log.log("Debug", "reading paused", { unanswered: lanes.unanswered, unsent: writer.pending() })
        return void input.pause()
      case "ResumeReading":
        log.log("Debug", "reading resumed")
        if (!draining) input.resume()
        return
      case "Answer":
        writer.send(action.frame)
        if (action.entry.barrier && initialized && !announced) {
          announced = true
          options.onInitialized?.()
        }
        return
      case "Start":
        return start(action.entry)
      case "Check":
        return check(action.entry)
      case "Watch":
        return watch(action.entry)
      case "Timer": {
        const { entry } = action
        if (entry.data === undefined) return
        parked.add(entry.data)
        entry.data.timer = setTimeout(() => {
          lanes.elapsed(entry)
          pump()
        }, entry.waitMs)
        return
      }
      case "Release":
        if (action.entry.data !== undefined) release(action.entry.data)
    }
  }

  /** Performs actions until none is left; what they cause at once is done in the same loop, not deeper in the stack. */
  const pump = (): void => {
    if (pumping) return
    pumping = true
    for (let actions = lanes.take(); actions.length > 0; actions = lanes.take()) {
      for (const action of actions) perform(action)
    }
    pumping = false
    if (draining && lanes.idle) finish()
  }

  /** A handler that throws before there is an effect is a bug, and costs one answer, not the connection. */
  const guarded = (method: string, make: () => Prepared): Prepared => {
    try {
      return make()
    } catch (defect) {
      return { _tag: "Impossible", error: internal(method, outline(Cause.die(defect))) }
    }
  }

  const request = (id: RequestId, method: string, params: FrameParams, bytes: number) => {
    if (lanes.isFull(bytes)) {
      counters.busyAnswers += 1
      return lanes.arriveAnswered(writtenError(id, new Busy({ retryAfterMs: busyRetryMs })))
    }
    const prepared = guarded(method, () => prepare(method, params))
    const data: Request = { id, method, prepared, timer: undefined, watch: undefined }
    lanes.arrive({
      kind: prepared._tag === "Call" ? prepared.kind : prepared._tag === "Wait" ? "wait" : "ordinary",
      lane: prepared._tag === "Call" ? prepared.lane : null,
      mutating: prepared._tag === "Call" && prepared.mutating,
      barrier: method === "initialize",
      bytes,
      waitMs: prepared._tag === "Wait" ? prepared.waitMs : 0,
      data
    })
  }

  const notification = (method: string, params: FrameParams): void => {
    switch (initialized ? takeNotification(method, params) : "ignored") {
      case "taken":
        return
      case "refused":
        counters.applicationRefused += 1
        return
      case "dropped":
        counters.progressDropped += 1
        return
      case "ignored":
        counters.notificationsIgnored += 1
    }
  }

  const receive = (received: Received): void => {
    counters.framesIn += 1
    if (received._tag === "Refused") {
      counters.framesRefused += 1
      lanes.arriveAnswered(writtenError(received.id, received.error))
    } else {
      const frame = classifyFrame(received.value)
      switch (frame._tag) {
        case "Request":
          request(frame.id, frame.method, frame.params, received.bytes)
          break
        case "Notification":
          notification(frame.method, frame.params)
          break
        case "Response":
        case "ErrorResponse":
          counters.responsesIgnored += 1
          break
        case "Invalid":
          // A notification is never answered, not even a bad one (RUN-011).
          if (frame.error.kind === "invalid_params" && frame.id === null) {
            counters.notificationsIgnored += 1
            break
          }
          counters.framesRefused += 1
          lanes.arriveAnswered(writtenError(frame.id, frame.error))
      }
    }
    pump()
  }

  const reader = makeFrameReader(receive)

  const onData = (chunk: Uint8Array): void => {
    reader.push(chunk)
    // Everything that this chunk could do at once is answered: hand it over without waiting for the turn to end.
    writer.flush()
  }
  const onEnd = (): void => {
    if (draining) return
    reader.end()
    stop("eof")
  }

  /** Everything is answered, or its time is over: what is written may still be read until the last deadline. */
  const finish = (): void => {
    if (finishing) return
    finishing = true
    writer.flush()
    const last = runFork(Effect.ignore(output.below(0)))
    giveUp = () => last.interruptUnsafe()
    last.addObserver(() => {
      clearTimeout(deadline)
      Deferred.doneUnsafe(ended, Exit.succeed(reason))
    })
  }

  const stop = (why: EndReason): void => {
    if (draining) return
    draining = true
    reason = why
    detach()
    log.log("Info", "draining", { why })
    options.onDraining?.()
    deadline = setTimeout(() => {
      for (const fiber of running) fiber.interruptUnsafe()
      deadline = setTimeout(() => {
        finish()
        deadline = setTimeout(() => giveUp(), lastAnswersMs)
      }, lastAnswersMs)
    }, options.drainMs ?? 2_000)
    lanes.stop()
    pump()
  }

  const detach = (): void => {
    input.off("data", onData)
    input.off("end", onEnd)
    input.off("close", onEnd)
    input.pause()
  }
  const onInputError = (): void => onEnd()

  const broken = runFork(output.closed)
  broken.addObserver((exit) => (Exit.isSuccess(exit) ? stop("output_closed") : undefined))
  input.on("data", onData)
  input.on("end", onEnd)
  input.on("close", onEnd)
  input.on("error", onInputError)

  return {
    notify: (method, params) => writer.send(writeNotification(method, params)),
    stop: () => stop("stopped"),
    ended: Deferred.await(ended),
    isDraining: () => draining,
    close: () => {
      clearTimeout(deadline)
      detach()
      broken.interruptUnsafe()
      for (const fiber of running) fiber.interruptUnsafe()
      for (const request of parked) release(request)
    }
  }
}
