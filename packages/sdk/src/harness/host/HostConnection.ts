/**
 * The host behind the driver: the application's own connection, or a program that is started at the first use and again
 * after its end. Calls come back as Effects; what a host or its loss says is one error of the driver contract.
 *
 * It knows nothing of sessions and turns.
 */
import {
  type HarnessError,
  HarnessAuthRequired,
  HarnessProcessExited,
  HarnessProgramMissing,
  HarnessProtocol,
  HarnessRejected,
  HarnessTimeout,
  HarnessUnavailable
} from "@tackroom/protocol"
import type { HostConfig, MethodName, ParamsOf, ResultOf } from "@tackroom/protocol/run"
import { Data, Effect, Exit, Scope, Semaphore } from "effect"
import { HostExited, LaunchFailed, ProtocolViolation } from "../../client/ClientErrors.ts"
import { Host, type HostStatus } from "../../client/Host.ts"
import { connectHost, hostProgram, namedVariables } from "../../client/Launch.ts"
import { makeChildTransport } from "../../client/StdioTransport.ts"
import { SpawnFailed } from "../../process/index.ts"
import type { HarnessContext } from "../Harness.ts"

/** How the driver comes to its host. */
export type HostAccess =
  | {
      /** The application's connection, with its tools and keys. It stays the application's to close. */
      readonly connection: Host
    }
  | {
      /** The program, found on PATH; it is started as `command …args harness-stdio CONFIG`. */
      readonly command: string
      readonly args?: ReadonlyArray<string>
      readonly config: HostConfig
      /** Names of variables that the host gets beside the short list of RUN-083. */
      readonly env?: ReadonlyArray<string>
      /** How long a start may take. Milliseconds, default 30,000. */
      readonly initializeTimeoutMs?: number
    }

type ProgramAccess = Extract<HostAccess, { readonly command: string }>

/** What a call of the host failed with: one of the run protocol's errors, or one of the client's. */
export class HostFailed extends Data.TaggedError("HostFailed")<{ readonly cause: unknown }> {
  override get message(): string {
    return this.cause instanceof Error ? this.cause.message : "the host could not be asked"
  }
}

export interface HostConnection {
  /** The host, ready or about to be. */
  readonly host: Effect.Effect<Host, HostFailed>
  /** One call, once. */
  readonly call: <M extends MethodName>(method: M, params: ParamsOf<M>) => Effect.Effect<ResultOf<M>, HostFailed>
  /** `unused` until the first call; then as the client sees it. */
  readonly status: () => HostStatus | "unused"
}

const harness = "host"

const detailOf = (error: unknown): string =>
  (error instanceof Error ? error.message : "an unknown failure").slice(0, 500)

/** The error of the driver contract for what a call failed with. */
export const harnessErrorOf = (operation: string, failed: HostFailed): HarnessError => {
  const { cause } = failed
  const rest = { harness, operation }
  if (cause instanceof HostExited) {
    return new HarnessProcessExited({
      ...rest,
      ...(cause.exitCode === null ? {} : { exitCode: cause.exitCode }),
      ...(cause.signal === null ? {} : { signal: cause.signal }),
      ...(cause.stderrTail === "" ? {} : { stderrTail: cause.stderrTail })
    })
  }
  if (cause instanceof LaunchFailed) {
    const spawn = cause.cause
    return spawn instanceof SpawnFailed && spawn.code === "ENOENT"
      ? new HarnessProgramMissing({ ...rest, detail: spawn.command })
      : new HarnessUnavailable({ ...rest, detail: detailOf(cause) })
  }
  if (cause instanceof ProtocolViolation) return new HarnessProtocol({ ...rest, detail: detailOf(cause) })
  if (cause instanceof Error && cause.name === "TimeoutError") return new HarnessTimeout(rest)
  const tag = tagOf(cause)
  const detail = detailOf(cause)
  switch (tag) {
    case "CredentialsMissing":
      return new HarnessAuthRequired({ ...rest, detail })
    case "Busy":
    case "ShuttingDown":
    case "StartupFailed":
    case "StorageFailed":
    case "ClientClosed":
      return new HarnessUnavailable({ ...rest, detail })
    default:
      return new HarnessRejected({ ...rest, detail })
  }
}

/** The tag of an error of the run protocol or of its client. */
export const tagOf = (error: unknown): string | undefined =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
    ? error._tag
    : undefined

const attempt = <A>(call: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, HostFailed> =>
  Effect.tryPromise({ try: call, catch: (cause) => new HostFailed({ cause }) })

/** Starts the program through the runtime's owner, so that it has a record and a guard like every child (10.3). */
const transportOf = (access: ProgramAccess, context: HarnessContext, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const owner = yield* context.processes
    const scope = Scope.makeUnsafe()
    const child = yield* Scope.provide(
      owner.spawn({
        role: "harness",
        command: access.command,
        args,
        env: { list: "host", names: [...namedVariables(access.config), ...(access.env ?? [])] }
      }),
      scope
    )
    return makeChildTransport(child, Scope.close(scope, Exit.void))
  }).pipe(Effect.mapError((cause) => new LaunchFailed({ message: cause.message, cause })))

/** Makes the connection; nothing is started yet. What it starts ends with the scope. */
export const makeHostConnection = (
  access: HostAccess,
  context: HarnessContext
): Effect.Effect<HostConnection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const starting = Semaphore.makeUnsafe(1)
    let own: Host | undefined
    yield* Effect.addFinalizer(() => (own === undefined ? Effect.void : Effect.promise(() => own?.close() ?? nothing)))

    const start = (program: ProgramAccess): Effect.Effect<Host, HostFailed> =>
      starting.withPermit(
        Effect.suspend(() => {
          // One that was given up is replaced at the next use.
          if (own !== undefined && own.status !== "failed") return Effect.succeed(own)
          return Effect.map(
            attempt(() =>
              connectHost(
                hostProgram(program, (args) => Effect.runPromise(transportOf(program, context, args))),
                {
                  client: { name: "tackroom-sdk", version: "1" },
                  ...(program.initializeTimeoutMs === undefined ? {} : { startTimeoutMs: program.initializeTimeoutMs })
                }
              )
            ),
            (made) => {
              own = made
              return made
            }
          )
        })
      )

    const host = "connection" in access ? Effect.succeed(access.connection) : start(access)
    return {
      host,
      call: (method, params) =>
        Effect.flatMap(host, (ready) => attempt((signal) => ready.request(method, params, { signal }))),
      status: () => ("connection" in access ? access.connection.status : (own?.status ?? "unused"))
    }
  })

const nothing = Promise.resolve()
