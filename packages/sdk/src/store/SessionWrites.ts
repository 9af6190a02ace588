/**
 * Session rows: made, changed, deleted; their queue; their leases. Inside one transaction each.
 */
import { QueueRevisionConflict, SessionConflict, SessionGone } from "@tackroom/protocol"
import { Effect } from "effect"
import { appendEntries, begin, flush, missing, patchSession, sessionRow } from "./Append.ts"
import { titleText } from "./Projection.ts"
import { changeQueue, queueList } from "./QueueRows.ts"
import type { LeaseRow, SessionRow } from "./Rows.ts"
import type { LeaseRequest, NewEntry, QueueChange, QueueState, SessionPatch, WriteOptions } from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"
import { publicRow } from "./Tables.ts"
import { grantLease, putQueue, queueRows, queueState } from "./TurnWrites.ts"
import { unchanged, writing, wrote } from "./Writing.ts"

/** A session to make: its row and its first events. */
export interface NewSession {
  readonly row: Omit<SessionRow, "head" | "fence">
  readonly entries: ReadonlyArray<NewEntry>
}

/** Makes several sessions at once (D-47): all or none. */
export const createSessions = Effect.fnUntraced(function* (
  tx: StoreTx,
  sessions: ReadonlyArray<NewSession>,
  options: WriteOptions<ReadonlyArray<SessionRow>> | undefined
) {
  for (const { row } of sessions) {
    if ((yield* tx.get("tombstone", { sessionId: row.id })) !== undefined) {
      return yield* Effect.fail(new SessionGone({ sessionId: row.id }))
    }
    const { corrupt: _corrupt, ...columns } = row
    const isNew = yield* tx.insertIfAbsent("session", {
      ...columns,
      title: row.title === null ? null : titleText(row.title),
      head: 0,
      fence: 0,
      lastAt: 0
    })
    if (!isNew) return yield* Effect.fail(new SessionConflict({ sessionId: row.id }))
  }
  return yield* writing(
    tx,
    sessions.map(({ row }) => row.id),
    options,
    (works) =>
      Effect.gen(function* () {
        const rows: Array<SessionRow> = []
        for (const { row, entries } of sessions) {
          const work = works(row.id)
          work.touched = true
          yield* appendEntries(tx, work, entries)
          rows.push(publicRow(yield* sessionRow(tx, work)))
        }
        return wrote<ReadonlyArray<SessionRow>>(rows)
      })
  )
})

/** Changes columns and appends the events that say so. */
export const updateSession = (
  tx: StoreTx,
  id: string,
  patch: SessionPatch,
  entries: ReadonlyArray<NewEntry>,
  options: WriteOptions<SessionRow> | undefined
) =>
  writing(tx, [id], options, (works) =>
    Effect.gen(function* () {
      const work = works(id)
      yield* appendEntries(tx, work, entries)
      patchSession(work, patch)
      return wrote(publicRow(yield* sessionRow(tx, work)))
    })
  )

/** Reads a session's row; a deleted one fails. */
export const getSession = Effect.fnUntraced(function* (tx: StoreTx, id: string) {
  const row = yield* tx.get("session", { id })
  if (row !== undefined) return publicRow(row)
  const tombstone = yield* tx.get("tombstone", { sessionId: id })
  return tombstone === undefined ? undefined : yield* Effect.fail(new SessionGone({ sessionId: id }))
})

/**
 * The first step of a deletion: tombstones for the session and all under it, and away with what others would still see of
 * them. Answers the ids whose rows are to be purged.
 */
export const entomb = Effect.fnUntraced(function* (tx: StoreTx, id: string) {
  const [head] = yield* tx.heads([id])
  if (head === undefined) return yield* missing(tx, id)
  const ids = yield* tx.family(id)
  for (const sessionId of ids) {
    yield* tx.put("tombstone", { sessionId, deletedAt: tx.now, purged: false })
    yield* tx.remove("session", { id: sessionId })
    yield* tx.remove("lease", { sessionId })
    for (const row of yield* tx.scan("interaction", { where: { sessionId, state: "pending" } })) {
      yield* tx.remove("interaction", { id: row.id })
    }
    for (const row of yield* tx.scan("turn", { where: { sessionId, endedAt: null } })) {
      yield* tx.remove("turn", { id: row.id })
    }
  }
  return ids
})

