/**
 * The agent's process: started from words and not by a shell, in a group of its own with its guard, and ended in steps that
 * leave nothing behind (SEAT-090, SEAT-250, SEAT-251).
 */
import { randomUUID } from "node:crypto"
import { realpathSync } from "node:fs"
import { type Child, ProcessOwner, SpawnFailed } from "@tackroom/sdk/process"
import { Effect, type Scope } from "effect"
import type { SeatConfiguration } from "../command/Configuration.ts"
import type { EnvironmentView } from "../rig/Endpoint.ts"
import { agentEnvironment, runMarker } from "./AgentEnvironment.ts"
import { endMarked } from "./MarkedProcesses.ts"

export interface AgentProcess {
  readonly child: Child
  /** The folder that the agent works in, without symbolic links. */
  readonly cwd: string
  /**
   * Ends the agent: end of its input, TERM, KILL; at once KILL when `hurried` completes. Completes when nothing of it is
   * left, and never takes more than a moment when it is gone already.
   */
  readonly end: (hurried: Effect.Effect<unknown>) => Effect.Effect<void>
}

/** How long the steps of an end wait (8.9). */
const graces = { stdinMs: 500, termMs: 2_000 }

/** The pane's folder, as it really is. It may be gone. */
const workingFolder = (command: string): Effect.Effect<string, SpawnFailed> =>
  Effect.try({
    try: () => realpathSync(process.cwd()),
    catch: () =>
      new SpawnFailed({
        command,
        code: "ENOENT",
        message: `cannot start ${command}: the working directory does not exist`
      })
  })

export const startAgent = (options: {
  readonly configuration: SeatConfiguration
  readonly environment: EnvironmentView
  /** Takes secrets out of the agent's standard error. */
  readonly redact: (text: string) => string
}): Effect.Effect<AgentProcess, SpawnFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { configuration, environment } = options
    const marker = randomUUID()
    const cwd = yield* workingFolder(configuration.command)
    const owner = yield* ProcessOwner.make({ instanceId: `seat.${process.pid}`, environment, graces })
    const child = yield* owner.spawn({
      role: "harness",
      command: configuration.command,
      args: configuration.args,
      cwd,
      env: agentEnvironment({ names: configuration.envNames, marker, model: configuration.modelVariable }),
      redact: options.redact
    })
    const hurry = Effect.andThen(
      child.signal("SIGKILL"),
      Effect.sync(() => endMarked(runMarker, marker))
    )
    return {
      child,
      cwd,
      end: (hurried) =>
        child.shutdown.pipe(
          Effect.raceFirst(Effect.andThen(hurried, Effect.andThen(hurry, child.closed))),
          // What left the group and kept its environment.
          Effect.andThen(Effect.sync(() => void endMarked(runMarker, marker)))
        )
    }
  })
