/**
 * The journal of a session as the command-line faces read it: events in order, whole where a face writes their text
 * (serve-mode 9), as pages behind a cursor or as they are committed. It keeps nothing but what a subscription buffers: a
 * face goes on at the pace of its own reader (SRV-320).
 *
 * What is cut in the journal is put back from its artifact for the few types whose text goes out whole or long; the rest
 * is shown as a preview anyway.
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { Envelope, EventPayload, EventType } from "@tackroom/protocol/events"
import { type EventRow, isEnvelope, type RuntimeStore, type Subscription } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import { inflate } from "./JournalReader.ts"

export interface Entry {
  readonly cursor: number
  readonly turnId: string | undefined
  /** It arrived after that turn's end. */
  readonly afterTurn: string | undefined
  readonly payload: EventPayload
  /** The artifact of an image or a sound: its size, and its bytes in base64 when they are few. */
  readonly media?: { readonly bytes: number; readonly data?: string }
}

export interface EntryPage {
  readonly entries: ReadonlyArray<Entry>
  readonly head: number
}

/** A session's journal as it grows. What was just committed is handed over, and not read again. */
export interface EntryFeed {
  /** What comes next, one entry at least; none when the host closes. */
  readonly next: Effect.Effect<ReadonlyArray<Entry>, RuntimeError>
  readonly close: Effect.Effect<void>
}

const pageEvents = 256
const pageBytes = 1_048_576
/** Larger media are told by their size alone: base64 of this is the bound of a line's `data`. */
const mediaBytes = 196_608

const whole: ReadonlySet<EventType> = new Set<EventType>([
  "user-message",
  "text-delta",
  "text-end",
  "finish",
  "file-diff",
  "proposed-plan-complete",
  "question"
])

type Store = Pick<RuntimeStore, "read" | "artifact" | "artifactBytes">

const mediaOf = Effect.fnUntraced(function* (store: Store, payload: EventPayload) {
  if (!("artifactId" in payload) || typeof payload.artifactId !== "string") return undefined
  const row = yield* store.artifact(payload.artifactId)
  if (row === undefined) return undefined
  if (!row.retained || row.bytes > mediaBytes) return { bytes: row.bytes }
  const bytes = yield* store.artifactBytes(row.id, 0, row.bytes)
  return { bytes: row.bytes, data: Buffer.from(bytes).toString("base64") }
})

/** An event, as it was stored or as it was published. */
interface Event extends Pick<EventRow, "payload" | "artifacts"> {
  readonly cursor: number
  readonly turnId: string | undefined
  readonly afterTurn: string | undefined
}

const stored = ({ afterTurn, artifacts, payload, seq, turnId }: EventRow): Event => ({
  cursor: seq,
  turnId: turnId ?? undefined,
  afterTurn: afterTurn ?? undefined,
  payload,
  artifacts
})

const published = ({ afterTurn, artifacts, cursor, payload, turnId }: Envelope): Event => ({
  cursor,
  turnId,
  afterTurn,
  payload,
  artifacts: artifacts ?? null
})

/** Whether what is cut of it has to be put back. */
const isCut = ({ artifacts, payload }: Event): boolean =>
  artifacts !== null && artifacts.length > 0 && whole.has(payload.type)

const entriesOf = Effect.fnUntraced(function* (store: Store, events: ReadonlyArray<Event>) {
  const entries: Array<Entry> = []
  for (const event of events) {
    const { afterTurn, cursor, turnId } = event
    const payload = isCut(event) ? yield* inflate(store, event) : event.payload
    const media = "artifactId" in payload ? yield* mediaOf(store, payload) : undefined
    entries.push({ cursor, turnId, afterTurn, payload, ...(media === undefined ? {} : { media }) })
  }
  return entries
})

/** The next page behind a cursor. */
export const read =
  (store: Store) =>
  (sessionId: string, after: number): Effect.Effect<EntryPage, RuntimeError> =>
    Effect.gen(function* () {
      const page = yield* store.read(sessionId, after, pageEvents, pageBytes)
      return { entries: yield* entriesOf(store, page.events.map(stored)), head: page.head }
    })

/** The entries of a subscription to one session. */
export const feed = (store: Store, subscription: Subscription): EntryFeed => ({
  next: Effect.gen(function* () {
    let item = yield* subscription.next
    // What is no event says where the subscription stands.
    while (item !== undefined && !isEnvelope(item)) item = yield* subscription.next
    const events: Array<Event> = []
    for (; item !== undefined && events.length < pageEvents; item = subscription.poll()) events.push(published(item))
    return yield* entriesOf(store, events)
  }),
  close: subscription.close
})
