/**
 * The SQL of the tables in `Tables.ts`, made once per table, and a cache of what was prepared.
 */
import type { ListSessions } from "../RuntimeStore.ts"
import type { Scan } from "../StoreTx.ts"
import { encodeColumn, plainText, tables, type ColumnValue, type Table, type TableName } from "../Tables.ts"
import type { Statement } from "better-sqlite3"
import type { Connection } from "./Database.ts"

/** The statements of one table. */
export interface TableText {
  readonly get: string
  readonly put: string
  readonly insert: string
  readonly remove: string
  readonly select: string
  readonly whereKey: string
}

/** `count` places for values. */
export const marks = (count: number): string => Array.from({ length: count }, () => "?").join(", ")

const textOf = (target: Table): TableText => {
  const columns = target.columns.map((column) => column.sql)
  const keys = target.key.map((name) => target.columns[target.position.get(name) ?? 0]?.sql ?? name)
  const all = target.name === "session" || target.name === "tombstone" ? [...columns, "changed"] : columns
  const insert = `INSERT INTO ${target.sql} (${all.join(", ")}) VALUES (${marks(all.length)})`
  const updates = all.filter((column) => !keys.includes(column)).map((column) => `${column} = excluded.${column}`)
  const whereKey = keys.map((column) => `${column} = ?`).join(" AND ")
  const select = `SELECT ${columns.join(", ")} FROM ${target.sql}`
  return {
    get: `${select} WHERE ${whereKey}`,
    put: `${insert} ON CONFLICT (${keys.join(", ")}) DO UPDATE SET ${updates.join(", ")}`,
    insert: `${insert} ON CONFLICT DO NOTHING`,
    remove: `DELETE FROM ${target.sql} WHERE ${whereKey}`,
    select,
    whereKey
  }
}

/** The statements of every table. */
export const texts = Object.fromEntries(
  Object.entries(tables).map(([name, target]) => [name, textOf(target)])
) as unknown as { readonly [Name in TableName]: TableText }

/** A column by its name in code. */
export const columnOf = (target: Table, name: string) => {
  const column = target.columns[target.position.get(name) ?? -1]
  if (column === undefined) throw new TypeError(`${target.sql} has no column ${name}`)
  return column
}

/** The values of a key, in the order of the key columns. */
export const keyValues = (target: Table, key: object): Array<ColumnValue> =>
  target.key.map((name) => encodeColumn(columnOf(target, name).kind, (key as Record<string, unknown>)[name]))

/** The statement of a scan. */
export const scanText = <Row>(target: Table, scan: Scan<Row>) => {
  const conditions: Array<string> = []
  const parameters: Array<ColumnValue> = []
  for (const [name, value] of Object.entries(scan.where ?? {})) {
    if (value === undefined) continue
    const column = columnOf(target, name)
    if (value === null) conditions.push(`${column.sql} IS NULL`)
    else if (typeof column.kind === "object" && column.kind.includes(value as string)) {
      // One of a column's own words stands in the text, where a partial index can be found by it.
      conditions.push(`${column.sql} = '${String(value)}'`)
    } else {
      conditions.push(`${column.sql} = ?`)
      parameters.push(encodeColumn(column.kind, value))
    }
  }
  for (const [bound, sign] of [
    [scan.gt, ">"],
    [scan.lt, "<"]
  ] as const) {
    if (bound === undefined) continue
    conditions.push(`${columnOf(target, bound[0]).sql} ${sign} ?`)
    parameters.push(bound[1])
  }
  const direction = scan.descending === true ? " DESC" : ""
  const order = [...(scan.order === undefined ? [] : [scan.order]), ...target.key]
    .map((name) => columnOf(target, name).sql + direction)
    .join(", ")
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`
  if (scan.limit !== undefined) parameters.push(scan.limit)
  return {
    sql: `${texts[target.name].select}${where} ORDER BY ${order}${scan.limit === undefined ? "" : " LIMIT ?"}`,
    parameters
  }
}

/** The columns of a journal row, in the order of `EventRecord`. */
export const eventColumns = "session_id, seq, at, type, turn_id, after_turn, payload, artifacts"
/** Puts a journal row. */
export const insertEvent = `INSERT INTO tr_event (${eventColumns}) VALUES (${marks(8)})`

/** Moves a session on without reading the rest of its row. */
export const moveHead = "UPDATE tr_session SET head = ?, last_at = ?, changed = ? WHERE id = ?"

/** The statement of a listing: newest first, ties by id, after a position. */
export const listText = (input: ListSessions): { readonly sql: string; readonly parameters: Array<ColumnValue> } => {
  const conditions: Array<string> = []
  const parameters: Array<ColumnValue> = []
  const equal = (column: string, value: string | null | undefined) => {
    if (value === undefined) return
    conditions.push(value === null ? `${column} IS NULL` : `${column} = ?`)
    if (value !== null) parameters.push(plainText(value))
  }
  equal("workspace_id", input.workspaceId)
  equal("directory", input.directory)
  equal("parent_id", input.parentSessionId)
  equal("owner", input.owner)
  equal("status", input.status)
  if (input.archived !== undefined) conditions.push(`archived_at IS ${input.archived ? "NOT NULL" : "NULL"}`)
  if (input.after !== undefined) {
    conditions.push("(updated_at < ? OR (updated_at = ? AND id > ?))")
    parameters.push(input.after.updatedAt, input.after.updatedAt, plainText(input.after.id))
  }
  parameters.push(input.limit)
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`
  return { sql: `${texts.session.select}${where} ORDER BY updated_at DESC, id LIMIT ?`, parameters }
}

/** Statements by their text, prepared once. */
export const statementCache = (db: Connection): ((sql: string) => Statement) => {
  const cache = new Map<string, Statement>()
  return (sql: string) => {
    const known = cache.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql)
    if (statement.reader) statement.raw(true)
    cache.set(sql, statement)
    return statement
  }
}
