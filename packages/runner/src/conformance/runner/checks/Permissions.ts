/** What reaches the rig and what the agent gets back for each answer of the rig (seat contract 5.3, 5.4 and table Q). */
import { Effect } from "effect"
import { broken, type Broken } from "../../Check.ts"
import type { RpcId } from "../agent/Agent.ts"
import { idText, isObject, sameJson } from "../../Json.ts"
import type { Ask } from "../rig/Asks.ts"
import { answer, refusal, reset } from "../rig/Rig.ts"
import { demand, type Open, type RunnerCheck } from "../RunnerCheck.ts"
import { isAttention } from "../PostKinds.ts"
import { type Seat, type Turn, usualOptions } from "../Seat.ts"
import { nodeId, sessionName } from "../SeatEnvironment.ts"
import {
  denied,
  endsPosting,
  maybeLive,
  notCurrent,
  refusedRow,
  revoked,
  type Row,
  unlisted,
  unsupported
} from "./PermissionRows.ts"

const reject = [{ optionId: "no-once", name: "Reject", kind: "reject_once" }]

const opened = (open: Open) =>
  Effect.gen(function* () {
    const seat = yield* open()
    yield* seat.opened
    return seat
  })

const selected = (optionId: string): string => `selected ${optionId}`

/** The runner says in its pane that it permitted by itself, and what. */
const printed = (seat: Seat, since: number, title: string) =>
  seat.until(`its own permit of ${JSON.stringify(title)} in the pane`, () => {
    const shown = seat.shown(since)
    return (shown.includes(title) && /\bpermit(?:s|ted)?\b/iu.test(shown)) || undefined
  })

const attention = (seat: Seat, since: number) =>
  seat.until("a permission_prompt post", () => seat.posts(since).find(isAttention))

/** After a refusal that holds: no post at all until the next accepted prompt, though the agent goes on and ends. */
const held = (seat: Seat, turn: Turn, since: number, seconds: number) =>
  Effect.gen(function* () {
    const prompt = yield* attention(seat, since)
    seat.say("then I do something else")
    seat.tool("after", "read")
    const silent = seat.never(
      "a post was made while attention was held",
      () => seat.posts().find(({ at }) => at > prompt.at),
      seconds
    )
    yield* silent
    seat.finish(turn)
    const next = yield* seat.turn("go on, then")
    const accepted = yield* seat.accepted(next)
    const between = seat.posts().find(({ at }) => at > prompt.at && at < accepted.at)
    yield* demand(between === undefined, `a post was made while attention was held: ${between?.text}`)
    seat.finish(next)
    yield* seat.stopped(accepted.at)
  })

/** The agent asks in a turn of its own, and the answer must come to what the row says. */
const meets = (seat: Seat, { meant, name }: Row, id: RpcId, arrange: (since: number) => Effect.Effect<void, Broken>) =>
  Effect.gen(function* () {
    const since = seat.timeline.now()
    const turn = yield* seat.turn(`a request that meets ${name}`)
    const title = `Edit ${name.replaceAll(" ", "-")}.ts`
    seat.ask(id, { title })
    yield* arrange(since)
    const outcome = yield* seat.outcome(id, 8)
    const expected = meant === "permitted" ? selected("yes-once") : "cancelled"
    yield* demand(outcome === expected, `the agent got ${outcome}, not ${expected}`)
    if (meant === "held") return yield* held(seat, turn, since, 0.3)
    if (meant === "permitted") yield* printed(seat, since, title)
    seat.finish(turn)
    const stopped = seat.stopped(since)
    yield* endsPosting.test(name) ? stopped.pipe(Effect.timeoutOption(1_000), Effect.ignore) : stopped
    yield* demand(!seat.posts(since).some(isAttention), "attention was held")
  }).pipe(Effect.mapError((stop) => (stop._tag === "Broken" ? broken(`${name}: ${stop.message}`) : stop)))

/** Every row at submit, one turn each. */
const atSubmit = (open: Open, rows: ReadonlyArray<Row>) =>
  Effect.gen(function* () {
    const seat = yield* opened(open)
    for (const [index, one] of rows.entries()) {
      seat.rig.onSubmit = () => one.reply
      yield* meets(seat, one, index + 1, () => Effect.void)
    }
    return seat
  })

const newestAsk = (seat: Seat, count: number): Effect.Effect<Ask, Broken> =>
  seat.until("the ask at the rig", () => seat.rig.asks[count - 1])

const answered = { state: "answered", optionId: "yes-once" } as const

