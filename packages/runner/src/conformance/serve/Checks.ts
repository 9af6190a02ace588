/** All checks of the family, in the order of a report. */
import { askChecks } from "./checks/Asks.ts"
import { budgetChecks } from "./checks/Budgets.ts"
import { durableChecks } from "./checks/Durable.ts"
import { endingChecks } from "./checks/Endings.ts"
import { framingChecks } from "./checks/Framing.ts"
import { lineChecks } from "./checks/Lines.ts"
import { opChecks } from "./checks/Ops.ts"
import { runChecks } from "./checks/Runs.ts"
import type { ServeCheck } from "./ServeCheck.ts"

export const serveChecks: ReadonlyArray<ServeCheck> = [
  ...lineChecks,
  ...framingChecks,
  ...opChecks,
  ...runChecks,
  ...askChecks,
  ...endingChecks,
  ...budgetChecks,
  ...durableChecks
]
