/**
 * Extensions of a SQLite store (13.1): tables of another package in the same database, written in the store's own
 * transactions (D-12, STO-010).
 *
 * @since 0.1.0
 */
import type { Migration } from "./Schema.ts"

/** A value that can be bound to a statement or read from a column. @since 0.1.0 */
export type SqliteValue = string | number | bigint | null | Uint8Array

/**
 * The open transaction, as an op sees it. Statements are prepared once per text: write the text as a constant and bind
 * values. A query must only read.
 *
 * @since 0.1.0
 */
export interface SqliteTables {
  /** Runs a statement and answers how many rows it changed. */
  readonly run: (sql: string, ...parameters: ReadonlyArray<SqliteValue>) => number
  /** The first row, by column name. */
  readonly get: <Row extends object = Record<string, SqliteValue>>(
    sql: string,
    ...parameters: ReadonlyArray<SqliteValue>
  ) => Row | undefined
  /** All rows, by column name. */
  readonly all: <Row extends object = Record<string, SqliteValue>>(
    sql: string,
    ...parameters: ReadonlyArray<SqliteValue>
  ) => ReadonlyArray<Row>
}

/**
 * An extension of the store for SQLite. `migrations` run after the store's own and are recorded as `name/0001_…`. An op
 * gets the open transaction, its arguments and the time, and returns a value; an error with a `_tag` that it throws is its
 * refusal: the whole call is rolled back and fails with `OpFailed`. It may run more than once and must do nothing else.
 *
 * @since 0.1.0
 */
export interface SqliteStoreExtension {
  readonly name: string
  readonly migrations: ReadonlyArray<Migration>
  readonly ops: { readonly [op: string]: (tables: SqliteTables, args: never, now: number) => unknown }
  readonly queries: { readonly [query: string]: (tables: SqliteTables, args: never, now: number) => unknown }
}
