/** A client as an editor is one: it holds files unsaved, and runs commands in terminals of its own. Commands are real ones. */
import * as acp from "@agentclientprotocol/sdk"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { signalGroup } from "@tackroom/sdk/process"

interface Running {
  readonly child: ChildProcess
  readonly exited: Promise<acp.WaitForTerminalExitResponse>
  /** It has written something. */
  readonly spoke: Promise<unknown>
  readonly limit: number
  output: string
  truncated: boolean
}

/** What the client was asked, in order: the method's last word and what it is about. */
export type Asked = readonly [what: string, about: string]

export interface Editor {
  /** Files by their paths, as the person has them before saving. */
  readonly buffers: Map<string, string>
  readonly asked: Array<Asked>
  readonly opened: Array<acp.CreateTerminalRequest>
  /** Groups of commands that were started. */
  readonly groups: Array<number>
  readonly terminals: ReadonlyMap<string, Pick<Running, "spoke">>
  /** Answers instead of the editor; undefined leaves the request to it. */
  instead: (what: string, about: string) => Promise<never> | undefined
  readonly offer: (app: acp.ClientApp) => void
}

export const everything: acp.ClientCapabilities = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true
}

export const makeEditor = (): Editor => {
  const buffers = new Map<string, string>()
  const asked: Array<Asked> = []
  const opened: Array<acp.CreateTerminalRequest> = []
  const groups: Array<number> = []
  const terminals = new Map<string, Running>()
  let count = 0

  const terminal = (id: string): Running => {
    const running = terminals.get(id)
    if (running === undefined) throw acp.RequestError.resourceNotFound(id)
    return running
  }

  const start = (request: acp.CreateTerminalRequest): string => {
    const variables = Object.fromEntries((request.env ?? []).map(({ name, value }) => [name, value]))
    const child = spawn(request.command, request.args ?? [], {
      cwd: request.cwd ?? undefined,
      env: { PATH: process.env["PATH"], EDITOR_SAYS: "hello", ...variables },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true
    })
    const exited = once(child, "close").then(([exitCode, signal]) => ({ exitCode, signal }))
    const running: Running = {
      child,
      exited,
      spoke: once(child.stdout, "data"),
      limit: request.outputByteLimit ?? Number.POSITIVE_INFINITY,
      output: "",
      truncated: false
    }
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        running.output += text
        if (running.output.length <= running.limit) return
        running.output = running.output.slice(-running.limit)
        running.truncated = true
      })
    }
    if (child.pid !== undefined) groups.push(child.pid)
    count += 1
    terminals.set(`term-${count}`, running)
    return `term-${count}`
  }

  const kill = async ({ child, exited }: Running): Promise<void> => {
    if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL")
    await exited
  }

  const editor: Editor = {
    buffers,
    asked,
    opened,
    groups,
    terminals,
    instead: () => undefined,
    offer: (app) => {
      const answer = async <A>(what: string, about: string, own: () => A | Promise<A>): Promise<A> => {
        asked.push([what, about])
        return (await editor.instead(what, about)) ?? own()
      }
      app
        .onRequest("fs/read_text_file", ({ params: { path } }) =>
          answer("read", path, () => {
            const content = buffers.get(path)
            if (content === undefined) throw new Error("this editor has no such file")
            return { content }
          })
        )
        .onRequest("fs/write_text_file", ({ params: { content, path } }) =>
          answer("write", path, () => {
            buffers.set(path, content)
            return {}
          })
        )
        .onRequest("terminal/create", ({ params }) =>
          answer("create", params.args?.join(" ") ?? "", () => {
            opened.push(params)
            return { terminalId: start(params) }
          })
        )
        .onRequest("terminal/output", ({ params: { terminalId } }) =>
          answer("output", terminalId, () => {
            const { output, truncated } = terminal(terminalId)
            return { output, truncated }
          })
        )
        .onRequest("terminal/wait_for_exit", ({ params: { terminalId } }) =>
          answer("wait_for_exit", terminalId, () => terminal(terminalId).exited)
        )
        .onRequest("terminal/kill", ({ params: { terminalId } }) =>
          answer("kill", terminalId, async () => {
            await kill(terminal(terminalId))
            return {}
          })
        )
        .onRequest("terminal/release", ({ params: { terminalId } }) =>
          answer("release", terminalId, async () => {
            const running = terminal(terminalId)
            terminals.delete(terminalId)
            await kill(running)
            return {}
          })
        )
    }
  }
  return editor
}
