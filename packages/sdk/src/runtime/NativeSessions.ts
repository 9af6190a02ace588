/**
 * The harness's side of a session: opened once per process, bound before the first prompt (RT-045), resumed exactly or not
 * at all (HRN-004). Output between turns is journaled from here (RT-146).
 *
 * @since 0.1.0
 */
import {
  HarnessContextLost,
  UnsupportedOperation,
  type HarnessError,
  type ResumeUnconfirmed,
  type SessionMissing
} from "@tackroom/protocol"
import { isTerminalType, type HarnessEvent, type HarnessRef } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberMap, Layer, Stream } from "effect"
import {
  harnessKey,
  OwnTurn,
  type HarnessDriver,
  type McpServer,
  type NativeSession,
  type OpenSession
} from "../harness/Harness.ts"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import type { BindingRow, SessionRow } from "../store/Rows.ts"
import type { StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type Opened } from "./ActiveTurns.ts"
import { withDeadline } from "./Deadlines.ts"
import { Journal } from "./Journal.ts"
import { McpServers } from "./McpServers.ts"
import { Minting } from "./Minting.ts"
import { Options } from "./Options.ts"

export const harnessOf = (row: Pick<SessionRow, "harnessId" | "access">): HarnessRef => ({
  id: row.harnessId,
  access: row.access
})

/** Everything a driver needs to open a session. */
export const openInputOf = (
  row: Pick<SessionRow, "id" | "workspaceId" | "directory" | "title" | "config">,
  servers: ReadonlyArray<McpServer> = []
): OpenSession => ({
  sessionId: row.id,
  workspaceId: row.workspaceId,
  directory: row.directory,
  ...(row.config.model === undefined ? {} : { model: row.config.model.modelID }),
  ...(row.config.variant === undefined ? {} : { variant: row.config.variant }),
  ...(row.config.agent === undefined ? {} : { agent: row.config.agent }),
  ...(row.config.instructions === undefined ? {} : { instructions: row.config.instructions }),
  ...(row.config.permissionMode === undefined ? {} : { permissionMode: row.config.permissionMode }),
  ...(row.title === null ? {} : { title: row.title }),
  ...(servers.length === 0 ? {} : { mcp: servers })
})

/** Admits and runs a turn that a harness begins itself; returns when it is admitted. */
export type BeginTurn = (sessionId: string, turn: OwnTurn) => Effect.Effect<void>

export type OpenFailure = HarnessError | SessionMissing | ResumeUnconfirmed | HarnessContextLost | StoreFailure

export class NativeSessions extends Context.Service<
  NativeSessions,
  {
    /** The open harness session, if there is one in this process. */
    readonly opened: (sessionId: string) => Opened | undefined
    /**
     * Opens a new one for a row that is not stored yet; the binding is put by `bind`. Fails for MCP servers that the
     * harness does not take.
     */
    readonly openNew: (
      row: SessionRow
    ) => Effect.Effect<Opened & { readonly native: NativeSession }, HarnessError | UnsupportedOperation>
    readonly bind: (sessionId: string, opened: Opened) => Effect.Effect<void, StoreFailure>
    /** Opens or resumes; single flight per session. `fresh`: a lost conversation may be replaced (allowFreshContext). */
    readonly ensure: (
      row: SessionRow,
      options?: { readonly fresh?: boolean }
    ) => Effect.Effect<{ readonly opened: Opened; readonly reset: boolean }, OpenFailure>
    /** Ends the harness's side. */
    readonly close: (sessionId: string) => Effect.Effect<void, HarnessError>
    readonly forget: (sessionId: string) => void
    readonly driver: (row: Pick<SessionRow, "harnessId" | "access">) => Effect.Effect<HarnessDriver, HarnessError>
    readonly sessions: () => Iterable<string>
    /** Who admits the turns that harnesses begin themselves (RT-147). */
    readonly beginWith: (begin: BeginTurn) => void
  }
