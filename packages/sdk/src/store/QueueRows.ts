/**
 * The queue of a session as a value (5.2): what a change makes of it, and how it is shown. Pure.
 *
 * @since 0.1.0
 */
import { QueueEntryStarted, QueueInvalid } from "@tackroom/protocol"
import type { PromptInput, PromptPart, QueueItem, QueueList } from "@tackroom/protocol/events"
import { timestamp } from "./Projection.ts"
import type { QueueRow, ReceiptRow } from "./Rows.ts"
import type { QueueChange, QueueState } from "./RuntimeStore.ts"

const previewLength = 200

/** The parts of a prompt, whether it was given as text or as parts. */
export const partsOf = (prompt: PromptInput): ReadonlyArray<PromptPart> =>
  prompt.parts ?? (prompt.text === undefined ? [] : [{ type: "text", text: prompt.text }])

/** The first 200 characters of the text of a queued message; never half of a surrogate pair. */
export const preview = (parts: ReadonlyArray<PromptPart>): string => {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  if (text.length <= previewLength) return text
  const last = text.charCodeAt(previewLength - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? previewLength - 1 : previewLength)
}

/** A queued message as `queue-update` shows it. */
export const queueItem = (row: QueueRow): QueueItem => ({
  messageId: row.messageId,
  position: row.position,
  preview: preview(row.parts),
  ...(row.author === null ? {} : { author: row.author }),
  delivery: row.delivery
})

/** The queue as callers and errors show it (3.5). */
export const queueList = (state: QueueState): QueueList => ({
  entries: state.entries.map((row) => ({ ...queueItem(row), parts: row.parts, createdAt: timestamp(row.createdAt) })),
  revision: state.revision,
  held: state.held !== null,
  ...(state.held === null ? {} : { heldReason: state.held })
})

/** The rows of a list, numbered from 0. */
export const numbered = (rows: ReadonlyArray<QueueRow>): ReadonlyArray<QueueRow> =>
  rows.map((row, position) => (row.position === position ? row : { ...row, position }))

/** What became of the message a change names, when the queue has no such entry (RT-118). */
const notQueued = (messageId: string, receipt: ReceiptRow | undefined, list: QueueList) =>
  receipt === undefined || receipt.state === "removed"
    ? new QueueInvalid({ reason: `no message ${messageId} is queued`, list })
    : new QueueEntryStarted({ messageId, list })

/**
 * The queue after a change, or why it does not fit. `receipt` is that of the message which the change names. A release of
 * a queue that is not held changes nothing and answers the same state.
 */
export const changeQueue = (
  state: QueueState,
  change: QueueChange,
  receipt: ReceiptRow | undefined
): QueueState | QueueInvalid | QueueEntryStarted => {
  const next = (entries: ReadonlyArray<QueueRow>): QueueState => ({
    ...state,
    entries: numbered(entries),
    revision: state.revision + 1
  })
  const list = () => queueList(state)
  const without = (messageId: string) => state.entries.filter((row) => row.messageId !== messageId)
  switch (change._tag) {
    case "Release":
      return state.held === null ? state : { ...state, held: null, revision: state.revision + 1 }
    case "Reorder": {
      const byId = new Map(state.entries.map((row) => [row.messageId, row]))
      const rows = change.messageIds.flatMap((id) => byId.get(id) ?? [])
      const exact = rows.length === state.entries.length && new Set(change.messageIds).size === change.messageIds.length
      return exact && change.messageIds.length === rows.length
        ? next(rows)
        : new QueueInvalid({ reason: "reorder takes exactly the queued messages", list: list() })
    }
    default:
  }
  const entry = state.entries.find((row) => row.messageId === change.messageId)
  if (entry === undefined) return notQueued(change.messageId, receipt, list())
  switch (change._tag) {
    case "Remove":
      return next(without(change.messageId))
    case "Move": {
      const rest = without(change.messageId)
      const at = change.before === null ? rest.length : rest.findIndex((row) => row.messageId === change.before)
      if (at < 0) return new QueueInvalid({ reason: `no message ${change.before} is queued`, list: list() })
      return next([...rest.slice(0, at), entry, ...rest.slice(at)])
    }
    case "Edit": {
      const edited = { ...entry, prompt: change.prompt, parts: partsOf(change.prompt), digest: change.digest }
      return next(state.entries.map((row) => (row === entry ? edited : row)))
    }
  }
}
