/**
 * A program in a pseudo-terminal, as tmux would run it: bytes in, bytes out, the state of its terminal, its end.
 *
 * The binding (`@lydell/node-pty`) is a peer that only the checks need, so that a seat is installed without it: it is loaded
 * here and nowhere else, and its absence is an error that says what to install. The kit keeps the terminal's other side open,
 * so that its state can be read after the program has ended.
 */
import { Effect, type Scope } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, constants, openSync } from "node:fs"
import { endGroup, isGroupAlive, signalGroup } from "@tackroom/sdk/process"
import { kitFailed, type KitFailed } from "../Check.ts"
import { makePaneWriter } from "./PaneWriter.ts"
import type { Ended, Program, ProgramSpec } from "./Program.ts"

/** What of the terminal's state the promises speak of. */
export interface TerminalMode {
  readonly canonical: boolean
  readonly echo: boolean
  readonly signals: boolean
  readonly crToLf: boolean
}

export interface PtyProgram extends Program {
  /** The state of the terminal, also after the program's end; undefined where the system does not tell. */
  readonly mode: () => TerminalMode | undefined
  /** Closes the pane: the program gets a hang-up. */
  readonly closePane: () => void
}

export const installHint =
  "the checks need a pseudo-terminal: install @lydell/node-pty 1.1.0 beside @tackroom/runner (npm install @lydell/node-pty@1.1.0)"

const loadBinding = Effect.tryPromise({
  try: () => import("@lydell/node-pty"),
  catch: () => kitFailed(installHint)
})

/** Fails with what to install when there is no binding. */
export const available: Effect.Effect<void, KitFailed> = Effect.asVoid(loadBinding)

/** The binding's own class: bytes, descriptor, path and socket of the terminal, which its types leave out. */
interface Bound {
  readonly pid: number
  readonly ptsName: string
  readonly fd: number
  readonly onData: (listener: (data: Uint8Array) => void) => unknown
  readonly onExit: (listener: (end: { readonly exitCode: number; readonly signal?: number }) => void) => unknown
  readonly _socket: { destroy: () => unknown; readonly emit: (event: "close") => boolean }
}

/**
 * Keeps the terminal open beyond the end of its program, so that its state can still be read; gives what closes it. The
 * binding closes it a moment after the end, and tells of the end only then: it is told that it did.
 */
const keepOpen = ({ _socket: socket }: Bound): (() => void) => {
  const destroy = socket.destroy.bind(socket)
  socket.destroy = () => socket.emit("close")
  return () => void destroy()
}

const readMode = (fd: number): TerminalMode | undefined => {
  const { status, stdout } = spawnSync("stty", ["-a"], { stdio: [fd, "pipe", "ignore"], encoding: "utf8" })
  if (status !== 0) return undefined
  const flags = new Set(stdout.split(/[\s;]+/u))
  return {
    canonical: flags.has("icanon"),
    echo: flags.has("echo"),
    signals: flags.has("isig"),
    crToLf: flags.has("icrnl")
  }
}

/** A signal to a process that may just have ended, which the binding has not told yet. */
const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // It is gone; its end will be told.
  }
}

export const spawnPty = Effect.fn("Pty.spawn")(function* (
  spec: ProgramSpec
): Effect.fn.Return<PtyProgram, KitFailed, Scope.Scope> {
  const binding = yield* loadBinding
  const [command = "", ...args] = spec.command
  return yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        const pty = binding.spawn(command, args, {
          name: "xterm-256color",
          cols: spec.columns ?? 200,
          rows: 50,
          cwd: spec.cwd,
          env: { ...spec.env },
          encoding: null
        }) as unknown as Bound
        const terminal = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY)
        let ended: Ended | undefined
        let open = true
        let released = false
        const close = keepOpen(pty)
        const writer = makePaneWriter(pty.fd)
        pty.onData(spec.onOutput)
        pty.onExit(({ exitCode, signal }) => {
          writer.close()
          ended = signal === undefined || signal === 0 ? { code: exitCode, signal: null } : { code: null, signal }
          spec.onEnd(ended)
        })
        const closePane = (): void => {
          if (!open) return
          open = false
          writer.close()
          close()
          // Programs that were started since hold a copy of the descriptor, which the binding lets them inherit. While one of
          // them lives the terminal does not hang up: then the signal comes from here.
          setTimeout(() => {
            if (!released && ended === undefined && readMode(terminal) !== undefined) sendSignal(pty.pid, "SIGHUP")
          }, 5)
        }
        return {
          pid: pty.pid,
          write: (bytes: Uint8Array) => {
            if (open && ended === undefined) writer.write(bytes)
          },
          endInput: closePane,
          signal: (signal: NodeJS.Signals) => {
            if (ended === undefined) sendSignal(pty.pid, signal)
          },
          ended: () => ended,
          mode: () => readMode(terminal),
          closePane,
          release: () => {
            released = true
            closeSync(terminal)
          }
        }
      },
      catch: (cause) => kitFailed(`the program could not be started in a terminal: ${String(cause)}`)
    }),
    (program) =>
      Effect.gen(function* () {
        const left = program.ended() !== undefined && isGroupAlive(program.pid)
        signalGroup(program.pid, "SIGKILL")
        yield* endGroup(program.pid, 0)
        if (left) spec.onLeftOver(program.pid)
        program.closePane()
        program.release()
      })
  )
})
