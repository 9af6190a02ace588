/**
 * A conformance check on one of our own faces: both programs as they are built, or from source where nothing is built. The
 * native agent is told what to do by the kit's model; with the profile `tackroom` every promise counts.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../architecture/Sources.ts"
import { hostProgram } from "./RawHost.ts"

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

/** The calls that both checks need of an agent. */
const tools = [
  ["--tool", "files__list={}"],
  ["--failing", 'files__read={"path":"nothing.txt"}'],
  ["--confirm", 'files__write={"path":"a.txt","content":"a"}']
].flat()

interface Report {
  readonly results: ReadonlyArray<{ readonly id: string; readonly verdict: string; readonly reason?: string }>
}

const reportOf = (folder: string, face: "acp" | "serve", more: ReadonlyArray<string>): Promise<Report> =>
  new Promise((resolve, reject) => {
    const json = join(folder, "report.json")
    const kit = [face, "--profile", "tackroom", "--patience", "4", "--jobs", "6", "--json", json]
    const command = [process.execPath, hostProgram, face, "--config", "{template}"]
    const args = [conformance, ...kit, "--template", join(folder, "config.json"), ...tools, ...more, "--", ...command]
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

/** How many promises were looked at, and which were not kept, with why. */
export const checkFace = async (
  face: "acp" | "serve",
  more: ReadonlyArray<string> = []
): Promise<{ readonly count: number; readonly notKept: ReadonlyArray<string> }> => {
  const folder = mkdtempSync(join(tmpdir(), "tackroom-check-"))
  try {
    writeFileSync(join(folder, "config.json"), JSON.stringify(template))
    const { results } = await reportOf(folder, face, more)
    return {
      count: results.length,
      notKept: results
        .filter(({ verdict }) => verdict !== "pass")
        .map(({ id, reason, verdict }) => `${id} ${verdict}: ${reason}`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
