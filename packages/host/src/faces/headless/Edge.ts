/**
 * What `tackroom run` needs of its process, and how it says that no run came of a command line.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import type { RunArguments } from "./Arguments.ts"
import type { Style } from "./Style.ts"
import type { Terminal } from "./Terminal.ts"

/** What the process gives: everything this module needs of the outside. */
export interface Edge {
  readonly options: RunArguments
  readonly version: string
  readonly cwd: string
  /** This process's environment; names of keys are removed from it. */
  readonly env: NodeJS.ProcessEnv
  readonly stateDir: string
  readonly runner: { readonly command: string; readonly args: ReadonlyArray<string> }
  readonly stdoutTerminal: boolean
  readonly stderrTerminal: boolean
  readonly style: Style
  /** All of stdin, or undefined when it is larger than `limit` bytes. */
  readonly readStdin: (limit: number) => Promise<Uint8Array | undefined>
  readonly openTerminal: () => Terminal
  readonly writeOut: (text: string) => void
  readonly writeErr: (text: string) => void
  /** Aborted by the first signal, or when the reader of stdout is gone. */
  readonly cancelled: AbortSignal
}

export const exitCodes = { completed: 0, ended: 1, usage: 2, notStarted: 3 } as const

/** What kept a run from being admitted. */
export class NotStarted extends Error {
  readonly code: number
  readonly kind: "nothing" | "restore" | "unknown"
  readonly errorClass: string | undefined
  constructor(kind: NotStarted["kind"], message: string, errorClass?: string, code: number = exitCodes.notStarted) {
    super(message)
    this.kind = kind
    this.errorClass = errorClass
    this.code = code
  }
}

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

export const tagOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "_tag" in cause && typeof cause._tag === "string"
    ? cause._tag
    : undefined

/** The real path of a directory that was named on the command line (SRV-004). */
export const directory = (edge: Edge, given: string): string => {
  const full = path.resolve(edge.cwd, given)
  try {
    const real = fs.realpathSync(full)
    if (fs.statSync(real).isDirectory()) return real
  } catch {
    // It is told below, as anything that is no directory.
  }
  throw new NotStarted("unknown", `${full} is not a directory`, "project")
}
