/**
 * The activity of seats: applies the machine to what is stored, in the transaction of whatever changed it, and ends the
 * asks that an input ends. It owns the reading that was last told, and tells of every change of it.
 */
import { type ActivityState, applyPost, type JudgedPost, type Occupancy, openAsk, read } from "./ActivityMachine.ts"
import * as Machine from "./ActivityMachine.ts"
import type { TransitionName } from "./ActivityTable.ts"
import type { AskRow } from "./AskRows.ts"
import { settleAsk } from "./AskSettling.ts"
import type { LiveSeats } from "./LiveSeats.ts"
import * as Permission from "./PermissionMachine.ts"
import type { Tx } from "./RigStore.ts"
import type { Waiters } from "./Waiters.ts"

export interface Activities {
  /** A post of a runner. */
  readonly post: (
    tx: Tx,
    nodeId: string,
    occupancy: Occupancy,
    post: JudgedPost
  ) => Machine.Applied & { readonly why: ReturnType<typeof Machine.judge> }
  readonly askOpened: (tx: Tx, nodeId: string, askId: string, at: number) => void
  /** Ends a pending ask and does what its end means for its seat; false when it had ended before. */
  readonly settle: (tx: Tx, ask: AskRow, settlement: Permission.Settlement, note?: string | null) => boolean
  /** An input that is no post. */
  readonly input: (tx: Tx, nodeId: string, name: "attention_cleared" | "registered" | "ended") => void
  readonly screenChanged: (tx: Tx, nodeId: string) => void
  /** Reads a seat again, as time may have changed what it reads. */
  readonly refresh: (tx: Tx, nodeId: string) => void
  /** Told after each change when a reading may next change by itself. */
  readonly onChange: (listener: (nodeId: string) => void) => void
}

const attentionChanged = (before: ActivityState, after: ActivityState): boolean =>
  before.attentionPost !== after.attentionPost ||
  before.attentionAsks.length !== after.attentionAsks.length ||
  before.attentionAsks.some((id) => !after.attentionAsks.includes(id))

const durable = ({ turn: _turn, screenUntil: _screen, ...rest }: ActivityState): Machine.DurableActivity => rest

export const make = (live: LiveSeats, waiters: Waiters): Activities => {
  const listeners = new Set<(nodeId: string) => void>()

  const save = (tx: Tx, nodeId: string, activity: ActivityState): void => {
    const before = live.get(nodeId)
    const reading = read(activity, tx.seats.live(nodeId) !== undefined, tx.now)
    const changed = reading.value !== before.value
    const after = {
      ...before,
      activity,
      value: reading.value,
      source: reading.source,
      since: changed ? tx.wall : before.since
    }
    live.put(nodeId, after)
    tx.undo(() => live.put(nodeId, before))
    tx.logs.putActivity({
      nodeId,
      state: durable(activity),
      value: after.value,
      source: after.source,
      since: after.since
    })
    if (attentionChanged(before.activity, activity)) tx.tell("seat.attention", nodeId)
    if (changed) tx.tell("seat.activity", nodeId)
    tx.after(() => {
      for (const listener of listeners) listener(nodeId)
    })
  }

  const ends = (
    ending: Machine.AskEnding,
    ask: AskRow,
    generation: string | undefined
  ): Permission.Settlement | undefined => {
    if (ending._tag === "Keep") return undefined
    if (ending._tag === "Stale") return ask.generation === generation ? undefined : Permission.replaced
    if (ending.which === "turn" && ask.turnId !== ending.turnId) return undefined
    if (ending.which === "other_turns" && ask.turnId === ending.turnId) return undefined
    return Permission.withdrawn(ending.reason === "exited" ? "exit" : "turn", ending.reason)
  }

  /** Ends what an input ends, and takes the attention of those asks along. */
  const endAsks = (tx: Tx, nodeId: string, applied: Machine.Applied): ActivityState => {
    if (applied.asks._tag === "Keep") return applied.state
    const generation = tx.seats.live(nodeId)?.generation
    let { state } = applied
    for (const ask of tx.asks.pendingOfSeat(nodeId)) {
      const settlement = ends(applied.asks, ask, generation)
      if (settlement === undefined || !settleAsk(tx, waiters, ask, settlement)) continue
      state = Machine.apply(state, "ask_ended", { now: tx.now, askId: ask.askId }).state
    }
    return state
  }

  const settledInput = (tx: Tx, ask: AskRow, settlement: Permission.Settlement): TransitionName => {
    const granted = settlement.state === "answered" || settlement.state === "permitted"
    // Nothing of a plain program tells that it goes on.
    return granted && tx.seats.live(ask.nodeId)?.declaration.runner === true ? "ask_granted" : "ask_ended"
  }

  return {
    post: (tx, nodeId, occupancy, post) => {
      const applied = applyPost(live.get(nodeId).activity, occupancy, post, tx.now)
      if (applied.why === "counted") save(tx, nodeId, endAsks(tx, nodeId, applied))
      return applied
    },
    askOpened: (tx, nodeId, askId, at) => save(tx, nodeId, openAsk(live.get(nodeId).activity, askId, at, tx.now)),
    settle: (tx, ask, settlement, note = null) => {
      if (!settleAsk(tx, waiters, ask, settlement, note)) return false
      const { activity } = live.get(ask.nodeId)
      const input = settledInput(tx, ask, settlement)
      save(tx, ask.nodeId, Machine.apply(activity, input, { now: tx.now, askId: ask.askId }).state)
      return true
    },
    input: (tx, nodeId, name) =>
      save(tx, nodeId, endAsks(tx, nodeId, Machine.apply(live.get(nodeId).activity, name, { now: tx.now }))),
    screenChanged: (tx, nodeId) => save(tx, nodeId, Machine.screenChanged(live.get(nodeId).activity, tx.now)),
    refresh: (tx, nodeId) => save(tx, nodeId, live.get(nodeId).activity),
    onChange: (listener) => void listeners.add(listener)
  }
}
