/**
 * Pages of a session's journal in wire form (run-protocol 8.3): bounded by count and by encoded bytes, at least one event
 * when there is any. Pure but for the read it is given.
 */
import {
  readCursor,
  summaryOf,
  toWireEvent,
  InvalidCursor,
  limits,
  type RunEvent,
  type WireEvent
} from "@tackroom/protocol/run"
import type { Envelope } from "@tackroom/protocol/events"
import type { EventRow } from "@tackroom/sdk/effect"
import type { Schema } from "effect"

/** What the wire form of an event needs of its envelope. */
const envelopeOf = (row: EventRow): Envelope => ({
  sessionId: row.sessionId,
  workspaceId: "",
  directory: "",
  cursor: row.seq,
  at: new Date(row.at).toISOString(),
  ...(row.turnId === null ? {} : { turnId: row.turnId }),
  ...(row.afterTurn === null ? {} : { afterTurn: row.afterTurn }),
  contractVersion: 1,
  payload: row.payload,
  ...(row.artifacts === null ? {} : { artifacts: row.artifacts })
})

export const wireOf = (row: EventRow): WireEvent => toWireEvent(envelopeOf(row))

/** The cursor a client sent, checked against the head it stands for (RUN-141). */
export const checkCursor = (
  given: Schema.Json,
  at: { readonly sessionId: string; readonly head: number; readonly journalId: string }
): number | InvalidCursor => {
  const cursor = readCursor(given)
  const reason = cursor === undefined ? "malformed" : cursor > at.head ? "ahead" : undefined
  if (cursor !== undefined && reason === undefined) return cursor
  return new InvalidCursor({
    reason: reason ?? "malformed",
    sessionId: at.sessionId,
    head: at.head,
    journalId: at.journalId
  })
}

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  /** The last event given, or the cursor asked for when none was. */
  readonly cursor: number
  readonly more: boolean
}

/** Cuts rows to one page. `boundary` is the last event of the observation; `complete` says that `rows` reach it. */
export const pageOf = <A>(
  rows: ReadonlyArray<EventRow>,
  after: number,
  boundary: number,
  maxEvents: number,
  encode: (row: EventRow) => A
): Page<A> => {
  const items: Array<A> = []
  let bytes = 0
  let cursor = after
  for (const row of rows) {
    if (row.seq > boundary || items.length >= maxEvents) break
    const item = encode(row)
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1
    if (items.length > 0 && bytes > limits.eventPageBytes) break
    items.push(item)
    cursor = row.seq
  }
  return { items, cursor, more: cursor < boundary }
}

/** An event as a run shows it, with its summary (RUN-181). */
export const runEventOf =
  (agentId: string) =>
  (row: EventRow): RunEvent => ({
    agent: agentId,
    sessionId: row.sessionId,
    event: wireOf(row),
    summary: summaryOf(row.payload)
  })
