/** Rows that only grow and are cut at their old end: posts, activity, the stream, the feed, snapshots, sends, replies. */
import { type FeedType, seatLimits, type SnapshotSeat, type StreamItem } from "@tackroom/protocol/seat"
import type { Connection } from "../database/SqliteFile.ts"
import type { DurableActivity } from "./ActivityMachine.ts"
import { iso } from "./RigClock.ts"

export interface PostRow {
  readonly nodeId: string
  readonly generation: string | null
  readonly sequence: number | null
  readonly occurredAt: number
  readonly arrivedAt: number
  readonly hookEvent: string
  readonly subtype: string
  readonly body: string
  readonly why: string
}

export interface StoredActivity {
  readonly nodeId: string
  readonly state: DurableActivity
  readonly value: string
  readonly source: string
  readonly since: number
}

export interface FeedRow {
  readonly cursor: number
  readonly type: FeedType
  readonly at: string
  /** The view as JSON text. */
  readonly data: string
}

export interface StreamFilter {
  readonly tag: string | null
  readonly source: string | null
  readonly since: number
  readonly until: number
  readonly archived: boolean | null
  readonly before: number
  readonly limit: number
}

interface StreamColumns {
  readonly id: string
  readonly ordinal: number
  readonly at: number
  readonly source: string
  readonly tags: string
  readonly body: string
  readonly data: string
  readonly archived_at: number | null
}

const dayMs = 86_400_000

const itemFrom = (row: StreamColumns): StreamItem => ({
  streamItemId: row.id,
  tsEmitted: iso(row.at),
  sourceSession: row.source,
  hintTags: JSON.parse(row.tags) as ReadonlyArray<string>,
  format: "text",
  interrupt: false,
  archivedAt: row.archived_at === null ? null : iso(row.archived_at),
  body: row.body,
  data: JSON.parse(row.data) as StreamItem["data"]
})

