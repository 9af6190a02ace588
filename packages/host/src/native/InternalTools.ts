/**
 * The native agent's own tools: `plan.update` and `ask_user` (run-protocol 23, AGT-180).
 *
 * They touch nothing outside the session, so they need no approval and no other process. A question is an interaction of
 * the runtime: it survives a restart under the same id and its stored answer is taken up then.
 */
import type { HarnessEvent, Todo } from "@tackroom/protocol/events"
import { Effect, type Schema } from "effect"
import { completed, dispatchRecord, notRun, type ToolCallsInput } from "./CallEvents.ts"
import type { SessionTool } from "./SessionSetup.ts"
import type { Call } from "./Transcript.ts"

const field = (input: Schema.Json, name: string): Schema.Json | undefined =>
  typeof input === "object" && input !== null && !Array.isArray(input) && Object.hasOwn(input, name)
    ? (input as { readonly [key: string]: Schema.Json })[name]
    : undefined

const strings = (value: Schema.Json | undefined): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : []

/** The plan as given, each item with an id: its own, or one made from the call. */
const planItems = (call: Call): ReadonlyArray<Todo & { readonly id: string }> => {
  const items = field(call.input, "items")
  if (!Array.isArray(items)) return []
  return items.map((item: Schema.Json, index) => {
    const id = field(item, "id")
    return {
      id: typeof id === "string" ? id : `${call.callId}.${index + 1}`,
      content: String(field(item, "content")),
      status: field(item, "status") as Todo["status"]
    }
  })
}

const updatePlan = (input: ToolCallsInput, call: Call) => {
  const items = planItems(call)
  const todos: HarnessEvent = { type: "todo-update", todos: items }
  const output = { items: items.map(({ id, content, status }) => ({ id, content, status })) }
  return input.output.emit(todos, dispatchRecord(call), completed(call, output))
}

const askUser = Effect.fnUntraced(function* (input: ToolCallsInput, call: Call) {
  const options = strings(field(call.input, "options"))
  const custom = field(call.input, "allow_text") !== false
  if (!custom && options.length === 0) {
    return yield* input.output.emit(
      notRun(call, "failed", "allow_text is false and there are no options to choose from")
    )
  }
  yield* input.context.ask
    .question({
      sessionId: input.setup.sessionId,
      turnId: input.turnId,
      nativeRequestId: call.callId,
      toolCallId: call.callId,
      questions: [
        {
          question: String(field(call.input, "question")),
          options: options.map((label) => ({ label })),
          multiple: false,
          custom,
          topic: "agent"
        }
      ]
    })
    .pipe(
      Effect.matchEffect({
        onFailure: (failure) =>
          input.output.emit(
            notRun(
              call,
              "failed",
              failure._tag === "Withdrawn" ? `the question was withdrawn (${failure.reason})` : failure.message
            )
          ),
        onSuccess: ({ answers }) => {
          const answer = answers?.[0]?.[0]
          return answer === undefined
            ? input.output.emit(notRun(call, "failed", "the person did not answer the question"))
            : input.output.emit(dispatchRecord(call), completed(call, { answer }))
        }
      })
    )
})

/** Carries out one internal call and emits its end. */
export const internalTool = (input: ToolCallsInput, call: Call, tool: SessionTool) => {
  switch (tool.qualifiedName) {
    case "plan.update":
      return updatePlan(input, call)
    case "ask_user":
      return askUser(input, call)
    default:
      return input.output.emit(notRun(call, "failed", "this tool is not available"))
  }
}
