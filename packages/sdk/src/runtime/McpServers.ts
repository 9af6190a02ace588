/**
 * The MCP servers of sessions (section 12, D-39): what callers give is checked and taken apart, so that a session's config
 * holds names of values and this process the values; what an opening gets is put together again; and what drivers tell of
 * their servers is known here while the session is open.
 *
 * Implements RT-301, RT-303, RT-304.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { ConfigInvalid, SessionInvalid } from "@tackroom/protocol"
import { SessionMcp, type HarnessEvent, type McpEntry } from "@tackroom/protocol/events"
import { canonicalJson } from "@tackroom/protocol/text"
import { Context, Effect, Exit, Latch, Layer, Option, Schema } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { McpServer } from "../harness/Harness.ts"
import { resolveEffectiveMcp, type EffectiveMcpServer } from "../mcp/Resolver.ts"
import {
  entryProblem,
  isSessionSecret,
  sessionSecretsOf,
  tellingOf,
  withoutValues,
  type StoredEntries,
  type ValueField,
  type Values
} from "../mcp/SessionEntries.ts"
import type { SessionRow } from "../store/Rows.ts"
import { problemOf } from "./Decoding.ts"
import { Notices } from "./Notices.ts"
import { Options } from "./Options.ts"
import { Secrets } from "./Secrets.ts"

/** Where a server of an open session stands. @since 0.1.0 */
export interface McpServerState {
  readonly name: string
  readonly status: "starting" | "ready" | "failed" | "cancelled"
  readonly error?: string
  /** So many of its tools no agent is given. */
  readonly leftOut?: number
}

/** What a caller gave, checked and without values. */
export interface AcceptedMcp {
  /** Undefined: none. */
  readonly stored: SessionMcp | undefined
  readonly values: StoredEntries["values"]
}

/** What an opening of a session gets, and what it does not. */
export interface McpOpening {
  readonly servers: ReadonlyArray<McpServer>
  /** They cannot be started: a field or a value is missing, or the harness takes no such server. */
  readonly failed: ReadonlyArray<{ readonly name: string; readonly error: string }>
}

interface States {
  readonly servers: Map<string, McpServerState>
  /** Open while none is starting. */
  readonly settled: Latch.Latch
}

const decode = Schema.decodeUnknownExit(SessionMcp)

const decodeLeftOut = Schema.decodeUnknownOption(Schema.Struct({ server: Schema.String, count: Schema.Int }))

/** What a driver notes of tools that its agent is not given. */
const noted = (
  { servers }: States,
  { code, details }: Extract<HarnessEvent, { readonly type: "harness-notice" }>
): void => {
  if (code !== "mcp_tools_left_out") return
  const left = Option.getOrUndefined(decodeLeftOut(details))
  const known = left === undefined ? undefined : servers.get(left.server)
  if (left !== undefined && known !== undefined) servers.set(left.server, { ...known, leftOut: left.count })
}

const none: AcceptedMcp = { stored: undefined, values: new Map() }

const isNames = (mcp: SessionMcp): mcp is ReadonlyArray<string> => Array.isArray(mcp)

const namesOf = (mcp: SessionMcp | undefined): ReadonlyArray<string> => (mcp !== undefined && isNames(mcp) ? mcp : [])

type Takes = HarnessCapabilities["mcp"]

/** What a harness would have to support for a server, and does not. */
const lacking = (takes: Takes, transport: McpServer["transport"]): string | undefined => {
  if (takes === "none") return "MCP servers"
  return transport === "remote" && takes !== "stdio+http" ? "MCP servers over HTTP" : undefined
}

export class McpServers extends Context.Service<
  McpServers,
  {
    /** Checks what a caller gives for a session, or as a change of its config. */
    readonly accept: (
      sessionId: string,
      given: unknown,
      kind: "session" | "config"
    ) => Effect.Effect<AcceptedMcp, SessionInvalid | ConfigInvalid>
    /** Keeps the values of a session, in place of those before. */
    readonly keep: (sessionId: string, accepted: AcceptedMcp) => Effect.Effect<void>
    /** The session runs with exactly these, and none of them failed. */
    readonly isInForce: (row: Pick<SessionRow, "id" | "config">, accepted: AcceptedMcp) => boolean
    /** What the harness would have to support for these servers, and does not: an operation that is unsupported. */
    readonly unsupported: (mcp: SessionMcp | undefined, takes: Takes) => string | undefined
    readonly opening: (row: Pick<SessionRow, "id" | "config">, takes: Takes) => Effect.Effect<McpOpening>
    /** An opening begins: nothing is known of its servers but what cannot be started. */
    readonly begin: (sessionId: string, opening: McpOpening) => Effect.Effect<void>
    /** A driver told something. */
    readonly observe: (sessionId: string, event: HarnessEvent) => void
    /** What is known of the servers of an open session. A harness whose agent starts them tells nothing. */
    readonly states: (sessionId: string) => ReadonlyArray<McpServerState>
    /** Completes when no server of the session is starting. */
    readonly settled: (sessionId: string) => Effect.Effect<void>
    /** The session is not open any more. */
    readonly closed: (sessionId: string) => void
    /** There is no such session any more. */
    readonly forget: (sessionId: string) => void
  }
