/**
 * The frame of every writing call: sessions locked in the order of their ids, the call's own rows, the `others` and their
 * lease check (STO-011), the session rows, and the extensions' `ops` last (STO-010).
 *
 * A call that finds its work done before (a duplicate, a settled turn) writes nothing at all: neither `others` nor `ops`.
 */
import { SessionTurnFenceStale } from "@tackroom/protocol"
import { Effect } from "effect"
import { appendEntries, begin, flush, type Work } from "./Append.ts"
import type { Committed, OpFailed, OthersFailure, StoreFailure, StoreOp, WriteOptions } from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"

/** What the body of a call answers; `wrote` is false when everything had been done before. */
export interface Written<A> {
  readonly value: A
  readonly wrote: boolean
}

/** A call that wrote. */
export const wrote = <A>(value: A): Written<A> => ({ value, wrote: true })
/** A call whose work was done before. */
export const unchanged = <A>(value: A): Written<A> => ({ value, wrote: false })

const runOps = (
  tx: StoreTx,
  ops: ReadonlyArray<StoreOp>
): Effect.Effect<ReadonlyArray<unknown>, OpFailed | StoreFailure> =>
  ops.length === 0 ? Effect.succeed([]) : Effect.forEach(ops, (op) => tx.op(op.extension, op.op, op.args))

const checkLeases = Effect.fnUntraced(function* (
  tx: StoreTx,
  own: ReadonlyArray<string>,
  others: ReadonlyArray<string>,
  owner: string | undefined
) {
  let writer = owner
  for (const sessionId of own) {
    if (writer !== undefined) break
    writer = (yield* tx.get("lease", { sessionId }))?.owner
  }
  for (const sessionId of others) {
    if (own.includes(sessionId)) continue
    const lease = yield* tx.get("lease", { sessionId })
    if (lease !== undefined && lease.expiresAt > tx.now && lease.owner !== writer) {
      return yield* Effect.fail(new SessionTurnFenceStale({ sessionId }))
    }
  }
})

/** The work on one session of a call. */
export type Works = (sessionId: string) => Work

/** Runs one writing call over the named sessions. */
export const writing = Effect.fnUntraced(function* <A, E>(
  tx: StoreTx,
  own: ReadonlyArray<string>,
  options: WriteOptions<A> | undefined,
  body: (works: Works) => Effect.Effect<Written<A>, E>
): Effect.fn.Return<Committed<A>, E | StoreFailure | OpFailed | OthersFailure> {
  const others = options?.others ?? []
  const ids = others.length === 0 ? own : [...new Set([...own, ...others.map((other) => other.sessionId)])]
  const works = yield* begin(tx, ids)
  const workOf: Works = (sessionId) => works[ids.indexOf(sessionId)] as Work
  if (others.length > 0) {
    yield* checkLeases(
      tx,
      own,
      others.map((other) => other.sessionId),
      options?.owner
    )
  }
  const { value, wrote } = yield* body(workOf)
  if (!wrote) return { value, events: [], ops: [] }
  for (const other of others) yield* appendEntries(tx, workOf(other.sessionId), other.entries)
  for (const work of works) yield* flush(tx, work)
  const ops = options?.ops
  const results = yield* runOps(tx, typeof ops === "function" ? ops(value) : (ops ?? []))
  const first = works[0]
  return {
    value,
    events: works.length === 1 && first !== undefined ? first.events : works.flatMap((work) => work.events),
    ops: results
  }
})
