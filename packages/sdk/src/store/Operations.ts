/**
 * The store contract over any {@link StoreBackend}: every call is one transaction of the programs in this folder.
 */
import { Effect } from "effect"
import { artifactBytes, putArtifact } from "./Artifacts.ts"
import { openInteraction, resolveInteraction, withdrawInteractions } from "./InteractionWrites.ts"
import { readHead, readMessages, readOpenTurns, readPage, readReceipts, readWaitingQueues } from "./Reads.ts"
import { OpFailed, type RuntimeStore, type StoreFailure, type StoreOp } from "./RuntimeStore.ts"
import {
  acquireLease,
  changeQueueOf,
  createSessions,
  entomb,
  getSession,
  purgeSlice,
  readQueue,
  releaseLease,
  renewLeases,
  updateSession
} from "./SessionWrites.ts"
import type { StoreBackend, StoreTx } from "./StoreTx.ts"
import { admit, append, settle, updateReceipt } from "./TurnWrites.ts"
import { readUsage } from "./Usage.ts"

/** The `ops` of a deletion: an array, or made for no value. */
const opsOf = (ops: ReadonlyArray<StoreOp> | ((outcome: void) => ReadonlyArray<StoreOp>) | undefined) =>
  typeof ops === "function" ? ops() : (ops ?? [])

/** Removes the rows of a deleted session, slice by slice; a crash in between is made good at the next open (RT-051). */
export const purgeSession = (write: StoreBackend["write"], sessionId: string): Effect.Effect<void, StoreFailure> =>
  Effect.gen(function* () {
    while (!(yield* write((tx) => purgeSlice(tx, sessionId)))) yield* Effect.yieldNow
  })

const deleteSession = Effect.fnUntraced(function* (backend: StoreBackend, id: string, ops: ReadonlyArray<StoreOp>) {
  const ids = yield* backend.write((tx) =>
    Effect.tap(entomb(tx, id), () => Effect.forEach(ops, (op) => tx.op(op.extension, op.op, op.args)))
  )
  for (const sessionId of ids) yield* purgeSession(backend.write, sessionId)
})

