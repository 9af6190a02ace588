import { assert, describe, it } from "@effect/vitest"
import { RuntimeOptionInvalid } from "@tackroom/protocol"
import type { EventPayload } from "@tackroom/protocol/events"
import { Deferred, Effect, Fiber } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { AgentRuntime, Config, McpServers, Sessions } from "../../src/effect.ts"
import type { HarnessContext, McpServer } from "../../src/harness/Harness.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import {
  create,
  failing,
  gate,
  journal,
  openRuntime,
  outcome,
  programmable,
  scene,
  start,
  stores,
  within
} from "./Kit.ts"
import type { TurnScript } from "./Programmable.ts"

const token = "canary-7f3a-token"
const files = { type: "stdio", command: "/bin/files", args: ["-r"], env: { TOKEN: token, DEBUG: "1" } } as const
const web = { type: "remote", url: "https://mcp.example", headers: { authorization: `Bearer ${token}` } } as const

const filesServer = { name: "files", transport: "stdio", command: "/bin/files", args: ["-r"], env: files.env } as const

/** A harness that takes servers, and what it was given at each opening. */
const taking = (
  mcp: "none" | "stdio" | "stdio+http",
  more: {
    readonly resume?: "none" | "exact"
    readonly opening?: (context: HarnessContext, sessionId: string) => Effect.Effect<void>
    readonly turn?: (script: TurnScript) => Effect.Effect<void>
  } = {}
) => {
  const given: Array<ReadonlyArray<McpServer> | undefined> = []
  const driver = programmable({
    capabilities: { mcp, ...(more.resume === undefined ? {} : { resume: more.resume }) },
    ...(more.turn === undefined ? {} : { turn: more.turn }),
    driver: (base, context) => ({
      openSession: (input) =>
        Effect.gen(function* () {
          given.push(input.mcp)
          yield* more.opening?.(context, input.sessionId) ?? Effect.void
          return yield* base.openSession(input)
        }),
      resumeSession: (binding, servers) =>
        Effect.suspend(() => {
          given.push(servers)
          return base.resumeSession(binding, servers)
        })
    })
  })
  return { driver, given }
}

const statuses = (payloads: ReadonlyArray<EventPayload>) =>
  payloads.flatMap((event) =>
    event.type === "mcp-server-status" ? [`${event.serverName} ${event.status}: ${event.error ?? ""}`] : []
  )

const payloads = (sessionId: string) => Effect.map(journal(sessionId), (events) => events.map(({ payload }) => payload))

for (const kind of stores) {
  describe(`MCP servers of a session over ${kind.name}`, () => {
    it.live("are given to the harness with their values, and only the values' names are kept [RT-304]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const { driver, given } = taking("stdio+http", {
            turn: (script) => script.emit(script.finish(`the token is ${token}.`))
          })
          const runtime = yield* openRuntime(store, driver)
          const session = yield* runtime.run(create(root, { mcp: { files, web } }))
          assert.deepStrictEqual(given, [
            [filesServer, { name: "web", transport: "remote", url: web.url, headers: web.headers }]
          ])
          yield* runtime.run(start(session.id, "a"))
          yield* runtime.run(outcome(session.id, "a"))
          const all = JSON.stringify([
            session,
            yield* runtime.run(journal(session.id)),
            yield* store.getSession(session.id)
          ])
          assert.notInclude(all, token)
          assert.include(all, "[redacted:")
          yield* runtime.close()
          if (kind.name !== "sqlite") return
          for (const file of readdirSync(join(root, "state"))) {
            assert.isFalse(readFileSync(join(root, "state", file)).includes(token), file)
          }
        })
      )
    )

    it.live("another process opens the session without the servers whose values it has not, and says so [RT-304]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const plain = { type: "stdio", command: "/bin/plain" } as const
          const named = { type: "stdio", command: "/bin/named", env: { KEY: { secret: "app-key" } } } as const
          const secrets = { get: (name: string) => name }
          const first = yield* openRuntime(store, taking("stdio").driver, { secrets })
          const session = yield* first.run(create(root, { mcp: { files, plain, named } }))
          yield* first.close()
          const { driver, given } = taking("stdio")
          const second = yield* openRuntime(store, driver, { secrets })
          yield* second.run(start(session.id, "a"))
          assert.strictEqual((yield* second.run(outcome(session.id, "a"))).status, "completed")
          assert.deepStrictEqual(
            given[0]?.map((server) => [server.name, server.transport === "stdio" ? server.env : {}]),
            [
              ["plain", {}],
              ["named", { KEY: "app-key" }]
            ]
          )
          assert.deepStrictEqual(statuses(yield* second.run(payloads(session.id))), [
            "files failed: the value of the variable TOKEN was given to another process and is not kept: give it again"
          ])
          yield* second.close()
        })
      )
    )
  })
}

