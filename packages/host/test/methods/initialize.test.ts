/** initialize, host/info, and what every request has to wait for (run-protocol 7). */
import { assert, describe, it } from "@effect/vitest"
import { limits, methodNames, methods } from "@tackroom/protocol/run"
import { Effect } from "effect"
import {
  at,
  awaitEvent,
  call,
  failure,
  folder,
  interrupted,
  journal,
  openHost,
  say,
  stage,
  start
} from "../runs/Kit.ts"

const fresh = Effect.gen(function* () {
  const place = yield* folder
  return yield* Effect.orDie(openHost({ stateDir: place.stateDir, agents: [] }, { initialize: false }))
})

describe("initialize", () => {
  it.live("it tells what the host is and can, whatever version is asked for [RUN-120]", () =>
    Effect.gen(function* () {
      for (const version of [1, 2, 999, undefined]) {
        const on = yield* fresh
        const result = yield* on.wire("initialize", version === undefined ? {} : { protocol_version: version })
        assert.strictEqual(at(result, "protocol_version"), 1)
        assert.deepStrictEqual(at(result, "host", "name"), "tackroom")
        assert.match(String(at(result, "journal_id")), /^jrn_/)
        assert.strictEqual(at(result, "event_contract"), 1)
        assert.strictEqual(at(result, "sandbox", "selected"), "none")
        assert.isNotEmpty(at(result, "warnings"))
        assert.lengthOf(Object.keys(at(result, "limits") as object), Object.keys(limits).length)
        for (const value of Object.values(at(result, "capabilities") as object)) assert.isBoolean(value)
        yield* on.close
      }
    })
  )

  it.live("before it nothing else is executed [RUN-121]", () =>
    Effect.gen(function* () {
      const on = yield* fresh
      const scenario = "/nowhere"
      for (const [method, params] of [
        ["host/info", {}],
        ["provider/set", { name: "p", api: "script", scenario }],
        ["agent/list", {}],
        ["no/such", {}]
      ] as const) {
        assert.strictEqual((yield* failure(on.wire(method, params)))["kind"], "not_initialized")
      }
      yield* on.wire("initialize")
      assert.deepStrictEqual(yield* on.wire("provider/list"), { providers: [] })
    })
  )

  it.live("a second one is refused and changes nothing [RUN-122]", () =>
    Effect.gen(function* () {
      const on = yield* fresh
      yield* on.wire("initialize")
      const before = yield* on.wire("host/info")
      assert.strictEqual((yield* failure(on.wire("initialize")))["kind"], "already_initialized")
      assert.deepStrictEqual(yield* on.wire("host/info"), before)
    })
  )

  it.live("methods of a capability that is false answer unsupported with its name [RUN-123]", () =>
    Effect.gen(function* () {
      const on = yield* fresh
      const result = yield* on.wire("initialize")
      const capabilities = at(result, "capabilities") as Readonly<Record<string, boolean>>
      let refused = 0
      for (const method of methodNames) {
        const { capability } = methods[method]
        if (capability === null) continue
        const name = capability.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
        if (capabilities[name] !== false) continue
        const error = yield* failure(on.wire(method, {}))
        assert.deepStrictEqual([error["kind"], error["feature"]], ["unsupported", name], method)
        refused += 1
      }
      assert.isAbove(refused, 5)
      assert.strictEqual((yield* failure(on.wire("no/such")))["kind"], "method_not_found")
    })
  )

  it.live("a start with a session to recover does not delay it [RUN-125] [RUN-124]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[call("ask_user", { question: "Which?" })], [say("Done.")]] })
      yield* start(on)
      yield* interrupted(on)
      yield* on.close
      const began = performance.now()
      const again = { ...on, ...(yield* Effect.orDie(openHost(on.config))) }
      // Four times the bound, as machines are shared.
      assert.isBelow(performance.now() - began, 2_000)
      yield* awaitEvent(again, "harness-notice", (yield* journal(again)).length - 3, () => true)
    })
  )

  it.live("limits that the configuration lowers are told and kept [RUN-120]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ config: { limits: { maxEventsMax: 2 } }, open: { initialize: false } }).pipe(
        Effect.map((on) => on)
      )
      const result = yield* on.wire("initialize")
      assert.strictEqual(at(result, "limits", "max_events_max"), 2)
      const page = yield* on.api["event/read"]({ sessionId: on.sessionId, maxEvents: 100 })
      assert.lengthOf(page.events, 2)
    })
  )

  it.live("host/info tells the state [RUN-020]", () =>
    Effect.gen(function* () {
      const on = yield* fresh
      yield* on.wire("initialize")
      const info = yield* on.wire("host/info")
      assert.deepStrictEqual(
        [at(info, "state"), at(info, "pid"), at(info, "storage")],
        ["ready", process.pid, { type: "sqlite" }]
      )
      on.host.methods.drain()
      assert.strictEqual(at(yield* on.wire("host/info"), "state"), "draining")
    })
  )

  it.live("a store that fails answers storage_failure or shutting_down, never a defect [RUN-060] [RUN-064]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("Done.")]] })
      yield* on.close
      for (const call of [
        start(on),
        on.api["session/attach"]({ sessionId: on.sessionId }),
        on.api["run/cancel"]({ sessionId: on.sessionId })
      ] as ReadonlyArray<ReturnType<typeof start>>) {
        const exit = yield* Effect.result(call)
        if (exit._tag === "Failure") {
          assert.include(["storage_failure", "shutting_down", "busy", "internal"], exit.failure.kind)
          assert.notMatch(exit.failure.message, /at .*\.ts|Error:/)
        }
      }
    })
  )
})
