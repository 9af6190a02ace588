/**
 * Sessions as callers see them: the row, with what is counted and computed when it is read.
 *
 * Implements RT-049, RT-053.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { ScopeMismatch, SessionNotFound, type RuntimeError } from "@tackroom/protocol"
import type { Session } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import type { SessionRow } from "../store/Rows.ts"
import { Store } from "../store/Store.ts"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import { factsOf, Hub } from "./Hub.ts"
import { sessionOf } from "./PublicRows.ts"

export class SessionViews extends Context.Service<
  SessionViews,
  {
    readonly shown: (row: SessionRow) => Effect.Effect<Session, RuntimeError>
    readonly row: (id: string) => Effect.Effect<SessionRow, RuntimeError>
    /** Fails when a directory was given that is not the session's. */
    readonly inDirectory: (row: SessionRow, directory: string | undefined) => Effect.Effect<void, ScopeMismatch>
  }
>()("@tackroom/sdk/runtime/SessionViews") {
  static readonly layer = Layer.effect(
    SessionViews,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const registry = yield* HarnessRegistry

      const shown = Effect.fnUntraced(function* (row: SessionRow): Effect.fn.Return<Session, RuntimeError> {
        hub.learn(factsOf(row))
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
        hub.learn(factsOf(row))
        return row
      })

      const sameDirectory = (row: SessionRow, directory: string | undefined): Effect.Effect<void, ScopeMismatch> =>
        directory === undefined || directory === row.directory
          ? Effect.void
          : Effect.flatMap(platform.realPath(directory).pipe(Effect.catch(() => Effect.succeed(directory))), (real) =>
              real === row.directory ? Effect.void : Effect.fail(new ScopeMismatch({ sessionId: row.id }))
            )

      return SessionViews.of({ shown, row: getRow, inDirectory: sameDirectory })
    })
  )
}
