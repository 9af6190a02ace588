/**
 * Rebuilding what is projected from events (STO-005): a session's journal applied to empty tables, by the same reducer that
 * wrote the rows. Turns, and columns no event sets, are truth of their own and are given.
 */
import { Effect } from "effect"
import { applyEvents, begin, flush, patchSession } from "./Append.ts"
import { makeMemoryTables } from "./memory/MemoryTables.ts"
import { readMessages } from "./Reads.ts"
import type { EventRow, InteractionRow, SessionRow, TurnRow } from "./Rows.ts"
import type { OpFailed, StoreFailure, UsageTotals } from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"
import { publicRow } from "./Tables.ts"
import { readUsage } from "./Usage.ts"

const none = (): Effect.Effect<never> => Effect.die(new Error("a rebuild runs no extension"))

const makeTx = (): StoreTx => {
  const tables = makeMemoryTables(undefined)
  return {
    ...tables,
    now: 0,
    heads: (ids) =>
      Effect.forEach(ids, (id) =>
        Effect.map(tables.get("session", { id }), (row) =>
          row === undefined ? undefined : { id, head: row.head, fence: row.fence, lastAt: row.lastAt }
        )
      ),
    op: none,
    query: none
  }
}

/** The rows that a session's journal makes. */
export interface Rebuilt {
  readonly session: SessionRow
  readonly messages: Effect.Success<ReturnType<typeof readMessages>>
  readonly todos: ReadonlyArray<unknown>
  readonly interactions: ReadonlyArray<InteractionRow>
  readonly usage: UsageTotals
}

/** Rebuilds the projected rows of one session from its stored row, its turns and its whole journal. */
export const rebuildSession = (
  stored: SessionRow,
  turns: ReadonlyArray<TurnRow>,
  events: ReadonlyArray<EventRow>
): Effect.Effect<Rebuilt, StoreFailure | OpFailed> =>
  Effect.orDie(
    Effect.gen(function* () {
      const tx = makeTx()
      const { corrupt: _corrupt, ...row } = stored
      yield* tx.put("session", {
        ...row,
        title: null,
        titleSource: null,
        status: null,
        phase: null,
        lastTurn: null,
        commands: null,
        head: 0,
        queueRevision: 0,
        queueHeld: null,
        updatedAt: stored.createdAt,
        archivedAt: null,
        closedAt: null,
        lastAt: 0
      })
      for (const turn of turns) yield* tx.put("turn", turn)
      const [work] = yield* begin(tx, [stored.id])
      if (work === undefined) return yield* Effect.die(new Error("the session to rebuild is missing"))
      yield* tx.insertEvents(
        events.map((event) => ({
          ...event,
          payload: JSON.stringify(event.payload),
          artifacts: event.artifacts === null ? null : JSON.stringify(event.artifacts)
        }))
      )
      yield* applyEvents(tx, work, events)
      work.head = events.at(-1)?.seq ?? 0
      patchSession(work, {})
      yield* flush(tx, work)
      const session = yield* tx.get("session", { id: stored.id })
      if (session === undefined) return yield* Effect.die(new Error("the rebuilt session is missing"))
      return {
        session: publicRow(session),
        messages: yield* readMessages(tx, stored.id, { limit: Number.MAX_SAFE_INTEGER }),
        todos: (yield* tx.scan("todo", { where: { sessionId: stored.id }, order: "ordinal" })).map((todo) => todo.data),
        interactions: yield* tx.scan("interaction", { where: { sessionId: stored.id }, order: "createdAt" }),
        usage: yield* readUsage(tx, stored.id, undefined)
      }
    })
  )
