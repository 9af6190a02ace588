/** A resume reopens exactly the conversation, or says honestly that it could not (SEAT-223 to 230). */
import { Effect } from "effect"
import { broken, type Stop } from "../../Check.ts"
import type { Handler } from "../agent/Agent.ts"
import type { JsonObject } from "../../Json.ts"
import { demand, type Open, type RunnerCheck } from "../RunnerCheck.ts"
import type { Seat } from "../Seat.ts"

const wanted = "conversation-of-before"

const canResume: JsonObject = { sessionCapabilities: { resume: {} } }
const canLoad: JsonObject = { loadSession: true }
const canList: JsonObject = { sessionCapabilities: { resume: {}, list: {} } }

const refuse =
  (code: number, message: string): Handler =>
  (received, agent) =>
    agent.fail(received.id, code, message)

interface Resume {
  readonly capabilities?: JsonObject
  readonly reopen?: Handler
  readonly list?: Handler
}

const resume = (open: Open, { capabilities = canResume, list, reopen }: Resume) =>
  Effect.gen(function* () {
    const seat = yield* open({
      capabilities,
      env: () => ({ OPENRIG_RESUME_REF: wanted }),
      agent: {
        ...(reopen === undefined ? {} : { "session/resume": reopen, "session/load": reopen }),
        ...(list === undefined ? {} : { "session/list": list })
      }
    })
    return seat
  })

const reopens = (seat: Seat) => seat.agent.received().filter(({ method }) => /^session\/(?:resume|load)$/u.test(method))

/** The record, or the end of a runner that wrote none. */
const result = (seat: Seat, seconds = 5): Effect.Effect<JsonObject | "none", Stop> =>
  seat.until(
    "the launch record, or the runner's end",
    () => seat.record() ?? (seat.ended() === undefined ? undefined : "none"),
    seconds
  )

const notMissing = (record: JsonObject | "none", seat: Seat) =>
  Effect.gen(function* () {
    yield* demand(record === "none" || record["error"] !== "missing", "the record says missing")
    yield* demand(
      record === "none" || record["nativeRef"] === undefined,
      `the record names a conversation: ${JSON.stringify(record)}`
    )
    yield* demand(seat.agent.received("session/new").length === 0, "a new conversation was opened")
  })

const by =
  (method: string, other: string, capabilities: JsonObject): RunnerCheck["run"] =>
  (open) =>
    Effect.gen(function* () {
      const seat = yield* resume(open, { capabilities })
      const called = yield* seat.until("a call that reopens", () => reopens(seat)[0] ?? seat.ended(), 10)
      if (!("method" in called)) return yield* broken("the runner ended without a call that reopens")
      yield* demand(
        called.method === method,
        `${called.method} was called, advertised is ${method} alone (not ${other})`
      )
      yield* demand(called.params["sessionId"] === wanted, "another conversation was asked for")
    })

/** Lists one page after the other, by cursor. */
const pages =
  (content: (cursor: unknown) => JsonObject | undefined): Handler =>
  (received, agent) => {
    const page = content(received.params["cursor"])
    if (page === undefined) agent.fail(received.id, -32_603, "the page cannot be read")
    else agent.reply(received.id, page)
  }

const rows = (...ids: ReadonlyArray<string>): JsonObject["sessions"] & ReadonlyArray<JsonObject> =>
  ids.map((sessionId) => ({ sessionId, cwd: "/" }))

/** Ways in which an agent does not reopen without saying that the conversation is gone. */
const unsure: ReadonlyArray<readonly [string, Handler]> = [
  ["-32602", refuse(-32_602, "Invalid params")],
  ["-32603 with the words not found", refuse(-32_603, `session not found: ${wanted}`)],
  ["its exit", (_received, agent) => agent.exit(1)],
  ["silence", () => undefined]
]

