import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeActivityQueue, type Told, type Weight } from "../../src/activity/ActivityQueue.ts"
import { type EndpointSource, findEndpoint } from "../../src/rig/Endpoint.ts"
import { type Exchange, makeFakeRig } from "../support/FakeRig.ts"

const names = { sessionName: "dev-builder@mill", nodeId: "nod_1", runtime: "otter", generation: "g1" }
const fixed = findEndpoint({ OPENRIG_URL: "http://127.0.0.1:1", OPENRIG_ACTIVITY_HOOK_TOKEN: "t" }, () => undefined)

const make = Effect.fnUntraced(function* (endpoint: EndpointSource = fixed) {
  const rig = yield* makeFakeRig
  const lines: Array<string> = []
  const queue = yield* makeActivityQueue({ client: rig.client, endpoint, names, say: (line) => lines.push(line) })
  const add = (subtype: string, weight: Weight, more: Partial<Told> = {}): void =>
    queue.add({ hookEvent: "active", subtype, ...more }, weight)
  const sent = (): ReadonlyArray<unknown> => rig.exchanges.map(({ body }) => body["subtype"])
  const at = (): ReadonlyArray<number> => rig.exchanges.map((exchange) => exchange.at)
  return { rig, lines, queue, add, sent, at }
})

const accept = (exchange: Exchange): void => exchange.answer(200)

describe("the order of posts", () => {
  it.effect("one post is in flight, the next one goes when it is answered [SEAT-120]", () =>
    Effect.gen(function* () {
      const { add, rig, sent } = yield* make()
      add("a", "boundary")
      add("b", "boundary")
      yield* TestClock.adjust(400)
      assert.deepStrictEqual(sent(), ["a"])
      rig.exchanges[0]?.answer(200)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent(), ["a", "b"])
    })
  )

  it.effect("numbers start at one and rise, times never fall when the clock steps back [SEAT-122]", () =>
    Effect.gen(function* () {
      const { add, rig } = yield* make()
      rig.respond = accept
      yield* TestClock.setTime(60_000)
      add("a", "boundary")
      yield* TestClock.setTime(30_000)
      add("b", "boundary")
      yield* TestClock.setTime(60_001)
      add("c", "boundary")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(
        rig.exchanges.map(({ body }) => [body["sequence"], body["occurredAt"]]),
        [
          [1, "1970-01-01T00:01:00.000Z"],
          [2, "1970-01-01T00:01:00.000Z"],
          [3, "1970-01-01T00:01:00.001Z"]
        ]
      )
    })
  )

  it.effect("a post has the names that the seat was given, and nothing else [SEAT-123]", () =>
    Effect.gen(function* () {
      const { add, rig } = yield* make()
      rig.respond = accept
      add("accepted", "boundary", { turnId: "1" })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rig.exchanges[0]?.body, {
        ...names,
        hookEvent: "active",
        subtype: "accepted",
        turnId: "1",
        sequence: 1,
        occurredAt: "1970-01-01T00:00:00.000Z"
      })
    })
  )
})

describe("what gives way", () => {
  it.effect("a soft post takes the place of those behind the last boundary, never of a boundary [SEAT-124]", () =>
    Effect.gen(function* () {
      const { add, rig, sent } = yield* make()
      add("first", "boundary")
      yield* TestClock.adjust(1)
      add("s1", "soft")
      add("s2", "soft")
      add("b1", "boundary")
      add("s3", "soft")
      add("s4", "soft")
      rig.respond = accept
      rig.exchanges[0]?.answer(200)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent(), ["first", "s2", "b1", "s4"])
      // Numbers belong to what was enqueued, so those of the dropped posts are missing.
      assert.deepStrictEqual(
        rig.exchanges.map(({ body }) => body["sequence"]),
        [1, 3, 4, 6]
      )
    })
  )

  it.effect("at most 32 soft posts wait, the oldest goes first [SEAT-124]", () =>
    Effect.gen(function* () {
      const { add, rig, sent } = yield* make()
      add("first", "boundary")
      yield* TestClock.adjust(1)
      for (let i = 1; i <= 40; i++) {
        add(`s${i}`, "soft")
        add(`b${i}`, "boundary")
      }
      rig.respond = accept
      rig.exchanges[0]?.answer(200)
      yield* TestClock.adjust(1)
      const soft = sent().filter((subtype) => String(subtype).startsWith("s"))
      assert.strictEqual(soft.length, 32)
      assert.strictEqual(soft[0], "s9")
      assert.strictEqual(sent().length, 1 + 32 + 40)
    })
  )

  it.effect("soft posts can be dropped, boundaries stay [SEAT-164]", () =>
    Effect.gen(function* () {
      const { add, queue, rig, sent } = yield* make()
      add("first", "boundary")
      yield* TestClock.adjust(1)
      add("b", "boundary")
      add("s", "soft")
      queue.dropSoft()
      rig.respond = accept
      rig.exchanges[0]?.answer(200)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent(), ["first", "b"])
    })
  )

  it.effect("ten thousand waiting boundaries are too many: activity goes off [SEAT-125]", () =>
    Effect.gen(function* () {
      const { add, lines, queue, rig, sent } = yield* make()
      add("first", "boundary")
      yield* TestClock.adjust(1)
      for (let i = 0; i < 10_000; i++) add("b", "boundary")
      assert.deepStrictEqual(lines, [])
      add("b", "boundary")
      assert.deepStrictEqual(lines, ["error > too many activity posts wait: activity off for this run"])
      rig.exchanges[0]?.answer(200)
      yield* queue.drained
      assert.deepStrictEqual(sent(), ["first"])
    })
  )
})

