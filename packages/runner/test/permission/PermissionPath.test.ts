import { assert, describe, it } from "@effect/vitest"
import { permissionSubmit, seatLimits } from "@tackroom/protocol/seat"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { makeRequestIds } from "../../src/permission/RequestIds.ts"
import { makePermissionPath, type Outcome, type PermissionRequest } from "../../src/permission/PermissionPath.ts"
import type { Released } from "../../src/activity/Reporter.ts"
import { type Exchange, makeFakeRig } from "../support/FakeRig.ts"

const allow = { optionId: "allow", name: "Allow", kind: "allow_once" }
const always = { optionId: "always", name: "Always", kind: "allow_always" }
const reject = { optionId: "reject", name: "Reject", kind: "reject_once" }
const toolCall = { toolCallId: "t1", title: "Edit src/a.ts", kind: "edit" }

const names = { sessionName: "dev-builder@mill", nodeId: "nod_1", runtime: "otter", generation: "g1" }

const make = Effect.fnUntraced(function* (whenUnanswerable: "permit" | "refuse" = "permit") {
  const rig = yield* makeFakeRig
  const lines: Array<string> = []
  const words: Array<string> = []
  /** What the reports were told, in order. */
  const told: Array<string | ReadonlyArray<Released>> = []
  const path = yield* makePermissionPath({
    client: rig.client,
    names,
    nativeRef: () => "c-81",
    now: () => "2026-11-30T09:00:00.000Z",
    reporter: {
      waiting: () => told.push("waiting"),
      resumed: (released) => told.push(released),
      hold: () => told.push("hold")
    },
    say: (line, keep) => lines.push(`${keep === "always" ? "" : "(may go) "}${line}`),
    queueWords: (said) => words.push(said),
    whenUnanswerable
  })
  path.turnStarted("4")
  const ask = (more: Partial<PermissionRequest> = {}) => {
    const answers: Array<Outcome> = []
    const request: PermissionRequest = {
      id: 7,
      toolCall,
      options: [always, allow, reject],
      answer: (outcome) => answers.push(outcome),
      ...more
    }
    path.ask(request)
    return { answers, request }
  }
  const sent = (): ReadonlyArray<string> =>
    rig.exchanges.map(
      ({ request }) => `${request.method} ${request.path.replace(/^\/api\/activity\/permission-requests/u, "")}`
    )
  const tick = TestClock.adjust(1)
  return { rig, lines, words, told, path, ask, sent, tick }
})

const selected = (optionId: string): Outcome => ({ _tag: "Selected", optionId })
const cancelled: Outcome = { _tag: "Cancelled" }

/** Answers a submit with an ask and leaves its reads to the test. */
const opensAsk = (exchange: Exchange): void => {
  if (exchange.request.method === "POST" && !exchange.request.path.endsWith("/withdraw")) {
    exchange.answer(200, { askId: "ask_A", created: true })
  } else if (exchange.request.path.endsWith("/withdraw")) exchange.answer(200, { askId: "ask_A", state: "withdrawn" })
}

type Path = Effect.Success<ReturnType<typeof make>>

/** What is sent back at submit, or while reading, and what becomes of the request. */
const settle = Effect.fnUntraced(function* (
  where: "submit" | "read",
  status: number,
  body: object,
  whenUnanswerable?: "permit" | "refuse"
) {
  const path: Path = yield* make(whenUnanswerable)
  path.rig.respond = (exchange) => {
    const isSubmit = exchange.request.method === "POST"
    if (isSubmit && where === "read") opensAsk(exchange)
    else exchange.answer(status, body)
  }
  const { answers } = path.ask()
  yield* path.tick
  return { ...path, answers, held: path.told.includes("hold") }
})

