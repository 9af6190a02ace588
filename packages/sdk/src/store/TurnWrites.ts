/**
 * Admission, appending and settling of turns, and receipts (5.1, 5.3, 5.4), inside one transaction each.
 */
import { SessionTurnFenceStale, type RuntimeError } from "@tackroom/protocol"
import { isTerminalType } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { appendEntries, patchSession, sessionRow, type Work } from "./Append.ts"
import { timestamp } from "./Projection.ts"
import { numbered } from "./QueueRows.ts"
import type { LeaseRow, QueueRow, ReceiptRow, TurnRow } from "./Rows.ts"
import type {
  AdmissionDecision,
  AdmissionState,
  AdmitOutcome,
  LeaseRequest,
  NewEntry,
  QueueState,
  SettleOutcome,
  SettleRequest,
  StoreFailure,
  WriteOptions
} from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"
import type { StoredSession } from "./Tables.ts"
import { unchanged, writing, wrote, type Written } from "./Writing.ts"

/** The entries of a session's queue in their order. */
export const queueRows = (tx: StoreTx, sessionId: string): Effect.Effect<ReadonlyArray<QueueRow>, StoreFailure> =>
  tx.scan("queue", { where: { sessionId }, order: "position" })

/** The queue with the revision and hold of the session row. */
export const queueState = (row: StoredSession, entries: ReadonlyArray<QueueRow>): QueueState => ({
  entries,
  revision: row.queueRevision,
  held: row.queueHeld
})

/** Writes what a new state of the queue changes: rows, revision, hold. */
export const putQueue = Effect.fnUntraced(function* (
  tx: StoreTx,
  work: Work,
  before: ReadonlyArray<QueueRow>,
  state: QueueState
) {
  for (const row of before) {
    if (!state.entries.some((kept) => kept.messageId === row.messageId)) {
      yield* tx.remove("queue", { sessionId: work.id, messageId: row.messageId })
    }
  }
  for (const row of state.entries) if (!before.includes(row)) yield* tx.put("queue", row)
  patchSession(work, { queueRevision: state.revision, queueHeld: state.held })
})

/** Gives out the next fencing token with a lease. */
export const grantLease = Effect.fnUntraced(function* (tx: StoreTx, work: Work, request: LeaseRequest) {
  work.fence += 1
  work.touched = true
  const lease: LeaseRow = {
    sessionId: work.id,
    leaseId: request.leaseId,
    owner: request.owner,
    fence: work.fence,
    expiresAt: tx.now + request.ttlMs
  }
  yield* tx.put("lease", lease)
  return lease
})

/** Puts a receipt; one that exists keeps its first cursor and time (5.1: the original `startCursor`). */
const putReceipt = Effect.fnUntraced(function* (
  tx: StoreTx,
  existing: ReceiptRow | undefined,
  receipt: Omit<ReceiptRow, "startSeq" | "createdAt">,
  startSeq: number
) {
  const row: ReceiptRow = {
    ...receipt,
    startSeq: existing?.startSeq ?? startSeq,
    createdAt: existing?.createdAt ?? tx.now
  }
  yield* tx.put("receipt", row)
  return row
})

const applyDecision = Effect.fnUntraced(function* (
  tx: StoreTx,
  work: Work,
  state: AdmissionState,
  decision: AdmissionDecision
): Effect.fn.Return<Written<AdmitOutcome>, RuntimeError | StoreFailure> {
  const startSeq = work.head
  switch (decision._tag) {
    case "Refused":
      return yield* Effect.fail(decision.error)
    case "Duplicate":
      return unchanged({ _tag: "Duplicate", receipt: decision.receipt })
    case "Steering": {
      const receipt = yield* putReceipt(tx, state.receipt, decision.receipt, startSeq)
      return wrote({ _tag: "Steering", receipt, turn: decision.turn })
    }
    case "Queued": {
      const row: QueueRow = { ...decision.row, position: state.queue.length }
      const queue: QueueState = {
        entries: [...state.queue, row],
        revision: state.session.queueRevision + 1,
        held: state.session.queueHeld
      }
      const receipt = yield* putReceipt(tx, state.receipt, decision.receipt, startSeq)
      yield* putQueue(tx, work, state.queue, queue)
      yield* appendEntries(tx, work, decision.entries(queue.entries, queue.revision))
      return wrote({ _tag: "Queued", receipt, queue })
    }
    case "Started": {
      const lease = yield* grantLease(tx, work, decision.lease)
      const turn: TurnRow = { ...decision.turn, fence: lease.fence, startSeq }
      yield* tx.put("turn", turn)
      const receipt = yield* putReceipt(tx, state.receipt, decision.receipt, startSeq)
      if (decision.dequeue !== undefined) {
        yield* putQueue(tx, work, state.queue, {
          entries: numbered(state.queue.filter((row) => row.messageId !== decision.dequeue)),
          revision: state.session.queueRevision + 1,
          held: state.session.queueHeld
        })
      }
      yield* appendEntries(tx, work, decision.entries)
      patchSession(work, decision.session)
      return wrote({ _tag: "Started", turn, receipt, lease, session: yield* sessionRow(tx, work) })
    }
  }
})

const openTurn = (tx: StoreTx, sessionId: string): Effect.Effect<TurnRow | undefined, StoreFailure> =>
  Effect.map(tx.scan("turn", { where: { sessionId, endedAt: null }, order: "startSeq", limit: 1 }), (rows) => rows[0])

