/**
 * Who settles what the agent asks when no person does: the policies of `--approve` (HDL-030 to HDL-034). Pure.
 *
 * It decides by the journaled category, never by the agent's wording. "Allowed" is this once only: nothing that nobody
 * chose is remembered. Under `ask` it decides nothing.
 */
import type { Interaction } from "@tackroom/protocol/events"
import type { PolicyDecision } from "@tackroom/sdk"
import { unanswered } from "../lines/AskQueue.ts"
import type { ApproveMode } from "./Arguments.ts"

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
    const { options } = interaction
    const offered = options.length === 0 || options.some((option) => option.kind === "allow_once")
    return { decision: allows && offered ? "allow_once" : "deny", origin: "policy" }
  }
