/**
 * One child process: its pipes, its exit, its end. The owner adds what must hold over many children (record, guard,
 * disposal); this module knows one.
 *
 * Invariants: the child leads its own group; its exit is known within 100 ms of it (HRN-035); after `closed` nothing of
 * its group lives; a write to a dead stdin fails that write alone (HRN-037).
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { Readable } from "node:stream"
import { Data, Deferred, Effect, Exit, Stream } from "effect"
import { fromReadable } from "./ByteStreams.ts"
import type { EnvironmentSpec } from "./ChildEnvironment.ts"
import { resolveCommand } from "./CommandResolution.ts"
import { type Gate, gated, gateFds, isGateable, makeGate } from "./Gate.ts"
import { sleep } from "./internal/RealTime.ts"
import { endGroup, type Signal, signalGroup } from "./ProcessGroup.ts"
import { makeStderrTail, type StderrTail } from "./StderrTail.ts"

/** The child could not be started. `code` is the system's (`ENOENT`, `EACCES`, …), `record_failed` or `owner_closed`. */
export class SpawnFailed extends Data.TaggedError("SpawnFailed")<{
  readonly command: string
  readonly code: string
  readonly message: string
}> {}

/** A write to the stdin of a child that is gone or closed it (HRN-037). Nothing else fails with it. */
export class StdinClosed extends Data.TaggedError("StdinClosed")<{ readonly code: string; readonly message: string }> {}

/** How a child ended. `code` is null when a signal ended it. */
export interface ChildExit {
  readonly code: number | null
  readonly signal: string | null
  /** At most 4 KiB, redacted (HRN-036). */
  readonly stderrTail: string
}

/** What to start, with which environment and which pipes. */
export interface SpawnSpec {
  /** What the child is for: `harness`, `probe`, `mcp`, `tool`, `host`, … Shown in health, kept in the record. */
  readonly role: string
  readonly command: string
  readonly args?: ReadonlyArray<string>
  readonly cwd?: string
  readonly env?: EnvironmentSpec
  readonly sessionId?: string
  /** `ignore` gives the child an empty stdin. Default `pipe`. */
  readonly stdin?: "pipe" | "ignore"
  readonly stdout?: "pipe" | "ignore"
  /** `tail` keeps the end only; `stream` also gives it to the caller, who must then read it. Default `tail`. */
  readonly stderr?: "tail" | "stream"
  /** Takes secrets out of stderr text before anyone sees it. */
  readonly redact?: (text: string) => string
}

/** The child's stdin; ended for good once `end` ran (HRN-037, HRN-039). */
export interface ChildStdin {
  /** Completes when the pipe took the bytes; so a slow child slows the writer. */
  readonly write: (bytes: Uint8Array | string) => Effect.Effect<void, StdinClosed>
  readonly end: Effect.Effect<void>
}

/** A running child. Its scope ends it; every way to end it takes the whole group (HRN-030). */
export interface Child {
  readonly id: string
  readonly role: string
  readonly command: string
  readonly pid: number
  readonly pgid: number
  /** Start time as `StartTime.startTime` gives it; empty where the platform does not tell. */
  readonly started: string
  readonly stdin: ChildStdin
  /** One consumer. Ends with the pipe, or when the group is gone and the pipe stays quiet. */
  readonly stdout: Stream.Stream<Uint8Array>
  readonly stderr: Stream.Stream<Uint8Array>
  /** What stderr holds now: up to 64 KiB, redacted. */
  readonly stderrText: () => string
  /** Completes within 100 ms of the child's exit. */
  readonly exit: Effect.Effect<ChildExit>
  /** Completes when nothing of the group is left and the record is removed. */
  readonly closed: Effect.Effect<ChildExit>
  /** The exit, when it already happened. */
  readonly exited: () => ChildExit | undefined
  /** Signals the whole group; false when it is gone. */
  readonly signal: (signal: Signal) => Effect.Effect<boolean>
  /** TERM, grace, KILL over the group, without the polite end of stdin first. */
  readonly terminate: Effect.Effect<ChildExit>
  /** End stdin, grace, TERM, grace, KILL (HRN-039). Safe to call often and at once. */
  readonly shutdown: Effect.Effect<ChildExit>
}

