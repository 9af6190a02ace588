/**
 * Sessions (4.1): reading, changing, closing and deleting them; making them is `NewSessions`'.
 *
 * Implements RT-043, RT-046 to RT-053.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { CursorInvalid, SessionTurnInProgress, SubmissionNotFound, type RuntimeError } from "@tackroom/protocol"
import type { Receipt, Session } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { SessionRow } from "../store/Rows.ts"
import type { NewEntry, OpFailed, SessionPatch, StoreOp, WriteOptions } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns } from "./ActiveTurns.ts"
import { Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { NewSessions } from "./NewSessions.ts"
import { receiptOf, sessionOf } from "./PublicRows.ts"
import { Recovery } from "./Recovery.ts"
import {
  checkFields,
  decodeCursor,
  encodeCursor,
  type CreateSession,
  type EmbeddedSession,
  type ListSessionsInput,
  type SessionPage,
  type UpdateSession
} from "./SessionInput.ts"
import { SessionViews } from "./SessionViews.ts"
import { Turns } from "./Turns.ts"

export type { CreateSession, EmbeddedSession, ListSessionsInput, SessionPage, UpdateSession } from "./SessionInput.ts"

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
    /**
     * Opens the harness's side now and not with the first turn, or resumes exactly the conversation it had; answers what
     * that harness can do. Fails when it cannot, and starts nothing in its place.
     */
    readonly connect: (id: string) => Effect.Effect<HarnessCapabilities, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const natives = yield* NativeSessions
      const actives = yield* ActiveTurns
      const turns = yield* Turns
      const recovery = yield* Recovery
      const made = yield* NewSessions
      const { inDirectory, row: getRow, shown } = yield* SessionViews

      const create = (input: CreateSession): Effect.Effect<Session, RuntimeError> =>
        Effect.flatMap(
          made.make([input]).pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error))),
          ([session]) => (session === undefined ? Effect.die("no session was made") : Effect.succeed(session))
        )

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
        yield* inDirectory(row, how.directory)
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
        yield* inDirectory(row, how.directory)
        const family = [...(yield* children(id)), id]
        for (const member of family) {
          if (actives.get(member) !== undefined) yield* turns.abort(member)
          const opened = natives.opened(member)
          if (opened !== undefined) {
            yield* opened.driver
              .deleteSession(opened.binding)
              .pipe(Effect.catch((error) => Effect.logWarning("The harness could not delete its session", error)))
          }
          natives.forget(member)
        }
        yield* store.deleteSession(id, how.ops === undefined ? {} : { ops: how.ops })
        for (const member of family) {
          hub.touch(member, "removed")
          hub.forget(member)
        }
      })

      return Sessions.of({
        create,
        createMany: made.make,
        get: (id, directory) =>
          Effect.gen(function* () {
            const row = yield* store.getSession(id)
            if (row === undefined) return null
            yield* inDirectory(row, directory)
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
          }),
        connect: (id) =>
          Effect.map(
            Effect.flatMap(getRow(id), (row) => natives.ensure(row)),
            ({ opened }) => opened.capabilities
          )
      })
    })
  )
}
