/**
 * Numbering events and applying their projections, inside one transaction. `Work` is what a call knows of a session while
 * it writes; `flush` puts the session row once, at the end.
 */
import { SessionGone, SessionNotFound } from "@tackroom/protocol"
import { Effect } from "effect"
import { encodePayload, storedEvent, type EventRecord } from "./EventText.ts"
import { outranks, projectEvent, titleText, type RowChange, type TurnContext } from "./Projection.ts"
import type { EventRow, PartRow } from "./Rows.ts"
import type { NewEntry, SessionPatch, StoreFailure } from "./RuntimeStore.ts"
import type { SessionHead, StoreTx } from "./StoreTx.ts"
import type { StoredSession } from "./Tables.ts"
import { putUsage } from "./Usage.ts"

/** A session while a call writes to it. `patch` are the columns to write besides head and time of the last event. */
export interface Work {
  readonly id: string
  head: number
  lastAt: number
  fence: number
  patch: { -readonly [Column in keyof StoredSession]?: StoredSession[Column] }
  row: StoredSession | undefined
  readonly turns: Map<string, TurnContext | undefined>
  /** Parts and messages that are known to be there, since this call met them. */
  readonly open: Set<string>
  readonly messages: Set<string>
  /** Parts of this call whose text is not complete: their rows are made once, with their text or at the end. */
  readonly opening: Map<string, PartRow>
  readonly events: Array<EventRow>
  touched: boolean
}

const makeWork = (head: SessionHead): Work => ({
  ...head,
  patch: {},
  row: undefined,
  turns: new Map(),
  open: new Set(),
  messages: new Set(),
  opening: new Map(),
  events: [],
  touched: false
})

/** The failure for a session that is not there: deleted, or never made. */
export const missing = (
  tx: StoreTx,
  sessionId: string
): Effect.Effect<never, SessionNotFound | SessionGone | StoreFailure> =>
  Effect.flatMap(tx.get("tombstone", { sessionId }), (tombstone) =>
    Effect.fail(tombstone === undefined ? new SessionNotFound({ sessionId }) : new SessionGone({ sessionId }))
  )

/** Locks the sessions, in the order of their ids, and opens the work on each. */
export const begin = Effect.fnUntraced(function* (tx: StoreTx, ids: ReadonlyArray<string>) {
  const heads = yield* tx.heads(ids)
  const works: Array<Work> = []
  for (let i = 0; i < ids.length; i++) {
    const head = heads[i]
    if (head === undefined) return yield* missing(tx, ids[i] ?? "")
    works.push(makeWork(head))
  }
  return works
})

/** The whole row, with what this call has changed so far. */
export const sessionRow = Effect.fnUntraced(function* (tx: StoreTx, work: Work) {
  const row = work.row ?? (yield* tx.get("session", { id: work.id }))
  if (row === undefined) return yield* missing(tx, work.id)
  work.row = row
  return { ...row, ...work.patch, head: work.head, lastAt: work.lastAt, fence: work.fence }
})

/** Sets columns directly, over what events projected. */
export const patchSession = (work: Work, patch: SessionPatch | Partial<StoredSession>): void => {
  const { title } = patch
  Object.assign(work.patch, patch, typeof title === "string" ? { title: titleText(title) } : undefined)
  work.touched = true
}

/** Makes the message of a part that is not there. */
const messageOf = (tx: StoreTx, work: Work, event: EventRow, id: string): Effect.Effect<void, StoreFailure> => {
  if (work.messages.has(id)) return Effect.void
  work.messages.add(id)
  return Effect.asVoid(
    tx.insertIfAbsent("message", {
      sessionId: work.id,
      id,
      ordinal: event.seq,
      role: "assistant",
      turnId: event.turnId ?? event.afterTurn,
      parentId: null,
      info: {},
      createdAt: event.at,
      completedAt: null
    })
  )
}

const openKey = (messageId: string, partId: string): string => `${messageId}\0${partId}`

const openPart = (work: Work, event: EventRow, change: Extract<RowChange, { readonly _tag: "OpenPart" }>): void => {
  const key = openKey(change.messageId, change.id)
  work.open.add(key)
  work.opening.set(key, {
    sessionId: work.id,
    messageId: change.messageId,
    id: change.id,
    ordinal: event.seq,
    type: change.type,
    data: null,
    openFromSeq: event.seq
  })
}

