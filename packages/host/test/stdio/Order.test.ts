import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { peer, type Peer, rssMiB } from "./fixtures/Peer.ts"

const slow = (host: Peer, id: string, ms: number): void =>
  host.send(id, "mcp/register", { name: `slow${ms}`, transport: { type: "stdio", command: "x" } })

const session = (host: Peer, agent: string) =>
  Effect.gen(function* () {
    host.send(`session-${agent}`, "agent/session", { agent, workspace: "/w" })
    const answer = yield* host.answer(`session-${agent}`)
    return answer.result.session.session_id as string
  })

/** A running run: answers the first cursor behind what exists. */
const sleeping = (host: Peer) =>
  Effect.gen(function* () {
    const id = yield* session(host, "sleeper")
    host.send("start", "run/start", { session_id: id, submission_id: "m1", text: "zzz" })
    yield* host.answer("start")
    return id
  })

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis
    const value = yield* effect
    return { value, ms: (yield* Clock.currentTimeMillis) - from }
  })

const ids = (host: Peer): ReadonlyArray<unknown> => host.answers.map((answer) => answer.id)

describe("order on stdio", () => {
  it.live(
    "nothing but initialize is executed before initialize, and a second one changes nothing [RUN-063] [RUN-120] [RUN-121] [RUN-122]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer({ initialize: false })
          host.send(1, "provider/set", { name: "early", api: "responses" })
          host.send(2, "no/such")
          host.send(3, "run/cancel", { session_id: "s" })
          host.send(4, "run/wait", { session_id: "s", wait_ms: 5_000 })
          host.send(5, "initialize", { protocol_version: 99 })
          host.send(6, "initialize")
          host.send(7, "no/such")
          host.send(8, "provider/list")
          const answers = yield* host.first(8)
          assert.deepStrictEqual(
            answers.map((answer) => answer.error?.data.kind ?? answer.result.protocol_version ?? answer.result),
            [
              "not_initialized",
              "not_initialized",
              "not_initialized",
              "not_initialized",
              1,
              "already_initialized",
              "method_not_found",
              { providers: [] }
            ]
          )
        })
      )
  )

  it.live("a thousand pipelined requests are answered once each, in order [RUN-010] [RUN-030] [RUN-031]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        let text = ""
        for (let id = 0; id < 1_000; id++) text += `{"jsonrpc":"2.0","id":${id},"method":"host/info"}\n`
        host.write(text)
        const answers = (yield* host.first(1_001)).slice(1)
        assert.deepStrictEqual(
          answers.map((answer) => answer.id),
          Array.from({ length: 1_000 }, (_, id) => id)
        )
        assert.isTrue(answers.every((answer) => answer.result !== undefined))
      })
    )
  )

  it.live("pipelined requests see their predecessors' effects, also behind a slow one [RUN-031]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        slow(host, "slow", 100)
        host.send("set", "provider/set", { name: "one", api: "responses" })
        host.send("list", "provider/list")
        const answers = yield* host.first(4)
        assert.deepStrictEqual(ids(host), ["init", "slow", "set", "list"])
        assert.strictEqual(answers[3]?.result.providers[0].name, "one")
      })
    )
  )

  it.live("a control takes effect while a slow host-wide request runs; its answer keeps the order [RUN-032]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        const id = yield* sleeping(host)
        host.send("watch", "run/wait", { session_id: id, wait_ms: 5_000, known_interactions: [] })
        slow(host, "slow", 400)
        host.send("cancel", "run/cancel", { session_id: id })
        host.send("state", "run/wait", { session_id: id, wait_ms: 0 })
        yield* host.answer("state")
        const at = (what: string) => host.stderr().indexOf(what)
        assert.isTrue(at("begin slow") < at("cancel") && at("cancel") < at("end slow"))
        assert.deepStrictEqual(ids(host).slice(-4), ["watch", "slow", "cancel", "state"])
        assert.deepStrictEqual((yield* host.answer("cancel")).result.cancelled, [id])
        assert.strictEqual((yield* host.answer("state")).result.status, "cancelled")
      })
    )
  )

  it.live("a wait is parked for its time and no longer [RUN-033] [RUN-036]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        const id = yield* sleeping(host)
        host.send("w", "run/wait", { session_id: id, wait_ms: 300 })
        const { value, ms } = yield* elapsed(host.answer("w"))
        assert.strictEqual(value.result.status, "running")
        assert.isAtLeast(ms, 280)
        assert.isBelow(ms, 1_200)
      })
    )
  )

  it.live("a parked wait is answered at once when any other request comes [RUN-034]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        const id = yield* sleeping(host)
        host.send("w", "run/wait", { session_id: id, wait_ms: 5_000 })
        host.send("e", "event/read", { session_id: id, after: 3, wait_ms: 5_000 })
        host.send("i", "host/info")
        const { ms } = yield* elapsed(host.answer("i"))
        assert.isBelow(ms, 1_000)
        assert.deepStrictEqual(ids(host).slice(-3), ["w", "e", "i"])
      })
    )
  )

  it.live("waits park together; a change releases those before it and leaves those after it [RUN-035]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        const still = yield* sleeping(host)
        const many = yield* session(host, "many")
        host.send("s2", "run/start", { session_id: many, submission_id: "m", text: "30" })
        yield* host.answer("s2")
        host.send("w1", "run/wait", { session_id: still, wait_ms: 5_000 })
        host.send("w2", "run/wait", { session_id: many, wait_ms: 5_000 })
        host.send("w3", "run/wait", { session_id: still, wait_ms: 1_500 })
        const { ms } = yield* elapsed(host.answer("w2"))
        assert.isBelow(ms, 1_400)
        assert.deepStrictEqual(ids(host).slice(-2), ["w1", "w2"])
        assert.strictEqual((yield* host.answer("w1")).result.status, "running")
        assert.strictEqual((yield* host.answer("w2")).result.status, "completed")
        yield* host.answer("w3")
      })
    )
  )

  it.live("two polling loops on one connection never spin [RUN-035]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        const id = yield* sleeping(host)
        let polls = 0
        const loop = (name: string) =>
          Effect.gen(function* () {
            for (let turn = 0; turn < 3; turn++) {
              polls += 1
              host.send(`${name}${turn}`, "run/wait", { session_id: id, wait_ms: 200 })
              yield* host.answer(`${name}${turn}`)
            }
          })
        const { ms } = yield* elapsed(Effect.all([loop("a"), loop("b")], { concurrency: 2 }))
        assert.strictEqual(polls, 6)
        assert.isAtLeast(ms, 350)
      })
    )
  )

  it.live(
    "above 256 unanswered requests a further one is answered busy, in order, and counted [RUN-038] [RUN-020]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          slow(host, "slow", 300)
          for (let id = 1; id <= 400; id++) host.send(id, "host/info")
          const answers = (yield* host.first(402)).slice(2)
          const busy = answers.filter((answer) => answer.error?.data.kind === "busy")
          assert.strictEqual(busy.length, 400 - 255)
          assert.strictEqual(busy[0]?.id, 256)
          assert.isAtLeast(busy[0]?.error?.data.retry_after_ms, 1)
          assert.deepStrictEqual(
            answers.map((answer) => answer.id),
            Array.from({ length: 400 }, (_, index) => index + 1)
          )
          host.send("info", "host/info")
          assert.strictEqual((yield* host.answer("info")).result.counters.busy_answers, 145)
        })
      )
  )

  it.live("more than 4,096 waiting refusals pause reading until they have left; none is lost [RUN-038]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        slow(host, "slow", 500)
        let text = ""
        for (let id = 1; id <= 8_000; id++) text += `{"jsonrpc":"2.0","id":${id},"method":"host/info"}\n`
        host.write(text)
        const answers = (yield* host.first(8_002)).slice(2)
        assert.deepStrictEqual(
          answers.map((answer) => answer.id),
          Array.from({ length: 8_000 }, (_, index) => index + 1)
        )
      })
    )
  )

  it.live("application notifications are consumed while a request runs and waits are parked [RUN-037]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer({ config: { applicationCallbacks: true } })
        const id = yield* sleeping(host)
        host.send("w", "run/wait", { session_id: id, wait_ms: 300 })
        for (let n = 0; n < 10; n++) {
          host.write(
            `{"jsonrpc":"2.0","method":"application/result","params":{"owner":"o","invocation_id":"i${n}","output":1}}\n`
          )
        }
        host.write(`{"jsonrpc":"2.0","method":"application/result","params":{"owner":"o"}}\n`)
        const { ms } = yield* elapsed(host.answer("w"))
        assert.isAtLeast(ms, 250)
        host.send("info", "host/info")
        const { counters } = (yield* host.answer("info")).result
        assert.strictEqual(counters.application_refused, 1)
        assert.strictEqual(counters.notifications_ignored, 0)
      })
    )
  )

  it.live("a client that never reads cannot fill memory, and loses nothing when it reads again [RUN-018]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer({ env: { TACKROOM_LOG_LEVEL: "debug" } })
        host.reading(false)
        for (let id = 1; id <= 200; id++) {
          host.send(id, "artifact/read", { session_id: "s", artifact_id: "art_1", length: 524_288 })
        }
        // Another request would be executed only when there is room again.
        host.send("set", "provider/set", { name: "late", api: "responses" })
        yield* host.logged("reading paused")
        if (process.platform === "linux") assert.isBelow(rssMiB(host.child.pid!), 256)
        host.reading(true)
        yield* host.answer("set")
        assert.deepStrictEqual(
          ids(host).slice(1, -1),
          Array.from({ length: 200 }, (_, index) => index + 1)
        )
      })
    )
  )
})