const [memory] = stores
if (memory !== undefined) {
  describe("MCP servers of a session", () => {
    it("a configured server of a wrong shape is a wrong option, named without its value [RT-021]", () => {
      const store = createMemoryRuntimeStore()
      const mcp = { files: { type: "stdio", env: { TOKEN: { secrets: token } } } } as never
      const made = () => AgentRuntime.layer({ store, harnesses: [], mcp })
      assert.throws(made, RuntimeOptionInvalid, /^(?!.*canary).*mcp\.files/u)
    })

    it.live("a harness that cannot take one refuses the session, and no row stays [RT-303]", () => {
      const { driver } = taking("stdio")
      return within(memory, driver, ({ root }) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* failing(create(root, { mcp: { web } })), "unsupported_operation")
          assert.strictEqual(driver.closed.length, 1, "what was started for the question is ended")
          const sessions = yield* Sessions
          assert.deepStrictEqual((yield* sessions.list({})).items, [])
          const lazy = yield* create(root, { mcp: { web }, open: "lazy" })
          yield* start(lazy.id, "a")
          assert.strictEqual((yield* outcome(lazy.id, "a")).status, "completed")
          assert.deepStrictEqual(statuses(yield* payloads(lazy.id)), [
            "web failed: this harness does not support MCP servers over HTTP"
          ])
          assert.strictEqual(yield* failing(create(root, { mcp: { half: { type: "stdio" } } })), "session_invalid")
        })
      )
    })

    it.live("configured servers are taken by name, and only where they are named [RT-301]", () => {
      const { driver, given } = taking("stdio")
      return within(
        memory,
        driver,
        ({ root }) =>
          Effect.gen(function* () {
            yield* create(root)
            const session = yield* create(root, { mcp: ["files", "half", "off"] })
            assert.deepStrictEqual(given, [undefined, [filesServer]])
            assert.deepStrictEqual(session.config.mcp, ["files", "half", "off"])
            assert.deepStrictEqual(statuses(yield* payloads(session.id)), ["half failed: command is missing"])
            assert.strictEqual(yield* failing(create(root, { mcp: ["unknown"] })), "session_invalid")
          }),
        { mcp: { files, half: { type: "stdio" }, off: { type: "stdio", command: "/x", disabled: true } } }
      )
    })

    it.live("others take their place at the next opening; the same ones change nothing [HRN-018]", () => {
      const { begun, pass, release } = gate()
      const { driver, given } = taking("stdio", {
        turn: (script) => Effect.andThen(pass, script.emit(script.finish()))
      })
      return within(memory, driver, ({ root }) =>
        Effect.gen(function* () {
          const config = yield* Config
          const session = yield* create(root, { mcp: { files } })
          yield* start(session.id, "a")
          yield* begun
          const other = { other: { type: "stdio", command: "/bin/other" } } as const
          assert.strictEqual(yield* failing(config.update(session.id, { mcp: other })), "session_turn_in_progress")
          yield* release
          yield* outcome(session.id, "a")
          yield* config.update(session.id, { mcp: { files } })
          yield* config.update(session.id, { mcp: (yield* config.read(session.id)).mcp ?? null })
          assert.deepStrictEqual(driver.closed, [])
          yield* config.update(session.id, { mcp: { files: { ...files, env: { ...files.env, DEBUG: "2" } } } })
          yield* start(session.id, "b")
          yield* outcome(session.id, "b")
          assert.deepStrictEqual(given[1], [{ ...filesServer, env: { TOKEN: token, DEBUG: "2" } }])
          yield* config.update(session.id, { mcp: null })
          assert.isUndefined((yield* config.read(session.id)).mcp)
          yield* start(session.id, "c")
          yield* outcome(session.id, "c")
          assert.deepStrictEqual(given[2], [])
          assert.strictEqual(driver.closed.length, 2)
        })
      )
    })

    it.live("a conversation that would be lost keeps its servers", () => {
      const { driver } = taking("stdio", { resume: "none" })
      return within(memory, driver, ({ root }) =>
        Effect.gen(function* () {
          const config = yield* Config
          const session = yield* create(root, { mcp: { files } })
          yield* config.update(session.id, { mcp: null })
          yield* start(session.id, "a")
          yield* outcome(session.id, "a")
          assert.strictEqual(yield* failing(config.update(session.id, { mcp: { files } })), "unsupported_operation")
          assert.strictEqual(driver.opened.length, 2)
        })
      )
    })

    it.live("an opening waits for none; what the harness tells of them is known, and in the journal", () => {
      const up = Deferred.makeUnsafe<void>()
      const tell = (context: HarnessContext, sessionId: string, status: "starting" | "ready" | "failed") =>
        context.notice(sessionId, {
          type: "mcp-server-status",
          serverName: "files",
          status,
          ...(status === "failed" ? { error: "it ended" } : {})
        })
      const { driver } = taking("stdio", {
        opening: (context, sessionId) =>
          Effect.gen(function* () {
            yield* tell(context, sessionId, "starting")
            yield* Effect.forkDetach(Effect.andThen(Deferred.await(up), tell(context, sessionId, "failed")))
          })
      })
      return within(memory, driver, ({ root }) =>
        Effect.gen(function* () {
          const servers = yield* McpServers
          const sessions = yield* Sessions
          const session = yield* create(root, { mcp: { files } })
          assert.deepStrictEqual(servers.states(session.id), [{ name: "files", status: "starting" }])
          const settled = yield* Effect.forkChild(servers.settled(session.id), { startImmediately: true })
          assert.isUndefined(settled.pollUnsafe())
          yield* Deferred.succeed(up, undefined)
          yield* Fiber.join(settled)
          assert.deepStrictEqual(servers.states(session.id), [{ name: "files", status: "failed", error: "it ended" }])
          yield* sessions.close(session.id)
          assert.deepStrictEqual(servers.states(session.id), [])
          yield* servers.settled(session.id)
          const all = yield* payloads(session.id)
          assert.deepStrictEqual(statuses(all), ["files starting: ", "files failed: it ended"])
          assert.strictEqual(all[0]?.type, "session-created")
        })
      )
    })

    it.live("a directory among the values stays readable, a key does not", () => {
      const { driver } = taking("stdio", {
        turn: (script) => script.emit(script.finish(`in ${process.cwd()} with production and ${token}`))
      })
      return within(memory, driver, ({ root }) =>
        Effect.gen(function* () {
          const env = { ROOT: process.cwd(), MODE: "production", TOKEN: token, BASE: "/kbGx9sdkfj39fjskjfw93" }
          const session = yield* create(root, { mcp: { files: { ...files, env } } })
          yield* start(session.id, "a")
          yield* outcome(session.id, "a")
          const said = JSON.stringify(yield* payloads(session.id))
          assert.include(said, `in ${process.cwd()} with production and [redacted:`)
        })
      )
    })
  })
}
