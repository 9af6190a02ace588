/**
 * Fan-out of committed events inside this process (section 14). It owns the order in which listeners see a session's
 * events, which is the order of their cursors, whoever committed them; a gap is filled from the journal. It owns no buffer:
 * a listener must take an envelope at once (see Subscriptions for the bounded ones).
 *
 * Implements RT-181, RT-226, RT-227, STO-009 (hints are only hints).
 *
 * @since 0.1.0
 */
import { EVENT_CONTRACT_VERSION, type Envelope } from "@tackroom/protocol/events"
import { Context, Effect, FiberHandle, FiberSet, Layer, Stream } from "effect"
import type { EventRow, SessionRow } from "../store/Rows.ts"
import { Store } from "../store/Store.ts"
import { Minting, timestamp } from "./Minting.ts"

/** What never changes about a session, needed for every envelope. */
export interface SessionFacts {
  readonly sessionId: string
  readonly workspaceId: string
  readonly directory: string
  readonly parentId: string | null
  readonly rootId: string
}

/** Milliseconds after which a failed read for subscribers is tried again. */
const fillRetryMs = 1_000

/** Must neither block nor throw; a listener that throws is removed. */
export type Listener = (envelope: Envelope) => void

/** Told when a session's row changed, or is gone. */
export type RowListener = (sessionId: string, change: "row" | "removed" | "interaction") => void

/** What never changes about the session of a row. */
export const factsOf = (
  row: Pick<SessionRow, "id" | "workspaceId" | "directory" | "parentId" | "rootId">
): SessionFacts => ({
  sessionId: row.id,
  workspaceId: row.workspaceId,
  directory: row.directory,
  parentId: row.parentId,
  rootId: row.rootId
})

interface Track {
  published: number | undefined
  target: number
  filling: boolean
}

/** The public form of a stored event (6.1). */
export const envelopeOf = (facts: SessionFacts, row: EventRow): Envelope => ({
  sessionId: row.sessionId,
  workspaceId: facts.workspaceId,
  directory: facts.directory,
  cursor: row.seq,
  at: timestamp(row.at),
  ...(row.turnId === null ? {} : { turnId: row.turnId }),
  ...(row.afterTurn === null ? {} : { afterTurn: row.afterTurn }),
  ...(facts.parentId === null ? {} : { parentSessionId: facts.parentId }),
  contractVersion: EVENT_CONTRACT_VERSION,
  payload: row.payload,
  ...(row.artifacts === null || row.artifacts.length === 0 ? {} : { artifacts: row.artifacts })
})

export class Hub extends Context.Service<
  Hub,
  {
    /** Hands committed events to the listeners. Synchronous. */
    readonly publish: (rows: ReadonlyArray<EventRow>) => void
    /** Attaches a listener to some sessions, or to all. Answers how to detach it. */
    readonly subscribe: (sessions: ReadonlyArray<string> | "*", listener: Listener) => () => void
    readonly touch: RowListener
    readonly onRow: (listener: RowListener) => () => void
    readonly facts: (sessionId: string) => SessionFacts | undefined
    readonly learn: (facts: SessionFacts) => void
    readonly forget: (sessionId: string) => void
    readonly listeners: () => number
  }
