/**
 * The check of ACP agents on our own face: both programs as they are built, or from source where nothing is built. Every
 * should counts, and only what the native agent does not offer may be left undeclared.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./architecture/Sources.ts"
import { hostProgram } from "./support/RawHost.ts"

const built = join(root, "packages/runner/dist/bin/tackroom-conformance.cjs")
const conformance = existsSync(built) ? built : join(root, "packages/runner/src/conformance/cli.ts")

/** A configuration file; the kit fills in its model and the folder of each case. */
const template = {
  state_dir: "{folder}/state",
  sandbox: "none",
  providers: [{ name: "kit", api: "chat-completions", base_url: "{model}" }],
  agents: [
    {
      id: "assistant",
      instructions: "Do as you are told.",
      tools: ["files.list", "files.read", "files.write"],
      model: { connection: "kit", model: "kit" },
      approvals: { mode: "always" }
    }
  ]
}

const tools = [
  ["--tool", "files__list={}"],
  ["--failing", 'files__read={"path":"nothing.txt"}'],
  ["--confirm", 'files__write={"path":"a.txt","content":"a"}']
].flat()

/** The native agent has one model and no modes to choose from. */
const notOffered = ["ACK-190", "ACK-191", "ACK-192", "ACK-200", "ACK-201", "ACK-202"]

interface Report {
  readonly results: ReadonlyArray<{ readonly id: string; readonly verdict: string; readonly reason?: string }>
}

const check = (folder: string): Promise<Report> =>
  new Promise((resolve, reject) => {
    const json = join(folder, "report.json")
    const kit = ["acp", "--profile", "tackroom", "--patience", "4", "--jobs", "6", "--json", json]
    const command = [process.execPath, hostProgram, "acp", "--config", "{template}"]
    const args = [conformance, ...kit, "--template", join(folder, "config.json"), ...tools, "--", ...command]
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] })
    let error = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      error += text
    })
    child.once("error", reject)
    child.once("close", (code) => {
      if (code === 0 || code === 1 || code === 2) resolve(JSON.parse(readFileSync(json, "utf8")) as Report)
      else reject(new Error(`the check ended with ${code}: ${error}`))
    })
  })

describe("tackroom acp", () => {
  it("keeps every promise of the ACP check", { timeout: 300_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tackroom-check-"))
    try {
      writeFileSync(join(folder, "config.json"), JSON.stringify(template))
      const { results } = await check(folder)
      assert.deepStrictEqual(
        results
          .filter(({ verdict }) => verdict !== "pass")
          .map(({ id, reason, verdict }) => `${id} ${verdict}: ${reason}`),
        notOffered.map((id) => `${id} skip: not_declared`)
      )
      assert.isAbove(results.length, 80)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