>()("@tackroom/sdk/runtime/NativeSessions") {
  static readonly layer = Layer.effect(
    NativeSessions,
    Effect.gen(function* () {
      const registry = yield* HarnessRegistry
      const store = yield* Store
      const journal = yield* Journal
      const options = yield* Options
      const actives = yield* ActiveTurns
      const minting = yield* Minting
      const mcp = yield* McpServers
      const open = new Map<string, Opened>()
      const flights = new Map<
        string,
        Deferred.Deferred<{ readonly opened: Opened; readonly reset: boolean }, OpenFailure>
      >()
      const listeners = yield* FiberMap.make<string, void>()
      const listen = yield* FiberMap.runtime(listeners)()
      let beginTurn: BeginTurn = () => Effect.void

      const within = <A, E>(ref: HarnessRef, operation: string, call: Effect.Effect<A, E>) =>
        withDeadline(call, { ms: options.openTimeoutMs, harness: harnessKey(ref), operation })

      const bindingOf = (row: SessionRow, native: NativeSession): BindingRow => ({
        workspaceId: row.workspaceId,
        directory: row.directory,
        sessionId: row.id,
        connectionId: harnessKey(harnessOf(row)),
        upstreamSessionId: native.upstreamSessionId,
        upstreamState: native.upstreamState,
        ...(native.ownerKey === undefined ? {} : { ownerKey: native.ownerKey })
      })

      const capabilitiesOf = (row: SessionRow, driver: HarnessDriver) =>
        driver.capabilities({ directory: row.directory, sessionId: row.id })

      /** The servers of this opening; what cannot be had is told, and the session opens without it. */
      const begin = Effect.fnUntraced(function* (row: SessionRow, capabilities: HarnessCapabilities) {
        const opening = yield* mcp.opening(row, capabilities.mcp)
        yield* mcp.begin(row.id, opening)
        return opening.servers
      })

      /** A harness is asked what it takes only when there is something to take: an answer may start its process. */
      const serversOf = Effect.fnUntraced(function* (row: SessionRow, driver: HarnessDriver) {
        if (row.config.mcp === undefined) return []
        const ref = harnessOf(row)
        return yield* begin(row, yield* within(ref, "openSession", capabilitiesOf(row, driver)))
      })

      const openWith = Effect.fnUntraced(function* (
        row: SessionRow,
        driver: HarnessDriver,
        servers: ReadonlyArray<McpServer>
      ) {
        const native = yield* within(harnessOf(row), "openSession", driver.openSession(openInputOf(row, servers)))
        const capabilities = yield* capabilitiesOf(row, driver)
        return { driver, capabilities, binding: bindingOf(row, native), native }
      })

      const refuse = Effect.fnUntraced(function* (row: SessionRow, driver: HarnessDriver) {
        if (row.config.mcp === undefined) return
        const ref = harnessOf(row)
        const capabilities = yield* within(ref, "openSession", capabilitiesOf(row, driver))
        const operation = mcp.unsupported(row.config.mcp, capabilities.mcp)
        if (operation === undefined) return
        // It may have been started for the question.
        yield* Effect.ignore(
          driver.closeSession(bindingOf(row, { upstreamSessionId: row.id, upstreamState: "pending" }))
        )
        return yield* new UnsupportedOperation({ harness: harnessKey(ref), operation })
      })

      const openNew = Effect.fnUntraced(function* (row: SessionRow) {
        const driver = yield* registry.driver(harnessOf(row))
        yield* refuse(row, driver)
        return yield* openWith(row, driver, yield* serversOf(row, driver))
      })

      /** What arrives between turns joins the turn before it (RT-146). */
      const later = Effect.fnUntraced(function* (sessionId: string, events: ReadonlyArray<HarnessEvent>) {
        const payloads = events.filter((event) => !isTerminalType(event.type) && event.type !== "session-status")
        if (payloads.length === 0) return
        const active = actives.get(sessionId)
        if (active !== undefined && !active.ending) {
          for (const payload of payloads) active.log.accept(payload)
          return
        }
        const last = (yield* store.getSession(sessionId))?.lastTurn?.turnId
        yield* journal.outside(sessionId, payloads, last === undefined ? {} : { afterTurn: last })
      })

      const between = (sessionId: string, opened: Opened): Effect.Effect<void> =>
        opened.driver.betweenTurns(opened.binding).pipe(
          Stream.runForEachArray((items) =>
            Effect.gen(function* () {
              let events: Array<HarnessEvent> = []
              for (const item of items) {
                if (!(item instanceof OwnTurn)) {
                  events.push(item)
                  continue
                }
                yield* later(sessionId, events)
                events = []
                yield* beginTurn(sessionId, item)
              }
              yield* later(sessionId, events)
            })
          ),
          Effect.catchCause((cause) => Effect.logWarning("A harness stopped reporting between turns", cause))
        )

      const keep = (sessionId: string, opened: Opened): void => {
        open.set(sessionId, opened)
        listen(sessionId, between(sessionId, opened))
      }

      const bind = (sessionId: string, opened: Opened): Effect.Effect<void, StoreFailure> =>
        Effect.map(
          store.putBinding(opened.binding as BindingRow, {
            sessionId,
            operationId: minting.uuid(),
            state: "created",
            upstreamSessionId: opened.binding.upstreamSessionId
          }),
          () => keep(sessionId, opened)
        )

      const resume = Effect.fnUntraced(function* (row: SessionRow, binding: BindingRow, fresh: boolean) {
        const ref = harnessOf(row)
        const driver = yield* registry.driver(ref)
        const capabilities = yield* capabilitiesOf(row, driver)
        const servers = yield* begin(row, capabilities)
        const native: Effect.Effect<
          NativeSession,
          HarnessError | SessionMissing | ResumeUnconfirmed | HarnessContextLost
        > =
          capabilities.resume === "none"
            ? row.lastTurn === null
              ? driver.openSession(openInputOf(row, servers))
              : Effect.fail(new HarnessContextLost({ harness: harnessKey(ref), operation: "resumeSession" }))
            : driver.resumeSession(binding, servers)
        const attempt = yield* Effect.result(within(ref, "resumeSession", native))
        let reset = false
        let answer: NativeSession
        if (attempt._tag === "Success") answer = attempt.success
        else {
          const error = attempt.failure
          const again =
            // Some harnesses keep nothing of a conversation before its first turn.
            (error._tag === "SessionMissing" &&
              (binding.upstreamState === "pending" || row.lastTurn === null || fresh)) ||
            (error._tag === "HarnessContextLost" && fresh)
          if (!again) return yield* Effect.fail(error)
          answer = yield* within(ref, "openSession", driver.openSession(openInputOf(row, servers)))
          reset = binding.upstreamState !== "pending" && row.lastTurn !== null
        }
        const opened: Opened = { driver, capabilities, binding: bindingOf(row, answer) }
        const same =
          opened.binding.upstreamSessionId === binding.upstreamSessionId &&
          opened.binding.upstreamState === binding.upstreamState
        if (same) keep(row.id, opened)
        else yield* bind(row.id, opened)
        return { opened, reset }
      })

      const ensure = (
        row: SessionRow,
        how: { readonly fresh?: boolean } = {}
      ): Effect.Effect<{ readonly opened: Opened; readonly reset: boolean }, OpenFailure> =>
        Effect.suspend(() => {
          const ready = open.get(row.id)
          if (ready !== undefined) return Effect.succeed({ opened: ready, reset: false })
          const flight = flights.get(row.id)
          if (flight !== undefined) return Deferred.await(flight)
          const deferred = Deferred.makeUnsafe<{ readonly opened: Opened; readonly reset: boolean }, OpenFailure>()
          flights.set(row.id, deferred)
          return Effect.gen(function* () {
            const binding = yield* store.binding(row.id)
            if (binding !== undefined) return yield* resume(row, binding, how.fresh === true)
            const driver = yield* registry.driver(harnessOf(row))
            const opened = yield* openWith(row, driver, yield* serversOf(row, driver))
            yield* bind(row.id, opened)
            return { opened: opened as Opened, reset: false }
          }).pipe(
            Effect.onExit((exit) =>
              Effect.sync(() => {
                flights.delete(row.id)
                if (Exit.isFailure(exit)) mcp.closed(row.id)
                Deferred.doneUnsafe(deferred, exit)
              })
            )
          )
        })

      return NativeSessions.of({
        opened: (sessionId) => open.get(sessionId),
        openNew,
        bind,
        ensure,
        close: (sessionId) =>
          Effect.suspend(() => {
            const opened = open.get(sessionId)
            open.delete(sessionId)
            mcp.closed(sessionId)
            return opened === undefined
              ? Effect.void
              : Effect.ensuring(
                  opened.driver.closeSession(opened.binding),
                  Effect.asVoid(FiberMap.remove(listeners, sessionId))
                )
          }),
        forget: (sessionId) => {
          open.delete(sessionId)
          mcp.forget(sessionId)
        },
        driver: (row) => registry.driver(harnessOf(row)),
        sessions: () => open.keys(),
        beginWith: (begin) => {
          beginTurn = begin
        }
      })
    })
  )
}
