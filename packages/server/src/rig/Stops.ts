/**
 * The end of a seat by an operator (seat contract 9.6). The service ends the terminal session of this seat and nothing
 * else: what the pane started elsewhere is reported, not hunted.
 */
import { launchStates, type SeatError, type SeatOutcome, TmuxUnavailable } from "@tackroom/protocol/seat"
import { startTime } from "@tackroom/sdk/process"
import { Effect } from "effect"
import * as fs from "node:fs"
import { setLaunch } from "./LaunchRecords.ts"
import type { Occupants } from "./Occupants.ts"
import { iso } from "./RigClock.ts"
import type { RigStore } from "./RigStore.ts"
import type { SeatRow } from "./SeatRows.ts"
import type { Tmux } from "./Tmux.ts"

export interface Stops {
  readonly stop: (seat: SeatRow) => Effect.Effect<SeatOutcome, SeatError>
}

const patienceMs = 6_000
const lookEveryMs = 50

interface Leftover {
  readonly pid: number
  readonly command: string
}

const readProcFile = (file: string): string => {
  try {
    return fs.readFileSync(file, "latin1")
  } catch {
    // It ended, or is another user's: nothing to tell of it.
    return ""
  }
}

/** Processes of Linux that still carry a generation in their environment. */
const carrying = (generation: string): ReadonlyArray<Leftover> => {
  if (process.platform !== "linux") return []
  const wanted = `OPENRIG_OCCUPANT_GENERATION=${generation}`
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name) && Number(name) !== process.pid)
    .filter((name) => readProcFile(`/proc/${name}/environ`).split("\0").includes(wanted))
    .map((name) => ({
      pid: Number(name),
      command: readProcFile(`/proc/${name}/cmdline`).split("\0").join(" ").trim().slice(0, 200)
    }))
    .filter(({ pid }) => startTime(pid) !== undefined)
}

export const make = (
  store: RigStore,
  tmux: Tmux,
  occupants: Occupants,
  /** Completes when a launch that is under way has something to stop. */
  begun: (nodeId: string) => Effect.Effect<void>
): Stops => {
  /** Waits until the pane's process is gone, and until nothing carries the generation; what is left then is reported. */
  const leftovers = (pid: number, generation: string): Effect.Effect<ReadonlyArray<Leftover>> =>
    Effect.gen(function* () {
      const until = store.clock.steady() + patienceMs
      for (;;) {
        const left = carrying(generation)
        if (startTime(pid) === undefined && left.length === 0) return []
        if (store.clock.steady() >= until) return left
        yield* Effect.sleep(lookEveryMs)
      }
    })

  const ended = (seat: SeatRow) =>
    store.write((tx) => {
      const live = tx.seats.live(seat.nodeId)
      if (live !== undefined) occupants.end(tx, live, "stopped")
      else {
        // A stop is how a person settles what a launch came to, whose program is gone already.
        const launch = tx.seats.seat(seat.nodeId)?.launch
        if (launch !== undefined && launchStates[launch.state].needsPerson) {
          setLaunch(tx, seat.nodeId, { ...launch, state: "stopped", at: iso(tx.wall) })
        }
      }
      return live?.generation
    })

  return {
    stop: (seat) =>
      Effect.gen(function* () {
        yield* begun(seat.nodeId)
        const probe = yield* tmux.probe(seat.session)
        if (probe._tag === "Unavailable") return yield* new TmuxUnavailable({})
        if (probe._tag === "Present" && probe.nodeId !== seat.nodeId) {
          return {
            seat: seat.session,
            outcome: "left_running",
            reason: "session_not_ours"
          } satisfies SeatOutcome
        }
        const generation = yield* ended(seat)
        if (probe._tag === "Absent") {
          return {
            seat: seat.session,
            outcome: generation === undefined ? "not_running" : "stopped"
          } satisfies SeatOutcome
        }
        yield* tmux.kill(seat.session)
        const left = yield* leftovers(probe.pid, probe.generation ?? generation ?? "")
        return {
          seat: seat.session,
          outcome: "stopped",
          ...(left.length === 0 ? {} : { leftovers: left })
        } satisfies SeatOutcome
      })
  }
}
