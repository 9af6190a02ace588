/**
 * The tables of the store schema (agent-runtime 13.2), once: columns, keys, and how a row becomes column values and back.
 * Every store keeps the same column values, so that memory, SQLite and PostgreSQL can be compared row by row.
 *
 * A plain text column holds well-formed text without U+0000 (STO-012). Everything that is not plain is JSON text made by
 * `JSON.stringify`, in which lone surrogates and U+0000 are escapes and survive (RT-191).
 */
import { RuntimeStoreCorruptRow } from "@tackroom/protocol"
import type { Cost, Todo, UsageObservation } from "@tackroom/protocol/events"
import type {
  ArtifactRow,
  BindingRow,
  InstanceRow,
  InteractionRow,
  LeaseRow,
  MessageRow,
  PartRow,
  ProcessRow,
  QueueRow,
  ReceiptRow,
  SessionRow,
  StartRow,
  TurnRow
} from "./Rows.ts"
import type { UsageTotals } from "./RuntimeStore.ts"

/** What a column can hold. */
export type ColumnValue = string | number | null

/** `SessionRow` as it is kept: with the time of the last event, below which no later one may lie (6.1). */
export interface StoredSession extends Omit<SessionRow, "corrupt"> {
  readonly lastAt: number
}

/** The public row of a stored one. */
export const publicRow = <Row extends StoredSession>({ lastAt: _lastAt, ...row }: Row): Omit<Row, "lastAt"> => row

/** A todo of a session's list (`tr_todo`). */
export interface TodoRow {
  readonly sessionId: string
  readonly ordinal: number
  readonly data: Todo
}

/** The begin of a model request, kept beside the observations so that rounds are counted without the journal (D-24). */
export interface RoundObservation {
  readonly kind: "round"
  readonly responseId: string
  readonly attempt?: number
}

/**
 * A report of usage or the begin of a round (`tr_usage`); `sequence` is the cursor of its event, `turnId` may be "".
 * Rows with one `ref` are reports of the same thing.
 */
export interface UsageRow {
  readonly sessionId: string
  readonly turnId: string
  readonly sequence: number
  readonly ref: string | null
  readonly observation: UsageObservation | RoundObservation | null
  readonly cost: Cost | null
}

/** Usage of a turn so far, or of the whole session where `turnId` is "" (`tr_usage_total`). */
export interface UsageTotalRow extends UsageTotals {
  readonly sessionId: string
  readonly turnId: string
}

/** A deleted session (`tr_tombstone`); `purged` once its rows are gone (RT-051). */
export interface TombstoneRow {
  readonly sessionId: string
  readonly deletedAt: number
  readonly purged: boolean
}

/** What a column holds; a list of words is text that is one of them. */
export type Kind = "text" | "int" | "bool" | "json" | ReadonlyArray<string>

/** A column: its name in code and in SQL, and what it holds. */
export interface Column {
  readonly name: string
  readonly sql: string
  readonly kind: Kind
}

/** A table: its SQL name, its key columns first, and its columns in a fixed order. */
export interface Table {
  readonly name: TableName
  readonly sql: string
  readonly key: ReadonlyArray<string>
  readonly columns: ReadonlyArray<Column>
  readonly position: ReadonlyMap<string, number>
}

const snake = (name: string): string => name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)

const harnessAccess = ["native", "acp", "connection"]

const table =
  <Row>() =>
  <const Key extends keyof Row & string>(
    sql: string,
    key: ReadonlyArray<Key>,
    kinds: { readonly [Name in keyof Required<Row>]: Kind }
  ) => ({ sql, key, kinds: kinds as Record<string, Kind>, row: undefined as unknown as Row })

