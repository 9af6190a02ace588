/**
 * One serve-mode program and its conversation: started, ready, and ended with its scope. It splits what the program says
 * into replies to ops, lines of the run that is on, and the rest; what the lines mean is not its business.
 *
 * Invariants: `open` returns a program that said `ready` in a version that is spoken, or nothing of it is left (HRN-038).
 * When the process is gone, all that waits for it is told how (HRN-035). Reading never waits for the run's reader longer
 * than its queue is full.
 */
import {
  type HarnessError,
  HarnessProcessExited,
  HarnessProgramMissing,
  HarnessProtocol,
  HarnessTimeout,
  HarnessUnavailable,
  HarnessVersionUnsupported
} from "@tackroom/protocol"
import {
  decodeLine,
  encodeOp,
  type ErrorLine,
  type HelloLine,
  type RunLine,
  type ServeOp
} from "@tackroom/protocol/serve"
import { Deferred, Effect, Exit, Fiber, Queue, Scope, Stream } from "effect"
import {
  type ChildExit,
  jsonLines,
  type ProcessOwnerService,
  type SpawnFailed,
  type StdinClosed
} from "../../process/index.ts"

/** How a program is started. */
export interface ServeCommand {
  readonly harness: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Names of variables that the program gets beside the short list (HRN-031). */
  readonly env: ReadonlyArray<string>
  readonly versions: ReadonlyArray<number>
  readonly initializeTimeoutMs: number
  readonly maxFrameBytes: number | undefined
}

/** What a run's reader gets: its lines, what was refused meanwhile, or the end of the process. */
export type RunItem =
  | { readonly _tag: "Line"; readonly line: RunLine }
  /** A line whose kind is not known, or that breaks its schema. */
  | { readonly _tag: "Foreign"; readonly kind: string; readonly broken: boolean }
  | { readonly _tag: "Refused"; readonly line: ErrorLine }
  | { readonly _tag: "Gone"; readonly error: HarnessError }

/** The lines of one run. */
export interface RunInbox {
  readonly take: Effect.Effect<RunItem>
  readonly close: Effect.Effect<void>
}

/** What a program says of itself: its version and what it can do. */
export interface Greeting {
  readonly protocolVersion: number
  readonly capabilities: ReadonlyArray<string>
  readonly sessionId?: string
  readonly warnings?: ReadonlyArray<string>
}

export interface ServeProcess {
  readonly greeting: Greeting
  readonly has: (capability: string) => boolean
  readonly send: (op: ServeOp) => Effect.Effect<void, HarnessError>
  /** Sends an op and waits for its refusal; `until` completes when there will be none. */
  readonly ask: (
    op: ServeOp & { readonly opId: string },
    until: Effect.Effect<unknown>
  ) => Effect.Effect<ErrorLine | undefined, HarnessError>
  /** From here on lines of this run come to the inbox. One at a time. */
  readonly listen: (runId: string) => Effect.Effect<RunInbox>
  /** How it ended, when it did. */
  readonly gone: () => HarnessError | undefined
  readonly exited: Effect.Effect<HarnessError>
}

/** Lines between the process and a run's reader. */
const inboxCapacity = 256
/** How long the end of its output waits for the end of the program. */
const exitWaitMs = 1_000
/** How long an exit waits for what the program said last; part of the 100 ms of HRN-035. */
const lastWordsMs = 50

const exitedWith = (harness: string, exit: ChildExit): HarnessError =>
  new HarnessProcessExited({
    harness,
    operation: "run",
    ...(exit.code === null ? {} : { exitCode: exit.code }),
    ...(exit.signal === null ? {} : { signal: exit.signal }),
    ...(exit.stderrTail === "" ? {} : { stderrTail: exit.stderrTail })
  })

const notStarted = (harness: string, failed: SpawnFailed): HarnessError =>
  failed.code === "ENOENT" || failed.code === "EACCES"
    ? new HarnessProgramMissing({ harness, operation: "start", detail: failed.message })
    : new HarnessUnavailable({ harness, operation: "start", detail: failed.message })

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The greeting of a program whose `ready` line is of another version. */
const greetingOf = (json: unknown): Greeting | undefined => {
  if (!isObject(json) || json["type"] !== "ready") return undefined
  const version = json["protocol_version"] ?? json["protocol"]
  const names = json["capabilities"]
  return {
    protocolVersion: typeof version === "number" ? version : Number.NaN,
    capabilities: Array.isArray(names) ? names.filter((name) => typeof name === "string") : []
  }
}

