/** The driver of run-protocol hosts over the real program: the driver contract, and what a host alone can show. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { HostConfig, wireCodec } from "@tackroom/protocol/run"
import { launchHost, type Host } from "@tackroom/sdk/client"
import { host } from "@tackroom/sdk/harnesses/host"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { harnessContract, type HarnessPeer } from "@tackroom/sdk/testing"
import { Result } from "effect"
import { afterAll, beforeAll } from "vitest"
import { makeUnownedLab, type Lab } from "../support/Lab.ts"
import { hostProgram } from "../support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

/** Sessions of one agent each: what their model says. The last entry is said again when the list is over. */
export const scenarios = {
  hello: { default: [[{ text: "Hello." }]], exhausted: "echo" },
  tool: { default: [[{ text: "Looking." }, call("files.list", {})], [{ text: "Nothing there." }]], exhausted: "echo" },
  permission: { default: [[call("files.write", { path: "a.txt", content: "a" })], [{ text: "Done." }]] },
  parallel: {
    default: [
      [call("files.write", { path: "a.txt", content: "a" }), call("files.write", { path: "b.txt", content: "b" })],
      [{ text: "Both." }]
    ]
  },
  question: {
    default: [[call("ask_user", { question: "Which colour?", options: ["Green", "Red"] })], [{ text: "Fine." }]]
  },
  long: { default: [[{ text: "Thinking." }, { delay_ms: 60_000 }, { text: "Done." }]] },
  failure: { default: [[{ fail: "auth" }]] }
}

const agents = Object.keys(scenarios).map((id) => ({
  id,
  tools: ["files.list", "files.write"],
  approvals: { mode: id === "tool" ? "never" : "always" }
}))

/** The lab's configuration as a program of TypeScript writes it. */
const configOf = (lab: Lab): HostConfig => {
  const decoded = wireCodec(HostConfig).decode(lab.config)
  return Result.isSuccess(decoded) ? decoded.success : assert.fail("the lab's configuration is none")
}

const scene = (agent: keyof typeof scenarios) => ({ prompt: `play ${agent}`, session: { agent } })

const peer: HarnessPeer = {
  hello: scene("hello"),
  tool: scene("tool"),
  permission: scene("permission"),
  parallel: scene("parallel"),
  question: scene("question"),
  long: scene("long"),
  failure: scene("failure")
}

const undeclared = ["a message steered", "HRN-018"]

describe("the driver contract over a host that the application talks to", () => {
  let lab: Lab
  let connection: Host
  let count = 0
  beforeAll(async () => {
    lab = makeUnownedLab({ scenarios, agents })
    connection = await launchHost({
      command: process.execPath,
      args: [hostProgram],
      config: configOf(lab),
      cwd: lab.root
    })
  })
  afterAll(async () => {
    await connection.close()
    await lab.remove()
  })

  const titles = harnessContract(host({ command: "none", config: { stateDir: "/none" }, agent: "hello" }), {
    peer,
    directory: "/none",
    makeStore: () => assert.fail("only the titles are read")
  })
  for (const [index, { title }] of titles.entries()) {
    it(title, async () => {
      const [...cases] = harnessContract(host({ connection, agent: "hello" }), {
        peer,
        directory: lab.workspace,
        makeStore: () => createSqliteRuntimeStore({ root: join(lab.root, `store-${count++}`) })
      })
      const result = await cases[index]?.run()
      // Neither is in the run protocol: messages into a running turn, and a choice of models.
      const skipped = undeclared.find((name) => title.includes(`[${name}]`) || title.startsWith(name))
      assert.strictEqual(result?.verdict, skipped === undefined ? "pass" : "skip")
    })
  }
})
