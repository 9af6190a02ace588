/** The runner check against the reference runner and its twins. */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as CaseFolder from "../CaseFolder.ts"
import { kitFailed } from "../Check.ts"
import type { Place } from "../Family.ts"
import type { SelfTest } from "../SelfTest.ts"
import { prepare } from "./Preparation.ts"
import { twins } from "./Twins.suite.ts"

const presetLines = (fault: string | undefined): ReadonlyArray<string> => [
  "format: 1",
  "name: fake",
  "command: reference",
  "maintainer: the check",
  "runner: true",
  ...(fault === "CHK-001" ? [] : ["launch_result: true"]),
  "resume: true",
  "first_input: true",
  "passes_model: true",
  ...(fault === "CHK-005" ? [] : ["limits:", "  - it is as small as the contract allows"])
]

export const runnerSelfTest = (place: Place, scale: number): SelfTest => ({
  twins,
  checksOf: Effect.fn("RunnerSelfTest.checksOf")(function* (fault, patience) {
    const folder = yield* CaseFolder.make(false)
    const preset = join(folder, "fake.yaml")
    writeFileSync(preset, `${presetLines(fault).join("\n")}\n`)
    const timing = { scale, patience }
    const command = [
      place.node,
      place.program("runner/reference"),
      ...(scale === 1 ? [] : ["--time-scale", String(scale), "--liveness", "5", "--idle-liveness", "1"]),
      ...(fault === undefined ? [] : ["--fault", fault]),
      "--",
      "{agent}"
    ]
    const prepared = yield* prepare({ command, flags: { preset }, timing, keep: false }, place).pipe(
      Effect.catchTag("Usage", ({ message }) => Effect.fail(kitFailed(message)))
    )
    return prepared.checks
  })
})
