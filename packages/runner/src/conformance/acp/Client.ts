/**
 * The kit in the place of a client: it starts the program under test in a fresh folder, writes messages as bytes, and keeps
 * every line that comes back with its bytes and its time. It answers what the agent asks as it was told, and offers nothing.
 */
import { Effect, type Scope } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as CaseFolder from "../CaseFolder.ts"
import { broken, type Broken, type KitFailed, type Witness } from "../Check.ts"
import { masked } from "../Evidence.ts"
import { at, isList, isObject, type Json, type JsonObject, sameJson } from "../Json.ts"
import * as Model from "../model/Model.ts"
import { type PipedProgram, spawnPiped } from "../peer/Program.ts"
import * as Timeline from "../Timeline.ts"
import { deadline, stretch } from "../Timing.ts"
import type { Configuration } from "./Configuration.ts"
import type { AcpTimeline, LineSeen, ProgramEnded, Seen } from "./Seen.ts"

/** A line that is a JSON object. */
export interface Frame {
  /** Which line of stdout it is. */
  readonly index: number
  readonly fields: JsonObject
}

/** An update of a session. */
export interface Update extends Frame {
  readonly sessionId: string
  readonly update: JsonObject
  readonly kind: string
}

/** A turn, from its prompt to the answer. */
export interface Turn {
  readonly answer: Frame
  /** The stop reason; empty when the answer is an error. */
  readonly stop: string
  readonly updates: ReadonlyArray<Update>
}

/** How requests for a permission are answered; `wait` leaves them to the check. */
export type Permission = "allow" | "reject" | "cancelled" | "error" | "stranger" | "wait"

export interface Client {
  readonly timeline: AcpTimeline
  /** What is kept when the program is started again. */
  readonly folder: string
  /** Where sessions work. */
  readonly work: string
  readonly program: PipedProgram
  readonly configuration: Configuration
  /** Everything of stdout, whatever it is. */
  readonly raw: () => ReadonlyArray<LineSeen>
  readonly frames: () => ReadonlyArray<Frame>
  readonly ended: () => ProgramEnded | undefined
  readonly write: (bytes: string | Uint8Array) => void
  readonly send: (message: JsonObject) => void
  /** Sends a request and gives its id, a fresh one when none is given. */
  readonly request: (method: string, params: JsonObject, id?: Json) => Json
  readonly respond: (id: Json | undefined, result: JsonObject) => void
  readonly answers: (id: Json) => ReadonlyArray<Frame>
  readonly answer: (id: Json, seconds?: number) => Effect.Effect<Frame, Broken>
  readonly call: (method: string, params: JsonObject, seconds?: number) => Effect.Effect<Frame, Broken>
  /** Calls and demands a result. */
  readonly result: (method: string, params: JsonObject, seconds?: number) => Effect.Effect<JsonObject, Broken>
  /** Calls and demands an error. */
  readonly refusal: (method: string, params: JsonObject) => Effect.Effect<JsonObject, Broken>
  /** Everything that was sent before was read. */
  readonly settled: Effect.Effect<void, Broken>
  /** `initialize`, and the login where there is one: what the agent said of itself. */
  readonly start: Effect.Effect<JsonObject, Broken>
  /** What `session/new` gave. */
  readonly setUp: (cwd?: string) => Effect.Effect<JsonObject, Broken>
  readonly session: (cwd?: string) => Effect.Effect<string, Broken>
  readonly prompt: (sessionId: string, text: string) => Json
  readonly turn: (sessionId: string, text: string, seconds?: number) => Effect.Effect<Turn, Broken>
  /** A turn whose prompt was sent before. */
  readonly turnOf: (id: Json, seconds?: number) => Effect.Effect<Turn, Broken>
  /** Sends the long prompt and waits until the agent works on it. */
  readonly working: (sessionId: string) => Effect.Effect<Json, Broken>
  readonly cancel: (sessionId: string) => void
  readonly updates: (sessionId?: string) => ReadonlyArray<Update>
  /** What the agent said in a session, or in some of its updates. */
  readonly said: (updates: ReadonlyArray<Update>) => string
  readonly permit: (how: Permission) => void
  /** Requests for a permission so far. */
  readonly asks: () => ReadonlyArray<Frame>
  readonly asked: Effect.Effect<Frame, Broken>
  readonly until: <A>(what: string, look: () => A | undefined, seconds?: number) => Effect.Effect<A, Broken>
  readonly never: (what: string, look: () => unknown, seconds: number) => Effect.Effect<void, Broken>
  readonly exited: (seconds: number) => Effect.Effect<ProgramEnded, Broken>
  /** Ends the program, by its input or else by force. */
  readonly stop: Effect.Effect<void, Broken>
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

/** The method that no agent has. */
export const noMethod = "_tackroom.conformance/nothing"

export const chunkKinds: ReadonlySet<string> = new Set([
  "user_message_chunk",
  "agent_message_chunk",
  "agent_thought_chunk",
  "tool_call",
  "tool_call_update"
])

const outcomeFor = (how: "allow" | "reject" | "cancelled" | "stranger", params: Json | undefined): JsonObject => {
  if (how === "cancelled") return { outcome: { outcome: "cancelled" } }
  if (how === "stranger") return { outcome: { outcome: "selected", optionId: "conformance-none" } }
  const options = at(params, "options")
  const chosen = (isList(options) ? options : []).find((option) => String(at(option, "kind")).startsWith(`${how}_`))
  return chosen === undefined
    ? { outcome: { outcome: "cancelled" } }
    : { outcome: { outcome: "selected", optionId: at(chosen, "optionId") ?? null } }
}

/** Starts the program under test. */
export const open = (
  configuration: Configuration,
  witness: Witness,
  former?: string
): Effect.Effect<Client, Broken | KitFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { prompts, timing } = configuration
    const folder = former ?? (yield* CaseFolder.make(configuration.keep))
    const timeline = Timeline.make<Seen>()
    yield* Effect.addFinalizer(() => Effect.sync(() => witness.saw(timeline.seen.map((entry) => masked(entry, [])))))
    const model = yield* Model.make(configuration.tools, {
      asked: (prompt, round) =>
        timeline.add({ kind: "request", what: "model", text: `round ${round}: ${prompt.slice(0, 80)}` }),
      left: () => timeline.add({ kind: "request", what: "model-left", text: "gone" })
    })
    const work = join(folder, "work")
    mkdirSync(work, { recursive: true })
    const filled = (text: string): string => text.replaceAll("{model}", model.url).replaceAll("{folder}", folder)
    const template = join(folder, "template")
    if (configuration.template !== undefined)
      writeFileSync(template, filled(readFileSync(configuration.template, "utf8")))

