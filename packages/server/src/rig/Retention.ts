/** What is kept how long (seat contract RIG-121, 9.7): cut in slices, so that no cut holds the event loop. */
import { seatLimits } from "@tackroom/protocol/seat"
import { Effect, type Scope } from "effect"
import type { RigStore } from "./RigStore.ts"
import type { ServiceLog } from "./ServiceLog.ts"

const dayMs = 86_400_000
const hourMs = 3_600_000

/** One pass over everything that grows. A pending ask is never touched. */
export const pass = (store: RigStore, feedKept: number = seatLimits.feedEvents) =>
  Effect.gen(function* () {
    while (yield* store.write((tx) => tx.logs.agePosts(tx.wall - seatLimits.keptPostDays * dayMs)))
      yield* Effect.yieldNow
    while (yield* store.write((tx) => tx.logs.trimFeed(feedKept))) yield* Effect.yieldNow
    yield* store.write((tx) => {
      tx.asks.trimAsks(tx.wall - seatLimits.keptAskDays * dayMs)
      tx.logs.trimItems(tx.wall)
      tx.logs.trimReplies(tx.wall - seatLimits.idempotencyHours * hourMs)
    })
  })

/** A pass at the start and every hour. */
export const make = (store: RigStore, log: ServiceLog): Effect.Effect<void, never, Scope.Scope> =>
  pass(store).pipe(
    Effect.catch((error) => Effect.sync(() => log.write("error", "old rows were not removed", { code: error.code }))),
    Effect.andThen(Effect.sleep(hourMs)),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
