/** Rules ACP- of the ACP face. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

export const acpRules: ReadonlyArray<Requirement> = []