    let how: Permission = "allow"
    const write = (bytes: string | Uint8Array): void =>
      program.write(typeof bytes === "string" ? Buffer.from(bytes, "utf8") : bytes)
    const send = (message: JsonObject): void => {
      const text = JSON.stringify(message)
      timeline.add({ kind: "acp", what: "sent", text })
      write(`${text}\n`)
    }
    const respond = (id: Json | undefined, result: JsonObject): void => send({ jsonrpc: "2.0", id: id ?? null, result })

    /** The agent asks the client: it grants what it is told to grant, and has no other method. */
    const serve = (fields: JsonObject): void => {
      const { id, method } = fields
      if (method !== "session/request_permission") {
        return send({ jsonrpc: "2.0", id: id ?? null, error: { code: -32_601, message: "Method not found" } })
      }
      if (how === "wait") return
      if (how === "error") {
        return send({ jsonrpc: "2.0", id: id ?? null, error: { code: -32_603, message: "The dialog broke" } })
      }
      respond(id, outcomeFor(how, fields["params"]))
    }

    let rest: Array<Uint8Array> = []
    const line = (bytes: Uint8Array): void => {
      const fields = parse(bytes)
      timeline.add({
        kind: "line",
        what: "line",
        bytes,
        line: fields,
        text: Buffer.from(bytes).toString("utf8")
      })
      if (fields !== undefined && fields["method"] !== undefined && fields["id"] !== undefined) serve(fields)
    }