describe("what came back", () => {
  it.effect(
    "an ask is read with a wait, pending again and again, and a person's option is delivered once [SEAT-160, SEAT-163, SEAT-Q1, SEAT-Q2, SEAT-Q3]",
    () =>
      Effect.gen(function* () {
        const { ask, lines, rig, sent, tick, told } = yield* make()
        rig.respond = opensAsk
        const { answers } = ask()
        yield* tick
        for (let i = 0; i < 40; i++) {
          yield* TestClock.adjust(25_000)
          rig.exchanges.at(-1)?.answer(200, { askId: "ask_A", state: "pending" })
          yield* tick
        }
        assert.deepStrictEqual(answers, [])
        rig.exchanges.at(-1)?.answer(200, { askId: "ask_A", state: "answered", optionId: "reject" })
        yield* tick
        assert.deepStrictEqual(answers, [selected("reject")])
        assert.deepStrictEqual(sent().slice(0, 3), ["POST ", "GET /ask_A?waitSeconds=25", "GET /ask_A?waitSeconds=25"])
        assert.strictEqual(sent().length, 42)
        assert.deepStrictEqual(told, ["waiting", [{ _tag: "Asked", askId: "ask_A" }]])
        assert.deepStrictEqual(lines, [
          "permission > asked: Edit src/a.ts (edit); options: Always (allow_always), Allow (allow_once), Reject (reject_once)",
          "permission > waiting in the rig: ask_A",
          "permission > answered: Reject (reject_once)"
        ])
      })
  )

  for (const where of ["submit", "read"] as const) {
    it.effect(`a permit at ${where} is delivered [SEAT-Q3]`, () =>
      Effect.gen(function* () {
        const { answers, lines, told } = yield* settle(where, 200, {
          askId: "ask_A",
          state: "permitted",
          optionId: "always",
          reason: "no_registered_person"
        })
        assert.deepStrictEqual(answers, [selected("always")])
        assert.strictEqual(
          lines.at(-1),
          "permission > permitted by the rig: Always (allow_always): no_registered_person"
        )
        assert.deepStrictEqual(told.at(-1), where === "read" ? [{ _tag: "Asked", askId: "ask_A" }] : [])
      })
    )

    for (const code of ["denied_by_seat", "options_unsupported"]) {
      it.effect(`${code} at ${where} is refused, shown and held [SEAT-171, SEAT-Q5, SEAT-Q6]`, () =>
        Effect.gen(function* () {
          const { answers, held, lines } = yield* settle(where, code === "denied_by_seat" ? 409 : 422, { code })
          assert.deepStrictEqual([answers, held], [[cancelled], true])
          assert.strictEqual(
            lines.at(-1),
            `permission > REFUSED: Edit src/a.ts: ${code}. This seat needs attention until its next message.`
          )
        })
      )
    }

    for (const [status, code] of [
      [409, "stale_generation"],
      [403, "activity_grant_wrong_seat"],
      [409, "activity_grant_stale"]
    ] as const) {
      it.effect(`${code} at ${where} is cancelled and not held [SEAT-Q7]`, () =>
        Effect.gen(function* () {
          const { answers, held, lines } = yield* settle(where, status, { code })
          assert.deepStrictEqual([answers, held], [[cancelled], false])
          assert.strictEqual(lines.at(-1), `permission > cancelled: ${code}`)
        })
      )
    }

    for (const [status, code] of [
      [401, "activity_grant_revoked"],
      [409, "activity_grant_pending"],
      [409, "duplicate_request"],
      [404, "not_found"],
      [418, "teapot"],
      [500, "internal"],
      [302, undefined]
    ] as const) {
      it.effect(
        `${status} ${code ?? "without a code"} at ${where} is permitted here, once, and shown [SEAT-Q8, SEAT-Q9]`,
        () =>
          Effect.gen(function* () {
            const { answers, held, lines, told } = yield* settle(where, status, code === undefined ? {} : { code })
            assert.deepStrictEqual([answers, held], [[selected("allow")], false])
            assert.strictEqual(
              lines.at(-1),
              `permission > PERMITTED BY THIS RUNNER: Edit src/a.ts: Allow (allow_once): ${code ?? `the rig answered ${status}`}. The rig has no record of it.`
            )
            assert.deepStrictEqual(told.at(-1), [
              where === "read" ? { _tag: "Asked", askId: "ask_A" } : { _tag: "OwnPermit", toolKind: "edit" }
            ])
          })
      )
    }
  }

  for (const body of [{ state: "refused", reason: "said_no" }, { state: "withdrawn" }, { state: "stale" }]) {
    it.effect(`${body.state} is cancelled and not held [SEAT-Q4]`, () =>
      Effect.gen(function* () {
        const { answers, held, lines } = yield* settle("read", 200, body)
        assert.deepStrictEqual([answers, held], [[cancelled], false])
        assert.strictEqual(lines.at(-1), `permission > ${body.state === "refused" ? "refused: said_no" : body.state}`)
      })
    )
  }

  it.effect("an option that was not offered, or a body of another shape, is no answer [SEAT-173, SEAT-Q9]", () =>
    Effect.gen(function* () {
      for (const body of [
        { state: "answered", optionId: "other" },
        { state: "answered" },
        { state: "new" },
        { askId: 7 }
      ]) {
        const { answers } = yield* settle("read", 200, body)
        assert.deepStrictEqual(answers, [selected("allow")], JSON.stringify(body))
      }
    })
  )

  it.effect("without an option to allow, or when told to refuse, nothing is permitted here [SEAT-Q9]", () =>
    Effect.gen(function* () {
      const refusing = yield* settle("submit", 404, {}, "refuse")
      assert.deepStrictEqual([refusing.answers, refusing.held], [[cancelled], true])
      const path = yield* make()
      path.rig.respond = (exchange) => exchange.answer(500)
      const { answers } = path.ask({ options: [reject, { optionId: "x", name: "X", kind: "allow_for_now" }] })
      yield* path.tick
      assert.deepStrictEqual([answers, path.told.includes("hold")], [[cancelled], true])
    })
  )
})