>()("@tackroom/sdk/runtime/McpServers") {
  static readonly layer = Layer.effect(
    McpServers,
    Effect.gen(function* () {
      const options = yield* Options
      const secrets = yield* Secrets
      const notices = yield* Notices
      const states = new Map<string, States>()
      const named = new Map<string, ReadonlySet<string>>()

      const accept = Effect.fnUntraced(function* (
        sessionId: string,
        given: unknown,
        kind: "session" | "config"
      ): Effect.fn.Return<AcceptedMcp, SessionInvalid | ConfigInvalid> {
        const problem = (field: string, expected: string): SessionInvalid | ConfigInvalid =>
          kind === "session" ? new SessionInvalid({ field, expected }) : new ConfigInvalid({ field, expected })
        const decoded = decode(given)
        if (Exit.isFailure(decoded)) {
          const found = problemOf(decoded)
          const path = found?.path ?? ""
          return yield* problem(path === "" ? "mcp" : `mcp.${path}`, found?.expected ?? "names or entries")
        }
        const mcp = decoded.value
        if (isNames(mcp)) {
          if (mcp.length === 0) return none
          return mcp.every((name) => options.mcp.has(name)) && new Set(mcp).size === mcp.length
            ? { stored: mcp, values: new Map() }
            : yield* problem("mcp", "names of configured servers, each once")
        }
        const bad = entryProblem(sessionId, mcp)
        if (bad !== undefined) return yield* problem(bad.field, bad.expected)
        const { entries, values } = withoutValues(sessionId, mcp)
        return Object.keys(entries).length === 0 ? none : { stored: entries, values }
      })

      const isHere = (path: string): Effect.Effect<boolean> =>
        platform.realPath(path).pipe(
          Effect.as(true),
          Effect.catch(() => Effect.succeed(false))
        )

      /** A file that is not there yet has a place all the same; the root of the machine says nothing. */
      const isPlace = (path: string): Effect.Effect<boolean> =>
        Effect.flatMap(isHere(path), (here) => {
          const parent = path.slice(0, path.lastIndexOf("/"))
          return here || parent === "" ? Effect.succeed(here) : isHere(parent)
        })

      const isSecret = (field: ValueField, value: string): Effect.Effect<boolean> => {
        const telling = tellingOf(field, value)
        if (telling._tag !== "PlainIfPaths") return Effect.succeed(telling._tag === "Secret")
        return Effect.map(Effect.forEach(telling.paths, isPlace), (places) => !places.every(Boolean))
      }

      /** The entries that a config names or has. */
      const entriesOf = (mcp: SessionMcp | undefined): Readonly<Record<string, McpEntry>> => {
        if (mcp !== undefined && !isNames(mcp)) return mcp
        return Object.fromEntries(
          namesOf(mcp).flatMap((name) => {
            const entry = options.mcp.get(name)
            return entry === undefined ? [] : [[name, entry] as const]
          })
        )
      }

      /** Values that the session's config does not name any more are gone. */
      const rename = (sessionId: string, wanted: ReadonlySet<string>): void => {
        for (const name of named.get(sessionId) ?? []) if (!wanted.has(name)) secrets.drop(name)
        if (wanted.size === 0) named.delete(sessionId)
        else named.set(sessionId, wanted)
      }

      const keep = Effect.fnUntraced(function* (sessionId: string, { stored, values }: AcceptedMcp) {
        rename(sessionId, stored === undefined || isNames(stored) ? new Set() : sessionSecretsOf(stored))
        for (const [name, { value }] of values) secrets.keep(name, value)
        for (const { field, label, value } of values.values()) {
          if (yield* isSecret(field, value)) secrets.known.add(label, value, sessionId)
        }
      })

      /** The values of a server, or the first that is not here. */
      const valuesOf = Effect.fnUntraced(function* (field: string, given: Values) {
        const values: Array<readonly [string, string]> = []
        for (const [key, value] of Object.entries(given)) {
          const found = typeof value === "string" ? value : yield* secrets.get(value.secret)
          if (found === undefined) {
            const isGiven = typeof value === "object" && isSessionSecret(value.secret)
            return isGiven
              ? `the value of ${field} ${key} was given to another process and is not kept: give it again`
              : `the value of ${field} ${key} is not known here`
          }
          values.push([key, found])
        }
        return Object.fromEntries(values)
      })

      const filled = (server: EffectiveMcpServer): Effect.Effect<McpServer | string> => {
        const { name } = server
        return server.transport === "stdio"
          ? Effect.map(valuesOf("the variable", server.env), (env) =>
              typeof env === "string"
                ? env
                : { name, transport: "stdio", command: server.command, args: server.args, env }
            )
          : Effect.map(valuesOf("the header", server.headers), (headers) =>
              typeof headers === "string" ? headers : { name, transport: "remote", url: server.url, headers }
            )
      }

      const opening = Effect.fnUntraced(function* (row: Pick<SessionRow, "id" | "config">, takes: Takes) {
        const servers: Array<McpServer> = []
        const failed: Array<{ readonly name: string; readonly error: string }> = []
        for (const name of namesOf(row.config.mcp)) {
          if (!options.mcp.has(name)) failed.push({ name, error: "no server of this name is configured here" })
        }
        const effective = resolveEffectiveMcp({ managed: {}, user: entriesOf(row.config.mcp) })
        for (const [name, { apply, error }] of Object.entries(effective.status)) {
          if (apply === "blocked") failed.push({ name, error: error ?? "it cannot be started" })
        }
        for (const server of Object.values(effective.mcp)) {
          const { name, transport } = server
          const lacks = lacking(takes, transport)
          const ready = lacks === undefined ? yield* filled(server) : `this harness does not support ${lacks}`
          if (typeof ready === "string") failed.push({ name, error: ready })
          else servers.push(ready)
        }
        return { servers, failed }
      })

      const observe = (sessionId: string, event: HarnessEvent): void => {
        const known = states.get(sessionId)
        if (known === undefined) return
        if (event.type === "harness-notice") return noted(known, event)
        if (event.type !== "mcp-server-status") return
        const { error, serverName: name, status } = event
        const leftOut = status === "starting" ? undefined : known.servers.get(name)?.leftOut
        known.servers.set(name, {
          name,
          status,
          ...(error === undefined ? {} : { error }),
          ...(leftOut === undefined ? {} : { leftOut })
        })
        const isStarting = [...known.servers.values()].some((server) => server.status === "starting")
        if (isStarting) known.settled.closeUnsafe()
        else known.settled.openUnsafe()
      }

      const closed = (sessionId: string): void => {
        states.get(sessionId)?.settled.openUnsafe()
        states.delete(sessionId)
      }

      return McpServers.of({
        accept,
        keep,
        isInForce: ({ config, id }, { stored, values }) =>
          canonicalJson(config.mcp ?? null) === canonicalJson(stored ?? null) &&
          [...values].every(([name, { value }]) => secrets.kept(name) === value) &&
          ![...(states.get(id)?.servers.values() ?? [])].some(({ status }) => status === "failed"),
        opening,
        unsupported: (mcp, takes) => {
          const transports = Object.values(entriesOf(mcp)).flatMap(({ disabled, type }) =>
            disabled === true ? [] : [type]
          )
          return transports.map((type) => lacking(takes, type)).find((lacks) => lacks !== undefined)
        },
        begin: (sessionId, { failed }) =>
          Effect.suspend(() => {
            closed(sessionId)
            states.set(sessionId, { servers: new Map(), settled: Latch.makeUnsafe(true) })
            const events = failed.map(
              ({ error, name }) => ({ type: "mcp-server-status", serverName: name, status: "failed", error }) as const
            )
            for (const event of events) observe(sessionId, event)
            return notices.tell(sessionId, events)
          }),
        observe,
        states: (sessionId) => [...(states.get(sessionId)?.servers.values() ?? [])],
        settled: (sessionId) => Effect.suspend(() => states.get(sessionId)?.settled.await ?? Effect.void),
        closed,
        forget: (sessionId) => {
          closed(sessionId)
          rename(sessionId, new Set())
        }
      })
    })
  )
}