/** Rows that one slice of a deletion removes at most (RT-051). */
const sliceRows = 2000

/** One slice of a deletion; true when no row is left and the tombstone says so. */
export const purgeSlice = Effect.fnUntraced(function* (tx: StoreTx, sessionId: string) {
  const removed = yield* tx.purge(sessionId, sliceRows)
  if (removed > 0) return false
  yield* tx.patch("tombstone", { sessionId }, { purged: true })
  return true
})

/** Changes the queue (5.2): revision checked, receipts kept in step, one `queue-update` of the caller's. */
export const changeQueueOf = (
  tx: StoreTx,
  sessionId: string,
  change: QueueChange,
  revision: number | undefined,
  entries: (queue: QueueState) => ReadonlyArray<NewEntry>,
  options: WriteOptions<QueueState> | undefined
) =>
  writing(tx, [sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(sessionId)
      const rows = yield* queueRows(tx, sessionId)
      const before = queueState(yield* sessionRow(tx, work), rows)
      if (revision !== undefined && revision !== before.revision) {
        return yield* Effect.fail(new QueueRevisionConflict({ list: queueList(before) }))
      }
      const key = "messageId" in change ? { sessionId, messageId: change.messageId } : undefined
      const after = changeQueue(before, change, key === undefined ? undefined : yield* tx.get("receipt", key))
      if (!("entries" in after)) return yield* Effect.fail(after)
      if (after === before) return unchanged(after)
      yield* putQueue(tx, work, rows, after)
      if (key !== undefined && change._tag === "Remove") yield* tx.patch("receipt", key, { state: "removed" })
      if (key !== undefined && change._tag === "Edit") yield* tx.patch("receipt", key, { digest: change.digest })
      yield* appendEntries(tx, work, entries(after))
      return wrote(after)
    })
  )

/** The queue of a session; empty for one that does not exist. */
export const readQueue = Effect.fnUntraced(function* (tx: StoreTx, sessionId: string) {
  const row = yield* tx.get("session", { id: sessionId })
  const state: QueueState = { entries: yield* queueRows(tx, sessionId), revision: 0, held: null }
  return row === undefined ? state : queueState(row, state.entries)
})

/**
 * Takes the lease when it is free, expired, its own, or `takeOver` says so. Its own lease is renewed under the same
 * token; every other acquisition gets the next one (5.3).
 */
export const acquireLease = Effect.fnUntraced(function* (
  tx: StoreTx,
  sessionId: string,
  request: LeaseRequest,
  takeOver: ((lease: LeaseRow) => boolean) | undefined
) {
  const [head] = yield* tx.heads([sessionId])
  if (head === undefined) return undefined
  const held = yield* tx.get("lease", { sessionId })
  if (held !== undefined) {
    if (held.leaseId === request.leaseId) {
      const renewed: LeaseRow = { ...held, expiresAt: tx.now + request.ttlMs }
      yield* tx.put("lease", renewed)
      return renewed
    }
    if (held.expiresAt > tx.now && takeOver?.(held) !== true) return undefined
  }
  const [work] = yield* Effect.orDie(begin(tx, [sessionId]))
  if (work === undefined) return undefined
  const lease = yield* grantLease(tx, work, request)
  yield* flush(tx, work)
  return lease
})

/** Extends all leases of an owner and answers them; one that was taken over is not among them (RT-132). */
export const renewLeases = Effect.fnUntraced(function* (tx: StoreTx, owner: string, ttlMs: number) {
  const renewed: Array<LeaseRow> = []
  for (const lease of yield* tx.scan("lease", { where: { owner } })) {
    const expiresAt = tx.now + ttlMs
    yield* tx.patch("lease", { sessionId: lease.sessionId }, { expiresAt })
    renewed.push({ ...lease, expiresAt })
  }
  return renewed
})

/** Gives a lease back; one that is held under another id stays. */
export const releaseLease = Effect.fnUntraced(function* (tx: StoreTx, sessionId: string, leaseId: string) {
  const held = yield* tx.get("lease", { sessionId })
  if (held?.leaseId === leaseId) yield* tx.remove("lease", { sessionId })
})
