/** What the result line of a run says: what is left to tell, and how the turn ended (HRN-220). Pure. */
import type { ErrorClass, HarnessEvent } from "@tackroom/protocol/events"
import type { RunLine } from "@tackroom/protocol/serve"
import { replaceText, type RunProgress, type Translated } from "./RunProgress.ts"

type ResultLine = Extract<RunLine, { readonly type: "result" }>

/** What a result tells beside the end: the usage as it is counted here, and an answer that was not streamed. */
export const resultTold = (state: RunProgress, line: ResultLine): Translated => {
  const events: Array<HarnessEvent> = []
  let next = state
  if (!state.hasText && line.answer !== "") {
    const spoken = replaceText(state, "text", line.answer)
    next = spoken.state
    events.push(...spoken.events)
  }
  const { usage, usageDetail } = line
  if (usage !== undefined) {
    const detail = usageDetail ?? { cacheRead: null, cacheWrite: null, reasoning: null, cost: null }
    events.push({
      type: "usage",
      observation: {
        kind: "cumulative",
        nativeSessionId: state.turnId,
        tokens: {
          // Their input has the cached tokens in it, ours leaves them out.
          input: Math.max(0, usage.input - (detail.cacheRead ?? 0) - (detail.cacheWrite ?? 0)),
          output: usage.output,
          reasoning: detail.reasoning,
          cache: { read: detail.cacheRead, write: detail.cacheWrite }
        }
      },
      ...(detail.cost === null ? {} : { cost: detail.cost })
    })
  }
  return { state: next, events }
}

const errorClasses: ReadonlyArray<string> = [
  "credential",
  "harness",
  "model",
  "usage_limit",
  "workspace",
  "session",
  "unknown"
] satisfies ReadonlyArray<ErrorClass>

const isErrorClass = (name: string | undefined): name is ErrorClass => name !== undefined && errorClasses.includes(name)

/** The terminal event of a result (HRN-220). */
export const endOfResult = (
  state: Pick<RunProgress, "assistantMessageId" | "sessionId">,
  line: ResultLine,
  classify: (message: string) => ErrorClass
): HarnessEvent => {
  const { assistantMessageId, sessionId } = state
  if (line.cancelled) return { type: "cancelled", sessionId, assistantMessageId, reason: "requested" }
  const [error] = line.errors
  if (error === undefined) {
    return {
      type: "finish",
      sessionId,
      assistantMessageId,
      reason: line.stopReason === "refusal" ? "refusal" : "end_turn",
      ...(line.answer === "" ? {} : { finalText: line.answer })
    }
  }
  const isLimit = error.code === "budget" || error.code === "timeout"
  return {
    type: "error",
    error: error.message,
    code: isLimit ? error.code : error.runtimeCode === "truncated" ? "truncated" : "harness_error",
    ...(isLimit ? {} : { errorClass: isErrorClass(error.class) ? error.class : classify(error.message) }),
    assistantMessageId
  }
}
