/**
 * The store of a rig service: rows to read, and transactions that change them.
 *
 * A change and the feed events that tell of it are one transaction; who subscribes hears of them after the commit, in the
 * order of their cursors (RIG-290). A job that answers with one of `SeatErrors` leaves nothing. A fault of the file is
 * `internal`; a store that closes takes nothing any more.
 */
import { type FeedType, HookUnconfigured, InternalFault, isSeatError, type SeatError } from "@tackroom/protocol/seat"
import { Effect, type Scope } from "effect"
import * as GroupWrites from "../database/GroupWrites.ts"
import { type DatabaseUnusable, openFile } from "../database/SqliteFile.ts"
import * as AskRows from "./AskRows.ts"
import * as LiveSeats from "./LiveSeats.ts"
import * as LogRows from "./LogRows.ts"
import * as Minting from "./Minting.ts"
import { iso, type RigClock } from "./RigClock.ts"
import { rigSchema } from "./RigTables.ts"
import * as SeatRows from "./SeatRows.ts"
import * as SeatViews from "./SeatViews.ts"
import type { ServiceLog } from "./ServiceLog.ts"

/** A transaction: rows, its time, and what it wants told. */
export interface Tx {
  readonly seats: SeatRows.SeatRows
  readonly asks: AskRows.AskRows
  readonly logs: LogRows.LogRows
  /** The steady clock's time, for deadlines. */
  readonly now: number
  /** The wall's time, for what is kept and shown. */
  readonly wall: number
  readonly after: (work: () => void) => void
  readonly undo: (work: () => void) => void
  /** Tells of a seat, an ask, a stream item, the people or a rig as it is at the end of the job. */
  readonly tell: (type: FeedType, id: string) => void
  /** Does what must not fail the job: on a fault it is undone and logged, and the job goes on. */
  readonly attempt: (what: string, work: () => void) => void
}

export interface FeedEntry {
  readonly cursor: number
  readonly type: FeedType
  readonly at: string
  readonly data: string
}

export interface RigStore {
  readonly seats: SeatRows.SeatRows
  readonly asks: AskRows.AskRows
  readonly logs: LogRows.LogRows
  readonly live: LiveSeats.LiveSeats
  readonly views: SeatViews.SeatViews
  readonly clock: RigClock
  readonly journalId: string
  readonly write: <A>(job: (tx: Tx) => A | SeatError) => Effect.Effect<Exclude<A, SeatError>, SeatError>
  /** Position of the feed: the cursor of its last event. */
  readonly head: () => number
  /** Told of committed events in order; the result stops it. */
  readonly listen: (listener: (entries: ReadonlyArray<FeedEntry>) => void) => () => void
}

export interface RigStoreConfig {
  readonly file: string
  readonly clock: RigClock
  readonly log: ServiceLog
}

export const open = ({ file, clock, log }: RigStoreConfig): Effect.Effect<RigStore, DatabaseUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const db = yield* openFile(file, rigSchema)
    const seats = SeatRows.make(db)
    const asks = AskRows.make(db)
    const logs = LogRows.make(db)
    const live = LiveSeats.make(logs.activities(), clock.steady(), clock.wall())
    const views = SeatViews.make({ seats, asks, logs, live, clock })
    const journalId = logs.lasting("journal_id", () => `jrn_${Minting.uuid().replaceAll("-", "")}`)
    const writes = yield* GroupWrites.make(db, isSeatError, (cause) =>
      log.write("error", "something after a commit failed", {
        cause: cause instanceof Error ? cause.message : "unknown"
      })
    )
    const listeners = new Set<(entries: ReadonlyArray<FeedEntry>) => void>()
    let head = logs.head()

    const viewOf = (type: FeedType, id: string): unknown => {
      switch (type) {
        case "seat.activity":
        case "seat.attention":
        case "seat.launch":
          return views.seat(id)
        case "ask.opened":
        case "ask.row":
        case "ask.settled":
          return views.ask(id)
        case "stream.item":
          return logs.item(id)
        case "people.changed":
          return { people: views.people() }
        case "rig.changed":
          return views.rig(id)
      }
    }

    const attempt = (what: string, work: () => void): void => {
      db.exec("SAVEPOINT attempt")
      try {
        work()
      } catch (cause) {
        db.exec("ROLLBACK TO attempt")
        log.write("error", `${what} failed and was left out`, {
          cause: cause instanceof Error ? cause.message : "unknown"
        })
      }
      db.exec("RELEASE attempt")
    }

    const write = <A>(job: (tx: Tx) => A | SeatError): Effect.Effect<Exclude<A, SeatError>, SeatError> =>
      writes
        .write<A>((it) => {
          const told: Array<{ readonly type: FeedType; readonly id: string }> = []
          const wall = clock.wall()
          const result = job({
            seats,
            asks,
            logs,
            now: clock.steady(),
            wall,
            after: it.after,
            undo: it.undo,
            tell: (type, id) => {
              if (!told.some((one) => one.type === type && one.id === id)) told.push({ type, id })
            },
            attempt
          })
          if (isSeatError(result) || told.length === 0) return result
          const at = iso(wall)
          const entries = told.map(({ type, id }): FeedEntry => {
            const data = JSON.stringify(viewOf(type, id) ?? null)
            return { type, at, data, cursor: logs.addFeed(type, at, data) }
          })
          it.after(() => {
            head = entries.at(-1)?.cursor ?? head
            for (const listener of listeners) listener(entries)
          })
          return result
        })
        .pipe(
          Effect.catchIf(
            (error): error is GroupWrites.WriteFailed | GroupWrites.WritesClosed => !isSeatError(error),
            (error): Effect.Effect<never, SeatError> => {
              if (error._tag === "WritesClosed") return Effect.fail(new HookUnconfigured({}))
              log.write("error", "a write failed", { detail: error.detail })
              return Effect.fail(new InternalFault({}))
            }
          )
        )

    return {
      seats,
      asks,
      logs,
      live,
      views,
      clock,
      journalId,
      write,
      head: () => head,
      listen: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      }
    }
  })
