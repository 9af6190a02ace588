/**
 * The queue of activity posts: one in flight, in order, and nobody waits for it (SEAT-120 to SEAT-126).
 *
 * It owns numbers, times, retries and what gives way to what. When something is worth a post is not its business.
 * Invariants: a boundary is sent before everything that was enqueued after it; after `seal` nothing is taken.
 */
import { type ActivityPost, activityPost, postReactionTo, refusalCode, seatPaths } from "@tackroom/protocol/seat"
import { Clock, Effect, Latch, type Scope } from "effect"
import type { EndpointSource } from "../rig/Endpoint.ts"
import type { NoAnswer, RigAnswer, RigClient } from "../rig/RigClient.ts"

/** A post without what every post carries. */
export type Told = Pick<ActivityPost, "hookEvent" | "subtype" | "turnId" | "askId"> & {
  readonly livenessSeconds?: number
}

/** Names of the seat as its environment gave them; those that it did not give are left out. */
export type SeatNames = Pick<ActivityPost, "sessionName" | "nodeId" | "runtime" | "generation">

/** A post that only matters until the next one, or one that must arrive. */
export type Weight = "soft" | "boundary"

export interface ActivityQueue {
  /** Takes a post, at once and always. */
  readonly add: (told: Told, weight: Weight) => void
  /** Forgets soft posts that are not yet sent. */
  readonly dropSoft: () => void
  /** Takes no more posts; what is waiting is still sent. */
  readonly seal: () => void
  /** Waits until nothing is left to send. */
  readonly drained: Effect.Effect<void>
  /** The time for a post or request that is made now: never before the one of the last. */
  readonly now: () => string
}

interface Waiting {
  readonly post: ActivityPost
  readonly weight: Weight
}

const tryMs = 1_500
const retryPausesMs = [250, 1_000]
const pendingPauseMs = 250
const pendingTries = 40
const mostSoft = 32
const mostBoundaries = 10_000
const refreshEveryMs = 2_000

export const makeActivityQueue = (options: {
  readonly client: RigClient
  readonly endpoint: EndpointSource
  readonly names: SeatNames
  /** A line for the pane. */
  readonly say: (line: string) => void
}): Effect.Effect<ActivityQueue, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, endpoint, names, say } = options
    const clock = yield* Clock.Clock
    const filled = yield* Latch.make(false)
    const empty = yield* Latch.make(true)
    let waiting: Array<Waiting> = []
    let boundaries = 0
    let sequence = 0
    let lastMs = 0
    let refreshedAt = Number.NEGATIVE_INFINITY
    let off = !client.isReachable() && !endpoint.usesFile
    let sealed = false

    const now = (): string => {
      lastMs = Math.max(lastMs, clock.currentTimeMillisUnsafe())
      return new Date(lastMs).toISOString()
    }

    const turnOff = (line: string): void => {
      if (off) return
      off = true
      waiting = []
      boundaries = 0
      say(line)
    }

    const keep = (wanted: (entry: Waiting, index: number) => boolean): void => {
      waiting = waiting.filter(wanted)
    }

    const makeRoomForSoft = (): void => {
      const lastBoundary = waiting.findLastIndex(({ weight }) => weight === "boundary")
      keep((_, index) => index <= lastBoundary)
      let over = waiting.length - boundaries - (mostSoft - 1)
      if (over > 0) keep(({ weight }) => weight === "boundary" || over-- <= 0)
    }

    const add = (told: Told, weight: Weight): void => {
      if (sealed || off) return
      if (weight === "soft") makeRoomForSoft()
      else boundaries += 1
      waiting.push({ post: { ...names, ...told, sequence: ++sequence, occurredAt: now() }, weight })
      if (boundaries > mostBoundaries) {
        turnOff("error > too many activity posts wait: activity off for this run")
        return
      }
      empty.closeUnsafe()
      filled.openUnsafe()
    }

    const refresh = (): boolean => {
      const at = clock.currentTimeMillisUnsafe()
      if (at - refreshedAt < refreshEveryMs) return false
      refreshedAt = at
      return endpoint.refresh()
    }

    const tryOnce = (post: ActivityPost): Effect.Effect<RigAnswer | NoAnswer> =>
      client
        .send({ method: "POST", path: seatPaths.hooks, body: activityPost.encode(post), limitMs: tryMs })
        .pipe(Effect.catch((noAnswer) => Effect.succeed(noAnswer)))

    /** Sends one post as often as it is worth; what cannot be delivered is given up, never an error. */
    const deliver = Effect.fnUntraced(function* ({ post, weight }: Waiting) {
      let retries = 0
      let pendings = 0
      for (;;) {
        if (off) return
        const answer = yield* tryOnce(post)
        if ("status" in answer && answer.status < 400) return
        const code = "status" in answer ? refusalCode(answer.body) : undefined
        const reaction = "status" in answer ? postReactionTo(code) : "give_up"
        if (reaction === "stop_posting") {
          turnOff(`seat > the rig takes no more posts from this seat (${code ?? "refused"}): activity off`)
          return
        }
        const mayHaveMoved = reaction === "read_endpoint" || ("reason" in answer && answer.reason === "refused")
        const moved = mayHaveMoved && refresh()
        if (weight === "soft") return
        if (reaction === "retry_soon") {
          if (++pendings > pendingTries) return
          yield* Effect.sleep(pendingPauseMs)
          continue
        }
        const again = moved || !("status" in answer) || answer.status >= 500
        const pause = retryPausesMs[retries++]
        if (!again || pause === undefined) return
        yield* Effect.sleep(pause)
      }
    })

    const work = Effect.gen(function* () {
      for (;;) {
        yield* filled.await
        const next = waiting.shift()
        if (next === undefined) {
          filled.closeUnsafe()
          empty.openUnsafe()
          continue
        }
        if (next.weight === "boundary") boundaries -= 1
        yield* deliver(next)
      }
    })
    yield* Effect.forkScoped(work)

    return {
      add,
      dropSoft: () => keep(({ weight }) => weight === "boundary"),
      seal: () => {
        sealed = true
      },
      drained: empty.await,
      now
    }
  })
