/**
 * Owns the signals of a host process (RUN-524, RUN-525): the first one asks for an orderly end, the second ends the
 * children at once and the process with 128 + its number. It ends nothing by itself on the first.
 */
import { constants } from "node:os"
import { Deferred, Effect, Exit, type Scope } from "effect"

export const shutdownSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const
export type ShutdownSignal = (typeof shutdownSignals)[number]

/** The part of `process` that is needed. */
export interface SignalSource {
  readonly on: (signal: ShutdownSignal, listener: () => void) => unknown
  readonly off: (signal: ShutdownSignal, listener: () => void) => unknown
}

export interface Shutdown {
  /** Completes at the first signal. */
  readonly requested: Effect.Effect<ShutdownSignal>
}

export const exitCodeOf = (signal: ShutdownSignal): number => 128 + constants.signals[signal]

/** The exit codes of the host (RUN-082). */
export const exitCodes = { graceful: 0, internal: 1, config: 2, locked: 3, storage: 4, startup: 5 } as const

/** The exit code of a start-up failure, by the reason its answer gives (RUN-081). */
export const startupExitCodes = {
  bad_config: exitCodes.config,
  coworkers: exitCodes.config,
  state_dir_locked: exitCodes.locked,
  storage: exitCodes.storage,
  state_dir: exitCodes.startup,
  agent_conflict: exitCodes.startup
} as const

/** Listens for signals until the scope ends. `onSecond` must end the process with the code. */
export const makeShutdown = (
  source: SignalSource,
  onSecond: (exitCode: number) => void
): Effect.Effect<Shutdown, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const requested = Deferred.makeUnsafe<ShutdownSignal>()
        let seen = 0
        const listeners = shutdownSignals.map((signal) => {
          const listener = (): void => {
            seen += 1
            if (seen === 1) Deferred.doneUnsafe(requested, Exit.succeed(signal))
            else onSecond(exitCodeOf(signal))
          }
          source.on(signal, listener)
          return { signal, listener }
        })
        return { requested, listeners }
      }),
      ({ listeners }) =>
        Effect.sync(() => {
          for (const { signal, listener } of listeners) source.off(signal, listener)
        })
    ),
    ({ requested }) => ({ requested: Deferred.await(requested) })
  )
