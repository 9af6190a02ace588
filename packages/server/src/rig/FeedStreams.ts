/**
 * The feed as server-sent events (seat contract 9.7, RIG-290 to 294): a replay in pages to a fixed mark, then what is
 * committed, without hole or repeat. A subscriber that does not read is cut, and nobody else waits for it.
 *
 * It owns the frames and where a subscriber stands. What is in an event was decided when it was committed.
 */
import { type FeedFrame, type FeedFrameData, seatLimits } from "@tackroom/protocol/seat"
import type { ServerResponse } from "node:http"
import type { FeedEntry, RigStore } from "./RigStore.ts"

export interface FeedQuery {
  /** `Last-Event-ID`, which beats `after`; `undefined` for neither. */
  readonly cursor: string | undefined
  readonly journalId: string | undefined
  readonly onReset: string | undefined
}

export interface FeedStreams {
  readonly open: (query: FeedQuery, response: ServerResponse) => void
  /** Ends every stream with a word to its client. */
  readonly close: () => void
}

const pageSize = 200
const heartbeatMs = 10_000
const lifetimeMs = 60 * 60_000
const retryAfterMs = 1_000
const cutAfterMs = 1_000
const unreadPatienceMs = 1_000

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-accel-buffering": "no",
  connection: "keep-alive"
} as const

const eventFrame = ({ cursor, type, at, data }: FeedEntry): string =>
  `id: ${cursor}\ndata: {"cursor":${cursor},"type":${JSON.stringify(type)},"at":${JSON.stringify(at)},"data":${data}}\n\n`

const controlFrame = <Name extends FeedFrame>(name: Name, data: FeedFrameData<Name>): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

type Start =
  | { readonly _tag: "From"; readonly after: number }
  | { readonly _tag: "Reset"; readonly frame: FeedFrameData<"tackroom.reset"> }

/** Where a subscriber begins, or why it cannot begin where it wants (RIG-293). */
export const startOf = (
  query: FeedQuery,
  feed: { readonly head: number; readonly oldest: number; readonly journalId: string }
): Start => {
  const { head, oldest, journalId } = feed
  const reset = (reason: FeedFrameData<"tackroom.reset">["reason"]): Start => {
    const first = Math.max(oldest - 1, 0)
    const from = query.onReset === "tail" ? head : query.onReset === "close" ? null : first
    return {
      _tag: "Reset",
      frame: { reason, head, journalId, resumedFrom: from, ...(reason === "trimmed" ? { oldest } : {}) }
    }
  }
  if (query.journalId !== undefined && query.journalId !== journalId) return reset("journal_replaced")
  if (query.cursor === undefined) return { _tag: "From", after: head }
  if (!/^\d{1,16}$/u.test(query.cursor)) return reset("malformed")
  const after = Number(query.cursor)
  if (after > head) return reset("ahead")
  return oldest > 0 && after < oldest - 1 ? reset("trimmed") : { _tag: "From", after }
}

interface Subscriber {
  readonly take: (entries: ReadonlyArray<FeedEntry>) => void
  readonly bye: (reason: "lifetime" | "shutdown") => void
}

export const make = (store: RigStore): FeedStreams => {
  const subscribers = new Set<Subscriber>()
  store.listen((entries) => {
    for (const subscriber of subscribers) subscriber.take(entries)
  })

  const open: FeedStreams["open"] = (query, response) => {
    const { journalId } = store
    const head = store.head()
    const start = startOf(query, { head, oldest: store.logs.oldest(), journalId })
    response.writeHead(200, headers)
    let position = start._tag === "From" ? start.after : (start.frame.resumedFrom ?? head)
    let live = false
    let synced = false
    let over = false
    let lastWrite = performance.now()

    const write = (frame: string): void => {
      lastWrite = performance.now()
      response.write(frame)
    }
    const finish = (frame?: string): void => {
      if (over) return
      over = true
      subscribers.delete(subscriber)
      clearInterval(heartbeat)
      clearTimeout(lifetime)
      response.end(frame)
      // A client that takes nothing must not hold what was written for it.
      setTimeout(() => response.destroy(), cutAfterMs).unref()
    }
    const overflow = (): void =>
      finish(controlFrame("tackroom.overflow", { reason: "slow_client", resumeAfter: position }))

    /**
     * Goes on when the client has read what is written. One that takes nothing for a while is cut; one that only takes its
     * time reads on from the store, and holds no more than the buffer here.
     */
    const whenRead = (next: () => void): void => {
      let left = response.writableLength
      const look = setInterval(() => {
        if (response.writableLength < left) left = response.writableLength
        else overflow()
        if (over) clearInterval(look)
      }, unreadPatienceMs)
      response.once("drain", () => {
        clearInterval(look)
        next()
      })
    }

    const subscriber: Subscriber = {
      take: (entries) => {
        if (!live || over) return
        for (const entry of entries) {
          if (entry.cursor <= position) continue
          if (response.writableLength > seatLimits.feedBufferBytes) {
            live = false
            whenRead(() => replay(store.head()))
            return
          }
          write(eventFrame(entry))
          position = entry.cursor
        }
      },
      bye: (reason) => finish(controlFrame("tackroom.bye", { reason, retryAfterMs }))
    }

    /** Pages up to the mark, each when the client took the one before; then live, in the same turn of the loop. */
    const replay = (mark: number): void => {
      if (over) return
      const entries = store.logs.feed(position, mark, pageSize)
      for (const entry of entries) {
        if (response.writableLength > seatLimits.feedBufferBytes) {
          whenRead(() => replay(mark))
          return
        }
        write(eventFrame(entry))
        position = entry.cursor
      }
      if (entries.length === pageSize) {
        if (response.writableNeedDrain) whenRead(() => replay(mark))
        else setImmediate(() => replay(mark))
        return
      }
      position = Math.max(position, mark)
      if (store.head() > mark) {
        // What came meanwhile is read like the rest; the client is told once that it has caught up.
        replay(store.head())
        return
      }
      if (!synced) write(controlFrame("tackroom.synced", { cursor: position }))
      synced = true
      live = true
    }

    const heartbeat = setInterval(() => {
      if (performance.now() - lastWrite >= heartbeatMs / 2) write(": hb\n\n")
    }, heartbeatMs)
    const lifetime = setTimeout(() => subscriber.bye("lifetime"), lifetimeMs)
    subscribers.add(subscriber)
    response.on("close", () => finish())
    // A client that is gone closes its stream.
    response.on("error", () => finish())

    write(controlFrame("tackroom.open", { head, journalId, after: position }))
    if (start._tag === "Reset") {
      write(controlFrame("tackroom.reset", start.frame))
      if (start.frame.resumedFrom === null) {
        finish()
        return
      }
    }
    replay(store.head())
  }

  return {
    open,
    close: () => {
      for (const subscriber of subscribers) subscriber.bye("shutdown")
    }
  }
}
