/**
 * Sessions (4.1): making, reading, changing, closing, deleting. The native session is opened with `create`, unless asked
 * otherwise, and bound before the first prompt.
 *
 * Implements RT-040 to RT-053.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import {
  callerSessionIdProblem,
  CursorInvalid,
  HarnessNotRegistered,
  InvalidExecutionBinding,
  ScopeMismatch,
  SessionConflict,
  SessionInvalid,
  SessionNotFound,
  SessionTurnInProgress,
  SubmissionNotFound,
  UnsupportedOperation,
  type RuntimeError
} from "@tackroom/protocol"
import type {
  EventPayload,
  HarnessRef,
  ModelRef,
  PermissionLevel,
  Receipt,
  Session,
  SessionConfig
} from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import { harnessKey } from "../harness/Harness.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import type { SessionRow } from "../store/Rows.ts"
import type { NewEntry, OpFailed, SessionPatch, StoreOp, WriteOptions } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns } from "./ActiveTurns.ts"
import { utf8Length } from "./Coalescer.ts"
import { Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { receiptOf, sessionOf } from "./PublicRows.ts"
import { Recovery } from "./Recovery.ts"
import { Turns } from "./Turns.ts"

export interface CreateSession {
  readonly id?: string
  readonly workspaceId?: string
  readonly directory: string
  readonly harness: HarnessRef
  readonly model?: ModelRef
  readonly variant?: string
  readonly agent?: string
  readonly instructions?: string
  readonly group?: string
  readonly title?: string
  readonly tags?: ReadonlyArray<string>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly permissionMode?: string
  readonly mcp?: unknown
  readonly open?: "eager" | "lazy"
  readonly keepOnFailure?: boolean
}

/** What only the embedding package may add to a session (D-30). */
export interface EmbeddedSession extends CreateSession {
  readonly parentSessionId?: string
  readonly rootSessionId?: string
  readonly toolCallId?: string
  /** Default: the runtime's own owner. */
  readonly owner?: string | null
  readonly harnessPayload?: unknown
  /** Journaled right after `session-created`, in the same transaction. */
  readonly entries?: ReadonlyArray<EventPayload>
}

export interface ListSessionsInput {
  readonly workspaceId?: string
  readonly directory?: string
  readonly parentSessionId?: string | null
  readonly archived?: boolean
  readonly status?: Session["status"]
  readonly owner?: string | null
  readonly limit?: number
  readonly cursor?: string
}

export interface SessionPage {
  readonly items: ReadonlyArray<Session>
  readonly nextCursor?: string
}

export interface UpdateSession {
  readonly title?: string
  readonly tags?: ReadonlyArray<string>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly time?: { readonly archived?: string | boolean | null }
}

type Fails = RuntimeError | OpFailed