/**
 * The whole row of a part that this call began. Most parts of a busy turn begin and end in one call and are new: one
 * statement makes such a part, and reads nothing.
 */
const endedOf = (work: Work, change: Extract<RowChange, { readonly _tag: "Part" }>): PartRow | undefined => {
  const key = openKey(change.messageId, change.id)
  const opening = work.opening.get(key)
  if (opening === undefined) return undefined
  work.opening.delete(key)
  const data = change.update(undefined)
  return data === undefined ? opening : { ...opening, type: data.type, data, openFromSeq: null }
}

const writeOpening = Effect.fnUntraced(function* (tx: StoreTx, work: Work) {
  for (const row of work.opening.values()) yield* tx.insertIfAbsent("part", row)
  work.opening.clear()
})

/** Marks the text of withdrawn responses: the text parts made between the begin of a response and that of the next. */
const retract = Effect.fnUntraced(function* (
  tx: StoreTx,
  work: Work,
  change: Extract<RowChange, { readonly _tag: "Retract" }>
) {
  const rows = yield* tx.scan("usage", { where: { sessionId: work.id, turnId: change.turn.id }, order: "sequence" })
  const rounds = rows.flatMap((row) =>
    row.observation?.kind === "round" ? [{ seq: row.sequence, ...row.observation }] : []
  )
  const ranges = rounds.flatMap((round, i) =>
    change.responseIds.includes(round.responseId) ? [[round.seq, rounds[i + 1]?.seq ?? Infinity] as const] : []
  )
  if (ranges.length === 0) return
  const parts = yield* tx.scan("part", { where: { sessionId: work.id, messageId: change.turn.assistantId } })
  for (const part of parts) {
    if (part.data?.type !== "text" || !ranges.some(([from, to]) => part.ordinal >= from && part.ordinal < to)) continue
    yield* tx.put("part", { ...part, data: { ...part.data, retracted: true } })
  }
})

const applyChange = Effect.fnUntraced(function* (tx: StoreTx, work: Work, event: EventRow, change: RowChange) {
  switch (change._tag) {
    case "Session":
      Object.assign(work.patch, change.patch)
      return
    case "Title": {
      const row = yield* sessionRow(tx, work)
      if (!outranks(change.source, row.titleSource)) return
      work.patch.title = titleText(change.title)
      work.patch.titleSource = change.source
      return
    }
    case "Advertised": {
      const row = yield* sessionRow(tx, work)
      work.patch.commands = { ...row.commands, ...change.lists }
      return
    }
    case "Agent": {
      const row = yield* sessionRow(tx, work)
      work.patch.config = { ...row.config, agent: change.agentId }
      return
    }
    case "Message":
      work.messages.add(change.id)
      yield* tx.insertIfAbsent("message", {
        sessionId: work.id,
        id: change.id,
        ordinal: event.seq,
        role: change.role,
        turnId: change.turnId,
        parentId: change.parentId,
        info: change.info,
        createdAt: event.at,
        completedAt: change.role === "user" ? event.at : null
      })
      return
    case "MessageEnd": {
      const message = yield* tx.get("message", { sessionId: work.id, id: change.id })
      if (message === undefined) return
      yield* tx.patch(
        "message",
        { sessionId: work.id, id: change.id },
        { info: { ...message.info, ...change.info }, completedAt: event.at }
      )
      return
    }
    case "OpenPart":
      openPart(work, event, change)
      return yield* messageOf(tx, work, event, change.messageId)
    case "Part": {
      const key = { sessionId: work.id, messageId: change.messageId, id: change.id }
      const begun = endedOf(work, change)
      if (begun !== undefined && (yield* tx.insertIfAbsent("part", begun))) return
      const before = yield* tx.get("part", key)
      const data = change.update(before?.data ?? undefined)
      if (data === undefined) return
      if (before === undefined) yield* messageOf(tx, work, event, change.messageId)
      yield* tx.put("part", {
        ...key,
        ordinal: before?.ordinal ?? change.ordinal ?? event.seq,
        type: data.type,
        data,
        openFromSeq: null
      })
      return
    }
    case "Retract":
      yield* writeOpening(tx, work)
      return yield* retract(tx, work, change)
    case "Todos": {
      const stored = yield* tx.scan("todo", { where: { sessionId: work.id }, order: "ordinal" })
      for (const [ordinal, data] of change.todos.entries()) yield* tx.put("todo", { sessionId: work.id, ordinal, data })
      for (const row of stored.slice(change.todos.length)) {
        yield* tx.remove("todo", { sessionId: work.id, ordinal: row.ordinal })
      }
      return
    }
    case "Ask": {
      if ((yield* tx.get("interaction", { id: change.row.id })) !== undefined) return
      const row = yield* sessionRow(tx, work)
      yield* tx.insertIfAbsent("interaction", { ...change.row, sessionId: work.id, rootId: row.rootId })
      return
    }
    case "Resolve":
    case "Withdraw": {
      const row = yield* tx.get("interaction", { id: change.id })
      if (row === undefined || row.state !== "pending") return
      yield* tx.patch(
        "interaction",
        { id: change.id },
        change._tag === "Resolve"
          ? { state: "resolved", resolution: change.resolution, settledAt: event.at }
          : { state: "withdrawn", withdrawal: { reason: change.reason, at: change.at }, settledAt: event.at }
      )
      return
    }
    case "Usage":
      yield* putUsage(tx, change.row)
      return
  }
})

