/**
 * One turn of the native agent: rounds of request, response, calls, results (AGT-001 to AGT-013).
 *
 * It owns the order of a turn and its terminal event. Where it stands is read from the transcript, never from a variable:
 * a turn begun and a turn taken up after a crash run the same loop (HRN-260, RUN-520). It does not own the transcript's
 * fold, the policy, the wires of models, or the budget (the runtime's; the loop asks before each request).
 *
 * Failure: a model that fails for good ends the turn with `error`; a tool never does.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Effect, Random, Stream, type Schema } from "effect"
import type { ModelFailure } from "../models/ModelFailure.ts"
import type { FinishReason, ModelCall, ModelTokens } from "../models/ModelRequest.ts"
import { nextDelay } from "../models/Retry.ts"
import { needsPreview } from "../runs/Previews.ts"
import type { ToolCallsInput, TurnOutput } from "./CallEvents.ts"
import type { ModelTarget, SessionSetup, SessionTool, StreamModel } from "./SessionSetup.ts"
import { needsApproval, runCalls } from "./ToolCalls.ts"
import * as Transcript from "./Transcript.ts"

interface TurnParts extends Pick<ToolCallsInput, "context" | "execute"> {
  readonly transcript: Transcript.Transcript
  readonly output: TurnOutput
  readonly turnId: string
  readonly assistantMessageId: string
  readonly streamModel: StreamModel
  /** The runtime's word that another model round fits the turn's budget (D-28). */
  readonly roundFits: Effect.Effect<boolean>
}

export interface LoopInput extends TurnParts {
  /** Read anew at each step: the tools of a session's servers come and go. */
  readonly setup: Effect.Effect<SessionSetup, HarnessError>
}

interface StepInput extends TurnParts {
  readonly setup: SessionSetup
}

/** Runs the turn to its terminal event, from wherever its transcript stands. */
export const run = Effect.fnUntraced(function* (given: LoopInput): Effect.fn.Return<void, HarnessError> {
  const { output, transcript } = given
  const step = Effect.map(given.setup, (setup): StepInput => ({ ...given, setup }))
  const partial = Transcript.partialResponse(transcript)
  if (partial !== undefined) yield* retract(given, partial, "the host was restarted before the response was complete")
  while (true) {
    const response = Transcript.completedResponse(transcript)
    if (response !== undefined) {
      const input = yield* step
      if (response.ending === "cut") {
        return yield* output.emit(failure(input, "truncated", "the response was cut by the model's limit"))
      }
      if (response.ending === "declined") return yield* finish(input, "refusal")
      if (response.calls.length === 0) return yield* finish(input, "end_turn")
      yield* runCalls({ ...input, response })
    }
    const input = yield* step
    if (!(yield* input.roundFits)) {
      return yield* output.emit(failure(input, "budget", "the turn's budget is spent"))
    }
    if (!(yield* modelStep(input))) return
    // The response is durable before any of its calls is looked at (AGT-003).
    if ((Transcript.completedResponse(transcript)?.calls.length ?? 0) > 0) yield* output.durable
  }
})

const finish = (input: StepInput, reason: "end_turn" | "refusal") => {
  const last = Transcript.lastResponse(input.transcript)
  return input.output.emit({
    type: "finish",
    sessionId: input.setup.sessionId,
    assistantMessageId: input.assistantMessageId,
    reason,
    finalText: last === undefined ? "" : Transcript.finalText(last)
  })
}

const failure = (
  input: StepInput,
  code: "budget" | "truncated" | "harness_error",
  message: string,
  errorClass?: ModelFailure["errorClass"]
): HarnessEvent => ({
  type: "error",
  error: message,
  code,
  assistantMessageId: input.assistantMessageId,
  ...(errorClass === undefined ? {} : { errorClass })
})

