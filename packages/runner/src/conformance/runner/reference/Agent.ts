/**
 * The agent process of the reference runner: JSON-RPC lines over its pipes. It leads a group of its own, and a guard ends that
 * group when this process dies without doing it.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import type { Settings } from "./Settings.ts"

export type Id = string | number

// What an agent sends may be anything; each reader looks for what it needs.
export type Message = Record<string, unknown>

export const isRecord = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

export interface AgentListener {
  readonly request: (id: Id, method: string, params: Message) => void
  readonly update: (params: Message) => void
  readonly exited: (code: number | null, signal: string | null) => void
}

export interface Agent {
  readonly pid: number
  /** `written` is called when the agent's pipe took all of it. */
  readonly request: (method: string, params: Message, answered: (answer: Answer) => void, written?: () => void) => void
  readonly notify: (method: string, params: Message) => void
  readonly reply: (id: Id, answer: Message) => void
  readonly endInput: () => void
  readonly signal: (signal: NodeJS.Signals) => void
}

/** What the agent gets of the environment; nothing else, and no secret. */
const kept = new Set(
  "PATH HOME USER LOGNAME SHELL TERM LANG TZ TMPDIR OPENRIG_NODE_ID OPENRIG_SESSION_NAME OPENRIG_RUNTIME".split(" ")
)

const environment = ({ broken, env }: Settings): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && (kept.has(name) || name.startsWith("LC_") || broken("CHK-200")) ? [[name, value]] : []
    )
  )

const guardScript =
  'read line && exit 0; kill -s TERM -- "-$1" 2>/dev/null; sleep 1; kill -s KILL -- "-$1" 2>/dev/null; exit 0'

/** One shell that waits on a pipe; end of file without a word means that its runner died. */
const startGuard = (pgid: number): { readonly dismiss: () => void } => {
  const guard = spawn("/bin/sh", ["-c", guardScript, "guard", String(pgid)], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  guard.unref()
  guard.stdin.on("error", () => undefined)
  return { dismiss: () => void guard.stdin.write("done\n") }
}

export const startAgent = (settings: Settings, listener: AgentListener): Agent => {
  const { broken, env } = settings
  const [command = "", ...args] = settings.agent
  const model = env["OPENRIG_MODEL"]
  const child: ChildProcessWithoutNullStreams = spawn(
    command,
    model === undefined || broken("CHK-080") ? args : [...args, "--model", model],
    { env: environment(settings), detached: true, stdio: "pipe" }
  )
  const pid = child.pid ?? -1
  const guard = broken("CHK-181") ? undefined : startGuard(pid)
  const pending = new Map<Id, (answer: Answer) => void>()
  let nextId = 0
  let rest: Buffer = Buffer.alloc(0)

  const write = (message: Message, written?: () => void): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`, () => written?.())

  const take = (text: string): void => {
    let message: unknown
    try {
      message = JSON.parse(text)
    } catch {
      if (broken("CHK-201")) process.exit(1)
      return
    }
    if (!isRecord(message)) return
    const { id, method } = message
    if (typeof method !== "string") {
      if (typeof id !== "number") return
      const answered = pending.get(id)
      pending.delete(id)
      return answered?.(message)
    }
    const params = isRecord(message["params"]) ? message["params"] : {}
    if (typeof id === "string" || typeof id === "number") listener.request(id, method, params)
    else if (method === "session/update") listener.update(params)
  }

  child.stdin.on("error", () => undefined)
  child.stderr.resume()
  child.stdout.on("data", (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    for (;;) {
      const end = rest.indexOf(0x0a)
      if (end < 0) return
      const line = rest.toString("utf8", 0, end)
      rest = rest.subarray(end + 1)
      for (const part of broken("CHK-082") ? line.split("\u2028") : [line]) take(part)
    }
  })
  child.once("error", () => listener.exited(127, null))
  child.once("exit", (code, signal) => {
    guard?.dismiss()
    listener.exited(code, signal)
  })

  return {
    pid,
    request: (method, params, answered, written) => {
      nextId += 1
      pending.set(nextId, answered)
      write({ id: nextId, method, params }, written)
    },
    notify: (method, params) => write({ method, params }),
    reply: (id, answer) => write({ id, ...answer }),
    endInput: () => void child.stdin.end(),
    signal: (signal) => {
      try {
        process.kill(broken("CHK-180") ? pid : -pid, signal)
      } catch {
        // It is gone already.
      }
    }
  }
}
