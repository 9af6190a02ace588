/** From the spawn to the answer of `initialize`, beside a Node that does nothing and beside other agents. */
import { join } from "node:path"
import { processorMs, start, type MeasuredProcess } from "./MeasuredProcess.ts"
import { findPeers } from "./Peers.ts"
import { atMost, compare, type Bar, type Bench, type Row } from "./Report.ts"
import { inRounds, median, percentile, type Contestant } from "./Statistics.ts"
import {
  createSession,
  echoAgent,
  environment,
  finishRun,
  initialize,
  scripted,
  startHost,
  startRun,
  withHost,
  type HostOptions
} from "./TackroomHost.ts"

const measure = "cold start"
const warmLimitMs = 500

const untilExit = async (program: MeasuredProcess): Promise<number> => {
  await program.exited
  return performance.now() - program.spawnedAt
}

/** Milliseconds to the answer; what processors spent on it goes to the list. */
const readyAfter = (program: MeasuredProcess, processor: Array<number>): number => {
  const ms = performance.now() - program.spawnedAt
  const spent = processorMs(program.pid)
  if (spent !== undefined) processor.push(spent)
  return ms
}

const untilReady = async (bench: Bench, options: HostOptions, processor: Array<number> = []): Promise<number> => {
  const host = startHost(bench, options)
  try {
    await initialize(host.client)
    return readyAfter(host.program, processor)
  } finally {
    await host.program.finish()
  }
}

/** A state directory in which people have worked: sessions, turns, a provider, an agent. */
const fill = (bench: Bench, options: HostOptions): Promise<void> =>
  withHost(bench, options, async (host) => {
    for (let session = 0; session < 20; session++) {
      const id = await createSession(host, echoAgent.id)
      for (let turn = 0; turn < 5; turn++) {
        await startRun(host, id, `m-${turn}`, "hello there")
        await finishRun(host, id, `m-${turn}`)
      }
    }
  })

const slowerBar = (ratio: number): Bar => atMost(1, ratio, "no slower")

export const coldStart = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const rounds = bench.isQuick ? 5 : 15
  const slowRounds = bench.isQuick ? 1 : 3
  const config = scripted(join(bench.folder, "cold"), [echoAgent])
  const warm: HostOptions = { stateDir: join(bench.folder, "cold-warm"), config }
  await fill(bench, warm)

  const { found, missing } = findPeers(bench)
  const processor = new Map<string, Array<number>>()
  const processorOf = (name: string): Array<number> => {
    const list = processor.get(name) ?? []
    processor.set(name, list)
    return list
  }
  const empty = "tackroom, empty state"
  const ready = "tackroom, warm state"
  const firstEver = "tackroom, empty state and no code cache"
  const node = "node -e 0"
  const contestants: ReadonlyArray<Contestant> = [
    {
      name: node,
      run: () => untilExit(start({ command: process.execPath, args: ["-e", "0"], env: environment(bench) }))
    },
    {
      name: empty,
      run: (round) => untilReady(bench, { stateDir: join(bench.folder, `cold-empty-${round}`), config })
    },
    { name: ready, run: () => untilReady(bench, warm, processorOf(ready)) },
    {
      name: firstEver,
      rounds: Math.min(rounds, 5),
      run: (round) =>
        untilReady(bench, {
          stateDir: join(bench.folder, `cold-first-${round}`),
          config,
          codeCache: join(bench.folder, `cold-cache-${round}`)
        })
    },
    ...found.map((peer) => ({
      name: peer.name,
      rounds: peer.isSlow ? slowRounds : rounds,
      run: async () => {
        const program = peer.start()
        try {
          await peer.initialize(program)
          return readyAfter(program, processorOf(peer.name))
        } finally {
          await program.kill()
        }
      }
    }))
  ]
  // Once outside the count: the first start of any program reads its files from the disk.
  const isSlow = new Set(found.filter((peer) => peer.isSlow && bench.isQuick).map(({ name }) => name))
  await inRounds(
    1,
    contestants.filter(({ name }) => name !== firstEver && name !== empty && !isSlow.has(name))
  )
  processor.clear()
  const results = await inRounds(rounds, contestants)
  const of = (name: string) => results.get(name) ?? []

  const beside = (name: string, baseline: string, bar?: (ratio: number) => Bar, note?: string): Row =>
    compare({
      measure,
      name,
      unit: "ms",
      ours: of(name),
      baseline,
      theirs: of(baseline),
      ...(bar === undefined ? {} : { bar }),
      ...(note === undefined ? {} : { note })
    })

  const warmed = of(ready)
  return [
    { ...beside(ready, node), bar: atMost(warmLimitMs, median(warmed), `≤ ${warmLimitMs} ms`) },
    beside(empty, node),
    { measure, name: firstEver, value: median(of(firstEver)), unit: "ms", p95: percentile(of(firstEver), 0.95) },
    ...found.flatMap((peer) => [
      beside(
        ready,
        peer.name,
        peer.name.startsWith("codex app-server") ? slowerBar : undefined,
        `${peer.name} is version ${peer.version}`
      ),
      beside(empty, peer.name)
    ]),
    ...found
      .filter((peer) => processorOf(peer.name).length > 0)
      .map((peer) =>
        compare({
          measure,
          name: "processor time until ready, warm state",
          unit: "ms",
          ours: processorOf(ready),
          baseline: peer.name,
          theirs: processorOf(peer.name)
        })
      ),
    ...missing.map((peer): Row => ({
      measure,
      name: `beside ${peer.name}`,
      value: null,
      unit: "ms",
      note: `${peer.package} is not installed; name a folder that has it in TACKROOM_BENCH_PEERS`
    }))
  ]
}
