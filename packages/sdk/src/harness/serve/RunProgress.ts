/**
 * What is known of a run after some of its lines, and the steps that its text takes: a response begins, says something, is
 * complete or void (serve-mode 4.3). Pure.
 */
import type { HarnessEvent } from "@tackroom/protocol/events"

/** A call of the run, as far as it was told. */
export interface Call {
  readonly id: string
  readonly name: string
  readonly state: "ready" | "running" | "ended"
}

/** What is known of a run after some of its lines. */
export interface RunProgress {
  readonly turnId: string
  readonly assistantMessageId: string
  readonly sessionId: string
  /** The program tells how each call ends. */
  readonly hasToolStatus: boolean
  /** Responses that began. */
  readonly rounds: number
  /** The attempt at the current response; 0 between responses. */
  readonly attempt: number
  /** The usage of the current response was told: its text is complete, its calls may still come. */
  readonly isCounted: boolean
  /** Attempts that the last response took, when it was void and comes again. */
  readonly failedAttempts: number
  /** Number of the current part; a part ends with its response or before a call. */
  readonly part: number
  readonly open: "text" | "thinking" | undefined
  readonly hasText: boolean
  readonly calls: ReadonlyArray<Call>
  /** Names that were announced and have no call yet. */
  readonly announced: ReadonlyArray<string>
}

/** A run before its first line. */
export const newRun = (
  of: Pick<RunProgress, "assistantMessageId" | "hasToolStatus" | "sessionId" | "turnId">
): RunProgress => ({
  ...of,
  rounds: 0,
  attempt: 0,
  isCounted: false,
  failedAttempts: 0,
  part: 0,
  open: undefined,
  hasText: false,
  calls: [],
  announced: []
})

export interface Translated {
  readonly state: RunProgress
  readonly events: ReadonlyArray<HarnessEvent>
}

export const only = (state: RunProgress, ...events: ReadonlyArray<HarnessEvent>): Translated => ({ state, events })

export const andThen = (before: Translated, next: (state: RunProgress) => Translated): Translated => {
  const after = next(before.state)
  return { state: after.state, events: [...before.events, ...after.events] }
}

const responseId = (state: RunProgress): string => `${state.turnId}.${state.rounds}.${state.attempt}`

/** A response that says something has begun (rounds have no line of their own). */
export const respond = (state: RunProgress): Translated => {
  if (state.attempt > 0) return only(state)
  const isRepeat = state.failedAttempts > 0
  const next = {
    ...state,
    rounds: isRepeat ? state.rounds : state.rounds + 1,
    attempt: state.failedAttempts + 1,
    open: undefined
  }
  return only(next, { type: "response-start", responseId: responseId(next), attempt: next.attempt })
}

/** The current response is complete; the next word begins another. */
export const responded = (state: RunProgress): RunProgress => ({
  ...state,
  attempt: 0,
  isCounted: false,
  failedAttempts: 0,
  open: undefined
})

export const say = (state: RunProgress, channel: "text" | "thinking", delta: string): Translated =>
  andThen(respond(state.isCounted ? responded(state) : state), (begun) => {
    const part = begun.open === channel ? begun.part : begun.part + 1
    const next = { ...begun, part, open: channel, hasText: begun.hasText || channel === "text" }
    return only(next, {
      type: channel === "text" ? "text-delta" : "thinking-delta",
      delta,
      messageId: state.assistantMessageId,
      partId: partId(next)
    })
  })

const partId = (state: RunProgress): string => `${state.turnId}.p${state.part}`

export const replaceText = (state: RunProgress, channel: "text" | "thinking", text: string): Translated => {
  const begun =
    state.open === channel ? only(state) : andThen(respond(state), (next) => only({ ...next, part: next.part + 1 }))
  return andThen(begun, (next) =>
    only(
      { ...next, open: undefined, hasText: next.hasText || channel === "text" },
      { type: "text-end", messageId: state.assistantMessageId, partId: partId(next), channel, text }
    )
  )
}

/** What was said since the response began is void; calls of it that did not begin are, too. */
export const retried = (state: RunProgress): Translated => {
  if (state.attempt === 0) return only({ ...state, announced: [] })
  const voided = state.calls.filter((call) => call.state === "ready")
  const next = {
    ...state,
    attempt: 0,
    failedAttempts: state.attempt,
    open: undefined,
    announced: [],
    calls: state.calls.map((call) => (call.state === "ready" ? { ...call, state: "ended" as const } : call))
  }
  return only(
    next,
    ...voided.map((call): HarnessEvent => ({
      type: "tool-error",
      toolCallId: call.id,
      error: "The response with this call was withdrawn.",
      code: "cancelled"
    })),
    { type: "response-retracted", responseIds: [responseId(state)], reason: "the program asks its model again" }
  )
}
