/**
 * A driver of serve mode as a stranger writes one: it starts the real program, writes ops and reads lines.
 *
 * It owns no process (`RawHost`) and no folder (`Lab`). Whatever a test does, at its end every line that was written is
 * checked against the published schema, and the lines of each run for their numbers (SRV-066, SRV-069).
 */
import { Validator, type Schema } from "@cfworker/json-schema"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { Lab } from "./Lab.ts"
import { hostProgram, type Loose, type RawHost } from "./RawHost.ts"

export interface Driver {
  readonly host: RawHost
  /** Every line so far, parsed. */
  readonly lines: ReadonlyArray<Loose>
  readonly op: (op: object) => void
  /** The first line that `wanted` is true of. */
  readonly line: (what: string, wanted: (line: Loose) => boolean) => Promise<Loose>
  readonly ready: () => Promise<Loose>
  readonly result: (runId: string) => Promise<Loose>
  /** Submits and waits for the result. */
  readonly run: (runId: string, prompt: string, more?: object) => Promise<Loose>
  readonly notify: (runId: string, kind: string, nth?: number) => Promise<Loose>
  /** The `nth` refusal, from 1. */
  readonly error: (nth: number) => Promise<Loose>
  readonly of: (runId: string) => ReadonlyArray<Loose>
  /** Kinds of notifies and types of other lines of a run, in order. */
  readonly story: (runId: string) => ReadonlyArray<string>
  readonly errors: () => ReadonlyArray<Loose>
}

const schemaFile = new URL("../../../packages/protocol/schemas/serve-lines.schema.json", import.meta.url)
const validator = new Validator(JSON.parse(readFileSync(schemaFile, "utf8")) as Schema, "2020-12")

const enough = 40

const checkLines = (lines: ReadonlyArray<Loose>): void => {
  const runs = new Map<string, number>()
  const looked = new Map<string, number>()
  for (const line of lines) {
    const sort = `${line.type} ${line.kind}`
    const count = looked.get(sort) ?? 0
    looked.set(sort, count + 1)
    // A validator in JavaScript takes its time: of thousands of lines of a sort the first are looked at.
    const checked = count < enough ? validator.validate(line) : { valid: true, errors: [] }
    if (!checked.valid) {
      const problem = checked.errors.map(({ error, instanceLocation }) => `${instanceLocation}: ${error}`).join("\n")
      throw new Error(`a line breaks the published schema: ${JSON.stringify(line).slice(0, 500)}\n${problem}`)
    }
    if (line.seq === undefined) continue
    const before = runs.get(line.run_id) ?? 0
    if (line.seq !== before + 1) throw new Error(`line ${line.seq} of run ${line.run_id} follows ${before}`)
    runs.set(line.run_id, line.seq)
  }
}

export interface ServeOptions {
  readonly config?: object
  readonly env?: Readonly<Record<string, string>>
  readonly deadlineMs?: number
}

let started = 0

/** Starts `tackroom serve` in a lab. */
export const startServe = (lab: Lab, flags: ReadonlyArray<string> = [], options: ServeOptions = {}): Driver => {
  started += 1
  const file = join(lab.root, `config-${started}.json`)
  writeFileSync(file, JSON.stringify({ ...lab.config, ...options.config }))
  const flagsOf = flags.includes("--project") || flags.includes("--session") ? [] : ["--project", lab.workspace]
  const host = lab.start({
    command: [process.execPath, hostProgram, "serve", "--config", file, ...flagsOf, ...flags],
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs })
  })
  const lines: ReadonlyArray<Loose> = host.answers
  onTestFinished(() => checkLines(lines))

  const line: Driver["line"] = (what, wanted) => host.until(what, () => lines.find(wanted))
  const of = (runId: string) => lines.filter((one) => one.run_id === runId)
  const errors = () => lines.filter(({ type }) => type === "error")
  const driver: Driver = {
    host,
    lines,
    op: (op) => host.write(`${JSON.stringify(op)}\n`),
    line,
    ready: () => line("ready", ({ type }) => type === "ready"),
    result: (runId) => line(`the result of ${runId}`, ({ run_id, type }) => type === "result" && run_id === runId),
    run: (runId, prompt, more = {}) => {
      driver.op({ op: "submit", run_id: runId, prompt, ...more })
      return driver.result(runId)
    },
    notify: (runId, kind, nth = 1) =>
      host.until(
        `notify ${kind} ${nth} of ${runId}`,
        () => of(runId).filter((one) => one.kind === kind)[nth - 1] as Loose
      ),
    error: (nth) => host.until(`error ${nth}`, () => errors()[nth - 1] as Loose),
    of,
    story: (runId) => of(runId).map(({ kind, type }) => kind ?? type),
    errors
  }
  return driver
}
