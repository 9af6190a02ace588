/** The form and order of activity posts, and that nothing waits for them (seat contract 5.2, SEAT-120 to 127). */
import { Clock, Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { broken } from "../../Check.ts"
import { idText, type JsonObject } from "../../Json.ts"
import { answer, type Reply, refusal, reset, silence } from "../rig/Rig.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import { isAccepted, isExit, isStop, isTurnStop, occurredAt } from "../PostKinds.ts"
import type { Seat } from "../Seat.ts"
import { nodeId, sessionName } from "../SeatEnvironment.ts"
import type { Post } from "../Seen.ts"

const fields = ["sessionName", "nodeId", "runtime", "generation", "sequence", "occurredAt", "hookEvent", "subtype"]

const faultOf = (seat: Seat, body: JsonObject): string | undefined => {
  const missing = fields.filter((field) => body[field] === undefined)
  if (missing.length > 0) return `lacks ${missing.join(", ")}`
  if (body["sessionName"] !== sessionName) return "has another sessionName"
  if (body["nodeId"] !== nodeId) return "has another nodeId"
  if (body["runtime"] !== seat.configuration.harness) return "has another runtime"
  if (body["generation"] !== seat.generation) return "has another generation"
  const { sequence } = body
  return typeof sequence === "number" && Number.isSafeInteger(sequence) && sequence >= 0
    ? undefined
    : "has no whole number as sequence"
}

/** A turn with a bit of everything. */
const busyTurn = (seat: Seat, text: string) =>
  Effect.gen(function* () {
    const turn = yield* seat.turn(text)
    seat.say("on it")
    seat.tool(`tool-${turn.number}`, "execute")
    seat.finish(turn)
    yield* seat.stopped(turn.at)
    return turn
  })

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/u

/** A turn comes to the agent and ends there, whatever becomes of its posts. */
const silentTurn = (seat: Seat, text: string) =>
  Effect.gen(function* () {
    const turn = yield* seat.turn(text)
    seat.say("working all the same")
    seat.finish(turn)
  })

const endpoints: ReadonlyArray<
  readonly [string, (seat: { readonly url: string; readonly port: number }) => Record<string, string | undefined>]
> = [
  ["OPENRIG_URL alone", ({ url }) => ({ OPENRIG_URL: url, OPENRIG_HOST: undefined, OPENRIG_PORT: undefined })],
  [
    "OPENRIG_PORT alone",
    ({ port }) => ({ OPENRIG_URL: undefined, OPENRIG_HOST: undefined, OPENRIG_PORT: String(port) })
  ],
  [
    "activity-endpoint.json",
    () => ({
      OPENRIG_URL: undefined,
      OPENRIG_HOST: undefined,
      OPENRIG_PORT: undefined,
      OPENRIG_ACTIVITY_HOOK_TOKEN: undefined
    })
  ]
]

const refusals: ReadonlyArray<readonly [string, Reply]> = [
  ["401", refusal(401, "activity_hook_unauthorized")],
  ["409", refusal(409, "activity_grant_pending")],
  ["500", refusal(500, "internal")],
  ["a reset connection", reset]
]

const reasons = ["end_turn", "max_tokens", "refusal", "max_turn_requests"]

export const posts: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-040",
    level: "must",
    title: "every post has the eight fields and the bearer token",
    rules: ["SEAT-123"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* busyTurn(seat, "one of everything")
        for (const post of seat.posts()) {
          const fault = faultOf(seat, post.body)
          if (fault !== undefined) return yield* broken(`a post ${fault}: ${post.text}`)
        }
        const [stray] = seat.seen("stray")
        if (stray !== undefined) return yield* broken(`a request that the wire does not have: ${stray.text}`)
      })
  },
  {
    id: "CHK-041",
    level: "must",
    title: "sequence rises over the whole process",
    rules: ["SEAT-122"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        for (const text of ["one", "two", "three"]) yield* busyTurn(seat, text)
        const numbers = seat.posts().map(({ body }) => Number(body["sequence"]))
        yield* demand(
          numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0)),
          `the sequences are ${numbers.join(", ")}`
        )
      })
  },
  {
    id: "CHK-042",
    level: "must",
    title: "one post is in flight at a time, in order",
    rules: ["SEAT-120"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({
          rig: (rig) => {
            rig.onPost = () => answer(200, { ok: true }, 400)
          }
        })
        yield* seat.opened
        const turn = yield* seat.turn("slow rig")
        seat.say("a")
        seat.tool("t1", "read")
        seat.finish(turn)
        yield* seat.stopped(turn.at, 10)
        const most = Math.max(...seat.posts().map(({ inFlight }) => inFlight))
        yield* demand(most === 1, `${most} posts were in flight at once`)
        const numbers = seat.posts().map(({ body }) => Number(body["sequence"]))
        // A post whose answer came too late may be tried again, with its number.
        yield* demand(
          numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? 0)),
          `the posts arrived in the order ${numbers.join(", ")}`
        )
      })
  },
  {
    id: "CHK-043",
    level: "must",
    title: "a rig that hangs does not delay the agent",
    rules: ["SEAT-120", "SEAT-121"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({
          rig: (rig) => {
            rig.onPost = () => silence
          }
        })
        yield* seat.opened
        for (const text of ["one", "two", "three"]) {
          yield* seat.send(text)
          const prompt = yield* seat.prompt(seat.agent.received("session/prompt").length + 1, 1)
          seat.say("working")
          seat.agent.reply(prompt.id, { stopReason: "end_turn" })
        }
      })
  },
  {
    id: "CHK-044",
    level: "must",
    title: "one accepted post per prompt, with its number, not before the agent has the prompt",
    rules: ["SEAT-127"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const first = yield* seat.turn("the first")
        yield* seat.accepted(first)
        // Larger than a pipe holds: while the agent does not read, it cannot have the queued prompt.
        const text = `the second ${"x".repeat(600_000)}`
        seat.agent.pause()
        yield* seat.until("the agent's pause", () => seat.agent.paused() || undefined)
        yield* seat.paste(text)
        yield* seat.pause(200)
        yield* seat.enter
        // What the pane says is another promise; here it only tells that the message was taken.
        yield* seat
          .until("the word queued in the pane", () => /queued/iu.test(seat.output(first.at)) || undefined)
          .pipe(Effect.ignore)
        seat.finish(first)
        yield* seat.stopped(first.at)
        yield* seat.pause(250)
        const early = "prompt 2 was posted as accepted before the agent could read it"
        yield* demand(!seat.posts().some((post) => isAccepted(post) && idText(post.body["turnId"]) === "2"), early)
        const resumed = yield* Clock.currentTimeMillis
        seat.agent.resume()
        const second = yield* seat.prompt(2, 10)
        const post = yield* seat.accepted({ number: 2, id: second.id ?? 0, at: second.frame.at })
        yield* demand(!(occurredAt(post) < resumed), early)
        seat.agent.reply(second.id, { stopReason: "end_turn" })
        yield* seat.stopped(post.at)
        const ids = seat
          .posts()
          .filter(isAccepted)
          .map(({ body }) => idText(body["turnId"]))
        yield* demand(ids.join() === "1,2", `the accepted posts have the turn ids ${ids.join(", ")}`)
      })
  },
  {
    id: "CHK-045",
    level: "must",
    title: "Stop carries the agent's stop reason",
    rules: ["SEAT-130"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        for (const reason of reasons) {
          const turn = yield* seat.turn(`end with ${reason}`)
          seat.finish(turn, reason)
          const { body } = yield* seat.stopped(turn.at)
          yield* demand(
            body["subtype"] === reason,
            `the agent ended with ${reason}, posted was ${String(body["subtype"])}`
          )
        }
      })
  },
  {
    id: "CHK-046",
    level: "should",
    title: "idle Stops state a valid livenessSeconds",
    rules: ["SEAT-130", "SEAT-131"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* busyTurn(seat, "how long are you idle?")
        for (const { body } of seat.posts().filter((post) => isStop(post) && !isExit(post))) {
          const { livenessSeconds } = body
          yield* demand(
            typeof livenessSeconds === "number" &&
              Number.isInteger(livenessSeconds) &&
              livenessSeconds >= 1 &&
              livenessSeconds <= 3_600,
            `a Stop has livenessSeconds ${JSON.stringify(livenessSeconds)}`
          )
        }
      })
  },
  {
    id: "CHK-050",
    level: "must",
    title: "the agent's exit is posted as an exit, with no other Stop after it",
    rules: ["SEAT-132"],
    run: (open, { harness }) =>
      Effect.gen(function* () {
        const [idle, working] = yield* Effect.all([open(), open()], { concurrency: 2 })
        yield* idle.opened
        yield* working.opened
        const turn = yield* working.turn("you will not survive this")
        yield* working.accepted(turn)
        for (const seat of [idle, working]) {
          const since = seat.timeline.now()
          seat.agent.exit(3)
          const isExitPost = (post: Post): boolean => isStop(post) && post.body["subtype"] === `${harness}_exited`
          const exit = yield* seat.until(`Stop / ${harness}_exited`, () =>
            seat.posts(since).find((post) => isExitPost(post) || isTurnStop(post))
          )
          yield* demand(isExitPost(exit), `the agent's exit was posted as ${exit.text}`)
          yield* seat.never(
            "another Stop came after the exit",
            () => seat.ended() === undefined && seat.posts(exit.at).find((post) => post !== exit && isStop(post)),
            seat.ended() === undefined ? 2 : 0
          )
          yield* demand(
            !seat.posts(exit.at).some((post) => post !== exit && isStop(post)),
            "another Stop came after the exit"
          )
        }
      })
  },
  {
    id: "CHK-051",
    level: "must",
    title: "the endpoint comes from the URL, from host and port, or from the file",
    rules: [],
    run: (open) =>
      Effect.forEach(
        endpoints,
        ([name, variables]) =>
          Effect.gen(function* () {
            const seat = yield* open({
              env: (usual) => {
                if (name === "activity-endpoint.json") {
                  writeFileSync(
                    join(usual.rigHome, "activity-endpoint.json"),
                    JSON.stringify({ baseUrl: usual.url, token: usual.token }),
                    { mode: 0o600 }
                  )
                }
                return variables(usual)
              }
            })
            yield* seat.opened
            const turn = yield* seat.turn("where is the rig?")
            yield* seat.until(`a post to the endpoint of ${name}`, () => seat.posts().find(isAccepted))
            seat.finish(turn)
          }),
        { concurrency: 3, discard: true }
      )
  },
  {
    id: "CHK-052",
    level: "must",
    title: "refused, failed and lost posts do not stop the work",
    rules: ["SEAT-125", "SEAT-126"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        for (const [name, reply] of refusals) {
          // By number: a post of the moment before was answered otherwise, whatever the clock says.
          const before = seat.posts().length
          seat.rig.onPost = () => reply
          yield* silentTurn(seat, `posts meet ${name}`)
          yield* seat.until(`a post that met ${name}`, () => seat.posts()[before])
        }
        yield* silentTurn(seat, "still there?")
        yield* demand(seat.ended() === undefined, "the runner ended")
      })
  },
  {
    id: "CHK-053",
    level: "should",
    title: "occurredAt is valid and never falls",
    rules: ["SEAT-122"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* busyTurn(seat, "what time is it?")
        yield* busyTurn(seat, "and now?")
        let last = 0
        for (const { body } of seat.posts()) {
          const text = String(body["occurredAt"])
          const time = Date.parse(text)
          yield* demand(
            instant.test(text) && !Number.isNaN(time),
            `occurredAt is ${text}: no ISO 8601 time with an offset`
          )
          yield* demand(time >= last, `occurredAt fell to ${text}`)
          last = time
        }
      })
  }
]
