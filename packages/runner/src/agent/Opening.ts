/**
 * Opening the agent's conversation: a new one, or exactly the one that was named (SEAT-222 to SEAT-230). On a resume no new
 * conversation is ever started, and only the agent's own word makes one missing.
 *
 * It writes nothing and ends nobody: it says what happened.
 */
import { realpathSync } from "node:fs"
import { NativeRef } from "@tackroom/protocol/seat"
import { Data, Effect, Result, Schema, SchemaParser } from "effect"
import type { AcpConnection, agentMethods, AgentGone, AgentRefused } from "./AcpConnection.ts"

/** How a resume may reopen. */
export type Reopen = "auto" | "resume" | "load"

export interface OpeningOptions {
  readonly methods: typeof agentMethods
  readonly cwd: string
  readonly version: string
  readonly auth: string | undefined
  readonly modelOption: { readonly configId: string; readonly value: string } | undefined
  /** The conversation to reopen; `undefined` opens a new one. */
  readonly resumeRef: string | undefined
  readonly reopen: Reopen
  readonly notFoundCodes: ReadonlyArray<number>
  readonly listIsComplete: boolean
  /** For each step. */
  readonly limitMs: number
}

/** Name and version of the agent, as it gave them. */
export interface AgentInfo {
  readonly name: string
  readonly version: string
}

/** How an opening came out. `info` is known once the agent was initialised. */
export type Opened =
  | { readonly _tag: "Opened"; readonly nativeRef: string; readonly resumed: boolean }
  /** A new conversation could not be opened. */
  | { readonly _tag: "Failed"; readonly why: string }
  /** Another conversation than the one that was named. */
  | { readonly _tag: "Other"; readonly nativeRef: string }
  | { readonly _tag: "Missing"; readonly why: string }
  | { readonly _tag: "Unconfirmed"; readonly why: string }

export interface Opening {
  readonly outcome: Opened
  readonly info: AgentInfo | undefined
}

/** A step failed; the words are for the pane. */
class StepFailed extends Data.TaggedError("StepFailed")<{ readonly why: string; readonly code: number | undefined }> {}

const Initialized = Schema.Struct({
  protocolVersion: Schema.Finite,
  agentInfo: Schema.optionalKey(Schema.NullOr(Schema.Struct({ name: Schema.String, version: Schema.String }))),
  agentCapabilities: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})
