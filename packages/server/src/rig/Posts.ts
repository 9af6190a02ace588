/**
 * Activity posts: who speaks for which seat, whether it counts, what is stored, what is answered (seat contract 5.2, 6).
 *
 * Posts of one seat are handled one after the other in the order of their arrival; different seats do not wait on each
 * other. A post and what it changes are one transaction.
 */
import {
  activityKind,
  type ActivityAnswer,
  type ActivityPost,
  activityStates,
  identifierText,
  type SeatError,
  seatLimits
} from "@tackroom/protocol/seat"
import { Effect, Fiber, Semaphore } from "effect"
import type { Activities } from "./Activities.ts"
import { read } from "./ActivityMachine.ts"
import { isRefusal, type SeatCaller, speaksFor } from "./Callers.ts"
import { iso } from "./RigClock.ts"
import type { RigStore, Tx } from "./RigStore.ts"
import { seatKey, type Waiters } from "./Waiters.ts"

export interface Posts {
  readonly post: (caller: SeatCaller, body: ActivityPost) => Effect.Effect<ActivityAnswer, SeatError>
}

/** ISO 8601 with an offset; anything else has no time of its own. */
export const occurredAt = (value: unknown): number | undefined => {
  if (typeof value !== "string") return undefined
  if (!/^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d{2}:?\d{2})$/u.test(value)) {
    return undefined
  }
  const time = Date.parse(value.replace(",", "."))
  return Number.isNaN(time) ? undefined : time
}

/** How often the posts of a seat are cut back to what is kept. */
const trimEvery = 500

export const make = (store: RigStore, activities: Activities, waiters: Waiters): Posts => {
  const locks = new Map<string, Semaphore.Semaphore>()
  const since = new Map<string, number>()

  const lockOf = (nodeId: string): Semaphore.Semaphore => {
    const known = locks.get(nodeId)
    if (known !== undefined) return known
    const made = Semaphore.makeUnsafe(1)
    locks.set(nodeId, made)
    return made
  }

  const keepBounded = (tx: Tx, nodeId: string): void => {
    const count = (since.get(nodeId) ?? 0) + 1
    since.set(nodeId, count % trimEvery)
    if (count >= trimEvery) tx.logs.trimPosts(nodeId)
  }

  /** A post that names an occupant whose registration is under way waits a moment for it. */
  const registered = (nodeId: string, generation: string | undefined): Effect.Effect<void> =>
    waiters.watching([seatKey(nodeId)], (changed) => {
      const isReserved = generation !== undefined && store.seats.reserved(nodeId)?.generation === generation
      return isReserved
        ? Effect.timeoutOrElse(changed, { duration: seatLimits.registrationWaitMs, orElse: () => Effect.void })
        : Effect.void
    })

  const record = (tx: Tx, caller: SeatCaller, body: ActivityPost): ActivityAnswer | SeatError => {
    const spoken = speaksFor(tx.seats, caller, body)
    if (isRefusal(spoken)) return spoken
    const { seat } = spoken
    const { nodeId } = seat
    const occupant = tx.seats.live(nodeId)
    const claimed = body.generation ?? spoken.authenticated
    const pending = claimed !== undefined && tx.seats.reserved(nodeId)?.generation === claimed
    const at = occurredAt(body.occurredAt) ?? tx.now
    const applied = activities.post(
      tx,
      nodeId,
      { live: occupant !== undefined, pending, runner: occupant?.declaration.runner === true },
      {
        kind: activityKind(body),
        key: { at, sequence: body.sequence ?? null },
        turnId: body.turnId === undefined ? undefined : identifierText(body.turnId),
        liveness: body.livenessSeconds,
        generation: claimed === undefined ? "absent" : claimed === occupant?.generation ? "live" : "other"
      }
    )
    tx.logs.addPost({
      nodeId,
      generation: claimed ?? null,
      sequence: body.sequence ?? null,
      occurredAt: at,
      arrivedAt: tx.wall,
      hookEvent: body.hookEvent,
      subtype: body.subtype,
      body: JSON.stringify(body),
      why: applied.why
    })
    keepBounded(tx, nodeId)
    const reading = read(store.live.get(nodeId).activity, occupant !== undefined, tx.now)
    return {
      ok: true,
      activity: {
        state: activityStates[reading.value],
        reason: applied.why,
        evidenceSource: "runtime_hook",
        sampledAt: iso(tx.wall),
        evidence: `${body.hookEvent}/${body.subtype}`,
        eventAt: iso(at),
        rawEvent: body.hookEvent,
        rawSubtype: body.subtype,
        runtime: body.runtime ?? seat.harness,
        fallback: false,
        stale: claimed !== undefined && claimed !== occupant?.generation,
        generation: claimed ?? null
      },
      tackroom: { counted: applied.why === "counted", why: applied.why }
    }
  }

  return {
    post: (caller, body) =>
      Effect.suspend(() => {
        const spoken = speaksFor(store.seats, caller, body)
        if (isRefusal(spoken)) return Effect.fail(spoken)
        const { nodeId } = spoken.seat
        // The lock covers the wait and the place in the line of writes, not the commit: what arrives together commits
        // together.
        const placed = Effect.andThen(
          body.generation === undefined ? Effect.void : registered(nodeId, body.generation),
          Effect.forkChild(
            store.write((tx) => record(tx, caller, body)),
            { startImmediately: true }
          )
        )
        return Effect.flatMap(lockOf(nodeId).withPermits(1)(placed), Fiber.join)
      })
  }
}
