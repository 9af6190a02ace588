/** The MCP servers of the reference agent: started with a session, greeted, and ended with the agent. */
import { type ChildProcess, spawn } from "node:child_process"
import type { Settings } from "./Settings.ts"

interface Given {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

export interface Servers {
  /** Waits for no server; fails for none, unless it is broken. */
  readonly start: (servers: ReadonlyArray<unknown>, cwd: string) => Promise<void>
  readonly end: () => void
}

const greeting = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "reference", version: "1" } }
}

export const makeServers = ({ broken }: Settings, inherited: NodeJS.ProcessEnv): Servers => {
  const children: Array<ChildProcess> = []

  const startOne = ({ args, command, env }: Given, cwd: string): Promise<void> => {
    const values = Object.fromEntries(env.map(({ name, value }) => [name, value]))
    const isLeft = broken("ACK-224")
    const child = spawn(command, [...args], {
      cwd,
      env: { ...inherited, ...values },
      stdio: ["pipe", "pipe", "ignore"],
      detached: isLeft
    })
    if (isLeft) child.unref()
    else children.push(child)
    child.stdin.on("error", () => undefined)
    child.stdin.write(`${JSON.stringify(greeting)}\n`)
    const spoke = new Promise<void>((resolve) => child.stdout.once("data", () => resolve()))
    const failed = new Promise<Error>((resolve) => child.once("error", resolve))
    if (broken("ACK-222")) return Promise.race([spoke, failed]).then(() => undefined)
    if (broken("ACK-223")) return Promise.race([spoke, failed.then((error) => Promise.reject(error))])
    return Promise.resolve()
  }

  return {
    start: async (servers, cwd) => {
      if (broken("ACK-221")) return
      await Promise.all(servers.map((server) => startOne(server as Given, cwd)))
    },
    end: () => {
      for (const child of children) child.kill()
    }
  }
}
