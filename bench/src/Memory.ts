/** Resident memory of the host and all it started: idle, with many sessions, and under a client that never reads. */
import { join } from "node:path"
import { pause, residentOfTree, start } from "./MeasuredProcess.ts"
import { requestRate } from "./RawClient.ts"
import { atMost, type Bench, type Row } from "./Report.ts"
import {
  createSession,
  echoAgent,
  environment,
  finishRun,
  initialize,
  scripted,
  startHost,
  startRun,
  withHost
} from "./TackroomHost.ts"

const measure = "memory"
const idleLimit = 100
/** What a client that never reads may make the host hold: 16 MiB of answers, as much of requests, and slack. */
const growthLimit = 100

/** The least of a few looks: what is garbage a moment after start is none of idle. */
const settled = async (pid: number): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let look = 0; look < 4; look++) {
    await pause(250)
    least = Math.min(least, residentOfTree(pid))
  }
  return least
}

const bareNode = async (bench: Bench): Promise<number> => {
  const program = start({
    command: process.execPath,
    args: ["-e", "process.stdin.resume()"],
    env: environment(bench)
  })
  try {
    return await settled(program.pid)
  } finally {
    await program.finish()
  }
}

const idle = (bench: Bench, folder: string): Promise<number> =>
  withHost(bench, { stateDir: join(folder, "idle-state") }, (host) => settled(host.program.pid))

const withSessions = (bench: Bench, folder: string, count: number): Promise<number> =>
  withHost(bench, { stateDir: join(folder, "sessions-state"), config: scripted(folder, [echoAgent]) }, async (host) => {
    await requestRate(() => createSession(host, echoAgent.id), count, 32)
    return settled(host.program.pid)
  })

interface Unread {
  readonly before: number
  /** At half the time, when every buffer has had time to fill. */
  readonly half: number
  readonly end: number
  readonly peak: number
  readonly requests: number
}

/** Asks for large pages for ever and reads no answer. */
const neverReads = async (bench: Bench, folder: string): Promise<Unread> => {
  const options = { stateDir: join(folder, "unread-state"), config: scripted(folder, [echoAgent]) }
  const sessionId = await withHost(bench, options, async (host) => {
    const id = await createSession(host, echoAgent.id)
    for (let turn = 0; turn < 20; turn++) {
      await startRun(host, id, `m-${turn}`, "word ".repeat(6_000))
      await finishRun(host, id, `m-${turn}`)
    }
    return id
  })
  const host = startHost(bench, options)
  const { child, pid } = host.program
  try {
    await initialize(host.client)
    const before = await settled(pid)
    child.stdout.removeAllListeners("data")
    child.stdout.pause()
    const seconds = bench.isQuick ? 3 : 10
    const began = performance.now()
    const samples: Array<{ readonly at: number; readonly size: number }> = []
    let requests = 0
    while (performance.now() - began < seconds * 1_000) {
      // As much as the pipe takes: a write that was not taken waits in our memory, not in the host's.
      while (child.stdin.writableLength < 65_536 && requests < 1_000_000) {
        requests += 1
        const params = { session_id: sessionId, after: 0, max_events: 1_000 }
        child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: requests, method: "event/read", params })}\n`)
      }
      await pause(50)
      samples.push({ at: performance.now() - began, size: residentOfTree(pid) })
    }
    const half = samples.filter(({ at }) => at < seconds * 500).map(({ size }) => size)
    const rest = samples.filter(({ at }) => at >= seconds * 500).map(({ size }) => size)
    return {
      before,
      half: Math.max(...half),
      end: Math.max(...rest),
      peak: Math.max(...half, ...rest),
      requests
    }
  } finally {
    await host.program.kill()
  }
}

export const memory = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const folder = join(bench.folder, "memory")
  const bare = await bareNode(bench)
  const idleSize = await idle(bench, folder)
  const count = bench.isQuick ? 200 : 1_000
  const manySize = await withSessions(bench, folder, count)
  const unread = await neverReads(bench, folder)
  const baseline = { name: "bare Node", value: bare }
  const growth = unread.end - unread.half
  return [
    {
      measure,
      name: "idle after initialize",
      value: idleSize,
      unit: "MB",
      baseline,
      ratio: idleSize / bare,
      bar: atMost(idleLimit, idleSize, `< ${idleLimit} MB`)
    },
    {
      measure,
      name: `after ${count.toLocaleString("en-US")} sessions were made`,
      value: manySize,
      unit: "MB",
      baseline,
      ratio: manySize / bare
    },
    {
      measure,
      name: "peak under a client that never reads",
      value: unread.peak,
      unit: "MB",
      baseline: { name: "the same host before", value: unread.before },
      ratio: unread.peak / unread.before,
      bar: {
        text: `flat, < ${growthLimit} MB more`,
        isMet: unread.peak - unread.before < growthLimit && growth < growthLimit / 5
      },
      note: `${unread.requests} requests were taken; the second half of the time added ${growth.toFixed(1)} MB`
    }
  ]
}
