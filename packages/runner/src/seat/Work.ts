/**
 * The work of a seat, from the first message to its agent to the last: connect, open, record, then turns without end. It
 * completes only when no conversation was opened. What its agent's silence or exit means for the seat is told through `end`.
 */
import { Effect, type Scope } from "effect"
import type { Reporter } from "../activity/Reporter.ts"
import type { AcpConnection } from "../agent/AcpConnection.ts"
import type { AgentProcess } from "../agent/AgentProcess.ts"
import { type AgentInfo, open } from "../agent/Opening.ts"
import type { SeatConfiguration } from "../command/Configuration.ts"
import type { Recorder } from "../launch/Recorder.ts"
import type { PermissionPath } from "../permission/PermissionPath.ts"
import type { Pane } from "../terminal/Pane.ts"
import { foreignPiece, wholeCharacters } from "../terminal/PaneText.ts"
import type { Conversation } from "./Conversation.ts"
import { type Ending, type NotOpened, notOpened } from "./Ending.ts"
import { badLine } from "./PaneLines.ts"
import type { PromptQueue } from "./PromptQueue.ts"

/** What a seat is made of before its agent is there. */
export interface SeatParts {
  readonly configuration: SeatConfiguration
  readonly version: string
  readonly pane: Pane
  readonly reporter: Reporter
  readonly prompts: PromptQueue
  readonly permissions: PermissionPath
  readonly conversation: Conversation
  readonly recorder: Recorder
  readonly end: (why: Ending) => void
}

const silentOutputMs = 5_000
/** For what the agent's last message caused, when its exit follows at once. */
const settlingMs = 20
const shownBadLines = 3

/** Tells and records an opening that left no conversation; the exit code that it means. */
export const giveUp = (
  { pane, recorder, reporter }: Pick<SeatParts, "pane" | "recorder" | "reporter">,
  outcome: NotOpened,
  agent: AgentInfo | undefined
): Effect.Effect<number> =>
  Effect.map(recorder.notOpened(outcome, agent), () => {
    const { code, words } = notOpened[outcome._tag]
    pane.line(
      `error > ${words}: ${foreignPiece(outcome._tag === "Other" ? outcome.nativeRef : outcome.why, wholeCharacters)}`
    )
    reporter.failed()
    return code
  })

/** An agent that closed its output and stays cannot be talked to. */
const watchOutput = ({ child }: AgentProcess, connection: AcpConnection, { pane }: SeatParts): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* connection.closed
    yield* Effect.sleep(silentOutputMs)
    pane.line("error > the agent closed its connection and did not end: it is ended")
    yield* child.terminate
  })

/** Before the conversation is open the agent's exit is a failed opening, and ends the seat as such. */
const watchExit = (
  { child }: AgentProcess,
  connection: AcpConnection,
  { conversation, end }: SeatParts
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const exit = yield* child.exit
    yield* connection.closed
    yield* Effect.sleep(settlingMs)
    if (conversation.isOpen()) end({ _tag: "AgentEnded", exit, betweenTurns: !conversation.isInTurn() })
  })

export const work = (
  agent: AgentProcess,
  parts: SeatParts,
  /** Told of the conversation's id as soon as it is known. */
  named: (nativeRef: string) => void
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { configuration, conversation, end, pane, permissions, prompts, recorder, reporter } = parts
    const { agentMethods, connect } = yield* Effect.promise(() => import("../agent/AcpConnection.ts"))
    let badLines = 0
    const connection = yield* connect(agent.child, {
      update: conversation.update,
      permission: permissions.ask,
      takeBack: permissions.takeBack,
      written: (method) => {
        if (method === agentMethods.session.prompt) reporter.accepted()
      },
      badLine: ({ bytes, sample }) => {
        if (++badLines <= shownBadLines) pane.line(badLine(bytes, sample))
      }
    })
    yield* Effect.forkScoped(watchOutput(agent, connection, parts))
    yield* Effect.forkScoped(watchExit(agent, connection, parts))

    const { resumeRef } = configuration
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
      end({ _tag: "GivenUp", code: yield* giveUp(parts, outcome, info) })
      return
    }
    named(outcome.nativeRef)
    yield* recorder.opened(outcome.nativeRef, info)
    pane.line(`seat > ${outcome.resumed ? "resumed" : "ready"}: ${foreignPiece(outcome.nativeRef, wholeCharacters)}`)
    reporter.opened(prompts.size() > 0)
    return yield* conversation.open({ connection, methods: agentMethods, sessionId: outcome.nativeRef })
  })
