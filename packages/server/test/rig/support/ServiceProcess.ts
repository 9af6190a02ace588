/** The rig service as a process of its own, to be killed. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

/** The program as people run it; from source where nothing is built. */
export const rigCommand =
  process.env["TACKROOM_E2E_RIG"] ?? fileURLToPath(new URL("../../../src/rig/cli.ts", import.meta.url))

export interface ServiceProcess {
  readonly child: ChildProcess
  readonly url: string
  readonly hookToken: string
  readonly operatorToken: string
  /** Ends it by a signal; its exit code, or the signal that ended it. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals>
}

export const startService = (
  family: string,
  variables: Readonly<Record<string, string>> = {}
): Promise<ServiceProcess> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [rigCommand, "serve"], {
      env: { ...process.env, TACKROOM_HOME: family, TACKROOM_RIG_PORT: "0", ...variables },
      stdio: ["ignore", "ignore", "pipe"]
    })
    const ended = new Promise<number | NodeJS.Signals>((done) =>
      child.once("exit", (code, signal) => done(code ?? signal ?? 1))
    )
    let text = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8")
      const line = text.split("\n").find((one) => one.includes("the rig service runs"))
      if (line === undefined) return
      const token = (name: string) => fs.readFileSync(path.join(family, "rig", name), "utf8")
      resolve({
        child,
        url: (JSON.parse(line) as { readonly url: string }).url,
        hookToken: token("activity-hook-token"),
        operatorToken: token("operator-token"),
        end: (signal) => {
          child.kill(signal)
          return ended
        }
      })
    })
    void ended.then((code) => reject(Object.assign(new Error(`it ended with ${code}: ${text}`), { code })))
  })

/** Runs an operator command; its exit code and what it wrote. */
export const runCommand = (
  family: string,
  args: ReadonlyArray<string>,
  input = ""
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [rigCommand, ...args], {
      env: { ...process.env, TACKROOM_HOME: family },
      stdio: ["pipe", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")))
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")))
    child.once("close", (code) => resolve({ code: code ?? 1, stdout, stderr }))
    child.stdin.end(input)
  })
