/**
 * The process of `tackroom serve`: streams, signals, exit code (serve-mode 1).
 *
 * Stdout is reserved before anything else is loaded, so that only lines of serve mode get there (SRV-010). The first signal
 * cancels and drains; a second one ends the process at once, and the guard of the children ends what they left (SRV-017).
 */
import { reserveStdout } from "@tackroom/sdk/process"
import type { Program } from "../headless/main.ts"

/** Time for the orderly end after the last line; then what is left is ended with the process (SRV-225). */
const endMs = 4_000

const makeRef = (): string => `ref_${Math.random().toString(36).slice(2, 14)}`

/** Runs the words behind `serve`; the result is the exit code. */
export const serve = async (args: ReadonlyArray<string>, program: Program): Promise<number> => {
  const output = reserveStdout()
  const { stderr, stdin } = process
  const [{ parseServe }, { Usage }] = await Promise.all([import("./Arguments.ts"), import("../start/Flags.ts")])
  const options = parseServe(args)
  if (options instanceof Usage) {
    stderr.write(`tackroom serve: ${options.message}\nTry: tackroom serve --help\n`)
    return 2
  }
  const [{ KnownSecrets }, { Effect, Exit, Scope }, { levelFrom, makeStderrLog }, { makeShutdown }, { runServe }] =
    await Promise.all([
      import("@tackroom/sdk/effect"),
      import("effect"),
      import("../stdio/StderrLog.ts"),
      import("../stdio/Shutdown.ts"),
      import("./Serve.ts")
    ])
  const secrets = new KnownSecrets()
  const log = makeStderrLog({
    stream: stderr,
    now: Date.now,
    level: levelFrom(process.env["TACKROOM_LOG_LEVEL"]),
    redact: (line) => secrets.text(line)
  })
  const face = {
    version: program.version,
    cwd: process.cwd(),
    env: process.env,
    stateDir: program.stateDir,
    runner: { command: process.execPath, args: [...process.execArgv, process.argv[1] ?? "", "tool-runner"] }
  }
  const work = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const exit = yield* Effect.gen(function* () {
      const shutdown = yield* makeShutdown(process, (code) => process.exit(code))
      return yield* runServe({
        face,
        options,
        input: stdin,
        output,
        pid: process.pid,
        signalled: Effect.asVoid(shutdown.requested),
        onSecret: secrets.take,
        log: (level, message, fields) => log.log(level, message, fields)
      })
    }).pipe(Scope.provide(scope), Effect.exit)
    yield* Scope.close(scope, exit).pipe(Effect.timeoutOption(endMs))
    return yield* exit
  })
  const exit = await Effect.runPromiseExit(Effect.provide(work, log.layer))
  if (Exit.isSuccess(exit)) return exit.value
  log.log("Fatal", "serve mode failed", { ref: makeRef() })
  return 1
}
