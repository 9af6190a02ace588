/**
 * An ACP agent without a will of its own: the official SDK's agent side, steered over a loopback socket by the test. It
 * tells every request and notification that it gets, and does what it is told. Arguments: the port of the test.
 */
import { spawn } from "node:child_process"
import { closeSync, writeSync } from "node:fs"
import { connect } from "node:net"
import { Readable, Writable } from "node:stream"
import * as acp from "@agentclientprotocol/sdk"
import { onJsonLine } from "../support/JsonLines.ts"
import type { AgentTold, AgentWork } from "../support/ScriptedAgent.ts"

const socket = connect(Number(process.argv[2]), "127.0.0.1")
const tell = (told: AgentTold): void => void socket.write(`${JSON.stringify(told)}\n`)

const replies = new Map<number, (work: Extract<AgentWork, { do: "reply" }>) => void>()
const asked = new Map<string, AbortController>()
let requests = 0

const input = process.stdin
const stream = acp.ndJsonStream(
  Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
  Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>
)

const connection = acp
  .agent()
  .onRequest("*", ({ method, params }) => {
    const id = ++requests
    tell({ told: "request", id, method, params })
    return new Promise((resolve, reject) =>
      replies.set(id, ({ error, result }) =>
        error === undefined ? resolve(result) : reject(new acp.RequestError(error.code, error.message))
      )
    )
  })
  .onNotification("*", ({ method, params }) => tell({ told: "notification", method, params }))
  .connect(stream)

const ask = async (work: Extract<AgentWork, { do: "ask" }>): Promise<void> => {
  const controller = new AbortController()
  asked.set(work.key, controller)
  try {
    const result = await connection.client.request<unknown, object>(work.method, work.params, {
      cancellationSignal: controller.signal
    })
    tell({ told: "answer", key: work.key, result })
  } catch (error) {
    if (!(error instanceof acp.RequestError)) return
    tell({ told: "answer", key: work.key, error: { code: error.code, message: error.message } })
  }
}

const stubborn = `
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, () => {})
const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1")
socket.on("connect", () => socket.write(JSON.stringify({ told: "spawned", pid: process.pid }) + "\\n"))
socket.on("error", () => {})
setInterval(() => {}, 60000)`

const work = (item: AgentWork): void => {
  switch (item.do) {
    case "reply":
      replies.get(item.id)?.(item)
      break
    case "notify":
      void connection.client.notify(item.method, item.params)
      break
    case "ask":
      void ask(item)
      break
    case "takeBack":
      asked.get(item.key)?.abort()
      break
    case "write":
      writeSync(item.to === "stderr" ? 2 : 1, item.text)
      tell({ told: "done" })
      break
    case "flood":
      process.stdout.write(`${"x".repeat(item.bytes)}\n`, () => tell({ told: "done" }))
      break
    case "members": {
      const members = Array.from({ length: item.members }, (_, at) => `"k${at}":1`).join(",")
      const line = Buffer.from(`${item.head}${members}${item.tail}\n`)
      for (let at = 0; at < item.lines; at += 1) process.stdout.write(line, () => tell({ told: "done" }))
      break
    }
    case "closeOutput":
      closeSync(1)
      tell({ told: "done" })
      break
    case "ignoreSignals":
      for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const) process.on(signal, () => undefined)
      setInterval(() => undefined, 60_000)
      keepRunning = true
      tell({ told: "done" })
      break
    case "spawn":
      // It ignores what ends well-behaved programs, and tells the test of itself.
      spawn(process.execPath, ["-e", stubborn, process.argv[2] ?? ""], {
        detached: item.apart,
        stdio: "ignore"
      }).unref()
      break
    case "exit":
      // What the SDK was told to send before is sent.
      setImmediate(() => setImmediate(() => process.stdout.write("", () => process.exit(item.code))))
  }
}

let keepRunning = false
// As real agents do: the end of input is the end.
input.on("end", () => (keepRunning ? undefined : process.exit(0)))

socket.on("connect", () =>
  tell({ told: "started", pid: process.pid, argv: process.argv.slice(3), cwd: process.cwd(), env: { ...process.env } })
)
socket.on("error", () => undefined)
onJsonLine(socket, (value) => work(value as AgentWork))