export const permissions: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-120",
    level: "must",
    title: "a submit has all fields, the request's id unchanged, all options in order",
    rules: ["SEAT-160", "SEAT-161"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        const turn = yield* seat.turn("two requests, please")
        const options = [
          { optionId: "always", name: "Always", kind: "allow_always" },
          ...usualOptions,
          { optionId: "never: ever/again", name: "Never", kind: "reject_always" }
        ]
        const ids: ReadonlyArray<RpcId> = [70, "request-\u00e4"]
        for (const [index, id] of ids.entries()) {
          seat.ask(id, { options, title: "Run make", kind: "execute" })
          const { body } = yield* seat.until("the request at the rig", () => seat.submits()[index])
          const toolCall = { toolCallId: `call-${id}`, title: "Run make", kind: "execute", status: "pending" }
          const wrong = [
            ...(body["sessionName"] === sessionName ? [] : ["sessionName"]),
            ...(body["nodeId"] === nodeId ? [] : ["nodeId"]),
            ...(body["generation"] === seat.generation ? [] : ["generation"]),
            ...(body["nativeRef"] === seat.nativeRef ? [] : ["nativeRef"]),
            ...(idText(body["turnId"]) === "1" ? [] : ["turnId"]),
            ...(idText(body["requestId"]) === String(id) ? [] : ["requestId"]),
            ...(isObject(body["toolCall"]) && sameJson(body["toolCall"], toolCall) ? [] : ["toolCall"]),
            ...(sameJson(body["options"], options) ? [] : ["options"]),
            ...(typeof body["occurredAt"] === "string" && !Number.isNaN(Date.parse(body["occurredAt"]))
              ? []
              : ["occurredAt"])
          ]
          yield* demand(wrong.length === 0, `the submit is wrong in ${wrong.join(", ")}: ${JSON.stringify(body)}`)
          const ask = yield* newestAsk(seat, index + 1)
          ask.settle(answered)
          yield* seat.outcome(id)
        }
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-121",
    level: "must",
    title: "permitted at submit is delivered",
    rules: ["SEAT-160"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        seat.rig.onSubmit = () =>
          answer(200, { ok: true, state: "permitted", optionId: "yes-once", reason: "no_registered_person" })
        const turn = yield* seat.turn("nobody is there")
        seat.ask(1)
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === selected("yes-once"), `the agent got ${outcome}`)
        yield* demand(seat.seen("read").length === 0, "a permit at submit was read again")
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-122",
    level: "must",
    title: "an answer after two pending reads is delivered once, and no read waits for more than 25 s",
    rules: ["SEAT-163", "SEAT-167"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        let reads = 0
        seat.rig.onRead = (askId) => {
          reads += 1
          return reads <= 2 ? answer(200, { ok: true, askId, state: "pending" }, 50) : undefined
        }
        const turn = yield* seat.turn("a slow person")
        seat.ask(1)
        const ask = yield* newestAsk(seat, 1)
        yield* seat.until("a third read", () => seat.seen("read")[2])
        yield* demand(seat.agent.answerTo(1) === undefined, "the agent got an answer while the ask was pending")
        ask.settle(answered)
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === selected("yes-once"), `the agent got ${outcome}`)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        yield* demand(seat.agent.answersTo(1).length === 1, "the answer was delivered more than once")
        const waits = seat.seen("read").map(({ waitSeconds }) => waitSeconds ?? 0)
        yield* demand(
          waits.every((wait) => wait <= 25),
          `reads asked to wait ${waits.join(", ")} s`
        )
      })
  },
  {
    id: "CHK-123",
    level: "must",
    title: "refused, withdrawn and stale mean cancelled, without holding attention",
    rules: ["SEAT-165"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        const rows = [
          refusedRow({ state: "refused", reason: "said_no" }, "refused"),
          refusedRow({ state: "withdrawn", reason: "row_canceled" }, "withdrawn"),
          refusedRow({ state: "stale" }, "stale")
        ]
        for (const [index, one] of rows.entries()) {
          seat.rig.onRead = () => one.reply
          yield* meets(seat, one, index + 1, () => Effect.void)
        }
      })
  },
  {
    id: "CHK-124",
    level: "must",
    title: "denied_by_seat: cancelled at once, permission_prompt, then no post until the next accepted prompt",
    rules: ["SEAT-171"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        seat.rig.onSubmit = () => denied.reply
        const turn = yield* seat.turn("delete everything")
        seat.ask(1)
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === "cancelled", `the agent got ${outcome}`)
        const prompt = yield* attention(seat, turn.at)
        // The agent goes on talking for five seconds, ends, and nothing of it is posted.
        const ends = seat.timeline.now() + seat.named(5)
        while (seat.timeline.now() < ends) {
          seat.say("well, ")
          yield* seat.pass(0.5)
        }
        yield* held(seat, turn, prompt.at, 0)
      })
  },
  {
    id: "CHK-125",
    level: "must",
    title: "options_unsupported: the same",
    rules: ["SEAT-171"],
    run: (open) => Effect.asVoid(atSubmit(open, [unsupported]))
  },
  {
    id: "CHK-126",
    level: "must",
    title: "a submit refused because the seat has another occupant: cancelled, nothing held",
    rules: ["SEAT-160"],
    run: (open) => Effect.asVoid(atSubmit(open, notCurrent))
  },
  {
    id: "CHK-127",
    level: "must",
    title: "revoked, pending and duplicate at submit: the runner permits by itself and prints it",
    rules: ["SEAT-166"],
    run: (open) => Effect.asVoid(atSubmit(open, [...maybeLive, revoked]))
  },
  {
    id: "CHK-128",
    level: "must",
    title: "404, 418, 500, an unlisted code or no connection at submit: its own permit, printed",
    rules: ["SEAT-162", "SEAT-173"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* atSubmit(open, unlisted)
        const since = seat.timeline.now()
        const turn = yield* seat.turn("and now without a rig")
        yield* seat.rig.disappear
        seat.ask("last", { title: "Edit the last one" })
        const outcome = yield* seat.outcome("last", 12)
        yield* demand(outcome === selected("yes-once"), `a refused connection: the agent got ${outcome}`)
        yield* printed(seat, since, "Edit the last one")
        seat.finish(turn)
      })
  },
  {
    id: "CHK-129",
    level: "must",
    title: "every code means the same while reading",
    rules: ["SEAT-163"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        const rows = [...maybeLive, ...unlisted, denied, unsupported, revoked, ...notCurrent]
        for (const [index, one] of rows.entries()) {
          let reads = 0
          seat.rig.onRead = (askId) => {
            reads += 1
            return reads === 1 ? answer(200, { ok: true, askId, state: "pending" }) : one.reply
          }
          yield* meets(seat, one, index + 1, () => Effect.void).pipe(
            Effect.mapError((stop) => (stop._tag === "Broken" ? broken(`while reading, ${stop.message}`) : stop))
          )
        }
      })
  },
  {
    id: "CHK-130",
    level: "must",
    title: "its own permit takes allow_once though allow_always comes first",
    rules: ["SEAT-166"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        seat.rig.onSubmit = () => refusal(404, "not_found")
        const turn = yield* seat.turn("permit it yourself")
        seat.ask(1, { options: [{ optionId: "always", name: "Always", kind: "allow_always" }, ...usualOptions] })
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === selected("yes-once"), `the agent got ${outcome}`)
        seat.ask(2, { options: [...reject, { optionId: "always", name: "Always", kind: "allow_always" }] })
        const only = yield* seat.outcome(2)
        yield* demand(only === selected("always"), `with allow_always alone the agent got ${only}`)
        seat.finish(turn)
      })
  },
  {
    id: "CHK-131",
    level: "must",
    title: "without an allow option and without a rig: cancelled, and attention is held",
    rules: ["SEAT-171"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        // The permission route is gone; the posts still arrive, so that the hold can be seen.
        seat.rig.onSubmit = () => reset
        const turn = yield* seat.turn("nothing to permit with")
        seat.ask(1, { options: reject })
        const outcome = yield* seat.outcome(1, 12)
        yield* demand(outcome === "cancelled", `the agent got ${outcome}`)
        yield* held(seat, turn, turn.at, 0.3)
      })
  },
  {
    id: "CHK-132",
    level: "must",
    title: "a minute of pending is neither cancelled nor permitted",
    rules: ["SEAT-163"],
    quiet: true,
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        const turn = yield* seat.turn("a very slow person")
        seat.ask(1)
        const ask = yield* newestAsk(seat, 1)
        yield* seat.never("the request was answered though nobody had", () => seat.agent.answerTo(1), 60)
        ask.settle({ state: "answered", optionId: "no-once" })
        const outcome = yield* seat.outcome(1)
        yield* demand(outcome === selected("no-once"), `the agent got ${outcome}`)
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-143",
    level: "must",
    title: "a refused request is shown in the pane by its title",
    rules: ["SEAT-171"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* opened(open)
        seat.rig.onSubmit = () => answer(409, { ok: false, code: "denied_by_seat" }, 300)
        const turn = yield* seat.turn("may I?")
        const title = "Delete the build folder"
        seat.ask(1, { title })
        yield* seat.until("the request at the rig", () => seat.submits()[0])
        // What was printed about the request before its refusal is not the refusal.
        yield* seat.pause(150)
        const since = seat.timeline.now()
        yield* seat.outcome(1)
        yield* seat.until("the refused request in the pane", () => seat.shown(since).includes(title) || undefined)
        seat.finish(turn)
      })
  }
]
