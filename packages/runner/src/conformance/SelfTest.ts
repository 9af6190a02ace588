/**
 * Proves the checks themselves: the reference program keeps every promise, and each broken twin of it breaks its own and no
 * other that does not hang on it. A check that a broken program passes is no check.
 *
 * All twins against all checks is quadratic. A twin is run on its own promise, on those that depend on it, and on others drawn
 * by a seed; the rest on demand.
 */
import { Effect, type Scope } from "effect"
import { generator, sample } from "./Chance.ts"
import type { Check, KitFailed } from "./Check.ts"
import { runAll } from "./Schedule.ts"
import type { Result } from "./Verdict.ts"

/** The reference program with one fault. */
export interface Twin {
  /** The promise that it breaks; every promise has one twin. */
  readonly id: string
  /** What it does instead. */
  readonly fault: string
  /** Other promises that cannot hold with this fault. */
  readonly dependants?: ReadonlyArray<string>
}

export interface SelfTest {
  readonly twins: ReadonlyArray<Twin>
  /** The checks against the reference program, or against the twin of an id. */
  readonly checksOf: (
    fault: string | undefined,
    patience: number
  ) => Effect.Effect<ReadonlyArray<Check>, KitFailed, Scope.Scope>
}

export interface TwinResult {
  readonly twin: Twin
  /** Its own promise was not broken. */
  readonly unnoticed: boolean
  /** Promises that it should have kept. */
  readonly wrongly: ReadonlyArray<Result>
}

export interface SelfTestOptions {
  readonly seed: number
  /** How many other promises each twin is run on; all of them when infinite. */
  readonly others: number
  /** How many twins run at once. */
  readonly jobs: number
  /** Deadlines of the promises that a twin should keep; its own is to be broken, and nobody waits for that. */
  readonly patience: number
}

const quietRun = {
  jobs: 1,
  profile: "contract",
  excluded: new Set<string>(),
  onResult: () => undefined
} as const

/** The promises a twin is run on. */
export const idsFor = (
  twin: Twin,
  all: ReadonlyArray<string>,
  random: () => number,
  others: number
): ReadonlyArray<string> => {
  const own = new Set([twin.id, ...(twin.dependants ?? [])])
  const rest = all.filter((id) => !own.has(id))
  return [twin.id, ...(others >= rest.length ? rest : sample(random, rest, others))]
}

/** One twin on the promises of these ids. */
export const runTwin = (
  { checksOf }: SelfTest,
  twin: Twin,
  ids: ReadonlyArray<string>,
  patience: number
): Effect.Effect<TwinResult, KitFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const [own, rest] = [yield* checksOf(twin.id, 1), yield* checksOf(twin.id, patience)]
      const chosen = [...own.filter(({ id }) => id === twin.id), ...rest.filter(({ id }) => id !== twin.id)]
        .filter(({ id }) => ids.includes(id))
        // What a check needs has been proved by the reference; here each stands for itself.
        .map((check) => ({ ...check, needs: [] }))
      const results = yield* runAll(chosen, quietRun)
      return {
        twin,
        unnoticed: !results.some(({ id, verdict }) => id === twin.id && verdict === "fail"),
        wrongly: results.filter(({ id, verdict }) => id !== twin.id && verdict === "fail")
      }
    })
  )

export const runTwins = (
  selfTest: SelfTest,
  { jobs, others, patience, seed }: SelfTestOptions,
  onTwin: (result: TwinResult) => void = () => undefined
): Effect.Effect<ReadonlyArray<TwinResult>, KitFailed> => {
  const random = generator(seed)
  const all = selfTest.twins.map(({ id }) => id)
  const planned = selfTest.twins.map((twin) => ({ twin, ids: idsFor(twin, all, random, others) }))
  return Effect.forEach(
    planned,
    ({ ids, twin }) =>
      Effect.tap(runTwin(selfTest, twin, ids, patience), (result) => Effect.sync(() => onTwin(result))),
    { concurrency: jobs }
  )
}

/** What is wrong with the kit, one line each. */
export const complaints = (results: ReadonlyArray<TwinResult>): ReadonlyArray<string> =>
  results.flatMap(({ twin, unnoticed, wrongly }) => [
    ...(unnoticed ? [`${twin.id} was passed by the twin that ${twin.fault}`] : []),
    ...wrongly.map(({ id, reason }) => `${id} was failed by the twin of ${twin.id}: ${reason ?? ""}`)
  ])
