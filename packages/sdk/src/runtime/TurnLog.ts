/**
 * One turn's way into the journal. Its appends follow each other; everything pending at the moment of an append goes into
 * it, so a busy turn costs few commits and a short one costs two. What it holds in memory nobody has seen (RT-205).
 *
 * Implements RT-130, RT-190, RT-200 to RT-206, RT-210, STO-066.
 *
 * @since 0.1.0
 */
import type { SessionGone, SessionNotFound, SessionTurnFenceStale } from "@tackroom/protocol"
import { isDelta, type EventPayload, type HarnessEvent } from "@tackroom/protocol/events"
import { Effect, Latch, Semaphore } from "effect"
import type { TurnRow } from "../store/Rows.ts"
import type { Committed, NewEntry, RuntimeStore, SessionPatch, StoreFailure } from "../store/RuntimeStore.ts"
import { Coalescer, prefixUnits } from "./Coalescer.ts"
import type { FlushClock } from "./FlushClock.ts"
import type { Hub } from "./Hub.ts"
import { cut, estimate, type LargePiece } from "./LargeValues.ts"
import type { Minting } from "./Minting.ts"
import type { ResolvedOptions } from "./Options.ts"
import type { KnownSecrets } from "./Secrets.ts"
import { isBusy } from "./StoreTrouble.ts"
import { TurnFold } from "./TurnFold.ts"

/** Why a turn's log cannot be written any more. `fence`: another owner has the session, or it is gone. */
export type LogFailure = SessionTurnFenceStale | SessionNotFound | SessionGone | StoreFailure

/** Bytes that may wait for a commit before the driver is held up. */
export const backlogLimit = 4 * 1024 * 1024
const batchEntries = 500
const batchBytes = 2 * 1024 * 1024
/**
 * How old an event may get while those that follow it without a pause are gathered for one commit; no older than text
 * gets that waits for the flush clock (RT-202).
 */
const gatherMs = 20
/** How many are gathered: the buffer of a subscriber takes them. */
const gatherEntries = 256
/** How long a store that cannot write is tried again while a turn runs (STO-066). */
const patienceMs = 30_000

const sealedMark = { _tag: "Sealed" } as const

interface Pending {
  readonly entry: NewEntry
  readonly pieces: ReadonlyArray<LargePiece>
  readonly bytes: number
  /** Committed with the entry (HRN-241). */
  readonly peerCursor?: string
}

/** The patch of a turn and session row that may go with an append. */
export interface LogPatch {
  readonly turn?: Partial<Pick<TurnRow, "state" | "handedOver" | "recoveries" | "cancelRequested" | "peerCursor">>
  readonly session?: SessionPatch
}