    const program: PipedProgram = yield* spawnPiped({
      command: configuration.command.map((word) => filled(word).replaceAll("{template}", template)),
      cwd: work,
      env: { ...configuration.baseEnv, HOME: folder, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "conformance-key" },
      onOutput: (bytes) => {
        let from = 0
        for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, from)) {
          const whole = Buffer.concat([...rest, bytes.subarray(from, end)])
          rest = []
          from = end + 1
          line(whole)
        }
        if (from < bytes.length) rest.push(bytes.slice(from))
      },
      onError: (bytes) => timeline.add({ kind: "process", what: "stderr", text: Buffer.from(bytes).toString("utf8") }),
      onEnd: (end) => timeline.add({ kind: "process", what: "ended", ...end, text: `ended ${end.code ?? end.signal}` }),
      onLeftOver: (group) => timeline.add({ kind: "process", what: "left-over", text: `group ${group} was left` })
    })

    const raw = (): ReadonlyArray<LineSeen> => timeline.seen.filter((entry) => entry.what === "line")
    const frames = (): ReadonlyArray<Frame> =>
      raw().flatMap(({ line: fields }, index) => (fields === undefined ? [] : [{ index, fields }]))
    const ended = (): ProgramEnded | undefined => timeline.seen.find((entry) => entry.what === "ended")

    const until = <A>(what: string, look: () => A | undefined, seconds = 10): Effect.Effect<A, Broken> =>
      timeline
        .until<A | ProgramEnded>(what, () => look() ?? ended(), deadline(timing, seconds))
        .pipe(
          Effect.flatMap(() => {
            const seen = look()
            return seen === undefined
              ? Effect.fail(broken(`${what}: the program ended with ${ended()?.code ?? ended()?.signal}`))
              : Effect.succeed(seen)
          })
        )

    let ids = 0
    const request = (method: string, params: JsonObject, id: Json = ++ids): Json => {
      send({ jsonrpc: "2.0", id, method, params })
      return id
    }

    const answers = (id: Json): ReadonlyArray<Frame> =>
      frames().filter(({ fields }) => fields["method"] === undefined && sameJson(fields["id"], id))
    const answer = (id: Json, seconds?: number) =>
      until(`the answer to request ${JSON.stringify(id)}`, () => answers(id)[0], seconds)
    const call = (method: string, params: JsonObject, seconds?: number) =>
      Effect.suspend(() => answer(request(method, params), seconds))
    const result = (method: string, params: JsonObject, seconds?: number): Effect.Effect<JsonObject, Broken> =>
      Effect.flatMap(call(method, params, seconds), ({ fields }) =>
        "result" in fields
          ? Effect.succeed(isObject(fields["result"]) ? fields["result"] : {})
          : Effect.fail(broken(`${method} was refused: ${JSON.stringify(fields["error"])}`))
      )

    const updates = (sessionId?: string): ReadonlyArray<Update> =>
      frames().flatMap((frame) => {
        const { fields } = frame
        const update = at(fields["params"], "update")
        const session = at(fields["params"], "sessionId")
        if (fields["method"] !== "session/update" || !isObject(update) || typeof session !== "string") return []
        if (sessionId !== undefined && session !== sessionId) return []
        return [{ ...frame, sessionId: session, update, kind: String(update["sessionUpdate"]) }]
      })

    const sessions = new Map<Json, { readonly sessionId: string; readonly from: number }>()
    const prompt = (sessionId: string, text: string): Json => {
      const from = raw().length
      const id = request("session/prompt", { sessionId, prompt: [{ type: "text", text }] })
      sessions.set(id, { sessionId, from })
      return id
    }
    const turnOf = (id: Json, seconds = 20): Effect.Effect<Turn, Broken> =>
      Effect.map(answer(id, seconds), (frame) => {
        const turn = sessions.get(id)
        const stop = at(frame.fields["result"], "stopReason")
        return {
          answer: frame,
          stop: typeof stop === "string" ? stop : "",
          updates: updates(turn?.sessionId).filter(({ index }) => index >= (turn?.from ?? 0) && index < frame.index)
        }
      })

    const asks = (): ReadonlyArray<Frame> =>
      frames().filter(({ fields }) => fields["method"] === "session/request_permission")
    const setUp = (cwd = work): Effect.Effect<JsonObject, Broken> => result("session/new", { cwd, mcpServers: [] }, 30)

    return {
      timeline,
      folder,
      work,
      program,
      configuration,
      raw,
      frames,
      ended,
      write,
      send,
      request,
      respond,
      answers,
      answer,
      call,
      result,
      refusal: (method, params) =>
        Effect.flatMap(call(method, params), ({ fields }) =>
          isObject(fields["error"])
            ? Effect.succeed(fields["error"])
            : Effect.fail(broken(`${method} was not refused with ${JSON.stringify(params).slice(0, 200)}`))
        ),
      settled: Effect.suspend(() => Effect.asVoid(call(noMethod, {}))),
      start: Effect.gen(function* () {
        const said = yield* result("initialize", { protocolVersion: 1, clientCapabilities: {} }, 30)
        if (configuration.auth !== undefined) yield* result("authenticate", { methodId: configuration.auth }, 60)
        return said
      }),
      setUp,
      session: (cwd) =>
        Effect.flatMap(setUp(cwd), ({ sessionId }) =>
          typeof sessionId === "string"
            ? Effect.succeed(sessionId)
            : Effect.fail(broken("session/new gave no session id"))
        ),
      prompt,
      turn: (sessionId, text, seconds) => Effect.suspend(() => turnOf(prompt(sessionId, text), seconds)),
      turnOf,
      working: (sessionId) =>
        Effect.gen(function* () {
          const from = raw().length
          const id = prompt(sessionId, prompts.long)
          yield* until("the agent to work", () =>
            updates(sessionId).find((update) => update.index >= from && chunkKinds.has(update.kind))
          )
          return id
        }),
      cancel: (sessionId) => send({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId } }),
      updates,
      said: (some) =>
        some
          .flatMap(({ kind, update }) => {
            const text = at(update, "content", "text")
            return kind === "agent_message_chunk" && typeof text === "string" ? [text] : []
          })
          .join(""),
      permit: (next) => {
        how = next
      },
      asks,
      asked: until("a request for a permission", () => asks()[0], 20),
      until,
      never: (what, look, seconds) => timeline.never(what, look, stretch(timing, seconds)),
      exited: (seconds) => until("the end of the program", ended, seconds),
      stop: Effect.gen(function* () {
        program.endInput()
        yield* until("the end of the program", ended, 5).pipe(
          Effect.catchTag("Broken", () =>
            Effect.suspend(() => {
              program.signal("SIGKILL")
              return until("the end of the killed program", ended, 5)
            })
          )
        )
      })
    }
  })
