/**
 * The words the native agent and every model provider share: what is asked of a model and what streams back.
 *
 * Owns the shapes only. It does not own how a provider's wire looks (`families/`), when to ask again (`Retry.ts`) or
 * what is journaled.
 *
 * `replay` is what a provider must see again in later rounds (signatures of thinking, encrypted reasoning): opaque JSON
 * that comes with `finish` and goes back, unchanged, with the assistant message it belongs to. Without it a request is
 * still good; the message's thinking is then left out.
 */
import type { Schema } from "effect"

/** One request: built from the stored definition and the journal only, so that a repeated step sends the same (AGT-002). */
export interface ModelRequest {
  readonly instructions: string
  readonly messages: ReadonlyArray<ModelMessage>
  readonly tools: ReadonlyArray<ModelTool>
  readonly maxOutputTokens?: number
}

export type ModelMessage = UserMessage | AssistantMessage | ToolMessage

export interface UserMessage {
  readonly role: "user"
  readonly text: string
}

export interface AssistantMessage {
  readonly role: "assistant"
  /** In the order in which the response gave them. */
  readonly parts: ReadonlyArray<AssistantPart>
  readonly replay?: Schema.Json
}

export type AssistantPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  | AssistantCall

export interface AssistantCall {
  readonly type: "call"
  readonly callId: string
  /** The alias of the tool, as in `ModelTool.alias`. */
  readonly tool: string
  /** What the model sent: an object, or the raw text when it was no JSON. */
  readonly arguments: Schema.Json
}

/** The results of one response's calls. Every call needs one before the next request. */
export interface ToolMessage {
  readonly role: "tool"
  readonly results: ReadonlyArray<ToolResult>
}

export interface ToolResult {
  readonly callId: string
  readonly tool: string
  readonly text: string
  readonly failed?: boolean
}

export interface ModelTool {
  /** Name on the provider's wire: `^[A-Za-z0-9_-]{1,64}$`. */
  readonly alias: string
  readonly description: string
  /** JSON Schema of the arguments, an object schema. */
  readonly schema: { readonly [key: string]: Schema.Json }
}

/** Tokens of one response; null = not reported. `input` excludes cached tokens, `output` includes reasoning. */
export interface ModelTokens {
  readonly input: number | null
  readonly output: number | null
  readonly reasoning: number | null
  readonly cache: { readonly read: number | null; readonly write: number | null }
}

/**
 * What a response streams. `part` counts the text and thinking parts of the response from 0, so that a consumer knows
 * where one ends: when another `part`, a call or `finish` follows. A stream that does not fail ends with exactly one
 * `usage` and one `finish`, in this order.
 */
export type ModelPart = ThinkingDelta | TextDelta | ModelCall | ModelUsage | ModelFinish

export interface ThinkingDelta {
  readonly type: "thinking"
  readonly part: number
  readonly delta: string
}

export interface TextDelta {
  readonly type: "text"
  readonly part: number
  readonly delta: string
}

/** A complete call. `problem` says why the arguments cannot be used; then `arguments` is the raw text. */
export interface ModelCall {
  readonly type: "call"
  readonly callId: string
  readonly tool: string
  readonly argumentsText: string
  readonly arguments: Schema.Json
  readonly problem?: "not_json" | "not_an_object" | "too_deep"
}

export interface ModelUsage {
  readonly type: "usage"
  readonly tokens: ModelTokens
}

/** `length`: cut by the output or context limit (AGT-009). `refusal`: the model or the provider's filter declined. */
export type FinishReason = "stop" | "tool_calls" | "length" | "refusal"

export interface ModelFinish {
  readonly type: "finish"
  readonly reason: FinishReason
  /** The provider's own id of the response. */
  readonly responseId?: string
  readonly replay?: Schema.Json
}

export const unreportedTokens: ModelTokens = {
  input: null,
  output: null,
  reasoning: null,
  cache: { read: null, write: null }
}
