/**
 * What the model has seen and answered in one session: a pure fold over the session's events (AGT-002, D-24).
 *
 * It owns the reading of the journal's vocabulary as a conversation, and where in a turn the loop stands: a response
 * without its `usage` event is not complete, a call without a dispatch record was not started, a call without an end is
 * still open. It does not own what is written (`ModelLoop`, `ToolCalls`) nor how a request looks on a provider's wire.
 *
 * Invariant: folding the journal from its start gives the same transcript as applying the events one by one while the
 * turn ran; so a model step repeated after a crash sends the same content.
 */
import type { EventPayload, PromptPart } from "@tackroom/protocol/events"
import type { Schema } from "effect"
import { forModel, renderOutput } from "../tools/Render.ts"
import type { AssistantPart, ModelMessage, ToolResult } from "../models/ModelRequest.ts"

/** How a call ended; `not_run` was never dispatched, `unknown` was and its end was not recorded (AGT-035). */
export type CallOutcome = "completed" | "failed" | "not_run" | "unknown"

/** One tool call of a response. */
export interface Call {
  readonly callId: string
  readonly alias: string
  readonly qualifiedName: string
  readonly input: Schema.Json
  /** Why the arguments could not be read; then `input` is the raw text. */
  readonly problem: string | undefined
  dispatched: boolean
  /** The journal says already that the tool's binding changed (AGT-121). */
  noticed: boolean
  end: { readonly outcome: CallOutcome; readonly text: string } | undefined
}

interface UserEntry {
  readonly role: "user"
  readonly text: string
}

/** One response: complete once its usage is recorded. */
export interface ResponseEntry {
  readonly role: "assistant"
  readonly responseId: string
  readonly turnId: string | undefined
  readonly parts: Array<{ readonly partId: string; readonly type: "text" | "thinking"; text: string }>
  readonly calls: Array<Call>
  replay: Schema.Json | undefined
  complete: boolean
  ending: ResponseEnding
}

/** How the model ended a response: cut by a limit (AGT-009) or declined, else by itself. */
export type ResponseEnding = "whole" | "cut" | "declined"

/** Kept as a diagnostic of the usage event that completes the response, so that a crash behind it changes nothing. */
const endingCodes = { cut: "response_truncated", declined: "response_declined" } as const

/** The diagnostics of the usage event of a response with this ending. */
export const endingDiagnostics = (ending: ResponseEnding) =>
  ending === "whole"
    ? undefined
    : [
        {
          code: endingCodes[ending],
          message: ending === "cut" ? "the response was cut by the model's limit" : "the model declined to answer"
        }
      ]

/** Where the running turn stands. */
export interface TurnProgress {
  readonly turnId: string
  /** Completed responses of this turn. */
  rounds: number
  /** Attempts of the current round that were retracted, whichever model was asked. */
  failedAttempts: number
  /** Those of them before the fallback model took over. */
  attemptsBeforeFallback: number
  /** The fallback model has taken over for the rest of the turn (AGT-007). */
  fallback: boolean
}

/** The fold's state. Mutable inside; give it to `apply` only. */
export interface Transcript {
  readonly entries: Array<UserEntry | ResponseEntry>
  /** Completed responses of the session: the number of the next scripted one (AGT-330). */
  responses: number
  turn: TurnProgress | undefined
  readonly callIds: Set<string>
}

export const empty = (): Transcript => ({ entries: [], responses: 0, turn: undefined, callIds: new Set() })

const promptText = (parts: ReadonlyArray<PromptPart>): string =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const member = (value: unknown, key: string): unknown =>
  isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined

/** The response under way, or the last one. */
export const lastResponse = (transcript: Transcript): ResponseEntry | undefined => {
  const last = transcript.entries.at(-1)
  return last?.role === "assistant" ? last : undefined
}

/** The response of the running turn that is complete and may hold calls to run. */
export const completedResponse = (transcript: Transcript): ResponseEntry | undefined => {
  const last = lastResponse(transcript)
  return last !== undefined && last.complete && last.turnId === transcript.turn?.turnId ? last : undefined
}

