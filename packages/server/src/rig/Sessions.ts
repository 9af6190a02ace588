/**
 * Watches the terminal sessions of seats: once a second one call to tmux tells which sessions are there, and shows the
 * screens of seats whose reading the screen can change (seat contract 6.5, RIG-321).
 *
 * It concludes that an occupant ended only from an answer that lacks its session; no answer concludes nothing and is asked
 * again after five seconds. It keeps the last screen of each seat, in memory only.
 */
import type { SessionState } from "@tackroom/protocol/seat"
import { Effect, type Scope } from "effect"
import type { Activities } from "./Activities.ts"
import { screenMatters } from "./ActivityMachine.ts"
import type { Occupants } from "./Occupants.ts"
import type { RigStore } from "./RigStore.ts"
import type { OccupantRow } from "./SeatRows.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import type { Tmux } from "./Tmux.ts"

export interface Sessions {
  /** The next difference of this seat's screen is the service's own doing. */
  readonly ownInput: (nodeId: string) => void
}

const everyMs = 1_000
const unavailableMs = 5_000

export interface SessionsConfig {
  readonly store: RigStore
  readonly tmux: Tmux
  readonly activities: Activities
  readonly occupants: Occupants
  readonly log: ServiceLog
}

export const make = ({
  store,
  tmux,
  activities,
  occupants,
  log
}: SessionsConfig): Effect.Effect<Sessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const screens = new Map<string, { readonly generation: string; readonly text: string }>()
    const own = new Set<string>()

    const setSession = (nodeId: string, session: SessionState): void => {
      const known = store.live.get(nodeId)
      if (known.session !== session) store.live.put(nodeId, { ...known, session })
    }

    /** Whether a screen says that somebody works: it differs from the one before, and not by what was typed here. */
    const differs = (nodeId: string, generation: string, text: string): boolean => {
      const before = screens.get(nodeId)
      screens.set(nodeId, { generation, text })
      if (before === undefined || before.generation !== generation || before.text === text) return false
      return !own.delete(nodeId)
    }

    const gone = (occupant: OccupantRow) =>
      store
        .write((tx) => {
          const live = tx.seats.live(occupant.nodeId)
          if (live?.generation === occupant.generation) occupants.end(tx, live, "ended")
        })
        .pipe(
          Effect.catch((error) =>
            Effect.sync(() => log.write("error", "the end of an occupant was not stored", { code: error.code }))
          )
        )

    const look = Effect.gen(function* () {
      const live = store.seats.openOccupants().filter((occupant) => occupant.state === "live")
      if (live.length === 0) return everyMs
      const now = store.clock.steady()
      const named = live.flatMap((occupant) => {
        const seat = store.seats.seat(occupant.nodeId)
        return seat === undefined ? [] : [{ occupant, name: seat.session }]
      })
      const watched = named.filter(({ occupant }) => screenMatters(store.live.get(occupant.nodeId).activity, now))
      const sample = yield* tmux.sample(watched.map(({ name }) => name))
      if (sample === undefined) {
        for (const { occupant } of named) setSession(occupant.nodeId, "unavailable")
        return unavailableMs
      }
      const there = new Map(sample.sessions.map((session) => [session.name, session]))
      for (const { occupant, name } of named) {
        const session = there.get(name)
        if (session === undefined || session.dead) {
          setSession(occupant.nodeId, session === undefined ? "absent" : "exited")
          yield* gone(occupant)
          screens.delete(occupant.nodeId)
        } else setSession(occupant.nodeId, "present")
      }
      const changed = watched.filter(({ occupant, name }) => {
        const text = sample.screens.get(name)
        return text !== undefined && there.has(name) && differs(occupant.nodeId, occupant.generation, text)
      })
      if (changed.length > 0) {
        yield* store
          .write((tx) => {
            for (const { occupant } of changed) {
              if (tx.seats.live(occupant.nodeId)?.generation === occupant.generation) {
                activities.screenChanged(tx, occupant.nodeId)
              }
            }
          })
          .pipe(
            Effect.catch((error) =>
              Effect.sync(() => log.write("error", "screen evidence was not stored", { code: error.code }))
            )
          )
      }
      return everyMs
    })

    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(look, (pause) => Effect.sleep(pause))))
    return { ownInput: (nodeId) => void own.add(nodeId) }
  })
