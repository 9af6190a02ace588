/**
 * Which part of its budget stopped a turn, as the journal tells it: once when the turn is being stopped, and again with its
 * end (SRV-269). Pure.
 *
 * @since 0.1.0
 */
import type { Diagnostic } from "@tackroom/protocol/events"
import type { TurnBudget } from "../harness/Harness.ts"
import type { ActiveTurn } from "./ActiveTurns.ts"
import type { BudgetStop } from "./TurnMachine.ts"

/** Says in the journal which part of the budget stopped the turn (SRV-269). */
export const stopDiagnostic = (stop: BudgetStop, budget: TurnBudget | undefined, message?: string): Diagnostic => {
  const details = {
    ...(stop === "max_rounds" && budget?.maxRounds !== undefined ? { maxRounds: budget.maxRounds } : {}),
    ...(message === undefined ? {} : { message })
  }
  return { code: "stop", message: stop, ...(Object.keys(details).length === 0 ? {} : { details }) }
}

const roundsSpent = (active: ActiveTurn): boolean => {
  const maxRounds = active.budget?.maxRounds
  return maxRounds !== undefined && active.log.fold.rounds >= maxRounds
}

/** The part of the budget that a failure with one of its codes stands for. */
export const stopOf = (active: ActiveTurn, code: "budget" | "timeout"): BudgetStop => {
  if (active.cancel._tag === "Budget" && active.cancel.code === code) return active.cancel.stop
  if (code === "timeout") return "timeout"
  return active.budget?.maxOutputTokens === undefined || roundsSpent(active) ? "max_rounds" : "max_output_tokens"
}
