/**
 * One seat from its start to its end: the agent is started, its conversation opened and recorded, prompts are given to it,
 * and when anything ends (the agent, the input, the terminal, a signal) everything that was started ends with it.
 *
 * It owns the order of these things and the exit code. Each of them is done by its own module.
 */
import { readFileSync } from "node:fs"
import type { ChildExit } from "@tackroom/sdk/process"
import { Cause, Deferred, Effect, Exit, Fiber, Result, type Scope } from "effect"
import { makeActivityQueue } from "../activity/ActivityQueue.ts"
import { makeReporter } from "../activity/Reporter.ts"
import type { AcpConnection } from "../agent/AcpConnection.ts"
import { type AgentProcess, startAgent } from "../agent/AgentProcess.ts"
import { type AgentInfo, type Opened, open } from "../agent/Opening.ts"
import type { SeatConfiguration } from "../command/Configuration.ts"
import { readFirstInput } from "../launch/FirstInput.ts"
import { producerOf, writeRecord } from "../launch/RecordFile.ts"
import { makePermissionPath } from "../permission/PermissionPath.ts"
import { type EnvironmentView, findEndpoint, hasRig } from "../rig/Endpoint.ts"
import { makeRigClient } from "../rig/RigClient.ts"
import { describePrompt } from "../terminal/Block.ts"
import { makePane, type Pane, type PaneSink } from "../terminal/Pane.ts"
import { foreignPiece } from "../terminal/PaneText.ts"
import { type EndSignal, type SeatSignals, signalExitCode } from "../terminal/Signals.ts"
import type { SeatTerminal } from "../terminal/Terminal.ts"
import { type Conversation, makeConversation } from "./Conversation.ts"
import { exitCodes } from "./ExitCodes.ts"
import { readInput } from "./Input.ts"
import { badLine, exitLine, stderrText } from "./PaneLines.ts"
import { makePromptQueue } from "./PromptQueue.ts"
import { makeSecrecy } from "./Secrecy.ts"

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

/** Why a seat ends. */
type Ending =
  | { readonly _tag: "AgentEnded"; readonly exit: ChildExit; readonly betweenTurns: boolean }
  | { readonly _tag: "InputDone" }
  /** A signal, or the terminal hung up. */
  | { readonly _tag: "Closed"; readonly signal: EndSignal }
  | { readonly _tag: "GivenUp"; readonly code: number }

const cancelGraceMs = 500
const flushMs = 1_500
const silentOutputMs = 5_000
const paneFlushMs = 300
/** For what the agent's last message caused, when its exit follows at once. */
const settlingMs = 20
const shownBadLines = 3

const readText = (file: string): string | undefined =>
  Result.getOrUndefined(Result.try(() => readFileSync(file, "utf8")))

const codeOf = (ending: Ending): number => {
  switch (ending._tag) {
    case "AgentEnded":
      return ending.betweenTurns && ending.exit.code === 0 ? exitCodes.done : exitCodes.agentEnded
    case "InputDone":
      return exitCodes.done
    case "Closed":
      return signalExitCode(ending.signal)
    case "GivenUp":
      return ending.code
  }
}

/** What an opening that left no conversation ends with. */
const refusedCodes: Readonly<Record<Exclude<Opened["_tag"], "Opened">, number>> = {
  Failed: exitCodes.openFailed,
  Other: exitCodes.mismatch,
  Missing: exitCodes.missing,
  Unconfirmed: exitCodes.unconfirmed
}

const within = (effect: Effect.Effect<unknown>, ms: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOrElse(effect, { duration: ms, orElse: () => Effect.void }))

/** Lines for the first few of what may come without end. */
const firstFew = (most: number, say: (line: string) => void): ((line: string) => void) => {
  let count = 0
  return (line) => {
    if (++count <= most) say(line)
  }
}

/** Runs a seat; gives the exit code of the program. */
export const runSeat = (options: SeatOptions): Effect.Effect<number> => {
  const { configuration, environment, sink, terminal } = options
  const endpoint = findEndpoint(environment, readText)
  const agentSecrets = configuration.envNames.flatMap((name) => environment[name] ?? [])
  const secrecy = makeSecrecy(() => [...endpoint.secrets(), ...agentSecrets])
  const pane = makePane({ sink, redaction: secrecy, showsDraft: terminal.isTty })
  const paneWritten = Effect.callback<void>((resume) => pane.whenWritten(() => resume(Effect.void)))
  return Effect.scoped(sit({ ...options, endpoint, secrecy, pane })).pipe(
    Effect.tap(() => within(paneWritten, paneFlushMs))
  )
}