describe("a rig that does not answer", () => {
  it.effect("a submit is tried twice more, unchanged, then permitted here [SEAT-162]", () =>
    Effect.gen(function* () {
      const { ask, rig } = yield* make()
      const { answers } = ask()
      yield* TestClock.adjust(31_249)
      assert.deepStrictEqual(
        rig.exchanges.map(({ at }) => at),
        [0, 10_250, 21_250]
      )
      assert.deepStrictEqual(rig.exchanges[2]?.body, rig.exchanges[0]?.body)
      assert.deepStrictEqual(answers, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(answers, [selected("allow")])
    })
  )

  it.effect("a read is tried four times more, then permitted here [SEAT-163]", () =>
    Effect.gen(function* () {
      const { ask, rig } = yield* make()
      rig.respond = (exchange) => (exchange.request.method === "POST" ? opensAsk(exchange) : exchange.fail("broken"))
      const { answers } = ask()
      yield* TestClock.adjust(7_499)
      assert.deepStrictEqual(answers, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(answers, [selected("allow")])
      assert.deepStrictEqual(
        rig.exchanges.filter(({ request }) => request.method === "GET").map(({ at }) => at),
        [0, 500, 1_500, 3_500, 7_500]
      )
    })
  )

  it.effect("a rig that is not there is not insisted on [SEAT-Q9]", () =>
    Effect.gen(function* () {
      const { ask, rig, tick } = yield* make()
      rig.respond = (exchange) => exchange.fail("no_rig")
      const { answers } = ask()
      yield* tick
      assert.deepStrictEqual([answers, rig.exchanges.length], [[selected("allow")], 1])
    })
  )
})

describe("the body of a submit", () => {
  it.effect("holds the request as it was made [SEAT-161]", () =>
    Effect.gen(function* () {
      const { ask, rig } = yield* make()
      for (const id of [7, "8", null, "ü/1"]) ask({ id })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(
        rig.exchanges.map(({ body }) => body["requestId"]),
        [7, "8", null, "ü/1"]
      )
      assert.deepStrictEqual(rig.exchanges[0]?.body, {
        sessionName: "dev-builder@mill",
        nodeId: "nod_1",
        generation: "g1",
        nativeRef: "c-81",
        turnId: "4",
        requestId: 7,
        toolCall,
        options: [always, allow, reject],
        occurredAt: "2026-11-30T09:00:00.000Z"
      })
    })
  )

  it.effect("loses what is large in a fixed order, and says so [SEAT-161]", () =>
    Effect.gen(function* () {
      const { ask, rig } = yield* make()
      const large = "x".repeat(200_000)
      ask({ toolCall: { ...toolCall, content: [large], rawOutput: large, rawInput: { a: 1 } } })
      ask({ toolCall: { ...toolCall, content: [], rawOutput: large, rawInput: { large }, _meta: { mine: 1 } } })
      ask({ toolCall: { toolCallId: "t1", title: "é".repeat(200_000), kind: "edit" } })
      yield* TestClock.adjust(1)
      const [first, second, third] = rig.exchanges.map(
        ({ body }) => body["toolCall"] as Readonly<Record<string, unknown>>
      )
      assert.deepStrictEqual(first, {
        ...toolCall,
        rawOutput: large,
        rawInput: { a: 1 },
        _meta: { tackroom: { truncated: ["content"] } }
      })
      assert.deepStrictEqual(second, {
        ...toolCall,
        rawInput: { large },
        _meta: { mine: 1, tackroom: { truncated: ["content", "rawOutput"] } }
      })
      assert.strictEqual(third?.["title"], "é".repeat(2_048))
    })
  )

  it.effect("names what the request had lost before, beside what it loses here [SEAT-161]", () =>
    Effect.gen(function* () {
      const { ask, rig } = yield* make()
      const large = "x".repeat(300_000)
      ask({ toolCall: { ...toolCall, content: [large], _meta: { tackroom: { truncated: ["rawInput", 7] } } } })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rig.exchanges[0]?.body["toolCall"], {
        ...toolCall,
        _meta: { tackroom: { truncated: ["rawInput", "content"] } }
      })
    })
  )

  it.effect("loses what nests too deep to be walked through, and is asked all the same [SEAT-161]", () =>
    Effect.gen(function* () {
      const { answers, lines, rig } = yield* Effect.gen(function* () {
        const path = yield* make()
        path.rig.respond = opensAsk
        let nested: unknown = []
        for (let depth = 0; depth < 20_000; depth += 1) nested = [nested]
        const asked = path.ask({ toolCall: { ...toolCall, rawInput: nested as never } })
        yield* path.tick
        return { ...path, ...asked }
      })
      assert.deepStrictEqual(answers, [], "nobody permitted it")
      assert.deepStrictEqual(rig.exchanges[0]?.body["toolCall"], {
        ...toolCall,
        _meta: { tackroom: { truncated: ["rawInput"] } }
      })
      assert.include(lines, "permission > waiting in the rig: ask_A")
    })
  )
})

/** A rig with a seat set to refusal that keeps the contract's limits and tells requests by their ids (W2, W5). */
const denying = (): ((exchange: Exchange) => void) => {
  const seen = new Map<string, unknown>()
  return (exchange) => {
    const { body } = exchange
    const id = String(body["requestId"])
    const earlier = seen.get(id)
    if (!seen.has(id)) seen.set(id, body["turnId"])
    if (Buffer.byteLength(JSON.stringify(exchange.request.body)) > seatLimits.permissionBodyBytes) {
      exchange.answer(413, { code: "body_too_large" })
    } else if (!permissionSubmit.is(body)) exchange.answer(400, { code: "invalid_field" })
    else if (earlier !== undefined && earlier !== body["turnId"]) exchange.answer(409, { code: "duplicate_request" })
    else exchange.answer(409, { code: "denied_by_seat" })
  }
}

describe("a request that its agent makes hard to ask about", () => {
  const huge = "x".repeat(5 << 20)
  const hostile: Readonly<Record<string, Partial<PermissionRequest>>> = {
    "a huge _meta": { toolCall: { ...toolCall, _meta: { huge } } },
    "huge locations": { toolCall: { ...toolCall, locations: [{ path: huge }] } },
    "a huge toolCallId": { toolCall: { ...toolCall, toolCallId: huge } },
    "a huge title": { toolCall: { ...toolCall, title: huge } },
    "a huge title of no text": { toolCall: { ...toolCall, title: [huge] as never } },
    "a huge name of a field": { toolCall: { ...toolCall, [huge]: 1 } },
    "many fields": {
      toolCall: {
        ...toolCall,
        ...Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`${"f".repeat(220)}${at}`, at]))
      }
    },
    "a huge name of an option": { options: [{ ...allow, name: huge }, reject] },
    "a huge id of an option": { options: [{ ...allow, optionId: huge }, reject] },
    "a huge kind of an option": { options: [allow, { ...reject, kind: huge }] },
    "many options": { options: Array.from({ length: 60_000 }, (_, at) => ({ ...allow, optionId: `allow ${at}` })) },
    "a long id": { id: "i".repeat(257) },
    "an id that no store keeps": { id: "\ud800" },
    "an id beyond all numbers": { id: Number.POSITIVE_INFINITY },
    "an id that is no id": { id: { id: 7 } }
  }
  for (const [what, request] of Object.entries(hostile)) {
    it.effect(`by ${what} is still refused by a seat that denies [SEAT-161, SEAT-Q5]`, () =>
      Effect.gen(function* () {
        const { ask, lines, rig, tick } = yield* make()
        rig.respond = denying()
        const { answers } = ask(request)
        yield* tick
        assert.deepStrictEqual(answers, [cancelled])
        assert.isTrue(lines.every((line) => line.length < 5_000))
        // What identifies the call is still told.
        const told = rig.exchanges[0]?.body["toolCall"] as Readonly<Record<string, unknown>>
        assert.strictEqual(told["kind"], "edit")
      })
    )
  }

  it.effect("by an id of an earlier turn, or of this one, is asked about anew [SEAT-Q5, SEAT-172]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, tick } = yield* make()
      rig.respond = denying()
      const all = [ask({ id: 7 }), ask({ id: "7" })]
      yield* tick
      yield* path.turnEnded
      path.turnStarted("5")
      all.push(ask({ id: 7 }), ask({ id: "7#2" }))
      yield* tick
      assert.deepStrictEqual(
        all.map(({ answers }) => answers),
        all.map(() => [cancelled])
      )
      const ids = rig.exchanges.map(({ body }) => body["requestId"])
      assert.deepStrictEqual([ids[0], ids[1], new Set(ids.map(String)).size], [7, "7#2", 4])
    })
  )

  it.effect("by a huge id of an option gets that option when a person picks it [SEAT-161, SEAT-Q3]", () =>
    Effect.gen(function* () {
      const { ask, rig, tick } = yield* make()
      rig.respond = (exchange) => {
        if (exchange.request.method === "POST") return opensAsk(exchange)
        const sent = rig.exchanges[0]?.body["options"] as ReadonlyArray<{ readonly optionId: string }> | undefined
        exchange.answer(200, { state: "answered", optionId: sent?.[1]?.optionId })
      }
      const { answers } = ask({ options: [allow, { ...reject, optionId: huge }] })
      yield* tick
      assert.isTrue(answers.length === 1 && answers[0]?._tag === "Selected" && answers[0].optionId === huge)
    })
  )

  it.effect("by a thousand others is asked about when its turn comes [SEAT-160, SEAT-169]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, tick } = yield* make()
      const all = Array.from({ length: 1_000 }, (_, id) => ask({ id }))
      yield* tick
      assert.strictEqual(rig.exchanges.length, 16)
      rig.exchanges[3]?.answer(409, { code: "denied_by_seat" })
      yield* tick
      assert.strictEqual(rig.exchanges.length, 17)
      yield* path.turnEnded
      assert.isTrue(all.every(({ answers }) => answers.length === 1 && answers[0]?._tag === "Cancelled"))
      for (const { answer } of rig.exchanges) answer(409, { code: "denied_by_seat" })
      yield* tick
      assert.strictEqual(rig.exchanges.length, 17, "nothing is asked for a turn that is over")
    })
  )

  it.effect.prop(
    "and by whatever ids it uses, none is told twice [SEAT-172]",
    [
      Schema.Array(
        Schema.Union([
          Schema.Literals([7, "7", "7#2", "7#3", "null", "\ud800", "\udc00"]),
          Schema.Null,
          Schema.Number,
          Schema.String,
          Schema.String.check(Schema.isMinLength(250), Schema.isMaxLength(300))
        ])
      )
    ],
    ([ids]) =>
      Effect.sync(() => {
        const idOf = makeRequestIds()
        const given = ids.map(idOf)
        assert.strictEqual(new Set(given.map(String)).size, ids.length)
        for (const one of given) assert.isTrue(typeof one !== "string" || Buffer.byteLength(one) <= 256)
      }),
    { arbitrary: { runs: 50, size: 40 } }
  )
})

