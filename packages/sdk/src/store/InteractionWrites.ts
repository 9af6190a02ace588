/**
 * Permissions and questions (7.4): opened once per native id and turn, resolved by compare and set on `pending`, withdrawn
 * with an event of their own.
 */
import {
  InteractionAlreadyResolved,
  InteractionNotFound,
  InteractionWithdrawn,
  SessionTurnFenceStale
} from "@tackroom/protocol"
import type { Resolution, WithdrawalReason } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { appendEntries, patchSession } from "./Append.ts"
import { timestamp } from "./Projection.ts"
import type { InteractionRow } from "./Rows.ts"
import type { NewEntry, ResolveOutcome, SessionPatch, WriteOptions } from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"
import { unchanged, writing, wrote } from "./Writing.ts"

/** Stores a request with its events. The same native id in the same turn answers the stored row (RT-250, RT-264). */
export const openInteraction = (
  tx: StoreTx,
  row: InteractionRow,
  fence: number,
  entries: ReadonlyArray<NewEntry>,
  options: (WriteOptions<InteractionRow> & { readonly session?: SessionPatch }) | undefined
) =>
  writing(tx, [row.sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(row.sessionId)
      if (work.fence !== fence) return yield* Effect.fail(new SessionTurnFenceStale({ sessionId: row.sessionId }))
      if (row.turnId !== null) {
        const [stored] = yield* tx.scan("interaction", {
          where: { sessionId: row.sessionId, turnId: row.turnId, nativeId: row.nativeId },
          limit: 1
        })
        if (stored !== undefined) return unchanged(stored)
      }
      const at = Math.max(work.lastAt, tx.now)
      yield* tx.put("interaction", {
        ...row,
        createdAt: at,
        ...(row.resolution === null ? {} : { settledAt: at, resolution: { ...row.resolution, at: timestamp(at) } })
      })
      yield* appendEntries(tx, work, entries)
      if (options?.session !== undefined) patchSession(work, options.session)
      return wrote((yield* tx.get("interaction", { id: row.id })) ?? row)
    })
  )

/** Whether a second decision says the same as the stored one; who decided, and when, does not matter (RT-251). */
const isSame = (stored: Resolution, given: Resolution): boolean =>
  "decision" in stored
    ? "decision" in given &&
      stored.decision === given.decision &&
      (given.optionId === undefined || stored.optionId === given.optionId)
    : "answers" in given && JSON.stringify(stored.answers) === JSON.stringify(given.answers)

/** The first decision wins (RT-251, RT-252). */
export const resolveInteraction = Effect.fnUntraced(function* (
  tx: StoreTx,
  id: string,
  resolution: Resolution,
  entries: (row: InteractionRow) => ReadonlyArray<NewEntry>,
  options: (WriteOptions<ResolveOutcome> & { readonly session?: SessionPatch }) | undefined
) {
  const found = yield* tx.get("interaction", { id })
  if (found === undefined) return yield* Effect.fail(new InteractionNotFound({ id }))
  return yield* writing(tx, [found.sessionId], options, (works) =>
    Effect.gen(function* () {
      const work = works(found.sessionId)
      const row = (yield* tx.get("interaction", { id })) ?? found
      if (row.state === "withdrawn") {
        return yield* Effect.fail(new InteractionWithdrawn({ id, reason: row.withdrawal?.reason ?? "turn_ended" }))
      }
      if (row.resolution !== null) {
        return isSame(row.resolution, resolution)
          ? unchanged<ResolveOutcome>({ _tag: "Already", row })
          : yield* Effect.fail(new InteractionAlreadyResolved({ id, resolution: row.resolution }))
      }
      const at = Math.max(work.lastAt, tx.now)
      yield* tx.patch(
        "interaction",
        { id },
        { state: "resolved", resolution: { ...resolution, at: timestamp(at) }, settledAt: at }
      )
      yield* appendEntries(tx, work, entries(row))
      if (options?.session !== undefined) patchSession(work, options.session)
      return wrote<ResolveOutcome>({ _tag: "Resolved", row: (yield* tx.get("interaction", { id })) ?? row })
    })
  )
})

/** Withdraws what is still pending of the named interactions, each with its event (RT-263). */
export const withdrawInteractions = Effect.fnUntraced(function* (
  tx: StoreTx,
  ids: ReadonlyArray<string>,
  reason: WithdrawalReason,
  options: (WriteOptions<ReadonlyArray<InteractionRow>> & { readonly session?: SessionPatch }) | undefined
) {
  const rows: Array<InteractionRow> = []
  for (const id of ids) {
    const row = yield* tx.get("interaction", { id })
    if (row !== undefined && row.state === "pending") rows.push(row)
  }
  const sessions = [...new Set(rows.map((row) => row.sessionId))]
  return yield* writing(tx, sessions, options, (works) =>
    Effect.gen(function* () {
      const withdrawn: Array<InteractionRow> = []
      for (const row of rows) {
        yield* appendEntries(tx, works(row.sessionId), [
          {
            payload: { type: "interaction-withdrawn", requestId: row.id, kind: row.kind, reason },
            ...(row.turnId === null ? {} : { turnId: row.turnId })
          }
        ])
        withdrawn.push((yield* tx.get("interaction", { id: row.id })) ?? row)
      }
      if (options?.session !== undefined) for (const id of sessions) patchSession(works(id), options.session)
      return rows.length === 0 && options?.others === undefined ? unchanged(withdrawn) : wrote(withdrawn)
    })
  )
})
