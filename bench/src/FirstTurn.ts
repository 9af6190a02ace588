/**
 * The first whole turn of a process and the ones after it, against the same model server on loopback: our host with the
 * Responses API beside `codex app-server`.
 */
import { LLMock } from "@copilotkit/aimock"
import { join } from "node:path"
import { codex } from "./Peers.ts"
import type { Peer } from "./Peers.ts"
import { compare, type Bench, type Row } from "./Report.ts"
import { inRounds, median, percentile } from "./Statistics.ts"
import { createSession, finishRun, initialize, startHost, startRun, workspaceOf } from "./TackroomHost.ts"

const measure = "first turn"
const text = "Say hello."
const laterTurns = 5

interface Times {
  readonly first: number
  readonly later: ReadonlyArray<number>
}

const ours = async (bench: Bench, modelUrl: string): Promise<Times> => {
  const host = startHost(bench, {
    stateDir: join(bench.folder, "first-state"),
    config: {
      providers: [{ name: "fake", api: "responses", base_url: modelUrl }],
      agents: [{ id: "live", instructions: "Answer.", planning: true, model: { connection: "fake", model: "fake-1" } }]
    }
  })
  const turn = async (sessionId: string, n: number): Promise<void> => {
    await startRun(host, sessionId, `m-${n}`, text)
    await finishRun(host, sessionId, `m-${n}`)
  }
  try {
    await initialize(host.client)
    const id = await createSession(host, "live")
    await turn(id, 0)
    const first = performance.now() - host.program.spawnedAt
    const later: Array<number> = []
    for (let n = 1; n <= laterTurns; n++) {
      const began = performance.now()
      await turn(id, n)
      later.push(performance.now() - began)
    }
    return { first, later }
  } finally {
    await host.program.finish()
  }
}

const theirs = async (bench: Bench, peer: Peer, modelUrl: string): Promise<Times> => {
  const program = peer.start(modelUrl)
  try {
    const client = await peer.initialize(program)
    const { thread } = await client.request<{ readonly thread: { readonly id: string } }>("thread/start", {
      cwd: workspaceOf(bench),
      approvalPolicy: "never",
      sandbox: "danger-full-access"
    })
    const turn = async (): Promise<void> => {
      const completed = client.next("turn/completed")
      await client.request("turn/start", { threadId: thread.id, input: [{ type: "text", text, text_elements: [] }] })
      const { turn } = (await completed) as { readonly turn?: { readonly status?: string } }
      if (turn?.status !== "completed") throw new Error(`the turn of ${peer.name} is ${turn?.status}`)
    }
    await turn()
    const first = performance.now() - program.spawnedAt
    const later: Array<number> = []
    for (let n = 0; n < laterTurns; n++) {
      const began = performance.now()
      await turn()
      later.push(performance.now() - began)
    }
    return { first, later }
  } finally {
    await program.kill()
  }
}

export const firstTurn = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const model = new LLMock({ port: 0, latency: 0 })
  model.onMessage(/[^]/u, { content: "Hello there." })
  await model.start()
  try {
    const peer = codex(bench)?.command
    const modelUrl = `${model.url}/v1`
    const later = { ours: new Array<number>(), theirs: new Array<number>() }
    const keep = (list: Array<number>, times: Times): number => {
      list.push(median(times.later))
      return times.first
    }
    const results = await inRounds(bench.isQuick ? 3 : 9, [
      { name: "ours", run: async () => keep(later.ours, await ours(bench, modelUrl)) },
      ...(peer === undefined
        ? []
        : [{ name: "theirs", run: async () => keep(later.theirs, await theirs(bench, peer, modelUrl)) }])
    ])
    const first = results.get("ours") ?? []
    const spawned = "from the spawn to the end of the first turn"
    const following = "a later turn"
    if (peer === undefined) {
      const note = "@openai/codex is not installed: no peer was measured"
      return [
        { measure, name: spawned, value: median(first), unit: "ms", p95: percentile(first, 0.95), note },
        { measure, name: following, value: median(later.ours), unit: "ms", p95: percentile(later.ours, 0.95), note }
      ]
    }
    const baseline = `${peer.name}`
    const note = "both ask the same local model server, over the Responses API; its own time is in both"
    return [
      compare({
        measure,
        name: spawned,
        unit: "ms",
        ours: first,
        baseline,
        theirs: results.get("theirs") ?? [],
        note
      }),
      compare({ measure, name: following, unit: "ms", ours: later.ours, baseline, theirs: later.theirs })
    ]
  } finally {
    await model.stop()
  }
}
