/** What the tests of the kit share: where its programs are, a run of the command, checks made by hand. */
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Check, Stop } from "../../src/conformance/Check.ts"
import { conformance as command } from "../../src/conformance/Conformance.ts"
import type { Place, ProgramName } from "../../src/conformance/Family.ts"
import type { Result } from "../../src/conformance/Verdict.ts"

const source = (path: string): string => fileURLToPath(new URL(`../../src/conformance/${path}`, import.meta.url))

export const cli = source("cli.ts")

/**
 * A program of the kit. Hundreds of them are started, and what is built starts in half the time; but only after a whole build
 * (CI) it is certain that it is what the sources say.
 */
const program = (name: ProgramName): string => {
  const built = fileURLToPath(new URL(`../../dist/bin/conformance-${name.replace("/", "-")}.cjs`, import.meta.url))
  return process.env["CI"] !== undefined && existsSync(built) ? built : source(`${name}/main.ts`)
}

export const place: Place = {
  cwd: process.cwd(),
  env: process.env,
  node: process.execPath,
  program
}

/** The reference runner as a command under test. */
export const reference = (...flags: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  place.program("runner/reference"),
  ...flags,
  "--",
  "{agent}"
]

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

/** The same without a process of its own: for command lines that start nothing. */
export const asked = async (args: ReadonlyArray<string>): Promise<Ran> => {
  let out = ""
  let error = ""
  const output = {
    out: (text: string) => {
      out += text
    },
    error: (text: string) => {
      error += text
    }
  }
  const code = await Effect.runPromise(command(args, place, "0.0.0", output))
  return { code, out, error }
}

/** Runs the command as a person does. */
export const conformance = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  meanwhile: (child: ChildProcess) => void = () => undefined
): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env }
    })
    let out = ""
    let error = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      error += text
    })
    meanwhile(child)
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, out, error }))
  })

export const checkOf = (id: string, run: Effect.Effect<void, Stop>, more: Partial<Check> = {}): Check => ({
  id,
  level: "must",
  title: `promise ${id}`,
  rules: [],
  needs: [],
  quiet: false,
  ...more,
  run: () => run
})

export const resultOf = (more: Partial<Result>): Result => ({
  id: "CHK-900",
  level: "must",
  title: "a promise",
  rules: [],
  verdict: "pass",
  durationMs: 1,
  evidence: [],
  ...more
})
