/**
 * Plays one turn of a scenario: responses until one holds no call (AGT-335), with faults, retries, compaction and questions
 * as a live harness would show them. Every wait is on the Effect clock, so a turn under a test clock is deterministic
 * (HRN-280).
 *
 * It emits exactly one terminal event (HRN-009) unless it is interrupted; who interrupts it says how the turn ended.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent, PromptInput } from "@tackroom/protocol/events"
import { isTerminal } from "@tackroom/protocol/events"
import { type Scenario, scenarioEvent } from "@tackroom/protocol/scenario"
import { Effect, Result } from "effect"
import { type CallStep, chunks, type Fault, play, type PlayedResponse, type Step } from "../../scenario/index.ts"
import type { HarnessContext, TurnInput } from "../Harness.ts"
import { announceCall, callId, playCalls, type TurnOutput } from "./CallPlayer.ts"
import { type PlayingResponse, type Progress, scriptedNotice } from "./Progress.ts"

export interface TurnPlayerInput extends TurnOutput {
  readonly context: HarnessContext
  readonly turn: TurnInput
  readonly progress: Progress
  readonly scenario: Scenario
  /** The turn plays the scenario from its start, whatever was played before: a command asked for it. */
  readonly fromStart: boolean
  readonly mode: "ask" | "auto" | "full"
  /** Messages that were steered in since the last call of this. */
  readonly takeSteered: () => ReadonlyArray<PromptInput>
  /** Called before the terminal event: from now on nothing is taken in. */
  readonly closing: () => void
}

/** Retries of one request after faults that pass, and the waits before them in milliseconds (AGT-006). */
const retryDelays = [1000, 2000, 4000, 8000] as const

const faultMessages: Readonly<Record<Fault, string>> = {
  rate_limit: "The scripted provider is limiting requests (429).",
  server: "The scripted provider had an internal error (500).",
  disconnect: "The connection to the scripted provider broke.",
  auth: "The scripted provider refused the credentials (401).",
  overflow: "The request does not fit the scripted model's context window."
}