const retract = (input: Pick<TurnParts, "output">, response: Transcript.ResponseEntry, reason: string) =>
  input.output.emit(
    ...response.calls
      .filter((call) => call.end === undefined)
      .map((call): HarnessEvent => ({
        type: "tool-error",
        toolCallId: call.callId,
        error: reason,
        code: "cancelled",
        metadata: { tool: call.alias, outcome: "not_run" }
      })),
    { type: "response-retracted", responseIds: [response.responseId], reason }
  )

const targetOf = (input: StepInput): ModelTarget =>
  input.transcript.turn?.fallback === true && input.setup.fallback !== undefined
    ? input.setup.fallback
    : input.setup.model

/** Asks until a response is complete. False when the turn ended here, with its terminal event emitted. */
const modelStep = Effect.fnUntraced(function* (input: StepInput) {
  const { output, setup, transcript } = input
  while (true) {
    const attempt = (transcript.turn?.failedAttempts ?? 0) + 1
    const result = yield* Effect.result(attemptStep(input, attempt))
    if (result._tag === "Success") return true

    const failed = result.failure
    const partial = Transcript.partialResponse(transcript)
    if (partial !== undefined) yield* retract(input, partial, failed.message)
    const tries = attempt - (transcript.turn?.attemptsBeforeFallback ?? 0)
    const delay = nextDelay(failed, tries, yield* Random.next)
    if (delay !== null) {
      yield* output.emit({ type: "session-retry", message: failed.message, attempt, delayMs: delay })
      yield* Effect.sleep(delay)
      continue
    }
    const mayFallBack = failed.kind === "retryable" || failed.kind === "disconnect"
    if (mayFallBack && setup.fallback !== undefined && transcript.turn?.fallback !== true) {
      yield* output.emit({
        type: "harness-notice",
        code: "model_fallback",
        severity: "warn",
        message: `${setup.model.model} could not be reached; ${setup.fallback.model} answers for the rest of this turn`,
        details: { from: { ...setup.model }, to: { ...setup.fallback } }
      })
      continue
    }
    yield* output.emit(
      failed.kind === "overflow"
        ? failure(input, "truncated", failed.message)
        : failure(input, "harness_error", failed.message, failed.errorClass)
    )
    return false
  }
})

const attemptStep = Effect.fnUntraced(function* (
  input: StepInput,
  attempt: number
): Effect.fn.Return<void, ModelFailure> {
  const { output, setup, transcript } = input
  const round = (transcript.turn?.rounds ?? 0) + 1
  const responseId = `${input.turnId}.${round}.${attempt}`
  const request = {
    instructions: setup.instructions,
    messages: Transcript.toMessages(transcript),
    tools: setup.tools.map(({ alias, description, schema }) => ({ alias, description, schema }))
  }
  yield* output.emit({ type: "response-start", responseId, attempt })

  const calls: Array<ModelCall> = []
  let open: { readonly partId: string; readonly channel: "text" | "thinking"; text: string } | undefined
  let tokens: ModelTokens | undefined
  let finished: { readonly reason: FinishReason; readonly replay: Schema.Json | undefined } | undefined

  const closePart = (): ReadonlyArray<HarnessEvent> => {
    if (open === undefined) return []
    const { partId, channel, text } = open
    open = undefined
    return [{ type: "text-end", messageId: input.assistantMessageId, partId, channel, text }]
  }

  yield* Stream.runForEachArray(
    input.streamModel({
      setup,
      target: targetOf(input),
      request,
      turnId: input.turnId,
      responseIndex: transcript.responses,
      attempt
    }),
    (parts) => {
      const events: Array<HarnessEvent> = []
      for (const part of parts) {
        switch (part.type) {
          case "text":
          case "thinking": {
            const partId = `${responseId}.${part.part}`
            if (open?.partId !== partId) {
              events.push(...closePart())
              open = { partId, channel: part.type, text: "" }
            }
            open.text += part.delta
            events.push({
              type: part.type === "text" ? "text-delta" : "thinking-delta",
              delta: part.delta,
              messageId: input.assistantMessageId,
              partId
            })
            break
          }
          case "call":
            calls.push(part)
            break
          case "usage":
            tokens = part.tokens
            break
          case "finish":
            finished = { reason: part.reason, replay: part.replay }
            break
        }
      }
      return output.emit(...events)
    }
  )

  const ending = endingOf(finished?.reason)
  const kept = ending === "whole" ? calls : []
  const diagnostics = Transcript.endingDiagnostics(ending)
  yield* output.emit(...closePart(), ...(yield* callEvents(input, kept, finished?.replay)), {
    type: "usage",
    observation: { kind: "delta", tokens: tokens ?? unreported, providerObservationId: responseId },
    ...(diagnostics === undefined ? {} : { diagnostics })
  })
})

