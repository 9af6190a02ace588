/** A permission request between its asking and the end of its turn: withdraw, order of posts, what is no answer (8.6). */
import { Clock, Effect } from "effect"
import { broken } from "../../Check.ts"
import { idText } from "../../Json.ts"
import { demand, type Open, type RunnerCheck } from "../RunnerCheck.ts"
import { outcomeOf, promptText } from "../agent/Frames.ts"
import { isAttention, isBeat, isResolved, isWorking, occurredAt } from "../PostKinds.ts"
import type { Seat, Turn } from "../Seat.ts"

const answered = { state: "answered", optionId: "yes-once" } as const

/** A seat in a turn with a request that waits in the rig. */
const waiting = (open: Open) =>
  Effect.gen(function* () {
    const seat = yield* open()
    yield* seat.opened
    const turn = yield* seat.turn("ask me something")
    yield* seat.accepted(turn)
    seat.ask(1)
    const ask = yield* seat.until("the ask at the rig", () => seat.rig.asks[0])
    yield* seat.until("a read of the ask", () => seat.seen("read")[0])
    return { seat, turn, ask }
  })

const withdraws: ReadonlyArray<readonly [string, (seat: Seat, turn: Turn) => Effect.Effect<void>]> = [
  ["turn_cancelled", (seat) => seat.type("\u0003")],
  ["turn_ended", (seat, turn) => Effect.sync(() => seat.finish(turn))],
  ["exited", (seat) => Effect.sync(() => seat.agent.exit(0))]
]

