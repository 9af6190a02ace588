/**
 * The process of `tackroom-conformance`: streams, signals, exit. A signal ends the run in order, so that no program of a case
 * is left.
 */
import { Effect, Exit, Fiber } from "effect"
import { existsSync, realpathSync } from "node:fs"
import { constants } from "node:os"
import { dirname, join } from "node:path"
import type { Place, ProgramName } from "./Family.ts"
import { conformance } from "./Conformance.ts"
import { version } from "../command/Version.ts"

/** The kit's own programs: bundled beside this one, or their sources. */
const programBeside =
  (entry: string) =>
  (name: ProgramName): string => {
    const folder = dirname(entry)
    const built = join(folder, `conformance-${name.replace("/", "-")}.cjs`)
    return existsSync(built) ? built : join(folder, name, "main.ts")
  }

export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  const place: Place = {
    cwd: process.cwd(),
    env: process.env,
    node: process.execPath,
    program: programBeside(realpathSync(process.argv[1] ?? "."))
  }
  const fiber = Effect.runFork(
    conformance(argv, place, version(), {
      out: (text) => void process.stdout.write(text),
      error: (text) => void process.stderr.write(text)
    })
  )
  let interruptedBy: number | undefined
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      interruptedBy = constants.signals[signal]
      fiber.interruptUnsafe()
    })
  }
  const exit = await Effect.runPromise(Fiber.await(fiber))
  process.exitCode = interruptedBy === undefined ? (Exit.isSuccess(exit) ? exit.value : 70) : 128 + interruptedBy
  // Sockets and watchers of a case that could not be closed must not keep a finished run.
  process.stdout.write("", () => process.exit())
}
