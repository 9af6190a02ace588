/** Who sits in a seat: registration and end of an occupant, each one transaction with everything that follows from it. */
import { type LaunchState, launchStates } from "@tackroom/protocol/seat"
import type { Activities } from "./Activities.ts"
import { type LaunchRecords, setLaunch } from "./LaunchRecords.ts"
import { iso } from "./RigClock.ts"
import type { Tx } from "./RigStore.ts"
import type { OccupantRow } from "./SeatRows.ts"
import { seatKey, type Waiters } from "./Waiters.ts"

export interface Occupants {
  /** A reserved occupant becomes the live one; earlier ones end with their grants and asks (RIG-054). */
  readonly register: (tx: Tx, occupant: OccupantRow) => void
  /**
   * The live occupant is gone: stopped by an operator, or its session ended. What a launch came to and nobody has seen yet
   * stays until a person acts, though the program that said it is gone (RIG-055).
   */
  readonly end: (tx: Tx, occupant: OccupantRow, how: Extract<LaunchState, "stopped" | "ended">) => void
  /** A reservation that came to nothing. */
  readonly drop: (tx: Tx, occupant: OccupantRow) => void
}

export const make = (activities: Activities, waiters: Waiters, records: LaunchRecords): Occupants => ({
  register: (tx, occupant) => {
    const { generation, nodeId } = occupant
    tx.seats.endOthers(nodeId, generation, tx.wall)
    tx.seats.register(generation, tx.wall)
    tx.seats.revokeOthers(nodeId, generation, tx.wall)
    activities.input(tx, nodeId, "registered")
    tx.after(() => waiters.wake(seatKey(nodeId)))
  },
  end: (tx, occupant, how) => {
    const { generation, nodeId } = occupant
    if (how === "ended") records.lastLook(tx, occupant)
    const seat = tx.seats.seat(nodeId)
    tx.seats.end(generation, "ended", tx.wall)
    tx.seats.revokeGrants(generation, tx.wall)
    tx.seats.setAttempt(occupant.attempt, "set", null)
    if (seat !== undefined) {
      const { launch } = seat
      const open = how === "ended" && launchStates[launch.state].needsPerson && !launch.seen
      setLaunch(tx, nodeId, open ? launch : { ...launch, state: how, at: iso(tx.wall) })
    }
    activities.input(tx, nodeId, "ended")
    tx.after(() => waiters.wake(seatKey(nodeId)))
  },
  drop: (tx, occupant) => {
    tx.seats.end(occupant.generation, "dropped", tx.wall)
    tx.seats.revokeGrants(occupant.generation, tx.wall)
    tx.seats.setAttempt(occupant.attempt, "set", null)
    tx.after(() => waiters.wake(seatKey(occupant.nodeId)))
  }
})
