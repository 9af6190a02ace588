/**
 * Who settles what the agent asks when no person does: the policies of `--approve` (HDL-030 to HDL-034). Pure.
 *
 * It decides by the journaled category, never by the agent's wording. "Allowed" is this once only: nothing that nobody
 * chose is remembered. Under `ask` it decides nothing.
 */
import type { EventPayload, Interaction } from "@tackroom/protocol/events"
import type { PolicyDecision } from "@tackroom/sdk"
import type { ApproveMode } from "./Arguments.ts"

/** The answer to a question that nobody answers. */
export const unanswered = "Unanswered"

/** The decision of the policy, or undefined when a person has to make it. */
export const decideBy =
  (mode: ApproveMode) =>
  (interaction: Interaction): PolicyDecision | undefined => {
    if (mode === "ask") return undefined
    if (interaction.kind === "question") {
      const free = interaction.questions.every((question) => question.custom !== false)
      return { answers: free ? interaction.questions.map(() => [unanswered]) : null, origin: "policy" }
    }
    const allows = mode === "all" || (mode === "reads" && interaction.category === "read")
    const offered = interaction.options.some((option) => option.kind === "allow_once")
    return { decision: allows && offered ? "allow_once" : "deny", origin: "policy" }
  }

/** How the asks of a run ended. */
export interface Asks {
  readonly allowed: number
  readonly refused: number
  readonly unanswered: number
}

export const noAsks: Asks = { allowed: 0, refused: 0, unanswered: 0 }

/** Counts what a policy or a person settled; what the agent's own rules approve was never asked. */
export const countAsk = (asks: Asks, event: EventPayload): Asks => {
  switch (event.type) {
    case "permission-resolved": {
      if (event.origin !== "policy" && event.origin !== "person") return asks
      const allowed = event.decision === "allow_once" || event.decision === "allow_always"
      return allowed ? { ...asks, allowed: asks.allowed + 1 } : { ...asks, refused: asks.refused + 1 }
    }
    case "question-rejected":
      return { ...asks, unanswered: asks.unanswered + 1 }
    case "question-answered":
      return event.origin === "policy" ? { ...asks, unanswered: asks.unanswered + 1 } : asks
    default:
      return asks
  }
}
