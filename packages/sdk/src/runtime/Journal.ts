/**
 * The only writer of events. It stamps, redacts, coalesces, cuts large values, appends under the session's fencing token,
 * and publishes after the commit. A turn has one `TurnLog`, whose appends follow each other; everything pending at the
 * moment of an append goes into it, so a busy turn costs few commits and a short one costs two.
 *
 * It decides nothing about turns and keeps no truth: what it holds in memory nobody has seen (RT-205).
 *
 * Implements RT-130, RT-181, RT-190, RT-200 to RT-206, RT-210, RT-211, RT-321, D-44.
 *
 * @since 0.1.0
 */
import { SessionTurnFenceStale, type SessionGone, type SessionNotFound } from "@tackroom/protocol"
import { isDelta, type EventPayload, type HarnessEvent } from "@tackroom/protocol/events"
import { Cause, Context, Effect, Latch, Layer, Semaphore } from "effect"
import type { ArtifactRow, TurnRow } from "../store/Rows.ts"
import type { Committed, NewEntry, SessionPatch, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { Coalescer, prefixUnits, slowestPeriodMs } from "./Coalescer.ts"
import { Hub } from "./Hub.ts"
import { cut, estimate, type LargePiece } from "./LargeValues.ts"
import { Minting } from "./Minting.ts"
import { Options } from "./Options.ts"
import { Secrets } from "./Secrets.ts"
import { TurnFold } from "./TurnFold.ts"

/** Why a turn's log cannot be written any more. `fence`: another owner has the session, or it is gone. */
export type LogFailure = SessionTurnFenceStale | SessionNotFound | SessionGone | StoreFailure

/** Bytes that may wait for a commit before the driver is held up. */
export const backlogLimit = 4 * 1024 * 1024
const batchEntries = 500
const batchBytes = 2 * 1024 * 1024
/** How long a store that cannot write is tried again while a turn runs (STO-066). */
const patienceMs = 30_000

const sealedMark = { _tag: "Sealed" } as const

interface Pending {
  readonly entry: NewEntry
  readonly pieces: ReadonlyArray<LargePiece>
  readonly bytes: number
}

/** The patch of a turn and session row that may go with an append. */
export interface LogPatch {
  readonly turn?: Partial<Pick<TurnRow, "state" | "handedOver" | "recoveries" | "cancelRequested">>
  readonly session?: SessionPatch
}

/** One turn's way into the journal. */
export interface TurnLog {
  readonly fold: TurnFold
  /** Takes an event of the driver. Synchronous; it is committed soon, or by `flush`. */
  readonly accept: (event: HarnessEvent) => void
  /** Takes an event of the runtime's own. */
  readonly add: (payload: EventPayload, options?: { readonly outsideTurn?: boolean }) => void
  /** Everything accepted so far is committed when this returns. */
  readonly flush: Effect.Effect<void, LogFailure>
  /** Commits everything accepted so far, with a change of the rows. */
  readonly patch: (patch: LogPatch) => Effect.Effect<void, LogFailure>
  /** Runs another write of the store in the log's order; it must store the entries it is given first. */
  readonly exclusive: <A, E>(
    write: (entries: ReadonlyArray<NewEntry>) => Effect.Effect<Committed<A>, E>,
    options?: {
      /** Asked when it is this write's turn; a failure leaves everything as it was. */
      readonly guard?: Effect.Effect<void, E>
      readonly onCommit?: (committed: Committed<A>) => void
    }
  ) => Effect.Effect<Committed<A>, E | LogFailure>
  /** From here on only `exclusive` writes: what follows belongs to the settlement's transaction (RT-140). */
  readonly seal: () => void
  /** Waits for the write that is under way, and writes nothing. */
  readonly quiet: Effect.Effect<void>
  /** Ends parts that are open; called before the terminal event. */
  readonly closeParts: () => void
  readonly backlog: () => number
  /** Commits what is accepted until it is interrupted; fails when the session is lost. */
  readonly run: Effect.Effect<never, LogFailure>
  readonly close: () => void
}

export class Journal extends Context.Service<
  Journal,
  {
    /** Runs a writing call of the store and publishes what it committed. Not interruptible: a commit is always published. */
    readonly write: <A, E>(
      call: Effect.Effect<Committed<A>, E>,
      /** Synchronous; what this process knows changes before anyone hears of the events. */
      onCommit?: (committed: Committed<A>) => void
    ) => Effect.Effect<Committed<A>, E>
    /** Opens the log of a turn. `fold` is given when it was rebuilt. */
    readonly open: (turn: {
      readonly sessionId: string
      readonly turnId: string
      readonly fence: number
      readonly fold?: TurnFold
    }) => TurnLog
    /** Journals events of a session outside its turns, or after one (RT-146). */
    readonly outside: (
      sessionId: string,
      payloads: ReadonlyArray<EventPayload>,
      options?: { readonly afterTurn?: string; readonly session?: SessionPatch }
    ) => Effect.Effect<void, SessionNotFound | SessionGone | StoreFailure>
    /** Keeps the row of an artifact that was put ahead, until the next event of its session commits it (RT-211). */
    readonly hold: (row: ArtifactRow) => void
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
        const { payload: small, pieces } = cut(known.value(payload))
        const entry: NewEntry = withHeld(sessionId, { payload: small, ...place })
        return pieces.length === 0 ? Effect.succeed(entry) : withArtifacts(sessionId, entry, pieces)
      }

      // ------------------------------------------------------------ the flush clock

      const dirty = new Set<{ readonly dueAt: () => number | undefined; readonly tick: () => void }>()
      const ticking = Latch.makeUnsafe(false)
      let commitMs = 0

      const period = (): number => Math.min(slowestPeriodMs, Math.max(options.coalesce.ms, commitMs * 10))

      yield* Effect.forkScoped(
        Effect.gen(function* () {
          while (true) {
            yield* ticking.await
            yield* Effect.sleep(period())
            const horizon = minting.now() + options.coalesce.ms / 2
            for (const log of dirty) {
              const due = log.dueAt()
              if (due === undefined) dirty.delete(log)
              else if (due <= horizon) log.tick()
            }
            if (dirty.size === 0) ticking.closeUnsafe()
          }
        })
      )

      // ------------------------------------------------------------ one turn's log

      const open = (turn: {
        readonly sessionId: string
        readonly turnId: string
        readonly fence: number
        readonly fold?: TurnFold
      }): TurnLog => {
        const { sessionId, turnId, fence } = turn
        const fold = turn.fold ?? new TurnFold()
        const coalescer = new Coalescer(options.coalesce, (text) => (known.any ? known.hold(text) : 0))
        const lock = Semaphore.makeUnsafe(1)
        const wake = Latch.makeUnsafe(false)
        let pending: Array<Pending> = []
        let bytes = 0
        let closed = false
        let sealed = false

        // Later: a latch resumes its fiber right here, in the middle of taking an event.
        let waking = false
        const wakeWriter = (): void => {
          if (waking) return
          waking = true
          queueMicrotask(() => {
            waking = false
            wake.openUnsafe()
          })
        }

        const push = (payload: EventPayload, outsideTurn = false): void => {
          const { payload: small, pieces } = cut(known.value(payload))
          const entry = withHeld(sessionId, outsideTurn ? { payload: small } : { payload: small, turnId })
          const size = estimate(small) + pieces.reduce((sum, piece) => sum + piece.bytes.length, 0)
          pending.push({ entry, pieces, bytes: size })
          bytes += size
          wakeWriter()
        }

        const clockEntry = {
          dueAt: () => coalescer.dueAt,
          tick: () => {
            const row = coalescer.flush()
            if (row !== undefined) push(row)
          }
        }

        const pushRows = (rows: ReadonlyArray<EventPayload>): void => {
          for (const row of rows) push(row)
        }

        const closePart = (next: HarnessEvent | undefined): void => {
          const end = fold.closing(next)
          if (end === undefined) return
          pushRows(coalescer.close())
          push(end)
          fold.accept(end)
        }

        const acceptDelta = (event: Extract<HarnessEvent, { readonly delta: string }>): void => {
          if (!isDelta(event)) return
          if (event.type === "tool-output-delta") {
            const budget = fold.toolBudget(event.toolCallId, event.delta)
            if (budget.keep === "none") return
            if (budget.keep !== "all") {
              if (budget.keep === "part") {
                const kept = event.delta.slice(0, prefixUnits(event.delta, budget.bytes))
                pushRows(coalescer.push({ ...event, delta: kept }, minting.now()))
              }
              pushRows(coalescer.close())
              push({ ...event, delta: "", truncated: true })
              return
            }
          } else if (event.delta.length > 0) fold.accept(event)
          pushRows(coalescer.push(event, minting.now()))
          if (coalescer.dueAt !== undefined) {
            dirty.add(clockEntry)
            ticking.openUnsafe()
          }
        }

        // A part that was closed and goes on gets a name of its own, so that each part has one end (RT-206).
        const renamed = new Map<string, string>()
        const named = <E extends HarnessEvent>(event: E): E => {
          if (event.type !== "text-delta" && event.type !== "thinking-delta" && event.type !== "text-end") return event
          let partId = renamed.get(event.partId) ?? event.partId
          if (event.type !== "text-end" && fold.hasEnded(partId)) {
            partId = `${partId}_`
            renamed.set(event.partId, partId)
          }
          return partId === event.partId ? event : { ...event, partId }
        }

        const accept = (raw: HarnessEvent): void => {
          if (closed) return
          const event = named(raw)
          closePart(event)
          if (isDelta(event)) {
            acceptDelta(event)
            return
          }
          pushRows(coalescer.close())
          if (event.type === "text-end") {
            if (fold.hasEnded(event.partId)) return
          }
          push(event)
          fold.accept(event)
        }

        const take = (): Array<Pending> => {
          let size = 0
          let count = 0
          while (count < pending.length && count < batchEntries && (count === 0 || size < batchBytes)) {
            size += pending[count]?.bytes ?? 0
            count += 1
          }
          const batch = pending.slice(0, count)
          pending = pending.slice(count)
          bytes -= size
          return batch
        }

        const putBack = (batch: ReadonlyArray<Pending>): void => {
          pending = [...batch, ...pending]
          for (const item of batch) bytes += item.bytes
          wakeWriter()
        }

        const entriesOf = Effect.fnUntraced(function* (batch: ReadonlyArray<Pending>) {
          const entries: Array<NewEntry> = []
          for (const item of batch) {
            entries.push(
              item.pieces.length === 0 ? item.entry : yield* withArtifacts(sessionId, item.entry, item.pieces)
            )
          }
          return entries
        })

        /** Runs one write with a batch; what was not stored waits again. */
        const withBatch = <A, E>(
          batch: Array<Pending>,
          call: (entries: ReadonlyArray<NewEntry>) => Effect.Effect<Committed<A>, E>,
          onCommit?: (committed: Committed<A>) => void
        ): Effect.Effect<Committed<A>, E | StoreFailure> =>
          Effect.uninterruptible(
            Effect.gen(function* () {
              const entries = yield* entriesOf(batch)
              const from = minting.now()
              const committed = yield* write(call(entries), onCommit)
              commitMs = commitMs * 0.8 + (minting.now() - from) * 0.2
              return committed
            }).pipe(Effect.tapCause(() => Effect.sync(() => putBack(batch))))
          )

        const append = (entries: ReadonlyArray<NewEntry>, patch?: LogPatch) =>
          store
            .append(sessionId, fence, entries, {
              ...(patch?.turn === undefined ? {} : { turn: { id: turnId, patch: patch.turn } }),
              ...(patch?.session === undefined ? {} : { session: patch.session })
            })
            .pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error)))

        /** A store that cannot write now is tried again for a while; nothing is lost meanwhile (STO-066). */
        const patient = <A, E>(call: Effect.Effect<A, E | StoreFailure>): Effect.Effect<A, E | StoreFailure> =>
          Effect.suspend(() => {
            const until = minting.now() + patienceMs
            const attempt = (wait: number): Effect.Effect<A, E | StoreFailure> =>
              call.pipe(
                Effect.catch((error) =>
                  isBusy(error) && minting.now() < until
                    ? Effect.flatMap(Effect.sleep(wait), () => attempt(Math.min(wait * 2, 2_000)))
                    : Effect.fail(error)
                )
              )
            return attempt(50)
          })

        const appendPending: Effect.Effect<void, LogFailure> = Effect.suspend(() => {
          if (sealed || pending.length === 0) return Effect.void
          const once = Effect.suspend(() => (sealed || pending.length === 0 ? Effect.void : withBatch(take(), append)))
          return Effect.flatMap(patient<unknown, LogFailure>(once), () => appendPending)
        })

        const flush = Effect.suspend(() => {
          pushRows(coalescer.close())
          return lock.withPermit(appendPending)
        })

        const exclusive = <A, E>(
          call: (entries: ReadonlyArray<NewEntry>) => Effect.Effect<Committed<A>, E>,
          how: {
            readonly guard?: Effect.Effect<void, E>
            readonly onCommit?: (committed: Committed<A>) => void
          } = {}
        ): Effect.Effect<Committed<A>, E | LogFailure> =>
          lock.withPermit(
            Effect.flatMap(how.guard ?? Effect.void, () => {
              pushRows(coalescer.close())
              const room: Effect.Effect<void, LogFailure> = Effect.suspend(() =>
                pending.length <= batchEntries && bytes <= batchBytes
                  ? Effect.void
                  : Effect.flatMap(
                      patient<unknown, LogFailure>(Effect.suspend(() => withBatch(take(), append))),
                      () => room
                    )
              )
              return Effect.flatMap(room, () => withBatch(take(), call, how.onCommit))
            })
          )

        const run: Effect.Effect<never, LogFailure> = Effect.gen(function* () {
          while (true) {
            yield* wake.await
            wake.closeUnsafe()
            yield* lock.withPermit(appendPending)
          }
        })

        return {
          fold,
          accept,
          add: (payload, place) => {
            if (closed) return
            pushRows(coalescer.close())
            push(payload, place?.outsideTurn === true)
            if (place?.outsideTurn !== true) fold.accept(payload)
          },
          flush,
          patch: (patch) =>
            Effect.suspend(() => {
              // A settlement under way says everything about these rows itself.
              const guard = Effect.suspend(() => (sealed ? Effect.fail(sealedMark) : Effect.void))
              return exclusive<number, LogFailure | typeof sealedMark>((entries) => append(entries, patch), {
                guard
              }).pipe(
                Effect.map(() => hub.touch(sessionId, "row")),
                Effect.catchIf(
                  (error) => error === sealedMark,
                  () => Effect.void
                )
              ) as Effect.Effect<void, LogFailure>
            }),
          exclusive,
          seal: () => {
            sealed = true
          },
          quiet: lock.withPermit(Effect.void),
          closeParts: () => {
            closePart(undefined)
            pushRows(coalescer.close())
          },
          backlog: () => bytes + coalescer.openBytes,
          run,
          close: () => {
            closed = true
            dirty.delete(clockEntry)
          }
        }
      }

      return Journal.of({
        write,
        open,
        prepare,
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

/** Whether a store may be able to write this in a while; a closed one is not. */
export const isBusy = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "StoreBusy" || error._tag === "StoreUnavailable") &&
  (!("retryable" in error) || error.retryable !== false)

/** Whether a failure says that this runtime no longer owns the session. */
export const isLost = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "SessionTurnFenceStale" || error._tag === "SessionNotFound" || error._tag === "SessionGone")

export const causeIsLost = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.findErrorOption(cause)
  return error._tag === "Some" && isLost(error.value)
}