const turnContext = Effect.fnUntraced(function* (tx: StoreTx, work: Work, event: EventRow) {
  const id = event.turnId ?? event.afterTurn
  if (id === null) return undefined
  if (!work.turns.has(id)) {
    const turn = yield* tx.get("turn", { id })
    work.turns.set(
      id,
      turn === undefined ? undefined : { id, messageId: turn.messageId, assistantId: turn.assistantId }
    )
  }
  return work.turns.get(id)
})

/** Types whose rows need no turn; most of a journal, so the turn's row is not read for them. */
const turnless: ReadonlySet<string> = new Set([
  "text-delta",
  "thinking-delta",
  "text-end",
  "tool-output-delta",
  "usage"
])

/** Applies the projections of events that are numbered already; also how rows are rebuilt (STO-005). */
export const applyEvents = Effect.fnUntraced(function* (tx: StoreTx, work: Work, events: ReadonlyArray<EventRow>) {
  for (const event of events) {
    const { payload } = event
    if (
      (payload.type === "text-delta" || payload.type === "thinking-delta") &&
      work.open.has(openKey(payload.messageId, payload.partId))
    ) {
      continue
    }
    const turn = turnless.has(event.type) ? undefined : yield* turnContext(tx, work, event)
    for (const change of projectEvent(event, turn)) yield* applyChange(tx, work, event, change)
  }
  yield* writeOpening(tx, work)
})

/**
 * The records of entries with their cursors and times, the events they become, and the same with the payloads as they were
 * given, to project. Cursors go on from the session's head;
 * the time of an event is never below that of the one before it (6.1).
 */
export const numberEntries = (
  session: { readonly id: string; head: number; lastAt: number },
  entries: ReadonlyArray<NewEntry>,
  now: number
) => {
  const records: Array<EventRecord> = []
  const events: Array<EventRow> = []
  const projected: Array<EventRow> = []
  for (const entry of entries) {
    const { payload, text } = encodePayload(entry.payload)
    session.head += 1
    session.lastAt = Math.max(session.lastAt, entry.at ?? now)
    const record: EventRecord = {
      sessionId: session.id,
      seq: session.head,
      at: session.lastAt,
      type: payload.type,
      turnId: entry.turnId ?? null,
      afterTurn: entry.afterTurn ?? null,
      payload: text,
      artifacts: entry.artifacts === undefined ? null : JSON.stringify(entry.artifacts)
    }
    records.push(record)
    events.push(storedEvent(record, entry.artifacts ?? null))
    projected.push({ ...record, payload, artifacts: null })
  }
  return { records, events, projected }
}

/** Numbers, stores and projects entries. */
export const appendEntries = Effect.fnUntraced(function* (tx: StoreTx, work: Work, entries: ReadonlyArray<NewEntry>) {
  if (entries.length === 0) return []
  for (const entry of entries) for (const row of entry.artifactRows ?? []) yield* tx.put("artifact", row)
  const { events, projected, records } = numberEntries(work, entries, tx.now)
  yield* tx.insertEvents(records)
  yield* applyEvents(tx, work, projected)
  work.events.push(...events)
  work.touched = true
  return events
})

/** Writes the session row of the work, once. */
export const flush = (tx: StoreTx, work: Work): Effect.Effect<void, StoreFailure> =>
  work.touched
    ? tx.patch("session", { id: work.id }, { ...work.patch, head: work.head, lastAt: work.lastAt, fence: work.fence })
    : Effect.void
