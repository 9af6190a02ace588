/** The real program for tests: the sources through this Node, with a directory of its own for everything. */
import { Effect } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export const repository = path.resolve(import.meta.dirname, "../../../..")
export const cli = path.join(repository, "packages/host/src/cli.ts")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Default: end of input at once. Undefined and `open: true` leave it open. */
  readonly stdin?: string | Uint8Array
  readonly open?: boolean
  /** Sees stdout as it comes. */
  readonly onStdout?: (text: string, child: ChildProcess) => void
  readonly onStderr?: (text: string, child: ChildProcess) => void
}

const environment = (extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: process.env["HOME"],
  LANG: "C.UTF-8",
  ...extra
})

/** Runs a program to its end. Interruption kills it. */
export const runProgram = (
  command: string,
  args: ReadonlyArray<string>,
  options: RunOptions = {}
): Effect.Effect<Ended> =>
  Effect.callback<Ended>((resume) => {
    const child = spawn(command, [...args], {
      cwd: options.cwd,
      env: environment(options.env),
      stdio: ["pipe", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
      options.onStdout?.(stdout, child)
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
      options.onStderr?.(stderr, child)
    })
    // A program that ends before it read its input is no failure of the test.
    child.stdin.on("error", () => undefined)
    if (options.stdin !== undefined) child.stdin.end(options.stdin)
    else if (options.open !== true) child.stdin.end()
    child.once("error", (error) => resume(Effect.die(error)))
    child.once("close", (code, signal) => resume(Effect.succeed({ code, signal, stdout, stderr })))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

export const tackroom = (args: ReadonlyArray<string>, options?: RunOptions): Effect.Effect<Ended> =>
  runProgram(process.execPath, [cli, ...args], options)

/** A directory that is gone with the scope. */
export const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "tackroom-test-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

/** Writes an executable shell script. */
export const script = (file: string, text: string): string => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return file
}
