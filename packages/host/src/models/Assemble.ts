/**
 * Makes our parts of what a client library streams, for one response.
 *
 * Owns numbering of parts, the judgement of call arguments, the order `usage`, `finish`, and the replay. It owns no
 * I/O: `push` takes one library part and gives ours, or the failure that ends the response. Whatever a library sends
 * that we did not ask for (sources, files, tools of the provider) is left out.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { isDeeperThan } from "@tackroom/protocol/text"
import { Result } from "effect"
import type { Schema } from "effect"
import { notWhatTheWirePromises, streamFailureOf } from "./Classify.ts"
import type { FailureContext } from "./Classify.ts"
import type { ModelFailure } from "./ModelFailure.ts"
import type { FinishReason, ModelCall, ModelPart } from "./ModelRequest.ts"
import { optionsOf, replayOf } from "./Prompt.ts"
import type { ReplayOwner, ReplayPart } from "./Prompt.ts"
import { tokensOf } from "./Usage.ts"

export interface ResponseAssembler {
  readonly push: (part: LanguageModelV4StreamPart) => Result.Result<ReadonlyArray<ModelPart>, ModelFailure>
}

interface Entry {
  readonly type: "text" | "thinking"
  readonly id: string
  chars: number
  /** Number of the part, once it has text. */
  part: number
  options: ReplayPart["options"] | undefined
}

type CallEntry = { readonly type: "call"; readonly callId: string; readonly options: ReplayPart["options"] | undefined }

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value)

/** A call as the model made it; arguments that are no JSON object are named, never thrown. */
export const callOf = (callId: string, tool: string, argumentsText: string): ModelCall => {
  const call = { type: "call" as const, callId, tool, argumentsText }
  if (argumentsText.trim() === "") return { ...call, arguments: {} }
  // What walks a value recurses, so nothing deeper than a frame may be gets past here.
  if (isDeeperThan(argumentsText)) return { ...call, arguments: argumentsText, problem: "too_deep" }
  try {
    const value = JSON.parse(argumentsText) as Schema.Json
    return isObject(value) ? { ...call, arguments: value } : { ...call, arguments: value, problem: "not_an_object" }
  } catch {
    return { ...call, arguments: argumentsText, problem: "not_json" }
  }
}

/** Our word for how a response ended, null when it did not end well. */
const finishOf = (reason: LanguageModelV4FinishReason, calls: number): FinishReason | null => {
  switch (reason.unified) {
    case "length":
      return "length"
    case "content-filter":
      return "refusal"
    case "error":
    case "interrupted":
      return null
    case "other":
      if (reason.raw === "error") return null
      return calls > 0 ? "tool_calls" : "stop"
    case "stop":
    case "tool-calls":
      return calls > 0 ? "tool_calls" : "stop"
  }
}

export const make = (owner: ReplayOwner, context: () => FailureContext): ResponseAssembler => {
  const entries: Array<Entry | CallEntry> = []
  const open = new Map<string, Entry>()
  let nextPart = 0
  let calls = 0
  let responseId: string | undefined

  const start = (type: Entry["type"], id: string): Entry => {
    const entry: Entry = { type, id, chars: 0, part: -1, options: undefined }
    entries.push(entry)
    open.set(id, entry)
    return entry
  }

  const mark = (entry: Entry, metadata: unknown): void => {
    const options = optionsOf(metadata)
    if (options === undefined) return
    const merged: Record<string, Record<string, Schema.Json>> = {}
    for (const [provider, values] of [...Object.entries(entry.options ?? {}), ...Object.entries(options)]) {
      merged[provider] = { ...merged[provider], ...values }
    }
    entry.options = merged
  }

  const isLast = (entry: Entry): boolean => entry.part === nextPart - 1 && entries.at(-1)?.type !== "call"

  const delta = (type: Entry["type"], id: string, text: string, metadata: unknown): ReadonlyArray<ModelPart> => {
    let entry = open.get(id) ?? start(type, id)
    if (text !== "" && entry.part !== -1 && !isLast(entry)) entry = start(type, id)
    mark(entry, metadata)
    if (text === "") return []
    if (entry.part === -1) entry.part = nextPart++
    entry.chars += text.length
    return [{ type, part: entry.part, delta: text }]
  }

  const asReplay = (entry: Entry | CallEntry): ReplayPart => {
    const options = entry.options === undefined ? {} : { options: entry.options }
    return entry.type === "call"
      ? { type: "call", callId: entry.callId, ...options }
      : { type: entry.type, chars: entry.chars, ...options }
  }

  const push: ResponseAssembler["push"] = (part) => {
    switch (part.type) {
      case "response-metadata":
        responseId = part.id ?? responseId
        return Result.succeed([])
      case "text-start":
        mark(start("text", part.id), part.providerMetadata)
        return Result.succeed([])
      case "reasoning-start":
        mark(start("thinking", part.id), part.providerMetadata)
        return Result.succeed([])
      case "text-delta":
        return Result.succeed(delta("text", part.id, part.delta, part.providerMetadata))
      case "reasoning-delta":
        return Result.succeed(delta("thinking", part.id, part.delta, part.providerMetadata))
      case "text-end":
      case "reasoning-end": {
        const entry = open.get(part.id)
        if (entry !== undefined) mark(entry, part.providerMetadata)
        open.delete(part.id)
        return Result.succeed([])
      }
      case "tool-call": {
        if (part.providerExecuted === true) return Result.succeed([])
        calls += 1
        entries.push({ type: "call", callId: part.toolCallId, options: optionsOf(part.providerMetadata) })
        return Result.succeed([callOf(part.toolCallId, part.toolName, part.input)])
      }
      case "finish": {
        const reason = finishOf(part.finishReason, calls)
        if (reason === null) return Result.fail(notWhatTheWirePromises)
        const replay = replayOf(owner, entries.map(asReplay))
        return Result.succeed([
          { type: "usage", tokens: tokensOf(owner.api, part.usage.raw) },
          {
            type: "finish",
            reason,
            ...(responseId === undefined ? {} : { responseId }),
            ...(replay === undefined ? {} : { replay })
          }
        ])
      }
      case "error":
        return Result.fail(streamFailureOf(part.error, context()))
      default:
        return Result.succeed([])
    }
  }

  return { push }
}
