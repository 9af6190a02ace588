import { describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createMemoryRuntimeStore, type MemoryRuntimeStore } from "../../src/store/memory/index.ts"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import { createSqliteRuntimeStore } from "../../src/store/sqlite/index.ts"
import { storeContract, type StoreEnvironment } from "../../src/testing/storeContract.ts"
import { notesForMemory, notesForSqlite } from "../../src/testing/storeContractKit.ts"

const closing = <Store extends RuntimeStore>(make: () => Store): Effect.Effect<Store, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.sync(make), (store) => store.close)

const memory: StoreEnvironment = {
  make: closing(() => createMemoryRuntimeStore({ extensions: [notesForMemory] })),
  reopen: (store) =>
    Effect.andThen(
      store.close,
      closing(() =>
        createMemoryRuntimeStore({
          extensions: [notesForMemory],
          snapshot: structuredClone((store as MemoryRuntimeStore).snapshot())
        })
      )
    )
}

const roots = new WeakMap<RuntimeStore, string>()
const sqliteAt = (root: string) =>
  closing(() => {
    const store = createSqliteRuntimeStore({ root, extensions: [notesForSqlite] })
    roots.set(store, root)
    return store
  })

const sqlite: StoreEnvironment = {
  make: Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "tackroom-store-"))),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    ),
    sqliteAt
  ),
  reopen: (store) => Effect.andThen(store.close, sqliteAt(roots.get(store) ?? ""))
}

for (const [name, environment] of [
  ["memory", memory],
  ["sqlite", sqlite]
] as const) {
  describe(`store contract, ${name}`, () => {
    for (const { run, title } of storeContract(environment)) it.live(title, () => run, 60_000)
  })
}
