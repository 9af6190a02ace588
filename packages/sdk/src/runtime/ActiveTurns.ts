/**
 * The turns this runtime works on, in memory. A turn is here from its admission, or from the recovery that took it up,
 * until it is settled or its session is lost. Nothing here is truth: the store is.
 *
 * @since 0.1.0
 */
import type { ExecutionBinding, TurnOutcome } from "@tackroom/protocol/events"
import { Context, Deferred, Exit, Layer } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { HarnessDriver, OwnTurn, TurnBudget } from "../harness/Harness.ts"
import type { InteractionRow, LeaseRow, SessionRow, TurnRow } from "../store/Rows.ts"
import type { TurnPhase } from "./TurnFold.ts"
import type { TurnLog } from "./TurnLog.ts"
import type { CancelFact, CancelState } from "./TurnMachine.ts"

/** How an interaction ended, for the driver that waits on it. `answers` are the real ones, secret ones too. */
export type Settled =
  | { readonly _tag: "Resolved"; readonly row: InteractionRow; readonly answers?: ReadonlyArray<ReadonlyArray<string>> }
  | { readonly _tag: "Withdrawn"; readonly reason: NonNullable<InteractionRow["withdrawal"]>["reason"] }

/** An interaction of this turn that a driver waits on, or that a recovered turn will offer again. */
export interface OpenAsk {
  row: InteractionRow
  readonly settled: Deferred.Deferred<Settled>
  /** Set when its end is committed. */
  outcome?: Settled
  waiting: boolean
}

/** A harness session that is open in this process. */
export interface Opened {
  readonly driver: HarnessDriver
  readonly binding: ExecutionBinding
  readonly capabilities: HarnessCapabilities
}

/** What ends the consumption of a driver's stream from outside. */
export type Stop =
  | { readonly _tag: "Cancelled" }
  | { readonly _tag: "Budget" }
  | { readonly _tag: "Lost"; readonly error: unknown }
  | { readonly _tag: "StoreDown"; readonly error: unknown }
  /** The runtime is disposed and leaves its turns (RT-028). */
  | { readonly _tag: "Left" }

export class ActiveTurn {
  readonly session: SessionRow
  readonly lease: LeaseRow
  readonly log: TurnLog
  readonly budget: TurnBudget | undefined
  readonly mode: "run" | "recover"
  /** How the harness runs it, when it began the turn itself. */
  readonly begun: OwnTurn["run"] | undefined
  turn: TurnRow
  opened: Opened | undefined
  /** The driver of this process has been given the turn. */
  handed = false
  /** A fiber runs it; a turn that recovery took up may wait for that. */
  launched = false
  /** Recovered, and not taken up by its driver yet. */
  recovering = false
  /** Waits for a free place (RUN-387). */
  queued = false
  cancel: CancelFact = { _tag: "None" }
  cancelState: CancelState = { _tag: "Idle" }
  /** The turn is being settled, or left: asks that end now are not withdrawn by the driver. */
  ending = false
  readonly asks = new Map<string, OpenAsk>()
  readonly stop = Deferred.makeUnsafe<Stop>()
  /** The stream of the driver is over, or was ended. */
  readonly streamOver = Deferred.makeUnsafe<void>()
  /** The end is being committed: from here on only the store keeps it from being settled. */
  readonly settling = Deferred.makeUnsafe<void>()
  readonly settled = Deferred.makeUnsafe<TurnOutcome>()
  /** No fiber works on the turn any more, whatever became of it. */
  readonly gone = Deferred.makeUnsafe<void>()
  /** Time of waiting for people, for `activeMs` (D-28). */
  waitedMs = 0
  waitingSince: number | undefined
  lastWaitChange = Deferred.makeUnsafe<void>()

  constructor(input: {
    readonly session: SessionRow
    readonly turn: TurnRow
    readonly lease: LeaseRow
    readonly log: TurnLog
    readonly budget: TurnBudget | undefined
    readonly mode: "run" | "recover"
    readonly begun: OwnTurn["run"] | undefined
  }) {
    this.session = input.session
    this.turn = input.turn
    this.lease = input.lease
    this.log = input.log
    this.budget = input.budget
    this.mode = input.mode
    this.begun = input.begun
  }

  get pendingAsks(): number {
    let count = 0
    for (const ask of this.asks.values()) if (ask.row.state === "pending") count += 1
    return count
  }

  /** Keeps the time spent waiting for people. */
  waits(now: number): void {
    const pending = this.pendingAsks > 0
    if (pending && this.waitingSince === undefined) this.waitingSince = now
    else if (!pending && this.waitingSince !== undefined) {
      this.waitedMs += now - this.waitingSince
      this.waitingSince = undefined
    } else return
    const changed = this.lastWaitChange
    this.lastWaitChange = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Exit.void)
  }

  phase(): TurnPhase {
    if (this.cancelState._tag !== "Idle") return "cancelling"
    if (this.recovering) return "recovering"
    if (this.queued) return "queued"
    return this.log.fold.phase()
  }
}

export class ActiveTurns extends Context.Service<
  ActiveTurns,
  {
    readonly get: (sessionId: string) => ActiveTurn | undefined
    readonly add: (active: ActiveTurn) => void
    /** Removes exactly this turn. */
    readonly remove: (active: ActiveTurn) => void
    readonly all: () => Iterable<ActiveTurn>
    readonly size: () => number
  }
>()("@tackroom/sdk/runtime/ActiveTurns") {
  static readonly layer = Layer.sync(ActiveTurns, () => {
    const bySession = new Map<string, ActiveTurn>()
    return ActiveTurns.of({
      get: (sessionId) => bySession.get(sessionId),
      add: (active) => {
        bySession.set(active.session.id, active)
      },
      remove: (active) => {
        if (bySession.get(active.session.id) === active) bySession.delete(active.session.id)
      },
      all: () => bySession.values(),
      size: () => bySession.size
    })
  })
}
