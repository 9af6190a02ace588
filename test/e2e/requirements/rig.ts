/** Rules RIG- of the rig service and its commands. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

export const rigRules: ReadonlyArray<Requirement> = []
