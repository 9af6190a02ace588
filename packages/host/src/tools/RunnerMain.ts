/**
 * The tool runner's own loop: `tackroom tool-runner`, a child of the host in which files.* and shell.run work (AGT-065, RUN-092).
 *
 * Owns: the calls at work, their cancels, the process groups of commands. Does not own policy, approval, schemas or the journal:
 * what arrives was checked and allowed by the host. It is an edge of its own in plain asynchronous code, so that it starts
 * fast. Calls run at the same time; each ends with exactly one message. At end of input, at SIGTERM, or when the host no
 * longer reads, every group is ended within 2 s and the loop returns; the caller then exits. Nothing but messages is
 * written to the output.
 */
import type { Readable, Writable } from "node:stream"
import { setTimeout } from "node:timers/promises"
import { endGroup } from "./Groups.ts"
import type { FilesListInput } from "./FilesList.ts"
import { checkEdit, checkWrite, type FilesEditInput, type FilesWriteInput } from "./FileChange.ts"
import type { FilesReadInput } from "./FileContent.ts"
import { filesRead } from "./FilesRead.ts"
import { filesEdit, filesWrite } from "./FilesWrite.ts"
import type { FilesSearchInput } from "./FilesSearch.ts"
import { Failed, NotRun } from "./Refusal.ts"
import type { FileDiff } from "./Results.ts"
import { lineSplitter, runnerProtocol } from "./RunnerFrames.ts"
import type { FromRunner, ToRunner } from "./RunnerMessages.ts"
import { prepareShell, type ShellInput, shellRun } from "./Shell.ts"
import { Workspace } from "./Workspace.ts"

export interface RunnerIo {
  /** The version which the host must have too. */
  readonly version: string
  readonly input: Readable
  readonly output: Writable
  /** The environment of commands, already limited by the host (RUN-085). */
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  /** Aborted when the process is told to end. */
  readonly signal?: AbortSignal
}

interface Outcome {
  readonly output: unknown
  readonly diff?: FileDiff
}

/** A checked call, ready to run. */
type Prepared = () => Promise<Outcome>

interface Running {
  readonly abort: AbortController
  readonly go: () => void
}

type Call = Extract<ToRunner, { readonly type: "call" }>

/** How long a group has between SIGTERM and SIGKILL when the runner itself ends. */
const lastGraceMillis = 1_000
/** How long calls then have to settle. */
const lastWordMillis = 500

