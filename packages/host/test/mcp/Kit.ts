/** Servers for tests: real processes, and what was told of them. */
import { existsSync, readFileSync, watch } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import type { HarnessEvent, McpEntry } from "@tackroom/protocol/events"
import { makeRedactor } from "@tackroom/protocol/text"
import type { McpServer } from "@tackroom/sdk/adapters"
import { makeProcessOwner } from "@tackroom/sdk/process"
import { Effect, Queue, type Schema } from "effect"
import * as SessionServers from "../../src/mcp/SessionServers.ts"
import type { ToolOutput, ToolProblem } from "../../src/native/SessionSetup.ts"
import type { ServerManner } from "./fixtures/server.ts"

const program = fileURLToPath(new URL("fixtures/server.ts", import.meta.url))

/** A server that misbehaves as asked. */
export const server = (
  manner: ServerManner = {},
  more: { readonly name?: string; readonly env?: Readonly<Record<string, string>> } = {}
): McpServer => ({
  name: more.name ?? "manners",
  transport: "stdio",
  command: process.execPath,
  args: [program, JSON.stringify(manner)],
  env: more.env ?? {}
})

/** The same as an entry of a session's configuration. */
export const entry = (manner: ServerManner = {}): McpEntry => ({
  type: "stdio",
  command: process.execPath,
  args: [program, JSON.stringify(manner)]
})

/** Completes when a file of the folder has this line, so many times. */
export const awaitLine = (folder: string, name: string, line: string, times = 1) =>
  Effect.callback<void>((resume) => {
    const file = join(folder, name)
    const has = () =>
      existsSync(file) &&
      readFileSync(file, "utf8")
        .split("\n")
        .filter((one) => one === line).length >= times
    const watcher = watch(folder, () => {
      if (has()) resume(Effect.void)
    })
    if (has()) resume(Effect.void)
    return Effect.sync(() => watcher.close())
  })

interface Told {
  readonly tell: (event: HarnessEvent) => Effect.Effect<void>
  /** Waits for the next word on a server; others before it are dropped. */
  readonly status: (status: string) => Effect.Effect<{ readonly serverName: string; readonly error?: string }>
  /** Waits for the next server that is up, or is not to be. */
  readonly settled: Effect.Effect<unknown>
  /** Everything told so far. */
  readonly events: () => ReadonlyArray<HarnessEvent>
}

const told: Effect.Effect<Told> = Effect.map(Queue.unbounded<HarnessEvent>(), (queue) => {
  const all: Array<HarnessEvent> = []
  const status = (wanted: string): ReturnType<Told["status"]> =>
    Effect.flatMap(Queue.take(queue), (event) =>
      event.type === "mcp-server-status" && event.status === wanted ? Effect.succeed(event) : status(wanted)
    )
  const settled: Told["settled"] = Effect.flatMap(Queue.take(queue), (event) =>
    event.type === "mcp-server-status" && event.status !== "starting" ? Effect.void : settled
  )
  return {
    settled,
    tell: (event) =>
      Effect.sync(() => {
        all.push(event)
        Queue.offerUnsafe(queue, event)
      }),
    status,
    events: () => all
  }
})

export interface Called {
  readonly output?: ToolOutput
  readonly problem?: ToolProblem
  readonly dispatched: boolean
}

export interface Opened extends Told {
  readonly servers: SessionServers.SessionServers
  readonly call: (
    tool: string,
    args?: Schema.JsonObject,
    more?: { readonly boundTo?: string | undefined; readonly atDispatch?: Effect.Effect<unknown> }
  ) => Effect.Effect<Called>
  readonly names: () => ReadonlyArray<string>
  readonly kept: Map<string, { readonly mime: string; readonly bytes: Uint8Array }>
  readonly pids: Effect.Effect<ReadonlyArray<number>>
}

/** What the host of the tests has; only some of it is a server's business. */
const environment = { ...process.env, MODEL_KEY: "not for servers", LC_TESTS: "for everyone" }

export const sessionId = "ses_test"

/** Opens a session's servers over an owner of their own, without a host. */
export const open = (...given: ReadonlyArray<McpServer>) =>
  Effect.gen(function* () {
    const owner = yield* Effect.acquireRelease(
      Effect.sync(() => makeProcessOwner({ instanceId: "test", environment, graces: { stdinMs: 250, termMs: 250 } })),
      (owner) => owner.dispose
    )
    const servers = yield* SessionServers.make({
      owner,
      version: "0.0.0",
      withheld: [],
      redact: makeRedactor([{ name: "value", value: "a-secret-value" }]).json,
      isAliasTaken: () => false,
      isNameTaken: () => false
    })
    const { events, settled, status, tell } = yield* told
    const kept = new Map<string, { readonly mime: string; readonly bytes: Uint8Array }>()
    yield* servers.open({ sessionId, directory: process.cwd(), tell }, given)
    const call: Opened["call"] = (tool, args = {}, more = {}) =>
      Effect.gen(function* () {
        let dispatched = false
        const { atDispatch = Effect.void, boundTo = servers.bindingOf(sessionId, tool) } = more
        const running = servers.execute({
          sessionId,
          workspace: process.cwd(),
          tool,
          ...(boundTo === undefined ? {} : { boundTo }),
          arguments: args,
          beforeDispatch: Effect.andThen(
            atDispatch,
            Effect.sync(() => {
              dispatched = true
            })
          ),
          onDelta: () => Effect.void,
          onTerminal: () => Effect.void,
          ifInterrupted: () => undefined,
          keepArtifact: (mime, bytes) =>
            Effect.sync(() => {
              const id = `art_${kept.size + 1}`
              kept.set(id, { mime, bytes })
              return id
            })
        })
        assert.isDefined(running, `${tool} is no tool of this session`)
        return yield* Effect.match(running as NonNullable<typeof running>, {
          onFailure: (problem): Called => ({ problem, dispatched }),
          onSuccess: (output): Called => ({ output, dispatched })
        })
      })
    const opened: Opened = {
      servers,
      tell,
      status,
      settled,
      events,
      call,
      kept,
      names: () => servers.tools(sessionId).map((tool) => tool.qualifiedName),
      pids: Effect.map(owner.list, (list) =>
        list.flatMap(({ pid, role, state }) => (role === "mcp" && state === "running" ? [pid] : []))
      )
    }
    return opened
  })

/** Opens one server and waits until it is ready. */
export const ready = (manner: ServerManner = {}, more: Parameters<typeof server>[1] = {}) =>
  Effect.gen(function* () {
    const opened = yield* open(server(manner, more))
    yield* opened.status("ready")
    return opened
  })
