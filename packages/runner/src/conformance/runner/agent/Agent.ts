/**
 * The kit's side of the agent that a runner under test starts: the executable of the case, the lines both ways as raw bytes,
 * and what the agent does. The Agent Client Protocol is written out here, line by line, so that it can also be broken.
 */
import { Effect, type Scope } from "effect"
import { chmodSync, writeFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { signalGroup } from "@tackroom/sdk/process"
import { type KitFailed, kitFailed } from "../../Check.ts"
import { isObject, type Json, type JsonObject, parseObject } from "../../Json.ts"
import type { Frame, SeatTimeline } from "../Seen.ts"

export type RpcId = string | number

/** A request or notification that the agent got. */
export interface Received {
  readonly id: RpcId | undefined
  readonly method: string
  readonly params: JsonObject
  readonly frame: Frame
}

export type Handler = (received: Received, agent: Agent) => void

export interface Agent {
  /** The executable that the runner is to start. */
  readonly executable: string
  /** What the agent does by itself, by method; a case adds and replaces. */
  readonly handlers: Map<string, Handler>
  /** Requests and notifications it got, in order. */
  readonly received: (method?: string) => ReadonlyArray<Received>
  /** The runner's answer to a request of the agent. */
  readonly answerTo: (id: RpcId) => Frame | undefined
  readonly answersTo: (id: RpcId) => ReadonlyArray<Frame>
  readonly send: (message: JsonObject) => void
  readonly raw: (bytes: string | Uint8Array) => void
  readonly reply: (id: RpcId | undefined, result: Json) => void
  readonly fail: (id: RpcId | undefined, code: number, message: string) => void
  readonly exit: (code: number) => void
  /** Stops and goes on reading what the runner writes. */
  readonly pause: () => void
  readonly resume: () => void
  readonly paused: () => boolean
  /** Starts a child that ignores all but SIGKILL. */
  readonly startChild: () => void
  readonly ignoreSignals: () => void
  readonly isAlive: () => boolean
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const clip = (text: string): string => (text.length > 6_000 ? `${text.slice(0, 6_000)}…` : text)

const receivedOf = (frame: Frame): Received | undefined => {
  const { message } = frame
  const method = message?.["method"]
  if (message === undefined || typeof method !== "string") return undefined
  const id = message["id"]
  const params = message["params"]
  return {
    id: typeof id === "string" || typeof id === "number" ? id : undefined,
    method,
    params: isObject(params) ? params : {},
    frame
  }
}

export interface AgentPlace {
  readonly folder: string
  /** The program of the agent, and the Node that runs it. */
  readonly program: string
  readonly node: string
}

const end = (pid: number): void => {
  // The agent leads a group of its own when the runner gave it one; its child is in the same.
  if (signalGroup(pid, "SIGKILL")) return
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It is gone, which is what is wanted.
  }
}

export const make = (timeline: SeatTimeline, place: AgentPlace): Effect.Effect<Agent, KitFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly agent: Agent; readonly close: () => void }, KitFailed>((resume) => {
      const socketPath = join(place.folder, "agent.sock")
      const executable = join(place.folder, "agent")
      const frames: Array<Frame> = []
      const handlers = new Map<string, Handler>()
      const pids = new Set<number>()
      let connection: Socket | undefined
      let isPaused = false
      let ended = false
      let rest: Buffer = Buffer.alloc(0)

      const order = (message: object): void => void connection?.write(`${JSON.stringify(message)}\n`)
      const out = (bytes: Uint8Array): void => order({ t: "out", bytes: Buffer.from(bytes).toString("base64") })

      const line = (what: "received" | "sent", bytes: Uint8Array): Frame => {
        const text = Buffer.from(bytes).toString("utf8")
        const arrow = what === "received" ? "runner → agent" : "agent → runner"
        return timeline.add({
          kind: "acp",
          what,
          text: `${arrow} ${clip(text)}`,
          message: parseObject(text)
        }) as Frame
      }

      const take = (bytes: Buffer): void => {
        rest = Buffer.concat([rest, bytes])
        for (;;) {
          const end = rest.indexOf(0x0a)
          if (end < 0) return
          const one = rest.subarray(0, end)
          rest = rest.subarray(end + 1)
          const frame = line("received", one)
          frames.push(frame)
          const received = receivedOf(frame)
          if (received !== undefined) handlers.get(received.method)?.(received, agent)
          timeline.wake()
        }
      }

      const event = (message: JsonObject): void => {
        const pid = Number(message["pid"])
        switch (message["t"]) {
          case "started": {
            const env = isObject(message["env"]) ? message["env"] : {}
            const argv = Array.isArray(message["argv"]) ? message["argv"].map(String) : []
            pids.add(pid)
            timeline.add({
              kind: "process",
              what: "agent-started",
              text: `agent started as process ${pid} with arguments ${JSON.stringify(argv)}`,
              pid,
              argv,
              env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
              cwd: String(message["cwd"])
            })
            break
          }
          case "in":
            take(Buffer.from(String(message["bytes"]), "base64"))
            break
          case "paused":
            isPaused = true
            timeline.wake()
            break
          case "child":
            pids.add(pid)
            timeline.add({ kind: "process", what: "agent-child", text: `agent has a child, process ${pid}`, pid })
            break
        }
      }

      const send = (message: JsonObject): void => {
        const text = JSON.stringify({ jsonrpc: "2.0", ...message })
        line("sent", Buffer.from(text))
        out(Buffer.from(`${text}\n`))
      }

      const agent: Agent = {
        executable,
        handlers,
        received: (method) =>
          frames.flatMap((frame) => {
            const received = receivedOf(frame)
            return received === undefined || (method !== undefined && received.method !== method) ? [] : [received]
          }),
        answersTo: (id) =>
          frames.filter(
            ({ message }) => message !== undefined && message["method"] === undefined && message["id"] === id
          ),
        answerTo: (id) => agent.answersTo(id)[0],
        send,
        raw: (bytes) => {
          const all = Buffer.from(bytes)
          line("sent", all)
          out(all)
        },
        reply: (id, result) => send({ id: id ?? null, result }),
        fail: (id, code, message) => send({ id: id ?? null, error: { code, message } }),
        exit: (code) => order({ t: "exit", code }),
        pause: () => order({ t: "pause" }),
        resume: () => {
          isPaused = false
          order({ t: "resume" })
        },
        paused: () => isPaused,
        startChild: () => order({ t: "child" }),
        ignoreSignals: () => order({ t: "ignore" }),
        isAlive: () => connection !== undefined && !ended
      }

      const server = createServer((socket) => {
        connection = socket
        ended = false
        let text = ""
        socket.setEncoding("utf8")
        socket.on("data", (chunk: string) => {
          text += chunk
          const lines = text.split("\n")
          text = lines.pop() ?? ""
          for (const one of lines) {
            const message = parseObject(one)
            if (message !== undefined) event(message)
          }
        })
        socket.on("error", () => undefined)
        socket.on("close", () => {
          if (socket === connection) ended = true
          timeline.add({ kind: "process", what: "agent-ended", text: "agent ended" })
        })
      })
      const close = (): void => {
        server.close()
        connection?.destroy()
        for (const pid of pids) end(pid)
      }
      server.once("error", (cause) => resume(Effect.fail(kitFailed(`no socket for the agent: ${cause.message}`))))
      writeFileSync(
        executable,
        `#!/bin/sh\nexec ${[place.node, place.program, socketPath].map(quoted).join(" ")} "$@"\n`
      )
      chmodSync(executable, 0o755)
      server.listen(socketPath, () => resume(Effect.succeed({ agent, close })))
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ agent }) => agent))
