/**
 * The native agent's own tools: `plan.update` and `ask_user` (run-protocol 23, AGT-180).
 *
 * They touch nothing outside the session, so they need no approval and no other process. A question is an interaction of
 * the runtime: it survives a restart under the same id and its stored answer is taken up then.
 */
import type { HarnessEvent, Todo } from "@tackroom/protocol/events"
import { Effect, type Schema } from "effect"
import { completed, dispatchRecord, notRun, type ToolCallsInput } from "./CallEvents.ts"
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

/** `plan.update`: the plan is replaced as a whole. */
export const updatePlan = (input: ToolCallsInput, call: Call) => {
  const items = planItems(call)
  const todos: HarnessEvent = { type: "todo-update", todos: items }
  const output = { items: items.map(({ id, content, status }) => ({ id, content, status })) }
  return input.output.emit(todos, dispatchRecord(call), completed(call, output))
}

const optionsOf = (input: Schema.Json) => strings(field(input, "options"))
const allowsText = (input: Schema.Json) => field(input, "allow_text") !== false

/** Why a question cannot be asked. */
export const questionProblem = (input: Schema.Json): string | undefined =>
  !allowsText(input) && optionsOf(input).length === 0
    ? "allow_text is false and there are no options to choose from"
    : undefined

/** What became of a question. */
export type Answered = { readonly answer: string } | { readonly code: "failed" | "cancelled"; readonly why: string }

/** `ask_user`: raises the question and waits for its answer, for as long as it takes (RUN-445). */
export const askQuestion = Effect.fnUntraced(
  function* (input: ToolCallsInput, call: Call) {
    const { answers } = yield* input.context.ask.question({
      sessionId: input.setup.sessionId,
      turnId: input.turnId,
      nativeRequestId: call.callId,
      toolCallId: call.callId,
      questions: [
        {
          question: String(field(call.input, "question")),
          options: optionsOf(call.input).map((label) => ({ label })),
          multiple: false,
          custom: allowsText(call.input),
          topic: "agent"
        }
      ]
    })
    const answer = answers?.[0]?.[0]
    return answer === undefined
      ? ({ code: "failed", why: "the person did not answer the question" } satisfies Answered)
      : ({ answer } satisfies Answered)
  },
  (effect) =>
    Effect.catchTag(effect, "Withdrawn", ({ reason }) =>
      Effect.succeed<Answered>({
        code: reason === "cancelled" ? "cancelled" : "failed",
        why: `the question was withdrawn (${reason})`
      })
    )
)

/** Emits the end of a question's call. */
export const answerQuestion = (input: ToolCallsInput, call: Call, answered: Answered) =>
  "answer" in answered
    ? input.output.emit(dispatchRecord(call), completed(call, { answer: answered.answer }))
    : input.output.emit(notRun(call, answered.code, answered.why))
