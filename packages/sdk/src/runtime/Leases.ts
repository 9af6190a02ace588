/**
 * Session leases (5.3): this process's place among those that share the store, the lease every turn is admitted with, and
 * its renewal. An owner that cannot renew stops its harness work at once; the fencing token guards every write besides.
 *
 * Implements RT-130 to RT-134.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { SessionTurnFenceStale } from "@tackroom/protocol"
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import type { LeaseRow } from "../store/Rows.ts"
import type { LeaseRequest, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn } from "./ActiveTurns.ts"
import { Minting } from "./Minting.ts"
import { Options } from "./Options.ts"

export class Leases extends Context.Service<
  Leases,
  {
    /** This process, as leases name it. */
    readonly owner: string
    readonly request: () => LeaseRequest
    /** Whether the lease's owner may still be at work. Expired, or its process known to be gone: no. */
    readonly isLive: (lease: LeaseRow | undefined, now: number) => boolean
    /** Looks whether the owner's process is gone; remembered when it is. */
    readonly examine: (owner: string) => Effect.Effect<boolean, StoreFailure>
    readonly release: (lease: LeaseRow) => Effect.Effect<void, StoreFailure>
    /** Makes this process known before its first lease; done once. */
    readonly register: Effect.Effect<void, StoreFailure>
    readonly unregister: Effect.Effect<void, StoreFailure>
  }
>()("@tackroom/sdk/runtime/Leases") {
  static readonly layer = Layer.effect(
    Leases,
    Effect.gen(function* () {
      const store = yield* Store
      const options = yield* Options
      const minting = yield* Minting
      const actives = yield* ActiveTurns
      // Made when it is first asked for: a runtime that starts no turn needs none.
      let minted: string | undefined
      const owner = (): string => (minted ??= minting.id("instance"))
      const dead = new Set<string>()
      const machine = Effect.all({ host: platform.hostname, self: platform.self }).pipe(
        Effect.catch(() => Effect.succeed({ host: "browser", self: { pid: 0, started: "" } }))
      )
      const here = yield* machine
      const host = here.host

      let renewedAt = minting.now()
      let registered = false

      const lose = (active: ActiveTurn): void => {
        const error = new SessionTurnFenceStale({ sessionId: active.session.id })
        Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: "Lost", error }))
      }

      const renew = Effect.gen(function* () {
        if (!registered) return
        const before = [...actives.all()]
        const from = minting.now()
        if (before.length === 0) {
          yield* store.heartbeat(owner())
          renewedAt = from
          return
        }
        const rows = new Map((yield* store.renewLeases(owner(), options.leaseMs)).map((row) => [row.sessionId, row]))
        renewedAt = from
        for (const active of before) {
          if (actives.get(active.session.id) !== active || active.ending) continue
          if (rows.get(active.session.id)?.fence !== active.lease.fence) lose(active)
        }
        yield* store.heartbeat(owner())
      }).pipe(
        Effect.catch((error) =>
          Effect.gen(function* () {
            yield* Effect.logWarning("Leases could not be renewed", error)
            if (minting.now() - renewedAt < options.leaseMs) return
            for (const active of actives.all()) lose(active)
          })
        )
      )

      yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Effect.sleep(options.leaseRenewMs), () => renew)))

      return Leases.of({
        get owner() {
          return owner()
        },
        request: () => ({ leaseId: minting.id("lease"), owner: owner(), ttlMs: options.leaseMs }),
        isLive: (lease, now) =>
          lease !== undefined && (lease.owner === minted || (lease.expiresAt > now && !dead.has(lease.owner))),
        examine: (other) =>
          Effect.gen(function* () {
            if (other === minted) return false
            if (dead.has(other)) return true
            const row = (yield* store.instances).find((instance) => instance.id === other)
            // An instance that left took its row with it.
            const gone =
              row === undefined ||
              (row.host === host &&
                !(yield* platform
                  .isSameProcess({ pid: row.pid, started: row.started })
                  .pipe(Effect.catch(() => Effect.succeed(true)))))
            if (gone) dead.add(other)
            return gone
          }),
        release: (lease) => store.releaseLease(lease.sessionId, lease.leaseId),
        register: Effect.suspend(() =>
          registered
            ? Effect.void
            : Effect.map(
                store.registerInstance({
                  id: owner(),
                  host,
                  pid: here.self.pid,
                  started: here.self.started,
                  heartbeatAt: minting.now()
                }),
                () => {
                  registered = true
                }
              )
        ),
        unregister: Effect.suspend(() => (registered ? store.removeInstance(owner()) : Effect.void))
      })
    })
  )
}