/** What a start needs besides the child's own wishes. */
export interface LaunchOptions {
  readonly spec: SpawnSpec
  readonly environment: Record<string, string>
  readonly platform: string
  /** Told before a program is started without a gate: it runs before anyone can be told of its pid. */
  readonly onUngated: () => void
  /** Told of the pid in the same turn of the event loop as the start: nothing can come between. */
  readonly onStarted: (pid: number) => void
}

/** A started process, before its owner made a `Child` of it. */
export interface Launched {
  readonly process: ChildProcess
  readonly pid: number
  /** What holds the program back; absent when it already runs. */
  readonly gate: Gate | undefined
  readonly stderrPipe: Readable | null
  readonly stderr: StderrTail
  readonly exit: Deferred.Deferred<ChildExit>
  readonly exited: () => ChildExit | undefined
}

/** How long an exit waits for the rest of stderr: a grandchild may hold that pipe for ever. */
const stderrGraceMs = 50

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "spawn_failed"

/** What a system's code of a failed start means to its caller. */
export const spawnFailed = (spec: SpawnSpec, code: string): SpawnFailed => {
  const why =
    code === "ENOENT" && spec.cwd !== undefined && !existsSync(spec.cwd)
      ? "its working directory does not exist"
      : code === "ENOENT"
        ? "no such program"
        : code === "EACCES"
          ? "permission denied"
          : code
  return new SpawnFailed({ command: spec.command, code, message: `cannot start ${spec.command}: ${why}` })
}

const start = (options: LaunchOptions, behindGate: boolean): ChildProcess => {
  const { spec, environment, platform } = options
  const args = spec.args ?? []
  const resolved = behindGate
    ? { ...gated(spec.command, args), verbatim: false }
    : resolveCommand({ command: spec.command, args, environment, platform, exists: existsSync })
  const stdio = [spec.stdin ?? "pipe", spec.stdout ?? "pipe"] as const
  return spawn(resolved.command, resolved.args, {
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    env: environment,
    detached: platform !== "win32",
    windowsHide: true,
    windowsVerbatimArguments: resolved.verbatim,
    stdio: behindGate ? [...stdio, "ignore", "pipe", "pipe"] : [...stdio, "pipe"]
  })
}

/** Where no gate can be started the program itself is: the system then says what is wrong. */
const startBehindGate = (options: LaunchOptions): { readonly child: ChildProcess; readonly behindGate: boolean } => {
  const { spec, environment, platform } = options
  if (isGateable({ command: spec.command, cwd: spec.cwd, environment, platform })) {
    const child = start(options, true)
    if (child.pid !== undefined) return { child, behindGate: true }
    child.once("error", () => undefined)
  }
  options.onUngated()
  return { child: start(options, false), behindGate: false }
}

/**
 * Starts the process, behind a gate where that can be, and watches it. Synchronous up to the system's answer; a failed
 * start leaves nothing behind.
 */
export const launch = (options: LaunchOptions): Effect.Effect<Launched, SpawnFailed> =>
  Effect.suspend(() => {
    const { spec } = options
    let started: ReturnType<typeof startBehindGate>
    try {
      started = startBehindGate(options)
    } catch (error) {
      return Effect.fail(spawnFailed(spec, codeOf(error)))
    }
    const { child, behindGate } = started
    const pid = child.pid
    if (pid === undefined) {
      // Listened to at once: an `error` that nobody hears ends the program.
      const failed = Deferred.makeUnsafe<never, SpawnFailed>()
      child.once("error", (error) => Deferred.doneUnsafe(failed, Exit.fail(spawnFailed(spec, codeOf(error)))))
      return Deferred.await(failed)
    }
    options.onStarted(pid)
    return Effect.succeed(watch(child, pid, spec, behindGate))
  })

