/** Beats and heartbeats: what keeps a seat's reading alive, and what must not (SEAT-128 to 131). Long watches. */
import { Effect } from "effect"
import { broken, skipped } from "../../Check.ts"
import { idText } from "../../Json.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import { isBeat, isExit, isHeartbeat, isStop, isWorking } from "../PostKinds.ts"
import type { Seat } from "../Seat.ts"
import type { Post } from "../Seen.ts"

/** The longest time without any of the events between two times. */
const longestGap = (from: number, to: number, events: ReadonlyArray<{ readonly at: number }>): number => {
  const times = [from, ...events.map(({ at }) => at), to]
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)))
}

const liveness = ({ body }: Post): number => Number(body["livenessSeconds"])

/** A late timer and a post's way are no fault of a program. */
const slackMs = ({ configuration }: Seat): number => 300 * configuration.timing.patience

const streaming = (seat: Seat, seconds: number) =>
  Effect.gen(function* () {
    const ends = seat.timeline.now() + seat.named(seconds)
    while (seat.timeline.now() < ends) {
      seat.say("more and more ")
      yield* seat.pass(1)
    }
  })

export const livenessChecks: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-047",
    level: "should",
    title: "a streaming turn never goes 15 s without a working post",
    rules: ["SEAT-128"],
    quiet: true,
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("talk for a while")
        yield* streaming(seat, 35)
        const gap = longestGap(turn.at, seat.timeline.now(), seat.posts(turn.at).filter(isWorking))
        yield* demand(
          gap <= seat.named(15) + slackMs(seat),
          `there was no working post for ${(gap / 1_000).toFixed(1)} s of a streaming turn`
        )
      })
  },
  {
    id: "CHK-048",
    level: "should",
    title: "beats carry their fields and come more often than half of their livenessSeconds",
    rules: ["SEAT-129"],
    quiet: true,
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("be quiet for a while")
        const accepted = yield* seat.accepted(turn)
        // The shortest livenessSeconds is 5: a shorter watch would not see that beats are too rare.
        yield* seat.pass(Math.max(40, 6_000 / seat.named(1)))
        const beats = seat.posts(turn.at).filter(isBeat)
        if (beats.length === 0) return yield* skipped("not_declared")
        for (const beat of beats) {
          yield* demand(
            idText(beat.body["turnId"]) === "1" &&
              beat.body["generation"] === seat.generation &&
              typeof beat.body["sequence"] === "number" &&
              liveness(beat) >= 5 &&
              liveness(beat) <= 60,
            `a beat lacks its fields: ${beat.text}`
          )
        }
        const seconds = Math.min(...beats.map(liveness))
        const gap = longestGap(accepted.at, seat.timeline.now(), seat.posts(accepted.at).filter(isWorking))
        yield* demand(
          gap <= (seconds * 1_000) / 2 + slackMs(seat),
          `livenessSeconds is ${seconds}, and ${(gap / 1_000).toFixed(1)} s passed without a beat`
        )
      })
  },
  {
    id: "CHK-049",
    level: "must",
    title: "no beat comes after Stop or exit, or while a request waits",
    rules: ["SEAT-129", "SEAT-164"],
    quiet: true,
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("be quiet, then ask")
        yield* seat.accepted(turn)
        const ends = seat.timeline.now() + seat.named(40)
        const first = yield* seat
          .until(
            "a beat, or the time for one",
            () => {
              const beat = seat.posts(turn.at).find(isBeat)
              if (beat !== undefined) return beat
              return seat.timeline.now() >= ends ? "none" : undefined
            },
            seat.named(40) / 1_000
          )
          .pipe(Effect.orElseSucceed(() => "none" as const))
        if (first === "none") return yield* skipped("not_declared")
        // Half as long again as it takes from the accepted post to the first beat: one would have come.
        const span = ((first.at - turn.at) * 1.5) / seat.named(1)
        const after = (what: string, from: number) =>
          seat.never(`a beat came ${what}`, () => seat.posts(from + 50).find(isBeat), span)

        seat.ask(1)
        const ask = yield* seat.until("the ask at the rig", () => seat.rig.asks[0])
        yield* after("while a request waited", seat.timeline.now())
        ask.settle({ state: "answered", optionId: "yes-once" })
        yield* seat.outcome(1)
        seat.finish(turn)
        const stop = yield* seat.stopped(turn.at)
        yield* after("after Stop", stop.at)
        const second = yield* seat.turn("and now end")
        yield* seat.accepted(second)
        seat.agent.exit(1)
        const exit = yield* seat.until("the exit post", () => seat.posts(second.at).find(isExit))
        yield* demand(!seat.posts(exit.at).some(isBeat), "a beat came after the exit")
      })
  },
  {
    id: "CHK-054",
    level: "should",
    title: "idle heartbeats, if any, come within twice their livenessSeconds, and none comes in a turn",
    rules: ["SEAT-131"],
    quiet: true,
    run: (open) =>
      Effect.gen(function* () {
        const [idle, working] = yield* Effect.all([open(), open()], { concurrency: 2 })
        yield* idle.opened
        yield* working.opened
        const began = idle.timeline.now()
        const turn = yield* working.turn("a quiet turn")
        const accepted = yield* working.accepted(turn)
        const watched = idle.never("the idle runner ended", () => idle.ended(), 90)
        const unbroken = working.never(
          "an idle heartbeat came in a turn",
          () => working.posts(accepted.at).find(isStop),
          90
        )
        yield* Effect.all([watched, unbroken], { concurrency: 2 })
        const beats = idle.posts(began).filter(isHeartbeat)
        if (beats.length === 0) return yield* skipped("not_declared")
        const seconds = Math.min(...beats.map(liveness))
        const first = beats[0]?.at ?? began
        const gap = longestGap(first, idle.timeline.now(), beats)
        if (gap > 2_000 * seconds + slackMs(idle)) {
          return yield* broken(`livenessSeconds is ${seconds}, and ${(gap / 1_000).toFixed(1)} s passed`)
        }
      })
  }
]
