/**
 * `pnpm demo`: a host, an agent, a crash, and the same run to its end. Needs no key and no network;
 * `pnpm demo --model openai/MODEL` (or `anthropic/MODEL`, or any name with `--base-url URL`) asks a live model instead.
 *
 * Exit code 0 when every check holds, 1 when one does not, 2 for a command line it does not understand. It removes what it
 * made, however it ends.
 */
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Host } from "../packages/sdk/src/client/index.ts"
import { styleOf, tint } from "../packages/host/src/faces/headless/Style.ts"
import { type LiveModel, tell } from "./demo/Story.ts"

const usage = `Usage: pnpm demo [--model CONNECTION/MODEL] [--base-url URL] [--key-env NAME] [--keep]\n`

const fail = (message: string): never => {
  process.stderr.write(`demo: ${message}\n${usage}`)
  process.exit(2)
}

const parse = () => {
  const text = { type: "string" } as const
  const flag = { type: "boolean" } as const
  try {
    const options = { model: text, "base-url": text, "key-env": text, keep: flag, help: flag }
    return parseArgs({ args: process.argv.slice(2).filter((arg) => arg !== "--"), options }).values
  } catch (cause) {
    return fail(cause instanceof Error ? cause.message : "the flags are not understood")
  }
}

const values = parse()
if (values.help === true) {
  process.stdout.write(usage)
  process.exit(0)
}

const keyVariables: Readonly<Record<string, string>> = { openai: "OPENAI_API_KEY", anthropic: "ANTHROPIC_API_KEY" }

const liveModel = (): LiveModel | undefined => {
  if (values.model === undefined) return undefined
  const slash = values.model.indexOf("/")
  if (slash < 1 || slash === values.model.length - 1)
    return fail("--model is CONNECTION/MODEL, as in openai/gpt-5-mini")
  const connection = values.model.slice(0, slash)
  const baseUrl = values["base-url"]
  const vendor = keyVariables[connection]
  if (vendor === undefined && baseUrl === undefined) return fail(`the connection ${connection} needs --base-url`)
  const variable = values["key-env"] ?? (baseUrl === undefined ? vendor : undefined)
  const key = variable === undefined ? undefined : process.env[variable]
  if (variable !== undefined && (key === undefined || key === "")) return fail(`${variable} is not set`)
  return { connection, model: values.model.slice(slash + 1), baseUrl, key }
}

const live = liveModel()
const bundle = join(import.meta.dirname, "..", "packages", "host", "dist", "bin", "tackroom.cjs")
const source = join(import.meta.dirname, "..", "packages", "host", "src", "cli.ts")
const root = realpathSync(mkdtempSync(join(tmpdir(), "tackroom-demo-")))
const hosts = new Set<Host>()

const cleanUp = async (): Promise<void> => {
  await Promise.all([...hosts].map((host) => host.close()))
  if (values.keep === true) process.stdout.write(`kept: ${root}\n`)
  else rmSync(root, { recursive: true, force: true })
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => void cleanUp().then(() => process.exit(130)))
}

const style = styleOf({ isTTY: process.stdout.isTTY }, process.env)
const write = (text: string): void => void process.stdout.write(text)
const model = live === undefined ? "a scripted model: no key, no network" : `the live model ${values.model ?? ""}`
write(`${tint(style, "bold", "Tackroom demonstration")}, with ${model}\n`)

const limitMs = live === undefined ? 50_000 : 300_000
const tooLong = new Promise<never>((_, reject) => {
  const timer = setTimeout(() => reject(new Error(`it took longer than ${limitMs / 1_000} s`)), limitMs)
  timer.unref()
})

const started = performance.now()
try {
  const checks = await Promise.race([
    tell({
      root,
      program: { command: process.execPath, args: [existsSync(bundle) ? bundle : source] },
      live,
      write,
      terminal: process.stdout,
      env: process.env,
      started: (host) => void hosts.add(host)
    }),
    tooLong
  ])
  write(`\n${tint(style, "bold", "5  Checks")}\n`)
  for (const { detail, good, name } of checks) {
    const sign = good ? tint(style, "green", "✓") : tint(style, "red", "✗")
    write(`  ${sign} ${name} ${tint(style, "dim", `(${detail})`)}\n`)
  }
  const good = checks.every((check) => check.good)
  const seconds = ((performance.now() - started) / 1_000).toFixed(1)
  write(`\n${good ? "All checks hold" : "A check does not hold"}, ${seconds} s.\n`)
  if (good && live === undefined) write(`Next: bin/tackroom run "Write a summary", or see README.md.\n`)
  process.exitCode = good ? 0 : 1
} catch (cause) {
  process.stderr.write(`\ndemo: ${cause instanceof Error ? cause.message : String(cause)}\n`)
  process.exitCode = 1
} finally {
  await cleanUp()
}
process.exit()
