import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  type Action,
  type Entry,
  type Kind,
  laneLimits,
  type LaneLimits,
  RequestLanes
} from "../../src/faces/stdio/RequestLanes.ts"

/** A driver without a machine behind it: everything happens when the test says so. */
class Driver {
  readonly lanes: RequestLanes<string>
  readonly started: Array<string> = []
  readonly checks: Array<string> = []
  readonly watches: Array<string> = []
  readonly timers: Array<string> = []
  readonly answers: Array<string> = []
  readonly reading: Array<"pause" | "resume"> = []
  readonly entries = new Map<string, Entry<string>>()
  constructor(limits: LaneLimits = laneLimits) {
    this.lanes = new RequestLanes<string>(limits)
  }
  request(
    kind: Exclude<Kind, "answered">,
    data: string,
    options: Partial<Parameters<RequestLanes<string>["arrive"]>[0]> = {}
  ) {
    const accepted = this.lanes.arrive({
      kind,
      lane: null,
      mutating: kind !== "wait",
      barrier: false,
      bytes: 100,
      waitMs: 1_000,
      data,
      ...options
    })
    this.drain()
    return accepted
  }
  refuse(name: string) {
    this.lanes.arriveAnswered({ frame: name, bytes: 10 })
    this.drain()
  }
  finish(data: string, bytes = 10) {
    this.lanes.finished(this.entry(data), { frame: data, bytes })
    this.drain()
  }
  checked(data: string, ready: boolean, bytes = 10) {
    this.lanes.checked(this.entry(data), ready, () => ({ frame: data, bytes }))
    this.drain()
  }
  changed(data: string) {
    this.lanes.changed(this.entry(data))
    this.drain()
  }
  elapsed(data: string) {
    this.lanes.elapsed(this.entry(data))
    this.drain()
  }
  output(bytes: number) {
    this.lanes.output(bytes)
    this.drain()
  }
  stop() {
    this.lanes.stop()
    this.drain()
  }
  private entry(data: string): Entry<string> {
    return this.entries.get(data)!
  }
  private drain() {
    for (const action of this.lanes.take()) this.note(action)
  }
  private note(action: Action<string>) {
    switch (action._tag) {
      case "PauseReading":
        return void this.reading.push("pause")
      case "ResumeReading":
        return void this.reading.push("resume")
      case "Answer":
        return void this.answers.push(action.frame)
    }
    const name = action.entry.data!
    this.entries.set(name, action.entry)
    if (action._tag === "Start") this.started.push(name)
    if (action._tag === "Check") this.checks.push(name)
    if (action._tag === "Watch") this.watches.push(name)
    if (action._tag === "Timer") this.timers.push(name)
  }
}

