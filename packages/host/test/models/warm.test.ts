import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const program = path.resolve(import.meta.dirname, "../../src/cli.ts")

/** Makes a process tell of each client library that it loads. */
const spy = `import { registerHooks } from "node:module"
registerHooks({
  resolve: (id, context, next) => {
    if (id.startsWith("@ai-sdk/") && context.parentURL?.includes("/families/")) process.stderr.write("loads " + id + "\\n")
    return next(id, context)
  }
})`

describe("the client library of a live provider", () => {
  it("is loaded without a request once initialize was answered, and no other is", { timeout: 30_000 }, async () => {
    const root = fs.mkdtempSync(path.join(os.tmpdir(), "warm-"))
    const hooks = path.join(root, "spy.mjs")
    fs.writeFileSync(hooks, spy)
    const scenario = path.join(root, "played.json")
    fs.writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "played" }))
    const providers = [
      { name: "played", api: "script", scenario },
      { name: "here", api: "anthropic", base_url: "http://127.0.0.1:9" }
    ]
    const config = { state_dir: path.join(root, "state"), sandbox: "none", providers }
    const child = spawn(process.execPath, ["--import", hooks, program, "harness-stdio", JSON.stringify(config)], {
      env: { PATH: process.env["PATH"], HOME: root }
    })
    let said = ""
    const loaded = new Promise<void>((resolve) => {
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said += text
        if (said.includes("loads ")) resolve()
      })
    })
    const params = { protocol_version: 1, client: { name: "test", version: "1" } }
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`)
    child.stdout.resume()
    await loaded
    child.stdin.end()
    await new Promise((resolve) => child.once("close", resolve))
    fs.rmSync(root, { recursive: true })
    assert.deepStrictEqual(said.match(/loads \S+/gu), ["loads @ai-sdk/anthropic"])
  })
})
