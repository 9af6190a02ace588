/** Rows of asks, their rows, permits that nobody was asked about, people and permission settings. */
import type {
  AskResult,
  AskState,
  PermissionSetting,
  PermitReason,
  RowOwner,
  RowState,
  SeatOption,
  SettledHow
} from "@tackroom/protocol/seat"
import type { Connection } from "../database/SqliteFile.ts"
import type { Settlement } from "./PermissionMachine.ts"
import { iso } from "./RigClock.ts"
import type { ToolCall } from "./ToolCallText.ts"

export interface AskRow {
  readonly askId: string
  readonly ordinal: number
  readonly nodeId: string
  readonly generation: string
  readonly nativeRef: string
  readonly turnId: string
  readonly requestId: string
  readonly toolCall: ToolCall
  readonly options: ReadonlyArray<SeatOption>
  /** Digest of tool call and options as they arrived. */
  readonly content: string
  readonly why: string
  readonly rowId: string
  readonly handoffs: number
  readonly openedAt: number
  readonly state: AskState
  readonly result: AskResult | null
  readonly settledAt: number | null
}

export interface OwnerRow {
  readonly rowId: string
  readonly askId: string
  readonly owner: RowOwner
  readonly state: RowState
  readonly openedAt: number
  readonly closedAt: number | null
  readonly by: string | null
  readonly note: string | null
}

export interface PersonRow {
  readonly id: string
  readonly name: string
  readonly addedAt: number
}

interface AskColumns {
  readonly ask_id: string
  readonly ordinal: number
  readonly node_id: string
  readonly generation: string
  readonly native_ref: string
  readonly turn_id: string
  readonly request_id: string
  readonly tool_call: string
  readonly options: string
  readonly content: string
  readonly why: string
  readonly row_id: string
  readonly handoffs: number
  readonly opened_at: number
  readonly state: AskState
  readonly option_id: string | null
  readonly reason: string | null
  readonly said: string | null
  readonly by: string | null
  readonly how: SettledHow | null
  readonly settled_at: number | null
}

interface RowColumns {
  readonly row_id: string
  readonly ask_id: string
  readonly owner_kind: "person" | "seat"
  readonly owner: string
  readonly state: RowState
  readonly opened_at: number
  readonly closed_at: number | null
  readonly by: string | null
  readonly note: string | null
}

const resultOf = (row: AskColumns): AskResult | null =>
  row.by === null || row.how === null
    ? null
    : {
        ...(row.option_id === null ? {} : { optionId: row.option_id }),
        ...(row.reason === null ? {} : { reason: row.reason }),
        ...(row.said === null ? {} : { said: row.said }),
        by: row.by,
        how: row.how
      }

const askFrom = (row: AskColumns): AskRow => ({
  askId: row.ask_id,
  ordinal: row.ordinal,
  nodeId: row.node_id,
  generation: row.generation,
  nativeRef: row.native_ref,
  turnId: row.turn_id,
  requestId: row.request_id,
  toolCall: JSON.parse(row.tool_call) as ToolCall,
  options: JSON.parse(row.options) as ReadonlyArray<SeatOption>,
  content: row.content,
  why: row.why,
  rowId: row.row_id,
  handoffs: row.handoffs,
  openedAt: row.opened_at,
  state: row.state,
  result: resultOf(row),
  settledAt: row.settled_at
})

const rowFrom = (row: RowColumns): OwnerRow => ({
  rowId: row.row_id,
  askId: row.ask_id,
  owner: row.owner_kind === "person" ? { person: row.owner } : { seat: row.owner },
  state: row.state,
  openedAt: row.opened_at,
  closedAt: row.closed_at,
  by: row.by,
  note: row.note
})

/** What a list of asks asks for; `null` takes all. */
export interface AskFilter {
  readonly state: AskState | null
  readonly nodeId: string | null
  readonly person: string | null
  /** Only older ones than this ask. */
  readonly before: number
  readonly limit: number
}

