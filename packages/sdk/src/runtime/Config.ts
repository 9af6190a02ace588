/**
 * What a session runs with (4.4), and what its harness offers. Live queries are never answered from a catalog.
 *
 * Implements RT-046 to RT-048, RT-060, RT-065 to RT-068.
 *
 * @since 0.1.0
 */
import {
  ConfigInvalid,
  HarnessNotRegistered,
  ScopeMismatch,
  SessionImmutableField,
  SessionInvalid,
  SessionTurnInProgress,
  UnsupportedOperation,
  type RuntimeError
} from "@tackroom/protocol"
import { SessionConfigUpdate, type ConfigOption, type HarnessRef, type SessionConfig } from "@tackroom/protocol/events"
import { Context, Effect, Exit, Layer, Schema } from "effect"
import { isAgentHarnessAccess } from "../harness/Definitions.ts"
import { harnessKey, type HarnessDriver, type HarnessFactory, type ModelOption } from "../harness/Harness.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import { ActiveTurns, type Opened } from "./ActiveTurns.ts"
import { withDeadline } from "./Deadlines.ts"
import { problemOf } from "./Decoding.ts"
import { Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { McpServers, type AcceptedMcp } from "./McpServers.ts"
import { Minting } from "./Minting.ts"
import { harnessOf, NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { Sessions } from "./Sessions.ts"
import type { SessionRow } from "../store/Rows.ts"

/** One harness's answer; an error is passed on, never replaced (RT-066). */
export type OptionsResult =
  | { readonly harness: string; readonly ok: true; readonly options: ReadonlyArray<ConfigOption> }
  | { readonly harness: string; readonly ok: false; readonly error: RuntimeError }

export interface PermissionModesResult {
  readonly modes: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly level?: "ask" | "auto" | "full"
  }>
  readonly currentModeId?: string
  readonly unsupported?: boolean
  readonly appliesFrom: "next-turn" | "next-session"
}

const decodeUpdate = Schema.decodeUnknownExit(SessionConfigUpdate)
const cacheMs = 60_000
const immutable = ["instructions", "group"] as const
const reserved = ["handoff", "permissionState", "permissionCeiling"] as const

export class Config extends Context.Service<
  Config,
  {
    readonly read: (sessionId: string) => Effect.Effect<SessionConfig, RuntimeError>
    readonly update: (
      sessionId: string,
      update: SessionConfigUpdate,
      directory?: string
    ) => Effect.Effect<SessionConfig, RuntimeError>
    readonly options: (
      directory: string,
      filter?: { readonly harness?: string; readonly sessionId?: string }
    ) => Effect.Effect<ReadonlyArray<OptionsResult>, RuntimeError>
    readonly models: (directory: string, harness: HarnessRef) => Effect.Effect<ReadonlyArray<ModelOption>, RuntimeError>
    readonly permissionModes: (sessionId: string) => Effect.Effect<PermissionModesResult, RuntimeError>
    readonly setPermissionMode: (
      sessionId: string,
      modeId: string
    ) => Effect.Effect<PermissionModesResult, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const journal = yield* Journal
      const hub = yield* Hub
      const sessions = yield* Sessions
      const natives = yield* NativeSessions
      const registry = yield* HarnessRegistry
      const actives = yield* ActiveTurns
      const options = yield* Options
      const minting = yield* Minting
      const mcp = yield* McpServers
      const cache = new Map<string, { readonly at: number; readonly options: ReadonlyArray<ConfigOption> }>()

      const apply = (config: SessionConfig, update: SessionConfigUpdate): SessionConfig => {
        const next: Record<string, unknown> = { ...config }
        for (const [key, value] of Object.entries(update)) {
          if (value === null) delete next[key]
          else if (value !== undefined) next[key] = value
        }
        return next as unknown as SessionConfig
      }

      /** Whether an open session can be closed and opened again with other servers (ACP-073). */
      const replaceable = Effect.fnUntraced(function* (
        row: SessionRow,
        servers: AcceptedMcp,
        { capabilities }: Opened
      ): Effect.fn.Return<void, RuntimeError> {
        if (actives.get(row.id) !== undefined) return yield* new SessionTurnInProgress({ sessionId: row.id })
        const harness = harnessKey(harnessOf(row))
        const operation = mcp.unsupported(servers.stored, capabilities.mcp)
        if (operation !== undefined) return yield* new UnsupportedOperation({ harness, operation })
        if (capabilities.resume === "none" && row.lastTurn !== null) {
          return yield* new UnsupportedOperation({ harness, operation: "a change of MCP servers" })
        }
      })

      const update = Effect.fnUntraced(function* (
        sessionId: string,
        given: SessionConfigUpdate,
        directory?: string
      ): Effect.fn.Return<SessionConfig, RuntimeError> {
        const decoded = decodeUpdate(given)
        if (Exit.isFailure(decoded)) {
          const problem = problemOf(decoded)
          return yield* new ConfigInvalid({
            field: problem?.path || "update",
            expected: problem?.expected ?? "a config update"
          })
        }
        const change = decoded.value
        const row = yield* sessions.row(sessionId)
        if (directory !== undefined && directory !== row.directory) return yield* new ScopeMismatch({ sessionId })
        for (const field of immutable) {
          if (field in change) return yield* new SessionImmutableField({ sessionId, field })
        }
        for (const field of reserved) {
          if (field in change) return yield* new SessionInvalid({ field, expected: "not to be set by a caller" })
        }
        const harness = change.harness
        if (harness !== undefined && harnessKey(harness) !== harnessKey(harnessOf(row))) {
          if (actives.get(sessionId) !== undefined) return yield* new SessionTurnInProgress({ sessionId })
          return yield* new UnsupportedOperation({ harness: harnessKey(harnessOf(row)), operation: "handoff" })
        }
        const { mcp: wanted, ...rest } = change
        const servers = wanted === undefined ? undefined : yield* mcp.accept(sessionId, wanted ?? [], "config")
        const isNew = servers !== undefined && !mcp.isInForce(row, servers)
        const opened = natives.opened(sessionId)
        if (isNew && opened !== undefined) yield* replaceable(row, servers, opened)
        let accepted = apply(row.config, servers === undefined ? rest : { ...rest, mcp: servers.stored ?? null })
        if (opened !== undefined && Object.keys(rest).length > 0) {
          const answer = yield* Effect.result(opened.driver.configure(opened.binding, rest))
          if (answer._tag === "Success") accepted = { ...accepted, ...answer.success }
          else if (answer.failure._tag !== "UnsupportedOperation") return yield* Effect.fail(answer.failure)
          else return yield* Effect.fail(answer.failure)
        }
        const policy = options.sessionPolicy?.({
          id: sessionId,
          workspaceId: row.workspaceId,
          directory: row.directory,
          harness: harnessOf(row)
        })
        accepted = {
          ...accepted,
          permissionCeiling: policy?.permissionCeiling ?? row.config.permissionCeiling ?? options.permissionCeiling
        }
        if (isNew) {
          // The next opening has the new servers; there is no way to change those of an open conversation.
          yield* natives.close(sessionId)
          yield* mcp.keep(sessionId, servers)
        }
        yield* journal.outside(sessionId, [{ type: "config-update", config: accepted }])
        hub.touch(sessionId, "row")
        return accepted
      })

      const probe = <A, E>(harness: string, operation: string, call: Effect.Effect<A, E>) =>
        withDeadline(call, { ms: options.probeTimeoutMs, harness, operation })

      const liveOptions = Effect.fnUntraced(function* (key: string, driver: HarnessDriver, directory: string) {
        const at = `${key}\u0000${directory}`
        const known = cache.get(at)
        if (known !== undefined && minting.now() - known.at < cacheMs) return known.options
        const found = yield* probe(key, "configOptions", driver.configOptions(directory))
        cache.set(at, { at: minting.now(), options: found })
        return found
      })

      /** The harnesses of that key or id: registered, or found when they are asked for by their key. */
      const named = (wanted: string | undefined): ReadonlyArray<HarnessFactory> => {
        if (wanted === undefined) return registry.factories
        const registered = registry.factories.filter(
          (factory) => harnessKey(factory) === wanted || factory.id === wanted
        )
        const [access, ...id] = wanted.split(":")
        if (registered.length > 0 || access === undefined || !isAgentHarnessAccess(access)) return registered
        const resolved = registry.factory({ access, id: id.join(":") })
        return resolved === undefined ? [] : [resolved]
      }

      const modesOf = Effect.fnUntraced(function* (
        sessionId: string
      ): Effect.fn.Return<PermissionModesResult, RuntimeError> {
        const row = yield* sessions.row(sessionId)
        const driver = yield* natives.driver(row)
        const capabilities = yield* driver.capabilities({ directory: row.directory, sessionId })
        const current = row.config.permissionMode
        const base = { appliesFrom: "next-turn" as const, ...(current === undefined ? {} : { currentModeId: current }) }
        if (!capabilities.permissionModes) return { modes: [], unsupported: true, ...base }
        const all = yield* liveOptions(harnessKey(harnessOf(row)), driver, row.directory)
        const option = all.find((candidate) => candidate.category === "mode" || candidate.id === "permissionMode")
        return {
          modes: (option?.selectOptions ?? []).map((mode) => ({ id: mode.id, name: mode.name ?? mode.id })),
          ...base
        }
      })

      return Config.of({
        read: (sessionId) => Effect.map(sessions.row(sessionId), (row) => row.config),
        update,
        options: (directory, filter) =>
          Effect.forEach(
            named(filter?.harness),
            (factory): Effect.Effect<OptionsResult> => {
              const key = harnessKey(factory)
              return registry.driver(factory).pipe(
                Effect.flatMap((driver) => liveOptions(key, driver, directory)),
                Effect.match({
                  onSuccess: (found) => ({ harness: key, ok: true as const, options: found }),
                  onFailure: (error) => ({ harness: key, ok: false as const, error })
                })
              )
            },
            { concurrency: "unbounded" }
          ),
        models: (directory, harness) =>
          Effect.gen(function* () {
            if (registry.factory(harness) === undefined) {
              return yield* new HarnessNotRegistered({ harness: harnessKey(harness) })
            }
            const driver = yield* registry.driver(harness)
            return yield* probe(harnessKey(harness), "models", driver.models(directory))
          }),
        permissionModes: modesOf,
        setPermissionMode: (sessionId, modeId) =>
          Effect.gen(function* () {
            const modes = yield* modesOf(sessionId)
            if (modes.unsupported === true) {
              const row = yield* sessions.row(sessionId)
              return yield* new UnsupportedOperation({
                harness: harnessKey(harnessOf(row)),
                operation: "permissionModes"
              })
            }
            if (modes.modes.length > 0 && !modes.modes.some((mode) => mode.id === modeId)) {
              return yield* new ConfigInvalid({
                field: "permissionMode",
                expected: "one of the modes the harness offers"
              })
            }
            yield* update(sessionId, { permissionMode: modeId })
            return yield* modesOf(sessionId)
          })
      })
    })
  )
}