const endingOf = (reason: FinishReason | undefined): Transcript.ResponseEnding =>
  reason === "length" ? "cut" : reason === "refusal" ? "declined" : "whole"

const unreported: ModelTokens = { input: null, output: null, reasoning: null, cache: { read: null, write: null } }

/** The calls of a response, before its usage makes it complete. What a provider must see again goes with the first. */
const callEvents = Effect.fnUntraced(function* (
  input: StepInput,
  calls: ReadonlyArray<ModelCall>,
  replay: Schema.Json | undefined
) {
  const taken = new Set<string>()
  const events: Array<HarnessEvent> = []
  for (const [index, call] of calls.entries()) {
    const toolCallId = Transcript.freshCallId(input.transcript, taken, call.callId)
    taken.add(toolCallId)
    const tool = input.setup.tools.find((tool) => tool.alias === call.tool)
    const qualifiedName = tool?.qualifiedName ?? call.tool
    const whole = yield* keepArguments(input, tool, call)
    const metadata = {
      ...(index === 0 && replay !== undefined ? { replay } : {}),
      ...(whole === undefined ? {} : { arguments_artifact_id: whole })
    }
    events.push(
      {
        type: "tool-start",
        toolCallId,
        toolName: call.tool,
        kind: tool?.source === "mcp" || tool?.source === "session" ? "mcp" : kindOf(qualifiedName),
        metadata: {
          qualified_name: qualifiedName,
          ...(tool?.category === undefined ? {} : { category: tool.category }),
          ...(call.problem === undefined ? {} : { problem: call.problem })
        }
      },
      {
        type: "tool-input",
        toolCallId,
        input: call.arguments,
        ...(Object.keys(metadata).length === 0 ? {} : { metadata })
      }
    )
  }
  return events
})

/**
 * Keeps the whole arguments of a call that a person will see as previews, as an artifact of their own (run-protocol 15).
 * It is named by the call's `tool-input`, so that it is found after a restart. Without it the previews must do.
 */
const keepArguments = Effect.fnUntraced(function* (input: StepInput, tool: SessionTool | undefined, call: ModelCall) {
  const { context, setup } = input
  if (tool === undefined || !needsApproval(setup, tool) || !needsPreview(call.arguments)) return undefined
  const bytes = new TextEncoder().encode(JSON.stringify(input.output.redact(call.arguments)))
  return yield* context.artifacts
    .put(setup.sessionId, "application/json", bytes)
    .pipe(
      Effect.catch((cause) =>
        Effect.as(Effect.logWarning("the whole arguments of a call could not be kept", cause), undefined)
      )
    )
})

const kinds = {
  "files.read": "read",
  "files.list": "list",
  "files.search": "search",
  "files.write": "edit",
  "files.edit": "edit",
  "shell.run": "shell",
  "web.fetch": "fetch",
  "web.search": "search",
  "plan.update": "todos",
  ask_user: "question"
} as const

const kindOf = (qualifiedName: string): (typeof kinds)[keyof typeof kinds] | "generic" =>
  Object.hasOwn(kinds, qualifiedName) ? kinds[qualifiedName as keyof typeof kinds] : "generic"