/** The {@link RuntimeStore} of a backend. */
export const makeStore = (backend: StoreBackend): RuntimeStore => {
  const { read, write } = backend
  const rowOf =
    <Name extends "turn" | "interaction" | "artifact">(table: Name) =>
    (id: string) =>
      read((tx) => tx.get(table, { id } as Parameters<StoreTx["get"]>[1] as never))
  return {
    kind: backend.kind,
    open: backend.open,
    close: backend.close,
    info: backend.open,

    createSessions: (sessions, options) => write((tx) => createSessions(tx, sessions, options)),
    getSession: (id) => read((tx) => getSession(tx, id)),
    listSessions: (input) => read((tx) => tx.listSessions(input)),
    updateSession: (id, patch, entries, options) => write((tx) => updateSession(tx, id, patch, entries, options)),
    deleteSession: (id, options) => deleteSession(backend, id, opsOf(options?.ops)),

    admit: (sessionId, messageId, decide, options) => write((tx) => admit(tx, sessionId, messageId, decide, options)),
    append: (sessionId, fence, entries, options) => write((tx) => append(tx, sessionId, fence, entries, options)),
    appendUnfenced: (sessionId, entries, options) => write((tx) => append(tx, sessionId, undefined, entries, options)),
    settle: (sessionId, fence, request, options) => write((tx) => settle(tx, sessionId, fence, request, options)),
    openTurns: (filter) => read((tx) => readOpenTurns(tx, filter)),
    turn: rowOf("turn"),
    turnsOf: (sessionId, limit) =>
      read((tx) => tx.scan("turn", { where: { sessionId }, order: "startSeq", descending: true, limit })),
    receipt: (sessionId, messageId) => read((tx) => tx.get("receipt", { sessionId, messageId })),
    receipts: (filter) => read((tx) => readReceipts(tx, filter)),
    updateReceipt: (sessionId, messageId, state, entries, options) =>
      write((tx) => updateReceipt(tx, sessionId, messageId, state, entries, options)),

    acquireLease: (sessionId, request, takeOver) => write((tx) => acquireLease(tx, sessionId, request, takeOver)),
    renewLeases: (owner, ttlMs) => write((tx) => renewLeases(tx, owner, ttlMs), "normal"),
    releaseLease: (sessionId, leaseId) => write((tx) => releaseLease(tx, sessionId, leaseId)),
    expiredLeases: read((tx) => tx.scan("lease", { lt: ["expiresAt", tx.now + 1], order: "expiresAt" })),
    lease: (sessionId) => read((tx) => tx.get("lease", { sessionId })),

    queue: (sessionId) => read((tx) => readQueue(tx, sessionId)),
    waitingQueues: (filter) => read((tx) => readWaitingQueues(tx, filter)),
    queueChange: (sessionId, change, revision, entries, options) =>
      write((tx) => changeQueueOf(tx, sessionId, change, revision, entries, options)),

    openInteraction: (row, fence, entries, options) => write((tx) => openInteraction(tx, row, fence, entries, options)),
    resolveInteraction: (id, resolution, entries, options) =>
      write((tx) => resolveInteraction(tx, id, resolution, entries, options)),
    withdrawInteractions: (ids, reason, options) => write((tx) => withdrawInteractions(tx, ids, reason, options)),
    markDelivered: (id) => write((tx) => tx.patch("interaction", { id }, { delivered: true })),
    interaction: rowOf("interaction"),
    interactions: ({ limit, ...where }) =>
      read((tx) => tx.scan("interaction", { where, order: "createdAt", ...(limit === undefined ? {} : { limit }) })),

    read: (sessionId, after, limit, maxBytes) => read((tx) => readPage(tx, sessionId, after, limit, maxBytes)),
    head: (sessionId) => read((tx) => readHead(tx, sessionId)),
    messages: (sessionId, request) => read((tx) => readMessages(tx, sessionId, request)),
    todos: (sessionId) =>
      read((tx) =>
        Effect.map(tx.scan("todo", { where: { sessionId }, order: "ordinal" }), (rows) => rows.map((row) => row.data))
      ),
    query: (extension, name, args) => read((tx) => tx.query(extension, name, args)),
    wakeups: backend.wakeups,

    putArtifact: (sessionId, mime, bytes) => putArtifact(backend, sessionId, mime, bytes),
    artifact: rowOf("artifact"),
    artifactBytes: (id, offset, length) => read((tx) => artifactBytes(tx, id, offset, length)),

    binding: (sessionId) => read((tx) => tx.get("binding", { sessionId })),
    putBinding: (row, start) =>
      write((tx) =>
        start === undefined ? tx.put("binding", row) : Effect.andThen(tx.put("binding", row), tx.put("start", start))
      ),
    sessionStart: (sessionId) => read((tx) => tx.get("start", { sessionId })),
    putStart: (row) => write((tx) => tx.put("start", row)),

    usage: (sessionId, turnId) => read((tx) => readUsage(tx, sessionId, turnId)),

    registerInstance: (row) => write((tx) => tx.put("instance", row), "normal"),
    heartbeat: (id) => write((tx) => tx.patch("instance", { id }, { heartbeatAt: tx.now }), "normal"),
    removeInstance: (id) => write((tx) => tx.remove("instance", { id }), "normal"),
    instances: read((tx) => tx.scan("instance", {})),
    addProcess: (row) => write((tx) => tx.put("process", row), "normal"),
    removeProcess: (id) => write((tx) => tx.remove("process", { id }), "normal"),
    processes: read((tx) => tx.scan("process", {}))
  }
}

/** The failure of an op that names no extension or no op of it. */
export const unknownOp = (extension: string, op: string): OpFailed =>
  new OpFailed({ extension, op, error: new Error(`There is no op ${op} in an extension ${extension}`) })
