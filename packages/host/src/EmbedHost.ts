/**
 * A host inside the caller's process, with the methods of the table as promises (RUN-590 to RUN-592).
 *
 * The same handlers, checks and limits as over a pipe; only the frame limit and the order of answers do not apply. It
 * installs no signal handler and ends no process of the caller. Closing leaves running turns to recovery.
 */
import { toErrorObject, type ErrorObject, type HostConfig } from "@tackroom/protocol/run"
import { Cause, Effect, Exit, type Layer, Logger, Option, Scope } from "effect"
import { makeCounters, snapshot } from "./faces/stdio/Counters.ts"
import { embed, makePrepare } from "./faces/stdio/Dispatch.ts"
import * as Host from "./Host.ts"
import * as Configuration from "./state/Configuration.ts"

export interface EmbeddedHost {
  /** One request: params and result in wire form. Rejects with `EmbeddedFailure` (code, message, data as on the wire). */
  readonly call: (method: string, params: unknown) => Promise<unknown>
  readonly close: () => Promise<void>
}

/** An error answer of an embedded host. */
export class EmbeddedFailure extends Error {
  readonly error: ErrorObject
  constructor(error: ErrorObject) {
    super(error.message)
    this.name = "EmbeddedFailure"
    this.error = error
  }
}

export interface EmbedOptions extends Pick<Host.HostOptions, "version" | "environment" | "runner"> {
  /** Default true: be the one host of the state directory. */
  readonly lock?: boolean
  /** Takes the host's log lines, none with a secret or content; without it they go nowhere. */
  readonly onLog?: (line: { readonly level: string; readonly message: string }) => void
}

/** The caller's process is not ours to write to: what the host logs goes to the caller or nowhere. */
const logging = (onLog: EmbedOptions["onLog"]) =>
  Logger.layer([
    Logger.make<unknown, void>(({ logLevel, message }) => {
      const texts = (Array.isArray(message) ? message : [message]).filter((part) => typeof part === "string")
      onLog?.({ level: logLevel, message: texts.join(" ") })
    })
  ])

/** The methods of an open host, as promises. */
export const callsOf = (host: Host.Host, log: Layer.Layer<never>): EmbeddedHost["call"] => {
  const { capabilities, handlers, waits } = host.methods
  const call = embed(makePrepare({ handlers, waits, capabilities }), host.initialized)
  return async (method, params) => {
    const exit = await Effect.runPromiseExit(Effect.provide(call(method, params), log))
    if (Exit.isSuccess(exit)) return exit.value
    const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    throw failure === undefined ? Cause.squash(exit.cause) : new EmbeddedFailure(toErrorObject(failure))
  }
}

/** Opens a host in this process. */
export const embedHost = async (config: HostConfig, options: EmbedOptions): Promise<EmbeddedHost> => {
  const scope = Effect.runSync(Scope.make())
  const counters = makeCounters()
  const log = logging(options.onLog)
  const opened = await Effect.runPromiseExit(
    Scope.provide(
      Host.open(
        { config, warnings: [] },
        {
          version: options.version,
          environment: options.environment,
          runner: options.runner,
          lock: options.lock ?? true,
          counters: () => snapshot(counters)
        }
      ),
      scope
    ).pipe(Effect.provide(log))
  )
  if (Exit.isFailure(opened)) {
    await Effect.runPromise(Scope.close(scope, opened))
    throw Cause.squash(opened.cause)
  }
  return {
    call: callsOf(opened.value, log),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Decodes a configuration in wire form, as `harness-stdio` reads it. */
export const decodeConfiguration = (json: unknown): Promise<HostConfig> =>
  Effect.runPromise(Effect.map(Configuration.decode(json), ({ config }) => config))
