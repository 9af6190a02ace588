/**
 * When something is worth a post (SEAT-127 to SEAT-133, SEAT-164 to SEAT-166, SEAT-171): turns the story of a seat into
 * posts, with the beats of a quiet turn and the heartbeats of an idle seat.
 *
 * It knows no agent and no terminal. Invariants: nothing soft while a request waits; nothing at all while the seat holds
 * attention, except the exit; a beat timer is stopped before the post that ends its right to beat.
 */
import { activityEvents, exitSubtype, stopEvent, toolEvent } from "@tackroom/protocol/seat"
import { Clock, Effect, FiberHandle, type Scope } from "effect"
import type { ActivityQueue, Told, Weight } from "./ActivityQueue.ts"

/** What an answered request leaves to be told once no request waits. */
export type Released =
  /** An option was delivered for a request that the rig had shown. */
  | { readonly _tag: "Asked"; readonly askId: string }
  /** The runner permitted a request that the rig never showed. */
  | { readonly _tag: "OwnPermit"; readonly toolKind: string | undefined }

export interface Reporter {
  /** The conversation is open; the seat is idle unless a prompt waits. */
  readonly opened: (promptWaits: boolean) => void
  /** A turn begins; it is accepted when the agent has its prompt. */
  readonly turnStarted: (turnId: string) => void
  readonly accepted: () => void
  /** The agent sent text or a thought. */
  readonly heard: () => void
  readonly toolStarted: (toolCallId: string, kind: string | undefined) => void
  /** From now on a request waits. */
  readonly waiting: () => void
  /** No request waits any more. `released` is told when the turn goes on. */
  readonly resumed: (released: ReadonlyArray<Released>) => void
  /** A request was refused by the seat's own rule: the seat needs attention until its next prompt. */
  readonly hold: () => void
  readonly isHolding: () => boolean
  /** The agent is done with the turn; from here on it has no beats. */
  readonly turnEnding: () => void
  readonly turnEnded: (reason: string) => void
  /** Something failed that a person may want to know of. */
  readonly failed: () => void
  /** The agent's process is gone; nothing is told after this. */
  readonly exited: () => void
}

const messageEveryMs = 5_000
const toolEveryMs = 1_000

const reasonPattern = /^[a-z][a-z0-9_]{0,63}$/u

/** A stop reason as it may be told: one that reads as an exit or a heartbeat would say something else. */
export const stopSubtype = (reason: string): string =>
  !reasonPattern.test(reason) || reason.endsWith("_exited") || reason === activityEvents.idleHeartbeat.subtype
    ? "other"
    : reason

/** A tool's kind as a subtype. */
export const toolSubtype = (kind: string | undefined): string =>
  kind !== undefined && reasonPattern.test(kind) ? kind : "other"

interface Turn {
  readonly id: string
  accepted: boolean
  waiting: boolean
  readonly tools: Set<string>
}