export const make = (db: Connection) => {
  const addPost = db.prepare(
    `INSERT INTO posts (node_id, generation, sequence, occurred_at, arrived_at, hook_event, subtype, body, why)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  )
  const countPosts = db.prepare<[string], number>("SELECT COUNT(*) FROM posts WHERE node_id = ?").pluck()
  const trimPosts = db.prepare(
    `DELETE FROM posts WHERE node_id = ? AND id <= (
       SELECT id FROM posts WHERE node_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`
  )
  const agePosts = db.prepare("DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE arrived_at < ? LIMIT 1000)")
  const posts = db.prepare<
    [string],
    { generation: string | null; sequence: number | null; hook_event: string; subtype: string; why: string }
  >("SELECT generation, sequence, hook_event, subtype, why FROM posts WHERE node_id = ? ORDER BY id")

  const putActivity = db.prepare(
    `INSERT INTO activity (node_id, state, value, source, since) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (node_id) DO UPDATE SET state = excluded.state, value = excluded.value, source = excluded.source,
       since = excluded.since`
  )
  const activities = db.prepare<[], { node_id: string; state: string; value: string; source: string; since: number }>(
    "SELECT * FROM activity"
  )

  const addItem = db.prepare(
    `INSERT INTO stream_items (id, ordinal, at, source, tags, body, data)
     VALUES (?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM stream_items), ?, ?, ?, ?, ?)`
  )
  const items = db.prepare<
    [
      {
        tag: string | null
        source: string | null
        since: number
        until: number
        archived: number | null
        before: number
        limit: number
      }
    ],
    StreamColumns
  >(
    `SELECT * FROM stream_items WHERE ordinal < $before AND at >= $since AND at <= $until
       AND ($source IS NULL OR source = $source)
       AND ($archived IS NULL OR (archived_at IS NOT NULL) = $archived)
       AND ($tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = $tag))
     ORDER BY ordinal DESC LIMIT $limit`
  )
  const itemOrdinal = db.prepare<[string], number>("SELECT ordinal FROM stream_items WHERE id = ?").pluck()
  const item = db.prepare<[string], StreamColumns>("SELECT * FROM stream_items WHERE id = ?")
  const trimItems = db.prepare(
    `DELETE FROM stream_items WHERE at < ? OR ordinal <= (SELECT MAX(ordinal) - ${seatLimits.keptStreamItems} FROM stream_items)`
  )

  const addFeed = db.prepare("INSERT INTO feed (type, at, data) VALUES (?, ?, ?)")
  const head = db.prepare<[], number>("SELECT COALESCE(MAX(cursor), 0) FROM feed").pluck()
  const oldest = db.prepare<[], number>("SELECT COALESCE(MIN(cursor), 0) FROM feed").pluck()
  const page = db.prepare<[number, number, number], FeedRow>(
    "SELECT * FROM feed WHERE cursor > ? AND cursor <= ? ORDER BY cursor LIMIT ?"
  )
  const trimFeed = db.prepare(
    `DELETE FROM feed WHERE cursor IN (
       SELECT cursor FROM feed WHERE cursor <= (SELECT MAX(cursor) - ? FROM feed) ORDER BY cursor LIMIT 2000)`
  )

  const addSnapshot = db.prepare(
    `INSERT INTO snapshots (id, ordinal, rig, taken_at, file, seats)
     VALUES (?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM snapshots), ?, ?, ?, ?)`
  )
  interface SnapshotColumns {
    readonly id: string
    readonly ordinal: number
    readonly rig: string
    readonly taken_at: number
    readonly file: string
    readonly seats: string
  }
  const snapshots = db.prepare<[string, number, number], SnapshotColumns>(
    "SELECT * FROM snapshots WHERE rig = ? AND ordinal < ? ORDER BY ordinal DESC LIMIT ?"
  )
  const snapshot = db.prepare<[string], SnapshotColumns>("SELECT * FROM snapshots WHERE id = ?")
  const countSnapshots = db.prepare<[string], number>("SELECT COUNT(*) FROM snapshots WHERE rig = ?").pluck()
  const trimSnapshots = db.prepare(
    `DELETE FROM snapshots WHERE rig = ? AND ordinal <= (
       SELECT ordinal FROM snapshots WHERE rig = ? ORDER BY ordinal DESC LIMIT 1 OFFSET ${seatLimits.keptSnapshots})`
  )
  const snapshotFrom = (row: SnapshotColumns) => ({
    snapshotId: row.id,
    ordinal: row.ordinal,
    rig: row.rig,
    takenAt: iso(row.taken_at),
    seats: JSON.parse(row.seats) as ReadonlyArray<SnapshotSeat>
  })

  const addSend = db.prepare(
    "INSERT INTO sends (id, node_id, generation, at, sender, bytes, forced, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
  )
  const endSend = db.prepare("UPDATE sends SET outcome = ? WHERE id = ?")
  const sentSend = db.prepare("UPDATE sends SET outcome = 'sent', draft = 0 WHERE id = ?")
  const pastedSend = db.prepare("UPDATE sends SET draft = 1, generation = ? WHERE id = ?")
  const unpastedSend = db.prepare("UPDATE sends SET draft = 0 WHERE id = ?")
  const clearDrafts = db.prepare("UPDATE sends SET draft = 0 WHERE generation = ? AND draft = 1")
  const draft = db.prepare<[string], { id: string; sender: string; at: number; outcome: string }>(
    "SELECT id, sender, at, outcome FROM sends WHERE generation = ? AND draft = 1 ORDER BY at DESC, id DESC LIMIT 1"
  )
  const startedSends = db.prepare<[], { id: string; node_id: string; draft: number }>(
    "SELECT id, node_id, draft FROM sends WHERE outcome = 'started' ORDER BY id"
  )

  const reply = db.prepare<[string, string], { request: string; status: number; answer: string }>(
    "SELECT request, status, answer FROM idempotency WHERE caller = ? AND key = ?"
  )
  const beginReply = db.prepare(
    "INSERT OR IGNORE INTO idempotency (caller, key, request, status, answer, at) VALUES (?, ?, ?, 0, '', ?)"
  )
  const endReply = db.prepare("UPDATE idempotency SET status = ?, answer = ? WHERE caller = ? AND key = ?")
  const dropReply = db.prepare("DELETE FROM idempotency WHERE caller = ? AND key = ?")
  const trimReplies = db.prepare("DELETE FROM idempotency WHERE at < ?")

  const meta = db.prepare<[string], string>("SELECT value FROM meta WHERE key = ?").pluck()
  const addMeta = db.prepare("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)")

  return {
    addPost: (row: PostRow) =>
      void addPost.run(
        row.nodeId,
        row.generation,
        row.sequence,
        row.occurredAt,
        row.arrivedAt,
        row.hookEvent,
        row.subtype,
        row.body,
        row.why
      ),
    posts: (nodeId: string) => posts.all(nodeId),
    countPosts: (nodeId: string) => countPosts.get(nodeId) ?? 0,
    trimPosts: (nodeId: string) => void trimPosts.run(nodeId, nodeId, seatLimits.keptPosts),
    agePosts: (before: number): boolean => agePosts.run(before).changes > 0,

    putActivity: (it: StoredActivity) =>
      void putActivity.run(it.nodeId, JSON.stringify(it.state), it.value, it.source, it.since),
    activities: (): ReadonlyArray<StoredActivity> =>
      activities.all().map((row) => ({
        nodeId: row.node_id,
        state: JSON.parse(row.state) as DurableActivity,
        value: row.value,
        source: row.source,
        since: row.since
      })),

    addItem: (it: {
      readonly id: string
      readonly at: number
      readonly source: string
      readonly tags: ReadonlyArray<string>
      readonly body: string
      readonly data: StreamItem["data"]
    }) => void addItem.run(it.id, it.at, it.source, JSON.stringify(it.tags), it.body, JSON.stringify(it.data)),
    items: ({ tag, source, since, until, archived, before, limit }: StreamFilter) =>
      items
        .all({ tag, source, since, until, archived: archived === null ? null : archived ? 1 : 0, before, limit })
        .map((row) => ({ ordinal: row.ordinal, item: itemFrom(row) })),
    item: (id: string): StreamItem | undefined => {
      const row = item.get(id)
      return row === undefined ? undefined : itemFrom(row)
    },
    itemOrdinal: (id: string) => itemOrdinal.get(id),
    trimItems: (now: number) => void trimItems.run(now - seatLimits.keptStreamDays * dayMs),

    addFeed: (type: FeedType, at: string, data: string): number => Number(addFeed.run(type, at, data).lastInsertRowid),
    head: () => head.get() ?? 0,
    oldest: () => oldest.get() ?? 0,
    feed: (after: number, upTo: number, limit: number) => page.all(after, upTo, limit),
    trimFeed: (kept: number): boolean => trimFeed.run(kept).changes > 0,

    addSnapshot: (it: {
      readonly id: string
      readonly rig: string
      readonly at: number
      readonly file: string
      readonly seats: ReadonlyArray<SnapshotSeat>
    }) => {
      addSnapshot.run(it.id, it.rig, it.at, it.file, JSON.stringify(it.seats))
      trimSnapshots.run(it.rig, it.rig)
    },
    snapshots: (rig: string, before: number, limit: number) => snapshots.all(rig, before, limit).map(snapshotFrom),
    snapshot: (id: string) => {
      const row = snapshot.get(id)
      return row === undefined ? undefined : snapshotFrom(row)
    },
    countSnapshots: (rig: string) => countSnapshots.get(rig) ?? 0,

    addSend: (it: {
      readonly id: string
      readonly nodeId: string
      readonly generation: string | null
      readonly at: number
      readonly sender: string
      readonly bytes: number
      readonly forced: string | null
    }) => void addSend.run(it.id, it.nodeId, it.generation, it.at, it.sender, it.bytes, it.forced, "started"),
    endSend: (id: string, outcome: string) => void endSend.run(outcome, id),
    /** Its Enter was pressed: nothing of it stands as a draft. */
    sentSend: (id: string) => void sentSend.run(id),
    /** Its text is about to stand in the pane of this occupant. */
    pastedSend: (id: string, generation: string) => void pastedSend.run(generation, id),
    unpastedSend: (id: string) => void unpastedSend.run(id),
    clearDrafts: (generation: string) => void clearDrafts.run(generation),
    /** The last send of an occupant whose text may stand in its pane without an Enter. */
    draft: (generation: string) => draft.get(generation),
    /** Sends that nobody ended: of a service that was killed. */
    startedSends: () =>
      startedSends.all().map(({ draft: stands, id, node_id: nodeId }) => ({ id, nodeId, draft: stands === 1 })),

    /** An answer under a key; of a call that has none yet the status is 0. */
    reply: (caller: string, key: string) => reply.get(caller, key),
    beginReply: (caller: string, key: string, request: string, at: number) =>
      void beginReply.run(caller, key, request, at),
    endReply: (caller: string, key: string, status: number, answer: string) =>
      void endReply.run(status, answer, caller, key),
    dropReply: (caller: string, key: string) => void dropReply.run(caller, key),
    trimReplies: (before: number) => void trimReplies.run(before),

    /** A value that is made once with the store. */
    lasting: (key: string, make: () => string): string => {
      addMeta.run(key, meta.get(key) ?? make())
      return meta.get(key) ?? ""
    }
  }
}

export type LogRows = ReturnType<typeof make>