export const permissionLife: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-133",
    level: "must",
    title: "a request that nobody needs any more is withdrawn with its reason",
    rules: ["SEAT-170"],
    run: (open) =>
      Effect.forEach(
        withdraws,
        ([reason, happen]) =>
          Effect.gen(function* () {
            const { ask, seat, turn } = yield* waiting(open)
            yield* happen(seat, turn)
            const withdraw = yield* seat.until(`the withdraw with ${reason}`, () => seat.seen("withdraw")[0])
            yield* demand(
              withdraw.askId === ask.askId && withdraw.reason === reason,
              `the withdraw for ${reason} was ${withdraw.text}`
            )
          }),
        { concurrency: 3, discard: true }
      )
  },
  {
    id: "CHK-134",
    level: "must",
    title: "an answer that comes after the turn's end is not delivered",
    rules: ["SEAT-167"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        // The person answers in the moment in which the runner, knowing that the turn is over, withdraws.
        seat.rig.onWithdraw = (withdrawn) => withdrawn.settle(answered)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        ask.settle(answered)
        const second = yield* seat.turn("and another question")
        seat.ask(2)
        const next = yield* seat.until("the second ask at the rig", () => seat.rig.asks[1])
        yield* seat.until("a read of the second ask", () => seat.seen("read").find(({ askId }) => askId === next.askId))
        yield* demand(seat.agent.answerTo(2) === undefined, "the next request got an answer before anybody gave one")
        next.settle({ state: "answered", optionId: "no-once" })
        const outcome = yield* seat.outcome(2)
        yield* demand(outcome === "selected no-once", `the next request got ${outcome}`)
        seat.finish(second)
        yield* seat.stopped(second.at)
        yield* demand(seat.agent.answersTo(1).length <= 1, "the old request was answered again")
        yield* demand(
          !seat.agent.answersTo(1).some(({ message }) => outcomeOf(message) === "selected yes-once"),
          "an answer was delivered after the turn's end"
        )
        yield* demand(seat.agent.answersTo(2).length === 1, "the next request was answered twice")
      })
  },
  {
    id: "CHK-135",
    level: "must",
    title: "permission_resolved with turnId and askId follows the delivery, before any beat",
    rules: ["SEAT-165"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        const since = seat.timeline.now()
        ask.settle(answered)
        yield* seat.outcome(1)
        // The agent is quiet: nothing else can clear the seat's attention.
        const post = yield* seat.until(
          "a permission_resolved post",
          () => seat.posts(since).find((one) => isResolved(one) || isBeat(one)),
          25
        )
        yield* demand(isResolved(post), "a beat came before permission_resolved")
        yield* demand(
          idText(post.body["turnId"]) === "1" && post.body["askId"] === ask.askId,
          `the post is ${post.text}`
        )
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-136",
    level: "must",
    title: "said is neither an answer nor part of the turn",
    rules: ["SEAT-168"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        const said = "use yarn here, please"
        ask.settle({ state: "permitted", optionId: "yes-once", said })
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === "selected yes-once", `the agent got ${outcome}`)
        yield* demand(seat.agent.received("session/prompt").length === 1, "the words became a prompt within the turn")
        seat.say("going on")
        // A message behind the words: when it is a prompt, the words were queued before it, or dropped.
        yield* seat.send("behind the words")
        yield* seat.pause(200)
        yield* demand(seat.agent.received("session/prompt").length === 1, "the words became a prompt within the turn")
        seat.finish(turn)
        const second = yield* seat.prompt(2)
        const text = promptText(second)
        yield* demand(
          text === said || text === "behind the words",
          `the next prompt is ${JSON.stringify(text)}, neither the words nor the message behind them`
        )
        seat.agent.reply(second.id, { stopReason: "end_turn" })
      })
  },
  {
    id: "CHK-137",
    level: "must",
    title: "two requests at once get each its own answer",
    rules: ["SEAT-169"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        seat.ask("second")
        const second = yield* seat.until("the second ask at the rig", () => seat.rig.asks[1])
        yield* seat.until("a read of the second ask", () =>
          seat.seen("read").find(({ askId }) => askId === second.askId)
        )
        second.settle({ state: "answered", optionId: "no-once" })
        const other = yield* seat.until(
          "an answer at the agent",
          () => seat.agent.answerTo("second") ?? seat.agent.answerTo(1)
        )
        yield* demand(other.message?.["id"] === "second", "the answer to the second request went to the first")
        ask.settle(answered)
        const outcomes = [yield* seat.outcome(1), yield* seat.outcome("second")]
        yield* demand(
          outcomes.join() === "selected yes-once,selected no-once",
          `the answers are ${outcomes.join(" and ")}`
        )
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-138",
    level: "should",
    title: "no permission_resolved is posted while another request waits",
    rules: ["SEAT-165"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        seat.ask(2)
        const second = yield* seat.until("the second ask at the rig", () => seat.rig.asks[1])
        const since = seat.timeline.now()
        second.settle(answered)
        yield* seat.outcome(2)
        yield* seat.never(
          "permission_resolved was posted while another request waited",
          () => seat.posts(since).find(isResolved),
          2
        )
        const settled = yield* Clock.currentTimeMillis
        ask.settle(answered)
        yield* seat.outcome(1)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        // A post may be slower than the watch; what it says of its time is not.
        yield* demand(
          !seat.posts(since).some((post) => isResolved(post) && occurredAt(post) < settled),
          "permission_resolved was posted while another request waited"
        )
      })
  },
  {
    id: "CHK-139",
    level: "must",
    title: "the runner posts no permission_prompt of its own for an ask that the rig opened",
    rules: ["SEAT-171"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        ask.settle(answered)
        yield* seat.outcome(1)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        yield* demand(!seat.posts().some(isAttention), "permission_prompt was posted for the rig's own ask")
      })
  },
  {
    id: "CHK-140",
    level: "must",
    title: "an unknown request of the agent gets -32601, and the turn goes on",
    rules: ["SEAT-096"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("ask for the impossible")
        seat.agent.send({ id: "odd", method: "case/unheard_of", params: {} })
        const frame = yield* seat.until("an answer to an unknown request", () => seat.agent.answerTo("odd"))
        const error = frame.message?.["error"]
        const code = typeof error === "object" && error !== null && "code" in error ? error["code"] : undefined
        if (code !== -32_601) return yield* broken(`the answer is ${frame.text}`)
        seat.agent.send({ method: "case/unheard_of_notice", params: {} })
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-141",
    level: "should",
    title: "no working post is made while an ask waits",
    rules: ["SEAT-164"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        const since = seat.timeline.now()
        seat.tool("while-waiting", "read")
        seat.say("I talk while I wait")
        yield* seat.never("a working post was made while an ask waited", () => seat.posts(since).find(isWorking), 3)
        const settled = yield* Clock.currentTimeMillis
        ask.settle(answered)
        yield* seat.outcome(1)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        yield* demand(
          !seat.posts(since).some((post) => isWorking(post) && occurredAt(post) < settled),
          "a working post was made while an ask waited"
        )
      })
  },
  {
    id: "CHK-142",
    level: "must",
    title: "text that is typed while a request waits is queued, and is no answer",
    rules: ["SEAT-036", "SEAT-160"],
    run: (open) =>
      Effect.gen(function* () {
        const { ask, seat, turn } = yield* waiting(open)
        const since = seat.timeline.now()
        yield* seat.type("yes\r")
        yield* seat.until("the word queued in the pane", () =>
          /queued/iu.test(seat.shown(since)) || seat.agent.answerTo(1) !== undefined ? true : undefined
        )
        yield* demand(seat.agent.answerTo(1) === undefined, "the request was answered by text in the pane")
        ask.settle({ state: "answered", optionId: "no-once" })
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === "selected no-once", `the agent got ${outcome}`)
        seat.finish(turn)
        const next = yield* seat.prompt(2)
        yield* demand(promptText(next) === "yes", `the next prompt is ${JSON.stringify(promptText(next))}`)
        seat.agent.reply(next.id, { stopReason: "end_turn" })
      })
  }
]
