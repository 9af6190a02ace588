/**
 * What the service knows of its seats beyond what is stored: the volatile half of their activity, the last reading, and
 * what tmux said of their sessions. The durable half is loaded at the start and written with every change.
 */
import type { ActivitySource, ActivityValue, SessionState } from "@tackroom/protocol/seat"
import { type ActivityState, afterRestart, initialActivity } from "./ActivityMachine.ts"
import type { StoredActivity } from "./LogRows.ts"

export interface LiveSeat {
  readonly activity: ActivityState
  readonly value: ActivityValue
  readonly source: ActivitySource
  /** When the value was first read, on the wall's clock. */
  readonly since: number
  readonly session: SessionState
}

export interface LiveSeats {
  readonly get: (nodeId: string) => LiveSeat
  readonly put: (nodeId: string, seat: LiveSeat) => void
  readonly all: () => Iterable<readonly [string, LiveSeat]>
}

export const make = (stored: ReadonlyArray<StoredActivity>, now: number, wall: number): LiveSeats => {
  const fresh: LiveSeat = {
    activity: initialActivity,
    value: "unknown",
    source: "none",
    since: wall,
    session: "absent"
  }
  const seats = new Map<string, LiveSeat>(
    stored.map((row) => [
      row.nodeId,
      {
        activity: afterRestart(row.state, now),
        value: row.value as ActivityValue,
        source: row.source as ActivitySource,
        since: row.since,
        session: "unavailable"
      }
    ])
  )
  return {
    get: (nodeId) => seats.get(nodeId) ?? fresh,
    put: (nodeId, seat) => void seats.set(nodeId, seat),
    all: () => seats.entries()
  }
}
