/** The ACP check against the reference agent and its twins. */
import { Effect } from "effect"
import { kitFailed } from "../Check.ts"
import type { Place } from "../Family.ts"
import type { SelfTest } from "../SelfTest.ts"
import { prepare } from "./Preparation.ts"
import { twins } from "./Twins.ts"

/** The reference plays its own model; its tools have no input. */
const flags = { tool: "look", failing: "look", confirm: "write" }

export const acpSelfTest = (place: Place, bare = false): SelfTest => ({
  twins,
  checksOf: Effect.fn("AcpSelfTest.checksOf")(function* (fault, patience) {
    const command = [
      place.node,
      place.program("acp/reference"),
      "--state",
      "{folder}",
      ...(bare ? ["--bare"] : []),
      ...(fault === undefined ? [] : ["--fault", fault])
    ]
    const prepared = yield* prepare({ command, flags, timing: { scale: 1, patience }, keep: false }, place).pipe(
      Effect.catchTag("Usage", ({ message }) => Effect.fail(kitFailed(message)))
    )
    return prepared.checks
  })
})
