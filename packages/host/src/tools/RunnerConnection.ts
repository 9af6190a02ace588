/**
 * One tool runner process and the calls at work in it, seen from the host.
 *
 * Owns: the start with its version check (RUN-092), reading and checking what the runner says (AGT-155), the process groups of
 * its commands, and the end of every call when the runner is lost. Does not own which runner a call goes to, nor what a call
 * means (`ToolRunner.ts`).
 *
 * Invariants: a call's `done` completes once; when the runner is lost, it completes after the groups of its commands are
 * gone, with `RunnerLost`. A runner that says what it must not say is ended like one that died.
 */
import { endGroup, type ProcessOwnerService } from "@tackroom/sdk/process"
import { type Cause, Data, Deferred, Effect, Exit, Queue, Schema, Scope, Stream } from "effect"
import { limits } from "./Limits.ts"
import { type FileDiff, type RunnerTool, ShellEnd, type ShellResult } from "./Results.ts"
import { lineSplitter, runnerProtocol } from "./RunnerFrames.ts"
import { FromRunner, type ToRunner } from "./RunnerMessages.ts"

/** The runner died, or was ended for what it said, while a call was at work: the call's outcome is unknown. */
export class RunnerLost extends Data.TaggedError("RunnerLost")<{ readonly message: string }> {}

/** The runner could not be started, or is not of the host's version. */
export class RunnerNotStarted extends Data.TaggedError("RunnerNotStarted")<{ readonly message: string }> {}

export interface RunnerSpec {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** What the runner must report. */
  readonly version: string
  /** Variables that no child gets, whatever the lists say (RUN-085). */
  readonly withheld: ReadonlyArray<string>
}

export interface ToolDelta {
  readonly stream: "stdout" | "stderr"
  readonly text: string
}

/** How the runner ended a call. */
export type CallEnd =
  | { readonly type: "result"; readonly output: unknown; readonly diff?: FileDiff }
  | {
      readonly type: "failed"
      readonly code: "failed" | "timeout" | "cancelled"
      readonly message: string
      readonly output?: unknown
    }
  | { readonly type: "not_run"; readonly code: "denied" | "failed"; readonly message: string }

export interface Call {
  readonly id: number
  readonly tool: RunnerTool
  /** Completes when the runner checked the call and waits for `go`; a refusal completes `done`. */
  readonly ready: Deferred.Deferred<void>
  readonly done: Deferred.Deferred<CallEnd, RunnerLost>
  readonly output: { readonly stdout: Array<string>; readonly stderr: Array<string> }
  readonly units: { stdout: number; stderr: number }
  readonly deltas: Queue.Queue<ToolDelta, Cause.Done> | undefined
  streamed: number
}

export interface Connection {
  readonly send: (message: ToRunner) => Effect.Effect<void>
  readonly calls: Map<number, Call>
  /** Ends the runner; calls at work end with `RunnerLost`. */
  readonly lose: (message: string) => Effect.Effect<void>
  readonly isLost: () => boolean
}

/** As much of a call's output is handed on while it runs; the journal keeps no more of it as deltas. */
const streamedBytes = 64 * 1024
const startMillis = 20_000

const decodeMessage = Schema.decodeUnknownExit(Schema.fromJsonString(FromRunner))
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const decodeLine = (line: Uint8Array): FromRunner | undefined => {
  let text: string
  try {
    text = utf8.decode(line)
  } catch {
    return undefined
  }
  const decoded = decodeMessage(text)
  return Exit.isSuccess(decoded) ? decoded.value : undefined
}

