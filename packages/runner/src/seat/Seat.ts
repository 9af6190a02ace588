/**
 * One seat from its start to its end: the agent is started and worked with, and when anything ends (the agent, the input, the
 * terminal, a signal) everything that was started ends with it.
 *
 * It owns the order of these things and the exit code. Each of them is done by its own module.
 */
import { readFileSync } from "node:fs"
import type { Child, ChildExit } from "@tackroom/sdk/process"
import { Cause, Deferred, Effect, Exit, Fiber, Result, type Scope } from "effect"
import { makeActivityQueue } from "../activity/ActivityQueue.ts"
import { makeReporter } from "../activity/Reporter.ts"
import { startAgent } from "../agent/AgentProcess.ts"
import type { SeatConfiguration } from "../command/Configuration.ts"
import { readFirstInput } from "../launch/FirstInput.ts"
import { makeRecorder } from "../launch/Recorder.ts"
import { makePermissionPath } from "../permission/PermissionPath.ts"
import { type EndpointSource, type EnvironmentView, findEndpoint, hasRig } from "../rig/Endpoint.ts"
import { makeRigClient } from "../rig/RigClient.ts"
import { describePrompt } from "../terminal/Block.ts"
import { makePane, type Pane, type PaneRedaction, type PaneSink } from "../terminal/Pane.ts"
import { foreignPiece, wholeCharacters } from "../terminal/PaneText.ts"
import type { SeatSignals } from "../terminal/Signals.ts"
import type { SeatTerminal } from "../terminal/Terminal.ts"
import { type Conversation, makeConversation } from "./Conversation.ts"
import { type Ending, exitCodeOf, exitCodes } from "./Ending.ts"
import { readInput } from "./Input.ts"
import { exitLine, stderrText } from "./PaneLines.ts"
import { makePromptQueue } from "./PromptQueue.ts"
import { makeSecrecy } from "./Secrecy.ts"
import { giveUp, type SeatParts, work } from "./Work.ts"

export interface SeatOptions {
  readonly configuration: SeatConfiguration
  readonly environment: EnvironmentView
  readonly terminal: SeatTerminal
  readonly signals: SeatSignals
  readonly sink: PaneSink
  readonly version: string
  /** Gets what the SDK of the agent's protocol complains about. */
  readonly onComplaint: (listener: (text: string) => void) => void
}

const cancelGraceMs = 500
const flushMs = 1_500
const paneFlushMs = 300
const shownComplaints = 3

const readText = (file: string): string | undefined =>
  Result.getOrUndefined(Result.try(() => readFileSync(file, "utf8")))

const within = (effect: Effect.Effect<unknown>, ms: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOrElse(effect, { duration: ms, orElse: () => Effect.void }))

/** Runs a seat; gives the exit code of the program. */
export const runSeat = (options: SeatOptions): Effect.Effect<number> => {
  const { configuration, environment, sink, terminal } = options
  const endpoint = findEndpoint(environment, readText)
  const named = configuration.envNames.flatMap((name) => environment[name] ?? [])
  const secrecy = makeSecrecy(() => [...endpoint.secrets(), ...named])
  const pane = makePane({ sink, redaction: secrecy, showsDraft: terminal.isTty })
  const written = Effect.callback<void>((resume) => pane.whenWritten(() => resume(Effect.void)))
  return Effect.scoped(sit({ ...options, endpoint, secrecy, pane })).pipe(
    Effect.tap(() => within(written, paneFlushMs))
  )
}

interface Surroundings extends SeatOptions {
  readonly endpoint: EndpointSource
  readonly secrecy: PaneRedaction
  readonly pane: Pane
}

/** What stands between the seat and its rig, said once at the start. */
const tellRig = ({ endpoint, environment, pane }: Surroundings): void => {
  if (!hasRig(environment)) pane.line("seat > no rig: activity off")
  else if (endpoint.problem !== undefined) pane.line(`seat > ${endpoint.problem}: activity off`)
  else if (endpoint.current() === undefined) pane.line("seat > the rig's address or token is missing: activity off")
}