export const makeReporter = (options: {
  readonly queue: Pick<ActivityQueue, "add" | "dropSoft" | "seal">
  readonly harness: string
  readonly livenessSeconds: number
  readonly idleLivenessSeconds: number
}): Effect.Effect<Reporter, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { queue, livenessSeconds, idleLivenessSeconds } = options
    const clock = yield* Clock.Clock
    const runTimer = yield* FiberHandle.makeRuntime<never>()
    const beatMs = (livenessSeconds * 1_000) / 3
    const heartbeatMs = (idleLivenessSeconds * 1_000) / 2
    let turn: Turn | undefined
    let isOpen = false
    let holding = false
    let messageAt = Number.NEGATIVE_INFINITY
    let toolAt = Number.NEGATIVE_INFINITY

    const tell = (told: Told, weight: Weight): void => {
      // The first text after a boundary is told at once.
      if (weight === "boundary") messageAt = Number.NEGATIVE_INFINITY
      queue.add(told, weight)
    }

    const mayBeat = (): boolean => turn !== undefined && turn.accepted && !turn.waiting && !holding
    const mayHeartbeat = (): boolean => isOpen && turn === undefined && !holding

    const stopTimer = (): void => void runTimer(Effect.void)

    const every = (ms: number, tick: () => boolean): Effect.Effect<void> =>
      Effect.suspend(() => Effect.flatMap(Effect.sleep(ms), () => (tick() ? every(ms, tick) : Effect.void)))

    /** Starts the time until the next beat anew. */
    const restartBeats = (): void => {
      void runTimer(
        every(beatMs, () => {
          if (!mayBeat() || turn === undefined) return false
          tell({ ...activityEvents.liveness, turnId: turn.id, livenessSeconds }, "soft")
          return true
        })
      )
    }

    const heartbeat = (): boolean => {
      if (!mayHeartbeat()) return false
      tell({ ...activityEvents.idleHeartbeat, livenessSeconds: idleLivenessSeconds }, "soft")
      return true
    }
    const restartHeartbeats = (): void => void runTimer(every(heartbeatMs, heartbeat))

    const working = (told: Told, weight: Weight): void => {
      tell(told, weight)
      restartBeats()
    }

    /** The turn whose work may be told now. A sign of the agent's work shows that it has the prompt. */
    const speaking = (): Turn | undefined => {
      if (turn === undefined) return undefined
      accept(turn)
      return turn.waiting || holding ? undefined : turn
    }

    const accept = (of: Turn): void => {
      if (of.accepted) return
      of.accepted = true
      holding = false
      working({ ...activityEvents.accepted, turnId: of.id }, "boundary")
    }

    const due = (since: number, ms: number): boolean => clock.currentTimeMillisUnsafe() - since >= ms

    return {
      opened: (promptWaits) => {
        isOpen = true
        if (promptWaits) return
        heartbeat()
        restartHeartbeats()
      },
      turnStarted: (turnId) => {
        stopTimer()
        turn = { id: turnId, accepted: false, waiting: false, tools: new Set() }
      },
      accepted: () => {
        if (turn !== undefined) accept(turn)
      },
      heard: () => {
        if (speaking() === undefined || !due(messageAt, messageEveryMs)) return
        working(activityEvents.agentMessage, "soft")
        messageAt = clock.currentTimeMillisUnsafe()
      },
      toolStarted: (toolCallId, kind) => {
        const of = speaking()
        if (of === undefined || of.tools.has(toolCallId)) return
        of.tools.add(toolCallId)
        if (!due(toolAt, toolEveryMs)) return
        working({ hookEvent: toolEvent, subtype: toolSubtype(kind) }, "soft")
        toolAt = clock.currentTimeMillisUnsafe()
      },
      waiting: () => {
        if (turn === undefined) return
        accept(turn)
        turn.waiting = true
        stopTimer()
        queue.dropSoft()
      },
      resumed: (released) => {
        if (turn === undefined) return
        turn.waiting = false
        if (holding) return
        for (const told of released) {
          if (told._tag === "Asked") {
            working({ ...activityEvents.permissionResolved, turnId: turn.id, askId: told.askId }, "boundary")
          } else working({ hookEvent: toolEvent, subtype: toolSubtype(told.toolKind) }, "soft")
        }
        restartBeats()
      },
      hold: () => {
        if (holding) return
        stopTimer()
        queue.dropSoft()
        tell(activityEvents.permissionPrompt, "boundary")
        holding = true
      },
      isHolding: () => holding,
      turnEnding: stopTimer,
      turnEnded: (reason) => {
        if (turn === undefined) return
        accept(turn)
        stopTimer()
        const turnId = turn.id
        turn = undefined
        if (holding) return
        tell(
          { hookEvent: stopEvent, subtype: stopSubtype(reason), turnId, livenessSeconds: idleLivenessSeconds },
          "boundary"
        )
        restartHeartbeats()
      },
      failed: () => {
        if (!holding) tell(activityEvents.runtimeError, "boundary")
      },
      exited: () => {
        stopTimer()
        turn = undefined
        isOpen = false
        tell({ hookEvent: stopEvent, subtype: exitSubtype(options.harness) }, "boundary")
        queue.seal()
      }
    }
  })
