/**
 * Both sides of the Agent Client Protocol beside what the official SDK does alone: `tackroom acp` beside a bare agent of the
 * SDK under one client, and our driver beside the SDK's client under that one agent. Ours keep a journal; the others nothing.
 */
import * as sdk from "@agentclientprotocol/sdk"
import { createAgentRuntime, isEnvelope } from "@tackroom/sdk"
import { acp as acpHarness } from "@tackroom/sdk/harnesses/acp"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { start, type MeasuredProcess } from "./MeasuredProcess.ts"
import { RawClient } from "./RawClient.ts"
import { compare, type Bench, type Row } from "./Report.ts"
import { inRounds } from "./Statistics.ts"
import { echoAgent, environment, scripted, workspaceOf, type ScriptedAgent } from "./TackroomHost.ts"

const measure = "acp"
const parts = 400
const bareProgram = fileURLToPath(new URL("echo/acp.ts", import.meta.url))

/** Thinking and text by turns, so that no two updates can be joined; more turns than are ever played. */
const talker: ScriptedAgent = {
  id: "talker",
  responses: Array.from({ length: 20 }, () =>
    Array.from({ length: parts }, (_, n) => (n % 2 === 0 ? { thinking: " considering it" } : { text: " answering it" }))
  )
}

/** Both agents have a warm code cache, as an installed program has after its first start. */
const variables = (bench: Bench): Record<string, string> =>
  environment(bench, { NODE_COMPILE_CACHE: join(bench.folder, "code-cache") })

const startBare = (bench: Bench): MeasuredProcess =>
  start({ command: process.execPath, args: [bareProgram], env: variables(bench) })

const startOurs = (bench: Bench, agent: ScriptedAgent): MeasuredProcess => {
  const folder = join(bench.folder, `acp-${agent.id}`)
  const config = scripted(folder, [agent])
  const file = join(folder, "config.json")
  writeFileSync(file, JSON.stringify(config))
  return start({
    command: process.execPath,
    args: [bench.tackroom, "acp", "--state-dir", join(folder, "state"), "--config", file, "--agent", agent.id],
    env: variables(bench)
  })
}

/** A client that reads lines and counts updates, the same over both agents. */
class Editor {
  readonly #client: RawClient
  #session = ""

  constructor(program: MeasuredProcess) {
    this.#client = new RawClient(program)
  }

  async open(): Promise<void> {
    await this.#client.request("initialize", { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} })
  }

  async session(cwd: string): Promise<void> {
    const { sessionId } = await this.#client.request<{ readonly sessionId: string }>("session/new", {
      cwd,
      mcpServers: []
    })
    this.#session = sessionId
  }

  async prompt(text: string): Promise<void> {
    const { stopReason } = await this.#client.request<{ readonly stopReason: string }>("session/prompt", {
      sessionId: this.#session,
      prompt: [{ type: "text", text }]
    })
    if (stopReason !== "end_turn") throw new Error(`the turn ended with ${stopReason}`)
  }
}

interface Beginning {
  readonly ready: Array<number>
  readonly firstTurn: Array<number>
}

const begin = async (bench: Bench, program: MeasuredProcess, times: Beginning): Promise<number> => {
  const editor = new Editor(program)
  try {
    await editor.open()
    times.ready.push(performance.now() - program.spawnedAt)
    await editor.session(workspaceOf(bench))
    await editor.prompt("0")
    times.firstTurn.push(performance.now() - program.spawnedAt)
    return 0
  } finally {
    await program.finish()
  }
}

const beginnings = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const empty = (): Beginning => ({ ready: [], firstTurn: [] })
  const warming = empty()
  const ours = empty()
  const bare = empty()
  const contestants = (mine: Beginning, theirs: Beginning) => [
    { name: "ours", run: () => begin(bench, startOurs(bench, echoAgent), mine) },
    { name: "bare", run: () => begin(bench, startBare(bench), theirs) }
  ]
  await inRounds(1, contestants(warming, warming))
  await inRounds(bench.isQuick ? 3 : 9, contestants(ours, bare))
  const row = (name: string, of: (times: Beginning) => ReadonlyArray<number>): Row =>
    compare({ measure, name, unit: "ms", ours: of(ours), baseline: "bare agent of the SDK", theirs: of(bare) })
  return [
    row("tackroom acp, from the spawn to the answer of initialize", ({ ready }) => ready),
    row("tackroom acp, from the spawn to the end of the first prompt", ({ firstTurn }) => firstTurn)
  ]
}

