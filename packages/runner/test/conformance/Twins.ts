/** How the tests of the checks look at the reference programs and their broken twins. */
import { Effect } from "effect"
import { runAll } from "../../src/conformance/Schedule.ts"
import type { SelfTest } from "../../src/conformance/SelfTest.ts"
import type { Result } from "../../src/conformance/Verdict.ts"

/**
 * `TACKROOM_TEST_TWINS` says on how many other promises each broken twin is run besides its own (`all` for all of them), and
 * `TACKROOM_TEST_SEED` which: a seed of a failed run is printed.
 */
export const othersOf = (usual: number): number => {
  const wanted = process.env["TACKROOM_TEST_TWINS"] ?? String(usual)
  return wanted === "all" ? Number.POSITIVE_INFINITY : Number(wanted)
}

export const seed = Number(process.env["TACKROOM_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

/** Deadlines are for a machine with two cores that others use too. */
export const patience = 4

/** What of the promises that are asked for the reference does not keep. */
export const notPassed = (
  selfTest: SelfTest,
  asks: (id: string) => boolean = () => true
): Promise<ReadonlyArray<Result>> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(selfTest.checksOf(undefined, patience), (checks) =>
        Effect.map(
          runAll(
            checks.filter(({ id }) => asks(id)),
            { jobs: 4, profile: "tackroom", excluded: new Set(), onResult: () => undefined }
          ),
          (results) => results.filter(({ verdict }) => verdict !== "pass")
        )
      )
    )
  )
