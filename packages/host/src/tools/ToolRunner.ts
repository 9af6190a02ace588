/**
 * Calling files.* and shell.run, which work in the tool runner's process (AGT-065).
 *
 * Owns: one runner per wall, started by the first call that needs it and again after a loss; the two phases of a call; its cancel;
 * the form of results. Does not own approval, argument schemas (`Tools.ts`), or the journal: `beforeDispatch` is where the
 * caller makes its dispatch record durable.
 *
 * Ends: a result; `ToolNotRun` (never after `beforeDispatch` completed); `ToolFailed`; `RunnerLost` (outcome unknown, never run
 * again by us). Interrupting a call cancels it and waits until the command's process group is gone.
 */
import { ProcessOwner } from "@tackroom/sdk/process"
import {
  type Cause,
  Context,
  Data,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Queue,
  Scope,
  Semaphore,
  Stream
} from "effect"
import type { ClientPart } from "./FileChange.ts"
import { limits } from "./Limits.ts"
import { maxLineBytes } from "./RunnerFrames.ts"
import { decodeResult, isRunnerTool, type RunnerTool, type ShellResult, type ToolResult } from "./Results.ts"
import {
  type Call,
  type CallEnd,
  connect,
  type Connection,
  RunnerLost,
  type RunnerNotStarted,
  type RunnerSpec,
  shellResult,
  type ToolDelta
} from "./RunnerConnection.ts"

/** The tool was at work and did not reach its end. `output` is what it had, where there is some. */
export class ToolFailed extends Data.TaggedError("ToolFailed")<{
  readonly code: "failed" | "timeout" | "cancelled"
  readonly message: string
  readonly output?: ShellResult
}> {}

/** Nothing was done. `unsupported`: this host has no such tool at work. */
export class ToolNotRun extends Data.TaggedError("ToolNotRun")<{
  readonly code: "denied" | "failed"
  readonly reason: "refused" | "unsupported" | "runner"
  readonly message: string
}> {}

export interface ToolCall<E = never, R = never> {
  /** Qualified name. */
  readonly tool: string
  /** Valid by the tool's schema. */
  readonly arguments: unknown
  readonly workspace: string
  /** Of a change of a file: what is not done on the disk. */
  readonly client?: ClientPart
  /** Called with output while the command runs, in order, for about the first 64 KiB. */
  readonly onDelta?: (delta: ToolDelta) => Effect.Effect<void>
  /** Run when the call is checked and nothing is done yet. Its failure cancels the call. */
  readonly beforeDispatch?: Effect.Effect<void, E, R>
  /** When this completes, the call is cancelled and ends with `ToolFailed` `cancelled`, its output so far with it. */
  readonly cancel?: Effect.Effect<unknown>
}

export interface ToolRunnerOptions {
  /** The program and its arguments, `tool-runner` included. */
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The host's own version. */
  readonly version: string
  /** Never open to a tool (AGT-061). */
  readonly stateDir?: string
  /** Names of variables that hold secrets of the config (RUN-085). */
  readonly withheld?: ReadonlyArray<string>
  /** `shell_timeout_s_max`, when the host's configuration lowers it. */
  readonly shellSecondsMax?: number
}

export interface ToolRunnerService {
  readonly call: <E = never, R = never>(
    request: ToolCall<E, R>
  ) => Effect.Effect<ToolResult, ToolFailed | ToolNotRun | RunnerLost | E, R>
  /** Starts the runner when none runs, to learn early whether it can and is of the right version (RUN-092). */
  readonly start: Effect.Effect<void, RunnerNotStarted>
}

/** The rest of a line is the call around the arguments. */
const maxArgumentBytes = maxLineBytes - 64 * 1024
const checkMillis = 30_000
const cancelMillis = 10_000
/** Beyond its own limit, a runner that does not answer is ended. */
const overdueMillis = 15_000

/** AGT-155: the result in the form of its schema, or undefined. */
const toResult = (call: Call, end: Extract<CallEnd, { readonly type: "result" }>): ToolResult | undefined => {
  const changes = call.tool === "files.write" || call.tool === "files.edit"
  if (changes !== (end.diff !== undefined)) return undefined
  return decodeResult(call.tool, call.tool === "shell.run" ? shellResult(call, end.output) : end.output, end.diff)
}

