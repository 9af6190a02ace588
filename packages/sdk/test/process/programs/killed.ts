/**
 * Starts a few children one after the other and waits until somebody kills this program. Their records go to the folder
 * of the first argument, a file named by its pid each; the rest is the command of the children.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { makeProcessOwner } from "../../../src/process/index.ts"

const [folder = "", command = "", ...args] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const owner = makeProcessOwner({
    instanceId: "killed",
    environment: process.env,
    records: {
      add: (record) => Effect.sync(() => writeFileSync(join(folder, String(record.pid)), "")),
      remove: () => Effect.void
    }
  })
  process.stdout.write("ready\n")
  for (let started = 0; started < 5; started += 1) yield* owner.spawn({ role: "mcp", command, args })
  return yield* Effect.never
})

Effect.runFork(Effect.scoped(program))
