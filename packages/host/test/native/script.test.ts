/** The scripted provider behind whole turns, and the words for how turns fail (run-protocol 27, AGT-202). */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { TurnOutcome } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { failureOf } from "../../src/runs/RunEnding.ts"
import {
  agent,
  at,
  awaitEvent,
  call,
  ended,
  failed,
  failure,
  folder,
  journal,
  ofType,
  openHost,
  run,
  say,
  stage,
  start
} from "../runs/Kit.ts"

const plan = call("plan.update", { items: [] })

describe("the scripted provider", () => {
  it.live("a request takes the entry after the responses so far, over turns and restarts [AGT-330]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("One.")], [plan], [say("Two.")], [say("Three.")]] })
      assert.strictEqual((yield* run(on, "m-1")).finalOutput, "One.")
      assert.strictEqual((yield* run(on, "m-2")).finalOutput, "Two.")
      const again = yield* on.reopen()
      assert.strictEqual((yield* run(again, "m-3")).finalOutput, "Three.")
    })
  )

  it.live("after a crash in the middle of a response the same entry is taken [AGT-330]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[plan], [say("Half"), { delay_ms: 800 }, say(" done.")], [say("No.")]] })
      yield* start(on)
      yield* awaitEvent(on, "text-delta")
      const again = yield* on.reopen()
      assert.strictEqual((yield* ended(again)).finalOutput, "Half done.")
    })
  )

  it.live("the agent's own list comes before the default one [AGT-330]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: { agents: { helper: [[say("Mine.")]] }, default: [[say("Any.")]] } })
      assert.strictEqual((yield* run(on)).finalOutput, "Mine.")
    })
  )

  it.live("after the last entry it fails with model_error, or echoes [AGT-332] [AGT-202]", () =>
    Effect.gen(function* () {
      const erring = yield* stage({ scenario: [] })
      const state = yield* run(erring)
      failed(state, "model_error")
      assert.match(state.error?.message ?? "", /scripted scenario/)
      assert.lengthOf(ofType(yield* journal(erring), "session-retry"), 0)
      const echoing = yield* stage({ scenario: { exhausted: "echo" } })
      assert.strictEqual((yield* run(echoing, "m-1", "Say this")).finalOutput, "Say this")
    })
  )

  it.live("the file is read when a session is made and kept with it [AGT-333]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("As made.")]] })
      on.folder.scenario("script", { default: [[say("Changed.")]] })
      assert.strictEqual((yield* run(on)).finalOutput, "As made.")
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      assert.strictEqual((yield* run({ ...on, sessionId: session.sessionId })).finalOutput, "Changed.")
    })
  )

  it.live("a file that is missing or bad refuses the session, and nothing remains [AGT-333] [AGT-336] [RUN-350]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place.root, "scenario.json")
      const on = yield* openHost({
        stateDir: place.stateDir,
        providers: [{ name: "script", api: "script", scenario: file }],
        agents: [agent()]
      })
      const create = on.api["agent/session"]({ agent: "helper", workspace: place.workspace })
      const refused = Effect.gen(function* () {
        const error = yield* failure(create)
        assert.deepStrictEqual(
          [error["kind"], error["what"], error["name"]],
          ["provider_unavailable", "scenario", "script"]
        )
      })
      yield* refused
      for (const text of ["{", '{"scenario":2,"name":"x"}', '{"scenario":1,"name":"x","default":[[{"exit":1}]]}']) {
        writeFileSync(file, text)
        yield* refused
      }
      assert.deepStrictEqual((yield* on.api["session/list"]({})).sessions, [])
      mkdirSync(join(place.root, "x"))
      writeFileSync(file, '{"scenario":1,"name":"x","default":[]}')
      yield* create
    })
  )

  it.live("runs, sessions and providers that use it say so, and a notice does [AGT-334]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("Done.")]] })
      const state = yield* run(on)
      assert.isTrue(state.scripted)
      assert.isTrue((yield* on.api["session/state"]({ sessionId: on.sessionId })).scripted)
      assert.strictEqual(at(yield* on.wire("provider/list"), "providers", 0, "scripted"), true)
      const codes = ofType(yield* journal(on), "harness-notice").map((event) => event["code"])
      assert.deepStrictEqual(codes, ["sandbox_none", "scripted"])
    })
  )
})

describe("failures", () => {
  it("every way a turn fails has its word [AGT-202]", () => {
    const of = (code: string, errorClass?: string) =>
      failureOf({
        status: "failed",
        error: { code, message: "", ...(errorClass === undefined ? {} : { errorClass }) }
      } as Extract<TurnOutcome, { readonly status: "failed" }>)
    assert.deepStrictEqual(
      [
        of("truncated"),
        of("budget"),
        of("not_accepted"),
        of("timeout"),
        of("harness_timeout"),
        of("turn_interrupted"),
        of("harness_error", "credential"),
        of("harness_error", "workspace"),
        of("harness_error", "model"),
        of("harness_error", "usage_limit"),
        of("harness_error"),
        of("harness_protocol"),
        of("harness_process_exited"),
        of("store_unavailable"),
        of("cancel_unacknowledged"),
        of("session_missing"),
        of("internal")
      ],
      [
        "truncated",
        "budget",
        "not_accepted",
        "timeout",
        "timeout",
        "interrupted",
        "credentials_missing",
        "sandbox_unavailable",
        "model_error",
        "model_error",
        "model_error",
        "internal",
        "internal",
        "internal",
        "internal",
        "internal",
        "internal"
      ]
    )
  })
})