/** Runs until the input ends. Resolves with the exit code. */
export const toolRunnerMain = (io: RunnerIo): Promise<number> => {
  const running = new Map<number, Running>()
  const groups = new Set<number>()
  const owned = new Map<number, () => void>()
  const working = new Set<Promise<void>>()
  let ending: Promise<number> | undefined
  let finish: (code: number) => void = () => undefined
  const finished = new Promise<number>((resolve) => {
    finish = resolve
  })

  /** Resolves when the output takes more. */
  const send = (message: FromRunner): Promise<void> => {
    if (io.output.destroyed || io.output.write(`${JSON.stringify(message)}\n`)) return Promise.resolve()
    return new Promise((resolve) => {
      io.output.once("drain", resolve)
    })
  }

  const shutdown = (code: number): void => {
    ending ??= (async () => {
      for (const call of running.values()) call.abort.abort()
      await Promise.all([...groups].map((group) => endGroup(group, io.now, lastGraceMillis)))
      // Writes at work take away the file they have begun.
      await Promise.race([Promise.all(working), setTimeout(lastWordMillis)])
      return code
    })()
    void ending.then(finish)
  }

  const command = async (workspace: Workspace, call: Call, abort: AbortController): Promise<Prepared> => {
    const { cwd, input } = await prepareShell(workspace, call.arguments as ShellInput, call.shellSecondsMax)
    return async () => {
      const folder = await workspace.openDirectory(cwd)
      await folder.handle.close()
      const output = await shellRun(
        input,
        cwd.real,
        io.env,
        {
          started: (group) => {
            groups.add(group)
            const known = new Promise<void>((resolve) => owned.set(group, resolve))
            void send({ type: "spawned", id: call.id, group })
            return known
          },
          ended: (group) => {
            groups.delete(group)
            owned.delete(group)
            void send({ type: "ended", id: call.id, group })
          },
          output: (stream, text) => send({ type: "delta", id: call.id, stream, text })
        },
        abort.signal,
        io.now
      )
      return { output }
    }
  }

  /** Everything that can refuse a call, before the host writes its dispatch record. */
  const prepare = async (call: Call, abort: AbortController): Promise<Prepared> => {
    // A workspace that is lost is no refusal: the call is dispatched and fails (RUN-351).
    const workspace = await Workspace.make(call.workspace, call.stateDir).catch((cause: unknown) => {
      if (cause instanceof Failed) return cause
      throw cause
    })
    if (workspace instanceof Failed) return () => Promise.reject(workspace)
    const { signal } = abort
    switch (call.tool) {
      case "files.read": {
        const input = call.arguments as FilesReadInput
        const path = await workspace.resolve(input.path)
        return async () => ({ output: await filesRead(workspace, path, input, signal) })
      }
      case "files.list": {
        const input = call.arguments as FilesListInput
        const path = await workspace.resolve(input.path ?? ".")
        // Loaded at first use: the expression engine costs more than everything else of the runner's start.
        const list = await import("./FilesList.ts")
        list.checkList(input)
        return async () => ({ output: await list.filesList(workspace, path, input, signal, io.now) })
      }
      case "files.search": {
        const input = call.arguments as FilesSearchInput
        const path = await workspace.resolve(input.path ?? ".")
        const search = await import("./FilesSearch.ts")
        search.checkSearch(input)
        return async () => ({ output: await search.filesSearch(workspace, path, input, signal, io.now) })
      }
      case "files.write": {
        const input = call.arguments as FilesWriteInput
        checkWrite(input)
        const path = await workspace.resolve(input.path)
        return () => filesWrite(workspace, path, input, signal, call.client)
      }
      case "files.edit": {
        const input = call.arguments as FilesEditInput
        checkEdit(input)
        const path = await workspace.resolve(input.path)
        return () => filesEdit(workspace, path, input, signal, call.client)
      }
      case "shell.run":
        return command(workspace, call, abort)
    }
  }

  const perform = async (call: Call): Promise<void> => {
    const abort = new AbortController()
    const { id } = call
    let started = false
    let go: () => void = () => undefined
    const dispatched = new Promise<void>((resolve) => {
      go = () => {
        // From here on there is a dispatch record: a cancel is no refusal any more.
        started = true
        resolve()
      }
    })
    const cancelled = new Promise<void>((resolve) => {
      abort.signal.addEventListener("abort", () => resolve(), { once: true })
    })
    running.set(id, { abort, go })
    try {
      const run = await prepare(call, abort)
      await send({ type: "ready", id })
      await Promise.race([dispatched, cancelled])
      if (!started) throw new NotRun("the call was cancelled before it started")
      abort.signal.throwIfAborted()
      const outcome = await run()
      await send({ type: "result", id, ...outcome })
    } catch (cause) {
      await send(endOf(id, cause, started, abort.signal.aborted))
    } finally {
      running.delete(id)
    }
  }

  const work = (call: Promise<void>): void => {
    working.add(call)
    void call.finally(() => working.delete(call))
  }

  const receive = (message: ToRunner): void => {
    switch (message.type) {
      case "call":
        return work(perform(message))
      case "go":
        return running.get(message.id)?.go()
      case "cancel":
        return running.get(message.id)?.abort.abort()
      case "owned":
        return owned.get(message.group)?.()
    }
  }

  const split = lineSplitter()
  io.input.on("data", (chunk: Buffer) => {
    const lines = split(chunk)
    if (lines === undefined) return shutdown(1)
    for (const line of lines) {
      try {
        receive(JSON.parse(line.toString("utf8")) as ToRunner)
      } catch {
        shutdown(1)
      }
    }
  })
  io.input.once("end", () => shutdown(0))
  io.input.once("close", () => shutdown(0))
  io.input.once("error", () => shutdown(0))
  io.output.once("error", () => shutdown(0))
  io.signal?.addEventListener("abort", () => shutdown(0), { once: true })
  void send({ type: "hello", protocol: runnerProtocol, version: io.version })
  return finished
}

/** The one message that ends a call which threw. Raw causes stay inside. */
const endOf = (id: number, cause: unknown, started: boolean, cancelled: boolean): FromRunner => {
  const text = cause instanceof NotRun || cause instanceof Failed ? cause.message.slice(0, 8_000) : undefined
  if (!started) {
    const code = cause instanceof NotRun ? cause.code : "failed"
    return { type: "not_run", id, code, message: text ?? "the call could not be prepared" }
  }
  if (cause instanceof Failed) {
    const output = cause.output === undefined ? {} : { output: cause.output }
    return { type: "failed", id, code: cause.code, message: text ?? cause.message, ...output }
  }
  return cancelled
    ? { type: "failed", id, code: "cancelled", message: "the call was cancelled" }
    : { type: "failed", id, code: "failed", message: text ?? "the tool failed in an unexpected way" }
}