const limitMillis = (tool: RunnerTool, args: unknown): number => {
  if (tool !== "shell.run") return limits.walkMillis + overdueMillis
  const given =
    typeof args === "object" && args !== null && "timeout_seconds" in args ? args.timeout_seconds : undefined
  const seconds = typeof given === "number" ? given : limits.shellSecondsDefault
  return seconds * 1000 + overdueMillis
}

export class ToolRunner extends Context.Service<ToolRunner, ToolRunnerService>()("@tackroom/host/tools/ToolRunner") {
  static readonly make = Effect.fnUntraced(function* (options: ToolRunnerOptions) {
    const owner = yield* ProcessOwner
    const scope = yield* Effect.scope
    const one = yield* Semaphore.make(1)
    const spec: RunnerSpec = {
      command: options.command,
      args: options.args,
      version: options.version,
      withheld: options.withheld ?? []
    }
    let current: Connection | undefined
    let lastId = 0

    const connection = one.withPermit(
      Effect.suspend(() => {
        if (current !== undefined && !current.isLost()) return Effect.succeed(current)
        return Effect.gen(function* () {
          const life = yield* Scope.fork(scope)
          const opened = yield* connect(owner, spec, life).pipe(
            Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(life, exit) : Effect.void))
          )
          current = opened
          return opened
        })
      })
    )

    const enter = (tool: RunnerTool, request: ToolCall<unknown, unknown>): Effect.Effect<Call> =>
      Effect.gen(function* () {
        lastId += 1
        return {
          id: lastId,
          tool,
          ready: yield* Deferred.make<void>(),
          done: yield* Deferred.make<CallEnd, RunnerLost>(),
          output: { stdout: [], stderr: [] },
          units: { stdout: 0, stderr: 0 },
          deltas: request.onDelta === undefined ? undefined : yield* Queue.unbounded<ToolDelta, Cause.Done>(),
          streamed: 0
        }
      })

    /** Asks for a cancel and waits until the runner has ended the call; one that does not is ended itself. */
    const cancelAndWait = (at: Connection, call: Call): Effect.Effect<void> =>
      at.send({ type: "cancel", id: call.id }).pipe(
        Effect.andThen(Effect.exit(Deferred.await(call.done))),
        Effect.timeoutOrElse({
          duration: cancelMillis,
          orElse: () => at.lose("the tool runner did not end a cancelled call")
        }),
        Effect.asVoid
      )

    /** First phase: the runner has checked the call, or ended it. */
    const checked = Effect.fnUntraced(function* (tool: RunnerTool, request: ToolCall<unknown, unknown>) {
      const at = yield* connection.pipe(
        Effect.mapError((cause) => new ToolNotRun({ code: "failed", reason: "runner", message: cause.message }))
      )
      const { client } = request
      if (Buffer.byteLength(JSON.stringify([request.arguments, client ?? {}])) > maxArgumentBytes) {
        return yield* new ToolNotRun({ code: "failed", reason: "refused", message: "the arguments are too large" })
      }
      const call = yield* enter(tool, request)
      at.calls.set(call.id, call)
      yield* at
        .send({
          type: "call",
          id: call.id,
          tool,
          arguments: request.arguments,
          workspace: request.workspace,
          shellSecondsMax: options.shellSecondsMax ?? limits.shellSecondsMax,
          ...(options.stateDir !== undefined && { stateDir: options.stateDir }),
          ...(client !== undefined && { client })
        })
        .pipe(
          Effect.andThen(Effect.raceFirst(Deferred.await(call.ready), Effect.asVoid(Deferred.await(call.done)))),
          Effect.timeoutOrElse({
            duration: checkMillis,
            orElse: () => Effect.andThen(at.lose("the tool runner did not answer"), Deferred.await(call.done))
          }),
          Effect.onInterrupt(() => cancelAndWait(at, call))
        )
      return { at, call }
    })

