/**
 * The decision of an admission (table 5.1), made inside the store's transaction: what the rows say, given to the pure turn
 * machine, and its answer as rows to write. It reads nothing else and writes nothing.
 *
 * @since 0.1.0
 */
import {
  assistantMessageIdOf,
  QueueFull,
  SessionClosed,
  SessionReadOnly,
  SessionRecovering,
  SessionTurnInProgress,
  SubmissionConflict,
  SubmissionNotFound,
  type RuntimeError
} from "@tackroom/protocol"
import type { TurnOrigin } from "@tackroom/protocol/events"
import type { OwnTurn } from "../harness/Harness.ts"
import type { AdmissionDecision, AdmissionState, NewEntry } from "../store/RuntimeStore.ts"
import { numbered } from "../store/QueueRows.ts"
import type { ActiveTurns } from "./ActiveTurns.ts"
import { titleOf, type CheckedPrompt } from "./Admission.ts"
import type { Leases } from "./Leases.ts"
import type { Minting } from "./Minting.ts"
import type { NativeSessions } from "./NativeSessions.ts"
import { queueUpdate } from "./PublicRows.ts"
import { admit, admitWhileRecovering, queueLimit, type AdmissionKind } from "./TurnMachine.ts"

/** A message on its way to a turn. */
export interface Plan {
  readonly sessionId: string
  readonly checked: CheckedPrompt
  readonly messageId: string
  readonly origin: TurnOrigin
  /** The `user-message`; none for a turn that the harness begins itself (RT-147). */
  readonly entry: NewEntry | undefined
  readonly fromQueue: boolean
  readonly fallback: boolean
  readonly own: boolean
  readonly hasPlace: boolean
  /** How the harness runs a turn of its own, and what it goes back to. */
  readonly begun?: {
    readonly run: OwnTurn["run"]
    readonly assistantId: string
    readonly parentMessageId: string | undefined
  }
}

/** What the decision found out beside its answer. */
export interface Finding {
  recover: boolean
  examine: string | undefined
}

