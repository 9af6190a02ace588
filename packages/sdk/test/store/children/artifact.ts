/** Puts the chunks of an artifact and never its row; prints its id, then waits to be killed. Arguments: root, session id. */
import { Effect } from "effect"
import { createSqliteRuntimeStore } from "../../../src/store/sqlite/index.ts"

const [root = "", sessionId = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const store = createSqliteRuntimeStore({ root })
  const row = yield* store.putArtifact(sessionId, "text/plain", new Uint8Array(3 << 20))
  process.stdout.write(`${row.id}\n`)
})

await Effect.runPromise(program)
process.stdin.resume()
