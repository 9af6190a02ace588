/** The self-test of a family whose reference plays its own model and keeps its state in a folder: `acp` and `serve`. */
import { Effect } from "effect"
import { kitFailed } from "./Check.ts"
import type { Family, FamilyRun, Place, ProgramName } from "./Family.ts"
import type { SelfTest, Twin } from "./SelfTest.ts"

export interface PlainFamily extends Pick<Family, "prepare"> {
  readonly reference: ProgramName
  readonly twins: ReadonlyArray<Twin>
  readonly flags: FamilyRun["flags"]
}

/** `bare`: the reference offers nothing but what it must. */
export const plainSelfTest = (family: PlainFamily, place: Place, bare: boolean): SelfTest => ({
  twins: family.twins,
  checksOf: Effect.fn("PlainSelfTest.checksOf")(function* (fault, patience) {
    const { flags, prepare, reference } = family
    const command = [
      place.node,
      place.program(reference),
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
