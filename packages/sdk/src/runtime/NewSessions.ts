/**
 * Making sessions (4.1): checked, opened with their harness unless asked otherwise, and stored together with what the
 * embedding package adds, or not at all.
 *
 * Implements RT-040, RT-042, RT-044, RT-045, D-47.
 *
 * @since 0.1.0
 */
import {
  callerSessionIdProblem,
  HarnessNotRegistered,
  InvalidExecutionBinding,
  SessionConflict,
  type RuntimeError
} from "@tackroom/protocol"
import type { Session, SessionConfig } from "@tackroom/protocol/events"
import { Context, Effect, Exit, Layer } from "effect"
import { harnessKey } from "../harness/Harness.ts"
import type { SessionRow } from "../store/Rows.ts"
import type { NewEntry, OpFailed, WriteOptions } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import { factsOf, Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { McpServers, type AcceptedMcp } from "./McpServers.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Notices } from "./Notices.ts"
import { Options } from "./Options.ts"
import { checkFields, directoryOf, invalid, lower, refuseOwn, type EmbeddedSession } from "./SessionInput.ts"
import { SessionViews } from "./SessionViews.ts"

/** A session as it will be. */
interface Draft {
  readonly input: EmbeddedSession
  readonly row: SessionRow
  /** The MCP servers that it was given. */
  readonly mcp: AcceptedMcp | undefined
}

export class NewSessions extends Context.Service<
  NewSessions,
  {
    readonly make: (
      inputs: ReadonlyArray<EmbeddedSession>,
      options?: WriteOptions<ReadonlyArray<SessionRow>>
    ) => Effect.Effect<ReadonlyArray<Session>, RuntimeError | OpFailed>
  }
>()("@tackroom/sdk/runtime/NewSessions") {
  static readonly layer = Layer.effect(
    NewSessions,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const options = yield* Options
      const minting = yield* Minting
      const registry = yield* HarnessRegistry
      const natives = yield* NativeSessions
      const mcp = yield* McpServers
      const notices = yield* Notices
      const { shown } = yield* SessionViews

      const draft = Effect.fnUntraced(function* (input: EmbeddedSession): Effect.fn.Return<Draft, RuntimeError> {
        const problem = refuseOwn(input) ?? checkFields(input)
        if (problem !== undefined) return yield* problem
        if (input.id !== undefined) {
          const bad = callerSessionIdProblem(input.id)
          if (bad !== undefined) return yield* invalid("id", bad)
        }
        const workspaceId = input.workspaceId ?? options.workspaceId
        if (workspaceId.trim().length === 0 || workspaceId.length > 128) {
          return yield* new InvalidExecutionBinding({ field: "workspaceId", expected: "1 to 128 characters" })
        }
        if (registry.factory(input.harness) === undefined) {
          return yield* new HarnessNotRegistered({ harness: harnessKey(input.harness) })
        }
        const directory = yield* directoryOf(input.directory)
        const policy = options.sessionPolicy?.({
          ...(input.id === undefined ? {} : { id: input.id }),
          workspaceId,
          directory,
          harness: input.harness
        })
        if (policy?.harnesses !== undefined && !policy.harnesses.includes(harnessKey(input.harness))) {
          return yield* invalid("harness", "a harness which the policy of this workspace allows")
        }
        const id = input.id ?? minting.id("session")
        const now = minting.now()
        const accepted = input.mcp === undefined ? undefined : yield* mcp.accept(id, input.mcp, "session")
        const config: SessionConfig = {
          harness: input.harness,
          ...(input.model === undefined ? {} : { model: input.model }),
          ...(input.variant === undefined ? {} : { variant: input.variant }),
          ...(input.agent === undefined ? {} : { agent: input.agent }),
          ...(input.instructions === undefined ? {} : { instructions: input.instructions }),
          ...(input.group === undefined ? {} : { group: input.group }),
          ...(input.permissionMode === undefined ? {} : { permissionMode: input.permissionMode }),
          ...(accepted?.stored === undefined ? {} : { mcp: accepted.stored }),
          permissionCeiling: lower(options.permissionCeiling, policy?.permissionCeiling)
        }
        const row: SessionRow = {
          id,
          workspaceId,
          directory,
          harnessId: input.harness.id,
          access: input.harness.access,
          parentId: input.parentSessionId ?? null,
          rootId: input.rootSessionId ?? input.parentSessionId ?? id,
          toolCallId: input.toolCallId ?? null,
          title: input.title ?? null,
          titleSource: input.title === undefined ? null : "user",
          status: null,
          phase: null,
          lastTurn: null,
          config,
          metadata: input.metadata ?? null,
          tags: input.tags ?? [],
          harnessPayload: input.harnessPayload ?? null,
          commands: null,
          head: 0,
          fence: 0,
          owner: input.owner === undefined ? options.owner : input.owner,
          queueRevision: 0,
          queueHeld: null,
          createdAt: now,
          updatedAt: now,
          archivedAt: null,
          closedAt: null
        }
        return { input, row, mcp: accepted }
      })

      const createdEntry = (row: SessionRow): NewEntry => ({
        payload: {
          type: "session-created",
          harness: { id: row.harnessId, access: row.access },
          ...(row.title === null ? {} : { title: row.title }),
          ...(row.config.model === undefined ? {} : { model: row.config.model }),
          ...(row.parentId === null ? {} : { parentSessionId: row.parentId }),
          ...(row.toolCallId === null ? {} : { toolCallId: row.toolCallId })
        }
      })

      /** The row that exists under this id, when it is the same session (RT-042). */
      const existing = Effect.fnUntraced(function* (row: SessionRow) {
        const found = yield* store.getSession(row.id)
        if (found === undefined) return undefined
        if (found.harnessId !== row.harnessId || found.access !== row.access) {
          return yield* new SessionConflict({ sessionId: row.id, field: "harness" })
        }
        if (found.directory !== row.directory)
          return yield* new SessionConflict({ sessionId: row.id, field: "directory" })
        return found
      })

      /** Opens the harness's side before the row is stored, so that a failed opening leaves no row (RT-044). */
      const openFor = Effect.fnUntraced(function* ({ input, mcp: accepted, row }: Draft) {
        notices.hold(row.id)
        if (accepted !== undefined) yield* mcp.keep(row.id, accepted)
        if (input.open === "lazy") return undefined
        const opened = yield* Effect.result(natives.openNew(row))
        if (opened._tag === "Success") return opened.success
        if (input.keepOnFailure !== true) return yield* Effect.fail(opened.failure)
        return opened.failure
      })

      const make = Effect.fnUntraced(function* (
        inputs: ReadonlyArray<EmbeddedSession>,
        write: WriteOptions<ReadonlyArray<SessionRow>> = {}
      ): Effect.fn.Return<ReadonlyArray<Session>, RuntimeError | OpFailed> {
        const drafts: Array<Draft> = []
        for (const input of inputs) drafts.push(yield* draft(input))
        const rows = drafts.map(({ row }) => row)
        if (inputs.length === 1 && inputs[0]?.id !== undefined && rows[0] !== undefined) {
          const found = yield* existing(rows[0])
          if (found !== undefined) return [yield* shown(found)]
        }
        return yield* Effect.onExit(stored(drafts, write), (exit) =>
          Effect.sync(() => {
            for (const { id } of rows) {
              notices.drop(id)
              if (Exit.isFailure(exit)) mcp.forget(id)
            }
          })
        )
      })

      /** Opened and stored, all of them or none. */
      const stored = Effect.fnUntraced(function* (
        drafts: ReadonlyArray<Draft>,
        write: WriteOptions<ReadonlyArray<SessionRow>>
      ): Effect.fn.Return<ReadonlyArray<Session>, RuntimeError | OpFailed> {
        const rows = drafts.map(({ row }) => row)
        const opened: Array<Effect.Success<ReturnType<typeof openFor>>> = []
        /** What was opened for a session that there is not: a process, its MCP servers. */
        const closeOpened = Effect.suspend(() =>
          Effect.forEach(
            opened,
            (native) =>
              native !== undefined && "binding" in native
                ? Effect.ignore(native.driver.closeSession(native.binding))
                : Effect.void,
            { concurrency: "unbounded", discard: true }
          )
        )
        yield* Effect.forEach(
          drafts,
          (one) =>
            Effect.map(openFor(one), (native) => {
              opened.push(native)
            }),
          { discard: true }
        ).pipe(Effect.onError(() => closeOpened))
        return yield* Effect.uninterruptible(
          Effect.gen(function* () {
            const made = yield* Effect.result(
              journal.write(
                store.createSessions(
                  rows.map(({ head: _head, fence: _fence, ...row }, i) => ({
                    row,
                    entries: [
                      createdEntry({ ...row, head: 0, fence: 0 }),
                      ...(drafts[i]?.input.entries ?? []).map((payload): NewEntry => ({ payload }))
                    ]
                  })),
                  write
                )
              )
            )
            if (made._tag === "Failure") {
              const only = rows[0]
              if (made.failure._tag === "SessionConflict" && rows.length === 1 && only !== undefined) {
                // Made by somebody else in the same moment: equal values are the same session.
                const found = yield* existing(only)
                if (found !== undefined) return [yield* shown(found)]
              }
              // Under an id that is taken somebody else's session may be open here.
              if (made.failure._tag !== "SessionConflict") yield* closeOpened
              return yield* Effect.fail(made.failure)
            }
            const out: Array<Session> = []
            for (const [i, row] of made.success.value.entries()) {
              hub.learn(factsOf(row))
              const native = opened[i]
              if (native !== undefined && "binding" in native) {
                yield* natives.bind(row.id, native)
                const advertised = native.native
                if (advertised.configOptions !== undefined || advertised.commands !== undefined) {
                  yield* journal.outside(row.id, [
                    ...(advertised.configOptions === undefined
                      ? []
                      : [{ type: "config-update", options: advertised.configOptions } as const]),
                    ...(advertised.commands === undefined
                      ? []
                      : [{ type: "available-commands-update", commands: advertised.commands } as const])
                  ])
                }
              } else if (native !== undefined) {
                yield* store.putStart({
                  sessionId: row.id,
                  operationId: minting.uuid(),
                  state: "failed",
                  error: native.message
                })
              }
              yield* notices.release(row.id)
              hub.touch(row.id, "row")
              const session = yield* shown(row)
              out.push(
                native !== undefined && !("binding" in native)
                  ? { ...session, executionAvailability: { state: "unavailable", message: native.message } }
                  : session
              )
            }
            return out
          })
        )
      })

      return NewSessions.of({ make })
    })
  )
}
