/**
 * Reads that need more than one row: journal pages, messages with streaming parts folded from their deltas, and what
 * waits somewhere to be taken up.
 */
import type { EventPayload, MessagePart } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { missing } from "./Append.ts"
import { decodeEvent } from "./EventText.ts"
import type { MessageRow, PartRow, ReceiptRow } from "./Rows.ts"
import type { StoreTx } from "./StoreTx.ts"
import type { StoredSession } from "./Tables.ts"

/** The most events one page may ask for. */
const pageLimit = 1000

/** The last cursor of a session. */
export const readHead = Effect.fnUntraced(function* (tx: StoreTx, sessionId: string) {
  const [head] = yield* tx.heads([sessionId])
  return head === undefined ? yield* missing(tx, sessionId) : head.head
})

/** A page of the journal and the head it was read under (RT-182). */
export const readPage = Effect.fnUntraced(function* (
  tx: StoreTx,
  sessionId: string,
  after: number,
  limit: number,
  maxBytes: number | undefined
) {
  const head = yield* readHead(tx, sessionId)
  const records =
    after >= head
      ? []
      : yield* tx.events(sessionId, after, Math.min(limit, pageLimit), maxBytes === undefined ? {} : { maxBytes })
  return { events: records.map(decodeEvent), head }
})

const deltaTypes = ["text-delta", "thinking-delta"]
const foldBytes = 1 << 20

/** The text of a part that is still streaming, from its deltas in the journal (RT-200, RT-203). */
const foldText = Effect.fnUntraced(function* (tx: StoreTx, part: PartRow, from: number) {
  let text = ""
  let after = from - 1
  for (;;) {
    const records = yield* tx.events(part.sessionId, after, pageLimit, { types: deltaTypes, maxBytes: foldBytes })
    const last = records.at(-1)
    if (last === undefined) return text
    for (const record of records) {
      const payload = decodeEvent(record).payload as Extract<EventPayload, { readonly delta: string }>
      if ("partId" in payload && payload.partId === part.id && payload.messageId === part.messageId)
        text += payload.delta
    }
    after = last.seq
  }
})

const withText = Effect.fnUntraced(function* (tx: StoreTx, part: PartRow) {
  if (part.data !== null || part.openFromSeq === null) return part
  const text = yield* foldText(tx, part, part.openFromSeq)
  const place = { id: part.id, messageId: part.messageId, text }
  const data: MessagePart = part.type === "reasoning" ? { ...place, type: "reasoning" } : { ...place, type: "text" }
  return { ...part, data }
})

/** The newest messages before an ordinal, oldest first, each with its parts. */
export const readMessages = Effect.fnUntraced(function* (
  tx: StoreTx,
  sessionId: string,
  request: { readonly limit: number; readonly before?: number; readonly turnId?: string }
) {
  const newest = yield* tx.scan("message", {
    where: { sessionId, ...(request.turnId === undefined ? {} : { turnId: request.turnId }) },
    ...(request.before === undefined ? {} : { lt: ["ordinal", request.before] as const }),
    order: "ordinal",
    descending: true,
    limit: request.limit
  })
  const page: Array<{ readonly message: MessageRow; readonly parts: ReadonlyArray<PartRow> }> = []
  for (const message of newest.toReversed()) {
    const rows = yield* tx.scan("part", { where: { sessionId, messageId: message.id }, order: "ordinal" })
    const parts: Array<PartRow> = []
    for (const row of rows) parts.push(yield* withText(tx, row))
    page.push({ message, parts })
  }
  return page
})

/** Those rows whose session an owner has; no owner equals none (D-31). */
const ofOwner = Effect.fnUntraced(function* <Row extends { readonly sessionId: string }>(
  tx: StoreTx,
  rows: ReadonlyArray<Row>,
  owner: string | null | undefined,
  fits: (session: StoredSession) => boolean = () => true
) {
  const own: Array<Row> = []
  for (const row of rows) {
    const session = yield* tx.get("session", { id: row.sessionId })
    if (session !== undefined && (owner === undefined || session.owner === owner) && fits(session)) own.push(row)
  }
  return own
})

const ofSession = (sessionId: string | undefined) => (sessionId === undefined ? {} : { sessionId })

/** Open turns of a session, or of all sessions of an owner. */
export const readOpenTurns = Effect.fnUntraced(function* (
  tx: StoreTx,
  filter: { readonly sessionId?: string; readonly owner?: string | null }
) {
  const open = yield* tx.scan("turn", { where: { ...ofSession(filter.sessionId), endedAt: null }, order: "createdAt" })
  return filter.owner === undefined ? open : yield* ofOwner(tx, open, filter.owner)
})

/** Receipts in a state, of a session or of all sessions of an owner. */
export const readReceipts = Effect.fnUntraced(function* (
  tx: StoreTx,
  filter: { readonly state: ReceiptRow["state"]; readonly sessionId?: string; readonly owner?: string | null }
) {
  const found = yield* tx.scan("receipt", { where: { ...ofSession(filter.sessionId), state: filter.state } })
  return filter.owner === undefined ? found : yield* ofOwner(tx, found, filter.owner)
})

/** Sessions of an owner whose queue could start: neither empty nor held. */
export const readWaitingQueues = Effect.fnUntraced(function* (tx: StoreTx, filter: { readonly owner?: string | null }) {
  const first = yield* tx.scan("queue", { where: { position: 0 } })
  const rows = yield* ofOwner(
    tx,
    first,
    filter.owner,
    (session) => session.queueHeld === null && session.archivedAt === null
  )
  return rows.map((row) => row.sessionId)
})