describe("RequestLanes", () => {
  it("lets ordinary requests take effect one at a time in arrival order [RUN-031]", () => {
    const d = new Driver()
    for (const name of ["a", "b", "c"]) d.request("ordinary", name)
    assert.deepStrictEqual(d.started, ["a"])
    d.finish("a")
    assert.deepStrictEqual(d.started, ["a", "b"])
    d.finish("b")
    d.finish("c")
    assert.deepStrictEqual(d.answers, ["a", "b", "c"])
    assert.isTrue(d.lanes.idle)
  })

  it("starts a control past a slow host-wide request and keeps its answer in order [RUN-030] [RUN-032]", () => {
    const d = new Driver()
    d.request("ordinary", "slow")
    d.request("control", "respond", { lane: "s" })
    assert.deepStrictEqual(d.started, ["slow", "respond"])
    d.finish("respond")
    assert.deepStrictEqual(d.answers, [])
    d.finish("slow")
    assert.deepStrictEqual(d.answers, ["slow", "respond"])
  })

  it("starts a control after the earlier mutating requests of its session only [RUN-032]", () => {
    const d = new Driver()
    d.request("ordinary", "slow")
    d.request("ordinary", "start-s", { lane: "s" })
    d.request("ordinary", "state-u", { lane: "u", mutating: false })
    d.request("control", "cancel-s", { lane: "s" })
    d.request("control", "respond-s", { lane: "s" })
    d.request("control", "cancel-u", { lane: "u" })
    assert.deepStrictEqual(d.started, ["slow", "cancel-u"])
    d.finish("slow")
    assert.deepStrictEqual(d.started, ["slow", "cancel-u", "start-s"])
    d.finish("start-s")
    assert.include(d.started, "cancel-s")
    assert.notInclude(d.started, "respond-s")
    d.finish("cancel-s")
    assert.include(d.started, "respond-s")
  })

  it("holds an ordinary request until the earlier controls of its session took effect [RUN-031] [RUN-032]", () => {
    const d = new Driver()
    d.request("control", "cancel-s", { lane: "s" })
    d.request("ordinary", "state-u", { lane: "u", mutating: false })
    d.request("ordinary", "start-s", { lane: "s" })
    assert.deepStrictEqual(d.started, ["cancel-s", "state-u"])
    d.finish("state-u")
    assert.deepStrictEqual(d.started, ["cancel-s", "state-u"])
    d.finish("cancel-s")
    assert.deepStrictEqual(d.started, ["cancel-s", "state-u", "start-s"])
  })

  it("lets nothing pass initialize [RUN-121]", () => {
    const d = new Driver()
    d.request("ordinary", "initialize", { barrier: true })
    d.request("control", "cancel", { lane: "s" })
    d.request("wait", "wait")
    assert.deepStrictEqual(d.started, ["initialize"])
    d.finish("initialize")
    assert.deepStrictEqual(d.started, ["initialize", "cancel"])
  })

  it("a parked wait occupies no lane and is answered when another request is queued behind it [RUN-033] [RUN-034]", () => {
    const d = new Driver()
    d.request("wait", "w")
    d.checked("w", false)
    assert.deepStrictEqual(d.watches, ["w"])
    assert.deepStrictEqual(d.answers, [])
    d.request("ordinary", "a")
    assert.deepStrictEqual(d.started, ["a"])
    assert.deepStrictEqual(d.checks, ["w", "w"])
    d.finish("a")
    assert.deepStrictEqual(d.answers, [])
    d.checked("w", false)
    assert.deepStrictEqual(d.answers, ["w", "a"])
  })

  it("a wait with another request behind it when it is reached does not park [RUN-034]", () => {
    const d = new Driver()
    d.request("ordinary", "a")
    d.request("wait", "w")
    d.request("ordinary", "b")
    d.finish("a")
    assert.deepStrictEqual(d.timers, [])
    assert.deepStrictEqual(d.checks, ["w"])
    d.checked("w", false)
    d.finish("b")
    assert.deepStrictEqual(d.answers, ["a", "w", "b"])
  })

  it("several waits park together; a ready one is answered after those before it, the later ones stay [RUN-035]", () => {
    const d = new Driver()
    for (const name of ["w1", "w2", "w3"]) {
      d.request("wait", name)
      d.checked(name, false)
    }
    d.changed("w2")
    d.checked("w2", true)
    d.checked("w1", false)
    assert.deepStrictEqual(d.answers, ["w1"])
    d.checked("w2", true)
    assert.deepStrictEqual(d.answers, ["w1", "w2"])
    assert.deepStrictEqual(d.checks, ["w1", "w2", "w3", "w2", "w1", "w2"])
    assert.isFalse(d.lanes.idle)
  })

  it("a wait that is out of time is answered after those before it [RUN-035] [RUN-036]", () => {
    const d = new Driver()
    d.request("wait", "w1")
    d.checked("w1", false)
    d.request("wait", "w2", { waitMs: 10 })
    d.checked("w2", false)
    d.elapsed("w2")
    d.checked("w1", false)
    d.checked("w2", false)
    assert.deepStrictEqual(d.answers, ["w1", "w2"])
    assert.isTrue(d.lanes.idle)
  })

  it("a wait of zero milliseconds is answered at once [RUN-033]", () => {
    const d = new Driver()
    d.request("wait", "w", { waitMs: 0 })
    d.checked("w", false)
    assert.deepStrictEqual(d.answers, ["w"])
    assert.deepStrictEqual(d.timers, [])
  })

  it("refuses the 257th request, and more than 16 MiB of frames, in order [RUN-038]", () => {
    const d = new Driver()
    for (let index = 0; index < 256; index++) assert.isTrue(d.request("ordinary", `r${index}`))
    assert.isFalse(d.request("ordinary", "r256"))
    d.refuse("busy")
    assert.deepStrictEqual(d.answers, [])
    for (let index = 0; index < 256; index++) d.finish(`r${index}`)
    assert.strictEqual(d.answers.length, 257)
    assert.strictEqual(d.answers[256], "busy")

    const big = new Driver()
    for (let index = 0; index < 16; index++) {
      assert.isTrue(big.request("ordinary", `b${index}`, { bytes: 1_048_576 }))
    }
    assert.isFalse(big.request("ordinary", "b16", { bytes: 1 }))
  })

  it("pauses reading only past 4,096 waiting answers, until they have left [RUN-038]", () => {
    const d = new Driver()
    d.request("ordinary", "slow")
    for (let index = 0; index < 4_096; index++) d.refuse("busy")
    assert.deepStrictEqual(d.reading, [])
    d.refuse("busy")
    assert.deepStrictEqual(d.reading, ["pause"])
    d.finish("slow")
    assert.deepStrictEqual(d.reading, ["pause", "resume"])
    assert.strictEqual(d.answers.length, 4_098)
  })

  it("stops reading and starting past 16 MiB of unsent output, until it is below 8 MiB; controls go on [RUN-018]", () => {
    const d = new Driver()
    d.output(16_777_217)
    assert.deepStrictEqual(d.reading, ["pause"])
    d.request("ordinary", "a")
    d.request("control", "c", { lane: "s" })
    assert.deepStrictEqual(d.started, ["c"])
    d.output(8_388_608)
    assert.deepStrictEqual(d.started, ["c"])
    d.output(8_388_607)
    assert.deepStrictEqual(d.started, ["c", "a"])
    assert.deepStrictEqual(d.reading, ["pause", "resume"])
  })

  it("counts answers that wait for their turn as unsent output, and still makes progress [RUN-018]", () => {
    const d = new Driver()
    d.request("control", "slow", { lane: "s" })
    for (let index = 0; index < 20; index++) d.request("ordinary", `r${index}`, { lane: "u" })
    for (let index = 0; index < 17; index++) d.finish(`r${index}`, 1_048_576)
    assert.strictEqual(d.started.at(-1), "r16")
    assert.deepStrictEqual(d.reading, ["pause"])
    d.finish("slow")
    assert.strictEqual(d.answers.length, 18)
    assert.strictEqual(d.started.at(-1), "r16")
    d.output(0)
    assert.strictEqual(d.started.at(-1), "r17")
  })

  it("stop releases every wait with its current state [RUN-524]", () => {
    const d = new Driver()
    d.request("wait", "w1")
    d.checked("w1", false)
    d.request("wait", "w2")
    d.checked("w2", false)
    d.stop()
    d.checked("w1", false)
    d.checked("w2", false)
    assert.deepStrictEqual(d.answers, ["w1", "w2"])
  })
})

