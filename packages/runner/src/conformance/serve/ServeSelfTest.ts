/** The serve check against the reference program and its twins. */
import type { Place } from "../Family.ts"
import { plainSelfTest } from "../PlainSelfTest.ts"
import type { SelfTest } from "../SelfTest.ts"
import { prepare } from "./Preparation.ts"
import { twins } from "./Twins.ts"

/** The tools of the reference have no input. */
const flags = { tool: "look", failing: "look", ask: "ask", confirm: "confirm" }

export const serveSelfTest = (place: Place, bare = false): SelfTest =>
  plainSelfTest({ prepare, twins, flags, reference: "serve/reference" }, place, bare)
