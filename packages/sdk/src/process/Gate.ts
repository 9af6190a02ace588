/**
 * The gate before a child's program: a `/bin/sh` that waits for a word on a pipe of its own and then becomes the program,
 * with the same pid, group and pipes (HRN-032, HRN-034). Whoever started it may die at any moment: the pipe then ends
 * without the word, and the gate ends with it. So no program runs that the guard and the record do not know.
 *
 * The program sees nothing of the gate: the shell's own variables are taken away, both extra descriptors are closed, and
 * what the shell itself says goes to neither of the program's outputs. What a shell cannot hand on unchanged is not
 * started behind a gate (`isGateable`), nor is a program that is not found: the system says best what is wrong with it.
 */
import { Duplex } from "node:stream"
import { Effect, Exit, Deferred } from "effect"
import { sleep } from "./internal/RealTime.ts"
import { findProgram } from "./ProgramSearch.ts"

/** Where the gate waits, and where the program's standard error comes from until the gate moves it to its place. */
export const gateFds = { word: 3, stderr: 4 } as const

/**
 * What the gate runs; its arguments are the program and the program's own. It ends when the pipe ends without a word, and
 * when the program cannot be run; the latter it reports on the pipe as 126 or 127. The braces let the shell keep that pipe
 * for the report in a descriptor which closes when the program takes over. bash exports SHLVL again at `exec`, but never
 * an array.
 */
const gateScript = `read -r _ <&3 || exit 125
unset PWD OLDPWD SHLVL _
[ -z "\${BASH_VERSION-}" ] || { declare -a SHLVL; shopt -s execfail; }
trap 'echo "$?" >&3' EXIT
{ exec "$@" 2>&4 4>&-
} 3>&-`

/** The command behind its gate. */
export const gated = (command: string, args: ReadonlyArray<string>) => ({
  command: "/bin/sh",
  args: ["-c", gateScript, "tackroom-gate", command, ...args]
})

/** Variables that a shell sets, counts, protects or obeys, so that the program would get another value, or none. */
const shellVariable =
  /^(?:_|PWD|OLDPWD|SHLVL|IFS|ENV|PS[0-9]|PPID|E?UID|OPT(?:IND|ERR|ARG)|LINENO|S?RANDOM|EPOCH.*|SECONDS|TMOUT|SHELLOPTS|EXECIGNORE|POSIXLY_CORRECT|GROUPS|DIRSTACK|FUNC.*|PIPESTATUS|HIST.*|COMP_.*|BASH.*)$/

const passes = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !shellVariable.test(name)

/** What is to be started, and where. */
export interface GateQuery {
  readonly command: string
  readonly cwd: string | undefined
  readonly environment: Readonly<Record<string, string>>
  readonly platform: string
}

/** True when a gate can start this program just as the system would. */
export const isGateable = ({ command, cwd, environment, platform }: GateQuery): boolean => {
  if (platform === "win32" || command === "" || command.startsWith("-")) return false
  if (!Object.keys(environment).every(passes)) return false
  const search = environment["PATH"] ?? ""
  if (!command.includes("/") && search === "") return false
  return findProgram(command, cwd ?? ".", search) !== undefined
}

/** A child's gate. */
export interface Gate {
  /**
   * Says the word and completes when the program runs; with the system's code when it cannot be run. A gate that is shut
   * or gone has nothing to tell: the child's exit does.
   */
  readonly open: Effect.Effect<"ENOENT" | "EACCES" | undefined>
  /** Ends a gate that was not opened; no effect on a program that runs. */
  readonly shut: () => void
}

/** The program runs within moments of the word; nothing but a shell that keeps its pipe open takes longer. */
const openMs = 2000

const codes: Readonly<Record<string, "ENOENT" | "EACCES">> = { "127\n": "ENOENT", "126\n": "EACCES" }

/** The gate at the other end of this pipe. */
export const makeGate = (pipe: unknown): Gate | undefined => {
  if (!(pipe instanceof Duplex)) return undefined
  const ended = Deferred.makeUnsafe<"ENOENT" | "EACCES" | undefined>()
  let report = ""
  const settle = (): void => void Deferred.doneUnsafe(ended, Exit.succeed(codes[report]))
  pipe.on("data", (chunk: Uint8Array) => (report += String(chunk)))
  // A gate that is gone; `close` follows.
  pipe.on("error", () => undefined)
  pipe.once("end", settle).once("close", settle)
  return {
    open: Effect.suspend(() => {
      if (!pipe.destroyed) pipe.write("\n")
      return Effect.raceFirst(Deferred.await(ended), Effect.as(sleep(openMs), undefined))
    }).pipe(Effect.ensuring(Effect.sync(() => pipe.destroy()))),
    shut: () => void pipe.destroy()
  }
}
