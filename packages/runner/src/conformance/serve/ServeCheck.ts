/** A check of this family before it knows the program under test, and what its body is given. Its id is the rule's. */
import { Effect, type Scope } from "effect"
import { type Broken, broken, type Check, type Level, skipped, type Stop } from "../Check.ts"
import type { Tools } from "../model/Tools.ts"
import type { Configuration } from "./Configuration.ts"
import * as Driver from "./Driver.ts"

/** Starts the program under test in a fresh folder, or in that of a case before. */
export type Open = (options?: Driver.DriverOptions) => Effect.Effect<Driver.Driver, Stop, Scope.Scope>

export interface ServeCheck {
  readonly id: string
  readonly level: Level
  readonly title: string
  readonly needs?: ReadonlyArray<string>
  readonly quiet?: boolean
  /** Only a program whose `ready` names this can be asked for it. */
  readonly capability?: string
  /** Tools that the run has to name. */
  readonly tools?: ReadonlyArray<keyof Tools>
  readonly run: (open: Open, configuration: Configuration) => Effect.Effect<void, Stop, Scope.Scope>
}

/** Fails the promise unless the condition holds. */
export const demand = (condition: boolean, message: string): Effect.Effect<void, Broken> =>
  condition ? Effect.void : Effect.fail(broken(message))

export const toCheck =
  (configuration: Configuration) =>
  (check: ServeCheck): Check => ({
    id: check.id,
    level: check.level,
    title: check.title,
    rules: [check.id],
    needs: check.needs ?? [],
    quiet: check.quiet ?? false,
    run: (witness) => {
      if (check.tools?.some((name) => configuration.tools[name] === undefined) === true) {
        return Effect.fail(skipped("not_declared"))
      }
      const { capability } = check
      const open: Open = (options) =>
        Effect.gen(function* () {
          const driver = yield* Driver.open(configuration, witness, options)
          if (capability === undefined) return driver
          yield* driver.ready
          return driver.has(capability) ? driver : yield* Effect.fail(skipped("not_declared"))
        })
      return check.run(open, configuration)
    }
  })
