/** What is shown of rigs, seats, asks and people: rows and live knowledge, put together. It reads and changes nothing. */
import {
  type AskView,
  launchStates,
  permitOption,
  type Person,
  type RigView,
  type SeatView
} from "@tackroom/protocol/seat"
import { type ActivityState, read } from "./ActivityMachine.ts"
import type { AskRow, AskRows } from "./AskRows.ts"
import type { LiveSeats } from "./LiveSeats.ts"
import type { LogRows } from "./LogRows.ts"
import { iso, type RigClock } from "./RigClock.ts"
import type { SeatRow, SeatRows } from "./SeatRows.ts"
import { shown, shownName } from "./ShownOptions.ts"
import { titleOf } from "./ToolCallText.ts"

export interface ViewSources {
  readonly seats: SeatRows
  readonly asks: AskRows
  readonly logs: LogRows
  readonly live: LiveSeats
  readonly clock: RigClock
}

/** Why a seat needs a person. */
export const attentionOf = (row: SeatRow, activity: ActivityState): SeatView["attention"] => [
  ...(launchStates[row.launch.state].needsPerson && !row.launch.seen ? (["launch"] as const) : []),
  ...(activity.attentionPost ? (["post"] as const) : []),
  ...(activity.attentionAsks.length > 0 ? (["ask"] as const) : [])
]

export const make = ({ seats, asks, logs, live, clock }: ViewSources) => {
  const seatOf = (row: SeatRow): SeatView => {
    const known = live.get(row.nodeId)
    const occupant = seats.live(row.nodeId)
    const now = clock.steady()
    const reading = read(known.activity, occupant !== undefined, now)
    // A reading's end is a time of the steady clock; people read it on the wall's.
    const until = reading.until === null ? null : iso(reading.until - now + clock.wall())
    // A send that is under way is about to press Enter.
    const last = occupant === undefined ? undefined : logs.draft(occupant.generation)
    const draft = last?.outcome === "started" ? undefined : last
    const same = reading.value === known.value
    return {
      seat: row.session,
      nodeId: row.nodeId,
      rig: row.rig,
      pod: row.pod,
      member: row.member,
      harness: row.harness,
      cwd: row.cwd,
      guest: row.guest,
      declaration: (occupant ?? seats.latest(row.nodeId))?.declaration ?? null,
      launch: row.launch,
      session: known.session,
      activity: {
        value: reading.value,
        source: reading.source,
        since: iso(same ? known.since : clock.wall()),
        until
      },
      attention: attentionOf(row, known.activity),
      openAsks: asks.pendingCount(row.nodeId),
      ...(draft === undefined ? {} : { draft: { sendId: draft.id, from: draft.sender, at: iso(draft.at) } }),
      nativeRef: row.nativeRef,
      identitySource: row.nativeRef === null ? null : "launcher-reported",
      conversationMissing: row.refMissing,
      model: { declared: row.model, effective: "unknown" },
      permissions: asks.setting(row.nodeId)
    }
  }
  const askOf = (ask: AskRow): AskView => {
    const permit = permitOption(ask.options)
    return {
      askId: ask.askId,
      state: ask.state,
      seat: seats.seat(ask.nodeId)?.session ?? "",
      generation: ask.generation,
      nativeRef: ask.nativeRef,
      turnId: ask.turnId,
      requestId: ask.requestId,
      toolCall: { ...ask.toolCall, title: titleOf(ask.toolCall) },
      options: ask.options.map(shown),
      why: ask.why,
      default: permit === undefined ? null : { ...permit, name: shownName(permit) },
      openedAt: iso(ask.openedAt),
      settledAt: ask.settledAt === null ? null : iso(ask.settledAt),
      result: ask.result,
      rows: asks.rows(ask.askId).map((row) => ({
        rowId: row.rowId,
        owner: row.owner,
        state: row.state,
        openedAt: iso(row.openedAt),
        closedAt: row.closedAt === null ? null : iso(row.closedAt),
        by: row.by,
        note: row.note
      }))
    }
  }
  return {
    seatOf,
    seat: (nodeId: string): SeatView | undefined => {
      const row = seats.seat(nodeId)
      return row === undefined ? undefined : seatOf(row)
    },
    askOf,
    ask: (askId: string): AskView | undefined => {
      const row = asks.ask(askId)
      return row === undefined ? undefined : askOf(row)
    },
    rig: (name: string): RigView | undefined => {
      const row = seats.rig(name)
      return row === undefined
        ? undefined
        : {
            rig: name,
            createdAt: iso(row.createdAt),
            seats: seats.seatsOfRig(name).map(({ session }) => session),
            snapshots: logs.countSnapshots(name)
          }
    },
    people: (): ReadonlyArray<Person> => {
      const chosen = asks.defaultPerson()
      return asks
        .people()
        .map(({ id, name, addedAt }) => ({ id, name, isDefault: id === chosen, addedAt: iso(addedAt) }))
    }
  }
}

export type SeatViews = ReturnType<typeof make>
