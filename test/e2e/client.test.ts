/** Our own client over the real host: it loses its host again and again, and its application does not notice. */
import { assert, describe, it } from "@effect/vitest"
import { launchHost, type Host } from "@tackroom/sdk/client"
import type { HostConfig } from "@tackroom/protocol/run"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { makeLab, type Lab } from "./support/Lab.ts"
import { effectsOf } from "./support/Proof.ts"
import { random, seedOf } from "./support/Random.ts"
import { hostProgram } from "./support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const launch = async (lab: Lab, options: Partial<Parameters<typeof launchHost>[0]> = {}): Promise<Host> => {
  const config: HostConfig = { stateDir: lab.stateDir, sandbox: "none" }
  const host = await launchHost({ command: process.execPath, args: [hostProgram], config, cwd: lab.root, ...options })
  onTestFinished(() => host.close())
  return host
}

/** What the runtime writes by itself while a turn waits. */
const notOfTheAgent: ReadonlySet<string> = new Set([
  "session-status",
  "permission-request",
  "permission-resolved",
  "question",
  "question-answered"
])

describe("a client whose host is killed again and again", () => {
  const seed = seedOf("client kills")
  it(
    `shows each event once, asks each question once, and runs no tool twice, seed ${seed} [RT-351, RT-353, RUN-571, RUN-572, RUN-573]`,
    { timeout: 120_000 },
    async () => {
      const lab = makeLab({
        scenarios: {
          assistant: {
            default: [
              [{ text: "First." }, call("files.read", { path: "notes.txt" })],
              [
                call("files.write", { path: "list.md", content: "- tent" }),
                call("shell.run", { command: "echo ran >> lines" })
              ],
              [call("ask_user", { question: "Which year?" })],
              [{ text: "Done." }]
            ]
          }
        }
      })
      writeFileSync(join(lab.workspace, "notes.txt"), "tent\n")
      const next = random(seed)
      const asked: Array<string> = []
      const host = await launch(lab, {
        onApproval: (approval) => {
          asked.push(approval.id)
          return "once"
        },
        onQuestion: (question) => {
          asked.push(question.id)
          return "2025"
        }
      })
      await host.provider({ name: "script", api: "script", scenario: join(lab.root, "assistant.json") })
      const agent = await host.agent({
        id: "assistant-1",
        instructions: "Play.",
        tools: ["files.read", "files.write", "shell.run"],
        model: { connection: "script", model: "script" }
      })
      const session = await agent.session({ workspace: lab.workspace })
      const run = session.run("Write a packing list")
      const cursors: Array<number> = []
      // Restarts are five in a minute at most (RT-351); the rest of the run is then left in peace.
      let kills = 0
      // A turn that is taken up three times without getting on is given up (RUN-523). So the next host is let live until
      // it has said that it took the turn up, and something of the turn after that; what was written before is told first.
      // What is asked of a person, and the answer, does not count there.
      let isTakenUp = true
      for await (const item of run) {
        cursors.push(item.cursor)
        const payload = item.event?.payload
        if (payload === undefined || notOfTheAgent.has(payload.type)) continue
        if (payload.type === "harness-notice") {
          isTakenUp ||= payload.code === "turn_resumed"
          continue
        }
        if (isTakenUp && kills < 4 && host.pid !== undefined && next() < 0.2) {
          kills += 1
          isTakenUp = false
          process.kill(host.pid, "SIGKILL")
        }
      }
      const result = await run.result
      assert.deepStrictEqual([result.status, result.finalOutput], ["completed", "Done."])
      assert.deepStrictEqual(
        cursors,
        cursors.map((_, index) => (cursors[0] ?? 0) + index)
      )
      assert.isAtMost(effectsOf(lab.workspace).lines, 1)
      assert.isAtLeast(new Set(asked).size, 1)
      await host.close()
    }
  )
})

describe("a secret of an application", () => {
  it("reaches no tool, no event, no file of the host and no log [RUN-083, RUN-084, RUN-085, RUN-174, RUN-225]", async () => {
    const canary = "sk-canary-0123456789abcdef"
    const ambient = "ambient-canary-fedcba9876543210"
    const lab = makeLab({
      scenarios: {
        assistant: {
          default: [
            [call("shell.run", { command: "env; tr '\\0' '\\n' < /proc/$PPID/environ" })],
            // Printed in two pieces, as a model that streams would say it.
            [call("shell.run", { command: "head -c 12 key; sleep 0.2; tail -c +13 key" })],
            [{ text: "Done." }]
          ]
        }
      }
    })
    writeFileSync(join(lab.workspace, "key"), canary)
    const host = await launch(lab, { env: { AMBIENT_SECRET: ambient } })
    await host.provider({ name: "script", api: "script", scenario: join(lab.root, "assistant.json") })
    await host.provider({ name: "live", api: "responses", key: () => canary })
    const agent = await host.agent({
      id: "a1",
      instructions: "Play.",
      tools: ["shell.run"],
      approvals: { mode: "never" },
      model: { connection: "script", model: "script" }
    })
    const session = await agent.session({ workspace: lab.workspace })
    const run = session.run("Go")
    const items: Array<unknown> = []
    for await (const item of run) items.push(item)
    assert.strictEqual((await run.result).status, "completed")
    const shown = JSON.stringify(items)
    assert.include(shown, "PATH=")
    assert.include(shown, "[redacted:live]")
    await host.close()
    const files = readdirSync(lab.stateDir, { recursive: true, withFileTypes: true })
    const kept = files
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    for (const secret of [canary, ambient]) {
      assert.notInclude(shown, secret)
      assert.deepStrictEqual(kept.filter((text) => text.includes(secret)).length, 0)
    }
  })
})
