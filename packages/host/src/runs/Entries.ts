/**
 * The journal of a session as the command-line faces read it: pages of events in order, whole where a face writes their
 * text (serve-mode 9). It keeps nothing: a face asks on from its last cursor, at the pace of its own reader (SRV-320).
 *
 * What is cut in the journal is put back from its artifact for the few types whose text goes out whole or long; the rest
 * is shown as a preview anyway.
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { EventPayload, EventType } from "@tackroom/protocol/events"
import type { EventRow, RuntimeStore } from "@tackroom/sdk/effect"
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

const entryOf = (row: EventRow, payload: EventPayload): Entry => ({
  cursor: row.seq,
  turnId: row.turnId ?? undefined,
  afterTurn: row.afterTurn ?? undefined,
  payload
})

/** Whether what is cut of it has to be put back. */
const isCut = ({ artifacts, payload }: EventRow): boolean =>
  artifacts !== null && artifacts.length > 0 && whole.has(payload.type)

const entryWithArtifact = Effect.fnUntraced(function* (store: Store, row: EventRow) {
  const payload = isCut(row) ? yield* inflate(store, row) : row.payload
  const media = yield* mediaOf(store, payload)
  return { ...entryOf(row, payload), ...(media === undefined ? {} : { media }) }
})

/** The next page behind a cursor. */
export const read =
  (store: Store) =>
  (sessionId: string, after: number): Effect.Effect<EntryPage, RuntimeError> =>
    Effect.gen(function* () {
      const page = yield* store.read(sessionId, after, pageEvents, pageBytes)
      const entries: Array<Entry> = []
      for (const row of page.events) {
        entries.push(
          isCut(row) || "artifactId" in row.payload ? yield* entryWithArtifact(store, row) : entryOf(row, row.payload)
        )
      }
      return { entries, head: page.head }
    })
