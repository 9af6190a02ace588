/**
 * `pnpm demo:seat`: a rig of two agents in terminal seats, a request that a person answers, and a seat that comes back.
 * Needs tmux 3.2 or newer, and neither a key nor a network.
 *
 * Exit code 0 when every check holds, 1 when one does not, 2 for a command line it does not understand. It removes what it
 * made and ends what it started, however it ends.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { styleOf, tint } from "../packages/host/src/faces/headless/Style.ts"
import type { RigProgram } from "../packages/server/test/rig/support/RigProgram.ts"
import { tellSeats } from "./demo/SeatStory.ts"

const usage = `Usage: pnpm demo:seat [--keep]\n`

const parse = () => {
  const flag = { type: "boolean" } as const
  try {
    return parseArgs({ args: process.argv.slice(2).filter((arg) => arg !== "--"), options: { keep: flag, help: flag } })
      .values
  } catch (cause) {
    process.stderr.write(
      `demo:seat: ${cause instanceof Error ? cause.message : "the flags are not understood"}\n${usage}`
    )
    return process.exit(2)
  }
}

const values = parse()
if (values.help === true) {
  process.stdout.write(usage)
  process.exit(0)
}

if (spawnSync("tmux", ["-V"]).status !== 0) {
  process.stderr.write("demo:seat: tmux is needed (3.2 or newer); install it and try again\n")
  process.exit(1)
}

const packageOf: Readonly<Record<string, string>> = { "tackroom-rig": "server", "tackroom-seat": "runner" }
const program = (name: string): string =>
  join(import.meta.dirname, "..", "packages", packageOf[name] ?? "host", "dist", "bin", `${name}.cjs`)

const root = realpathSync(mkdtempSync(join(tmpdir(), "rig-")))
const socket = join(root, "home", "rig", "tmux.sock")
let rig: RigProgram | undefined

const cleanUp = async (): Promise<void> => {
  await rig?.end()
  // Its seats are in no other server: this one was made for them.
  spawnSync("tmux", ["-S", socket, "kill-server"], { stdio: "ignore" })
  if (values.keep === true) process.stdout.write(`kept: ${root}\n`)
  else rmSync(root, { recursive: true, force: true })
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => void cleanUp().then(() => process.exit(130)))
}

const style = styleOf({ isTTY: process.stdout.isTTY }, process.env)
const write = (text: string): void => void process.stdout.write(text)
const limitMs = 120_000
const tooLong = new Promise<never>((_, reject) => {
  setTimeout(() => reject(new Error(`it took longer than ${limitMs / 1_000} s`)), limitMs).unref()
})

write(`${tint(style, "bold", "Tackroom demonstration of seats")}, with scripted models: no key, no network\n`)
const started = performance.now()
try {
  const story = tellSeats({
    root,
    program,
    write,
    terminal: process.stdout,
    env: process.env,
    started: (running) => {
      rig = running
    }
  })
  const checks = await Promise.race([story, tooLong])
  write(`\n${tint(style, "bold", "5  Checks")}\n`)
  for (const { detail, good, name } of checks) {
    const sign = good ? tint(style, "green", "✓") : tint(style, "red", "✗")
    write(`  ${sign} ${name} ${tint(style, "dim", `(${detail})`)}\n`)
  }
  const good = checks.every((check) => check.good)
  write(
    `\n${good ? "All checks hold" : "A check does not hold"}, ${((performance.now() - started) / 1_000).toFixed(1)} s.\n`
  )
  process.exitCode = good ? 0 : 1
} catch (cause) {
  process.stderr.write(`\ndemo:seat: ${cause instanceof Error ? cause.message : String(cause)}\n`)
  process.exitCode = 1
} finally {
  await cleanUp()
}
process.exit()