const Op = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("arrive"),
    kind: Schema.Literals(["ordinary", "control", "wait", "answered"]),
    lane: Schema.Literals(["none", "s", "u"]),
    mutating: Schema.Boolean,
    waitMs: Schema.Literals([0, 10, 50])
  }),
  Schema.Struct({ op: Schema.Literal("finish"), pick: Schema.Int }),
  Schema.Struct({ op: Schema.Literal("checked"), pick: Schema.Int, ready: Schema.Boolean }),
  Schema.Struct({ op: Schema.Literal("change"), pick: Schema.Int }),
  Schema.Struct({ op: Schema.Literal("tick"), ms: Schema.Literals([1, 10, 25]) }),
  Schema.Struct({ op: Schema.Literal("drain") })
])
type Op = typeof Op.Type

interface Seen {
  readonly kind: Kind
  readonly lane: string | null
  readonly mutating: boolean
  readonly waitMs: number
  /** Answered. */
  done: boolean
  effective?: boolean
  deadline?: number
}

const written = (id: number) => ({ frame: String(id), bytes: 10 })

/** Plays a sequence over the machine with a clock of its own and checks the rules after every event. */
const play = (ops: ReadonlyArray<Op>, prompt = false) => {
  const limits: LaneLimits = {
    pendingRequests: 12,
    pendingBytes: 1_000,
    waitingAnswers: 6,
    outputStopBytes: 60,
    outputResumeBytes: 30
  }
  const lanes = new RequestLanes<number>(limits)
  const seen: Array<Seen> = []
  const running: Array<Entry<number>> = []
  const checking: Array<Entry<number>> = []
  const watching = new Set<Entry<number>>()
  const answers: Array<number> = []
  let now = 0
  let unsent = 0
  let events = 0
  let checks = 0
  let lastOrdinary = -1
  const timers = new Map<Entry<number>, number>()

  /** A prompt reader takes everything before anything else happens, which may cause actions of its own. */
  const next = () => {
    if (prompt) {
      unsent = 0
      lanes.output(0)
    }
    return lanes.take()
  }

  const perform = () => {
    for (let actions = next(); actions.length > 0; actions = next()) {
      for (const action of actions) {
        switch (action._tag) {
          case "Start": {
            const id = action.entry.data!
            const mine = seen[id]!
            if (mine.kind === "ordinary") {
              assert.isTrue(
                running.every((entry) => entry.kind !== "ordinary"),
                "two ordinary requests at once"
              )
              assert.isTrue(id > lastOrdinary, "ordinary requests out of order")
              lastOrdinary = id
            }
            for (let earlier = 0; earlier < id; earlier++) {
              const other = seen[earlier]!
              const same = mine.kind === "control" ? other.lane === mine.lane && mine.lane !== null : false
              assert.isFalse(
                same && other.mutating && other.kind !== "wait" && other.effective !== true,
                "passed its own session"
              )
            }
            running.push(action.entry)
            break
          }
          case "Check":
            checks += 1
            assert.notInclude(checking, action.entry)
            checking.push(action.entry)
            break
          case "Watch":
            watching.add(action.entry)
            break
          case "Timer":
            timers.set(action.entry, now + action.entry.waitMs)
            seen[action.entry.data!]!.deadline = now + action.entry.waitMs
            break
          case "Release":
            watching.delete(action.entry)
            timers.delete(action.entry)
            break
          case "Answer": {
            const id = Number(action.frame)
            answers.push(id)
            seen[id]!.done = true
            unsent += 10
            break
          }
        }
      }
    }
    if (prompt) return settle()
    lanes.output(unsent)
    if (lanes.take().length > 0) assert.fail("output without a change caused an action")
  }
  /** Looks end at once and say "not ready"; the reader takes everything. Then nothing may wait without a reason. */
  const settle = (): void => {
    const looked = checking.splice(0)
    for (const entry of looked) lanes.checked(entry, false, () => written(entry.data!))
    if (looked.length > 0) return perform()
    const open = seen.filter((one) => !one.done)
    const leading = open.findIndex((one) => one.kind !== "wait")
    assert.isFalse(leading > 0, "a wait is parked although another request is behind it")
    // A timer that is due at this instant is still to be delivered.
    const armed = new Set(Array.from(timers.keys(), (entry) => seen[entry.data!]))
    for (const one of leading === -1 ? open : []) {
      assert.isTrue((one.deadline ?? Infinity) > now || armed.has(one), "a wait is held past its time")
    }
  }
  const act = (event: () => void) => {
    events += 1
    event()
    perform()
  }
  const pick = <A>(items: ReadonlyArray<A>, index: number): A | undefined =>
    items.length === 0 ? undefined : items[Math.abs(index) % items.length]

  const one = (op: Op) => {
    switch (op.op) {
      case "arrive": {
        const id = seen.length
        const lane = op.lane === "none" ? null : op.lane
        seen.push({
          kind: op.kind,
          lane,
          mutating: (op.kind === "ordinary" || op.kind === "control") && op.mutating,
          waitMs: op.waitMs,
          done: false
        })
        if (op.kind === "answered") return act(() => lanes.arriveAnswered(written(id)))
        const kind = op.kind
        return act(() => {
          const request = {
            kind,
            lane,
            mutating: seen[id]!.mutating,
            barrier: false,
            bytes: 10,
            waitMs: op.waitMs,
            data: id
          }
          if (lanes.arrive(request)) return
          seen[id] = { ...seen[id]!, kind: "answered", mutating: false }
          lanes.arriveAnswered(written(id))
        })
      }
      case "finish": {
        const entry = pick(running, op.pick)
        if (entry === undefined) return
        running.splice(running.indexOf(entry), 1)
        // Its effect is there; its answer may still wait for its turn.
        seen[entry.data!]!.effective = true
        return act(() => lanes.finished(entry, written(entry.data!)))
      }
      case "checked": {
        const entry = pick(checking, op.pick)
        if (entry === undefined) return
        checking.splice(checking.indexOf(entry), 1)
        return act(() => lanes.checked(entry, op.ready, () => written(entry.data!)))
      }
      case "change": {
        const entry = pick([...watching], op.pick)
        if (entry === undefined) return
        watching.delete(entry)
        return act(() => lanes.changed(entry))
      }
      case "tick": {
        now += op.ms
        for (const [entry, at] of Array.from(timers)) {
          if (at > now) continue
          timers.delete(entry)
          act(() => lanes.elapsed(entry))
        }
        return
      }
      case "drain":
        unsent = 0
        return act(() => lanes.output(0))
    }
  }
  for (const op of ops) one(op)
  // From here on every effect and check ends at once and the reader takes everything.
  let rounds = 0
  while (!lanes.idle) {
    rounds += 1
    assert.isBelow(rounds, 20_000, "the machine does not come to rest")
    one({ op: "drain" })
    if (running.length > 0) one({ op: "finish", pick: 0 })
    else if (checking.length > 0) one({ op: "checked", pick: 0, ready: false })
    else one({ op: "tick", ms: 10 })
    for (const entry of timers.keys()) {
      const deadline = seen[entry.data!]!.deadline!
      assert.isTrue(deadline > now, "held past its time")
    }
  }
  return { seen, answers, events, checks }
}

describe("RequestLanes over random sequences", () => {
  it.effect.prop(
    "answers every request exactly once, in order, without spinning [RUN-010] [RUN-030] [RUN-031] [RUN-032] [RUN-035] [RUN-036]",
    [Schema.Array(Op).check(Schema.isMaxLength(120))],
    ([ops]) =>
      Effect.sync(() => {
        const { seen, answers, events, checks } = play(ops)
        assert.deepStrictEqual(
          answers,
          seen.map((_, id) => id)
        )
        assert.isAtMost(checks, 2 * events + seen.length)
      }),
    { arbitrary: { runs: 500, size: 120 } }
  )

  it.effect.prop(
    "parks a wait only while nothing else is behind it, and never past its time [RUN-033] [RUN-034] [RUN-036]",
    [Schema.Array(Op).check(Schema.isMaxLength(120))],
    ([ops]) =>
      Effect.sync(() => {
        const { seen, answers } = play(ops, true)
        assert.deepStrictEqual(
          answers,
          seen.map((_, id) => id)
        )
      }),
    { arbitrary: { runs: 500, size: 120 } }
  )
})