/** One turn's way into the journal. */
export interface TurnLog {
  readonly fold: TurnFold
  /**
   * Takes an event of the driver. Synchronous; it is committed soon, or by `flush`, and the place in the harness's record
   * with it.
   */
  readonly accept: (event: HarnessEvent, peerCursor?: string) => void
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

/** What a log needs of the journal that it is part of. */
export interface LogParts {
  readonly store: RuntimeStore
  readonly hub: Hub["Service"]
  readonly minting: Minting["Service"]
  readonly options: ResolvedOptions
  readonly known: KnownSecrets
  readonly clock: FlushClock
  readonly write: <A, E>(
    call: Effect.Effect<Committed<A>, E>,
    onCommit?: (committed: Committed<A>) => void
  ) => Effect.Effect<Committed<A>, E>
  /** Adds the rows of artifacts that were put ahead for the session. */
  readonly withHeld: (sessionId: string, entry: NewEntry) => NewEntry
  /** Puts the pieces that were cut off, and names them in the entry. */
  readonly withArtifacts: (
    sessionId: string,
    entry: NewEntry,
    pieces: ReadonlyArray<LargePiece>
  ) => Effect.Effect<NewEntry, StoreFailure>
}

/** Whose log it is. `fold` is given when it was rebuilt. */
export interface LogOwner {
  readonly sessionId: string
  readonly turnId: string
  readonly fence: number
  readonly fold?: TurnFold
}

/** Opens the log of a turn. */
export const makeTurnLog = (parts: LogParts, turn: LogOwner): TurnLog => {
  const { clock, hub, known, minting, options, store, withArtifacts, withHeld, write } = parts
  const { sessionId, turnId, fence } = turn
  const fold = turn.fold ?? new TurnFold()
  const coalescer = new Coalescer(options.coalesce, {
    text: (text) => known.text(text, sessionId),
    open: (text) => known.open(text, sessionId)
  })
  const lock = Semaphore.makeUnsafe(1)
  const wake = Latch.makeUnsafe(false)
  let pending: Array<Pending> = []
  let bytes = 0
  /** Events taken so far, those that were joined too. */
  let taken = 0
  /** When the first of the events was taken that no commit has. */
  let since: number | undefined
  /** Something pending has waited for its period of the flush clock, and waits no more (RT-202). */
  let isDue = false
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
    const { payload: small, pieces } = cut(known.value(payload, sessionId))
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
      if (row === undefined) return
      push(row)
      isDue = true
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
      clock.watch(clockEntry)
    }
  }

  // A part that was closed and goes on gets a name of its own, so that each part has one end (RT-206).
  const renamed = new Map<string, string>()
  const named = <E extends HarnessEvent>(event: E): E => {
    if (event.type !== "text-delta" && event.type !== "thinking-delta" && event.type !== "text-end") return event
    let partId = renamed.get(event.partId) ?? event.partId
    if (event.type !== "text-end" && fold.hasEnded(partId)) {
      while (fold.hasEnded(partId)) partId = `${partId}_`
      renamed.set(event.partId, partId)
    }
    return partId === event.partId ? event : { ...event, partId }
  }

  const accept = (raw: HarnessEvent): void => {
    if (closed) return
    taken += 1
    since ??= minting.now()
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

  /** The place goes with the last entry of what it covers: in the same commit, or in none before it. */
  const acceptAt = (event: HarnessEvent, peerCursor: string): void => {
    accept(event)
    pushRows(coalescer.close())
    const last = pending.pop()
    if (last !== undefined) pending.push({ ...last, peerCursor })
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
    isDue &&= pending.length > 0
    since = pending.length > 0 || coalescer.openBytes > 0 ? minting.now() : undefined
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
      entries.push(item.pieces.length === 0 ? item.entry : yield* withArtifacts(sessionId, item.entry, item.pieces))
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
        clock.spent(minting.now() - from)
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

  const appendBatch = (batch: ReadonlyArray<Pending>) => (entries: ReadonlyArray<NewEntry>) => {
    const peerCursor = batch.findLast((item) => item.peerCursor !== undefined)?.peerCursor
    return append(entries, peerCursor === undefined ? undefined : { turn: { peerCursor } })
  }

  const appendSome = Effect.suspend(() => {
    const batch = take()
    return withBatch(batch, appendBatch(batch))
  })

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

  const hasPending = (): boolean => !sealed && pending.length > 0

  const appendNext: Effect.Effect<unknown, LogFailure> = patient(
    Effect.suspend((): Effect.Effect<unknown, LogFailure> => (hasPending() ? appendSome : Effect.void))
  )

  const appendPending: Effect.Effect<void, LogFailure> = Effect.suspend(() =>
    hasPending() ? Effect.flatMap(appendNext, () => appendPending) : Effect.void
  )

  const flush = Effect.suspend(() => {
    pushRows(coalescer.close())
    return lock.withPermit(appendPending)
  })

  /** Other writes than appends store no place; what has one goes ahead, unless the turn ends with this write. */
  const hasPlaces = (): boolean => !sealed && pending.some((item) => item.peerCursor !== undefined)

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
          pending.length <= batchEntries && bytes <= batchBytes && !hasPlaces()
            ? Effect.void
            : Effect.flatMap(patient<unknown, LogFailure>(appendSome), () => room)
        )
        return Effect.flatMap(room, () => withBatch(take(), call, how.onCommit))
      })
    )

  const mayGrow = (seen: number): boolean => !isDue && taken > seen && pending.length < gatherEntries

  /**
   * A burst of the driver is one commit, not one for each turn of the loop; a single event waits for a turn or two, and
   * what the runtime says itself for none.
   */
  const gathered = Effect.gen(function* () {
    const until = (since ?? 0) + Math.min(gatherMs, options.coalesce.ms)
    let seen = -1
    while (mayGrow(seen) && minting.now() < until) {
      seen = taken
      // Twice: what is handed from fiber to fiber arrives every other turn.
      yield* Effect.yieldNow
      yield* Effect.yieldNow
    }
  })

  const run: Effect.Effect<never, LogFailure> = Effect.gen(function* () {
    while (true) {
      yield* wake.await
      wake.closeUnsafe()
      while (hasPending()) {
        yield* gathered
        yield* lock.withPermit(appendNext)
      }
    }
  })

  return {
    fold,
    accept: (event, peerCursor) => (peerCursor === undefined ? accept(event) : acceptAt(event, peerCursor)),
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
      clock.forget(clockEntry)
    }
  }
}
