/**
 * Both sides of the Agent Client Protocol beside what the official SDK does alone: `tackroom acp` beside a bare agent of the
 * SDK, under a client that only counts and under the SDK's client, and our driver beside the SDK's client over that one
 * agent. Ours keep a journal; the others nothing.
 *
 * Updates come in two kinds: parts by turns, which nothing can join, and the chunks of one text, as a model streams it. Of
 * the second ours are joined on their way, so what counts is the chunks that went in, and that all of their text came out.
 */
import * as sdk from "@agentclientprotocol/sdk"
import { createAgentRuntime, isEnvelope } from "@tackroom/sdk"
import { acp as acpHarness } from "@tackroom/sdk/harnesses/acp"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"
import { bareAgent, bareProgram, Editor, measure, startBare, startOurs, variables } from "./AcpPrograms.ts"
import { acpStart } from "./AcpStart.ts"
import type { MeasuredProcess } from "./MeasuredProcess.ts"
import { atLeast, compare, type Bench, type Row } from "./Report.ts"
import { inRounds } from "./Statistics.ts"
import { scripted, workspaceOf, type ScriptedAgent } from "./TackroomHost.ts"

/** Updates of a turn: what the bare agent is asked for, what a script plays, and the characters in them. */
interface Kind {
  readonly agent: ScriptedAgent
  readonly prompt: string
  readonly updates: number
  readonly characters: number
  readonly what: string
}

/** More turns than are ever played. */
const turns = 24

const agentOf = (id: string, updates: number, of: (n: number) => unknown): ScriptedAgent => {
  const response = Array.from({ length: updates }, (_, n) => of(n))
  return { id, responses: Array.from({ length: turns }, () => response) }
}

const parts: Kind = {
  agent: agentOf("talker", 400, (n) => (n % 2 === 0 ? { thinking: " considering it" } : { text: " answering it" })),
  prompt: "400",
  updates: 400,
  characters: 200 * (" considering it".length + " answering it".length),
  what: "updates that cannot be joined"
}

const chunks: Kind = {
  agent: agentOf("writer", 2_000, () => ({ text: " word" })),
  prompt: "2000 chunks",
  updates: 2_000,
  characters: 2_000 * " word".length,
  what: "chunks of one text"
}

const stackBar = (ratio: number) => atLeast(1, ratio, "≥ the SDK's stack")

const startTalker = (bench: Bench, { agent }: Kind, place: string): MeasuredProcess => {
  const folder = join(bench.folder, `acp-${agent.id}-${place}`)
  return startOurs(bench, folder, scripted(folder, [agent]), agent.id)
}

const rateOf = async ({ updates }: Kind, work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return updates / ((performance.now() - began) / 1_000)
}

const rounds = (bench: Bench): number => (bench.isQuick ? 3 : 9)

const noteOf = (kind: Kind): string =>
  kind === parts
    ? `${kind.updates} updates a turn; ours are two events each, journaled on disk before they are shown`
    : `${kind.updates} chunks a turn, all of their ${kind.characters} characters delivered; ours are joined and journaled`

interface Contest {
  readonly kind: Kind
  readonly name: string
  readonly baseline: string
  readonly bar?: typeof stackBar
  /** Runs a turn and answers the characters that its reader was told. */
  readonly ours: () => Promise<number>
  readonly theirs: () => Promise<number>
}

const contest = async (bench: Bench, { baseline, kind, name, ours, theirs, ...rest }: Contest): Promise<Row> => {
  const whole = (turn: () => Promise<number>) => async (): Promise<void> => {
    const told = await turn()
    if (told !== kind.characters) throw new Error(`${told} characters were told of ${kind.characters}`)
  }
  const contestants = [
    { name: "ours", run: () => rateOf(kind, whole(ours)) },
    { name: "theirs", run: () => rateOf(kind, whole(theirs)) }
  ]
  await inRounds(1, contestants)
  const results = await inRounds(rounds(bench), contestants)
  return compare({
    measure,
    name: `${name}, ${kind.what}`,
    unit: "/s",
    ours: results.get("ours") ?? [],
    baseline,
    theirs: results.get("theirs") ?? [],
    note: noteOf(kind),
    ...rest
  })
}

/** One client over one agent; each prompt is a turn. */
interface Talk {
  readonly turn: () => Promise<number>
  readonly close: () => Promise<unknown>
}