    /** The end of a call that ended at its check. */
    const refusal = (call: Call): Effect.Effect<never, ToolNotRun> =>
      Effect.matchEffect(Deferred.await(call.done), {
        onFailure: (lost) => Effect.fail(new ToolNotRun({ code: "failed", reason: "runner", message: lost.message })),
        onSuccess: (end) =>
          Effect.fail(
            end.type === "not_run"
              ? new ToolNotRun({ code: end.code, reason: "refused", message: end.message })
              : new ToolNotRun({
                  code: "failed",
                  reason: "runner",
                  message: "the tool runner ended a call it was not told to run"
                })
          )
      })

    const finish = (call: Call, at: Connection): Effect.Effect<ToolResult, ToolFailed | RunnerLost> =>
      Effect.flatMap(Deferred.await(call.done), (end): Effect.Effect<ToolResult, ToolFailed | RunnerLost> => {
        switch (end.type) {
          case "not_run":
            // Too late for that: the dispatch record is written.
            return Effect.fail(new ToolFailed({ code: "failed", message: end.message }))
          case "failed": {
            const output = call.tool === "shell.run" ? shellResult(call, end.output) : undefined
            return Effect.fail(
              new ToolFailed({ code: end.code, message: end.message, ...(output !== undefined && { output }) })
            )
          }
          case "result": {
            const result = toResult(call, end)
            if (result !== undefined) return Effect.succeed(result)
            const message = "the tool runner returned a result of the wrong form"
            return Effect.andThen(at.lose(message), Effect.fail(new RunnerLost({ message })))
          }
        }
      })

    const feed = (call: Call, request: ToolCall<unknown, unknown>): Effect.Effect<void> => {
      const { deltas } = call
      const { onDelta } = request
      if (deltas === undefined || onDelta === undefined) return Effect.void
      return Stream.runForEach(Stream.fromQueue(deltas), onDelta)
    }

    const call = <E, R>(
      request: ToolCall<E, R>
    ): Effect.Effect<ToolResult, ToolFailed | ToolNotRun | RunnerLost | E, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const { tool } = request
          if (!isRunnerTool(tool)) {
            return yield* new ToolNotRun({
              code: "failed",
              reason: "unsupported",
              message: `unsupported: ${tool} is not available on this host`
            })
          }
          // Before the dispatch nothing was done: a runner lost here is replaced once.
          const { at, call: entry } = yield* restore(checked(tool, request)).pipe(
            Effect.catchTag("RunnerLost", () => restore(checked(tool, request))),
            Effect.catchTag("RunnerLost", (lost) =>
              Effect.fail(new ToolNotRun({ code: "failed", reason: "runner", message: lost.message }))
            )
          )
          if (yield* Deferred.isDone(entry.done)) return yield* refusal(entry)
          if (request.beforeDispatch !== undefined) {
            yield* restore(request.beforeDispatch).pipe(
              Effect.onExit((exit) => (Exit.isFailure(exit) ? cancelAndWait(at, entry) : Effect.void))
            )
          }
          yield* at.send({ type: "go", id: entry.id })
          const feeding = yield* Effect.forkChild(restore(feed(entry, request)))
          const cancelling =
            request.cancel === undefined
              ? undefined
              : yield* Effect.forkChild(
                  restore(Effect.andThen(request.cancel, at.send({ type: "cancel", id: entry.id })))
                )
          const ended = finish(entry, at).pipe(
            Effect.timeoutOrElse({
              duration: limitMillis(tool, request.arguments),
              orElse: () => Effect.andThen(at.lose("the tool runner did not answer in time"), finish(entry, at))
            }),
            Effect.exit,
            // The caller has all output before it has the end.
            Effect.tap(() => Fiber.join(feeding)),
            Effect.flatten
          )
          return yield* restore(ended).pipe(
            Effect.onInterrupt(() => cancelAndWait(at, entry)),
            Effect.ensuring(Fiber.interrupt(feeding)),
            Effect.ensuring(cancelling === undefined ? Effect.void : Fiber.interrupt(cancelling))
          )
        })
      )

    return ToolRunner.of({ call, start: Effect.asVoid(connection) })
  })

  /** Needs the host's `ProcessOwner`. Starts nothing before the first call. */
  static readonly layer = (options: ToolRunnerOptions): Layer.Layer<ToolRunner, never, ProcessOwner> =>
    Layer.effect(ToolRunner, ToolRunner.make(options))
}
