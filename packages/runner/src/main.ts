#!/usr/bin/env node
/**
 * The program `tackroom-seat`. The terminal and the signals are taken before anything else is loaded: a message that is
 * pasted while the program starts must find raw mode, and no way out may leave it.
 */
import { takeSignals } from "./terminal/Signals.ts"
import { takeTerminal } from "./terminal/Terminal.ts"

const terminal = takeTerminal()
const signals = takeSignals()

const internalFault = 70

/** No cause is shown: it may hold what the agent or a person wrote. */
const fail = (): void => {
  terminal.restore()
  process.stderr.write("error > internal fault\n")
  process.exit(internalFault)
}
process.on("uncaughtException", fail)
process.on("unhandledRejection", fail)

// The pane belongs to the seat: what a library would print is a line of the seat, or nothing.
let complain: (text: string) => void = () => undefined
const complaint = (...parts: ReadonlyArray<unknown>): void =>
  complain(parts.filter((part) => typeof part !== "object").join(" "))
for (const name of ["log", "info", "warn", "error", "debug"] as const) console[name] = complaint

// No top-level await: the program is bundled as CommonJS.
void import("./command/main.ts").then(({ run }) =>
  run({
    terminal,
    signals,
    argv: process.argv.slice(2),
    environment: process.env,
    onComplaint: (listener) => {
      complain = listener
    },
    exit: (code) => process.exit(code)
  })
)
