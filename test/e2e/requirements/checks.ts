/** Promises CHK- of the runner conformance check. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

export const checkRules: ReadonlyArray<Requirement> = []