const rateOf = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return parts / ((performance.now() - began) / 1_000)
}

const rounds = (bench: Bench): number => (bench.isQuick ? 3 : 9)

const faceUpdates = async (bench: Bench): Promise<Row> => {
  const ours = startOurs(bench, talker)
  const bare = startBare(bench)
  try {
    const [mine, theirs] = [new Editor(ours), new Editor(bare)]
    for (const editor of [mine, theirs]) {
      await editor.open()
      await editor.session(workspaceOf(bench))
      await editor.prompt(String(parts))
    }
    const results = await inRounds(rounds(bench), [
      { name: "ours", run: () => rateOf(() => mine.prompt(String(parts))) },
      { name: "bare", run: () => rateOf(() => theirs.prompt(String(parts))) }
    ])
    return compare({
      measure,
      name: "tackroom acp, updates to a client",
      unit: "/s",
      ours: results.get("ours") ?? [],
      baseline: "bare agent of the SDK",
      theirs: results.get("bare") ?? [],
      note: `${parts} updates a turn that cannot be joined; ours are two events each, journaled on disk before they are sent`
    })
  } finally {
    await ours.finish()
    await bare.finish()
  }
}

/** The SDK's own stack at both ends: its client in this process, its agent in another. */
const withSdkClient = async <A>(
  bench: Bench,
  body: (prompt: () => Promise<unknown>, seen: () => number) => Promise<A>
): Promise<A> => {
  const program = startBare(bench)
  let updates = 0
  const connection = sdk
    .client({ name: "bench" })
    .onNotification("session/update", () => {
      updates += 1
    })
    .connect(
      sdk.ndJsonStream(
        Writable.toWeb(program.child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(program.child.stdout) as ReadableStream<Uint8Array>
      )
    )
  try {
    await connection.agent.request("initialize", { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} })
    const { sessionId } = await connection.agent.request("session/new", { cwd: workspaceOf(bench), mcpServers: [] })
    return await body(
      () => connection.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: String(parts) }] }),
      () => updates
    )
  } finally {
    connection.close()
    await program.kill()
  }
}

/** Our driver below a runtime with its store, as a host uses it. */
const withDriver = async <A>(bench: Bench, body: (turn: () => Promise<void>) => Promise<A>): Promise<A> => {
  const { PATH: _path, ...more } = variables(bench)
  const runtime = createAgentRuntime({
    store: createSqliteRuntimeStore({ root: join(bench.folder, "acp-driver") }),
    harnesses: [acpHarness("bare", { binary: process.execPath, args: [bareProgram], env: { variables: more } })]
  })
  try {
    const session = await runtime.sessions.create({
      directory: workspaceOf(bench),
      harness: { id: "bare", access: "acp" }
    })
    let cursor = 0
    return await body(async () => {
      await runtime.turns.start({ sessionId: session.id, text: String(parts) })
      for await (const item of runtime.events.subscribe({ sessionId: session.id, after: cursor })) {
        if (!isEnvelope(item)) continue
        cursor = item.cursor
        if (item.payload.type === "error") throw new Error(`the turn failed: ${item.payload.error}`)
        if (item.payload.type === "finish") return
      }
    })
  } finally {
    await runtime.dispose()
  }
}

const driverUpdates = (bench: Bench): Promise<Row> =>
  withSdkClient(bench, (prompt, seen) =>
    withDriver(bench, async (turn) => {
      await prompt()
      await turn()
      if (seen() < parts) throw new Error(`the SDK's client saw ${seen()} updates of ${parts}`)
      const results = await inRounds(rounds(bench), [
        { name: "ours", run: () => rateOf(turn) },
        { name: "sdk", run: () => rateOf(prompt) }
      ])
      return compare({
        measure,
        name: "our driver, updates of an agent taken in",
        unit: "/s",
        ours: results.get("ours") ?? [],
        baseline: "client of the SDK",
        theirs: results.get("sdk") ?? [],
        note: `${parts} updates a turn that cannot be joined; ours are two events each and reach a reader from a journal on disk`
      })
    })
  )

export const acp = async (bench: Bench): Promise<ReadonlyArray<Row>> => [
  ...(await beginnings(bench)),
  await faceUpdates(bench),
  await driverUpdates(bench)
]