interface Parts extends SeatOptions {
  readonly endpoint: ReturnType<typeof findEndpoint>
  readonly secrecy: ReturnType<typeof makeSecrecy>
  readonly pane: Pane
}

const sit = (parts: Parts): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { configuration, endpoint, environment, pane, secrecy, terminal } = parts
    const names = configuration.names

    const ending = yield* Deferred.make<Ending>()
    const end = (why: Ending): void => void Deferred.doneUnsafe(ending, Exit.succeed(why))
    const hurried = yield* Deferred.make<void>()
    let signals = 0
    parts.signals.listen((signal) => {
      if (++signals > 1) Deferred.doneUnsafe(hurried, Exit.void)
      end({ _tag: "Closed", signal })
    })

    for (const remark of configuration.remarks) pane.line(`seat > ${remark}`)
    if (endpoint.problem !== undefined) pane.line(`seat > ${endpoint.problem}: activity off`)
    else if (!hasRig(environment)) pane.line("seat > no rig: activity off")

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

    /** A fault of this program ends the seat and says so; its cause may hold anything and is shown to nobody. */
    const guarded = <R>(effect: Effect.Effect<unknown, never, R>): Effect.Effect<void, never, R> =>
      effect.pipe(
        Effect.catchCause((cause) =>
          Effect.sync(() => {
            if (Cause.hasInterruptsOnly(cause)) return
            pane.line("error > internal fault: the seat ends")
            reporter.failed()
            end({ _tag: "GivenUp", code: exitCodes.internal })
          })
        ),
        Effect.asVoid
      )

    const inputEnded = yield* Deferred.make<void>()
    yield* readInput({
      terminal,
      event: conversation.input,
      draft: pane.draft,
      end: () =>
        terminal.isTty ? end({ _tag: "Closed", signal: "SIGHUP" }) : void Deferred.doneUnsafe(inputEnded, Exit.void)
    })

    const tellTrouble = (line: string): void => {
      pane.line(`error > ${line}`)
      reporter.failed()
    }

    if (configuration.firstInput !== undefined) {
      const first = readFirstInput(configuration.firstInput)
      if (Result.isSuccess(first)) prompts.offerFirst(first.success)
      else tellTrouble(first.failure)
    }

    const record = (
      content: { readonly nativeRef: string } | { readonly error: string },
      info: AgentInfo | undefined
    ): Effect.Effect<void> => {
      const wanted = configuration.record
      if (wanted === undefined) return Effect.void
      return writeRecord(wanted.path, {
        format: 1,
        attempt: wanted.attempt,
        harness: configuration.harness,
        ...content,
        producer: secrecy.text(producerOf(parts.version, info))
      }).pipe(
        Effect.catch(({ code }) =>
          Effect.sync(() => pane.line(`error > the launch record could not be written: ${foreignPiece(code)}`))
        )
      )
    }

    const loseQueued = (): void => {
      for (const text of prompts.drain()) pane.line(`lost > not sent: ${foreignPiece(describePrompt(text))}`)
    }

    /** An opening without a conversation: what is recorded, and what the seat ends with. */
    const refused = (outcome: Exclude<Opened, { readonly _tag: "Opened" }>, info: AgentInfo | undefined) =>
      Effect.gen(function* () {
        switch (outcome._tag) {
          case "Failed":
            tellTrouble(`no conversation was opened: ${foreignPiece(outcome.why)}`)
            break
          case "Other":
            yield* record({ nativeRef: outcome.nativeRef }, info)
            tellTrouble(`the agent opened another conversation: ${foreignPiece(outcome.nativeRef)}`)
            break
          case "Missing":
            yield* record({ error: "missing" }, info)
            tellTrouble(`the conversation does not exist: ${foreignPiece(outcome.why)}`)
            break
          case "Unconfirmed":
            yield* record({ error: "unconfirmed" }, info)
            tellTrouble(`the conversation is not confirmed: ${foreignPiece(outcome.why)}`)
            break
        }
        return refusedCodes[outcome._tag]
      })

    const resumeRef = configuration.resumeRef
    if (resumeRef === "") {
      const code = yield* refused({ _tag: "Unconfirmed", why: "the reference to reopen is empty" }, undefined)
      yield* within(queue.drained, flushMs)
      return code
    }

    pane.line(`seat > starting ${configuration.harness}`)
    const started = yield* Effect.result(startAgent({ configuration, environment, redact: secrecy.text }))
    if (Result.isFailure(started)) {
      tellTrouble(foreignPiece(started.failure.message))
      if (resumeRef !== undefined) yield* record({ error: "unconfirmed" }, undefined)
      loseQueued()
      yield* within(queue.drained, flushMs)
      return exitCodes.notStarted
    }
    const agent: AgentProcess = started.success
    const { child } = agent

    const sayBadLine = firstFew(shownBadLines, pane.line)
    parts.onComplaint(firstFew(shownBadLines, (text) => pane.line(`error > ${foreignPiece(text)}`)))

    /** From the first message to the last; completes only when no conversation was opened. */
    const converse = Effect.gen(function* () {
      const { agentMethods, connect } = yield* Effect.promise(() => import("../agent/AcpConnection.ts"))
      const connection: AcpConnection = yield* connect(child, {
        update: conversation.update,
        permission: permissions.ask,
        takeBack: permissions.takeBack,
        written: (method) => {
          if (method === agentMethods.session.prompt) reporter.accepted()
        },
        badLine: ({ bytes, sample }) => sayBadLine(badLine(bytes, sample))
      })
      yield* Effect.forkScoped(guarded(watchOutput(connection)))
      yield* Effect.forkScoped(guarded(watchExit(connection)))
      if (resumeRef !== undefined) conversation.reopening()
      const { info, outcome } = yield* open(connection, {
        methods: agentMethods,
        cwd: agent.cwd,
        version: parts.version,
        auth: configuration.auth,
        modelOption: configuration.modelOption,
        resumeRef,
        reopen: configuration.reopen,
        notFoundCodes: configuration.notFoundCodes,
        listIsComplete: configuration.listIsComplete,
        limitMs: configuration.openTimeoutSeconds * 1_000
      })
      if (outcome._tag !== "Opened") {
        end({ _tag: "GivenUp", code: yield* refused(outcome, info) })
        return
      }
      nativeRef = outcome.nativeRef
      yield* record({ nativeRef }, info)
      pane.line(`seat > ${outcome.resumed ? "resumed" : "ready"}: ${foreignPiece(nativeRef)}`)
      reporter.opened(prompts.size() > 0)
      return yield* conversation.open({ connection, methods: agentMethods, sessionId: nativeRef })
    })

    /** An agent that closed its output and stays cannot be talked to. */
    const watchOutput = (connection: AcpConnection): Effect.Effect<void> =>
      Effect.gen(function* () {
        yield* connection.closed
        yield* Effect.sleep(silentOutputMs)
        pane.line("error > the agent closed its connection and did not end: it is ended")
        yield* child.terminate
      })

    /** Before the conversation is open, the agent's exit is a failed opening and ends the seat as such. */
    const watchExit = (connection: AcpConnection): Effect.Effect<void> =>
      Effect.gen(function* () {
        const exit = yield* child.exit
        yield* connection.closed
        yield* Effect.sleep(settlingMs)
        if (conversation.isOpen()) end({ _tag: "AgentEnded", exit, betweenTurns: !conversation.isInTurn() })
      })

    const life = yield* Effect.forkScoped(guarded(converse))
    yield* Effect.forkScoped(
      guarded(
        Effect.andThen(
          Deferred.await(inputEnded),
          Effect.andThen(
            conversation.whenIdle,
            Effect.sync(() => end({ _tag: "InputDone" }))
          )
        )
      )
    )
    /** The agent's process is gone: tell it, and send what is left to be sent. */
    const afterExit = (exit: ChildExit): Effect.Effect<void> =>
      Effect.suspend(() => {
        permissions.exited()
        reporter.exited()
        pane.line(exitLine(exit), "always")
        for (const line of stderrText(child.stderrText())) pane.line(line)
        loseQueued()
        return within(Effect.all([queue.drained, permissions.drained], { concurrency: 2 }), flushMs)
      })

    const why = yield* Deferred.await(ending)
    if (why._tag === "Closed") {
      conversation.stop()
      yield* Effect.raceFirst(Effect.raceFirst(Effect.sleep(cancelGraceMs), child.exit), Deferred.await(hurried))
    }
    const finished = yield* Effect.forkScoped(Effect.flatMap(child.exit, afterExit))
    yield* agent.end(Deferred.await(hurried))
    yield* Fiber.join(finished)
    yield* Fiber.interrupt(life)
    return codeOf(why)
  })
