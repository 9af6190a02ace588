/**
 * A `ModelRequest` in the client libraries' prompt form, and the `replay` that comes back with a response.
 *
 * Pure. A replay is used only by the connection, api and model that gave it and only when it fits its message part by
 * part; else the message goes without its thinking, which every provider accepts. The same request gives the same
 * prompt, byte for byte (AGT-002).
 */
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions
} from "@ai-sdk/provider"
import { Schema } from "effect"
import type { LiveApi } from "./Endpoint.ts"
import type { AssistantMessage, AssistantPart, ModelMessage, ModelRequest } from "./ModelRequest.ts"

const Options = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))

const ReplayPart = Schema.Union([
  Schema.Struct({
    type: Schema.Literals(["text", "thinking"]),
    chars: Schema.Int,
    options: Schema.optionalKey(Options)
  }),
  Schema.Struct({ type: Schema.Literal("call"), callId: Schema.String, options: Schema.optionalKey(Options) })
])
export type ReplayPart = typeof ReplayPart.Type

const Replay = Schema.Struct({
  replay: Schema.Literal(1),
  api: Schema.String,
  connection: Schema.String,
  model: Schema.String,
  parts: Schema.Array(ReplayPart)
})

const decodeReplay = Schema.decodeUnknownOption(Replay)

/** Who gave a replay and who may take it. */
export interface ReplayOwner {
  readonly api: LiveApi
  readonly connection: string
  readonly model: string
}

/** The replay of a response, undefined when there is nothing a later request needs. */
export const replayOf = (owner: ReplayOwner, parts: ReadonlyArray<ReplayPart>): Schema.Json | undefined =>
  parts.some((part) => part.options !== undefined || part.type === "thinking")
    ? { replay: 1, api: owner.api, connection: owner.connection, model: owner.model, parts: parts.map(asJson) }
    : undefined

const asJson = (part: ReplayPart): Schema.Json => ({ ...part })

type Content = Extract<LanguageModelV4Message, { role: "assistant" }>["content"]
type ContentPart = Content[number]

/** Ids of other providers may break a vendor's rule for them. */
const wireId = (api: LiveApi, callId: string): string =>
  api === "chat-completions" ? callId : callId.replace(/[^A-Za-z0-9_-]/g, "_").slice(-64)

const asObject = (value: Schema.Json): { [key: string]: Schema.Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { [key: string]: Schema.Json })
    : { invalid_arguments: value }

const contentPart = (
  part: AssistantPart,
  owner: ReplayOwner,
  options: SharedV4ProviderOptions | undefined
): ContentPart => {
  const provider = options === undefined ? {} : { providerOptions: options }
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text, ...provider }
    case "thinking":
      return { type: "reasoning", text: part.text, ...provider }
    case "call":
      return {
        type: "tool-call",
        toolCallId: wireId(owner.api, part.callId),
        toolName: part.tool,
        input: asObject(part.arguments),
        ...provider
      }
  }
}

const replayed = (message: AssistantMessage, owner: ReplayOwner): Content | undefined => {
  const found = decodeReplay(message.replay)
  if (found._tag === "None") return undefined
  const replay = found.value
  if (replay.api !== owner.api || replay.connection !== owner.connection || replay.model !== owner.model) {
    return undefined
  }
  const content: Content = []
  let next = 0
  for (const entry of replay.parts) {
    const options = entry.options as SharedV4ProviderOptions | undefined
    if (entry.type !== "call" && entry.chars === 0) {
      if (entry.type === "thinking") content.push(contentPart({ type: "thinking", text: "" }, owner, options))
      continue
    }
    const part = message.parts[next++]
    if (part === undefined || part.type !== entry.type) return undefined
    const same = part.type === "call" ? part.callId === callIdOf(entry) : part.text.length === charsOf(entry)
    if (!same) return undefined
    content.push(contentPart(part, owner, options))
  }
  return next === message.parts.length ? content : undefined
}

const callIdOf = (entry: ReplayPart): string | undefined => (entry.type === "call" ? entry.callId : undefined)
const charsOf = (entry: ReplayPart): number => (entry.type === "call" ? 0 : entry.chars)

const assistantContent = (message: AssistantMessage, owner: ReplayOwner): Content =>
  replayed(message, owner) ??
  message.parts
    .filter((part) => part.type === "call" || (part.type === "text" && part.text !== ""))
    .map((part) => contentPart(part, owner, undefined))

const messageOf = (message: ModelMessage, owner: ReplayOwner): LanguageModelV4Message => {
  switch (message.role) {
    case "user":
      return { role: "user", content: [{ type: "text", text: message.text }] }
    case "assistant":
      return { role: "assistant", content: assistantContent(message, owner) }
    case "tool":
      return {
        role: "tool",
        content: message.results.map((result) => ({
          type: "tool-result" as const,
          toolCallId: wireId(owner.api, result.callId),
          toolName: result.tool,
          output: { type: result.failed === true ? ("error-text" as const) : ("text" as const), value: result.text }
        }))
      }
  }
}

const isEmpty = (message: LanguageModelV4Message): boolean => message.content.length === 0

/** The prompt of a request for one provider. */
export const promptOf = (request: ModelRequest, owner: ReplayOwner): LanguageModelV4Prompt => {
  const messages = request.messages.map((message) => messageOf(message, owner)).filter((message) => !isEmpty(message))
  return request.instructions === "" ? messages : [{ role: "system", content: request.instructions }, ...messages]
}

export const toolsOf = (request: ModelRequest): Array<LanguageModelV4FunctionTool> =>
  request.tools.map((tool) => ({
    type: "function",
    name: tool.alias,
    description: tool.description,
    inputSchema: tool.schema as LanguageModelV4FunctionTool["inputSchema"]
  }))

/** Provider metadata of a part as plain JSON; what is no JSON is left out. */
export const optionsOf = (metadata: unknown): ReplayPart["options"] | undefined => {
  const found = decodeOptions(metadata)
  if (found._tag === "None") return undefined
  const entries = Object.entries(found.value).filter(([, value]) => Object.keys(value).length > 0)
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

const decodeOptions = Schema.decodeUnknownOption(Options)
