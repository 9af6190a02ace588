/** Rules SRV- and HDL- of serve and headless mode. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

export const serveRules: ReadonlyArray<Requirement> = []
