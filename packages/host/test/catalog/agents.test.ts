/** Agent definitions (run-protocol 12). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agent, at, failure, folder, openHost, type Opened, stage } from "../runs/Kit.ts"

const open = (more: object = {}) =>
  Effect.gen(function* () {
    const place = yield* folder
    const config = { stateDir: place.stateDir, ...more }
    const on = yield* Effect.orDie(openHost(config))
    return { ...on, config, place }
  })

const wireAgent = { id: "one", instructions: "Help.", tools: ["files.read", "shell.run"] }
const register = (on: Opened, more: object = {}) => on.wire("agent/register", { agent: { ...wireAgent, ...more } })
const profiles = (on: Opened) =>
  Effect.map(on.wire("agent/list"), (list) => at(list, "agents") as ReadonlyArray<unknown>)

describe("agent/register", () => {
  it.live("a definition is answered with its profile, saved, and there after a restart [RUN-327] [RUN-320]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const profile = {
        id: "one",
        name: "one",
        description: "",
        approvals: { mode: "always" },
        subagents: [],
        worker_only: false
      }
      assert.deepStrictEqual(yield* register(on), { agent: profile, duplicate: false })
      yield* on.close
      const again = yield* Effect.orDie(openHost(on.config))
      assert.deepStrictEqual(yield* profiles(again), [profile])
      assert.deepStrictEqual(yield* register(again), { agent: profile, duplicate: true })
    })
  )

  it.live("the same definition in other words is a duplicate, another one a conflict with its fields [RUN-325]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      yield* register(on)
      const same = { tools: ["shell.run", "files.read"], name: "one", approvals: { mode: "always" }, questions: true }
      assert.strictEqual(at(yield* register(on, same), "duplicate"), true)
      const error = yield* failure(register(on, { instructions: "Help more.", tools: ["files.read"] }))
      assert.deepStrictEqual([error["kind"], error["reason"], error["id"]], ["conflict", "definition_changed", "one"])
      assert.sameMembers(error["differingFields"] as Array<string>, ["instructions", "tools"])
      assert.lengthOf(yield* profiles(on), 1)
    })
  )

  it.live("every tool has to be there, and no internal one may be listed [RUN-322] [AGT-030]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      for (const tool of ["files.erase", "plan.update", "crm.add"]) {
        const error = yield* failure(register(on, { tools: ["files.read", tool] }))
        assert.deepStrictEqual([error["kind"], error["what"], error["id"]], ["not_found", "tool", tool])
      }
      assert.strictEqual((yield* failure(register(on, { tools: ["ask_user"] })))["kind"], "invalid_params")
      assert.deepStrictEqual(yield* profiles(on), [])
    })
  )

  it.live(
    "a definition that makes no sense is refused with its path, and nothing is kept [RUN-320] [RUN-323] [RUN-324] [RUN-321]",
    () =>
      Effect.gen(function* () {
        const on = yield* open()
        const worker = { id: "w", instructions: "", tools: ["files.read"] }
        const bad: ReadonlyArray<object> = [
          { tools: [] },
          { memory_scope: "s" },
          { approvals: { mode: "only" } },
          { approvals: { mode: "only", tools: ["files.write"] } },
          { approvals: { mode: "always", tools: ["files.read"] } },
          { approvals: { mode: "sometimes" } },
          { tools: ["files.read", "files.read"] },
          { id: "-x" },
          { max_rounds: 0 },
          { timeout_seconds: 86_401 },
          { instructions: "x".repeat(262_145) },
          { subagents: [{ ...worker, scheduling: true }] },
          { subagents: [{ ...worker, subagents: [worker] }] }
        ]
        for (const more of bad) {
          const error = yield* failure(register(on, more))
          assert.include(["invalid_params", "limit_exceeded"], error["kind"], JSON.stringify(more).slice(0, 80))
        }
        assert.deepStrictEqual(yield* profiles(on), [])
        yield* register(on, { approvals: { mode: "only", tools: [] } })
      })
  )

  it.live("what this version has not is refused by the name of its capability [RUN-123]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const worker = { id: "w", instructions: "", tools: ["files.read"] }
      for (const [more, feature] of [
        [{ subagents: [worker] }, "teams"],
        [{ scheduling: true }, "scheduled_tasks"],
        [{ memory: true }, "memory_tools"],
        [{ approvals: { mode: "reviewer" } }, "reviewer"]
      ] as const) {
        const error = yield* failure(register(on, more))
        assert.deepStrictEqual([error["kind"], error["feature"]], ["unsupported", feature])
      }
      assert.deepStrictEqual(yield* profiles(on), [])
    })
  )

  it.live("at most 16 profiles, those of the configuration counted [RUN-321]", () =>
    Effect.gen(function* () {
      const on = yield* open({ agents: [agent({ id: "configured" })] })
      for (let n = 0; n < 15; n++) yield* register(on, { id: `a${n}` })
      const error = yield* failure(register(on, { id: "one-more" }))
      assert.deepStrictEqual([error["kind"], error["limit"], error["max"]], ["limit_exceeded", "agents", 16])
      assert.lengthOf(yield* profiles(on), 16)
    })
  )

  it.live("a provider need not be there yet; a search without endpoint warns [RUN-329]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const result = yield* register(on, {
        tools: ["web.search"],
        model: { connection: "not-yet", model: "m" }
      })
      assert.lengthOf(at(result, "warnings") as ReadonlyArray<unknown>, 1)
      const searching = yield* open({ web: { searchUrl: "http://127.0.0.1:9/search" } })
      assert.isUndefined(at(yield* register(searching, { tools: ["web.search"] }), "warnings"))
    })
  )

  it.live("registration shows nothing to other agents and leaves sessions alone [RUN-326] [RUN-330]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const before = yield* on.api["session/state"]({ sessionId: on.sessionId })
      yield* register(on)
      assert.deepStrictEqual(yield* on.api["session/state"]({ sessionId: on.sessionId }), before)
    })
  )
})

describe("agents of the configuration", () => {
  it.live("one with the id of a saved agent has to be the same [RUN-328]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      yield* register(on)
      yield* on.close
      const same = { id: "one", instructions: "Help.", tools: ["shell.run", "files.read"] }
      const again = yield* Effect.orDie(openHost({ ...on.config, agents: [same] }))
      assert.lengthOf(yield* profiles(again), 1)
      yield* again.close
      const error = yield* Effect.flip(
        openHost({ ...on.config, agents: [agent({ id: "other" }), { ...same, instructions: "Other." }] })
      )
      assert.deepStrictEqual([error.reason, error.path], ["agent_conflict", "agents[1]"])
    })
  )

  it.live("one that cannot be is a bad configuration, with its path [RUN-331] [RUN-080]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const error = yield* Effect.flip(
        openHost({ stateDir, agents: [agent({ id: "ok" }), agent({ id: "bad", tools: ["crm.add"] })] })
      )
      assert.deepStrictEqual([error.reason, error.path], ["bad_config", "agents[1]"])
    })
  )
})
