/**
 * The program `tackroom harness-stdio`: a host behind the run protocol on this process's pipes (run-protocol 3 to 6, 18).
 *
 * It owns the process: stdout reserved for frames, the environment scrubbed, signals, the order of an orderly end, the exit
 * code. Everything else is `Host` and `StdioFace`. At the end turns are left to recovery, not settled (RUN-524).
 */
import { reserveStdout, scrubEnvironment, type ProtocolOutput } from "@tackroom/sdk/process"
import type { StartupFailed } from "@tackroom/protocol/run"
import { KnownSecrets } from "@tackroom/sdk/effect"
import { Effect, Exit, Scope } from "effect"
import { randomBytes } from "node:crypto"
import * as Host from "../Host.ts"
import * as Configuration from "../state/Configuration.ts"
import { makeCounters, snapshot } from "./stdio/Counters.ts"
import { makePrepare, makeTakeNotification } from "./stdio/Dispatch.ts"
import { exitCodes, makeShutdown, startupExitCodes } from "./stdio/Shutdown.ts"
import { answerStartupFailure } from "./stdio/StartupFailure.ts"
import { levelFrom, makeStderrLog, type StderrLog } from "./stdio/StderrLog.ts"
import { makeStdioFace } from "./stdio/StdioFace.ts"

/** Time for the orderly end after the last answer; then what is left is ended with the process (RUN-524). */
const endMs = 1_500

const makeRef = (): string => `ref_${randomBytes(6).toString("hex")}`

const couldNotStart = Effect.fnUntraced(function* (error: StartupFailed, output: ProtocolOutput, log: StderrLog) {
  log.log("Fatal", error.message, { reason: error.reason, ...(error.path === undefined ? {} : { path: error.path }) })
  yield* answerStartupFailure(process.stdin, output, error)
  return startupExitCodes[error.reason]
})

const serve = Effect.fnUntraced(function* (
  argument: string,
  version: string,
  output: ProtocolOutput,
  log: StderrLog,
  counters: ReturnType<typeof makeCounters>,
  secrets: KnownSecrets
) {
  // At the exit the guard of the children sees the end of its pipe and ends their groups at once.
  const shutdown = yield* makeShutdown(process, (code) => process.exit(code))
  const configuration = yield* Configuration.load(argument)
  for (const warning of configuration.warnings) log.log("Warn", warning)
  scrubEnvironment(process.env, Host.namedVariables(configuration.config), process.platform)
  const host = yield* Host.open(configuration, {
    version,
    environment: process.env,
    lock: true,
    runner: { command: process.execPath, args: [...process.execArgv, process.argv[1] ?? "", "tool-runner"] },
    counters: () => snapshot(counters),
    onSecret: secrets.take
  })
  const dispatch = {
    handlers: host.methods.handlers,
    waits: host.methods.waits,
    capabilities: host.methods.capabilities
  }
  const face = yield* makeStdioFace({
    input: process.stdin,
    output,
    prepare: makePrepare(dispatch),
    takeNotification: makeTakeNotification(dispatch),
    counters,
    log,
    makeRef,
    onInitialized: host.initialized,
    onDraining: host.methods.drain
  })
  yield* Effect.raceFirst(
    face.ended,
    Effect.andThen(shutdown.requested, Effect.andThen(Effect.sync(face.stop), face.ended))
  )
  return exitCodes.graceful
})

/** Runs the host until its stdin ends or a signal comes; the exit code is the result (RUN-082). */
export const harnessStdio = async (argument: string, version: string): Promise<number> => {
  const output = reserveStdout()
  const counters = makeCounters()
  const secrets = new KnownSecrets()
  const log = makeStderrLog({
    stream: process.stderr,
    now: Date.now,
    level: levelFrom(process.env["TACKROOM_LOG_LEVEL"]),
    redact: (line) => secrets.text(line),
    onDrop: () => {
      counters.logLinesDropped += 1
    }
  })
  const program = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const exit = yield* serve(argument, version, output, log, counters, secrets).pipe(
      Effect.catchTag("StartupFailed", (error) => couldNotStart(error, output, log)),
      Scope.provide(scope),
      Effect.exit
    )
    yield* Scope.close(scope, exit).pipe(Effect.timeoutOption(endMs))
    return yield* exit
  })
  const exit = await Effect.runPromiseExit(Effect.provide(program, log.layer))
  if (Exit.isSuccess(exit)) return exit.value
  log.log("Fatal", "the host failed", { ref: makeRef() })
  return exitCodes.internal
}
