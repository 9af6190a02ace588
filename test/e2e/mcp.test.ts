/** MCP servers of a real host, registered through our own client, which loses its host in the middle of a call. */
import { assert, describe, it } from "@effect/vitest"
import { launchHost } from "@tackroom/sdk/client"
import type { HostConfig } from "@tackroom/protocol/run"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"
import { makeLab } from "./support/Lab.ts"
import { hostProgram } from "./support/RawHost.ts"

const program = fileURLToPath(new URL("../../packages/host/test/mcp/fixtures/server.ts", import.meta.url))
const value = "canary-value-of-a-server"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

describe("a host with an MCP server, killed in a call of its tool", () => {
  it(
    "ends the call once, unknown; its client registers the server again, and nothing of the first one lives [AGT-033, RUN-090, RUN-255, RUN-258, RUN-573]",
    { timeout: 60_000 },
    async () => {
      const lab = makeLab({
        scenarios: {
          assistant: {
            default: [
              [call("manners.hang", {})],
              [{ text: "Unknown, then." }],
              [call("manners.echo", { text: "hi" })],
              [{ text: "Done." }]
            ]
          }
        }
      })
      const notes = join(lab.root, "notes")
      const config: HostConfig = { stateDir: lab.stateDir, sandbox: "none" }
      const host = await launchHost({ command: process.execPath, args: [hostProgram], config, cwd: lab.root })
      onTestFinished(() => host.close())
      await host.provider({ name: "script", api: "script", scenario: join(lab.root, "assistant.json") })
      const server = await host.mcp({
        name: "manners",
        transport: {
          type: "stdio",
          command: process.execPath,
          args: [program, JSON.stringify({ grandchild: join(lab.root, "pids"), notes })],
          env: { TOKEN: value }
        },
        tools: { include: ["hang", "echo"] }
      })
      assert.deepStrictEqual(
        server.tools.map(({ alias }) => alias),
        ["manners__echo", "manners__hang"]
      )
      const agent = await host.agent({
        id: "assistant-1",
        instructions: "Play.",
        tools: ["manners.hang", "manners.echo"],
        approvals: { mode: "never" },
        model: { connection: "script", model: "script" }
      })
      const session = await agent.session({ workspace: lab.workspace })
      const ends: Array<string> = []
      let wasKilled = false
      for (const text of ["Go on", "Again"]) {
        const run = session.run(text)
        for await (const { event } of run) {
          const payload = event?.payload
          if (payload?.type === "tool-status" && payload.status === "running" && !wasKilled && host.pid !== undefined) {
            wasKilled = true
            process.kill(host.pid, "SIGKILL")
          }
          if (payload?.type === "tool-output" || payload?.type === "tool-error") ends.push(payload.type)
          if (payload?.type === "tool-status" && payload.status === "uncertain") ends.push(payload.status)
        }
        assert.strictEqual((await run.result).status, "completed")
      }
      assert.deepStrictEqual(ends, ["uncertain", "tool-output"])
      assert.isAtMost(readFileSync(notes, "utf8").match(/call hang/g)?.length ?? 0, 1)
      await host.close()
      assert.deepStrictEqual(await lab.emptied(20_000), [])
      for (const file of ["sdk-agents.sqlite", "agent-runtime.db"]) {
        assert.notInclude(readFileSync(join(lab.stateDir, file), "latin1"), value)
      }
    }
  )
})
