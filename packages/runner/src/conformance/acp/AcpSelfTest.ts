/** The ACP check against the reference agent and its twins. */
import type { Place } from "../Family.ts"
import { plainSelfTest } from "../PlainSelfTest.ts"
import type { SelfTest } from "../SelfTest.ts"
import { prepare } from "./Preparation.ts"
import { twins } from "./Twins.ts"

/** The tools of the reference have no input. */
const flags = { tool: "look", failing: "look", confirm: "write" }

export const acpSelfTest = (place: Place, bare = false): SelfTest =>
  plainSelfTest({ prepare, twins, flags, reference: "acp/reference" }, place, bare)
