/**
 * The reference program of serve mode: the smallest one that keeps every promise of the serve check, and with
 * `--fault SRV-NNN` the one that breaks exactly that promise. It is the process edge: stdin, stdout, signals, exit.
 */
import { randomUUID } from "node:crypto"
import { constants } from "node:os"
import { makeConversation } from "./Conversation.ts"
import { makeInput } from "./Input.ts"
import { makeOutput } from "./Output.ts"
import { readSettings } from "./Settings.ts"
import { openState } from "./State.ts"

const settings = readSettings(process.argv.slice(2))
const { broken, capabilities } = settings

const state = openState(settings.state, settings.session, randomUUID())
if (state === undefined) {
  process.stderr.write("there is no such session\n")
  process.exit(3)
}

const exit = (code: number): void => {
  // What was written is flushed first; a driver that is gone takes nothing.
  process.stdout.end(() => process.exit(code))
  setTimeout(() => process.exit(code), 1_000)
}

const output = makeOutput(settings, (text) => void process.stdout.write(text))
const conversation = makeConversation(settings, state, output, () => exit(broken("SRV-227") ? 1 : 0))
const input = makeInput(settings, conversation.take)

process.stdout.on("error", () => {
  if (!broken("SRV-018")) conversation.drain("gone")
})
process.stdin.on("data", input.push)
process.stdin.on("end", () => {
  input.finish()
  if (!broken("SRV-222")) conversation.drain("eof")
})

let signals = 0
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    signals += 1
    if (signals > 1) process.exit(128 + constants.signals[signal])
    process.stdin.pause()
    if (!broken("SRV-016")) conversation.drain("signal")
  })
}

if (broken("SRV-010")) process.stdout.write("loading…\n")
if (broken("SRV-370")) output.put({ type: "pong" })
const last = broken("SRV-296") ? undefined : state.last()
output.put({
  type: "ready",
  pid: process.pid,
  protocol_version: 1,
  capabilities,
  ...(settings.bare
    ? {}
    : {
        server: { name: "reference", version: "1" },
        session_id: state.session,
        resumed: state.resumed,
        ...(state.resumed && last !== undefined
          ? { last_run: { answer: last.answer, status: last.status, errors: last.errors } }
          : {})
      })
})