/** An ask of any program: ids as text, and what it may leave out as the contract has it. */
const withDefaults = (json: unknown): unknown => {
  if (!isObject(json) || json["type"] !== "notify" || json["kind"] !== "ask" || !isObject(json["data"])) return json
  const data = json["data"]
  const questions = Array.isArray(data["questions"])
    ? data["questions"].map((one: unknown) =>
        isObject(one) ? { options: [], multiple: false, custom: true, ...one } : one
      )
    : undefined
  return {
    ...json,
    data: {
      ...data,
      ask_id: data["ask_id"] === undefined || data["ask_id"] === null ? unnamedAsk : String(data["ask_id"]),
      ...(questions === undefined ? {} : { questions })
    }
  }
}

/** The id of an ask whose program gives none: an answer then names none. */
export const unnamedAsk = "(unnamed)"

/** Starts a program in a directory and waits until it is ready. It ends with the scope. */
export const openProgram = (
  owner: ProcessOwnerService,
  command: ServeCommand,
  place: { readonly directory: string; readonly sessionId: string }
): Effect.Effect<ServeProcess, HarnessError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* greet(owner, command, place).pipe(
      Effect.timeoutOrElse({
        duration: command.initializeTimeoutMs,
        orElse: () => Effect.fail(new HarnessTimeout({ harness: command.harness, operation: "ready" }))
      }),
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })

