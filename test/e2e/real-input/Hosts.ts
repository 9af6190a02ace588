/** The host as a program of its own, started from source; its stderr is kept whole. */
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { EventRecord, HostConfig } from "@tackroom/protocol/run"
import {
  type AgentOptions,
  connectHost,
  type ConnectOptions,
  type Host,
  launchHost,
  makeStdioTransport,
  type Run,
  type RunItem,
  type RunResult
} from "@tackroom/sdk/client"
import type { Api, Vendor } from "./Vendors.ts"

export const program = fileURLToPath(new URL("../../../packages/host/src/cli.ts", import.meta.url))

/** A folder of a test, with its real path. */
export const temporary = (name: string): { readonly path: string; readonly remove: () => void } => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), `tackroom-${name}-`)))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export interface StartedHost {
  readonly host: Host
  readonly stateDir: string
  readonly stderr: () => string
}

const keepStderr = 'exec "$@" 2>>"$KEPT_STDERR"'

/** Starts `harness-stdio` through the client's launcher. */
export const startHost = async (
  directory: string,
  config: Omit<HostConfig, "stateDir"> = {},
  options: ConnectOptions = {}
): Promise<StartedHost> => {
  const stateDir = join(directory, "state")
  const kept = join(directory, "stderr.log")
  const host = await launchHost({
    ...options,
    command: "/bin/sh",
    args: ["-c", keepStderr, "sh", process.execPath, program],
    config: { sandbox: "none", ...config, stateDir },
    env: { KEPT_STDERR: kept }
  })
  return { host, stateDir, stderr: () => readFileSync(kept, "utf8") }
}

/** The same program over a transport that keeps every message of the host in a file. */
export const startRecordedHost = async (
  directory: string
): Promise<StartedHost & { readonly answers: () => string }> => {
  const stateDir = join(directory, "state")
  const kept = join(directory, "stderr.log")
  const answers = join(directory, "answers.jsonl")
  const host = await connectHost(async () => {
    const transport = await makeStdioTransport({
      command: "/bin/sh",
      args: [
        "-c",
        keepStderr,
        "sh",
        process.execPath,
        program,
        "harness-stdio",
        JSON.stringify({ sandbox: "none", state_dir: stateDir })
      ],
      environment: process.env,
      variables: { KEPT_STDERR: kept, TACKROOM_LOG_LEVEL: "Debug" },
      instanceId: `real-input-${process.pid}`
    })
    return {
      ...transport,
      open: (listener) =>
        transport.open({
          onClosed: listener.onClosed,
          onMessage: (message) => {
            appendFileSync(answers, `${JSON.stringify(message)}\n`)
            listener.onMessage(message)
          }
        })
    }
  })
  const text = (path: string) => () => readFileSync(path, "utf8")
  return { host, stateDir, stderr: text(kept), answers: text(answers) }
}

export const workTools = ["files.list", "files.search", "files.read", "files.edit", "shell.run"]

/** Sets a provider and registers an agent of the same name on it. */
export const engage = async (
  host: Host,
  vendor: Pick<Vendor, "url">,
  options: {
    readonly name: string
    readonly api: Api
    readonly key: string
    readonly agent?: Partial<AgentOptions>
  }
): Promise<void> => {
  await host.provider({ name: options.name, api: options.api, baseUrl: vendor.url, key: () => options.key })
  await host.agent({
    id: options.name,
    instructions: "You work in a folder.",
    tools: workTools,
    model: { connection: options.name, model: `model-of-${options.name}` },
    compaction: "off",
    ...options.agent
  })
}

export interface Followed {
  readonly items: ReadonlyArray<RunItem>
  readonly events: ReadonlyArray<EventRecord>
  readonly result: RunResult
}

/** Reads a run to its end. */
export const follow = async (run: Run): Promise<Followed> => {
  const items: Array<RunItem> = []
  for await (const item of run) items.push(item)
  const events = items.flatMap((item) => (item.event === undefined ? [] : [item.event]))
  return { items, events, result: await run.result }
}

/** The events of one type, narrowed. */
export const only = <T extends EventRecord["payload"]["type"]>(
  { events }: Pick<Followed, "events">,
  type: T
): ReadonlyArray<Extract<EventRecord["payload"], { readonly type: T }>> =>
  events.flatMap(({ payload }) =>
    payload.type === type ? [payload as Extract<EventRecord["payload"], { readonly type: T }>] : []
  )

export const folder = (directory: string, name: string): string => {
  const path = join(directory, name)
  mkdirSync(path, { recursive: true })
  return path
}

/** A whole value that was cut in its event, put together from the pieces of artifact/read. */
export const readArtifact = async (
  host: Host,
  sessionId: string,
  artifactId: string,
  length: number
): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  for (let offset = 0; ;) {
    const piece = await host.request("artifact/read", { sessionId, artifactId, offset, length })
    pieces.push(Buffer.from(piece.data, "base64"))
    offset += piece.length
    if (piece.eof) return Buffer.concat(pieces)
  }
}
