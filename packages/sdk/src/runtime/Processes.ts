/**
 * The processes of harnesses (10.3): the embedder's owner, or one of the runtime's own, made at its first use. What a dead
 * owner left running is ended when the runtime opens.
 *
 * Implements HRN-032, HRN-033.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { UnsupportedOperation } from "@tackroom/protocol"
import { Context, Effect, Layer, Scope } from "effect"
import { identityOfInstance, instanceIdOf } from "../process/Instance.ts"
import type { ProcessOwnerService } from "../process/ProcessOwner.ts"
import type { StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { Options } from "./Options.ts"

export class Processes extends Context.Service<
  Processes,
  {
    readonly owner: Effect.Effect<ProcessOwnerService, UnsupportedOperation>
    /** Ends the children of owners that died, by pid and start time. An embedder with an owner does this itself. */
    readonly reap: Effect.Effect<void, StoreFailure>
  }
>()("@tackroom/sdk/runtime/Processes") {
  static readonly layer = Layer.effect(
    Processes,
    Effect.gen(function* () {
      const options = yield* Options
      const store = yield* Store
      const scope = yield* Effect.scope
      const given = options.embedder.processes
      const owner =
        given === undefined
          ? yield* Effect.cached(
              Effect.gen(function* () {
                const self = yield* platform.self
                return yield* Scope.provide(
                  platform.processes({
                    instanceId: instanceIdOf(self),
                    records: { add: (record) => store.addProcess(record), remove: (id) => store.removeProcess(id) }
                  }),
                  scope
                )
              })
            )
          : Effect.succeed(given)
      const isLeft = (instanceId: string): Effect.Effect<boolean> =>
        platform.isSameProcess(identityOfInstance(instanceId)).pipe(
          Effect.map((alive) => !alive),
          Effect.catch(() => Effect.succeed(false))
        )
      return Processes.of({
        owner,
        reap:
          given === undefined
            ? Effect.gen(function* () {
                const left = yield* Effect.filter(yield* store.processes, (record) => isLeft(record.instanceId))
                if (left.length === 0) return
                const reaper = yield* Effect.option(owner)
                if (reaper._tag === "None") return
                yield* reaper.value.reap(left)
                yield* Effect.forEach(left, (record) => store.removeProcess(record.id), { discard: true })
              })
            : Effect.void
      })
    })
  )
}
