/** The cancel control: asked for once, and said to be done only when the agent said so (SEAT-200 to 202). */
import { Clock, Effect } from "effect"
import { broken } from "../../Check.ts"
import { at } from "../../Json.ts"
import { demand, type Open, type RunnerCheck } from "../RunnerCheck.ts"
import { isTurnStop, occurredAt } from "../PostKinds.ts"
import type { Seat, Turn } from "../Seat.ts"

const cancels = (seat: Seat) => seat.agent.received("session/cancel")

const begun = (open: Open) =>
  Effect.gen(function* () {
    const seat = yield* open()
    yield* seat.opened
    const turn = yield* seat.turn("a long piece of work")
    yield* seat.accepted(turn)
    return { seat, turn }
  })

const cancelled = (seat: Seat) => seat.until("session/cancel at the agent", () => cancels(seat)[0])

/** One more turn: whatever a control did before, it has done by then. */
const another = (seat: Seat) =>
  Effect.gen(function* () {
    const turn = yield* seat.turn("and something else")
    seat.finish(turn)
    yield* seat.stopped(turn.at)
  })

const once = (open: Open, control: (seat: Seat) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { seat, turn } = yield* begun(open)
    yield* control(seat)
    const [cancel] = [yield* cancelled(seat)]
    yield* demand(cancel.id === undefined, "session/cancel is no notification: it has an id")
    yield* demand(at(cancel.params, "sessionId") === seat.nativeRef, "session/cancel names another session")
    seat.finish(turn, "cancelled")
    const stop = yield* seat.stopped(turn.at)
    yield* demand(stop.body["subtype"] === "cancelled", `the turn was posted as ${String(stop.body["subtype"])}`)
    yield* another(seat)
    yield* demand(cancels(seat).length === 1, `${cancels(seat).length} cancels were sent`)
  })

const slowly = (open: Open) =>
  Effect.gen(function* () {
    const { seat, turn } = yield* begun(open)
    const since = seat.timeline.now()
    yield* seat.send("/abort")
    yield* cancelled(seat)
    return { seat, turn, since }
  })

const stopOf = (seat: Seat, turn: Turn) => seat.posts(turn.at).find(isTurnStop)

export const cancelChecks: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-100",
    level: "must",
    title: "/abort sends one session/cancel",
    rules: ["SEAT-032", "SEAT-200"],
    run: (open) => once(open, (seat) => seat.send("/abort"))
  },
  {
    id: "CHK-101",
    level: "must",
    title: "byte 03 outside a paste does the same",
    rules: ["SEAT-200"],
    run: (open) => once(open, (seat) => seat.type("\u0003"))
  },
  {
    id: "CHK-102",
    level: "must",
    title: "no Stop / cancelled before the agent says so",
    rules: ["SEAT-201"],
    needs: ["CHK-100"],
    run: (open) =>
      Effect.gen(function* () {
        const { seat, turn } = yield* slowly(open)
        yield* seat.never("the turn was posted as ended while the agent still worked", () => stopOf(seat, turn), 3)
        const finished = yield* Clock.currentTimeMillis
        seat.finish(turn, "cancelled")
        const stop = yield* seat.stopped(turn.at)
        yield* demand(!(occurredAt(stop) < finished), "the turn's end was said before the agent ended it")
        yield* demand(stop.body["subtype"] === "cancelled", `the turn was posted as ${String(stop.body["subtype"])}`)
      })
  },
  {
    id: "CHK-103",
    level: "must",
    title: "a turn that ends otherwise after a cancel is posted as it ended",
    rules: ["SEAT-201"],
    needs: ["CHK-100"],
    run: (open) =>
      Effect.gen(function* () {
        const { seat, turn } = yield* slowly(open)
        seat.finish(turn, "end_turn")
        const stop = yield* seat.stopped(turn.at)
        yield* demand(
          stop.body["subtype"] === "end_turn",
          `the agent ended with end_turn, posted was ${String(stop.body["subtype"])}`
        )
      })
  },
  {
    id: "CHK-104",
    level: "should",
    title: "a control without a turn sends nothing",
    rules: ["SEAT-200"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* another(seat)
        yield* seat.send("/abort")
        yield* seat.type("\u0003")
        yield* another(seat)
        const [cancel] = cancels(seat)
        if (cancel !== undefined) return yield* broken("session/cancel was sent without a turn")
      })
  },
  {
    id: "CHK-105",
    level: "should",
    title: "the pane says that a cancel was requested, and cancelled only after the agent said so",
    rules: ["SEAT-201"],
    needs: ["CHK-100"],
    run: (open) =>
      Effect.gen(function* () {
        const { seat, since, turn } = yield* slowly(open)
        yield* seat.until("a line about the cancel in the pane", () => /cancel/iu.test(seat.shown(since)) || undefined)
        yield* seat.never(
          "the pane said cancelled before the agent did",
          () => /\bcancell?ed\b/iu.test(seat.shown(since)),
          3
        )
        yield* demand(/request/iu.test(seat.shown(since)), "the pane does not say that a cancel was requested")
        const before = seat.timeline.now()
        seat.finish(turn, "cancelled")
        yield* seat.until("the confirmed cancel in the pane", () => /cancel/iu.test(seat.shown(before)) || undefined)
      })
  }
]