describe("posts that do not arrive", () => {
  it.effect("a boundary without an answer is tried twice more, unchanged, then given up [SEAT-121, SEAT-125]", () =>
    Effect.gen(function* () {
      const { add, at, rig, sent } = yield* make()
      add("a", "boundary")
      add("b", "boundary")
      yield* TestClock.adjust(20_000)
      // Each try has 1.5 s, then come 250 ms and 1 s.
      assert.deepStrictEqual(sent().slice(0, 4), ["a", "a", "a", "b"])
      assert.deepStrictEqual(at().slice(0, 4), [0, 1_750, 4_250, 5_750])
      assert.deepStrictEqual(rig.exchanges[2]?.body, rig.exchanges[0]?.body)
    })
  )

  it.effect("an answer of 5xx is tried again, one of 4xx is not [SEAT-125]", () =>
    Effect.gen(function* () {
      const { add, rig, sent } = yield* make()
      rig.respond = (exchange) => exchange.answer(exchange.body["subtype"] === "a" ? 503 : 400, { code: "internal" })
      add("a", "boundary")
      add("b", "boundary")
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(sent(), ["a", "a", "a", "b"])
    })
  )

  it.effect("a soft post is tried once [SEAT-125]", () =>
    Effect.gen(function* () {
      const { add, rig, sent } = yield* make()
      rig.respond = (exchange) => exchange.fail("broken")
      add("s", "soft")
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(sent(), ["s"])
    })
  )

  it.effect("a launch that is not registered yet is asked every 250 ms for ten seconds [SEAT-125]", () =>
    Effect.gen(function* () {
      const { add, at, rig, sent } = yield* make()
      rig.respond = (exchange) => exchange.answer(409, { code: "activity_grant_pending" })
      add("a", "boundary")
      add("b", "boundary")
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(at().slice(0, 3), [0, 250, 500])
      assert.strictEqual(sent().filter((subtype) => subtype === "a").length, 41)
      rig.respond = accept
      yield* TestClock.adjust(250)
      assert.strictEqual(sent().at(-1), "b")
    })
  )

  it.effect("a replaced occupant posts no more and says so once [SEAT-126]", () =>
    Effect.gen(function* () {
      const { add, lines, queue, rig, sent } = yield* make()
      rig.respond = (exchange) => exchange.answer(409, { code: "activity_grant_stale" })
      add("a", "boundary")
      add("b", "boundary")
      yield* queue.drained
      add("c", "boundary")
      yield* TestClock.adjust(5_000)
      assert.deepStrictEqual(sent(), ["a"])
      assert.deepStrictEqual(lines, [
        "seat > the rig takes no more posts from this seat (activity_grant_stale): activity off"
      ])
    })
  )

  it.effect("a refused token is read again from the file, at most every two seconds [SEAT-126]", () =>
    Effect.gen(function* () {
      let content = { baseUrl: "http://127.0.0.1:1", token: "one" }
      let reads = 0
      const endpoint = findEndpoint({ OPENRIG_HOME: "/home/rig", OPENRIG_NODE_ID: "n" }, (file) => {
        assert.strictEqual(file, "/home/rig/activity-endpoint.json")
        reads += 1
        return JSON.stringify(content)
      })
      const { add, rig, sent } = yield* make(endpoint)
      rig.respond = (exchange) =>
        endpoint.current()?.token === "two"
          ? exchange.answer(200)
          : exchange.answer(401, { code: "activity_hook_unauthorized" })
      add("a", "boundary")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([sent(), reads], [["a"], 2])
      // Two more refusals within two seconds read nothing.
      add("b", "boundary")
      yield* TestClock.adjust(1)
      assert.strictEqual(reads, 2)
      content = { baseUrl: "http://127.0.0.1:1", token: "two" }
      yield* TestClock.adjust(2_000)
      add("c", "boundary")
      yield* TestClock.adjust(250)
      assert.deepStrictEqual([sent(), reads], [["a", "b", "c", "c"], 3])
    })
  )

  it.effect("after the last post nothing is taken, and what waits is still sent [SEAT-132]", () =>
    Effect.gen(function* () {
      const { add, queue, rig, sent } = yield* make()
      add("a", "boundary")
      add("exit", "boundary")
      queue.seal()
      add("late", "boundary")
      const drained = yield* Effect.forkChild(queue.drained)
      yield* TestClock.adjust(1)
      rig.respond = accept
      rig.exchanges[0]?.answer(200)
      yield* Fiber.join(drained)
      assert.deepStrictEqual(sent(), ["a", "exit"])
    })
  )
})