export const make = (db: Connection) => {
  const ask = db.prepare<[string], AskColumns>("SELECT * FROM asks WHERE ask_id = ?")
  const addAsk = db.prepare(
    `INSERT INTO asks (ask_id, ordinal, node_id, generation, native_ref, turn_id, request_id, tool_call, options, content,
       why, row_id, opened_at, state)
     VALUES (?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM asks), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')`
  )
  const latestOfRequest = db.prepare<[string, string, string], AskColumns>(
    `SELECT * FROM asks WHERE generation = ? AND native_ref = ? AND request_id = ? ORDER BY ordinal DESC LIMIT 1`
  )
  const pendingOfSeat = db.prepare<[string], AskColumns>(
    "SELECT * FROM asks WHERE node_id = ? AND state = 'pending' ORDER BY ordinal"
  )
  const pendingCount = db
    .prepare<[string], number>("SELECT COUNT(*) FROM asks WHERE node_id = ? AND state = 'pending'")
    .pluck()
  const allPending = db.prepare<[], number>("SELECT COUNT(*) FROM asks WHERE state = 'pending'").pluck()
  const settle = db.prepare(
    `UPDATE asks SET state = ?, option_id = ?, reason = ?, said = ?, by = ?, how = ?, settled_at = ?
     WHERE ask_id = ? AND state = 'pending'`
  )
  const passOn = db.prepare("UPDATE asks SET row_id = ?, why = ?, handoffs = handoffs + 1 WHERE ask_id = ?")
  const list = db.prepare<
    [{ state: string | null; node: string | null; person: string | null; before: number; limit: number }],
    AskColumns
  >(
    `SELECT * FROM asks WHERE ordinal < $before
       AND ($state IS NULL OR state = $state)
       AND ($node IS NULL OR node_id = $node)
       AND ($person IS NULL OR EXISTS (
         SELECT 1 FROM ask_rows WHERE row_id = asks.row_id AND owner_kind = 'person' AND owner = $person))
     ORDER BY ordinal DESC LIMIT $limit`
  )
  const trimAsks = db.prepare("DELETE FROM asks WHERE state <> 'pending' AND settled_at < ?")

  const addRow = db.prepare(
    `INSERT INTO ask_rows (row_id, ask_id, ordinal, owner_kind, owner, state, opened_at)
     VALUES (?, ?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM ask_rows WHERE ask_id = ?), ?, ?, 'open', ?)`
  )
  const row = db.prepare<[string], RowColumns>("SELECT * FROM ask_rows WHERE row_id = ?")
  const rows = db.prepare<[string], RowColumns>("SELECT * FROM ask_rows WHERE ask_id = ? ORDER BY ordinal")
  const closeRow = db.prepare("UPDATE ask_rows SET state = ?, closed_at = ?, by = ?, note = ? WHERE row_id = ?")
  const noteRow = db.prepare("UPDATE ask_rows SET note = ? WHERE row_id = ?")

  const latestPermit = db.prepare<
    [string, string, string],
    { turn_id: string; content: string; option_id: string; reason: PermitReason; at: number }
  >(
    `SELECT turn_id, content, option_id, reason, at FROM permits
     WHERE generation = ? AND native_ref = ? AND request_id = ? ORDER BY id DESC LIMIT 1`
  )
  const addPermit = db.prepare(
    `INSERT INTO permits (generation, native_ref, request_id, turn_id, content, option_id, reason, at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
  )
  const trimPermits = db.prepare("DELETE FROM permits WHERE at < ?")

  const people = db.prepare<[], { id: string; name: string; added_at: number }>(
    "SELECT id, name, added_at FROM people ORDER BY id"
  )
  const personOfToken = db.prepare<[string], string>("SELECT id FROM people WHERE token = ?").pluck()
  const addPerson = db.prepare("INSERT INTO people (id, name, token, added_at) VALUES (?, ?, ?, ?)")
  const removePerson = db.prepare("DELETE FROM people WHERE id = ?")

  const setting = db.prepare<
    [string],
    { mode: PermissionSetting["mode"]; person: string | null; reason: string; by: string; at: number }
  >("SELECT * FROM permission_settings WHERE node_id = ? ORDER BY id DESC LIMIT 1")
  const addSetting = db.prepare(
    "INSERT INTO permission_settings (node_id, mode, person, reason, by, at) VALUES (?, ?, ?, ?, ?, ?)"
  )

  const meta = db.prepare<[string], string>("SELECT value FROM meta WHERE key = ?").pluck()
  const setMeta = db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")
  const dropMeta = db.prepare("DELETE FROM meta WHERE key = ?")

  const optional = <Row, A>(found: Row | undefined, from: (row: Row) => A): A | undefined =>
    found === undefined ? undefined : from(found)
  const ownerOf = (owner: RowOwner): readonly [string, string] =>
    "person" in owner ? ["person", owner.person] : ["seat", owner.seat]

  return {
    ask: (askId: string) => optional(ask.get(askId), askFrom),
    addAsk: (it: Omit<AskRow, "ordinal" | "handoffs" | "state" | "result" | "settledAt">, owner: RowOwner): void => {
      addAsk.run(
        it.askId,
        it.nodeId,
        it.generation,
        it.nativeRef,
        it.turnId,
        it.requestId,
        JSON.stringify(it.toolCall),
        JSON.stringify(it.options),
        it.content,
        it.why,
        it.rowId,
        it.openedAt
      )
      addRow.run(it.rowId, it.askId, it.askId, ...ownerOf(owner), it.openedAt)
    },
    latestOfRequest: (generation: string, nativeRef: string, requestId: string) =>
      optional(latestOfRequest.get(generation, nativeRef, requestId), askFrom),
    pendingOfSeat: (nodeId: string) => pendingOfSeat.all(nodeId).map(askFrom),
    pendingCount: (nodeId: string) => pendingCount.get(nodeId) ?? 0,
    allPending: () => allPending.get() ?? 0,
    /** One conditional update: false when the ask was settled before. */
    settle: (askId: string, to: Settlement, at: number): boolean =>
      settle.run(to.state, to.optionId ?? null, to.reason ?? null, to.said ?? null, to.by, to.how, at, askId).changes >
      0,
    passOn: (askId: string, rowId: string, why: string) => void passOn.run(rowId, why, askId),
    asks: ({ state, nodeId, person, before, limit }: AskFilter) =>
      list.all({ state, node: nodeId, person, before, limit }).map(askFrom),
    trimAsks: (settledBefore: number) => {
      trimAsks.run(settledBefore)
      trimPermits.run(settledBefore)
    },

    addRow: (rowId: string, askId: string, owner: RowOwner, at: number) =>
      void addRow.run(rowId, askId, askId, ...ownerOf(owner), at),
    row: (rowId: string) => optional(row.get(rowId), rowFrom),
    rows: (askId: string) => rows.all(askId).map(rowFrom),
    closeRow: (rowId: string, state: RowState, at: number, by: string, note: string | null) =>
      void closeRow.run(state, at, by, note, rowId),
    noteRow: (rowId: string, note: string | null) => void noteRow.run(note, rowId),

    latestPermit: (generation: string, nativeRef: string, requestId: string) =>
      optional(latestPermit.get(generation, nativeRef, requestId), (found) => ({
        turnId: found.turn_id,
        content: found.content,
        optionId: found.option_id,
        reason: found.reason,
        at: found.at
      })),
    addPermit: (it: {
      readonly generation: string
      readonly nativeRef: string
      readonly requestId: string
      readonly turnId: string
      readonly content: string
      readonly optionId: string
      readonly reason: PermitReason
      readonly at: number
    }) =>
      void addPermit.run(
        it.generation,
        it.nativeRef,
        it.requestId,
        it.turnId,
        it.content,
        it.optionId,
        it.reason,
        it.at
      ),

    people: (): ReadonlyArray<PersonRow> =>
      people.all().map((found) => ({ id: found.id, name: found.name, addedAt: found.added_at })),
    personOfToken: (hash: string) => personOfToken.get(hash),
    addPerson: (id: string, name: string, hash: string, at: number) => void addPerson.run(id, name, hash, at),
    removePerson: (id: string) => removePerson.run(id).changes > 0,
    defaultPerson: (): string | null => meta.get("default_person") ?? null,
    setDefaultPerson: (id: string | null) =>
      void (id === null ? dropMeta.run("default_person") : setMeta.run("default_person", id)),

    setting: (nodeId: string): PermissionSetting => {
      const found = setting.get(nodeId)
      if (found === undefined) return { mode: "default" }
      return {
        mode: found.mode,
        ...(found.person === null ? {} : { person: found.person }),
        reason: found.reason,
        by: found.by,
        at: iso(found.at)
      }
    },
    addSetting: (
      nodeId: string,
      mode: PermissionSetting["mode"],
      person: string | null,
      reason: string,
      by: string,
      at: number
    ) => void addSetting.run(nodeId, mode, person, reason, by, at)
  }
}

export type AskRows = ReturnType<typeof make>
