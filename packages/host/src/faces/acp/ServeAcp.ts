/**
 * A host in this process behind one ACP connection, from its start to its orderly end (serve-mode 1.2, 12.8).
 *
 * It owns the order: understand the command line, open the host, let the client in, and at the end cancel what runs, answer
 * it, and close. Nothing was read from stdin when it cannot start.
 */
import { scriptProvider } from "@tackroom/sdk/scenario"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { KnownSecrets } from "@tackroom/sdk/effect"
import { Deferred, Effect, Exit, Scope } from "effect"
import type { Readable, Writable } from "node:stream"
import { isNative } from "../../harnesses/Harnesses.ts"
import { type FaceProcess, openHost, plan } from "../start/FaceHost.ts"
import { harnessOf, type Setup } from "../start/Setup.ts"
import { levelFrom, makeStderrLog } from "../stdio/StderrLog.ts"
import { makeAcpFace } from "./AcpFace.ts"
import type { AcpArguments } from "./Arguments.ts"
import { makeConnection } from "./Connection.ts"
import { signInAtTerminal } from "./TerminalSignIn.ts"

export interface AcpEdge {
  readonly options: AcpArguments
  readonly process: FaceProcess
  readonly input: Readable
  readonly output: ProtocolOutput
  readonly stderr: Writable
  readonly now: () => number
  readonly logLevel: string | undefined
  /** Aborted by the first signal. */
  readonly stopped: AbortSignal
}

const exitCodes = { ended: 0, failed: 1, notStarted: 3 } as const

/** How long a drain may take until all prompts are answered, and the written is read (SRV-226, SRV-229). */
const drainPatience = "10 seconds"
/** How long the host may take to close. */
const closePatience = "4 seconds"

/** Whether a script plays the model of new sessions (SRV-008). */
const isScripted = (setup: Setup): boolean => {
  const { agent, config, model } = setup
  const harness = harnessOf(setup)
  if (!isNative(harness)) return harness.id === "scripted"
  const definition = (config.agents ?? []).find(({ id }) => id === agent)
  const connection = model?.connection ?? definition?.model?.connection
  const provider = (config.providers ?? []).find(({ name }) => name === connection)
  return provider === undefined ? connection === scriptProvider : provider.api === "script"
}

const aborted = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (signal.aborted) return resume(Effect.void)
    const done = (): void => resume(Effect.void)
    signal.addEventListener("abort", done, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", done))
  })

const serve = (edge: AcpEdge, secrets: KnownSecrets) =>
  Effect.gen(function* () {
    const { input, options, output, process, stopped } = edge
    if (options.signIn !== undefined) return yield* signInAtTerminal(process, options, options.signIn)
    const planned = yield* plan(process, options)
    for (const warning of planned.warnings) yield* Effect.logWarning(warning)
    const host = yield* openHost(process, planned, { onSecret: secrets.take })
    const { setup } = planned
    const face = yield* makeAcpFace({
      host,
      setup,
      version: process.version,
      scripted: isScripted(setup),
      needsRounds: planned.budgets.maxRounds !== null,
      cwd: process.cwd,
      probe: options.probe
    })
    const ended = Deferred.makeUnsafe<void>()
    const connection = makeConnection({
      input,
      output,
      onRead: face.onRead,
      onWritten: face.onWritten,
      onEnd: () => Deferred.doneUnsafe(ended, Exit.void)
    })
    const client = face.connect(connection)
    yield* Effect.raceAllFirst([Deferred.await(ended), Effect.asVoid(output.closed), aborted(stopped)])
    connection.stop()
    yield* Effect.timeoutOption(face.drain, drainPatience)
    yield* Effect.timeoutOption(Effect.ignore(output.below(0)), drainPatience)
    connection.close()
    yield* Effect.sync(() => client.close())
    return exitCodes.ended
  })

/** Serves one client; the result is the exit code. */
export const serveAcp = async (edge: AcpEdge): Promise<number> => {
  const secrets = new KnownSecrets()
  const log = makeStderrLog({
    stream: edge.stderr,
    now: edge.now,
    level: levelFrom(edge.logLevel),
    redact: (line) => secrets.text(line),
    onDrop: () => undefined
  })
  const program = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const exit = yield* serve(edge, secrets).pipe(
      Effect.catchTag("NotStarted", (error) =>
        Effect.sync((): number => {
          edge.stderr.write(`tackroom acp: ${error.message}\n`)
          return exitCodes.notStarted
        })
      ),
      Scope.provide(scope),
      Effect.exit
    )
    yield* Scope.close(scope, exit).pipe(Effect.timeoutOption(closePatience))
    return yield* exit
  })
  const exit = await Effect.runPromiseExit(Effect.provide(program, log.layer))
  if (Exit.isSuccess(exit)) return exit.value
  log.log("Fatal", "the face failed")
  return exitCodes.failed
}
