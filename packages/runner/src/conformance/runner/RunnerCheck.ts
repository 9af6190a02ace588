/**
 * A check of this family before it knows the runner under test, and what its body is given.
 */
import { Effect, type Scope } from "effect"
import { type Broken, broken, type Check, type KitFailed, type Level, skipped, type Stop } from "../Check.ts"
import { type Configuration, declares, type Feature } from "./Configuration.ts"
import * as Seat from "./Seat.ts"

/** Starts the runner under test in a fresh seat. */
export type Open = (options?: Seat.SeatOptions) => Effect.Effect<Seat.Seat, Broken | KitFailed, Scope.Scope>

export interface RunnerCheck {
  readonly id: string
  readonly level: Level
  readonly title: string
  readonly rules: ReadonlyArray<string>
  readonly needs?: ReadonlyArray<string>
  readonly quiet?: boolean
  /** Only a runner whose preset declares this can be asked for it. */
  readonly feature?: Feature
  readonly run: (open: Open, configuration: Configuration) => Effect.Effect<void, Stop, Scope.Scope>
}

export const toCheck =
  (configuration: Configuration) =>
  (check: RunnerCheck): Check => ({
    id: check.id,
    level: check.level,
    title: check.title,
    rules: check.rules,
    needs: check.needs ?? [],
    quiet: check.quiet ?? false,
    run: (witness) =>
      check.feature !== undefined && !declares(configuration, check.feature)
        ? Effect.fail(skipped("not_declared"))
        : check.run((options) => Seat.open(configuration, witness, options), configuration)
  })

/** Fails the promise unless the condition holds. */
export const demand = (condition: boolean, message: string): Effect.Effect<void, Broken> =>
  condition ? Effect.void : Effect.fail(broken(message))