export class Sessions extends Context.Service<
  Sessions,
  {
    readonly create: (input: CreateSession) => Effect.Effect<Session, RuntimeError>
    /** Several sessions, and the embedder's rows, in one transaction (D-47). None is stored when one cannot be. */
    readonly createMany: (
      inputs: ReadonlyArray<EmbeddedSession>,
      options?: WriteOptions<ReadonlyArray<SessionRow>>
    ) => Effect.Effect<ReadonlyArray<Session>, Fails>
    readonly get: (id: string, directory?: string) => Effect.Effect<Session | null, RuntimeError>
    readonly row: (id: string) => Effect.Effect<SessionRow, RuntimeError>
    readonly list: (input: ListSessionsInput) => Effect.Effect<SessionPage, RuntimeError>
    readonly update: (
      id: string,
      update: UpdateSession,
      options?: { readonly directory?: string; readonly ops?: ReadonlyArray<StoreOp> }
    ) => Effect.Effect<Session, Fails>
    /** Moves a session to another owner (D-30). */
    readonly setOwner: (
      id: string,
      owner: string | null,
      options?: { readonly ops?: ReadonlyArray<StoreOp> }
    ) => Effect.Effect<Session, Fails>
    readonly close: (
      id: string,
      options?: { readonly ops?: ReadonlyArray<StoreOp>; readonly record?: boolean }
    ) => Effect.Effect<Session, Fails>
    readonly remove: (
      id: string,
      options?: { readonly directory?: string; readonly ops?: ReadonlyArray<StoreOp> }
    ) => Effect.Effect<void, Fails>
    readonly receipt: (id: string, messageId: string) => Effect.Effect<Receipt, RuntimeError>
    /** Recovers the session when this runtime recovers on opening only (RT-175). */
    readonly open: (id: string) => Effect.Effect<Session, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const options = yield* Options
      const minting = yield* Minting
      const registry = yield* HarnessRegistry
      const natives = yield* NativeSessions
      const actives = yield* ActiveTurns
      const turns = yield* Turns
      const recovery = yield* Recovery

      const learn = (row: SessionRow): void =>
        hub.learn({
          sessionId: row.id,
          workspaceId: row.workspaceId,
          directory: row.directory,
          parentId: row.parentId,
          rootId: row.rootId
        })

      const shown = Effect.fnUntraced(function* (row: SessionRow): Effect.fn.Return<Session, RuntimeError> {
        learn(row)
        const pending = yield* store.interactions(
          row.parentId === null ? { rootId: row.id, state: "pending" } : { sessionId: row.id, state: "pending" }
        )
        const queued = row.queueRevision === 0 ? 0 : (yield* store.queue(row.id)).entries.length
        const registered = registry.factory({ id: row.harnessId, access: row.access }) !== undefined
        return sessionOf(row, {
          attention: pending.length,
          queued,
          availability: registered
            ? { state: "available" }
            : { state: "unavailable", message: `Harness ${row.access}:${row.harnessId} is not registered` }
        })
      })

      const getRow = Effect.fnUntraced(function* (id: string): Effect.fn.Return<SessionRow, RuntimeError> {
        const row = yield* store.getSession(id)
        if (row === undefined) return yield* new SessionNotFound({ sessionId: id })
        learn(row)
        return row
      })

      const sameDirectory = (row: SessionRow, directory: string | undefined): Effect.Effect<void, ScopeMismatch> =>
        directory === undefined || directory === row.directory
          ? Effect.void
          : Effect.flatMap(platform.realPath(directory).pipe(Effect.catch(() => Effect.succeed(directory))), (real) =>
              real === row.directory ? Effect.void : Effect.fail(new ScopeMismatch({ sessionId: row.id }))
            )

      // ------------------------------------------------------------ create

      const invalid = (field: string, expected: string) => new SessionInvalid({ field, expected })

      const checkFields = (input: UpdateSession & { readonly instructions?: string }): SessionInvalid | undefined => {
        if (input.title !== undefined && (input.title.trim().length === 0 || input.title.length > 200)) {
          return invalid("title", "1 to 200 characters")
        }
        if (input.tags !== undefined && (input.tags.length > 32 || input.tags.some((tag) => tag.length > 64))) {
          return invalid("tags", "at most 32 tags of 64 characters")
        }
        if (input.metadata !== undefined && utf8Length(JSON.stringify(input.metadata)) > 16_384) {
          return invalid("metadata", "at most 16 KiB")
        }
        if (input.instructions !== undefined && utf8Length(input.instructions) > 262_144) {
          return invalid("instructions", "at most 262,144 bytes")
        }
        return undefined
      }

      const directoryOf = Effect.fnUntraced(function* (directory: string) {
        const field = "directory"
        const bad = (expected: string) => new InvalidExecutionBinding({ field, expected })
        if (typeof directory !== "string" || directory.trim().length === 0) return yield* bad("a path")
        if (utf8Length(directory) > 4096) return yield* bad("at most 4,096 bytes")
        if (!/^(?:\/|[A-Za-z]:[\\/]|\\\\)/u.test(directory)) return yield* bad("an absolute path")
        const real = yield* platform
          .realPath(directory)
          .pipe(Effect.catchTag("PathUnusable", () => Effect.fail(bad("an existing directory"))))
        if (!(yield* platform.isDirectory(real))) return yield* bad("a directory")
        return real
      })

      const lower = (a: PermissionLevel, b: PermissionLevel | undefined): PermissionLevel => {
        const rank = { ask: 0, auto: 1, full: 2 }
        return b === undefined || rank[a] <= rank[b] ? a : b
      }

      const refuseOwn = (input: CreateSession): SessionInvalid | undefined => {
        for (const field of ["handoff", "permissionState", "permissionCeiling"]) {
          if (field in input) return invalid(field, "not to be set by a caller")
        }
        return undefined
      }

      const rowOf = Effect.fnUntraced(function* (input: EmbeddedSession): Effect.fn.Return<SessionRow, RuntimeError> {
        const problem = refuseOwn(input) ?? checkFields(input as UpdateSession & { readonly instructions?: string })
        if (problem !== undefined) return yield* problem
        if (input.mcp !== undefined) {
          return yield* new UnsupportedOperation({ harness: harnessKey(input.harness), operation: "mcp" })
        }
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
        const config: SessionConfig = {
          harness: input.harness,
          ...(input.model === undefined ? {} : { model: input.model }),
          ...(input.variant === undefined ? {} : { variant: input.variant }),
          ...(input.agent === undefined ? {} : { agent: input.agent }),
          ...(input.instructions === undefined ? {} : { instructions: input.instructions }),
          ...(input.group === undefined ? {} : { group: input.group }),
          ...(input.permissionMode === undefined ? {} : { permissionMode: input.permissionMode }),
          permissionCeiling: lower(options.permissionCeiling, policy?.permissionCeiling)
        }
        return {
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
      const openFor = Effect.fnUntraced(function* (input: EmbeddedSession, row: SessionRow) {
        if (input.open === "lazy") return undefined
        const opened = yield* Effect.result(natives.openNew(row))
        if (opened._tag === "Success") return opened.success
        if (input.keepOnFailure !== true) return yield* Effect.fail(opened.failure)
        return opened.failure
      })

      const createMany = Effect.fnUntraced(function* (
        inputs: ReadonlyArray<EmbeddedSession>,
        write: WriteOptions<ReadonlyArray<SessionRow>> = {}
      ): Effect.fn.Return<ReadonlyArray<Session>, Fails> {
        const rows: Array<SessionRow> = []
        for (const input of inputs) rows.push(yield* rowOf(input))
        if (inputs.length === 1 && inputs[0]?.id !== undefined && rows[0] !== undefined) {
          const found = yield* existing(rows[0])
          if (found !== undefined) return [yield* shown(found)]
        }
        const opened: Array<Effect.Success<ReturnType<typeof openFor>>> = []
        for (const [i, input] of inputs.entries()) {
          const row = rows[i]
          if (row !== undefined) opened.push(yield* openFor(input, row))
        }
        return yield* Effect.uninterruptible(
          Effect.gen(function* () {
            const made = yield* Effect.result(
              journal.write(
                store.createSessions(
                  rows.map(({ head: _head, fence: _fence, ...row }, i) => ({
                    row,
                    entries: [
                      createdEntry({ ...row, head: 0, fence: 0 }),
                      ...(inputs[i]?.entries ?? []).map((payload): NewEntry => ({ payload }))
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
              return yield* Effect.fail(made.failure)
            }
            const out: Array<Session> = []
            for (const [i, row] of made.success.value.entries()) {
              learn(row)
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

      const create = (input: CreateSession): Effect.Effect<Session, RuntimeError> =>
        Effect.flatMap(
          createMany([input]).pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error))),
          ([session]) => (session === undefined ? Effect.die("no session was made") : Effect.succeed(session))
        )

      // ------------------------------------------------------------ list

      const encodeCursor = (row: SessionRow): string => btoa(JSON.stringify([row.updatedAt, row.id]))

      const decodeCursor = (cursor: string): { readonly updatedAt: number; readonly id: string } | undefined => {
        if (!/^[A-Za-z0-9+/=]{1,400}$/u.test(cursor)) return undefined
        try {
          const value: unknown = JSON.parse(atob(cursor))
          return Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "string"
            ? { updatedAt: value[0], id: value[1] }
            : undefined
        } catch {
          return undefined
        }
      }

      const list = Effect.fnUntraced(function* (input: ListSessionsInput): Effect.fn.Return<SessionPage, RuntimeError> {
        const limit = Math.min(500, Math.max(1, input.limit ?? 100))
        const after = input.cursor === undefined ? undefined : decodeCursor(input.cursor)
        if (input.cursor !== undefined && after === undefined) return yield* new CursorInvalid({ head: 0 })
        const directory =
          input.directory === undefined
            ? undefined
            : yield* platform.realPath(input.directory).pipe(Effect.catch(() => Effect.succeed(input.directory ?? "")))
        const rows = yield* store.listSessions({
          limit: limit + 1,
          ...(input.workspaceId === undefined ? {} : { workspaceId: input.workspaceId }),
          ...(directory === undefined ? {} : { directory }),
          ...(input.parentSessionId === undefined ? {} : { parentSessionId: input.parentSessionId }),
          ...(input.archived === undefined ? {} : { archived: input.archived }),
          ...(input.status === undefined ? {} : { status: input.status }),
          ...(input.owner === undefined ? {} : { owner: input.owner }),
          ...(after === undefined ? {} : { after })
        })
        const page = rows.slice(0, limit)
        const last = page.at(-1)
        const items: Array<Session> = []
        for (const row of page) items.push(row.corrupt === undefined ? yield* shown(row) : sessionOf(row))
        return { items, ...(rows.length > limit && last !== undefined ? { nextCursor: encodeCursor(last) } : {}) }
      })

      // ------------------------------------------------------------ change, close, delete

      const update = Effect.fnUntraced(function* (
        id: string,
        change: UpdateSession,
        how: { readonly directory?: string; readonly ops?: ReadonlyArray<StoreOp> } = {}
      ): Effect.fn.Return<Session, Fails> {
        const row = yield* getRow(id)
        yield* sameDirectory(row, how.directory)
        const problem = checkFields(change)
        if (problem !== undefined) return yield* problem
        const archived = change.time?.archived
        const archive = archived === undefined ? undefined : archived !== null && archived !== false
        if (archive === true && actives.get(id) !== undefined) {
          return yield* new SessionTurnInProgress({ sessionId: id })
        }
        const entries: Array<NewEntry> = []
        if (change.title !== undefined) {
          entries.push({ payload: { type: "session-title", title: change.title, titleSource: "user" } })
        }
        if (change.tags !== undefined || change.metadata !== undefined || archive !== undefined) {
          entries.push({
            payload: {
              type: "session-info",
              ...(change.tags === undefined ? {} : { tags: change.tags }),
              ...(change.metadata === undefined ? {} : { metadata: change.metadata as never }),
              ...(archive === undefined ? {} : { archived: archive })
            }
          })
        }
        const committed = yield* journal.write(
          store.updateSession(id, {}, entries, how.ops === undefined ? {} : { ops: how.ops })
        )
        hub.touch(id, "row")
        return yield* shown(committed.value)
      })

      const patchRow = Effect.fnUntraced(function* (
        id: string,
        patch: SessionPatch,
        entries: ReadonlyArray<NewEntry>,
        ops: ReadonlyArray<StoreOp> | undefined
      ): Effect.fn.Return<Session, Fails> {
        const committed = yield* journal.write(
          store.updateSession(id, patch, entries, ops === undefined ? {} : { ops })
        )
        hub.touch(id, "row")
        return yield* shown(committed.value)
      })

      const close = Effect.fnUntraced(function* (
        id: string,
        how: { readonly ops?: ReadonlyArray<StoreOp>; readonly record?: boolean } = {}
      ): Effect.fn.Return<Session, Fails> {
        yield* getRow(id)
        if (actives.get(id) !== undefined) yield* turns.abort(id)
        yield* natives.close(id)
        return yield* patchRow(id, {}, [{ payload: { type: "session-closed", reason: "closed" } }], how.ops)
      })

      const children = Effect.fnUntraced(function* (id: string): Effect.fn.Return<ReadonlyArray<string>, RuntimeError> {
        const rows = yield* store.listSessions({ parentSessionId: id, limit: 500 })
        const out: Array<string> = []
        for (const row of rows) out.push(...(yield* children(row.id)), row.id)
        return out
      })

      const remove = Effect.fnUntraced(function* (
        id: string,
        how: { readonly directory?: string; readonly ops?: ReadonlyArray<StoreOp> } = {}
      ): Effect.fn.Return<void, Fails> {
        const row = yield* getRow(id)
        yield* sameDirectory(row, how.directory)
        const family = [...(yield* children(id)), id]
        for (const member of family) {
          if (actives.get(member) !== undefined) yield* turns.abort(member)
          const opened = natives.opened(member)
          if (opened !== undefined) {
            yield* opened.driver
              .deleteSession(opened.binding)
              .pipe(Effect.catch((error) => Effect.logWarning("The harness could not delete its session", error)))
            natives.forget(member)
          }
        }
        yield* store.deleteSession(id, how.ops === undefined ? {} : { ops: how.ops })
        for (const member of family) {
          hub.touch(member, "removed")
          hub.forget(member)
        }
      })

      return Sessions.of({
        create,
        createMany,
        get: (id, directory) =>
          Effect.gen(function* () {
            const row = yield* store.getSession(id)
            if (row === undefined) return null
            yield* sameDirectory(row, directory)
            return yield* shown(row)
          }),
        row: getRow,
        list,
        update,
        setOwner: (id, owner, how) => patchRow(id, { owner }, [], how?.ops),
        close,
        remove,
        receipt: (id, messageId) =>
          Effect.gen(function* () {
            const receipt = yield* store.receipt(id, messageId)
            if (receipt === undefined) {
              yield* getRow(id)
              return yield* new SubmissionNotFound({ messageId })
            }
            return receiptOf(receipt)
          }),
        open: (id) =>
          Effect.gen(function* () {
            yield* Effect.catchTag(recovery.session(id), "SessionRecovering", () => Effect.void)
            return yield* shown(yield* getRow(id))
          })
      })
    })
  )
}
