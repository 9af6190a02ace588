/** A check of this family before it knows the program under test, and what its body is given. */
import { Effect, type Scope } from "effect"
import { type Broken, broken, type Check, type Level, skipped, type Stop } from "../Check.ts"
import { isObject, type JsonObject } from "../Json.ts"
import * as Client from "./Client.ts"
import type { Configuration, Prompts } from "./Configuration.ts"

/** Starts the program under test in a fresh folder, or in that of a case before. */
export type Open = (former?: string) => Effect.Effect<Client.Client, Stop, Scope.Scope>

export interface AcpCheck {
  readonly id: string
  readonly level: Level
  readonly title: string
  /** The page of the specification that the promise comes from. */
  readonly page: string
  /** Prompts that the run has to know. */
  readonly prompts?: ReadonlyArray<keyof Prompts>
  readonly run: (open: Open, configuration: Configuration) => Effect.Effect<void, Stop, Scope.Scope>
}

/** Fails the promise unless the condition holds. */
export const demand = (condition: boolean, message: string): Effect.Effect<void, Broken> =>
  condition ? Effect.void : Effect.fail(broken(message))

/** Skips the check unless the program offers what it is about. */
export const offered = (condition: boolean): Effect.Effect<void, Stop> =>
  condition ? Effect.void : Effect.fail(skipped("not_declared"))

/** A capability of the answer to `initialize`. */
export const capability = (said: JsonObject, ...path: ReadonlyArray<string>): boolean => {
  let found: unknown = said["agentCapabilities"]
  for (const name of path) found = isObject(found) ? found[name] : undefined
  return found === true || isObject(found)
}

/** A program with a session. */
export interface Ready {
  readonly client: Client.Client
  /** What it said of itself. */
  readonly said: JsonObject
  readonly sessionId: string
}

/** Starts the program and a session in it. */
export const ready = (open: Open): Effect.Effect<Ready, Stop, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* open()
    const said = yield* client.start
    return { client, said, sessionId: yield* client.session() }
  })

export const toCheck =
  (configuration: Configuration) =>
  (check: AcpCheck): Check => ({
    id: check.id,
    level: check.level,
    title: check.title,
    rules: [check.page],
    needs: [],
    quiet: false,
    run: (witness) =>
      check.prompts?.some((name) => configuration.prompts[name] === undefined) === true
        ? Effect.fail(skipped("not_declared"))
        : check.run((former) => Client.open(configuration, witness, former), configuration)
  })
