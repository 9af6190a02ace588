/** The client's cases over the real host, scripted: as a child process and in this process (D-27). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { HostConfig } from "@tackroom/protocol/run"
import { connectHost, launchHost, makeInProcessTransport } from "@tackroom/sdk/client"
import { type ClientEnvironment, clientCases } from "../../../sdk/test/client/clientSuite.ts"
import { embedHost } from "../../src/EmbedHost.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })
const plan = (step: number) => call("plan.update", { items: [{ content: `step ${step}`, status: "in_progress" }] })

/** One scenario per agent: a model that does what the suite's agent of that name does. */
const scenarios = {
  talker: { default: [], exhausted: "echo" },
  many: { default: [...Array.from({ length: 60 }, (_, step) => [plan(step)]), [{ text: "done" }]] },
  asker: { default: [[call("shell.run", { command: "true" })], [{ text: "done" }]] },
  questioner: { default: [[call("user.ask", { question: "which?" })], [{ text: "done" }]] },
  sleeper: { default: [[{ delay_ms: 60_000 }, { text: "done" }]] }
} as const

const agent = (id: string, more: object) => ({
  id,
  instructions: "Play the scenario.",
  model: { connection: id, model: "script" },
  ...more
})

const configuration = (directory: string): HostConfig => {
  const scenarioOf = (id: string) => join(directory, `${id}.json`)
  for (const [id, scenario] of Object.entries(scenarios)) {
    writeFileSync(scenarioOf(id), JSON.stringify({ scenario: 1, name: id, ...scenario }))
  }
  return {
    stateDir: join(directory, "state"),
    sandbox: "none",
    providers: Object.keys(scenarios).map((name) => ({ name, api: "script" as const, scenario: scenarioOf(name) })),
    agents: [
      agent("talker", { planning: true }),
      agent("many", { planning: true }),
      agent("asker", { tools: ["shell.run"] }),
      agent("questioner", { planning: true }),
      agent("sleeper", { planning: true })
    ]
  }
}

const within = async (
  run: (environment: ClientEnvironment) => Promise<void>,
  connect: (config: HostConfig) => ClientEnvironment["connect"]
): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-real-"))
  const workspace = join(directory, "work")
  mkdirSync(workspace)
  try {
    await run({ workspace, connect: connect(configuration(directory)) })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

describe("the client over the real host, on stdio", () => {
  for (const one of clientCases) {
    it(one.name, () =>
      within(
        one.run,
        (config) => (options) => launchHost({ ...options, command: process.execPath, args: [program], config })
      )
    )
  }
})

describe("the client when the real host is killed", () => {
  it("follows a run over the restart and gives each event once [RT-351] [RT-353] [RUN-573]", () =>
    within(
      async ({ connect, workspace }) => {
        const statuses: Array<string> = []
        const host = await connect({ onStatus: (status) => statuses.push(status) })
        const session = await host.session({ agent: "many", workspace })
        const run = session.run("go")
        const cursors: Array<number> = []
        for await (const item of run) {
          cursors.push(item.cursor)
          if (cursors.length === 40 || cursors.length === 120) process.kill(host.pid!, "SIGKILL")
        }
        assert.deepStrictEqual(
          cursors,
          cursors.map((_, index) => (cursors[0] ?? 0) + index)
        )
        assert.strictEqual((await run.result).status, "completed")
        // The second host may have told the whole run before it was killed; then nobody needs a third.
        assert.include(
          ["starting ready restarting ready", "starting ready restarting ready restarting ready"],
          statuses.slice(0, 6).join(" ")
        )
        await host.close()
      },
      (config) => (options) => launchHost({ ...options, command: process.execPath, args: [program], config })
    ))
})

describe("the client over the real host, embedded", () => {
  for (const one of clientCases) {
    it(one.name, () =>
      within(
        one.run,
        (config) => (options) =>
          connectHost(async () => {
            const runner = { command: process.execPath, args: [program, "tool-runner"] }
            return makeInProcessTransport(
              await embedHost(config, { version: "0.0.0", environment: process.env, runner })
            )
          }, options)
      )
    )
  }
})