export const textOfPrompt = (prompt: PromptInput): string =>
  prompt.text ?? (prompt.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")

const ended = "ended"
type Ended = typeof ended

/** Streams text parts: neighbouring steps of one channel are one part. */
class Parts {
  #count = 0
  #open: { readonly channel: "text" | "thinking"; readonly partId: string; text: string } | undefined
  readonly #responseId: string
  readonly #messageId: string

  constructor(responseId: string, messageId: string) {
    this.#responseId = responseId
    this.#messageId = messageId
  }

  add(channel: "text" | "thinking", text: string): ReadonlyArray<HarnessEvent> {
    const closed = this.#open?.channel === channel ? [] : this.close()
    const part = this.#open ?? { channel, partId: `${this.#responseId}.${++this.#count}`, text: "" }
    this.#open = part
    part.text += text
    const type = channel === "text" ? "text-delta" : "thinking-delta"
    return [
      ...closed,
      ...chunks(text).map((delta) => ({ type, delta, messageId: this.#messageId, partId: part.partId }) as const)
    ]
  }

  close(): ReadonlyArray<HarnessEvent> {
    const part = this.#open
    this.#open = undefined
    if (part === undefined) return []
    const { partId, channel, text } = part
    return [{ type: "text-end", messageId: this.#messageId, partId, channel, text }]
  }
}

/** One turn, started or taken up again: the difference is what `progress` already knows. */
export const playTurn = (input: TurnPlayerInput): Effect.Effect<void, HarnessError> => {
  const { turn, progress, scenario, emit } = input
  const sessionId = turn.binding.sessionId
  const assistantMessageId = turn.assistantMessageId
  let userText = textOfPrompt(turn.prompt)

  const end = (event: HarnessEvent): Effect.Effect<Ended> =>
    Effect.suspend(() => {
      input.closing()
      return Effect.as(emit(...incorporated(), event), ended)
    })

  const fail = (
    code: Extract<HarnessEvent, { type: "error" }>["code"],
    error: string,
    more: Partial<Extract<HarnessEvent, { type: "error" }>> = {}
  ): Effect.Effect<Ended> => end({ type: "error", error, code, assistantMessageId, ...more })

  const incorporated = (): ReadonlyArray<HarnessEvent> =>
    input.takeSteered().flatMap((prompt) => {
      userText = textOfPrompt(prompt)
      return prompt.messageId === undefined
        ? []
        : [{ type: "input-incorporated" as const, messageId: prompt.messageId }]
    })

  /** The response that number `completed` of the session, or of the turn when a command started it from the top. */
  const respond = (completedInSession: number, completedInTurn: number, attempt: number) =>
    play(scenario, {
      agent: turn.config.agent,
      completed: input.fromStart ? completedInTurn : completedInSession,
      attempt,
      userText
    })

  const announce = Effect.suspend(() => {
    if (progress.announced) return Effect.void
    const line = Array.from((textOfPrompt(turn.prompt).split("\n")[0] ?? "").trim())
      .slice(0, 68)
      .join("")
    return emit(
      {
        type: "harness-notice",
        code: scriptedNotice,
        severity: "info",
        message: `Scripted: this session plays the scenario "${scenario.name}"; no model is asked.`,
        details: { scenario: scenario.name }
      },
      {
        type: "session-title",
        title: line === "" ? `${scenario.name} (scripted)` : `${line} (scripted)`,
        titleSource: "harness"
      }
    )
  })

  const retract = (response: PlayingResponse, reason: string): ReadonlyArray<HarnessEvent> => [
    ...response.calls
      .filter((call) => !call.ended)
      .map((call) => ({
        type: "tool-error" as const,
        toolCallId: call.callId,
        error: "The response with this call was withdrawn.",
        code: "cancelled" as const
      })),
    { type: "response-retracted", responseIds: [response.id], reason }
  ]

  const askQuestion = (id: string, step: Extract<Step, { _tag: "Question" }>) =>
    input.context.ask
      .question({ sessionId, turnId: turn.turnId, nativeRequestId: id, questions: [step.question] })
      // A turn that is being cancelled plays on to nothing: its end is the cancel's.
      .pipe(Effect.catchTag("Withdrawn", ({ reason }) => (reason === "cancelled" ? Effect.never : Effect.void)))

  const exit = (code: number): Effect.Effect<Ended> =>
    Effect.andThen(
      emit({
        type: "process-status",
        processId: `${input.context.instanceId}.scripted`,
        role: "harness",
        state: "exited",
        code
      }),
      fail("harness_process_exited", `The scripted harness exited with code ${code}.`, {
        errorClass: "harness",
        process: { code }
      })
    )

  /** Streams what a response says; its calls are shown and played later. */
  const stream = Effect.fnUntraced(function* (responseId: string, played: PlayedResponse) {
    const parts = new Parts(responseId, assistantMessageId)
    let calls = 0
    const tokens = { input: 0, output: 0, reported: false }
    for (const [index, step] of played.steps.entries()) {
      const steered = incorporated()
      if (steered.length > 0) yield* emit(...steered)
      switch (step._tag) {
        case "Text":
          yield* emit(...parts.add("text", step.text))
          break
        case "Thinking":
          yield* emit(...parts.add("thinking", step.text))
          break
        case "Delay":
          yield* input.wait(step.ms)
          break
        case "Call":
          yield* emit(...parts.close(), ...announceCall(callId(responseId, calls), step))
          calls += 1
          break
        case "Question":
          yield* emit(...parts.close())
          yield* input.durable
          yield* askQuestion(`${turn.turnId}.${progress.rounds + 1}.q${index + 1}`, step)
          break
        case "Plan":
          yield* emit(...parts.close(), { type: "todo-update", todos: step.items })
          break
        case "Usage":
          tokens.input += step.input
          tokens.output += step.output
          tokens.reported = true
          break
        case "Event": {
          const made = scenarioEvent(step.event, {
            sessionId,
            assistantMessageId,
            messageId: step.event.type === "input-incorporated" ? turn.messageId : assistantMessageId
          })
          if (Result.isFailure(made)) {
            const message = `The scenario's event ${step.event.type} cannot be emitted: ${made.failure}`
            yield* emit({ type: "harness-notice", code: "scenario_event_invalid", severity: "warn", message })
          } else if (isTerminal(made.success)) {
            yield* emit(...parts.close())
            return yield* end(made.success)
          } else yield* emit(made.success)
          break
        }
        case "Exit":
          // After calls the process ends with them, not before.
          if (calls > 0) break
          yield* emit(...parts.close())
          return yield* exit(step.code)
        default:
      }
    }
    yield* emit(...parts.close())
    return tokens
  })

  const retry = Effect.fnUntraced(function* (response: PlayingResponse, fault: Fault) {
    const message = faultMessages[fault]
    yield* emit(...retract(response, message))
    const attempt = progress.failedAttempts
    const delayMs = retryDelays[attempt - 1]
    if (delayMs === undefined) {
      return yield* fail("harness_error", message, { errorClass: fault === "rate_limit" ? "usage_limit" : "model" })
    }
    yield* emit({ type: "session-retry", message, attempt, delayMs })
    yield* input.wait(delayMs)
    return undefined
  })

  /** Makes room once, as a live harness would, when the scenario says with what (AGT-193). */
  const compact = Effect.fnUntraced(function* (response: PlayingResponse) {
    const played = play(scenario, { kind: "compaction", completed: progress.compactions })
    if (played._tag === "Exhausted" || scenario.compaction === undefined) {
      return yield* fail("truncated", faultMessages.overflow)
    }
    yield* emit(...retract(response, faultMessages.overflow), {
      type: "session-compaction",
      phase: "started",
      reason: "overflow"
    })
    for (const step of played.steps) if (step._tag === "Delay") yield* input.wait(step.ms)
    const summary = played.steps.flatMap((step) => (step._tag === "Text" ? [step.text] : [])).join("")
    yield* emit({ type: "session-compaction", phase: "completed", reason: "overflow", summary })
    return undefined
  })

  const onFault = (response: PlayingResponse, fault: Fault): Effect.Effect<Ended | undefined> => {
    if (fault === "auth") return fail("harness_error", faultMessages.auth, { errorClass: "credential" })
    return fault === "overflow" ? compact(response) : retry(response, fault)
  }

  const request = Effect.fnUntraced(function* () {
    if (!(yield* turn.roundFits)) return yield* fail("budget", "The turn's budget of rounds or tokens is spent.")
    const attempt = progress.failedAttempts + 1
    const played = respond(progress.responses, progress.rounds, attempt)
    if (played._tag === "Exhausted") return yield* fail("harness_error", played.message, { errorClass: "model" })
    const responseId = `${turn.turnId}.${progress.rounds + 1}.${attempt}`
    yield* emit({ type: "response-start", responseId, attempt })
    const said = yield* stream(responseId, played)
    if (said === ended) return ended
    const response = progress.response
    if (played.fault !== undefined && response !== undefined) return yield* onFault(response, played.fault)
    yield* emit({
      type: "usage",
      observation: {
        kind: "delta",
        tokens: {
          input: said.reported ? said.input : null,
          output: said.reported ? said.output : null,
          reasoning: null,
          cache: { read: null, write: null }
        },
        providerObservationId: responseId
      }
    })
    return played.truncated ? yield* fail("truncated", "The scripted response was cut by the output limit.") : undefined
  })

  const callsOf = (played: PlayedResponse): ReadonlyArray<CallStep> =>
    played.steps.flatMap((step) => (step._tag === "Call" ? [step] : []))

  /** What follows a complete response: its calls, the end of its process, or the end of the turn. */
  const follow = Effect.fnUntraced(function* (response: PlayingResponse) {
    const played = respond(progress.responses - 1, progress.rounds - 1, response.attempt)
    const steps = played._tag === "Exhausted" ? [] : callsOf(played)
    if (played._tag === "Exhausted" || steps.length === 0) {
      const finalText = progress.lastText
      return yield* end({
        type: "finish",
        sessionId,
        assistantMessageId,
        reason: "end_turn",
        ...(finalText === undefined ? {} : { finalText })
      })
    }
    const last = played.steps.at(-1)
    const exits = last?._tag === "Exit" ? last.code : undefined
    yield* playCalls(
      { ...input, sessionId, turnId: turn.turnId, endsOpen: exits !== undefined },
      response.id,
      steps,
      response.calls
    )
    return exits === undefined ? undefined : yield* exit(exits)
  })

  return Effect.gen(function* () {
    yield* announce
    const left = progress.response
    if (left !== undefined && !left.complete) {
      yield* emit(...retract(left, "The harness was restarted before the response was complete."))
    }
    for (;;) {
      const response = progress.response
      const open = response !== undefined && response.complete
      const settled = open && response.calls.length > 0 && response.calls.every((call) => call.ended)
      const outcome: Ended | undefined = open && !settled ? yield* follow(response) : yield* request()
      if (outcome === ended) return
    }
  })
}