/** Makes the decisions of a runtime. */
export const makeDecisions = (parts: {
  readonly actives: ActiveTurns["Service"]
  readonly leases: Leases["Service"]
  readonly minting: Minting["Service"]
  readonly natives: NativeSessions["Service"]
}) => {
  const { actives, leases, minting, natives } = parts

  const decision =
    (plan: Plan, finding: Finding) =>
    (state: AdmissionState): AdmissionDecision => {
      const active = actives.get(plan.sessionId)
      const here = active !== undefined && active.turn.id === state.openTurn?.id
      const live = here || leases.isLive(state.lease, state.now)
      const ownButGone = !here && state.lease?.owner === leases.owner
      const view = {
        receipt: state.receipt === undefined ? undefined : { digest: state.receipt.digest, state: state.receipt.state },
        archived: state.session.archivedAt !== null,
        closed: false,
        openTurn: state.openTurn === undefined ? undefined : { live: live && !ownButGone, here },
        queueLength: state.queue.length,
        queueHeld: state.session.queueHeld !== null,
        child: state.session.parentId !== null
      }
      const request = {
        digest: plan.checked.digest,
        delivery: plan.checked.prompt.delivery,
        fromQueue: plan.fromQueue,
        mayStartChild: plan.own,
        fallback: plan.fallback
      }
      const kind: AdmissionKind =
        active?.recovering === true ? admitWhileRecovering(view, request) : admit(view, request)
      const { sessionId, messageId } = plan
      const assistantId = plan.begun?.assistantId ?? assistantMessageIdOf(messageId)
      const refuse = (error: RuntimeError): AdmissionDecision => ({ _tag: "Refused", error })
      switch (kind._tag) {
        case "Duplicate":
          return state.receipt === undefined
            ? refuse(new SubmissionNotFound({ messageId }))
            : { _tag: "Duplicate", receipt: state.receipt }
        case "Conflict":
          return refuse(
            new SubmissionConflict({
              messageId,
              ...(state.receipt === undefined ? {} : { digest: state.receipt.digest })
            })
          )
        case "Closed":
          return refuse(new SessionClosed({ sessionId }))
        case "ReadOnly":
          return refuse(new SessionReadOnly({ sessionId }))
        case "Recovering":
          return refuse(new SessionRecovering({ sessionId }))
        case "RecoverFirst":
          finding.recover = true
          return refuse(new SessionRecovering({ sessionId }))
        case "QueueFull":
          return refuse(new QueueFull({ limit: queueLimit }))
        case "Busy": {
          if (!here && state.lease !== undefined && state.lease.owner !== leases.owner)
            finding.examine = state.lease.owner
          return refuse(
            new SessionTurnInProgress({
              sessionId,
              ...(state.openTurn === undefined ? {} : { turnId: state.openTurn.id }),
              ...(state.session.phase === null ? {} : { phase: state.session.phase })
            })
          )
        }
        case "Queue": {
          const { prompt, parts, digest } = plan.checked
          return {
            _tag: "Queued",
            row: {
              sessionId,
              messageId,
              prompt,
              parts,
              author: prompt.author ?? null,
              delivery: prompt.delivery ?? "queue",
              digest,
              createdAt: state.now
            },
            receipt: { sessionId, messageId, digest, state: "queued", turnId: null, endSeq: null, outcome: null },
            entries: (entries, revision) => [
              { payload: queueUpdate({ entries, revision, held: state.session.queueHeld }) }
            ]
          }
        }
        case "Steer": {
          const turn = state.openTurn
          if (turn === undefined) return refuse(new SessionTurnInProgress({ sessionId }))
          return {
            _tag: "Steering",
            turn,
            receipt: {
              sessionId,
              messageId,
              digest: plan.checked.digest,
              state: "steering",
              turnId: turn.id,
              endSeq: null,
              outcome: null
            }
          }
        }
        case "Start":
          return started(plan, state, assistantId)
      }
    }

  const started = (plan: Plan, state: AdmissionState, assistantId: string): AdmissionDecision => {
    const { sessionId, messageId, checked, entry } = plan
    const turnId = minting.id("turn")
    const parentMessageId = plan.begun?.parentMessageId
    // The hand-over is the next step: it is marked in this very transaction (see TurnRunner).
    const handedOver = plan.hasPlace && natives.opened(sessionId) !== undefined
    const phase = handedOver ? "running" : "starting"
    const title = state.session.title === null ? titleOf(checked.parts) : undefined
    const rest = plan.fromQueue ? state.queue.filter((row) => row.messageId !== messageId) : state.queue
    const entries: Array<NewEntry> = [
      ...(entry === undefined ? [] : [{ ...entry, turnId }]),
      { payload: { type: "session-status", status: "busy", phase }, turnId },
      {
        payload: {
          type: "turn-start",
          messageId,
          assistantMessageId: assistantId,
          origin: plan.origin,
          ...(parentMessageId === undefined ? {} : { parentMessageId })
        },
        turnId
      }
    ]
    if (title !== undefined) entries.push({ payload: { type: "session-title", title, titleSource: "prompt" }, turnId })
    if (plan.fromQueue) {
      entries.push({
        payload: queueUpdate({
          entries: numbered(rest),
          revision: state.session.queueRevision + 1,
          held: state.session.queueHeld
        })
      })
    }
    return {
      _tag: "Started",
      turn: {
        id: turnId,
        sessionId,
        messageId,
        assistantId,
        origin: plan.origin,
        state: handedOver ? "running" : "starting",
        handedOver,
        outcome: null,
        endSeq: null,
        prompt: checked.prompt,
        recoveries: 0,
        cancelRequested: false,
        peerCursor: null,
        createdAt: state.now,
        endedAt: null
      },
      receipt: {
        sessionId,
        messageId,
        digest: checked.digest,
        state: "admitted",
        turnId,
        endSeq: null,
        outcome: null
      },
      lease: leases.request(),
      entries,
      session: { status: "busy", phase, updatedAt: state.now },
      ...(plan.fromQueue ? { dequeue: messageId } : {})
    }
  }

  return decision
}
