/**
 * A program under test, however it is connected. What is left of it when its case is over is ended by process group and
 * reported.
 */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { constants } from "node:os"
import { endGroup, isGroupAlive, signalGroup } from "@tackroom/sdk/process"
import { type KitFailed, kitFailed } from "../Check.ts"

export interface Ended {
  readonly code: number | null
  /** The number of the signal that ended it. */
  readonly signal: number | null
}

export interface ProgramSpec {
  readonly command: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly columns?: number
  readonly onOutput: (bytes: Uint8Array) => void
  /** Standard error, where it is not part of the output. */
  readonly onError?: (bytes: Uint8Array) => void
  readonly onEnd: (ended: Ended) => void
  /** Members of the program's group outlived it; they are ended. */
  readonly onLeftOver: (group: number) => void
}

export interface Program {
  readonly pid: number
  readonly write: (bytes: Uint8Array) => void
  readonly endInput: () => void
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: () => Ended | undefined
}

export interface PipedProgram extends Program {
  /** Takes no more of its output: the program writes into a closed pipe. */
  readonly closeOutput: () => void
}

/** Starts a program with pipes. Standard error joins standard output, as in a pane, unless somebody wants it apart. */
export const spawnPiped = (spec: ProgramSpec): Effect.Effect<PipedProgram, KitFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<PipedProgram, KitFailed>((resume) => {
      const [command = "", ...args] = spec.command
      const child = spawn(command, args, { cwd: spec.cwd, env: { ...spec.env }, detached: true, stdio: "pipe" })
      let ended: Ended | undefined
      child.stdin.on("error", () => undefined)
      child.stdout.on("data", spec.onOutput)
      child.stderr.on("data", spec.onError ?? spec.onOutput)
      child.once("exit", (code, signal) => {
        ended = { code, signal: signal === null ? null : constants.signals[signal] }
        spec.onEnd(ended)
      })
      child.once("error", (cause) =>
        resume(Effect.fail(kitFailed(`${command} could not be started: ${cause.message}`)))
      )
      child.once("spawn", () => {
        const pid = child.pid ?? -1
        resume(
          Effect.succeed({
            pid,
            write: (bytes) => void child.stdin.write(bytes),
            endInput: () => void child.stdin.end(),
            closeOutput: () => void child.stdout.destroy(),
            signal: (signal) => void child.kill(signal),
            ended: () => ended
          })
        )
      })
    }),
    (program) =>
      Effect.gen(function* () {
        const left = program.ended() !== undefined && isGroupAlive(program.pid)
        signalGroup(program.pid, "SIGKILL")
        yield* endGroup(program.pid, 0)
        if (left) spec.onLeftOver(program.pid)
      })
  )