describe("the end of a connection", () => {
  it.live(
    "at the end of stdin parked waits are answered, reads are answered, new work is refused, exit 0 [RUN-524]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          const id = yield* sleeping(host)
          slow(host, "slow", 200)
          host.send("start", "agent/session", { agent: "talker", workspace: "/w" })
          host.send("info", "host/info")
          host.send("w", "run/wait", { session_id: id, wait_ms: 5_000 })
          host.child.stdin!.end()
          const { value, ms } = yield* elapsed(host.exit)
          assert.deepStrictEqual(value, { code: 0, signal: null })
          assert.isBelow(ms, 5_000)
          const [slowAnswer, start, info, wait] = host.answers.slice(-4)
          assert.deepStrictEqual([slowAnswer?.id, start?.id, info?.id, wait?.id], ["slow", "start", "info", "w"])
          assert.isDefined(slowAnswer?.result)
          assert.strictEqual(start?.error?.data.kind, "shutting_down")
          assert.strictEqual(info?.result.state, "draining")
          assert.strictEqual(wait?.result.status, "running")
        })
      )
  )

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    it.live(`${signal} answers what was read and exits 0 [RUN-524]`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          const id = yield* sleeping(host)
          host.send("w", "run/wait", { session_id: id, wait_ms: 5_000 })
          slow(host, "slow", 100)
          yield* host.logged("begin slow100")
          host.child.kill(signal)
          assert.deepStrictEqual(yield* host.exit, { code: 0, signal: null })
          assert.strictEqual((yield* host.answer("w")).result.status, "running")
        })
      )
    )
  }

  it.live("a request that does not end is interrupted and answered, and the host exits in time [RUN-524]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        slow(host, "slow", 30_000)
        yield* host.logged("begin slow30000")
        host.child.kill("SIGTERM")
        const { value, ms } = yield* elapsed(host.exit)
        assert.deepStrictEqual(value, { code: 0, signal: null })
        assert.isBelow(ms, 5_000)
        assert.strictEqual((yield* host.answer("slow")).error?.data.kind, "shutting_down")
      })
    )
  )

  it.live("a second signal exits at once with 128 and its number [RUN-525]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        slow(host, "slow", 30_000)
        yield* host.logged("begin slow30000")
        host.child.kill("SIGTERM")
        yield* host.logged("draining")
        host.child.kill("SIGINT")
        const { value, ms } = yield* elapsed(host.exit)
        assert.deepStrictEqual(value, { code: 130, signal: null })
        assert.isBelow(ms, 1_500)
      })
    )
  )

  it.live("a broken stdout counts as the end of stdin [RUN-526]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        host.child.stdout!.destroy()
        for (let id = 0; id < 20; id++) host.send(id, "artifact/read", { session_id: "s", artifact_id: "a" })
        assert.deepStrictEqual(yield* host.exit, { code: 0, signal: null })
      })
    )
  )

  it.live(
    "a host that could not start answers its first request with startup_failed and exits with its code [RUN-081] [RUN-082]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer({ config: { fail: "state_dir_locked" }, initialize: false })
          host.write("garbage\n")
          host.send(1, "initialize")
          host.send(2, "host/info")
          assert.strictEqual((yield* host.exit).code, 3)
          assert.deepStrictEqual(
            host.answers.map((answer) => [answer.id, answer.error?.data.kind, answer.error?.data.reason]),
            [[1, "startup_failed", "state_dir_locked"]]
          )
          assert.strictEqual((JSON.parse(host.stderr().trim()) as { level: string }).level, "fatal")
        })
      )
  )
})
