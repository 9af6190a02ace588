/**
 * How soon an agent of ACP is ready and has answered its first prompt: ours beside a bare agent of the official SDK, each
 * with an answer that costs nothing, and beside codex-acp, both with one model server on loopback.
 */
import { LLMock } from "@copilotkit/aimock"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { bareAgent, Editor, measure, startBare, startOurs } from "./AcpPrograms.ts"
import type { MeasuredProcess } from "./MeasuredProcess.ts"
import { codexAcp } from "./Peers.ts"
import { atMost, compare, type Bar, type Bench, type Row } from "./Report.ts"
import { inRounds } from "./Statistics.ts"
import { echoAgent, scripted, workspaceOf } from "./TackroomHost.ts"

interface Beginning {
  readonly ready: Array<number>
  readonly firstTurn: Array<number>
}

const empty = (): Beginning => ({ ready: [], firstTurn: [] })

const begin = async (bench: Bench, program: MeasuredProcess, text: string, times: Beginning): Promise<number> => {
  const editor = new Editor(program)
  try {
    await editor.open()
    times.ready.push(performance.now() - program.spawnedAt)
    await editor.session(workspaceOf(bench))
    await editor.prompt(text)
    times.firstTurn.push(performance.now() - program.spawnedAt)
    return 0
  } finally {
    await program.finish()
  }
}

interface Beginnings {
  readonly rounds: number
  readonly text: string
  readonly ours: () => MeasuredProcess
  readonly theirs: () => MeasuredProcess
  readonly baseline: string
  readonly bar?: (ratio: number) => Bar
  readonly note?: string
}

const beside = async (bench: Bench, { baseline, ours, rounds, text, theirs, ...rest }: Beginnings) => {
  const contestants = (mine: Beginning, other: Beginning) => [
    { name: "ours", run: () => begin(bench, ours(), text, mine) },
    { name: "theirs", run: () => begin(bench, theirs(), text, other) }
  ]
  const warming = empty()
  await inRounds(1, contestants(warming, warming))
  const mine = empty()
  const other = empty()
  await inRounds(rounds, contestants(mine, other))
  const row = (name: string, of: (times: Beginning) => ReadonlyArray<number>): Row =>
    compare({ measure, name, unit: "ms", ours: of(mine), baseline, theirs: of(other), ...rest })
  return [
    row("tackroom acp, from the spawn to the answer of initialize", ({ ready }) => ready),
    row("tackroom acp, from the spawn to the end of the first prompt", ({ firstTurn }) => firstTurn)
  ]
}

const folderOf = (bench: Bench, name: string): string => {
  const folder = join(bench.folder, name)
  mkdirSync(folder, { recursive: true })
  return folder
}

const besideBare = (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const folder = folderOf(bench, "acp-echo")
  const config = scripted(folder, [echoAgent])
  return beside(bench, {
    rounds: bench.isQuick ? 3 : 9,
    text: "0",
    ours: () => startOurs(bench, folder, config, echoAgent.id),
    theirs: () => startBare(bench),
    baseline: bareAgent
  })
}

const besideCodex = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const peer = codexAcp(bench)
  if (peer === undefined) {
    const note = "@agentclientprotocol/codex-acp is not installed: node test/e2e/agents/install.ts"
    return [{ measure, name: "tackroom acp beside codex-acp", value: null, unit: "ms", note }]
  }
  const model = new LLMock({ port: 0, latency: 0 })
  model.onMessage(/[^]/u, { content: "Hello there." })
  await model.start()
  try {
    const modelUrl = `${model.url}/v1`
    const config = {
      providers: [{ name: "fake", api: "responses", base_url: modelUrl }],
      agents: [{ id: "live", instructions: "Answer.", planning: true, model: { connection: "fake", model: "fake-1" } }]
    }
    const folder = folderOf(bench, "acp-live")
    return await beside(bench, {
      rounds: bench.isQuick ? 2 : 5,
      text: "Say hello.",
      ours: () => startOurs(bench, folder, config, "live"),
      theirs: () => peer.start(modelUrl),
      baseline: peer.name,
      bar: (ratio) => atMost(1, ratio, "at least as fast"),
      note: `version ${peer.version}; both ask the same local model server, over the Responses API`
    })
  } finally {
    await model.stop()
  }
}

export const acpStart = async (bench: Bench): Promise<ReadonlyArray<Row>> => [
  ...(await besideBare(bench)),
  ...(await besideCodex(bench))
]
