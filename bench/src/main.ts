/**
 * `pnpm bench`: measures the built host and the store beside bare baselines and, where they are installed, beside other
 * agents. It shows bars and gates nothing: the exit code tells only whether the benchmark itself could be used.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { cpus, homedir, loadavg, tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { acp } from "./Acp.ts"
import { appends } from "./Appends.ts"
import { coldStart } from "./ColdStart.ts"
import { firstTurn } from "./FirstTurn.ts"
import { journalSize } from "./JournalSize.ts"
import { endAll } from "./MeasuredProcess.ts"
import { memory } from "./Memory.ts"
import { replay } from "./Replay.ts"
import { table, type Bench, type Row } from "./Report.ts"
import { roundTrips } from "./RoundTrips.ts"
import { seats } from "./Seats.ts"
import { streaming } from "./Streaming.ts"
import { turns } from "./Turns.ts"

const measures: Readonly<
  Record<string, { readonly what: string; readonly run: (bench: Bench) => Promise<ReadonlyArray<Row>> }>
> = {
  "cold-start": { what: "spawn to the answer of initialize, beside Node and other agents", run: coldStart },
  "first-turn": { what: "spawn to the end of the first turn, beside Codex on one model server", run: firstTurn },
  "round-trips": { what: "host/info over stdio beside a bare echo", run: roundTrips },
  appends: { what: "durable appends of the SQLite store beside raw better-sqlite3", run: appends },
  turns: { what: "whole turns with a model that answers at once", run: turns },
  streaming: { what: "events a second to a client that follows its run", run: streaming },
  acp: { what: "tackroom acp and the driver beside the official SDK alone and codex-acp", run: acp },
  replay: { what: "a journal of 100,000 events read by pages", run: replay },
  memory: { what: "resident memory idle, with 1,000 sessions, under a client that never reads", run: memory },
  journal: { what: "rows and bytes of a 10,000-token answer", run: journalSize },
  seats: { what: "reads beside 200 seats that beat as fast as they may", run: seats }
}

const usage = `Usage: pnpm bench [options]

Options
  --only NAME     this measure alone; may be repeated
  --quick         fewer repetitions, under a minute
  --full          the 10,000-token answer in real time (100 s more)
  --json          the results as JSON on stdout instead of a table
  --program FILE  another built tackroom.cjs
  --help

Measures
${Object.entries(measures)
  .map(([name, { what }]) => `  ${name.padEnd(14)}${what}`)
  .join("\n")}

Environment
  TACKROOM_BENCH_PEERS  a folder whose node_modules holds @openai/codex, @agentclientprotocol/codex-acp, opencode-ai;
                        what \`node test/e2e/agents/install.ts\` installed is found without it
  TMPDIR                where the databases lie; a disk, not memory, or durable writes cost nothing

Results are written to bench/results/latest.json. Medians; ratios are of neighbours in time. A bar is shown, never a gate.
`

const root = fileURLToPath(new URL("../..", import.meta.url))
const builtProgram = join(
  dirname(fileURLToPath(import.meta.resolve("@tackroom/host/package.json"))),
  "dist/bin/tackroom.cjs"
)
/** The folders of the agents that are installed for the tests with real ones. */
const installedAgents = (): ReadonlyArray<string> => {
  const folder = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "tackroom-agents")
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}

/** A measure that takes longer hangs. */
const limitMs = 240_000
const tmpfs = 0x0102_1994

const readArguments = () => {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        quick: { type: "boolean", default: false },
        full: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        program: { type: "string" },
        help: { type: "boolean", default: false }
      }
    }).values
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const inTime = async <A>(work: Promise<A>): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${limitMs / 1_000} s`)), limitMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

const complain = (message: string): number => {
  process.stderr.write(`bench: ${message}\n\n${usage}`)
  return 2
}

const run = async (): Promise<number> => {
  const options = readArguments()
  if (typeof options === "string") return complain(options)
  if (options.help) {
    process.stdout.write(usage)
    return 0
  }
  const unknown = options.only.find((name) => !Object.hasOwn(measures, name))
  if (unknown !== undefined) return complain(`there is no measure ${JSON.stringify(unknown)}`)
  const tackroom = resolve(options.program ?? builtProgram)
  if (!existsSync(tackroom)) return complain(`${tackroom} is not there: run pnpm build first`)

  const folder = mkdtempSync(join(tmpdir(), "tackroom-bench-"))
  const peers = process.env["TACKROOM_BENCH_PEERS"] ?? ""
  const bench: Bench = {
    isQuick: options.quick,
    isFull: options.full,
    folder,
    tackroom,
    path: process.env["PATH"] ?? "",
    peerRoots: [...(peers === "" ? [] : [peers]), join(root, "bench"), root, ...installedAgents()]
  }
  const stop = (): void => {
    void endAll().then(() => {
      rmSync(folder, { recursive: true, force: true })
      process.exit(130)
    })
  }
  process.once("SIGINT", stop)
  process.once("SIGTERM", stop)

  const began = performance.now()
  const about = {
    at: new Date().toISOString(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    processors: cpus().length,
    processor: cpus()[0]?.model ?? "unknown",
    load: loadavg(),
    databasesInMemory: statfsSync(folder).type === tmpfs,
    quick: options.quick
  }
  const rows: Array<Row> = []
  try {
    for (const [name, { run: measure, what }] of Object.entries(measures)) {
      if (options.only.length > 0 && !options.only.includes(name)) continue
      process.stderr.write(`${name}: ${what} … `)
      const started = performance.now()
      try {
        rows.push(...(await inTime(measure(bench))))
      } catch (error) {
        const note = `failed: ${error instanceof Error ? error.message : String(error)}`
        rows.push({ measure: name, name: what, value: null, unit: "ms", note })
      } finally {
        await endAll()
        process.stderr.write(`${((performance.now() - started) / 1_000).toFixed(1)} s\n`)
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }

  const results = { ...about, seconds: (performance.now() - began) / 1_000, rows }
  const target = join(root, "bench/results")
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, "latest.json"), `${JSON.stringify(results, undefined, 2)}\n`)
  if (options.json) process.stdout.write(`${JSON.stringify(results, undefined, 2)}\n`)
  else {
    const where = `${about.processor}, ${about.processors} processors, load ${about.load[0]?.toFixed(1)}, Node ${about.node}`
    process.stdout.write(`\n${where}, ${results.seconds.toFixed(0)} s\n`)
    if (about.databasesInMemory)
      process.stdout.write("The databases lie in memory: durable writes cost nothing here.\n")
    process.stdout.write(`\n${table(rows)}\n`)
  }
  return 0
}

process.exit(await run())