/** Starts a runner and waits for its greeting. The runner lives until `scope` closes or it is lost. */
export const connect = Effect.fnUntraced(function* (owner: ProcessOwnerService, spec: RunnerSpec, scope: Scope.Scope) {
  const child = yield* owner
    .spawn({
      role: "tool",
      command: spec.command,
      args: spec.args,
      cwd: "/",
      env: { list: "tool", never: spec.withheld }
    })
    .pipe(
      Scope.provide(scope),
      Effect.mapError(
        (cause) => new RunnerNotStarted({ message: `the tool runner cannot be started: ${cause.message}` })
      )
    )
  const calls = new Map<number, Call>()
  const groups = new Set<number>()
  const hello = Deferred.makeUnsafe<string, RunnerNotStarted>()
  const gone = Deferred.makeUnsafe<void>()
  let lost = false

  const send = (message: ToRunner): Effect.Effect<void> =>
    // A runner that no longer reads is about to be lost; its calls end there.
    child.stdin.write(`${JSON.stringify(message)}\n`).pipe(Effect.catchTag("StdinClosed", () => Effect.void))

  const finish = (call: Call, end: Exit.Exit<CallEnd, RunnerLost>): void => {
    calls.delete(call.id)
    if (call.deltas !== undefined) Queue.endUnsafe(call.deltas)
    Deferred.doneUnsafe(call.done, end)
  }

  const lose = (message: string): Effect.Effect<void> =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (lost) return Deferred.await(gone)
        lost = true
        Deferred.doneUnsafe(hello, Exit.fail(new RunnerNotStarted({ message })))
        return Effect.gen(function* () {
          yield* child.terminate
          yield* Effect.forEach(
            [...groups],
            (group) => Effect.andThen(endGroup(group, limits.killMillis), owner.groups.remove(group)),
            { concurrency: "unbounded", discard: true }
          )
          for (const call of calls.values()) finish(call, Exit.fail(new RunnerLost({ message })))
          Deferred.doneUnsafe(gone, Exit.void)
        })
      })
    )

  /** Takes one message; returns what was wrong with it. */
  const receive = Effect.fnUntraced(function* (message: FromRunner) {
    if (message.type === "hello") {
      const greeting = message.protocol === runnerProtocol ? message.version : `protocol ${message.protocol}`
      Deferred.doneUnsafe(hello, Exit.succeed(greeting))
      return undefined
    }
    if (message.type === "spawned") {
      // What is told here is ended with the runner; it must not be the host or the runner itself.
      if (message.group === process.pid || message.group === child.pgid) return "a group that is no command's"
      groups.add(message.group)
      yield* owner.groups.add(message.group)
      yield* send({ type: "owned", group: message.group })
      return undefined
    }
    if (message.type === "ended") {
      if (groups.delete(message.group)) yield* owner.groups.remove(message.group)
      return undefined
    }
    const call = calls.get(message.id)
    if (call === undefined) return "an unknown call"
    switch (message.type) {
      case "ready":
        Deferred.doneUnsafe(call.ready, Exit.void)
        return undefined
      case "delta":
        return takeDelta(call, message)
      case "result":
      case "failed":
      case "not_run":
        finish(call, Exit.succeed(message))
        return undefined
    }
  })

  const split = lineSplitter()
  // Ends with the runner's output, so that what it said before it died still counts.
  const read = Stream.runForEach(child.stdout, (chunk) =>
    Effect.gen(function* () {
      const lines = split(chunk)
      if (lines === undefined) return yield* lose("the tool runner wrote a line that is too long")
      for (const line of lines) {
        if (lost) return
        const message = decodeLine(line)
        const wrong = message === undefined ? "no message" : yield* receive(message)
        if (wrong !== undefined) return yield* lose(`the tool runner broke its protocol (${wrong})`)
      }
    })
  ).pipe(
    Effect.andThen(child.exit),
    Effect.flatMap((exit) => lose(`the tool runner ended (${exit.signal ?? `exit code ${exit.code}`})`))
  )
  yield* Scope.addFinalizer(scope, lose("the host is closing"))
  yield* Effect.forkIn(read, scope)

  const version = yield* Deferred.await(hello).pipe(
    Effect.timeoutOrElse({
      duration: startMillis,
      orElse: () => Effect.fail(new RunnerNotStarted({ message: "the tool runner did not answer" }))
    })
  )
  if (version !== spec.version) {
    return yield* new RunnerNotStarted({ message: `the tool runner is version ${version}, the host ${spec.version}` })
  }
  const connection: Connection = { send, calls, lose, isLost: () => lost }
  return connection
})

const takeDelta = (call: Call, delta: ToolDelta): string | undefined => {
  if (call.tool !== "shell.run") return "output of a tool that has none"
  call.units[delta.stream] += delta.text.length
  if (call.units[delta.stream] > limits.captureBytes) return "more output than allowed"
  call.output[delta.stream].push(delta.text)
  if (call.deltas !== undefined && call.streamed <= streamedBytes) {
    call.streamed += Buffer.byteLength(delta.text)
    Queue.offerUnsafe(call.deltas, { stream: delta.stream, text: delta.text })
  }
  return undefined
}

const decodeShellEnd = Schema.decodeUnknownExit(ShellEnd)

/** shell.run's result with the output that went ahead of it; undefined when the runner's part has not the right form. */
export const shellResult = (call: Call, end: unknown): ShellResult | undefined => {
  const decoded = decodeShellEnd(end)
  if (!Exit.isSuccess(decoded)) return undefined
  return { ...decoded.value, stdout: call.output.stdout.join(""), stderr: call.output.stderr.join("") }
}