export const resumes: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-160",
    level: "must",
    title: "it reopens with session/load when only that is advertised",
    rules: ["SEAT-224"],
    feature: "resume",
    run: by("session/load", "session/resume", canLoad)
  },
  {
    id: "CHK-161",
    level: "must",
    title: "it reopens with session/resume when only that is advertised",
    rules: ["SEAT-224"],
    feature: "resume",
    run: by("session/resume", "session/load", canResume)
  },
  {
    id: "CHK-162",
    level: "must",
    title: "a resume never opens a new conversation",
    rules: ["SEAT-223"],
    feature: "resume",
    run: (open) =>
      Effect.forEach(
        [
          undefined,
          refuse(-32_002, "no such session"),
          refuse(-32_603, "it is busy"),
          refuse(-32_601, "unknown method")
        ],
        (reopen) =>
          Effect.gen(function* () {
            const seat = yield* resume(open, reopen === undefined ? {} : { reopen })
            yield* seat.until(
              "the launch record, a new conversation, or the end",
              () => seat.agent.received("session/new")[0] ?? seat.record() ?? seat.ended(),
              10
            )
            if (seat.ended() === undefined && reopen !== undefined) {
              yield* seat.never(
                "a new conversation was opened",
                () => seat.ended() === undefined && seat.agent.received("session/new")[0],
                1
              )
            }
            yield* demand(seat.agent.received("session/new").length === 0, "a new conversation was opened")
          }),
        { concurrency: 4, discard: true }
      )
  },
  {
    id: "CHK-163",
    level: "must",
    title: "a reopened conversation is recorded under its own id",
    rules: ["SEAT-224"],
    feature: "resume",
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* resume(open, {})
        const record = yield* result(seat, 10)
        yield* demand(
          record !== "none" && record["nativeRef"] === wanted && record["error"] === undefined,
          `the record is ${JSON.stringify(record)}`
        )
      })
  },
  {
    id: "CHK-164",
    level: "must",
    title: "the agent's own not-found is recorded as missing",
    rules: ["SEAT-226", "SEAT-229"],
    feature: "resume",
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* resume(open, { reopen: refuse(-32_002, "no such session") })
        const record = yield* result(seat, 10)
        yield* demand(
          record !== "none" && record["error"] === "missing" && record["nativeRef"] === undefined,
          `the record is ${JSON.stringify(record)}`
        )
        yield* demand(
          record !== "none" && record["attempt"] === seat.attempt && record["format"] === 1,
          `the record is no record of this launch: ${JSON.stringify(record)}`
        )
      })
  },
  {
    id: "CHK-165",
    level: "must",
    title: "another error, words, a timeout or an exit are not missing",
    rules: ["SEAT-227"],
    feature: "resume",
    quiet: true,
    run: (open, { timing }) =>
      Effect.forEach(
        unsure,
        ([name, reopen]) =>
          Effect.gen(function* () {
            const seat = yield* resume(open, { reopen })
            yield* seat.until("a call that reopens", () => reopens(seat)[0], 10)
            // Silence is watched for longer than a runner may wait.
            const seconds = name === "silence" ? Math.max(2, 75 * timing.scale) : 10
            const record = yield* result(seat, seconds).pipe(Effect.orElseSucceed(() => "none" as const))
            yield* notMissing(record, seat).pipe(Effect.mapError((stop) => broken(`after ${name}: ${stop.message}`)))
          }),
        { concurrency: 4, discard: true }
      )
  },
  {
    id: "CHK-166",
    level: "must",
    title: "a conversation that is listed and refused as not found is not missing",
    rules: ["SEAT-226"],
    feature: "resume",
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* resume(open, {
          capabilities: canList,
          reopen: refuse(-32_002, "no such session"),
          list: pages(() => ({ sessions: rows("another", wanted) }))
        })
        yield* notMissing(yield* result(seat, 10), seat)
      })
  },
  {
    id: "CHK-167",
    level: "should",
    title: "an empty cursor is followed, and a page that cannot be read decides nothing",
    rules: ["SEAT-228"],
    feature: "resume",
    run: (open) =>
      Effect.gen(function* () {
        const reopen = refuse(-32_002, "no such session")
        const followed = yield* resume(open, {
          capabilities: canList,
          reopen,
          list: pages((cursor) =>
            cursor === "" ? { sessions: rows(wanted) } : { sessions: rows("another"), nextCursor: "" }
          )
        })
        yield* notMissing(yield* result(followed, 10), followed).pipe(
          Effect.mapError((stop) => broken(`listed behind an empty cursor: ${stop.message}`))
        )
        const unread = yield* resume(open, {
          capabilities: canList,
          reopen,
          list: pages((cursor) => (cursor === "2" ? undefined : { sessions: rows("another"), nextCursor: "2" }))
        })
        const record = yield* result(unread, 15)
        yield* demand(
          record !== "none" && record["error"] === "missing",
          `after the agent's not-found and an unreadable page the record is ${JSON.stringify(record)}`
        )
      })
  },
  {
    id: "CHK-168",
    level: "should",
    title: "when another conversation was opened, its id or nothing is recorded",
    rules: ["SEAT-225"],
    feature: "resume",
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* resume(open, {
          reopen: (received, agent) => agent.reply(received.id, { sessionId: "another-conversation" })
        })
        const record = yield* result(seat, 10)
        yield* demand(
          record === "none" || record["nativeRef"] === "another-conversation" || typeof record["error"] === "string",
          `the record is ${JSON.stringify(record)}`
        )
      })
  }
]
