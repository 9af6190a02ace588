/**
 * The one engine behind both `scripted` things (D-15): given a scenario and the number of responses already completed, it
 * says what the next response is. Pure and deterministic: the same question always has the same answer, so a crash and a
 * restart change nothing (AGT-330).
 *
 * It does not wait, ask, emit or count; its caller does, with its own clock, its own people and its own journal.
 */
import { defaultContextWindow, type Scenario, type ScenarioResponse } from "@tackroom/protocol/scenario"
import { type Fault, readSteps, type Step } from "./Steps.ts"

/** Whose response is asked for. Each kind has its own list and its own count. @since 0.1.0 */
export type ResponseKind = "response" | "reviewer" | "compaction"

/** One attempt at one request of a model. */
export interface PlayRequest {
  /** The agent's id; its own list is used when the scenario has one, else `default`. */
  readonly agent?: string | undefined
  /** Default `response`. */
  readonly kind?: ResponseKind
  /** Completed responses of this kind in the session's journal. */
  readonly completed: number
  /** Which attempt at this request, from 1. Default 1. */
  readonly attempt?: number
  /** The user's message, for `exhausted: "echo"`. */
  readonly userText?: string
}

/** A response as far as it goes: nothing stands behind a fault, a stop or an exit. @since 0.1.0 */
export interface PlayedResponse {
  readonly _tag: "Response"
  readonly steps: ReadonlyArray<Step>
  /** The request fails after the steps (AGT-331). */
  readonly fault?: Fault
  /** The response was cut by the output limit. */
  readonly truncated: boolean
  /** Number of calls; a turn takes responses until one holds none (AGT-335). */
  readonly calls: number
}

/** The list has no further entry and the scenario says `error` (AGT-332). @since 0.1.0 */
export interface Exhausted {
  readonly _tag: "Exhausted"
  readonly message: string
}

/** A response, or that there is none. */
export type Played = PlayedResponse | Exhausted

/** The list that a request takes its response from; undefined when the scenario has none. @since 0.1.0 */
export const responsesFor = (
  scenario: Scenario,
  kind: ResponseKind,
  agent: string | undefined
): ReadonlyArray<ScenarioResponse> | undefined => {
  if (kind === "reviewer") return scenario.reviewer
  if (kind === "compaction") return scenario.compaction
  const agents = scenario.agents
  return agents !== undefined && agent !== undefined && Object.hasOwn(agents, agent) ? agents[agent] : scenario.default
}

const endsResponse = (step: Step, attempt: number): boolean =>
  step._tag === "Stop" || step._tag === "Exit" || (step._tag === "Fail" && attempt <= step.attempts)

/** Cuts a list of steps at what ends it on this attempt. Faults that are over are left out. */
const upToEnd = (steps: ReadonlyArray<Step>, attempt: number): PlayedResponse => {
  const end = steps.findIndex((step) => endsResponse(step, attempt))
  const last = end < 0 ? undefined : steps[end]
  const played = (end < 0 ? steps : steps.slice(0, last?._tag === "Exit" ? end + 1 : end)).filter(
    (step) => step._tag !== "Fail"
  )
  return {
    _tag: "Response",
    steps: played,
    ...(last?._tag === "Fail" ? { fault: last.fault } : {}),
    truncated: last?._tag === "Stop",
    calls: played.filter((step) => step._tag === "Call").length
  }
}

/** What the scenario answers to one attempt at one request (AGT-330 to AGT-332). @since 0.1.0 */
export const play = (scenario: Scenario, request: PlayRequest): Played => {
  const kind = request.kind ?? "response"
  const list = responsesFor(scenario, kind, request.agent)
  const entry = list?.[request.completed]
  if (entry !== undefined) return upToEnd(readSteps(entry), request.attempt ?? 1)
  if (scenario.exhausted === "echo") {
    const text = request.userText ?? ""
    return upToEnd(text === "" ? [] : [{ _tag: "Text", text }], 1)
  }
  const total = list?.length ?? 0
  return {
    _tag: "Exhausted",
    message: `The scripted scenario "${scenario.name}" has ${total} ${kind === "response" ? "" : `${kind} `}responses; number ${request.completed + 1} was asked for`
  }
}

/** The context window a scenario states, in tokens; 128,000 when it does not. @since 0.1.0 */
export const contextWindow = (scenario: Scenario): number => scenario.contextWindow ?? defaultContextWindow

/**
 * Splits a text as a model would stream it: about a word at a time, at most 14 characters and the white space before
 * them, never within a character. Joined, the pieces are the text.
 *
 * @since 0.1.0
 */
export const chunks = (text: string): ReadonlyArray<string> => text.match(/\s*\S{1,14}|\s+/gu) ?? []
