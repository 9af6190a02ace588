/**
 * A serve-mode program that says what a test wrote down: `Scripted.ts SCRIPT`, a JSON object of steps per op, `start` for
 * the first ones. A step is a line to write (`RUN` in it is the run's id), `{"bytes": base64}`, `{"exit": code}`,
 * `{"close": true}` for its own input, or `{"stderr": text}`.
 */
import { createInterface } from "node:readline"
import { closeSync, writeSync } from "node:fs"

type Step =
  | string
  | { readonly bytes?: string; readonly exit?: number; readonly close?: true; readonly stderr?: string }
type Script = Readonly<Record<string, ReadonlyArray<Step>>>

const script = JSON.parse(process.argv[2] ?? "{}") as Script
let run = ""

const perform = (steps: ReadonlyArray<Step>): void => {
  for (const step of steps) {
    if (typeof step === "string") {
      writeSync(1, `${step.replaceAll("RUN", run)}\n`)
      continue
    }
    if (step.bytes !== undefined) writeSync(1, Buffer.from(step.bytes, "base64"))
    if (step.stderr !== undefined) writeSync(2, step.stderr)
    if (step.close === true) closeSync(0)
    if (step.exit !== undefined) process.exit(step.exit)
  }
}

// Input that is closed by itself leaves nothing to wait for.
setInterval(() => undefined, 60_000)
perform(script["start"] ?? [])
const isClosed = (script["start"] ?? []).some((step) => typeof step === "object" && step.close === true)
const input = isClosed ? undefined : createInterface({ input: process.stdin })
input?.on("line", (line) => {
  const op = JSON.parse(line) as { readonly op: string; readonly run_id?: string }
  if (op.op === "submit") run = op.run_id ?? ""
  perform(script[op.op] ?? [])
})
input?.on("close", () => process.exit(0))
