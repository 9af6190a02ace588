/**
 * The reference runner: the smallest program that keeps every promise of the runner check, and with `--fault CHK-NNN` the one
 * that breaks exactly that promise. It is the process edge: terminal, signals, exit.
 */
import { constants } from "node:os"
import { readFileSync } from "node:fs"
import { startAgent } from "./Agent.ts"
import { makeConversation } from "./Conversation.ts"
import { makeInput, makeLines } from "./Input.ts"
import { open } from "./Opening.ts"
import { makePane } from "./Pane.ts"
import { makePosts } from "./Posts.ts"
import { readSettings } from "./Settings.ts"

const { stdin, stdout } = process
const endpointFile = (home: string): { readonly baseUrl?: string; readonly token?: string } => {
  try {
    return JSON.parse(readFileSync(`${home}/activity-endpoint.json`, "utf8")) as { baseUrl: string; token: string }
  } catch {
    return {}
  }
}
const settings = readSettings(process.argv.slice(2), process.env, endpointFile)
const { broken, env, scale } = settings

const enableTerminal = (): void => {
  if (!stdin.isTTY) return
  stdin.setRawMode(true)
  stdout.write("\u001b[?2004h")
}
if (!broken("CHK-002")) enableTerminal()

stdout.on("error", () => undefined)
const pane = makePane((text) => void stdout.write(text))
let nativeRef: string | undefined
let ending = false

const leave = (code: number): void => {
  if (broken("CHK-003")) {
    // Node restores the terminal by itself, except when it cannot.
    process.kill(process.pid, "SIGKILL")
    return
  }
  if (stdin.isTTY) {
    stdout.write("\u001b[?2004l")
    stdin.setRawMode(false)
  }
  process.exit(code)
}

const posts = makePosts(settings, Date.now, () => nativeRef)
const conversation = makeConversation(settings, () => agent, posts, pane, Date.now)

/** Sends what is queued, for 1.5 s at most, and ends. */
const flushAndLeave = (code: number): void => {
  const limit = setTimeout(() => leave(code), 1_500)
  posts.whenIdle(() => {
    clearTimeout(limit)
    leave(code)
  })
}

let exitCode: number | undefined
const agent = startAgent(settings, {
  request: conversation.request,
  update: conversation.update,
  exited: (code, signal) => {
    pane.line("exit", `agent ended: ${signal === null ? `code ${code}` : `signal ${signal}`}`)
    agent.signal("SIGKILL")
    if (conversation.agentExited()) flushAndLeave(exitCode ?? (code === 0 ? 0 : 1))
  }
})

const endAgent = (code: number): void => {
  exitCode = code
  setTimeout(agent.endInput, 500 * scale)
  setTimeout(() => agent.signal("SIGTERM"), 1_000 * scale)
  setTimeout(() => agent.signal("SIGKILL"), 3_000 * scale)
}

const shutdown = (code: number): void => {
  if (ending) return
  ending = true
  conversation.close()
  endAgent(code)
}
for (const signal of ["SIGHUP", "SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => shutdown(128 + constants.signals[signal]))
}

const listener = { block: conversation.block, cancel: conversation.cancel }
if (stdin.isTTY) {
  const input = makeInput(settings, listener)
  stdin.on("data", input.feed)
  stdin.on("end", () => shutdown(129))
  stdin.on("error", () => shutdown(129))
} else {
  const input = makeLines(settings, { ...listener, end: () => conversation.whenDone(() => endAgent(0)) })
  stdin.on("data", input.feed)
  stdin.on("end", input.end)
}

pane.line("seat", `starting ${settings.harness}`)
open(settings, agent, process.cwd(), (opened) => {
  if (opened._tag === "Closed") {
    pane.line("error", opened.why)
    endAgent(opened.code)
    return
  }
  if (broken("CHK-002")) enableTerminal()
  nativeRef = opened.nativeRef
  pane.line("seat", `ready: ${nativeRef}`)
  const first = env["OPENRIG_FIRST_INPUT"]
  conversation.begin(nativeRef, first === undefined ? undefined : readFileSync(first, "utf8"))
})
