/**
 * What the harnesses say of themselves (4.4), and the small lists of a session (4.3): health, capabilities, todos, commands.
 * Reading health and pending interactions starts nothing (RT-069).
 *
 * @since 0.1.0
 */
import { ScopeMismatch, UnsupportedOperation, type RuntimeError } from "@tackroom/protocol"
import type { Command, Todo } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import { harnessKey, type HarnessHealth } from "../harness/Harness.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import { Store } from "../store/Store.ts"
import { withDeadline } from "./Deadlines.ts"
import { harnessOf, NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { Sessions } from "./Sessions.ts"
import { Turns, type Admission } from "./Turns.ts"

export class Health extends Context.Service<
  Health,
  {
    readonly read: (
      directory?: string
    ) => Effect.Effect<ReadonlyArray<HarnessHealth & { readonly harness: string }>, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Health") {
  static readonly layer = Layer.effect(
    Health,
    Effect.gen(function* () {
      const registry = yield* HarnessRegistry
      return Health.of({
        read: (directory) =>
          Effect.forEach(registry.factories, (factory): Effect.Effect<HarnessHealth & { readonly harness: string }> => {
            const harness = harnessKey(factory)
            const driver = registry.made(factory)
            // A harness that was never used is well as far as anybody knows; asking it would start it.
            return driver === undefined
              ? Effect.succeed({ harness, status: "ok" as const })
              : Effect.map(driver.health(directory), (health) => ({ harness, ...health }))
          })
      })
    })
  )
}

export class Capabilities extends Context.Service<
  Capabilities,
  {
    readonly read: (sessionId: string, directory?: string) => Effect.Effect<HarnessCapabilities, RuntimeError>
    readonly list: (directory?: string) => Effect.Effect<ReadonlyArray<HarnessCapabilities>, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Capabilities") {
  static readonly layer = Layer.effect(
    Capabilities,
    Effect.gen(function* () {
      const registry = yield* HarnessRegistry
      const sessions = yield* Sessions
      const natives = yield* NativeSessions
      return Capabilities.of({
        read: (sessionId, directory) =>
          Effect.gen(function* () {
            const row = yield* sessions.row(sessionId)
            if (directory !== undefined && directory !== row.directory) return yield* new ScopeMismatch({ sessionId })
            const driver = yield* natives.driver(row)
            return yield* driver.capabilities({ directory: row.directory, sessionId })
          }),
        list: (directory) =>
          Effect.gen(function* () {
            const out: Array<HarnessCapabilities> = []
            for (const factory of registry.factories) {
              // One that cannot start declares nothing; `health` says why.
              const found = yield* Effect.result(
                Effect.flatMap(registry.driver(factory), (driver) =>
                  driver.capabilities({ directory: directory ?? "/" })
                )
              )
              if (found._tag === "Success") out.push(found.success)
            }
            return out
          })
      })
    })
  )
}

export class Todos extends Context.Service<
  Todos,
  { readonly list: (sessionId: string, directory?: string) => Effect.Effect<ReadonlyArray<Todo>, RuntimeError> }
>()("@tackroom/sdk/runtime/Todos") {
  static readonly layer = Layer.effect(
    Todos,
    Effect.gen(function* () {
      const store = yield* Store
      const sessions = yield* Sessions
      return Todos.of({
        list: (sessionId, directory) =>
          Effect.gen(function* () {
            const row = yield* sessions.row(sessionId)
            if (directory !== undefined && directory !== row.directory) return yield* new ScopeMismatch({ sessionId })
            return yield* store.todos(sessionId)
          })
      })
    })
  )
}

export class Commands extends Context.Service<
  Commands,
  {
    readonly list: (
      directory: string,
      options?: { readonly sessionId?: string }
    ) => Effect.Effect<ReadonlyArray<Command>, RuntimeError>
    readonly execute: (
      sessionId: string,
      command: { readonly name: string; readonly arguments?: string; readonly messageId?: string },
      directory?: string
    ) => Effect.Effect<Admission, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Commands") {
  static readonly layer = Layer.effect(
    Commands,
    Effect.gen(function* () {
      const registry = yield* HarnessRegistry
      const sessions = yield* Sessions
      const natives = yield* NativeSessions
      const turns = yield* Turns
      const options = yield* Options

      const probe = <A, E>(harness: string, call: Effect.Effect<A, E>) =>
        withDeadline(call, { ms: options.probeTimeoutMs, harness, operation: "commands" })

      return Commands.of({
        list: (directory, filter) =>
          Effect.gen(function* () {
            if (filter?.sessionId !== undefined) {
              const row = yield* sessions.row(filter.sessionId)
              const driver = yield* natives.driver(row)
              return yield* probe(harnessKey(harnessOf(row)), driver.commands(row.directory, row.id))
            }
            const out: Array<Command> = []
            for (const factory of registry.factories) {
              const driver = yield* registry.driver(factory)
              const found = yield* Effect.result(probe(harnessKey(factory), driver.commands(directory)))
              if (found._tag === "Success") out.push(...found.success)
              else if (found.failure._tag !== "UnsupportedOperation") return yield* Effect.fail(found.failure)
            }
            return out
          }),
        execute: (sessionId, command, directory) =>
          Effect.gen(function* () {
            const row = yield* sessions.row(sessionId)
            const key = harnessKey(harnessOf(row))
            const driver = yield* natives.driver(row)
            const known = yield* probe(key, driver.commands(row.directory, sessionId))
            if (!known.some((candidate) => candidate.name === command.name)) {
              return yield* new UnsupportedOperation({ harness: key, operation: `command ${command.name}` })
            }
            const words = command.arguments === undefined ? "" : ` ${command.arguments}`
            return yield* turns
              .start({
                sessionId,
                text: `/${command.name}${words}`,
                ...(command.messageId === undefined ? {} : { messageId: command.messageId }),
                ...(directory === undefined ? {} : { directory })
              })
              .pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error)))
          })
      })
    })
  )
}