const definitions = {
  session: table<StoredSession>()("tr_session", ["id"], {
    id: "text",
    workspaceId: "text",
    directory: "text",
    harnessId: "text",
    access: harnessAccess,
    parentId: "text",
    rootId: "text",
    toolCallId: "text",
    title: "text",
    titleSource: ["prompt", "harness", "user"],
    status: ["busy", "recovering", "error"],
    phase: ["starting", "running", "waiting", "cancelling"],
    lastTurn: "json",
    config: "json",
    metadata: "json",
    tags: "json",
    harnessPayload: "json",
    commands: "json",
    head: "int",
    fence: "int",
    owner: "text",
    queueRevision: "int",
    queueHeld: ["turn_failed", "turn_cancelled"],
    createdAt: "int",
    updatedAt: "int",
    archivedAt: "int",
    closedAt: "int",
    lastAt: "int"
  }),
  turn: table<TurnRow>()("tr_turn", ["id"], {
    id: "text",
    sessionId: "text",
    messageId: "text",
    assistantId: "text",
    origin: ["user", "queue", "goal", "schedule", "team", "harness"],
    state: ["admitted", "starting", "running", "waiting", "cancelling", "recovering", "settled"],
    handedOver: "bool",
    fence: "int",
    outcome: "json",
    startSeq: "int",
    endSeq: "int",
    prompt: "json",
    recoveries: "int",
    cancelRequested: "bool",
    peerCursor: "text",
    createdAt: "int",
    endedAt: "int"
  }),
  receipt: table<ReceiptRow>()("tr_receipt", ["sessionId", "messageId"], {
    sessionId: "text",
    messageId: "text",
    digest: "text",
    state: ["admitted", "queued", "steering", "steered", "uncertain", "removed", "settled"],
    turnId: "text",
    startSeq: "int",
    endSeq: "int",
    outcome: "json",
    createdAt: "int"
  }),
  queue: table<QueueRow>()("tr_queue", ["sessionId", "messageId"], {
    sessionId: "text",
    messageId: "text",
    position: "int",
    prompt: "json",
    parts: "json",
    author: "json",
    delivery: ["queue", "steer"],
    digest: "text",
    createdAt: "int"
  }),
  message: table<MessageRow>()("tr_message", ["sessionId", "id"], {
    sessionId: "text",
    id: "text",
    ordinal: "int",
    role: ["user", "assistant"],
    turnId: "text",
    parentId: "text",
    info: "json",
    createdAt: "int",
    completedAt: "int"
  }),
  part: table<PartRow>()("tr_part", ["sessionId", "messageId", "id"], {
    sessionId: "text",
    messageId: "text",
    id: "text",
    ordinal: "int",
    type: "text",
    data: "json",
    openFromSeq: "int"
  }),
  interaction: table<InteractionRow>()("tr_interaction", ["id"], {
    id: "text",
    sessionId: "text",
    rootId: "text",
    turnId: "text",
    kind: ["permission", "question"],
    nativeId: "text",
    state: ["pending", "resolved", "withdrawn"],
    request: "json",
    resolution: "json",
    withdrawal: "json",
    delivered: "bool",
    createdAt: "int",
    settledAt: "int"
  }),
  todo: table<TodoRow>()("tr_todo", ["sessionId", "ordinal"], { sessionId: "text", ordinal: "int", data: "json" }),
  binding: table<BindingRow>()("tr_binding", ["sessionId"], {
    sessionId: "text",
    workspaceId: "text",
    directory: "text",
    connectionId: "text",
    upstreamSessionId: "text",
    upstreamState: ["pending", "confirmed"],
    ownerKey: "text"
  }),
  start: table<StartRow>()("tr_start", ["sessionId"], {
    sessionId: "text",
    operationId: "text",
    state: ["starting", "created", "failed"],
    upstreamSessionId: "text",
    error: "text"
  }),
  lease: table<LeaseRow>()("tr_lease", ["sessionId"], {
    sessionId: "text",
    leaseId: "text",
    owner: "text",
    fence: "int",
    expiresAt: "int"
  }),
  usage: table<UsageRow>()("tr_usage", ["sessionId", "turnId", "sequence"], {
    sessionId: "text",
    turnId: "text",
    sequence: "int",
    ref: "text",
    observation: "json",
    cost: "json"
  }),
  usageTotal: table<UsageTotalRow>()("tr_usage_total", ["sessionId", "turnId"], {
    sessionId: "text",
    turnId: "text",
    inputTokens: "int",
    outputTokens: "int",
    cachedInputTokens: "int",
    rounds: "int"
  }),
  artifact: table<ArtifactRow>()("tr_artifact", ["id"], {
    id: "text",
    sessionId: "text",
    sha256: "text",
    bytes: "int",
    mime: "text",
    retained: "bool"
  }),
  instance: table<InstanceRow>()("tr_instance", ["id"], {
    id: "text",
    host: "text",
    pid: "int",
    started: "text",
    heartbeatAt: "int"
  }),
  process: table<ProcessRow>()("tr_process", ["id"], {
    id: "text",
    instanceId: "text",
    pid: "int",
    started: "text",
    pgid: "int",
    role: "text",
    command: "text",
    sessionId: "text"
  }),
  tombstone: table<TombstoneRow>()("tr_tombstone", ["sessionId"], {
    sessionId: "text",
    deletedAt: "int",
    purged: "bool"
  })
}

type Definitions = typeof definitions

/** The name of a table in code. */
export type TableName = keyof Definitions

