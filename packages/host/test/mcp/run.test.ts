/** `tackroom run` with servers of its configuration: the program itself, from its start to its end. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { isGroupAlive } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { tackroom, temporary } from "../command/Program.ts"
import { call, say } from "../runs/Kit.ts"
import { server } from "./Kit.ts"

describe("tackroom run", () => {
  it.live(
    "has the tools of servers of the configuration, warns of one that does not come up, and leaves none [RUN-090]",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        const scenario = join(directory, "scenario.json")
        const steps = [[call("manners.sum", { a: 2, b: 40 })], [say("Done.")]]
        writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "sums", default: steps }))
        const pids = join(directory, "pids")
        const { args, command } = server({ grandchild: pids }) as Extract<
          ReturnType<typeof server>,
          { readonly transport: "stdio" }
        >
        const config = {
          providers: [{ name: "script", api: "script", scenario }],
          servers: [
            { name: "manners", transport: { type: "stdio", command, args } },
            { name: "none", transport: { type: "stdio", command: "/nowhere/at/all" } }
          ],
          agents: [
            { id: "sums", instructions: "", tools: ["manners.sum"], model: { connection: "script", model: "m" } }
          ]
        }
        writeFileSync(join(directory, "config.json"), JSON.stringify(config))
        const ended = yield* tackroom(
          ["run", "--json", "--approve", "all", "--config", "config.json", "--agent", "sums", "Add"],
          { cwd: directory, env: { TACKROOM_HOME: join(directory, "home") } }
        )
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.include(ended.stdout, "mcp server none is not available: cannot start /nowhere/at/all: no such program")
        assert.match(ended.stdout, /sum\W+42/)
        const [group = 0] = readFileSync(pids, "utf8").split(" ").map(Number)
        assert.isFalse(isGroupAlive(group))
      })
  )
})
