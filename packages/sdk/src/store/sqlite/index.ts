/**
 * The SQLite store (`@tackroom/sdk/stores/sqlite`). Needs the peer package `better-sqlite3`, which is loaded when a store
 * opens.
 *
 * @since 0.1.0
 */
export type { SqliteStoreExtension, SqliteTables, SqliteValue } from "./Extension.ts"
export type { Migration } from "./Schema.ts"
export { createSqliteRuntimeStore, layer, type SqliteStoreOptions } from "./SqliteStore.ts"