const withEditor = async (bench: Bench, kind: Kind, program: MeasuredProcess): Promise<Talk> => {
  const editor = new Editor(program)
  await editor.open()
  await editor.session(workspaceOf(bench))
  return {
    turn: async () => {
      const before = editor.characters
      await editor.prompt(kind.prompt)
      return editor.characters - before
    },
    close: () => program.finish()
  }
}

/** The SDK's client in this process. */
const withSdkClient = async (bench: Bench, kind: Kind, program: MeasuredProcess): Promise<Talk> => {
  let characters = 0
  const connection = sdk
    .client({ name: "bench" })
    .onNotification("session/update", ({ params: { update } }) => {
      if ("content" in update && update.content !== null && "text" in (update.content ?? {})) {
        characters += (update.content as { readonly text: string }).text.length
      }
    })
    .connect(
      sdk.ndJsonStream(
        Writable.toWeb(program.child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(program.child.stdout) as ReadableStream<Uint8Array>
      )
    )
  await connection.agent.request("initialize", { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} })
  const { sessionId } = await connection.agent.request("session/new", { cwd: workspaceOf(bench), mcpServers: [] })
  return {
    turn: async () => {
      const before = characters
      await connection.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: kind.prompt }] })
      return characters - before
    },
    close: () => {
      connection.close()
      return program.kill()
    }
  }
}

/** Our driver below a runtime with its store, as a host uses it. */
const withDriver = async (bench: Bench, kind: Kind): Promise<Talk> => {
  const { PATH: _path, ...more } = variables(bench)
  const runtime = createAgentRuntime({
    store: createSqliteRuntimeStore({ root: join(bench.folder, `acp-driver-${kind.agent.id}`) }),
    harnesses: [acpHarness("bare", { binary: process.execPath, args: [bareProgram], env: { variables: more } })]
  })
  const session = await runtime.sessions.create({
    directory: workspaceOf(bench),
    harness: { id: "bare", access: "acp" }
  })
  let cursor = 0
  return {
    turn: async () => {
      let characters = 0
      await runtime.turns.start({ sessionId: session.id, text: kind.prompt })
      for await (const item of runtime.events.subscribe({ sessionId: session.id, after: cursor })) {
        if (!isEnvelope(item)) continue
        cursor = item.cursor
        const { payload } = item
        if (payload.type === "text-delta" || payload.type === "thinking-delta") characters += payload.delta.length
        if (payload.type === "error") throw new Error(`the turn failed: ${payload.error}`)
        if (payload.type === "finish") break
      }
      return characters
    },
    close: () => runtime.dispose()
  }
}

const between = async (
  talks: ReadonlyArray<Promise<Talk>>,
  body: (...turns: ReadonlyArray<Talk["turn"]>) => Promise<Row>
): Promise<Row> => {
  try {
    const open = await Promise.all(talks)
    return await body(...open.map(({ turn }) => turn))
  } finally {
    for (const talk of await Promise.allSettled(talks)) if (talk.status === "fulfilled") await talk.value.close()
  }
}

const besideBare = (bench: Bench, kind: Kind): Promise<Row> =>
  between(
    [withEditor(bench, kind, startTalker(bench, kind, "counted")), withEditor(bench, kind, startBare(bench))],
    (ours, theirs) => contest(bench, { kind, name: "tackroom acp", baseline: bareAgent, ours, theirs })
  )

const underSdkClient = (bench: Bench, kind: Kind): Promise<Row> =>
  between(
    [withSdkClient(bench, kind, startTalker(bench, kind, "sdk")), withSdkClient(bench, kind, startBare(bench))],
    (ours, theirs) =>
      contest(bench, {
        kind,
        name: "tackroom acp under the SDK's client",
        baseline: "agent and client of the SDK",
        bar: stackBar,
        ours,
        theirs
      })
  )

const overBare = (bench: Bench, kind: Kind): Promise<Row> =>
  between([withDriver(bench, kind), withSdkClient(bench, kind, startBare(bench))], (ours, theirs) =>
    contest(bench, {
      kind,
      name: "our driver",
      baseline: "agent and client of the SDK",
      bar: stackBar,
      ours,
      theirs
    })
  )

export const acp = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = [...(await acpStart(bench))]
  for (const kind of [parts, chunks]) {
    rows.push(await besideBare(bench, kind), await underSdkClient(bench, kind), await overBare(bench, kind))
  }
  return rows
}
