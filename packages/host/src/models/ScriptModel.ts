/**
 * The scripted provider, api `script` (run-protocol 27): a scenario played as a live model would answer, fault for fault.
 *
 * Owns the translation from the scenario's steps to parts and failures. It does not own the scenario file, which is read
 * when a session is created and kept with it (AGT-333), nor the count of responses, which is the journal's (AGT-330).
 *
 * Invariant: the same position and attempt give the same parts with the same ids, whatever happened before.
 */
import type { Scenario } from "@tackroom/protocol/scenario"
import { chunks, contextWindow as windowOf, play } from "@tackroom/sdk/scenario"
import type { Fault, PlayedResponse, ResponseKind, Step } from "@tackroom/sdk/scenario"
import { Effect, Stream } from "effect"
import type { Schema } from "effect"
import { disconnected, refused } from "./Classify.ts"
import { ModelFailure } from "./ModelFailure.ts"
import type { ModelPart, ModelRequest, ModelTokens } from "./ModelRequest.ts"
import { unreportedTokens } from "./ModelRequest.ts"

/** Where in its session a request stands. */
export interface ScriptPosition {
  readonly turnId: string
  readonly agentId: string
  readonly kind: ResponseKind
  /** Completed responses of this kind in the session's journal (AGT-330). */
  readonly completed: number
  /** The alias of a tool by its qualified name, undefined for a tool the session has not. */
  readonly aliasOf: (qualifiedName: string) => string | undefined
}

export interface ScriptConnection {
  readonly name: string
  readonly api: "script"
  readonly scenario: Scenario
}

/** The window a scenario states (AGT-194). */
export const scriptWindow = (connection: ScriptConnection): number => windowOf(connection.scenario)

const fault = (kind: ModelFailure["kind"], status: number, message: string, retryAfterMs: number | null = null) =>
  new ModelFailure({
    kind,
    status,
    retryAfterMs,
    errorClass: kind === "credential" ? "credential" : "model",
    message: `${message} (scripted)`
  })

/** The fault as a live provider would give it (AGT-331). */
export const faultOf = (name: Fault): ModelFailure => {
  switch (name) {
    case "rate_limit":
      return fault("retryable", 429, "The provider could not answer now (HTTP 429): rate limit", 1_000)
    case "server":
      return fault("retryable", 500, "The provider could not answer now (HTTP 500)")
    case "disconnect":
      return disconnected("The provider's stream broke off (scripted)")
    case "auth":
      return fault("credential", 401, "The provider refused the credentials (HTTP 401)")
    case "overflow":
      return fault("overflow", 400, "The request is larger than the model's context (HTTP 400)")
  }
}

const lastUserText = (request: ModelRequest): string => {
  for (const message of request.messages.toReversed()) if (message.role === "user") return message.text
  return ""
}

const isJsonObject = (value: Schema.Json): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const prefixes: { readonly [kind in ResponseKind]: string } = {
  response: "call",
  reviewer: "review",
  compaction: "compact"
}

/** The parts of a response, a delay where the next ones wait. */
const partsOf = (
  response: PlayedResponse,
  position: ScriptPosition
): ReadonlyArray<ModelPart | { readonly delayMs: number }> => {
  const out: Array<ModelPart | { readonly delayMs: number }> = []
  let part = -1
  let current: "text" | "thinking" | "call" | undefined
  let calls = 0
  let tokens: ModelTokens = unreportedTokens

  const say = (type: "text" | "thinking", text: string): void => {
    if (text === "") return
    if (current !== type) part += 1
    current = type
    for (const delta of chunks(text)) out.push({ type, part, delta })
  }

  const call = (step: Extract<Step, { readonly _tag: "Call" }>): void => {
    const args = step.arguments as Schema.Json
    current = "call"
    out.push({
      type: "call",
      callId: `${prefixes[position.kind]}_${position.turnId}_${position.completed}_${calls}`,
      tool: position.aliasOf(step.tool) ?? step.tool,
      argumentsText: JSON.stringify(args),
      arguments: args,
      ...(isJsonObject(args) ? {} : { problem: "not_an_object" as const })
    })
    calls += 1
  }

  for (const step of response.steps) {
    switch (step._tag) {
      case "Text":
        say("text", step.text)
        break
      case "Thinking":
        say("thinking", step.text)
        break
      case "Call":
        call(step)
        break
      case "Delay":
        out.push({ delayMs: step.ms })
        break
      case "Usage":
        tokens = { ...unreportedTokens, input: step.input, output: step.output }
        break
      default:
        break
    }
  }
  if (response.fault !== undefined) return out
  const reason = response.truncated ? "length" : calls > 0 ? "tool_calls" : "stop"
  out.push(
    { type: "usage", tokens },
    { type: "finish", reason, responseId: `script_${position.turnId}_${position.completed}` }
  )
  return out
}

/** One attempt of one request. */
export const stream = (
  request: ModelRequest,
  connection: ScriptConnection,
  position: ScriptPosition,
  attempt: number
): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.suspend(() => {
    const played = play(connection.scenario, {
      agent: position.agentId,
      kind: position.kind,
      completed: position.completed,
      attempt,
      userText: lastUserText(request)
    })
    if (played._tag === "Exhausted") return Stream.fail(refused(played.message))
    const parts = Stream.fromIterable(partsOf(played, position)).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((part) =>
        "delayMs" in part ? Effect.as(Effect.sleep(part.delayMs), []) : Effect.succeed<ReadonlyArray<ModelPart>>([part])
      ),
      Stream.flattenIterable
    )
    return played.fault === undefined ? parts : Stream.concat(parts, Stream.fail(faultOf(played.fault)))
  })
