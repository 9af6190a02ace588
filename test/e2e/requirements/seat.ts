/** Rules SEAT- of the seat runner. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

export const seatRules: ReadonlyArray<Requirement> = []
