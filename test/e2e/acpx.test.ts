/** `tackroom acp` under a client that was written without us, `acpx`, which brings another version of the protocol's SDK. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { makeLab, type Lab } from "./support/Lab.ts"
import { hostProgram, type Loose } from "./support/RawHost.ts"

const acpx = join(dirname(fileURLToPath(import.meta.resolve("acpx/package.json"))), "dist/cli.js")

/** What the client ends with when it refused something. */
const denied = 5

/** Runs the client to its end; what it prints is the frames of both sides, or an object of its own. */
const client = async (lab: Lab, args: ReadonlyArray<string>, code = 0): Promise<ReadonlyArray<Loose>> => {
  const agent = [process.execPath, hostProgram, "acp", "--state-dir", lab.stateDir, "--model", "script/demo"]
  const shared = ["--cwd", lab.workspace, "--format", "json", "--json-strict", "--ttl", "1", "--agent", agent.join(" ")]
  const child = spawn(process.execPath, [acpx, ...shared, ...args], {
    cwd: lab.root,
    env: { PATH: process.env["PATH"], HOME: lab.root, TMPDIR: join(lab.root, "tmp") },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  await once(child, "close")
  assert.deepStrictEqual([child.exitCode, stderr], [code, ""], stdout.slice(-2_000))
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Loose)
}

const methods = (frames: ReadonlyArray<Loose>): ReadonlyArray<string> =>
  frames.flatMap(({ method }) => (method === undefined || method === "session/update" ? [] : [method]))

const texts = (frames: ReadonlyArray<Loose>): string =>
  frames
    .filter(({ params }) => params?.update?.sessionUpdate === "agent_message_chunk")
    .map(({ params }) => params.update.content.text)
    .join("")

describe("tackroom acp under acpx", () => {
  it("works through its files and terminals, asks, and is gone on with by the next process [ACP-211, ACP-213]", async () => {
    const lab = makeLab()
    const first = await client(lab, ["--approve-all", "exec", "Hello"])
    assert.deepStrictEqual(methods(first), [
      "initialize",
      "session/new",
      "session/prompt",
      "fs/read_text_file",
      "fs/read_text_file",
      "session/request_permission",
      "fs/read_text_file",
      "fs/write_text_file",
      "session/request_permission",
      "terminal/create",
      "terminal/wait_for_exit",
      "terminal/output",
      "terminal/release"
    ])
    assert.isTrue(first.some(({ result }) => result?.stopReason === "end_turn"))
    assert.isTrue(existsSync(join(lab.workspace, "SUMMARY.md")))
    assert.deepStrictEqual(await lab.emptied(20_000), [])

    const listed = await client(lab, ["sessions", "list"])
    const sessionId = listed[0]?.sessions[0].sessionId
    assert.strictEqual(first[3]?.result.sessionId, sessionId)

    await client(lab, ["sessions", "new", "--resume-session", sessionId])
    const second = await client(lab, ["prompt", "Once more"])
    assert.deepStrictEqual(methods(second), ["initialize", "session/resume", "session/prompt"])
    assert.strictEqual(texts(second), "Once more")
    // It leaves a process of its own behind, which ends with the agent after a second.
    assert.deepStrictEqual(await lab.emptied(20_000), [])
  })

  it("writes nothing where every permission is denied", async () => {
    const lab = makeLab()
    const frames = await client(lab, ["--deny-all", "exec", "Hello"], denied)
    assert.strictEqual(frames.at(-1)?.result.stopReason, "end_turn")
    assert.isFalse(existsSync(join(lab.workspace, "SUMMARY.md")))
    assert.deepStrictEqual(await lab.emptied(20_000), [])
  })
})