/** The row of a table. */
export type RowOf<Name extends TableName> = Definitions[Name]["row"]

/** The key of a table, as the named columns. */
export type KeyOf<Name extends TableName> = Pick<RowOf<Name>, Definitions[Name]["key"][number] & keyof RowOf<Name>>

/** Every table by its name in code. Events and artifact chunks have forms of their own. */
export const tables = Object.fromEntries(
  Object.entries(definitions).map(([name, { sql, key, kinds }]) => {
    const columns = Object.entries(kinds).map(([column, kind]) => ({ name: column, sql: snake(column), kind }))
    return [name, { name, sql, key, columns, position: new Map(columns.map((column, i) => [column.name, i])) }]
  })
) as unknown as { readonly [Name in TableName]: Table }

/** All names of tables. */
export const tableNames = Object.keys(tables) as ReadonlyArray<TableName>

const escaped = "json\u001f"

/** Text for a plain column: itself when it is well-formed and has no U+0000, else a form that is (STO-012). */
export const plainText = (value: string): string =>
  value.isWellFormed() && !value.includes("\0") && !value.startsWith(escaped) ? value : escaped + JSON.stringify(value)

/** The text that {@link plainText} was given. */
export const fromPlainText = (value: string): string =>
  value.startsWith(escaped) ? (JSON.parse(value.slice(escaped.length)) as string) : value

/** The value of one column. `undefined` is kept as null. */
export const encodeColumn = (kind: Kind, value: unknown): ColumnValue => {
  if (value === null || value === undefined) return null
  switch (kind) {
    case "json":
      return JSON.stringify(value)
    case "bool":
      return value === true ? 1 : 0
    case "int":
      return value as number
    default:
      return plainText(value as string)
  }
}

/** A row as column values, in the order of the table's columns. */
export const encodeRow = (target: Table, row: object): Array<ColumnValue> =>
  target.columns.map((column) => encodeColumn(column.kind, (row as Record<string, unknown>)[column.name]))

/** Columns that a row type leaves out instead of holding null. */
const absentWhenNull: ReadonlySet<string> = new Set(["ownerKey", "error", "upstreamSessionId"])

const decodeColumn = (column: Column, value: ColumnValue): unknown => {
  if (value === null) return null
  switch (column.kind) {
    case "json":
      if (typeof value !== "string") throw new TypeError("not JSON text")
      return JSON.parse(value)
    case "bool":
      if (value !== 0 && value !== 1) throw new TypeError("not a boolean")
      return value === 1
    case "int":
      if (typeof value !== "number" || !Number.isSafeInteger(value)) throw new TypeError("not an integer")
      return value
    default: {
      if (typeof value !== "string") throw new TypeError("not text")
      if (column.kind !== "text" && !column.kind.includes(value)) throw new TypeError("not a known value")
      return fromPlainText(value)
    }
  }
}

/** The key of a row for a message: its key columns, joined. */
const keyText = (target: Table, values: ReadonlyArray<ColumnValue>): string =>
  target.key.map((name) => String(values[target.position.get(name) ?? 0])).join("/")

/**
 * The row of column values.
 *
 * @throws RuntimeStoreCorruptRow naming table and key (STO-047)
 */
export const decodeRow = <Name extends TableName>(name: Name, values: ReadonlyArray<ColumnValue>): RowOf<Name> => {
  const target: Table = tables[name]
  const row: Record<string, unknown> = {}
  for (let i = 0; i < target.columns.length; i++) {
    const column = target.columns[i] as Column
    const value = values[i] ?? null
    if (value === null && absentWhenNull.has(column.name)) continue
    try {
      row[column.name] = decodeColumn(column, value)
    } catch {
      throw new RuntimeStoreCorruptRow({ table: target.sql, key: keyText(target, values) })
    }
  }
  return row as unknown as RowOf<Name>
}

const emptyOfColumn: Record<string, unknown> = { config: { harness: { id: "", access: "native" } }, tags: [] }

/** A session row for a listing: what does not decode is empty and named by `corrupt` (RT-053). */
export const decodeListedSession = (
  values: ReadonlyArray<ColumnValue>
): StoredSession & { readonly corrupt?: string } => {
  const target = tables.session
  const row: Record<string, unknown> = {}
  for (let i = 0; i < target.columns.length; i++) {
    const column = target.columns[i] as Column
    try {
      row[column.name] = decodeColumn(column, values[i] ?? null)
    } catch {
      row[column.name] = emptyOfColumn[column.name] ?? (column.kind === "int" ? 0 : null)
      row["corrupt"] = column.sql
    }
  }
  return row as unknown as StoredSession
}
