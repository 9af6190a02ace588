/**
 * `tackroom serve` from its arguments to its exit code: plan, host, session, face. What keeps it from starting is one line
 * on stderr and exit code 3, before anything was written to stdout (SRV-370).
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect, type Scope } from "effect"
import type { Readable } from "node:stream"
import type { HostOptions } from "../../Host.ts"
import { authors } from "../lines/AskQueue.ts"
import { openHost, openSession, plan, type FaceProcess } from "../start/FaceHost.ts"
import { NotStarted, notStarted } from "../start/NotStarted.ts"
import type { StderrLog } from "../stdio/StderrLog.ts"
import type { ServeArguments } from "./Arguments.ts"
import { readLastRun } from "./LastRun.ts"
import { makeLinesOut } from "../lines/LinesOut.ts"
import { serveFace } from "./ServeFace.ts"
import { refuseAlone } from "./Unattended.ts"

export interface ServeProgram {
  readonly face: FaceProcess
  readonly options: ServeArguments
  readonly input: Readable
  readonly output: ProtocolOutput
  readonly pid: number
  /** Completes at the first signal. */
  readonly signalled: Effect.Effect<void>
  readonly onSecret: NonNullable<HostOptions["onSecret"]>
  readonly log: StderrLog["log"]
}

const started = Effect.fnUntraced(function* (program: ServeProgram) {
  const { face, options, output } = program
  const planned = yield* plan(face, options)
  let isAttended = true
  const host = yield* openHost(face, planned, {
    onSecret: program.onSecret,
    decideAlone: (interaction) =>
      isAttended ? undefined : { ...refuseAlone(interaction), by: authors.nobody, origin: "system" }
  })
  const session = yield* openSession(face, host, options, planned)
  const lastRun = session.resumed
    ? yield* readLastRun(host.runs, session.session.sessionId, session.capabilities.rounds).pipe(
        Effect.mapError(({ message }) => new NotStarted({ kind: "restore", message }))
      )
    : undefined
  const { serve } = planned.config
  return serveFace({
    input: program.input,
    out: makeLinesOut(output),
    face: session,
    version: face.version,
    pid: program.pid,
    budgets: planned.budgets,
    eof: options.eof ?? serve?.eof ?? "cancel",
    events: options.events ?? serve?.events ?? "full",
    lastRun,
    unattended: () => {
      isAttended = false
    },
    gone: Effect.asVoid(output.closed),
    signalled: program.signalled
  })
})

const interrupted = notStarted("a signal came before the session was open")

/** Runs the face; the result is the exit code. */
export const runServe = (program: ServeProgram): Effect.Effect<number, RuntimeError, Scope.Scope> =>
  Effect.raceFirst(started(program), Effect.andThen(program.signalled, Effect.fail(interrupted))).pipe(
    Effect.catchTag("NotStarted", (failure) =>
      Effect.sync(() => {
        program.log("Fatal", failure.message, failure.errorClass === undefined ? {} : { class: failure.errorClass })
        return Effect.succeed(failure.code)
      })
    ),
    Effect.flatten
  )
