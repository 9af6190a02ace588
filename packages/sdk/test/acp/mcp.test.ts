import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { AcpOptions } from "../../src/harness/acp/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { type AgentFlags, open, type Place, place, testAgent } from "./Kit.ts"

const token = "canary-5d21-token"
const files = { type: "stdio", command: "/bin/files", args: ["-r"], env: { TOKEN: token } } as const
const web = { type: "remote", url: "https://mcp.example", headers: { authorization: `Bearer ${token}` } } as const

const filesSaid = { name: "files", command: "/bin/files", args: ["-r"], env: [{ name: "TOKEN", value: token }] }
const webSaid = {
  type: "http",
  name: "web",
  url: "https://mcp.example",
  headers: [{ name: "authorization", value: `Bearer ${token}` }]
}

/** The servers that the agent was given, call by call. */
const given = (at: Place) =>
  at.log().flatMap((line) => {
    const [method] = line.split(" ")
    return method === "new" || method === "load" || method === "resume"
      ? [[method, JSON.parse(line.slice(line.indexOf("[")))]]
      : []
  })

const within = <A, E>(
  flags: AgentFlags,
  program: (opened: {
    readonly at: Place
    readonly runtime: Effect.Success<ReturnType<typeof open>>
  }) => Effect.Effect<A, E, Scope.Scope>,
  options: Partial<AcpOptions> = {}
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const at = yield* place
      const store = createMemoryRuntimeStore()
      yield* Effect.addFinalizer(() => store.close)
      return yield* program({ at, runtime: yield* open(testAgent(at, flags, options), store) })
    })
  )

describe("MCP servers of an ACP agent's session", () => {
  for (const method of ["load", "resume"] as const) {
    it.live(`are given to the agent when its conversation is made and with ${method}, those of then [RT-304]`, () =>
      within({ mcpHttp: true, resume: method === "resume" }, ({ at, runtime }) =>
        Effect.gen(function* () {
          const session = yield* runtime.create(at.directory, { mcp: { files, web } })
          yield* runtime.run(session.id, "hello")
          yield* runtime.config.update(session.id, { mcp: method === "load" ? { web } : null })
          yield* runtime.run(session.id, "hello")
          assert.deepStrictEqual(given(at), [
            ["new", [filesSaid, webSaid]],
            [method, method === "load" ? [webSaid] : []]
          ])
          const driver = yield* runtime.driver
          assert.strictEqual((yield* driver.capabilities({ directory: at.directory })).mcp, "stdio+http")
        })
      )
    )
  }

  it.effect("are given again to an agent that had rested", () =>
    within(
      {},
      ({ at, runtime }) =>
        Effect.gen(function* () {
          const session = yield* runtime.create(at.directory, { mcp: { files } })
          yield* runtime.run(session.id, "hello")
          yield* TestClock.adjust(1_001)
          yield* runtime.run(session.id, "hello")
          assert.deepStrictEqual(given(at), [
            ["new", [filesSaid]],
            ["load", [filesSaid]]
          ])
        }),
      { idleMs: 1_000 }
    )
  )

  it.live("over HTTP are not for an agent that does not say it takes them, and it is ended again [RT-303]", () =>
    within({}, ({ at, runtime }) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(runtime.create(at.directory, { mcp: { files, web } }))
        assert.strictEqual(error.code, "unsupported_operation")
        assert.deepStrictEqual(given(at), [])
        const words = at.log().map((line) => line.split(" ")[0])
        assert.strictEqual(words.filter((word) => word === "start").length, 1)
        assert.include(words, "end")
      })
    )
  )

  it.live("an agent that says what it was given is not repeated [RT-304]", () =>
    within({ refuseServers: true }, ({ at, runtime }) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(runtime.create(at.directory, { mcp: { files } }))
        assert.strictEqual(error.code, "harness_rejected")
        assert.include(error.message, "it could not start")
        assert.notInclude(JSON.stringify([error, error.message]), token)
      })
    )
  )
})
