/**
 * Where a scripted session stands: a fold over its events, so that a turn goes on after a crash exactly where its journal
 * says (AGT-330, 11.2). The same fold runs over the journal when a session is taken up and over the turn's own events while
 * it plays.
 *
 * A response is complete once its `usage` with its id is there; a call has started with status `running` and has ended with
 * an output, an error, or `uncertain`.
 */
import type { EventPayload } from "@tackroom/protocol/events"

export interface PlayedCall {
  readonly callId: string
  started: boolean
  ended: boolean
}

export interface PlayingResponse {
  readonly id: string
  readonly attempt: number
  readonly calls: Array<PlayedCall>
  complete: boolean
}

/** Mutable inside; give it to `apply` only. */
export interface Progress {
  /** Completed responses of the session (AGT-330). */
  responses: number
  /** Completed compactions of the session. */
  compactions: number
  /** The session was labelled as scripted. */
  announced: boolean
  /** Tools that were allowed for the session. */
  readonly always: Set<string>
  /** Turns that were begun, the current one included. */
  turns: number
  turnId: string | undefined
  /** Completed responses of the turn. */
  rounds: number
  /** Withdrawn attempts at the response that comes next. */
  failedAttempts: number
  /** Text of the turn's last closed text part. */
  lastText: string | undefined
  response: PlayingResponse | undefined
}

export const emptyProgress = (): Progress => ({
  responses: 0,
  compactions: 0,
  announced: false,
  always: new Set(),
  turns: 0,
  turnId: undefined,
  rounds: 0,
  failedAttempts: 0,
  lastText: undefined,
  response: undefined
})

export const copyProgress = (progress: Progress): Progress => ({
  ...progress,
  always: new Set(progress.always),
  response:
    progress.response === undefined
      ? undefined
      : { ...progress.response, calls: progress.response.calls.map((call) => ({ ...call })) }
})

/** The code of the notice that labels a session (AGT-334). */
export const scriptedNotice = "scripted"

const enterTurn = (progress: Progress, turnId: string): void => {
  if (progress.turnId === turnId) return
  progress.turnId = turnId
  progress.turns += 1
  progress.rounds = 0
  progress.failedAttempts = 0
  progress.lastText = undefined
  progress.response = undefined
}

const callOf = (progress: Progress, toolCallId: string): PlayedCall | undefined =>
  progress.response?.calls.find((call) => call.callId === toolCallId)

const endCall = (progress: Progress, toolCallId: string): void => {
  const call = callOf(progress, toolCallId)
  if (call !== undefined) call.ended = true
}

/** Takes one event in. Events outside a turn, or after its end, have no `turnId`. */
export const applyEvent = (progress: Progress, event: EventPayload, turnId: string | undefined): void => {
  if (turnId !== undefined) enterTurn(progress, turnId)
  switch (event.type) {
    case "response-start":
      progress.response = { id: event.responseId, attempt: event.attempt ?? 1, calls: [], complete: false }
      return
    case "response-retracted": {
      if (progress.response === undefined || !event.responseIds.includes(progress.response.id)) return
      progress.response = undefined
      progress.failedAttempts += 1
      return
    }
    case "usage": {
      const response = progress.response
      if (response === undefined || response.complete) return
      if (event.observation?.providerObservationId !== response.id) return
      response.complete = true
      progress.responses += 1
      progress.rounds += 1
      progress.failedAttempts = 0
      return
    }
    case "tool-start":
      if (callOf(progress, event.toolCallId) !== undefined) return
      progress.response?.calls.push({ callId: event.toolCallId, started: false, ended: false })
      return
    case "tool-status": {
      const call = callOf(progress, event.toolCallId)
      if (call === undefined) return
      if (event.status === "running") call.started = true
      else if (event.status !== "pending") call.ended = true
      return
    }
    case "tool-output":
    case "tool-error":
      return endCall(progress, event.toolCallId)
    case "text-end":
      if (event.channel === "text") progress.lastText = event.text
      return
    case "session-compaction":
      if (event.phase === "completed") progress.compactions += 1
      return
    case "permission-resolved":
      if (event.decision === "allow_always") progress.always.add(event.tool)
      return
    case "harness-notice":
      if (event.code === scriptedNotice) progress.announced = true
      return
    default:
  }
}
