/**
 * `tee.ts FILE PROGRAM ARG…`: runs an agent and writes what passes between it and its client to FILE, a line each: who said
 * it, and the line. It changes nothing and ends as the agent ends.
 */
import { spawn } from "node:child_process"
import { appendFileSync } from "node:fs"
import type { Readable, Writable } from "node:stream"

const [file = "", program = "", ...args] = process.argv.slice(2)
const agent = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] })

const pass = (by: "client" | "agent", from: Readable, to: Writable): void => {
  let rest = ""
  from.setEncoding("utf8")
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) appendFileSync(file, `${JSON.stringify({ by, line })}\n`)
    to.write(text)
  })
  from.on("end", () => to.end())
}

pass("client", process.stdin, agent.stdin)
pass("agent", agent.stdout, process.stdout)
// A client that is gone is the agent's to notice.
for (const pipe of [agent.stdin, process.stdout]) pipe.on("error", () => undefined)
agent.on("exit", (code, signal) => {
  if (signal === null) process.exitCode = code ?? 1
  else process.kill(process.pid, signal)
})
