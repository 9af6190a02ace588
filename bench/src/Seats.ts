/**
 * Two hundred seats that beat as fast as a runner may, and how long a read takes meanwhile: a request of one seat's view,
 * sent while posts are stored and screens are sampled.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { atMost, type Bench, type Row } from "./Report.ts"
import { median, percentile } from "./Statistics.ts"

const measure = "seats"
const program = fileURLToPath(new URL("../../packages/server/dist/bin/tackroom-rig.cjs", import.meta.url))
/** A third of the shortest liveness that a beat may state. */
const beatEveryMs = 5_000 / 3

interface Service {
  readonly url: string
  readonly hookToken: string
  readonly operatorToken: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const call = (url: string, method: string, token: string, body?: unknown): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      url,
      { method, agent, headers: { authorization: `Bearer ${token}`, "content-length": Buffer.byteLength(text ?? "") } },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("error", reject)
        response.on("end", () => {
          const answer = Buffer.concat(chunks).toString("utf8")
          if (response.statusCode === 200) resolve(JSON.parse(answer))
          else reject(new Error(`${method} ${url}: ${response.statusCode} ${answer}`))
        })
      }
    )
    sent.on("error", reject)
    sent.end(text)
  })

const serve = (home: string): Promise<{ readonly service: Service; readonly end: () => void }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, "serve"], {
      env: { ...process.env, TACKROOM_HOME: home, TACKROOM_RIG_PORT: "0" },
      stdio: ["ignore", "ignore", "pipe"]
    })
    let log = ""
    child.once("exit", (code) => reject(new Error(`the service ended with ${code}: ${log}`)))
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk.toString("utf8")
      const line = log.split("\n").find((one) => one.includes("the rig service runs"))
      if (line === undefined) return
      const token = (name: string) => readFileSync(join(home, "rig", name), "utf8")
      resolve({
        service: {
          url: (JSON.parse(line) as { readonly url: string }).url,
          hookToken: token("activity-hook-token"),
          operatorToken: token("operator-token")
        },
        end: () => {
          child.removeAllListeners("exit")
          child.kill("SIGTERM")
          spawnSync("tmux", ["-S", join(home, "rig", "tmux.sock"), "kill-server"])
        }
      })
    })
  })

const record = `printf '{"format":1,"attempt":"%s","harness":"otter","nativeRef":"c-1"}' "$OPENRIG_LAUNCH_ATTEMPT" > "$OPENRIG_LAUNCH_RESULT"; exec cat`

export const seats = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const count = bench.isQuick ? 50 : 200
  const name = `${count} seats, a beat each ${(beatEveryMs / 1_000).toFixed(1)} s`
  if (spawnSync("tmux", ["-V"]).status !== 0) {
    return [{ measure, name, value: null, unit: "ms", note: "there is no tmux on PATH" }]
  }
  const home = join(bench.folder, "seats")
  const presets = join(home, "rig", "community-harnesses")
  mkdirSync(presets, { recursive: true, mode: 0o700 })
  const preset = {
    format: 1,
    name: "otter",
    command: ["sh", "-c", record],
    runner: true,
    launch_result: true,
    limits: []
  }
  writeFileSync(join(presets, "otter.yaml"), JSON.stringify(preset))
  const { service, end } = await serve(home)
  try {
    const api = `${service.url}/api/rig/v1`
    const operator = (method: string, path: string, body?: unknown) =>
      call(`${api}${path}`, method, service.operatorToken, body)
    const members = Array.from({ length: count }, (_, index) => `m${index}`)
    const rig = members.map((member) => ({ pod: "dev", member, harness: "otter", cwd: home }))
    await operator("POST", "/rigs", { format: 1, name: "mill", seats: rig })
    await operator("POST", "/rigs/mill/up", {})
    const listed = (await operator("GET", "/seats?limit=500")) as {
      readonly items: ReadonlyArray<{ readonly seat: string; readonly launch: { readonly generation: string } }>
    }
    let sequence = 0
    const post = (seat: string, generation: string, hookEvent: string, subtype: string) =>
      call(`${service.url}/api/activity/hooks`, "POST", service.hookToken, {
        sessionName: seat,
        generation,
        sequence: (sequence += 1),
        occurredAt: new Date().toISOString(),
        hookEvent,
        subtype,
        turnId: "1",
        livenessSeconds: 5
      })
    for (const { seat, launch } of listed.items) await post(seat, launch.generation, "UserPromptSubmit", "accepted")
    const failures: Array<unknown> = []
    const posts: Array<number> = []
    const timers = listed.items.map(({ seat, launch }, index) =>
      setTimeout(
        () => {
          const beat = (): void => {
            const started = performance.now()
            post(seat, launch.generation, "active", "liveness").then(
              () => posts.push(performance.now() - started),
              (cause: unknown) => failures.push(cause)
            )
          }
          beat()
          timers[index] = setInterval(beat, beatEveryMs)
        },
        (index / count) * beatEveryMs
      )
    )
    const reads: Array<number> = []
    const until = performance.now() + (bench.isQuick ? 5_000 : 20_000)
    while (performance.now() < until) {
      const seat = listed.items[reads.length % count]?.seat ?? ""
      const started = performance.now()
      await operator("GET", `/seats/${seat}`)
      reads.push(performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (const timer of timers) clearTimeout(timer)
    if (failures.length > 0) throw failures[0]
    const worst = percentile(reads, 0.99)
    return [
      {
        measure,
        name: `a read beside ${name}`,
        value: median(reads),
        unit: "ms",
        p95: percentile(reads, 0.95),
        bar: atMost(10, worst, "p99 ≤ 10 ms"),
        note: `p99 ${worst.toFixed(2)} ms of ${reads.length} reads`
      },
      {
        measure,
        name: `a stored beat of ${name}`,
        value: median(posts),
        unit: "ms",
        p95: percentile(posts, 0.95),
        note: `${posts.length} posts, each durable before its answer`
      }
    ]
  } finally {
    end()
  }
}
