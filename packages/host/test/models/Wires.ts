/** Answers as the vendors' interfaces stream them, for what aimock does not play. */
import type { LiveApi } from "../../src/models/Endpoint.ts"

export interface Wire {
  /** A whole answer of one text. */
  readonly text: (text: string, usage: object | null, end?: "stop" | "length" | "refusal") => ReadonlyArray<unknown>
  /** An answer of one call. */
  readonly call: (callId: string, tool: string, argumentsText: string) => ReadonlyArray<unknown>
  /** The first events of an answer that has begun to say `text`. */
  readonly begun: (text: string) => ReadonlyArray<unknown>
  /** An error as this interface puts it into a stream. */
  readonly error: (type: string, message: string) => unknown
}

const responsesMessage = (id: string) => ({
  type: "message",
  id,
  role: "assistant",
  status: "in_progress",
  content: []
})

const responses: Wire = {
  begun: (text) => [
    { type: "response.created", sequence_number: 0, response: { id: "resp_1", created_at: 1, model: "gpt-5-mini" } },
    { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: responsesMessage("msg_1") },
    {
      type: "response.output_text.delta",
      sequence_number: 2,
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: text
    }
  ],
  text: (text, usage, end = "stop") => [
    ...(end === "refusal"
      ? [
          ...responses.begun("").slice(0, 2),
          {
            type: "response.refusal.delta",
            sequence_number: 2,
            item_id: "msg_1",
            output_index: 0,
            content_index: 0,
            delta: text
          }
        ]
      : responses.begun(text)),
    {
      type: "response.output_item.done",
      sequence_number: 3,
      output_index: 0,
      item: {
        ...responsesMessage("msg_1"),
        content: [
          end === "refusal" ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations: [] }
        ]
      }
    },
    {
      type: end === "length" ? "response.incomplete" : "response.completed",
      sequence_number: 4,
      response: {
        id: "resp_1",
        incomplete_details: end === "length" ? { reason: "max_output_tokens" } : null,
        usage: usage ?? undefined
      }
    }
  ],
  call: (callId, tool, argumentsText) => {
    const item = {
      type: "function_call",
      id: "fc_1",
      call_id: callId,
      name: tool,
      arguments: "",
      status: "in_progress"
    }
    return [
      ...responses.begun("").slice(0, 1),
      { type: "response.output_item.added", sequence_number: 1, output_index: 0, item },
      {
        type: "response.output_item.done",
        sequence_number: 2,
        output_index: 0,
        item: { ...item, arguments: argumentsText, status: "completed" }
      },
      {
        type: "response.completed",
        sequence_number: 3,
        response: { id: "resp_1", usage: { input_tokens: 1, output_tokens: 1 } }
      }
    ]
  },
  error: (type, message) => ({ type: "error", sequence_number: 9, error: { type, code: type, message, param: null } })
}

const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "local-model",
  choices: [{ index: 0, delta, finish_reason: finish }]
})

const chatFinish = { stop: "stop", length: "length", refusal: "content_filter" } as const

const chatCompletions: Wire = {
  begun: (text) => [chunk({ role: "assistant", content: text })],
  text: (text, usage, end = "stop") => [
    ...chatCompletions.begun(text),
    chunk({}, chatFinish[end]),
    ...(usage === null ? [] : [{ ...chunk({}), choices: [], usage }]),
    "[DONE]"
  ],
  call: (callId, tool, argumentsText) => [
    chunk({ role: "assistant", content: null }),
    chunk({
      tool_calls: [{ index: 0, id: callId, type: "function", function: { name: tool, arguments: argumentsText } }]
    }),
    chunk({}, "tool_calls"),
    "[DONE]"
  ],
  error: (type, message) => ({ error: { type, message, code: null } })
}

const anthropicStart = (usage: object) => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage
  }
})

const anthropicFinish = { stop: "end_turn", length: "max_tokens", refusal: "refusal" } as const

const anthropic: Wire = {
  begun: (text) => [
    anthropicStart({ input_tokens: 3, output_tokens: 1 }),
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }
  ],
  text: (text, usage, end = "stop") => [
    anthropicStart({ input_tokens: 0, output_tokens: 1, ...usage }),
    ...anthropic.begun(text).slice(1),
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: anthropicFinish[end], stop_sequence: null },
      usage: { output_tokens: 1, ...usage }
    },
    { type: "message_stop" }
  ],
  call: (callId, tool, argumentsText) => [
    ...anthropic.begun("").slice(0, 1),
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: callId, name: tool, input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: argumentsText } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: "message_stop" }
  ],
  error: (type, message) => ({ type: "error", error: { type, message } })
}

export const wires: { readonly [api in LiveApi]: Wire } = { responses, "chat-completions": chatCompletions, anthropic }
