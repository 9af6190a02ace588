/**
 * The reference agent: the smallest one that keeps every promise of the ACP check, and with `--fault AGT-NNN` the one that
 * breaks exactly that promise. It is the process edge: stdin, stdout, exit.
 */
import { makeAgent } from "./Agent.ts"
import { makeServers } from "./Servers.ts"
import { makeInput } from "./Input.ts"
import { readSettings } from "./Settings.ts"
import { openState } from "./State.ts"

const settings = readSettings(process.argv.slice(2))
const { broken } = settings

const servers = makeServers(settings, { PATH: process.env["PATH"] })
const exit = (code: number): void => {
  servers.end()
  process.exit(code)
}
const agent = makeAgent(
  settings,
  servers,
  openState(settings.state),
  (message) => void process.stdout.write(`${JSON.stringify(message)}\n`),
  exit
)

process.stdout.on("error", () => exit(0))
process.stdin.on("data", makeInput(settings, agent, exit))
process.stdin.on("end", () => {
  if (broken("ACK-036")) setInterval(() => undefined, 1_000)
  else exit(0)
})

if (broken("ACK-030")) process.stdout.write("loading…\n")