>()("@tackroom/sdk/runtime/Hub") {
  static readonly layer = Layer.effect(
    Hub,
    Effect.gen(function* () {
      const store = yield* Store
      const minting = yield* Minting
      const fills = yield* FiberSet.make<void>()
      const runFill = yield* FiberSet.runtime(fills)()
      const wakeups = yield* FiberHandle.make<void>()
      const runWakeups = yield* FiberHandle.runtime(wakeups)()
      const log = yield* Effect.map(Effect.context<never>(), (context) => Effect.runForkWith(context))

      const known = new Map<string, SessionFacts>()
      const tracks = new Map<string, Track>()
      const bySession = new Map<string, Set<Listener>>()
      const all = new Set<Listener>()
      const rows = new Set<RowListener>()
      let attachedAt = 0

      const track = (sessionId: string): Track => {
        let found = tracks.get(sessionId)
        if (found === undefined) {
          found = { published: undefined, target: 0, filling: false }
          tracks.set(sessionId, found)
        }
        return found
      }

      const call = (listener: Listener, envelope: Envelope, from: Set<Listener>): void => {
        try {
          listener(envelope)
        } catch (error) {
          from.delete(listener)
          log(Effect.logError("A subscriber threw and was removed", error))
        }
      }

      const emit = (facts: SessionFacts, row: EventRow): void => {
        const own = bySession.get(row.sessionId)
        if (own === undefined && all.size === 0) return
        const envelope = envelopeOf(facts, row)
        if (own !== undefined) for (const listener of own) call(listener, envelope, own)
        for (const listener of all) call(listener, envelope, all)
      }

      const wanted = (sessionId: string): boolean => all.size > 0 || bySession.has(sessionId)

      /** Reads what is missing up to the target and hands it out in order; false when there is nothing more to read. */
      const fill = Effect.fnUntraced(function* (sessionId: string, state: Track, since: number) {
        while (true) {
          let facts = known.get(sessionId)
          if (facts === undefined) {
            const row = yield* store.getSession(sessionId)
            if (row === undefined) return false
            facts = factsOf(row)
            known.set(sessionId, facts)
          }
          const from = state.published ?? Math.max(0, state.target - 500)
          if (from >= state.target) return true
          const page = yield* store.read(sessionId, from, 500, 4 * 1024 * 1024)
          if (page.events.length === 0) return false
          for (const row of page.events) {
            if (row.seq <= (state.published ?? 0)) continue
            state.published = row.seq
            if (row.at >= since) emit(facts, row)
          }
        }
      })

      const requestFill = (sessionId: string, state: Track, target: number, since = 0): void => {
        state.target = Math.max(state.target, target)
        if (state.filling) return
        state.filling = true
        const attempt: Effect.Effect<boolean> = fill(sessionId, state, since).pipe(
          Effect.catch((error) => {
            if (error._tag === "SessionGone" || error._tag === "SessionNotFound") return Effect.succeed(false)
            // Nobody may wait for ever because of one read: it is tried again until it succeeds.
            return Effect.andThen(
              Effect.logWarning("Events could not be read for subscribers; it is tried again", error),
              Effect.andThen(
                Effect.sleep(fillRetryMs),
                Effect.suspend(() => attempt)
              )
            )
          })
        )
        runFill(
          Effect.map(attempt, (isComplete) => {
            state.filling = false
            // A target that moved after the last look would wait for the next event.
            if (isComplete && (state.published ?? 0) < state.target) requestFill(sessionId, state, state.target)
          })
        )
      }

      const publishSession = (sessionId: string, events: ReadonlyArray<EventRow>): void => {
        const first = events[0]
        const last = events.at(-1)
        if (first === undefined || last === undefined) return
        const state = track(sessionId)
        if (!wanted(sessionId)) {
          state.published = Math.max(state.published ?? 0, last.seq)
          return
        }
        state.published ??= first.seq - 1
        const facts = known.get(sessionId)
        if (facts === undefined || first.seq > state.published + 1) {
          requestFill(sessionId, state, last.seq)
          return
        }
        for (const row of events) {
          if (row.seq <= state.published) continue
          state.published = row.seq
          emit(facts, row)
        }
      }

      const listenToOthers = store.wakeups.pipe(
        Stream.runForEach((hint) =>
          Effect.sync(() => {
            const state = track(hint.sessionId)
            for (const listener of rows) listener(hint.sessionId, "row")
            if (!wanted(hint.sessionId)) {
              state.published = Math.max(state.published ?? 0, hint.head)
              return
            }
            if (state.published === undefined) requestFill(hint.sessionId, state, hint.head, attachedAt)
            else if (hint.head > state.published) requestFill(hint.sessionId, state, hint.head)
          })
        ),
        Effect.catch((error) => Effect.logWarning("Changes of other processes are not seen", error))
      )

      let attached = 0
      const attach = (): void => {
        attached += 1
        if (attached > 1) return
        attachedAt = minting.now()
        runWakeups(listenToOthers, { onlyIfMissing: true })
      }
      const detach = (): void => {
        attached -= 1
        if (attached === 0) runWakeups(Effect.void)
      }

      return Hub.of({
        publish: (events) => {
          const first = events[0]
          if (first === undefined) return
          if (events.every((event) => event.sessionId === first.sessionId)) {
            publishSession(first.sessionId, events)
            return
          }
          for (const [sessionId, group] of Map.groupBy(events, (event) => event.sessionId)) {
            publishSession(sessionId, group)
          }
        },
        subscribe: (sessions, listener) => {
          if (sessions === "*") all.add(listener)
          else {
            for (const id of sessions) {
              const set = bySession.get(id)
              if (set === undefined) bySession.set(id, new Set([listener]))
              else set.add(listener)
            }
          }
          attach()
          let open = true
          return () => {
            if (!open) return
            open = false
            if (sessions === "*") all.delete(listener)
            else {
              for (const id of sessions) {
                const set = bySession.get(id)
                set?.delete(listener)
                if (set?.size === 0) bySession.delete(id)
              }
            }
            detach()
          }
        },
        touch: (sessionId, change) => {
          for (const listener of rows) listener(sessionId, change)
        },
        onRow: (listener) => {
          rows.add(listener)
          attach()
          let open = true
          return () => {
            if (!open) return
            open = false
            rows.delete(listener)
            detach()
          }
        },
        facts: (sessionId) => known.get(sessionId),
        learn: (facts) => {
          if (!known.has(facts.sessionId)) known.set(facts.sessionId, facts)
        },
        forget: (sessionId) => {
          known.delete(sessionId)
          tracks.delete(sessionId)
        },
        listeners: () => all.size + bySession.size
      })
    })
  )
}