const sit = (surroundings: Surroundings): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { configuration, endpoint, environment, pane, secrecy, terminal, version } = surroundings
    const { names, resumeRef } = configuration

    const ending = yield* Deferred.make<Ending>()
    const end = (why: Ending): void => void Deferred.doneUnsafe(ending, Exit.succeed(why))
    const hurried = yield* Deferred.make<void>()
    let signals = 0
    surroundings.signals.listen((signal) => {
      if (++signals > 1) Deferred.doneUnsafe(hurried, Exit.void)
      end({ _tag: "Closed", signal })
    })

    for (const remark of configuration.remarks) pane.line(`seat > ${remark}`)
    tellRig(surroundings)

    const client = makeRigClient(endpoint)
    const queue = yield* makeActivityQueue({ client, endpoint, names, say: pane.line })
    const reporter = yield* makeReporter({
      queue,
      harness: configuration.harness,
      livenessSeconds: configuration.livenessSeconds,
      idleLivenessSeconds: configuration.idleLivenessSeconds
    })
    const prompts = yield* makePromptQueue
    let nativeRef = ""
    const permissions = yield* makePermissionPath({
      client,
      names,
      nativeRef: () => nativeRef,
      now: queue.now,
      reporter,
      say: pane.line,
      queueWords: (words) => conversation.queueWords(words),
      whenUnanswerable: configuration.whenUnanswerable
    })
    const conversation: Conversation = yield* makeConversation({
      pane,
      prompts,
      reporter,
      permissions,
      showThoughts: configuration.showThoughts,
      showHistory: configuration.showHistory
    })
    const recorder = makeRecorder({ configuration, version, redact: secrecy.text, say: pane.line })
    const parts: SeatParts = {
      configuration,
      version,
      pane,
      reporter,
      prompts,
      permissions,
      conversation,
      recorder,
      end
    }

    const inputEnded = yield* Deferred.make<void>()
    yield* readInput({
      terminal,
      event: conversation.input,
      draft: pane.draft,
      // A terminal that ends has hung up; a pipe that ends is done.
      end: () => {
        if (terminal.isTty) end({ _tag: "Closed", signal: "SIGHUP" })
        else Deferred.doneUnsafe(inputEnded, Exit.void)
      }
    })

    if (configuration.firstInput !== undefined) {
      const first = readFirstInput(configuration.firstInput)
      if (Result.isSuccess(first)) prompts.offerFirst(first.success)
      else {
        pane.line(`error > ${first.failure}`)
        reporter.failed()
      }
    }

    const sendRest = within(Effect.all([queue.drained, permissions.drained], { concurrency: 2 }), flushMs)
    const loseQueued = (): void => {
      for (const text of prompts.drain()) pane.line(`lost > not sent: ${foreignPiece(describePrompt(text))}`)
    }

    if (resumeRef === "") {
      const why = "the reference to reopen is empty"
      const code = yield* giveUp(parts, { _tag: "Unconfirmed", why }, undefined)
      yield* sendRest
      return code
    }

    pane.line(`seat > starting ${configuration.harness}`)
    const started = yield* Effect.result(startAgent({ configuration, environment, redact: secrecy.text }))
    if (Result.isFailure(started)) {
      const why = started.failure.message
      yield* giveUp(parts, { _tag: resumeRef === undefined ? "Failed" : "Unconfirmed", why }, undefined)
      loseQueued()
      yield* sendRest
      return exitCodes.notStarted
    }
    const agent = started.success

    let complaints = 0
    surroundings.onComplaint((text) => {
      if (++complaints <= shownComplaints) pane.line(`error > ${foreignPiece(text, wholeCharacters)}`)
    })

    /** A fault of this program ends the seat. Its cause may hold anything, so nobody is shown it. */
    const guarded = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
      Effect.catchCause(effect, (cause) =>
        Effect.sync(() => {
          if (Cause.hasInterruptsOnly(cause)) return
          pane.line("error > internal fault: the seat ends")
          reporter.failed()
          end({ _tag: "GivenUp", code: exitCodes.internal })
        })
      )

    const life = yield* Effect.forkScoped(
      guarded(
        work(agent, parts, (ref) => {
          nativeRef = ref
        })
      )
    )
    const inputDone = Effect.sync(() => end({ _tag: "InputDone" }))
    yield* Effect.forkScoped(
      guarded(Deferred.await(inputEnded).pipe(Effect.andThen(conversation.whenIdle), Effect.andThen(inputDone)))
    )

    /** The agent's process is gone: tell it, and send what is left to be sent. */
    const afterExit = (exit: ChildExit, child: Child): Effect.Effect<void> =>
      Effect.suspend(() => {
        permissions.exited()
        reporter.exited()
        pane.line(exitLine(exit), "always")
        for (const line of stderrText(child.stderrText())) pane.line(line)
        loseQueued()
        return sendRest
      })

    const why = yield* Deferred.await(ending)
    const { child } = agent
    const hurry = Deferred.await(hurried)
    if (why._tag === "Closed") {
      conversation.stop()
      yield* Effect.raceAllFirst([Effect.sleep(cancelGraceMs), child.exit, hurry])
    }
    const finished = yield* Effect.forkScoped(Effect.flatMap(child.exit, (exit) => afterExit(exit, child)))
    yield* agent.end(hurry)
    yield* Fiber.join(finished)
    yield* Fiber.interrupt(life)
    return exitCodeOf(why)
  })
