/**
 * Which harnesses a runtime has, and their drivers. A driver is made at its first use, once per key, in the runtime's
 * scope; a factory that fails is asked again at the next use. The registry knows no concrete harness (RT-006).
 *
 * @since 0.1.0
 */
import { HarnessNotRegistered, HarnessUnavailable, type HarnessError } from "@tackroom/protocol"
import type { HarnessRef } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { Options } from "./Options.ts"
import { harnessKey, type HarnessContext, type HarnessDriver, type HarnessFactory } from "../harness/Harness.ts"

/** What drivers get from the runtime; provided by the runtime's composition. */
export class HarnessHost extends Context.Service<HarnessHost, HarnessContext>()("@tackroom/sdk/runtime/HarnessHost") {}

export class HarnessRegistry extends Context.Service<
  HarnessRegistry,
  {
    /** The registered factories, in the order in which they were given. */
    readonly factories: ReadonlyArray<HarnessFactory>
    readonly factory: (ref: HarnessRef) => HarnessFactory | undefined
    /** The driver, made when it is not there yet. Single flight per key. */
    readonly driver: (ref: HarnessRef) => Effect.Effect<HarnessDriver, HarnessError>
    /** The driver when it was made before; starts nothing. */
    readonly made: (ref: HarnessRef) => HarnessDriver | undefined
  }
>()("@tackroom/sdk/runtime/HarnessRegistry") {
  static readonly layer = Layer.effect(
    HarnessRegistry,
    Effect.gen(function* () {
      const options = yield* Options
      const host = yield* HarnessHost
      const scope = yield* Effect.scope
      const made = new Map<string, HarnessDriver>()
      const making = new Map<string, Deferred.Deferred<HarnessDriver, HarnessError>>()
      const resolved = new Map<string, HarnessFactory>()

      const factory = (ref: HarnessRef): HarnessFactory | undefined => {
        const key = harnessKey(ref)
        const known = options.harnesses.get(key) ?? resolved.get(key)
        if (known !== undefined) return known
        const found = options.resolveHarness?.(ref)
        if (found !== undefined) resolved.set(key, found)
        return found
      }

      const build = Effect.fnUntraced(function* (key: string, from: HarnessFactory) {
        // A driver has a scope of its own: a failed construction releases what it took at once.
        const own = yield* Scope.fork(scope)
        return yield* from.make(host).pipe(
          Effect.provideService(Scope.Scope, own),
          Effect.catchDefect(() =>
            Effect.fail(
              new HarnessUnavailable({ harness: key, operation: "make", detail: "its driver could not be made" })
            )
          ),
          Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(own, exit) : Effect.void))
        )
      })

      const driver = (ref: HarnessRef): Effect.Effect<HarnessDriver, HarnessError> =>
        Effect.suspend(() => {
          const key = harnessKey(ref)
          const ready = made.get(key)
          if (ready !== undefined) return Effect.succeed(ready)
          const flight = making.get(key)
          if (flight !== undefined) return Deferred.await(flight)
          const from = factory(ref)
          if (from === undefined) return Effect.fail(new HarnessNotRegistered({ harness: key }))
          const deferred = Deferred.makeUnsafe<HarnessDriver, HarnessError>()
          making.set(key, deferred)
          return Effect.uninterruptible(
            Effect.flatMap(Effect.exit(build(key, from)), (exit) => {
              making.delete(key)
              if (Exit.isSuccess(exit)) made.set(key, exit.value)
              Deferred.doneUnsafe(deferred, exit)
              return exit
            })
          )
        })

      return HarnessRegistry.of({
        factories: [...options.harnesses.values()],
        factory,
        driver,
        made: (ref) => made.get(harnessKey(ref))
      })
    })
  )
}
