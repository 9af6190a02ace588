/**
 * The only writer of events. It stamps, redacts, coalesces, cuts large values, appends under the session's fencing token,
 * and publishes after the commit. A turn has one `TurnLog`. It decides nothing about turns and keeps no truth.
 *
 * Implements RT-130, RT-181, RT-211, RT-321, D-44.
 *
 * @since 0.1.0
 */
import type { SessionGone, SessionNotFound } from "@tackroom/protocol"
import type { EventPayload } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import type { ArtifactRow } from "../store/Rows.ts"
import type { Committed, NewEntry, SessionPatch, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { makeFlushClock } from "./FlushClock.ts"
import { Hub } from "./Hub.ts"
import { cut, type LargePiece } from "./LargeValues.ts"
import { Minting } from "./Minting.ts"
import { Options } from "./Options.ts"
import { Secrets } from "./Secrets.ts"
import { makeTurnLog, type LogOwner, type TurnLog } from "./TurnLog.ts"

export class Journal extends Context.Service<
  Journal,
  {
    /** Runs a writing call of the store and publishes what it committed. Not interruptible: a commit is always published. */
    readonly write: <A, E>(
      call: Effect.Effect<Committed<A>, E>,
      /** Synchronous; what this process knows changes before anyone hears of the events. */
      onCommit?: (committed: Committed<A>) => void
    ) => Effect.Effect<Committed<A>, E>
    /** Opens the log of a turn. */
    readonly open: (turn: LogOwner) => TurnLog
    /** Journals events of a session outside its turns, or after one (RT-146). */
    readonly outside: (
      sessionId: string,
      payloads: ReadonlyArray<EventPayload>,
      options?: { readonly afterTurn?: string; readonly session?: SessionPatch }
    ) => Effect.Effect<void, SessionNotFound | SessionGone | StoreFailure>
    /** Keeps the row of an artifact that was put ahead, until the next event of its session commits it (RT-211). */
    readonly hold: (row: ArtifactRow) => void
    /** Puts an artifact that a driver or a caller gave, without known secrets: its size and digest are of what is kept. */
    readonly putArtifact: (
      sessionId: string,
      mime: string,
      bytes: Uint8Array
    ) => Effect.Effect<ArtifactRow, StoreFailure>
    /** Makes an entry of a payload, its artifacts put ahead. */
    readonly prepare: (
      sessionId: string,
      payload: EventPayload,
      place?: Pick<NewEntry, "turnId" | "afterTurn">
    ) => Effect.Effect<NewEntry, StoreFailure>
  }
>()("@tackroom/sdk/runtime/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const options = yield* Options
      const minting = yield* Minting
      const { known } = yield* Secrets

      const write = <A, E>(
        call: Effect.Effect<Committed<A>, E>,
        onCommit?: (committed: Committed<A>) => void
      ): Effect.Effect<Committed<A>, E> =>
        Effect.uninterruptible(
          Effect.tap(call, (committed) =>
            Effect.sync(() => {
              onCommit?.(committed)
              if (committed.events.length > 0) hub.publish(committed.events)
            })
          )
        )

      const held = new Map<string, Array<ArtifactRow>>()
      const withHeld = (sessionId: string, entry: NewEntry): NewEntry => {
        const rows = held.get(sessionId)
        if (rows === undefined) return entry
        held.delete(sessionId)
        return { ...entry, artifactRows: [...(entry.artifactRows ?? []), ...rows] }
      }

      const withArtifacts = Effect.fnUntraced(function* (
        sessionId: string,
        entry: NewEntry,
        pieces: ReadonlyArray<LargePiece>
      ) {
        const rows: Array<ArtifactRow> = []
        const references: Array<NonNullable<NewEntry["artifacts"]>[number]> = []
        // They were cut from what was redacted before.
        for (const piece of pieces) {
          const row = yield* store.putArtifact(sessionId, piece.mime, piece.bytes)
          rows.push(row)
          references.push({ path: piece.path, artifactId: row.id, bytes: row.bytes, mime: row.mime })
        }
        return { ...entry, artifacts: references, artifactRows: [...(entry.artifactRows ?? []), ...rows] }
      })

      const prepare = (
        sessionId: string,
        payload: EventPayload,
        place: Pick<NewEntry, "turnId" | "afterTurn"> = {}
      ): Effect.Effect<NewEntry, StoreFailure> => {
        const { payload: small, pieces } = cut(known.value(payload, sessionId))
        const entry: NewEntry = withHeld(sessionId, { payload: small, ...place })
        return pieces.length === 0 ? Effect.succeed(entry) : withArtifacts(sessionId, entry, pieces)
      }

      const clock = yield* makeFlushClock(options, minting)

      return Journal.of({
        write,
        open: (turn) =>
          makeTurnLog({ store, hub, minting, options, known, clock, write, withHeld, withArtifacts }, turn),
        prepare,
        putArtifact: (sessionId, mime, bytes) =>
          store.putArtifact(sessionId, known.text(mime, sessionId), known.bytes(bytes, sessionId)),
        hold: (row) => {
          const rows = held.get(row.sessionId)
          if (rows === undefined) held.set(row.sessionId, [row])
          else rows.push(row)
        },
        outside: (sessionId, payloads, place) =>
          Effect.uninterruptible(
            Effect.gen(function* () {
              const entries: Array<NewEntry> = []
              for (const payload of payloads) {
                entries.push(
                  yield* prepare(
                    sessionId,
                    payload,
                    place?.afterTurn === undefined ? {} : { afterTurn: place.afterTurn }
                  )
                )
              }
              yield* write(
                store.appendUnfenced(sessionId, entries, place?.session === undefined ? {} : { session: place.session })
              )
              if (place?.session !== undefined) hub.touch(sessionId, "row")
            }).pipe(Effect.catchTags({ OpFailed: (e) => Effect.die(e), SessionTurnFenceStale: (e) => Effect.die(e) }))
          )
      })
    })
  )
}
