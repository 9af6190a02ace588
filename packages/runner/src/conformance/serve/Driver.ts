/**
 * The kit in the place of a driving program: it starts the program under test in a fresh folder, writes ops as bytes, and
 * keeps every line that comes back with its bytes and its time.
 */
import { Effect, type Scope } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as CaseFolder from "../CaseFolder.ts"
import { broken, type Broken, type KitFailed, type Witness } from "../Check.ts"
import { masked } from "../Evidence.ts"
import { type PipedProgram, spawnPiped } from "../peer/Program.ts"
import * as Timeline from "../Timeline.ts"
import { deadline, stretch } from "../Timing.ts"
import type { Configuration } from "./Configuration.ts"
import * as Model from "../model/Model.ts"
import { isObject, type Json, type JsonObject } from "../Json.ts"
import type { LineSeen, ProgramEnded, Seen, ServeTimeline } from "./Seen.ts"

/** A line that is a JSON object, with what a check asks it. */
export interface Line {
  readonly at: number
  readonly bytes: Uint8Array
  readonly fields: JsonObject
  readonly type: string
}

/** The lines of a run, from `start` to `result`. */
export interface RunSeen {
  readonly lines: ReadonlyArray<Line>
  readonly result: Line
}

export interface Driver {
  readonly timeline: ServeTimeline
  readonly folder: string
  readonly program: PipedProgram
  readonly lines: () => ReadonlyArray<Line>
  /** Everything of stdout, whatever it is. */
  readonly raw: () => ReadonlyArray<LineSeen>
  readonly ended: () => ProgramEnded | undefined
  readonly send: (op: JsonObject) => void
  readonly write: (bytes: string | Uint8Array) => void
  readonly until: <A>(what: string, look: () => A | undefined, seconds?: number) => Effect.Effect<A, Broken>
  readonly never: (what: string, look: () => unknown, seconds: number) => Effect.Effect<void, Broken>
  /** Milliseconds that something may take at most; stretched on a slow machine. */
  readonly within: (seconds: number) => number
  readonly pause: (ms: number) => Effect.Effect<void>
  readonly ready: Effect.Effect<Line, Broken>
  /** Whether `ready` names the capability; only after it came. */
  readonly has: (capability: string) => boolean
  /** The reply to an op: the control line with its id. */
  readonly reply: (opId: string, seconds?: number) => Effect.Effect<Line, Broken>
  /** Sends an op with an id of its own and waits for the error it gets. */
  readonly refusal: (op: JsonObject) => Effect.Effect<Line, Broken>
  /** Sends a ping and waits for its pong: everything sent before was examined. */
  readonly settled: Effect.Effect<void, Broken>
  readonly submit: (runId: string, prompt: string, more?: JsonObject) => void
  readonly runLines: (runId: string) => ReadonlyArray<Line>
  readonly result: (runId: string, seconds?: number) => Effect.Effect<RunSeen, Broken>
  readonly run: (runId: string, prompt: string, more?: JsonObject) => Effect.Effect<RunSeen, Broken>
  readonly notify: (runId: string, kind: string, seconds?: number) => Effect.Effect<Line, Broken>
  readonly notified: (runId: string, kind: string) => ReadonlyArray<Line>
  readonly exited: (seconds: number) => Effect.Effect<ProgramEnded, Broken>
}

export interface DriverOptions {
  readonly args?: ReadonlyArray<string>
  /** The folder of another case of the same check: the program finds what the former one left. */
  readonly folder?: string
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const parse = (bytes: Uint8Array): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A field of an object in a field. */
export const inside = (value: Json | undefined, ...names: ReadonlyArray<string>): Json | undefined => {
  let found = value
  for (const name of names) found = isObject(found) ? found[name] : undefined
  return found
}

export const isControl = (line: Line): boolean => ["ready", "hello", "pong", "error"].includes(line.type)

/** Starts the program under test. */
export const open = (
  configuration: Configuration,
  witness: Witness,
  options: DriverOptions = {}
): Effect.Effect<Driver, Broken | KitFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { timing } = configuration
    const folder = options.folder ?? (yield* CaseFolder.make(configuration.keep))
    const timeline = Timeline.make<Seen>()
    yield* Effect.addFinalizer(() => Effect.sync(() => witness.saw(timeline.seen.map((entry) => masked(entry, [])))))
    const model = yield* Model.make(configuration.tools, {
      asked: (prompt, round) => timeline.add({ kind: "request", what: "model", prompt, text: `round ${round}` }),
      left: () => timeline.add({ kind: "request", what: "model-left", text: "gone" })
    })
    const work = join(folder, "work")
    mkdirSync(work, { recursive: true })
    const filled = (text: string): string => text.replaceAll("{model}", model.url).replaceAll("{folder}", folder)
    const template = join(folder, "template")
    if (configuration.template !== undefined)
      writeFileSync(template, filled(readFileSync(configuration.template, "utf8")))
    let rest: Array<Uint8Array> = []

