/**
 * The memory store (`@tackroom/sdk/stores/memory`).
 *
 * @since 0.1.0
 */
export {
  createMemoryRuntimeStore,
  layer,
  type MemoryRuntimeStore,
  type MemoryStoreExtension,
  type MemoryStoreOptions,
  type MemoryTablesOf
} from "./MemoryStore.ts"
export type { MemorySnapshot, MemoryTable } from "./MemoryTables.ts"
