/**
 * Follows one run in the journal, from its start to its result, at the pace of whoever takes its lines (SRV-291, SRV-320).
 *
 * It owns the reading and the waiting. What an event says is `Projection`'s, and how it is numbered `RunLines`'. A turn
 * whose end cannot be committed ends with the one result that no journal has (SRV-304, SRV-305).
 */
import type { RuntimeError } from "@tackroom/protocol"
import { Effect } from "effect"
import type { Broken } from "../../runs/HostRuntime.ts"
import type { Runs } from "../../runs/Runs.ts"
import type { Item } from "./Item.ts"
import type { Projection } from "./Projection.ts"

export interface RunFeedOptions {
  readonly runs: Pick<Runs, "entries" | "moved" | "broken">
  readonly sessionId: string
  /** The session's head before the turn. */
  readonly after: number
  readonly projection: Projection
  /** Takes items in order; it waits while its reader is behind. */
  readonly take: (items: ReadonlyArray<Item>) => Effect.Effect<void>
}

/** How the following ended: at the turn's committed end, or without one. */
export type FeedEnd = "committed" | Broken

const breaks = {
  lost: {
    message: "another process took the session over",
    fault: { code: "lease_lost", class: "session" }
  },
  store: { message: "the store cannot keep the run any more", fault: { code: "store_unavailable" } }
} as const

const untilCommitted = ({
  after,
  projection,
  runs,
  sessionId,
  take
}: RunFeedOptions): Effect.Effect<void, RuntimeError> =>
  Effect.gen(function* () {
    let cursor = after
    while (!projection.hasEnded) {
      const seen = runs.moved.version(sessionId)
      const page = yield* runs.entries(sessionId, cursor)
      for (const entry of page.entries) {
        cursor = entry.cursor
        const items = projection.push(entry)
        if (items.length > 0) yield* take(items)
        if (projection.hasEnded) return
      }
      if (cursor < page.head) continue
      const rest = projection.caughtUp()
      if (rest.length > 0) yield* take(rest)
      yield* runs.moved.since(sessionId, seen)
    }
  })

/** Completes when the result was taken. */
export const followRun = (options: RunFeedOptions): Effect.Effect<FeedEnd> => {
  const { projection, runs, sessionId, take } = options
  const committed = untilCommitted(options).pipe(
    Effect.as<FeedEnd>("committed"),
    Effect.catch((error) =>
      Effect.as(Effect.logError("The journal of a run could not be read", error._tag), "store" as const)
    )
  )
  return Effect.raceFirst(committed, runs.broken(sessionId)).pipe(
    Effect.flatMap((end) => {
      if (end === "committed") return Effect.succeed<FeedEnd>(end)
      const { fault, message } = breaks[end]
      return Effect.as(take(projection.break(message, fault)), end)
    })
  )
}
