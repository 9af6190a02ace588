/** The test's end of the scripted agent: what it was told, and what it is to do. Requests are answered by rules or by hand. */
import { createServer, type Server, type Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { onJsonLine } from "./JsonLines.ts"
import { Told } from "./Told.ts"

export interface RpcError {
  readonly code: number
  readonly message: string
}

/** What the agent tells. */
export type AgentTold =
  | {
      readonly told: "started"
      readonly pid: number
      readonly argv: ReadonlyArray<string>
      readonly cwd: string
      readonly env: Readonly<Record<string, string | undefined>>
    }
  | { readonly told: "request"; readonly id: number; readonly method: string; readonly params: unknown }
  | { readonly told: "notification"; readonly method: string; readonly params: unknown }
  | { readonly told: "answer"; readonly key: string; readonly result?: unknown; readonly error?: RpcError }
  | { readonly told: "spawned"; readonly pid: number }
  /** The process with this pid is gone: its connection ended. */
  | { readonly told: "gone"; readonly pid: number }
  | { readonly told: "done" }

/** What the agent is to do. */
export type AgentWork =
  | { readonly do: "reply"; readonly id: number; readonly result?: unknown; readonly error?: RpcError }
  | { readonly do: "notify"; readonly method: string; readonly params: object }
  | { readonly do: "ask"; readonly key: string; readonly method: string; readonly params: object }
  | { readonly do: "takeBack"; readonly key: string }
  | { readonly do: "write"; readonly to: "stdout" | "stderr"; readonly text: string }
  | { readonly do: "flood"; readonly bytes: number }
  /** Writes lines with so many members between `head` and `tail`; tells of each when it is written. */
  | {
      readonly do: "members"
      readonly head: string
      readonly members: number
      readonly tail: string
      readonly lines: number
    }
  | { readonly do: "closeOutput" }
  | { readonly do: "ignoreSignals" }
  | { readonly do: "spawn"; readonly apart: boolean }
  | { readonly do: "exit"; readonly code: number }

/** An answer, or `undefined` to answer by hand. */
export type Rule = (params: never) => { readonly result?: unknown; readonly error?: RpcError } | undefined

export const sessionId = "c-81"

const usual: Readonly<Record<string, Rule>> = {
  initialize: () => ({
    result: { protocolVersion: 1, agentInfo: { name: "otter", version: "2.3" }, agentCapabilities: {} }
  }),
  authenticate: () => ({ result: {} }),
  "session/new": () => ({ result: { sessionId } })
}

export const allow = { optionId: "allow", name: "Allow", kind: "allow_once" }
export const reject = { optionId: "reject", name: "Reject", kind: "reject_once" }

const isPrompt = (told: AgentTold): told is Extract<AgentTold, { told: "request" }> =>
  told.told === "request" && told.method === "session/prompt"

export class ScriptedAgent {
  readonly told = new Told<AgentTold>()
  readonly #server: Server
  readonly #rules: Readonly<Record<string, Rule>>
  #socket: Socket | undefined
  #asked = 0

  private constructor(server: Server, rules: Readonly<Record<string, Rule>>) {
    this.#server = server
    this.#rules = { ...usual, ...rules }
    server.on("connection", (socket) => {
      let pid = 0
      socket.on("error", () => undefined)
      socket.on("close", () => this.told.add({ told: "gone", pid }))
      onJsonLine(socket, (value) => {
        const told = value as AgentTold
        if (told.told === "started") this.#socket = socket
        if (told.told === "started" || told.told === "spawned") pid = told.pid
        this.told.add(told)
        if (told.told !== "request") return
        const answer = this.#rules[told.method]?.(told.params as never)
        if (answer !== undefined) this.do({ do: "reply", id: told.id, ...answer })
      })
    })
  }

  static async listen(rules: Readonly<Record<string, Rule>> = {}): Promise<ScriptedAgent> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return new ScriptedAgent(server, rules)
  }

  /** The words that start it. */
  get command(): ReadonlyArray<string> {
    const address = this.#server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return [process.execPath, fileURLToPath(new URL("../programs/agent.ts", import.meta.url)), String(port)]
  }

  do(work: AgentWork): void {
    this.#socket?.write(`${JSON.stringify(work)}\n`)
  }

  async doAndWait(work: AgentWork): Promise<void> {
    const before = this.told.all.filter(({ told }) => told === "done").length
    this.do(work)
    await this.told.nth(before + 1, ({ told }) => told === "done")
  }

  started(): Promise<Extract<AgentTold, { told: "started" }>> {
    return this.told.first((told): told is Extract<AgentTold, { told: "started" }> => told.told === "started")
  }

  /** The nth prompt: its text, and how to end its turn. */
  async prompt(n = 1) {
    const { id, params } = await this.told.nth(n, isPrompt)
    const { prompt } = params as { readonly prompt: ReadonlyArray<{ readonly type: string; readonly text: string }> }
    return {
      blocks: prompt,
      text: prompt[0]?.text ?? "",
      end: (stopReason = "end_turn") => this.do({ do: "reply", id, result: { stopReason } }),
      fail: (error: RpcError) => this.do({ do: "reply", id, error })
    }
  }

  get promptCount(): number {
    return this.told.all.filter(isPrompt).length
  }

  request(method: string, n = 1) {
    return this.told.nth(
      n,
      (told): told is Extract<AgentTold, { told: "request" }> => told.told === "request" && told.method === method
    )
  }

  update(update: object): void {
    this.do({ do: "notify", method: "session/update", params: { sessionId, update } })
  }

  say(text: string): void {
    this.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
  }

  /** Asks for permission; the promise is the answer. */
  async ask(
    options: ReadonlyArray<object> = [allow, reject],
    toolCall: object = { toolCallId: "t1", title: "Edit src/a.ts", kind: "edit" }
  ): Promise<Extract<AgentTold, { told: "answer" }>> {
    return this.askAs(`ask-${++this.#asked}`, options, toolCall)
  }

  async askAs(key: string, options: ReadonlyArray<object>, toolCall: object) {
    this.do({ do: "ask", key, method: "session/request_permission", params: { sessionId, toolCall, options } })
    return this.told.first(
      (told): told is Extract<AgentTold, { told: "answer" }> => told.told === "answer" && told.key === key
    )
  }

  /** Starts a process that ignores what ends others, in the agent's group or apart from it; its pid. */
  async spawn(apart: boolean, n = 1): Promise<number> {
    this.do({ do: "spawn", apart })
    const { pid } = await this.told.nth(
      n,
      (told): told is Extract<AgentTold, { told: "spawned" }> => told.told === "spawned"
    )
    return pid
  }

  /** Completes when the process is gone. */
  async gone(pid: number): Promise<void> {
    await this.told.first((told) => told.told === "gone" && told.pid === pid)
  }

  close(): void {
    this.#socket?.destroy()
    this.#server.close()
  }
}
