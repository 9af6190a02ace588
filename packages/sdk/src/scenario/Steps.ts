/**
 * The steps of a response as tagged values. A scenario file writes a step as an object with one telling field
 * (`{"text": "…"}`); code that plays it wants to switch over a tag.
 *
 * @since 0.1.0
 */
import type { PermissionOption, Question, Todo } from "@tackroom/protocol/events"
import type { EventStep, Scenario, ScenarioResponse, ScenarioStep } from "@tackroom/protocol/scenario"
import type { Schema } from "effect"

/** How a request fails, as the named fault of a live provider would (AGT-331). @since 0.1.0 */
export type Fault = "rate_limit" | "server" | "disconnect" | "auth" | "overflow"

/**
 * One call of a response. The fields after `arguments` are for a harness, which plays the call instead of running it.
 *
 * @since 0.1.0
 */
export interface CallStep {
  readonly _tag: "Call"
  /** Qualified name. */
  readonly tool: string
  readonly arguments: Schema.Json
  /** Ask before the call: with the usual options, or with these. */
  readonly ask?: true | ReadonlyArray<PermissionOption>
  /** Milliseconds the played call takes. */
  readonly runningMs?: number
  readonly output?: Schema.Json
  readonly error?: string
}

/** @since 0.1.0 */
export type Step =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Thinking"; readonly text: string }
  | CallStep
  | { readonly _tag: "Delay"; readonly ms: number }
  | { readonly _tag: "Fail"; readonly fault: Fault; readonly attempts: number }
  | { readonly _tag: "Stop" }
  | { readonly _tag: "Usage"; readonly input: number; readonly output: number }
  | { readonly _tag: "Question"; readonly question: Question }
  | { readonly _tag: "Plan"; readonly items: ReadonlyArray<Todo> }
  /** See `scenarioEvent` of `@tackroom/protocol/scenario`. */
  | { readonly _tag: "Event"; readonly event: (typeof EventStep.Type)["event"] }
  | { readonly _tag: "Exit"; readonly code: number }

/** The tagged form of one step of a file. @since 0.1.0 */
export const readStep = (step: ScenarioStep): Step => {
  if ("text" in step) return { _tag: "Text", text: step.text }
  if ("thinking" in step) return { _tag: "Thinking", text: step.thinking }
  if ("delayMs" in step) return { _tag: "Delay", ms: step.delayMs }
  if ("fail" in step) return { _tag: "Fail", fault: step.fail, attempts: step.attempts ?? 1 }
  if ("stop" in step) return { _tag: "Stop" }
  if ("usage" in step) return { _tag: "Usage", ...step.usage }
  if ("question" in step)
    return { _tag: "Question", question: { ...step.question, options: step.question.options ?? [] } }
  if ("plan" in step) return { _tag: "Plan", items: step.plan }
  if ("event" in step) return { _tag: "Event", event: step.event }
  if ("exit" in step) return { _tag: "Exit", code: step.exit }
  const { ask, ...call } = step.call
  return { _tag: "Call", ...call, ...(ask === undefined || ask === false ? {} : { ask }) }
}

/** The tagged form of one response. @since 0.1.0 */
export const readSteps = (response: ScenarioResponse): ReadonlyArray<Step> => response.map(readStep)

/** What the model behind the native agent says for one step: nothing for what only a harness can do. */
const modelSteps = (step: ScenarioStep): ReadonlyArray<ScenarioStep> => {
  if ("event" in step || "exit" in step) return []
  if ("plan" in step) return [{ call: { tool: "plan.update", arguments: { items: step.plan } } }]
  if ("call" in step) return [{ call: { tool: step.call.tool, arguments: step.call.arguments } }]
  if (!("question" in step)) return [step]
  const { question, options = [], custom } = step.question
  return [
    {
      call: {
        tool: "ask_user",
        arguments: {
          question,
          ...(options.length === 0 ? {} : { options: options.map((option) => option.label) }),
          ...(custom === false ? { allow_text: false } : {})
        }
      }
    }
  ]
}

/**
 * A plan or a question stands inside a harness's response; for a model it is a call, and a response with a call is never
 * the last. So a response without calls of its own is parted behind its last plan or question.
 */
const modelResponses = (response: ScenarioResponse): ReadonlyArray<ScenarioResponse> => {
  const last = response.findLastIndex((step) => "plan" in step || "question" in step)
  if (last < 0 || response.some((step) => "call" in step)) return [response.flatMap(modelSteps)]
  return [response.slice(0, last + 1).flatMap(modelSteps), response.slice(last + 1).flatMap(modelSteps)]
}

/**
 * The same scenario for a model behind the native agent: plans and questions become calls of its internal tools
 * (`plan.update`, `ask_user`), what only a harness can do is left out. So each built-in scenario is written once and
 * passes AGT-336 (D-15, AGT-337).
 *
 * @since 0.1.0
 */
export const forModel = (scenario: Scenario): Scenario => {
  const convert = (list: ReadonlyArray<ScenarioResponse>): ReadonlyArray<ScenarioResponse> =>
    list.flatMap(modelResponses)
  return {
    ...scenario,
    ...(scenario.agents === undefined
      ? {}
      : { agents: Object.fromEntries(Object.entries(scenario.agents).map(([id, list]) => [id, convert(list)])) }),
    ...(scenario.default === undefined ? {} : { default: convert(scenario.default) }),
    ...(scenario.reviewer === undefined ? {} : { reviewer: convert(scenario.reviewer) }),
    ...(scenario.compaction === undefined ? {} : { compaction: convert(scenario.compaction) })
  }
}