/** A response of the running turn that a crash or a failed attempt left incomplete. */
export const partialResponse = (transcript: Transcript): ResponseEntry | undefined => {
  const last = lastResponse(transcript)
  return last !== undefined && !last.complete ? last : undefined
}

const findCall = (transcript: Transcript, callId: string): Call | undefined => {
  for (let index = transcript.entries.length - 1; index >= 0; index--) {
    const entry = transcript.entries[index]
    if (entry?.role !== "assistant") continue
    const call = entry.calls.find((call) => call.callId === callId)
    if (call !== undefined) return call
  }
  return undefined
}

const part = (response: ResponseEntry, partId: string, type: "text" | "thinking") => {
  const last = response.parts.at(-1)
  if (last?.partId === partId) return last
  const found = response.parts.find((part) => part.partId === partId)
  if (found !== undefined) return found
  const made = { partId, type, text: "" }
  response.parts.push(made)
  return made
}

const qualified = (metadata: unknown): string | undefined => {
  const name = member(metadata, "qualified_name")
  return typeof name === "string" ? name : undefined
}

const outcomeOf = (metadata: unknown, otherwise: CallOutcome): CallOutcome => {
  const outcome = member(metadata, "outcome")
  return outcome === "completed" || outcome === "failed" || outcome === "not_run" || outcome === "unknown"
    ? outcome
    : otherwise
}

const unknownText = (reason: unknown): string =>
  `The outcome of this call is unknown: it was started and its end was not recorded${
    typeof reason === "string" ? ` (${reason})` : ""
  }. It may have had its effect, wholly or in part. It was not run again.`

const errorText = (outcome: CallOutcome, error: string): string =>
  outcome === "not_run" ? `Not run: ${error}` : `Failed: ${error}`

/** Folds one event in. Events that are no part of the conversation change nothing. */
export const apply = (transcript: Transcript, event: EventPayload, turnId: string | undefined): void => {
  switch (event.type) {
    case "user-message":
      transcript.entries.push({ role: "user", text: promptText(event.parts) })
      return
    case "turn-start":
      transcript.turn = {
        turnId: turnId ?? "",
        rounds: 0,
        failedAttempts: 0,
        attemptsBeforeFallback: 0,
        fallback: false
      }
      return
    case "response-start":
      transcript.entries.push({
        role: "assistant",
        responseId: event.responseId,
        turnId,
        parts: [],
        calls: [],
        replay: undefined,
        complete: false,
        ending: "whole"
      })
      return
    case "text-delta":
    case "thinking-delta": {
      const response = partialResponse(transcript)
      if (response !== undefined) {
        part(response, event.partId, event.type === "text-delta" ? "text" : "thinking").text += event.delta
      }
      return
    }
    case "text-end": {
      const response = partialResponse(transcript)
      if (response !== undefined) part(response, event.partId, event.channel).text = event.text
      return
    }
    case "response-retracted": {
      const last = lastResponse(transcript)
      if (last === undefined || !event.responseIds.includes(last.responseId)) return
      transcript.entries.pop()
      if (transcript.turn !== undefined) transcript.turn.failedAttempts += 1
      return
    }
    case "tool-start": {
      const response = partialResponse(transcript)
      if (response === undefined || response.calls.some((call) => call.callId === event.toolCallId)) return
      const problem = member(event.metadata, "problem")
      response.calls.push({
        callId: event.toolCallId,
        alias: event.toolName,
        qualifiedName: qualified(event.metadata) ?? event.toolName,
        input: null,
        problem: typeof problem === "string" ? problem : undefined,
        dispatched: false,
        noticed: false,
        end: undefined
      })
      transcript.callIds.add(event.toolCallId)
      return
    }
    case "tool-input": {
      const response = partialResponse(transcript)
      const index = response?.calls.findIndex((call) => call.callId === event.toolCallId) ?? -1
      const call = response?.calls[index]
      if (response === undefined || call === undefined) return
      response.calls[index] = { ...call, input: event.input as Schema.Json }
      const replay = member(event.metadata, "replay")
      if (replay !== undefined) response.replay = replay as Schema.Json
      return
    }
    case "usage": {
      const response = partialResponse(transcript)
      if (response === undefined || event.observation === undefined) return
      response.complete = true
      const codes = event.diagnostics?.map(({ code }) => code) ?? []
      if (codes.includes(endingCodes.cut)) response.ending = "cut"
      if (codes.includes(endingCodes.declined)) response.ending = "declined"
      transcript.responses += 1
      if (transcript.turn !== undefined) {
        transcript.turn.rounds += 1
        transcript.turn.failedAttempts = 0
        transcript.turn.attemptsBeforeFallback = 0
      }
      return
    }
    case "tool-status": {
      const call = findCall(transcript, event.toolCallId)
      if (call === undefined) return
      if (event.status === "running" && member(event.metadata, "dispatch") === true) call.dispatched = true
      if (event.status === "uncertain") {
        call.end ??= { outcome: "unknown", text: forModel(unknownText(member(event.metadata, "reason"))) }
      }
      return
    }
    case "tool-output": {
      const call = findCall(transcript, event.toolCallId)
      if (call !== undefined) {
        call.end ??= {
          outcome: outcomeOf(event.metadata, "completed"),
          text: forModel(renderOutput(call.qualifiedName, event.output, event.attachments))
        }
      }
      return
    }
    case "tool-error": {
      const call = findCall(transcript, event.toolCallId)
      if (call === undefined) return
      const outcome = outcomeOf(event.metadata, call.dispatched ? "failed" : "not_run")
      call.end ??= { outcome, text: forModel(errorText(outcome, event.error)) }
      return
    }
    case "harness-notice": {
      if (event.code === "model_fallback" && transcript.turn !== undefined) {
        transcript.turn.fallback = true
        transcript.turn.attemptsBeforeFallback = transcript.turn.failedAttempts
      }
      const callId = event.code === "binding_changed" ? member(event.details, "tool_call_id") : undefined
      const call = typeof callId === "string" ? findCall(transcript, callId) : undefined
      if (call !== undefined) call.noticed = true
      return
    }
    case "finish":
    case "cancelled":
    case "error": {
      transcript.turn = undefined
      const last = partialResponse(transcript)
      if (last === undefined) return
      if (last.parts.some((part) => part.type === "text" && part.text !== "") || last.calls.length > 0) {
        last.complete = true
      } else transcript.entries.pop()
      return
    }
    default:
      return
  }
}