/** Admission (5.1): one transaction reads what the decision looks at and writes what it decides (RT-081, RT-082). */
export const admit = (
  tx: StoreTx,
  sessionId: string,
  messageId: string,
  decide: (state: AdmissionState) => AdmissionDecision,
  options: WriteOptions<AdmitOutcome> | undefined
) =>
  writing(tx, [sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(sessionId)
      const state: AdmissionState = {
        session: yield* sessionRow(tx, work),
        receipt: yield* tx.get("receipt", { sessionId, messageId }),
        openTurn: yield* openTurn(tx, sessionId),
        queue: yield* queueRows(tx, sessionId),
        lease: yield* tx.get("lease", { sessionId }),
        now: tx.now
      }
      return yield* applyDecision(tx, work, state, decide(state))
    })
  )

const checkFence = (work: Work, fence: number): Effect.Effect<void, SessionTurnFenceStale> =>
  work.fence === fence ? Effect.void : Effect.fail(new SessionTurnFenceStale({ sessionId: work.id }))

/** What a turn's write may change besides its events. */
export interface AppendOptions extends WriteOptions<number> {
  readonly turn?: {
    readonly id: string
    readonly patch: Partial<Pick<TurnRow, "state" | "handedOver" | "recoveries" | "cancelRequested" | "peerCursor">>
  }
  readonly session?: Parameters<typeof patchSession>[1]
}

const isPlain = (options: AppendOptions | undefined): boolean =>
  options === undefined ||
  (options.ops === undefined &&
    options.others === undefined &&
    options.turn === undefined &&
    options.session === undefined)

/** Appends under the session's row lock; with a fence it must be the current token (STO-002, STO-003). */
export const append = (
  tx: StoreTx,
  sessionId: string,
  fence: number | undefined,
  entries: ReadonlyArray<NewEntry>,
  options: AppendOptions | undefined
) => {
  const events = isPlain(options) ? tx.appendDeltas?.(sessionId, fence, entries) : undefined
  if (events !== undefined) return Effect.succeed({ value: events.at(-1)?.seq ?? 0, events, ops: [] })
  return writing(tx, [sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(sessionId)
      if (fence !== undefined) yield* checkFence(work, fence)
      if (options?.turn !== undefined) yield* tx.patch("turn", { id: options.turn.id }, options.turn.patch)
      yield* appendEntries(tx, work, entries)
      if (options?.session !== undefined) patchSession(work, options.session)
      return wrote(work.head)
    })
  )
}

/** Settles a turn once (RT-140, STO-004): events, outcome, receipt, lease release and the queue's hold together. */
export const settle = (
  tx: StoreTx,
  sessionId: string,
  fence: number,
  request: SettleRequest,
  options: WriteOptions<SettleOutcome> | undefined
) =>
  writing(tx, [sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(sessionId)
      const turn = yield* tx.get("turn", { id: request.turnId })
      const row = yield* sessionRow(tx, work)
      const queue = yield* queueRows(tx, sessionId)
      if (turn !== undefined && turn.sessionId === sessionId && turn.outcome !== null) {
        const next = row.queueHeld === null ? queue[0] : undefined
        return unchanged({ written: false, outcome: turn.outcome, head: work.head, next })
      }
      yield* checkFence(work, fence)
      if (turn === undefined || turn.sessionId !== sessionId) {
        return yield* Effect.fail(new SessionTurnFenceStale({ sessionId }))
      }
      const events = yield* appendEntries(tx, work, request.entries)
      const terminal = events.find((event) => event.turnId === turn.id && isTerminalType(event.type))
      const endedAt = terminal?.at ?? Math.max(work.lastAt, tx.now)
      const outcome = { ...request.outcome, completedAt: timestamp(endedAt) }
      const endSeq = terminal?.seq ?? work.head
      yield* tx.patch("turn", { id: turn.id }, { state: "settled", outcome, endSeq, endedAt })
      const key = { sessionId, messageId: turn.messageId }
      if ((yield* tx.get("receipt", key)) !== undefined) {
        yield* tx.patch("receipt", key, { state: "settled", outcome, endSeq })
      }
      yield* tx.remove("lease", { sessionId })
      patchSession(work, { ...request.session, lastTurn: outcome })
      let held = row.queueHeld
      if (request.holdQueue !== undefined && queue.length > 0) {
        held = request.holdQueue
        const state: QueueState = { entries: queue, revision: row.queueRevision + 1, held }
        yield* putQueue(tx, work, queue, state)
        yield* appendEntries(tx, work, request.holdEntries?.(state) ?? [])
      }
      return wrote({ written: true, outcome, head: work.head, next: held === null ? queue[0] : undefined })
    })
  )

/** Moves a receipt on (RT-087, RT-088). */
export const updateReceipt = (
  tx: StoreTx,
  sessionId: string,
  messageId: string,
  state: ReceiptRow["state"],
  entries: ReadonlyArray<NewEntry>,
  options: WriteOptions<ReceiptRow> | undefined
) =>
  writing(tx, [sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(sessionId)
      const receipt = yield* tx.get("receipt", { sessionId, messageId })
      if (receipt === undefined) return yield* Effect.die(new Error(`There is no receipt of ${messageId}`))
      yield* tx.patch("receipt", { sessionId, messageId }, { state })
      yield* appendEntries(tx, work, entries)
      return wrote({ ...receipt, state })
    })
  )
