/**
 * The program that a runner under test starts as its agent. It has no mind: it hands every byte to the kit over a socket and
 * does what the kit says, so that what an agent does and what is seen stand on one time axis, in the case.
 *
 * The first argument is the socket, put there by the case's executable: nothing comes from the environment, which a runner
 * scrubs. It ends when the kit is gone.
 */
import { spawn } from "node:child_process"
import { connect } from "node:net"
import { createInterface } from "node:readline"

const [, , socketPath = "", ...argv] = process.argv
const kit = connect(socketPath)
const tell = (message: object): void => void kit.write(`${JSON.stringify(message)}\n`)

kit.once("error", () => process.exit(70))
kit.once("close", () => process.exit(0))
tell({ t: "started", pid: process.pid, argv, env: process.env, cwd: process.cwd() })

process.stdin.on("data", (bytes: Buffer) => tell({ t: "in", bytes: bytes.toString("base64") }))
process.stdin.on("end", () => tell({ t: "eof" }))
process.stdin.on("error", () => undefined)
process.stdout.on("error", () => undefined)

interface Order {
  readonly t: "out" | "exit" | "pause" | "resume" | "child" | "ignore"
  readonly bytes?: string
  readonly code?: number
}

/** A child in this process's group that only SIGKILL ends, and that would end by itself some minutes later. */
const stubborn = "trap '' TERM HUP INT; sleep 120 & wait; wait; wait"

createInterface({ input: kit }).on("line", (line) => {
  const order = JSON.parse(line) as Order
  switch (order.t) {
    case "out":
      process.stdout.write(Buffer.from(order.bytes ?? "", "base64"))
      break
    case "exit":
      // What was ordered before is written first.
      process.stdout.write("", () => process.exit(order.code ?? 0))
      break
    case "pause":
      process.stdin.pause()
      tell({ t: "paused" })
      break
    case "resume":
      process.stdin.resume()
      break
    case "child": {
      const child = spawn("/bin/sh", ["-c", stubborn], { stdio: "ignore" })
      child.once("spawn", () => tell({ t: "child", pid: child.pid }))
      break
    }
    case "ignore":
      process.on("SIGTERM", () => undefined)
      process.on("SIGHUP", () => undefined)
      break
  }
})
