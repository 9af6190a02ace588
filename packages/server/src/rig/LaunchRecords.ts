/**
 * What the record of a launch says becomes the seat's launch state, once, and once more for a late one (seat contract 4,
 * RIG-055). Whoever finds that an occupant is gone looks at its record first: a program may write it and end before the
 * next look.
 */
import { launchStates, readLaunchRecord, type SeatLaunch, writeLaunchRecord } from "@tackroom/protocol/seat"
import type { LaunchFiles } from "./LaunchFiles.ts"
import { launchOutcome } from "./LaunchMachine.ts"
import { iso } from "./RigClock.ts"
import type { Tx } from "./RigStore.ts"
import type { AttemptRow, OccupantRow } from "./SeatRows.ts"
import { seatKey, type Waiters } from "./Waiters.ts"

export interface LaunchRecords {
  /** The record of this launch, when what stands in its file can be used. */
  readonly usable: (rows: Pick<Tx, "seats">, attempt: AttemptRow, occupant: OccupantRow) => string | undefined
  /** Sets the launch state from what was found; false when it is set already or nobody is in the seat. */
  readonly conclude: (tx: Tx, attempt: string, text: string | undefined, late: boolean, reason?: string) => boolean
  /** Before an occupant is said to have ended: a record that nobody has read yet still counts. */
  readonly lastLook: (tx: Tx, occupant: OccupantRow) => void
}

/** Stores where a seat's launch stands and tells of it. */
export const setLaunch = (tx: Tx, nodeId: string, launch: SeatLaunch): void => {
  const before = tx.seats.seat(nodeId)?.launch.state
  tx.seats.setLaunch(nodeId, launch)
  tx.tell("seat.launch", nodeId)
  const needed = before !== undefined && launchStates[before].needsPerson
  if (needed || launchStates[launch.state].needsPerson) tx.tell("seat.attention", nodeId)
}

export const make = (files: LaunchFiles, waiters: Waiters): LaunchRecords => {
  const usable: LaunchRecords["usable"] = ({ seats }, { attempt }, { harness, nodeId }) => {
    const text = files.recordText(attempt, seats.seat(nodeId)?.guest ?? false)
    return text !== undefined && readLaunchRecord(text, { attempt, harness }) !== undefined ? text : undefined
  }

  const conclude: LaunchRecords["conclude"] = (tx, attemptId, text, late, reason) => {
    const attempt = tx.seats.attempt(attemptId)
    const occupant = attempt === undefined ? undefined : tx.seats.occupant(attempt.generation)
    const seat = occupant === undefined ? undefined : tx.seats.seat(occupant.nodeId)
    if (attempt === undefined || occupant?.state !== "live" || seat === undefined) return false
    if (attempt.state === "set" || (attempt.state === "late" && !late)) return false
    const record =
      text === undefined ? undefined : readLaunchRecord(text, { attempt: attemptId, harness: occupant.harness })
    const outcome = launchOutcome(
      {
        resumes: attempt.resumes,
        wantsRecord: occupant.declaration.launchResult,
        runner: occupant.declaration.runner
      },
      record
    )
    if (outcome.conversation._tag === "Set") {
      tx.seats.setConversation(seat.nodeId, outcome.conversation.nativeRef, occupant.harness, false)
    } else if (outcome.conversation._tag === "Missing") {
      tx.seats.setConversation(seat.nodeId, seat.nativeRef, seat.refHarness, true)
    } else if (outcome.state === "resumed") {
      tx.seats.setConversation(seat.nodeId, seat.nativeRef, seat.refHarness, false)
    } else if (attempt.resumes === null && !late) {
      tx.seats.setConversation(seat.nodeId, null, null, false)
    }
    const waits = record === undefined && occupant.declaration.launchResult && attempt.folder
    tx.seats.setAttempt(attemptId, waits ? "late" : "set", record === undefined ? null : writeLaunchRecord(record))
    setLaunch(tx, seat.nodeId, {
      ...seat.launch,
      state: outcome.state,
      at: iso(tx.wall),
      late,
      seen: false,
      reason: outcome.reason === null ? null : (reason ?? outcome.reason),
      otherRef: outcome.otherRef
    })
    tx.after(() => {
      files.removeInput(attemptId)
      waiters.wake(seatKey(seat.nodeId))
    })
    return true
  }

  return {
    usable,
    conclude,
    lastLook: (tx, occupant) => {
      const attempt = tx.seats.attempt(occupant.attempt)
      if (attempt === undefined || attempt.state === "set" || !attempt.folder) return
      const text = usable(tx, attempt, occupant)
      if (text !== undefined) conclude(tx, attempt.attempt, text, attempt.state === "late")
    }
  }
}