const watch = (child: ChildProcess, pid: number, spec: SpawnSpec, behindGate: boolean): Launched => {
  const gate = behindGate ? makeGate(child.stdio[gateFds.word]) : undefined
  const pipe = behindGate ? child.stdio[gateFds.stderr] : child.stderr
  const stderrPipe = pipe instanceof Readable ? pipe : null
  const stderr = makeStderrTail(spec.redact ?? ((text) => text))
  const exit = Deferred.makeUnsafe<ChildExit>()
  let ended: ChildExit | undefined
  // A signal that cannot be sent or a broken channel; the exit says what became of the child.
  child.on("error", () => undefined)
  child.stdin?.on("error", () => undefined)
  stderrPipe?.on("error", () => undefined)
  // The program may have ended before its caller reads: Node throws away at the exit what nobody listens for.
  child.stdout?.on("readable", () => undefined)
  if (spec.stderr === "stream") stderrPipe?.on("readable", () => undefined)
  else stderrPipe?.on("data", (chunk: Uint8Array) => stderr.push(chunk))
  child.once("exit", (code, signal) => {
    let settled = false
    const settle = (): void => {
      if (settled) return
      settled = true
      clearTimeout(timer)
      ended = { code, signal, stderrTail: stderr.tail() }
      Deferred.doneUnsafe(exit, Exit.succeed(ended))
    }
    const timer = setTimeout(settle, stderrGraceMs)
    if (spec.stderr === "stream" || stderrPipe === null || stderrPipe.readableEnded) settle()
    else stderrPipe.once("close", settle).once("end", settle)
  })
  return { process: child, pid, gate, stderrPipe, stderr, exit, exited: () => ended }
}

/** Serial writes to a child's stdin; each waits for its own bytes and fails alone. */
export const makeStdin = (child: ChildProcess): ChildStdin => ({
  write: (bytes) =>
    Effect.callback<void, StdinClosed>((resume) => {
      const stdin = child.stdin
      if (stdin === null || stdin.destroyed || stdin.writableEnded) {
        return resume(Effect.fail(new StdinClosed({ code: "EPIPE", message: "the child's stdin is closed" })))
      }
      stdin.write(bytes, (error) =>
        resume(
          error === undefined || error === null
            ? Effect.void
            : Effect.fail(new StdinClosed({ code: codeOf(error), message: "the child's stdin is closed" }))
        )
      )
    }),
  end: Effect.sync(() => {
    const stdin = child.stdin
    if (stdin !== null && !stdin.destroyed && !stdin.writableEnded) stdin.end()
  })
})

/** The child's stdout and stderr as byte streams. */
export const makeOutputs = (
  launched: Launched,
  spec: SpawnSpec,
  closed: Effect.Effect<unknown>
): Pick<Child, "stdout" | "stderr"> => {
  const { stdout } = launched.process
  const stderr = launched.stderrPipe
  return {
    stdout: stdout === null ? Stream.empty : fromReadable(stdout, { ended: closed }),
    stderr:
      stderr === null || spec.stderr !== "stream"
        ? Stream.empty
        : Stream.tap(fromReadable(stderr, { ended: closed }), (chunk) => Effect.sync(() => launched.stderr.push(chunk)))
  }
}

/** How long each rung of the ladder waits (HRN-039). */
export interface Graces {
  /** Real milliseconds after the end of stdin. Default 2000. */
  readonly stdinMs: number
  /** Real milliseconds after TERM. Default 2000. */
  readonly termMs: number
}

const within = (exit: Effect.Effect<unknown>, ms: number): Effect.Effect<boolean> =>
  Effect.raceFirst(Effect.as(exit, true), Effect.as(sleep(ms), false))

/** TERM, grace, KILL; returns when the leader is gone (at most 2 s after KILL, which only a stuck kernel call outlives). */
export const terminateLeader = (launched: Launched, graces: Graces): Effect.Effect<void> =>
  Effect.gen(function* () {
    const exit = Deferred.await(launched.exit)
    if (launched.exited() !== undefined) return
    signalGroup(launched.pid, "SIGTERM")
    if (yield* within(exit, graces.termMs)) return
    signalGroup(launched.pid, "SIGKILL")
    yield* within(exit, 2000)
  })

/** The whole ladder for the leader (HRN-039). */
export const shutdownLeader = (launched: Launched, stdin: ChildStdin, graces: Graces): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (launched.exited() !== undefined) return
    launched.gate?.shut()
    yield* stdin.end
    if (yield* within(Deferred.await(launched.exit), graces.stdinMs)) return
    yield* terminateLeader(launched, graces)
  })

/** After the leader's exit: ends whatever it left in its group (HRN-030). */
export const sweepGroup = (launched: Launched, graces: Graces): Effect.Effect<boolean> =>
  endGroup(launched.pid, graces.termMs)
