/**
 * Appends to a session until it is killed, or `count` times; prints `head N` after each append was acknowledged.
 * Arguments: root, session id, count ("forever" or a number), entries per call.
 */
import { Effect } from "effect"
import { createSqliteRuntimeStore } from "../../../src/store/sqlite/index.ts"

const [root = "", sessionId = "", count = "1", perCall = "1"] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const store = createSqliteRuntimeStore({ root })
  const entries = Array.from({ length: Number(perCall) }, (_, i) => ({
    payload: { type: "todo-update", todos: [{ content: `${process.pid}/${i}`, status: "pending" }] } as const
  }))
  const last = count === "forever" ? Infinity : Number(count)
  for (let i = 0; i < last; i++) {
    const { value } = yield* store.appendUnfenced(sessionId, entries)
    process.stdout.write(`head ${value}\n`)
  }
  yield* store.close
})

await Effect.runPromise(program)