describe("the life of a request", () => {
  it.effect("requests do not wait on each other; what was delivered is told when none waits [SEAT-165, SEAT-169]", () =>
    Effect.gen(function* () {
      const { ask, rig, tick, told } = yield* make()
      rig.respond = (exchange) => {
        if (exchange.request.method === "POST")
          exchange.answer(200, { askId: `ask_${String(exchange.body["requestId"])}`, created: true })
      }
      const seven = ask({ id: 7 })
      const eight = ask({ id: 8 })
      yield* tick
      const readOf = (askId: string) => rig.exchanges.find(({ request }) => request.path.includes(`/${askId}?`))
      const [readSeven, readEight] = [readOf("ask_7"), readOf("ask_8")]
      readEight?.answer(200, { state: "answered", optionId: "allow" })
      yield* tick
      assert.deepStrictEqual([seven.answers, eight.answers], [[], [selected("allow")]])
      assert.deepStrictEqual(told, ["waiting", "waiting"])
      readSeven?.answer(200, { state: "permitted", optionId: "always", said: "use yarn here" })
      yield* tick
      assert.deepStrictEqual(seven.answers, [selected("always")])
      assert.deepStrictEqual(told.at(-1), [
        { _tag: "Asked", askId: "ask_8" },
        { _tag: "Asked", askId: "ask_7" }
      ])
    })
  )

  it.effect("a person's words are shown and queued, and change no outcome [SEAT-168]", () =>
    Effect.gen(function* () {
      for (const [body, outcome] of [
        [{ state: "permitted", optionId: "allow", said: "use\nyarn" }, selected("allow")],
        [{ state: "refused", reason: "no_allow_offered", said: "use\nyarn" }, cancelled]
      ] as const) {
        const { answers, lines, words } = yield* settle("read", 200, body)
        assert.deepStrictEqual([answers, words], [[outcome], ["use\nyarn"]])
        assert.include(lines, "(may go) said > use\nyarn")
      }
    })
  )

  it.effect("a cancel answers what waits, withdraws it, and lets nothing more through [SEAT-170, SEAT-200]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, sent, tick, told } = yield* make()
      rig.respond = opensAsk
      const { answers } = ask()
      yield* tick
      path.cancelTurn()
      const later = ask({ id: 8 })
      yield* tick
      assert.deepStrictEqual([answers, later.answers], [[cancelled], [cancelled]])
      assert.deepStrictEqual(sent(), ["POST ", "GET /ask_A?waitSeconds=25", "POST /ask_A/withdraw"])
      assert.deepStrictEqual(rig.exchanges[2]?.body, { reason: "turn_cancelled" })
      assert.deepStrictEqual(told, ["waiting", []])
    })
  )

  it.effect("an answer that comes too late is discarded and said [SEAT-167]", () =>
    Effect.gen(function* () {
      const { ask, lines, path, rig, tick } = yield* make()
      rig.respond = opensAsk
      const { answers } = ask()
      yield* tick
      yield* path.turnEnded
      rig.exchanges[1]?.answer(200, { state: "answered", optionId: "allow" })
      yield* tick
      assert.deepStrictEqual(answers, [cancelled])
      assert.strictEqual(lines.at(-1), "permission > late answer discarded: Edit src/a.ts: Allow (allow_once)")
    })
  )

  it.effect("an ask that opens after its turn's end is withdrawn [SEAT-170]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, sent, tick } = yield* make()
      const { answers } = ask()
      yield* tick
      yield* path.turnEnded
      assert.deepStrictEqual(answers, [cancelled])
      rig.respond = opensAsk
      rig.exchanges[0]?.answer(200, { askId: "ask_A", created: true })
      yield* tick
      assert.deepStrictEqual(sent(), ["POST ", "POST /ask_A/withdraw"])
      assert.deepStrictEqual(rig.exchanges[1]?.body, { reason: "turn_ended" })
    })
  )

  it.effect("a request that the agent takes back is answered so and withdrawn [SEAT-167, SEAT-170]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, tick, told } = yield* make()
      rig.respond = opensAsk
      const { answers, request } = ask()
      yield* tick
      path.takeBack(request)
      path.takeBack(request)
      yield* tick
      assert.deepStrictEqual(answers, [{ _tag: "TakenBack" }])
      assert.deepStrictEqual(rig.exchanges[2]?.body, { reason: "turn_cancelled" })
      assert.deepStrictEqual(told.at(-1), [])
    })
  )

  it.effect("an ask that only this runner permitted is withdrawn at the turn's end [SEAT-170]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, sent, tick } = yield* make()
      rig.respond = (exchange) => (exchange.request.method === "GET" ? exchange.answer(500) : opensAsk(exchange))
      ask()
      yield* tick
      yield* path.turnEnded
      yield* tick
      assert.deepStrictEqual(sent(), ["POST ", "GET /ask_A?waitSeconds=25", "POST /ask_A/withdraw"])
    })
  )

  it.effect("the stop waits for withdraws, and at most half a second; they are tried three times [SEAT-170]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, sent, tick } = yield* make()
      rig.respond = (exchange) => (exchange.request.path.endsWith("/withdraw") ? undefined : opensAsk(exchange))
      ask()
      yield* tick
      let ended = false
      yield* Effect.forkChild(
        Effect.andThen(
          path.turnEnded,
          Effect.sync(() => (ended = true))
        )
      )
      yield* TestClock.adjust(499)
      assert.isFalse(ended)
      yield* TestClock.adjust(1)
      assert.isTrue(ended)
      yield* TestClock.adjust(20_000)
      assert.strictEqual(sent().filter((line) => line.endsWith("/withdraw")).length, 3)
    })
  )

  it.effect("a request outside of a turn is cancelled and asks nobody [SEAT-160]", () =>
    Effect.gen(function* () {
      const { ask, lines, path, rig, tick } = yield* make()
      yield* path.turnEnded
      const { answers } = ask()
      yield* tick
      assert.deepStrictEqual([answers, rig.exchanges], [[cancelled], []])
      assert.strictEqual(lines.at(-1), "permission > cancelled: Edit src/a.ts: no turn is running")
    })
  )

  it.effect("an ask that was settled for another request answers no new one [SEAT-172]", () =>
    Effect.gen(function* () {
      const { ask, rig, tick } = yield* make()
      rig.respond = (exchange) =>
        exchange.request.method === "POST"
          ? opensAsk(exchange)
          : exchange.answer(200, { state: "answered", optionId: "reject" })
      const first = ask()
      yield* tick
      const second = ask()
      yield* tick
      assert.deepStrictEqual([first.answers, second.answers], [[selected("reject")], [selected("allow")]])
      assert.strictEqual(rig.exchanges.length, 3)
    })
  )

  it.effect("the agent's exit settles and withdraws what is open [SEAT-170]", () =>
    Effect.gen(function* () {
      const { ask, path, rig, tick } = yield* make()
      rig.respond = opensAsk
      const { answers } = ask()
      yield* tick
      path.exited()
      yield* path.drained
      assert.deepStrictEqual([answers, rig.exchanges[2]?.body], [[cancelled], { reason: "exited" }])
    })
  )
})
