/**
 * Readings that change by themselves, because evidence ran out: each is told within 250 ms (seat contract 6.4). One fiber
 * sleeps until the earliest end of evidence, and is woken when an earlier one came.
 */
import { Effect, type Scope } from "effect"
import type { Activities } from "./Activities.ts"
import { nextChange, read } from "./ActivityMachine.ts"
import type { RigStore } from "./RigStore.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import type { Waiters } from "./Waiters.ts"

const key = "readings"

export const make = (
  store: RigStore,
  activities: Activities,
  waiters: Waiters,
  log: ServiceLog
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    activities.onChange(() => waiters.wake(key))

    /**
     * Seats that read something else now than was last told. Without an occupant the fields are as at the start and read the
     * same, so nobody is asked who is in a seat.
     */
    const due = (now: number): ReadonlyArray<string> =>
      [...store.live.all()]
        .filter(([, seat]) => read(seat.activity, true, now).value !== seat.value)
        .map(([nodeId]) => nodeId)

    const tell = (nodeIds: ReadonlyArray<string>) =>
      nodeIds.length === 0
        ? Effect.void
        : store
            .write((tx) => {
              for (const nodeId of nodeIds) activities.refresh(tx, nodeId)
            })
            .pipe(
              Effect.catch((error) =>
                Effect.sync(() => log.write("error", "a reading was not stored", { code: error.code }))
              )
            )

    const earliest = (now: number): number => {
      let next = Number.POSITIVE_INFINITY
      for (const [, seat] of store.live.all()) next = Math.min(next, nextChange(seat.activity, now) ?? next)
      return next
    }

    const turn = waiters.watching([key], (changed) =>
      Effect.gen(function* () {
        const now = store.clock.steady()
        yield* tell(due(now))
        const next = earliest(now)
        yield* next === Number.POSITIVE_INFINITY
          ? changed
          : Effect.timeoutOrElse(changed, { duration: Math.max(next - now, 1), orElse: () => Effect.void })
      })
    )
    yield* Effect.forkScoped(Effect.forever(turn))
  })
