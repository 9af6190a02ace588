/**
 * The way to a host that runs as a child process: one JSON object per line over its stdin and stdout. The child is
 * started through a `ProcessOwner`, so it leads its own group, has a guard and ends by the ladder stdin, TERM, KILL.
 *
 * Reading never waits for anybody (RUN-570): a message is handed over as soon as its line is complete.
 */
import { decodeUtf8, isBlankFrame, makeLines } from "@tackroom/protocol/text"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import type { Child, EnvironmentSource, SpawnFailed } from "../process/index.ts"
import { makeProcessOwner } from "../process/index.ts"
import { LaunchFailed } from "./ClientErrors.ts"
import type { HostTransport, TransportClosed, TransportListener } from "./HostTransport.ts"

/** How a host is started. */
export interface StdioTransportOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd?: string
  /** The environment to inherit from; only the names of RUN-083 pass. */
  readonly environment: EnvironmentSource
  /** Further variables that pass by name: those which the configuration names. */
  readonly names?: ReadonlyArray<string>
  /** Variables with their values. */
  readonly variables?: Readonly<Record<string, string>>
  /** Names the owner in process records. */
  readonly instanceId: string
  /** Takes secrets out of the host's stderr before anyone sees it. */
  readonly redact?: (text: string) => string
}

/** A frame of a host is at most 1 MiB; more than this is no host. */
const largestLine = 16 * 1_048_576

/** A host ends within 5 s of the end of its stdin (RUN-524). */
const stdinGraceMs = 6_000

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Starts a host as a child process. Rejects with `LaunchFailed` when the program cannot be started. */
export const makeStdioTransport = (options: StdioTransportOptions): Promise<HostTransport> => {
  const owner = makeProcessOwner({
    instanceId: options.instanceId,
    environment: options.environment,
    graces: { stdinMs: stdinGraceMs }
  })
  const scope = Scope.makeUnsafe()
  const spawn = owner
    .spawn({
      role: "host",
      command: options.command,
      args: options.args,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: {
        list: "host",
        ...(options.names === undefined ? {} : { names: options.names }),
        ...(options.variables === undefined ? {} : { variables: options.variables })
      },
      ...(options.redact === undefined ? {} : { redact: options.redact })
    })
    .pipe(
      Scope.provide(scope),
      Effect.map((child) => makeChildTransport(child, Effect.andThen(Scope.close(scope, Exit.void), owner.dispose))),
      Effect.mapError((failed: SpawnFailed) => new LaunchFailed({ message: failed.message, cause: failed })),
      Effect.tapError(() => owner.dispose)
    )
  return Effect.runPromise(spawn)
}

/** The way to a host that somebody else started. `release` runs when the child is over, however it ended. */
export const makeChildTransport = (child: Child, release: Effect.Effect<void>): HostTransport => {
  let queued: Array<string> = []
  let closed: TransportClosed | undefined
  let closing: Promise<TransportClosed> | undefined

  const flush = (): void => {
    const text = queued.join("")
    queued = []
    // A write to a child that is gone fails alone; that it is gone is told by its exit.
    Effect.runFork(Effect.ignore(child.stdin.write(text)))
  }

  const open = (listener: TransportListener): void => {
    const lines = makeLines({ limit: largestLine })
    const read = Effect.runFork(
      Stream.runForEach(child.stdout, (chunk) =>
        Effect.sync(() => {
          for (const line of lines.push(chunk)) {
            if (line._tag === "Oversize" || isBlankFrame(line.bytes)) continue
            const text = decodeUtf8(line.bytes)
            const message = text === undefined ? undefined : parse(text)
            if (message !== undefined) listener.onMessage(message)
          }
        })
      )
    )
    // What the host wrote before it ended is read first: it may answer what is open.
    const quick = Effect.raceFirst(Effect.asVoid(Fiber.await(read)), sleepMs(lastWordsMs))
    Effect.runFork(child.exit.pipe(Effect.tap(quick))).addObserver((exit) => {
      closed = Exit.isSuccess(exit)
        ? { exitCode: exit.value.code, signal: exit.value.signal, stderrTail: exit.value.stderrTail }
        : { exitCode: null, signal: null, stderrTail: "" }
      listener.onClosed(closed)
      // The group and the guard go with the leader, whether or not anyone closes.
      void close()
    })
  }

  const close = (): Promise<TransportClosed> => {
    closing ??= Effect.runPromise(
      Effect.map(Effect.andThen(Effect.ensuring(Effect.asVoid(child.shutdown), release), child.exit), (exit) => ({
        exitCode: exit.code,
        signal: exit.signal,
        stderrTail: exit.stderrTail
      }))
    )
    return closing
  }

  return {
    open,
    send: (message) => {
      if (closed !== undefined || child.exited() !== undefined) return false
      if (queued.length === 0) queueMicrotask(flush)
      queued.push(`${JSON.stringify(message)}\n`)
      return true
    },
    close,
    pid: child.pid
  }
}

/** How long a dead host's pipe may still bring answers; part of the 100 ms of RUN-573. */
const lastWordsMs = 30

const sleepMs = (ms: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), ms)
    return Effect.sync(() => clearTimeout(timer))
  })
