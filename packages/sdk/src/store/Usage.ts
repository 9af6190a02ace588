/**
 * Running totals of usage, kept with each report so that nobody adds up a session's past (D-24).
 *
 * A delta counts once per provider observation id; a cumulative report counts what it grew since the last one of the same
 * native session, and a smaller value begins anew. Null stays null where nothing was reported.
 */
import type { TokenUsage } from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { StoreFailure, UsageTotals } from "./RuntimeStore.ts"
import type { StoreTx } from "./StoreTx.ts"
import type { UsageRow } from "./Tables.ts"

/** The totals of a session are kept under this turn id. */
const wholeSession = ""

/** What reports and rounds of one kind are found by again; null when nothing refers to them. */
export const usageRef = (observation: UsageRow["observation"], turnId: string): string | null => {
  switch (observation?.kind) {
    case "round":
      return `round:${turnId}:${observation.responseId}`
    case "cumulative":
      return `cumulative:${observation.nativeSessionId ?? ""}`
    case "delta":
      return observation.providerObservationId === undefined ? null : `delta:${observation.providerObservationId}`
    default:
      return null
  }
}

const nothing: UsageTotals = { inputTokens: null, outputTokens: null, cachedInputTokens: null, rounds: 0 }

const grown = (value: number | null, before: number | null | undefined): number | null =>
  value === null ? null : before === null || before === undefined || value < before ? value : value - before

const counted = (tokens: TokenUsage, before: TokenUsage | undefined): UsageTotals => ({
  inputTokens: grown(tokens.input, before?.input),
  outputTokens: grown(tokens.output, before?.output),
  cachedInputTokens: grown(tokens.cache.read, before?.cache.read),
  rounds: 0
})

const last = (tx: StoreTx, where: Partial<UsageRow>): Effect.Effect<UsageRow | undefined, StoreFailure> =>
  Effect.map(tx.scan("usage", { where, order: "sequence", descending: true, limit: 1 }), (rows) => rows[0])

/** What a row adds; asked before the row is put. */
const contribution = Effect.fnUntraced(function* (tx: StoreTx, row: UsageRow) {
  const { observation, ref, sessionId } = row
  switch (observation?.kind) {
    case "round": {
      const isRepeat = (observation.attempt ?? 1) > 1 || (yield* last(tx, { sessionId, ref })) !== undefined
      return isRepeat ? undefined : { ...nothing, rounds: 1 }
    }
    case "cumulative": {
      const before = (yield* last(tx, { sessionId, ref }))?.observation
      return counted(observation.tokens, before?.kind === "cumulative" ? before.tokens : undefined)
    }
    case "delta":
      return ref !== null && (yield* last(tx, { sessionId, ref })) !== undefined
        ? undefined
        : counted(observation.tokens, undefined)
    default:
      return undefined
  }
})

const plus = (sum: number | null, value: number | null): number | null => (value === null ? sum : (sum ?? 0) + value)

const add = Effect.fnUntraced(function* (tx: StoreTx, sessionId: string, turnId: string, more: UsageTotals) {
  const before: UsageTotals = (yield* tx.get("usageTotal", { sessionId, turnId })) ?? nothing
  yield* tx.put("usageTotal", {
    sessionId,
    turnId,
    inputTokens: plus(before.inputTokens, more.inputTokens),
    outputTokens: plus(before.outputTokens, more.outputTokens),
    cachedInputTokens: plus(before.cachedInputTokens, more.cachedInputTokens),
    rounds: before.rounds + more.rounds
  })
})

/** Puts a report of usage, or the begin of a round, and moves the totals of its turn and session on. */
export const putUsage = Effect.fnUntraced(function* (tx: StoreTx, row: UsageRow) {
  const more = yield* contribution(tx, row)
  yield* tx.put("usage", row)
  if (more === undefined) return
  yield* add(tx, row.sessionId, wholeSession, more)
  if (row.turnId !== "") yield* add(tx, row.sessionId, row.turnId, more)
})

/** A value of its own for each caller (STO-022). */
const totalsOf = (row: UsageTotals): UsageTotals => ({
  inputTokens: row.inputTokens,
  outputTokens: row.outputTokens,
  cachedInputTokens: row.cachedInputTokens,
  rounds: row.rounds
})

/** Usage of a session or one of its turns. */
export const readUsage = (
  tx: StoreTx,
  sessionId: string,
  turnId: string | undefined
): Effect.Effect<UsageTotals, StoreFailure> =>
  Effect.map(tx.get("usageTotal", { sessionId, turnId: turnId ?? wholeSession }), (row) => totalsOf(row ?? nothing))