    const program = yield* spawnPiped({
      command: [
        ...configuration.command.map((word) => filled(word).replaceAll("{template}", template)),
        ...(options.args ?? [])
      ],
      cwd: work,
      env: { ...configuration.baseEnv, HOME: folder, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "conformance-key" },
      onOutput: (bytes) => {
        let from = 0
        for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, from)) {
          const line = Buffer.concat([...rest, bytes.subarray(from, at)])
          rest = []
          from = at + 1
          timeline.add({ kind: "line", what: "line", bytes: line, line: parse(line), text: line.toString("utf8") })
        }
        if (from < bytes.length) rest.push(bytes.slice(from))
      },
      onError: (bytes) => timeline.add({ kind: "process", what: "stderr", text: Buffer.from(bytes).toString("utf8") }),
      onEnd: (how) => timeline.add({ kind: "process", what: "ended", ...how, text: `ended ${how.code ?? how.signal}` }),
      onLeftOver: (group) => timeline.add({ kind: "process", what: "left-over", text: `group ${group} was left` })
    })

    const raw = (): ReadonlyArray<LineSeen> => timeline.seen.filter((entry) => entry.what === "line")
    const lines = (): ReadonlyArray<Line> =>
      raw().flatMap(({ at, bytes, line }) =>
        line === undefined ? [] : [{ at, bytes, fields: line, type: String(line["type"]) }]
      )
    const ended = (): ProgramEnded | undefined => timeline.seen.find((entry) => entry.what === "ended")
    const within = (seconds: number): number => deadline(timing, seconds)

    const until = <A>(what: string, look: () => A | undefined, seconds = 5): Effect.Effect<A, Broken> =>
      timeline.until(what, look, within(seconds))

    const write = (bytes: string | Uint8Array): void => {
      program.write(typeof bytes === "string" ? Buffer.from(bytes, "utf8") : bytes)
    }
    const send = (op: JsonObject): void => {
      const text = JSON.stringify(op)
      timeline.add({ kind: "op", what: "op", text })
      write(`${text}\n`)
    }

    let ops = 0
    const fresh = (): string => `kit-${++ops}`

    const reply = (opId: string, seconds?: number) =>
      until(
        `the reply to ${opId}`,
        () => lines().find((line) => isControl(line) && line.fields["op_id"] === opId),
        seconds
      )

    const runLines = (runId: string): ReadonlyArray<Line> => lines().filter((line) => line.fields["run_id"] === runId)

    const result = (runId: string, seconds = 10) =>
      until(
        `the result of run ${runId}`,
        () => {
          const found = runLines(runId)
          const last = found.find((line) => line.type === "result")
          return last === undefined ? undefined : { lines: found.slice(0, found.indexOf(last) + 1), result: last }
        },
        seconds
      )

    const notified = (runId: string, kind: string): ReadonlyArray<Line> =>
      runLines(runId).filter((line) => line.type === "notify" && line.fields["kind"] === kind)

    const submit = (runId: string, prompt: string, more: JsonObject = {}): void =>
      send({ op: "submit", run_id: runId, prompt, ...more })

    const first = (): Line | undefined => lines().find((line) => line.type === "ready")
    const driver: Driver = {
      timeline,
      folder,
      program,
      lines,
      raw,
      ended,
      send,
      write,
      until,
      never: (what, look, seconds) => timeline.never(what, look, stretch(timing, seconds)),
      within,
      pause: (ms) => Effect.sleep(ms),
      ready: Effect.suspend(() =>
        until(
          "the ready line",
          () => {
            const line = first()
            if (line !== undefined) return line
            const end = ended()
            return end === undefined ? undefined : end
          },
          30
        )
      ).pipe(
        Effect.flatMap((seen) =>
          "fields" in seen
            ? Effect.succeed(seen)
            : Effect.fail(broken(`the program ended with ${seen.code ?? seen.signal} before it was ready`))
        )
      ),
      has: (capability) => {
        const names = first()?.fields["capabilities"]
        return Array.isArray(names) && names.includes(capability)
      },
      reply,
      refusal: (op) =>
        Effect.suspend(() => {
          const opId = fresh()
          send({ ...op, op_id: opId })
          return Effect.flatMap(reply(opId), (line) =>
            line.type === "error" ? Effect.succeed(line) : Effect.fail(broken(`${String(op["op"])} was not refused`))
          )
        }),
      settled: Effect.suspend(() => {
        const opId = fresh()
        send({ op: "ping", op_id: opId })
        return Effect.asVoid(reply(opId))
      }),
      submit,
      runLines,
      result,
      run: (runId, prompt, more) =>
        Effect.suspend(() => {
          submit(runId, prompt, more)
          return result(runId)
        }),
      notified,
      notify: (runId, kind, seconds) =>
        until(`the notify ${kind} of run ${runId}`, () => notified(runId, kind)[0], seconds),
      exited: (seconds) => until("the end of the program", ended, seconds)
    }
    return driver
  })