const greet = Effect.fnUntraced(function* (
  owner: ProcessOwnerService,
  command: ServeCommand,
  place: { readonly directory: string; readonly sessionId: string }
) {
  const { harness } = command
  const child = yield* owner
    .spawn({
      role: "harness",
      command: command.command,
      args: command.args,
      cwd: place.directory,
      env: { list: "harness", names: command.env },
      sessionId: place.sessionId
    })
    .pipe(Effect.mapError((failed) => notStarted(harness, failed)))

  const greeted = Deferred.makeUnsafe<Greeting>()
  const over = Deferred.makeUnsafe<HarnessError>()
  const replies = new Map<string, Deferred.Deferred<ErrorLine | HelloLine>>()
  let capabilities: ReadonlySet<string> = new Set()
  let gone: HarnessError | undefined
  let inbox: { readonly runId: string; readonly queue: Queue.Queue<RunItem> } | undefined

  const deliver = (item: RunItem): Effect.Effect<void> =>
    Effect.suspend(() => (inbox === undefined ? Effect.void : Effect.asVoid(Queue.offer(inbox.queue, item))))

  /** The op that a reply is to: by its id, or, where none is echoed, the one that waits longest. */
  const repliedTo = (line: ErrorLine | HelloLine): string | undefined => {
    if (line.opId !== undefined) return replies.has(line.opId) ? line.opId : undefined
    return capabilities.has("op_id") ? undefined : [...replies.keys()][0]
  }

  const control = (line: ErrorLine | HelloLine): Effect.Effect<void> =>
    Effect.suspend(() => {
      const opId = repliedTo(line)
      const waiting = opId === undefined ? undefined : replies.get(opId)
      if (opId !== undefined && waiting !== undefined) {
        replies.delete(opId)
        Deferred.doneUnsafe(waiting, Exit.succeed(line))
        return Effect.void
      }
      return line.type === "error" ? deliver({ _tag: "Refused", line }) : Effect.void
    })

  const take = (json: unknown): Effect.Effect<void> => {
    const decoded = decodeLine(withDefaults(json))
    if (decoded._tag !== "Line") {
      // A version that is not known here may still agree on one that is.
      const greeting = greetingOf(json)
      if (greeting !== undefined) Deferred.doneUnsafe(greeted, Exit.succeed(greeting))
      const kind = decoded._tag === "Unknown" ? decoded.type : "malformed"
      return deliver({ _tag: "Foreign", kind, broken: decoded._tag === "Malformed" })
    }
    const { line } = decoded
    switch (line.type) {
      case "ready":
        Deferred.doneUnsafe(greeted, Exit.succeed(line))
        return Effect.void
      case "hello":
      case "error":
        return control(line)
      case "pong":
        return Effect.void
      default:
        // A line of a run that is over is fenced off.
        return line.runId === inbox?.runId ? deliver({ _tag: "Line", line }) : Effect.void
    }
  }

  const end = (error: HarnessError): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (gone !== undefined) return Effect.void
      gone = error
      Deferred.doneUnsafe(over, Exit.succeed(error))
      return deliver({ _tag: "Gone", error })
    })

  const broke = (detail: string): HarnessError => new HarnessProtocol({ harness, operation: "read", detail })

  const lines = jsonLines(
    child.stdout,
    command.maxFrameBytes === undefined ? {} : { maxFrameBytes: command.maxFrameBytes }
  )
  const reading = yield* Effect.forkScoped(Effect.exit(Stream.runForEach(lines, take)))
  const unable = (detail: string) => Effect.andThen(end(broke(detail)), Effect.forkDetach(child.terminate))
  yield* Effect.forkScoped(
    Effect.flatMap(Fiber.join(reading), (exit) =>
      Exit.isFailure(exit)
        ? unable("it writes lines that are no JSON")
        : Effect.flatMap(Effect.timeoutOption(child.exit, exitWaitMs), (exited) =>
            exited._tag === "Some" ? end(exitedWith(harness, exited.value)) : unable("it closed its output")
          )
    )
  )
  yield* Effect.forkScoped(
    Effect.flatMap(child.exit, (exit) =>
      Effect.andThen(
        Effect.raceFirst(Effect.asVoid(Fiber.await(reading)), Effect.sleep(lastWordsMs)),
        end(exitedWith(harness, exit))
      )
    )
  )
  // Before the process is ended: an end that we want is no failure of the program.
  yield* Effect.addFinalizer(() =>
    end(new HarnessUnavailable({ harness, operation: "close", detail: "it was closed" }))
  )

  const write = (op: ServeOp): Effect.Effect<void, HarnessError> =>
    Effect.suspend((): Effect.Effect<void, HarnessError | StdinClosed> =>
      gone === undefined ? child.stdin.write(`${encodeOp(op)}\n`) : Effect.fail(gone)
    ).pipe(
      Effect.catchTag("StdinClosed", () =>
        // The pipe broke: how the process ended says why.
        Effect.flatMap(Effect.timeoutOption(Deferred.await(over), exitWaitMs), (why) =>
          Effect.fail(why._tag === "Some" ? why.value : broke("it closed its input"))
        )
      )
    )

  const ask = (op: ServeOp & { readonly opId: string }) =>
    Effect.suspend(() => {
      const reply = Deferred.makeUnsafe<ErrorLine | HelloLine>()
      replies.set(op.opId, reply)
      return Effect.as(write(op), Deferred.await(reply))
    })

  const lost = Effect.flatMap(Deferred.await(over), (error) => Effect.fail(error))

  let greeting = yield* Effect.raceFirst(Deferred.await(greeted), lost)
  if (!command.versions.includes(greeting.protocolVersion) && greeting.capabilities.includes("hello")) {
    const answer = yield* ask({ op: "hello", opId: "hello", protocolVersions: command.versions })
    const agreed = yield* Effect.raceFirst(answer, lost)
    if (agreed.type === "hello") greeting = { ...greeting, ...agreed }
  }
  if (!command.versions.includes(greeting.protocolVersion)) {
    return yield* new HarnessVersionUnsupported({
      harness,
      operation: "ready",
      detail: `it speaks version ${greeting.protocolVersion}, not ${command.versions.join(" or ")}`
    })
  }
  capabilities = new Set(greeting.capabilities)

  const program: ServeProcess = {
    greeting,
    has: (capability) => capabilities.has(capability),
    send: write,
    ask: (op, until) =>
      Effect.flatMap(ask(op), (reply) =>
        Effect.raceFirst(
          Effect.map(reply, (line) => (line.type === "error" ? line : undefined)),
          Effect.as(until, undefined)
        )
      ).pipe(Effect.ensuring(Effect.sync(() => replies.delete(op.opId)))),
    listen: Effect.fnUntraced(function* (runId) {
      const queue = yield* Queue.bounded<RunItem>(inboxCapacity)
      const mine = { runId, queue }
      inbox = mine
      if (gone !== undefined) yield* Queue.offer(queue, { _tag: "Gone", error: gone })
      return {
        take: Queue.take(queue),
        close: Effect.suspend(() => {
          if (inbox === mine) inbox = undefined
          return Effect.asVoid(Queue.shutdown(queue))
        })
      }
    }),
    gone: () => gone,
    exited: Deferred.await(over)
  }
  return program
})
