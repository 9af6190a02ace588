/**
 * What a start does with occupants of before (seat contract RIG-321): a reserved one whose session carries its generation
 * is registered, else dropped; a live one whose session is gone has ended. Where tmux cannot be asked nothing is concluded,
 * and it is asked again every five seconds.
 */
import type { SeatError } from "@tackroom/protocol/seat"
import { Effect, type Scope } from "effect"
import type { Occupants } from "./Occupants.ts"
import { iso } from "./RigClock.ts"
import type { RigStore } from "./RigStore.ts"
import type { OccupantRow } from "./SeatRows.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import type { Tmux } from "./Tmux.ts"

export interface ReconcilingConfig {
  readonly store: RigStore
  readonly tmux: Tmux
  readonly occupants: Occupants
  readonly log: ServiceLog
}

const againMs = 5_000

/** Asks about one occupant; false when tmux could not be asked. */
const settle = (
  { store, tmux, occupants }: ReconcilingConfig,
  occupant: OccupantRow
): Effect.Effect<boolean, SeatError> =>
  Effect.gen(function* () {
    const seat = store.seats.seat(occupant.nodeId)
    if (seat === undefined) return true
    const probe = yield* tmux.probe(seat.session)
    if (probe._tag === "Unavailable") return false
    const isOurs =
      probe._tag === "Present" &&
      !probe.dead &&
      probe.nodeId === occupant.nodeId &&
      probe.generation === occupant.generation
    yield* store.write((tx) => {
      const now = tx.seats.occupant(occupant.generation)
      if (now?.state === "reserved") {
        if (isOurs) {
          occupants.register(tx, now)
          return
        }
        occupants.drop(tx, now)
        tx.seats.setLaunch(seat.nodeId, {
          ...seat.launch,
          state: "not_started",
          at: iso(tx.wall),
          reason: "interrupted"
        })
        tx.tell("seat.launch", seat.nodeId)
      } else if (now?.state === "live" && !isOurs) occupants.end(tx, now, "ended")
    })
    if (isOurs) store.live.put(seat.nodeId, { ...store.live.get(seat.nodeId), session: "present" })
    return true
  })

/** Settles what can be settled now; the rest goes on in the background. */
export const make = (config: ReconcilingConfig): Effect.Effect<void, SeatError, Scope.Scope> =>
  Effect.gen(function* () {
    const unsettled = (occupants: ReadonlyArray<OccupantRow>) =>
      Effect.filter(occupants, (occupant) => Effect.map(settle(config, occupant), (done) => !done))
    const left = yield* unsettled(config.store.seats.openOccupants())
    if (left.length === 0) return
    config.log.write("warn", "tmux does not answer; nothing is concluded about running seats", { seats: left.length })
    const later = Effect.gen(function* () {
      let open: ReadonlyArray<OccupantRow> = left
      while (open.length > 0) {
        yield* Effect.sleep(againMs)
        open = yield* unsettled(open)
      }
    })
    yield* later.pipe(
      Effect.catch((error) =>
        Effect.sync(() => config.log.write("error", "occupants were not reconciled", { code: error.code }))
      ),
      Effect.forkScoped
    )
  })
