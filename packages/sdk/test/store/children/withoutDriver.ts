/** Opens a store where the driver package cannot be found; prints the failure as JSON. Argument: root. */
import { Effect } from "effect"
import { registerHooks } from "node:module"

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier !== "better-sqlite3") return next(specifier, context)
    throw Object.assign(new Error(`Cannot find package '${specifier}'`), { code: "ERR_MODULE_NOT_FOUND" })
  }
})

const { createSqliteRuntimeStore } = await import("../../../src/store/sqlite/index.ts")
const store = createSqliteRuntimeStore({ root: process.argv[2] ?? "" })
const failures = await Effect.runPromise(Effect.all([Effect.flip(store.open), Effect.flip(store.head("ses_a"))]))
process.stdout.write(`${JSON.stringify(failures.map(({ _tag, message }) => ({ _tag, message })))}\n`)
