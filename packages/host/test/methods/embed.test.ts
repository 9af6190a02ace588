/** The host as a part of another program (run-protocol 28). */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { HostConfig } from "@tackroom/protocol/run"
import { version } from "../../src/command/Version.ts"
import { embedHost, EmbeddedFailure } from "../../src/EmbedHost.ts"
import { agent, at, call } from "../runs/Kit.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))

const withFolder = async (use: (place: { config: HostConfig; workspace: string }) => Promise<void>) => {
  const root = mkdtempSync(join(tmpdir(), "tackroom-embed-"))
  const workspace = join(root, "work")
  const scenario = join(root, "s.json")
  mkdirSync(workspace)
  writeFileSync(
    scenario,
    JSON.stringify({
      scenario: 1,
      name: "s",
      default: [[call("ask_user", { question: "Which?" })], [{ text: "Done." }]]
    })
  )
  const config: HostConfig = {
    stateDir: join(root, "state"),
    providers: [{ name: "script", api: "script", scenario }],
    agents: [agent()]
  }
  try {
    await use({ config, workspace })
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
}

const open = (config: HostConfig) =>
  embedHost(config, {
    version: version(),
    environment: process.env,
    runner: { command: process.execPath, args: [program, "tool-runner"] }
  })

const rejected = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error
  )
  assert.instanceOf(error, EmbeddedFailure)
  return error.error
}

describe("embedHost", () => {
  it("has the methods, checks and errors of the pipe, as promises [RUN-590] [RUN-121] [RUN-122]", () =>
    withFolder(async ({ config, workspace }) => {
      const host = await open(config)
      assert.strictEqual((await rejected(host.call("agent/list", {}))).data.kind, "not_initialized")
      const result = await host.call("initialize", {})
      assert.strictEqual(at(result, "protocol_version"), 1)
      assert.strictEqual((await rejected(host.call("initialize", {}))).data.kind, "already_initialized")
      const bad = await rejected(host.call("agent/session", { agent: "helper", workspace: 7 }))
      assert.deepStrictEqual([bad.code, bad.data.kind, at(bad.data, "path")], [-32602, "invalid_params", "workspace"])
      assert.strictEqual((await rejected(host.call("no/such", {}))).code, -32601)
      assert.strictEqual((await rejected(host.call("host/info", []))).data.kind, "invalid_params")
      assert.strictEqual((await rejected(host.call("memory/list", {}))).data.kind, "unsupported")
      await host.call("agent/session", { agent: "helper", workspace })
      await host.close()
    }))

  it("closing leaves turns to recovery, ends nothing of the app and installs no signal handler [RUN-592] [RUN-524]", () =>
    withFolder(async ({ config, workspace }) => {
      const own = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" })
      const signals = ["SIGTERM", "SIGINT", "SIGHUP"].map((name) => process.listenerCount(name))
      const first = await open(config)
      await first.call("initialize", {})
      const session = at(await first.call("agent/session", { agent: "helper", workspace }), "session", "session_id")
      await first.call("run/start", { session_id: session, submission_id: "m-1", text: "Go" })
      const state = await first.call("run/wait", { session_id: session, wait_ms: 5_000, cursors: {} })
      await first.close()
      assert.deepStrictEqual(
        ["SIGTERM", "SIGINT", "SIGHUP"].map((name) => process.listenerCount(name)),
        signals
      )
      assert.isNull(own.exitCode)
      own.kill("SIGKILL")

      const second = await open(config)
      await second.call("initialize", {})
      let pending = await second.call("run/wait", { session_id: session, wait_ms: 5_000 })
      while (at(pending, "status") === "running") pending = await second.call("run/wait", { session_id: session })
      assert.strictEqual(at(pending, "status"), "interrupted")
      assert.isNotEmpty(at(state, "events"))
      await second.call("run/respond", {
        session_id: session,
        interaction_id: at(pending, "interruptions", 0, "id"),
        answer: "red"
      })
      let last = await second.call("run/wait", { session_id: session, wait_ms: 5_000 })
      while (at(last, "status") === "running") last = await second.call("run/wait", { session_id: session })
      assert.deepStrictEqual([at(last, "status"), at(last, "final_output")], ["completed", "Done."])
      await second.close()
    }))

  it("a second host of one directory is refused with what a start-up failure tells [RUN-088]", () =>
    withFolder(async ({ config }) => {
      const host = await open(config)
      const error = await open(config).then(
        () => undefined,
        (error: unknown) => error
      )
      assert.deepStrictEqual([at(error, "kind"), at(error, "reason")], ["startup_failed", "state_dir_locked"])
      await host.close()
    }))
})
