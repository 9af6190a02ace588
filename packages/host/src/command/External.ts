/**
 * The other programs of the family: `tackroom NAME` runs `tackroom-NAME`, beside this program or on PATH (D-18).
 *
 * It owns the search and the wait. The program gets this one's stdin, stdout, stderr, environment and directory, and this
 * process ends as it ended: with its exit code, or by its signal. It is the same job in the foreground, so it stays in the
 * same process group: a terminal's Ctrl-C reaches it by itself and is not sent a second time.
 */
import { spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export interface Search {
  readonly name: string
  /** The file this process was started as. */
  readonly program: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

export interface Found {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

const isProgram = (file: string): boolean => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

const realOf = (file: string): string => {
  try {
    return fs.realpathSync(file)
  } catch {
    return file
  }
}

/** The directories that are searched, in order: beside the program as it was called, beside its real file, then PATH. */
const directories = ({ env, program }: Search): ReadonlyArray<string> => {
  const onPath = (env["PATH"] ?? env["Path"] ?? "").split(path.delimiter).filter((entry) => path.isAbsolute(entry))
  return [...new Set([path.dirname(program), path.dirname(realOf(program)), ...onPath])]
}

/** The program, or undefined. A script of Node beside this one runs with this Node. */
export const find = (search: Search): Found | undefined => {
  const base = `tackroom-${search.name}`
  const extensions = search.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""]
  for (const directory of directories(search)) {
    for (const extension of extensions) {
      const file = path.join(directory, base + extension)
      if (isProgram(file)) return { command: file, args: [] }
    }
    const script = path.join(directory, `${base}.mjs`)
    if (fs.existsSync(script)) return { command: process.execPath, args: [script] }
  }
  return undefined
}

export type Ended =
  | { readonly _tag: "Exited"; readonly code: number }
  | { readonly _tag: "Killed"; readonly signal: NodeJS.Signals }
  | { readonly _tag: "NotStarted"; readonly message: string }

/** From a terminal these reach the whole foreground group. */
const fromTerminal: ReadonlyArray<NodeJS.Signals> = ["SIGINT", "SIGQUIT"]
const passedOn: ReadonlyArray<NodeJS.Signals> = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]

interface Start extends Found {
  /** The arguments are quoted already, as batch files of Windows need it. */
  readonly verbatim: boolean
}

const startOf = async (found: Found, args: ReadonlyArray<string>): Promise<Start> => {
  const all = [...found.args, ...args]
  if (process.platform !== "win32") return { command: found.command, args: all, verbatim: false }
  const { resolveCommand } = await import("@tackroom/sdk/process")
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
  const { platform } = process
  return resolveCommand({ command: found.command, args: all, environment, platform, exists: fs.existsSync })
}

/** Runs the program to its end. */
export const run = async (found: Found, args: ReadonlyArray<string>): Promise<Ended> => {
  const start = await startOf(found, args)
  return new Promise((resolve) => {
    const inTerminal = process.stdin.isTTY || process.stderr.isTTY
    let child: ChildProcess | undefined
    const pass = (signal: NodeJS.Signals): void => void child?.kill(signal)
    const ignore = (): void => undefined
    const listeners = [
      ...fromTerminal.map((signal) => [signal, inTerminal ? ignore : pass] as const),
      ...passedOn.map((signal) => [signal, pass] as const)
    ].filter(([signal]) => signal in os.constants.signals)
    const finish = (ended: Ended): void => {
      for (const [signal, listener] of listeners) process.off(signal, listener)
      resolve(ended)
    }
    // Before the start: from its first moment on the program may be what a signal is meant for.
    for (const [signal, listener] of listeners) process.on(signal, listener)
    child = spawn(start.command, [...start.args], {
      stdio: "inherit",
      windowsVerbatimArguments: start.verbatim
    })
    child.once("error", (error) => finish({ _tag: "NotStarted", message: error.message }))
    child.once("exit", (code, signal) =>
      finish(signal === null ? { _tag: "Exited", code: code ?? 1 } : { _tag: "Killed", signal })
    )
  })
}