const resultOf = (call: Call): ToolResult => {
  const end = call.end ?? { outcome: "not_run" as const, text: "Not run: the turn ended before this call." }
  return {
    callId: call.callId,
    tool: call.alias,
    text: end.text,
    ...(end.outcome === "completed" ? {} : { failed: true })
  }
}

/** The conversation as the next request sends it. */
export const toMessages = (transcript: Transcript): ReadonlyArray<ModelMessage> =>
  transcript.entries.flatMap((entry): ReadonlyArray<ModelMessage> => {
    if (entry.role === "user") return [{ role: "user", text: entry.text }]
    if (!entry.complete) return []
    const parts: Array<AssistantPart> = entry.parts.flatMap((part): ReadonlyArray<AssistantPart> =>
      part.text === "" ? [] : [{ type: part.type, text: part.text }]
    )
    for (const call of entry.calls) {
      parts.push({ type: "call", callId: call.callId, tool: call.alias, arguments: call.input })
    }
    if (parts.length === 0) return []
    const assistant: ModelMessage = {
      role: "assistant",
      parts,
      ...(entry.replay === undefined ? {} : { replay: entry.replay })
    }
    return entry.calls.length === 0 ? [assistant] : [assistant, { role: "tool", results: entry.calls.map(resultOf) }]
  })

/** The text that a turn ends with: the last text part of its response, empty when there is none (AGT-010). */
export const finalText = (response: ResponseEntry): string =>
  response.parts.findLast((part) => part.type === "text")?.text ?? ""

/** An id for a call that no other call of the session has: the model's own where it is free. */
export const freshCallId = (transcript: Transcript, taken: ReadonlySet<string>, wanted: string): string => {
  const base = /^[A-Za-z0-9_.:-]{1,120}$/.test(wanted) ? wanted : "call"
  let candidate = base
  for (let n = 2; transcript.callIds.has(candidate) || taken.has(candidate); n++) candidate = `${base}.${n}`
  return candidate
}