const readInitialized = SchemaParser.decodeUnknownResult(Initialized)
const readCreated = SchemaParser.decodeUnknownResult(Schema.Struct({ sessionId: NativeRef }))
const readPage = SchemaParser.decodeUnknownResult(
  Schema.Struct({
    sessions: Schema.Array(Schema.Struct({ sessionId: Schema.String, cwd: Schema.optionalKey(Schema.Json) })),
    nextCursor: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
)

const protocolVersion = 1
const listLimitMs = 10_000
const mostPages = 100

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What the agent can do about reopening. */
interface Abilities {
  readonly resume: boolean
  readonly load: boolean
  readonly list: boolean
}

const abilitiesOf = (capabilities: unknown): Abilities => {
  const all = isObject(capabilities) ? capabilities : {}
  const session = isObject(all["sessionCapabilities"]) ? all["sessionCapabilities"] : {}
  return { resume: isObject(session["resume"]), load: all["loadSession"] === true, list: isObject(session["list"]) }
}

/** What a walk over the agent's list showed. */
type Listed =
  | { readonly _tag: "Found"; readonly cwd: string | undefined }
  /** Read to its end, without it. */
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Unreadable" }

const realPath = (path: string): string =>
  Result.getOrElse(
    Result.try(() => realpathSync(path)),
    () => path
  )

export const open = (connection: AcpConnection, options: OpeningOptions): Effect.Effect<Opening> => {
  const { cwd, methods, resumeRef } = options

  const failed = (name: string) => (error: AgentRefused | AgentGone) =>
    error._tag === "AgentRefused"
      ? new StepFailed({ why: `${name} failed: ${error.message} (${error.code})`, code: error.code })
      : new StepFailed({ why: `${name} failed: the agent ended the connection`, code: undefined })

  const step = (name: string, method: string, params: object): Effect.Effect<unknown, StepFailed> =>
    Effect.suspend(() => connection.request(method, params)).pipe(
      Effect.mapError(failed(name)),
      Effect.timeoutOrElse({
        duration: options.limitMs,
        orElse: () =>
          Effect.fail(
            new StepFailed({ why: `${name} had no answer after ${options.limitMs / 1_000} s`, code: undefined })
          )
      })
    )

  const initialize = Effect.gen(function* () {
    const result = yield* step("initialize", methods.initialize, {
      protocolVersion,
      clientCapabilities: {},
      clientInfo: { name: "tackroom-seat", version: options.version }
    })
    const read = readInitialized(result)
    if (Result.isFailure(read)) {
      return yield* new StepFailed({ why: "initialize failed: its result is not usable", code: undefined })
    }
    const { agentCapabilities, agentInfo, protocolVersion: version } = read.success
    if (version !== protocolVersion) {
      return yield* new StepFailed({
        why: `the agent speaks version ${version} of the protocol, this runner version ${protocolVersion}`,
        code: undefined
      })
    }
    return { abilities: abilitiesOf(agentCapabilities), info: agentInfo ?? undefined }
  })

  const authenticate: Effect.Effect<unknown, StepFailed> =
    options.auth === undefined ? Effect.void : step("authenticate", methods.authenticate, { methodId: options.auth })

  const setModel = (sessionId: string): Effect.Effect<unknown, StepFailed> =>
    options.modelOption === undefined
      ? Effect.void
      : step("setting the model", methods.session.setConfigOption, { sessionId, ...options.modelOption })

  const create = Effect.gen(function* () {
    const result = yield* step("session/new", methods.session.new, { cwd, mcpServers: [] })
    const created = readCreated(result)
    if (Result.isFailure(created)) {
      return yield* new StepFailed({
        why: "session/new failed: it named no conversation by an id of 1 to 1024 bytes",
        code: undefined
      })
    }
    return created.success.sessionId
  })

  /** Walks the agent's list. A page that cannot be read decides nothing; the empty text is a cursor like any other. */
  const walk = (wanted: string): Effect.Effect<Listed> =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      let cursor: string | undefined
      for (let page = 0; page < mostPages; page++) {
        const result = yield* step("session/list", methods.session.list, cursor === undefined ? {} : { cursor })
        const read = readPage(result)
        if (Result.isFailure(read)) return { _tag: "Unreadable" as const }
        const row = read.success.sessions.find(({ sessionId }) => sessionId === wanted)
        if (row !== undefined) {
          return { _tag: "Found" as const, cwd: typeof row.cwd === "string" ? row.cwd : undefined }
        }
        const next = read.success.nextCursor
        if (next === undefined || next === null) return { _tag: "Absent" as const }
        if (seen.has(next)) return { _tag: "Unreadable" as const }
        seen.add(next)
        cursor = next
      }
      return { _tag: "Unreadable" as const }
    }).pipe(
      Effect.timeoutOrElse({ duration: listLimitMs, orElse: () => Effect.succeed({ _tag: "Unreadable" as const }) }),
      Effect.catch(() => Effect.succeed({ _tag: "Unreadable" as const }))
    )

  /** What a refused reopen means. */
  const judge = (error: StepFailed, ref: string, abilities: Abilities): Effect.Effect<Opened> =>
    Effect.gen(function* () {
      const notFound = error.code !== undefined && options.notFoundCodes.includes(error.code)
      const unconfirmed: Opened = { _tag: "Unconfirmed", why: error.why }
      const missing: Opened = { _tag: "Missing", why: error.why }
      if (!abilities.list || (!notFound && !options.listIsComplete)) return notFound ? missing : unconfirmed
      const listed = yield* walk(ref)
      if (listed._tag === "Found") {
        const elsewhere = listed.cwd !== undefined && realPath(listed.cwd) !== cwd
        const why = elsewhere ? "it belongs to another working folder" : "the agent lists it and does not reopen it"
        return { _tag: "Unconfirmed", why: `${error.why}; ${why}` }
      }
      return notFound || listed._tag === "Absent" ? missing : unconfirmed
    })

  const reopen = (ref: string, abilities: Abilities): Effect.Effect<Opened> =>
    Effect.gen(function* () {
      const { reopen: wanted } = options
      const way =
        abilities.resume && wanted !== "load" ? "resume" : abilities.load && wanted !== "resume" ? "load" : undefined
      if (way === undefined) {
        return { _tag: "Unconfirmed", why: "the agent offers no way to reopen a conversation" } satisfies Opened
      }
      const method = way === "resume" ? methods.session.resume : methods.session.load
      const result = yield* Effect.result(step(method, method, { sessionId: ref, cwd, mcpServers: [] }))
      if (Result.isFailure(result)) return yield* judge(result.failure, ref, abilities)
      const named = isObject(result.success) ? result.success["sessionId"] : undefined
      if (typeof named === "string" && named !== ref) return { _tag: "Other", nativeRef: named } satisfies Opened
      return yield* setModel(ref).pipe(
        Effect.as({ _tag: "Opened", nativeRef: ref, resumed: true } satisfies Opened),
        Effect.catch(({ why }) => Effect.succeed<Opened>({ _tag: "Unconfirmed", why }))
      )
    })

  const fail = (why: string): Opened =>
    resumeRef === undefined ? { _tag: "Failed", why } : { _tag: "Unconfirmed", why }

  return Effect.gen(function* () {
    const ready = yield* Effect.result(initialize)
    if (Result.isFailure(ready)) return { outcome: fail(ready.failure.why), info: undefined }
    const { abilities, info } = ready.success
    const outcome = yield* authenticate.pipe(
      Effect.andThen(
        resumeRef === undefined
          ? Effect.tap(create, setModel).pipe(
              Effect.map((nativeRef): Opened => ({ _tag: "Opened", nativeRef, resumed: false }))
            )
          : reopen(resumeRef, abilities)
      ),
      Effect.catch(({ why }) => Effect.succeed(fail(why)))
    )
    return { outcome, info }
  })
}
