/** MCP servers of the host: registered, kept, selected by agents (run-protocol 10, RUN-331). */
import { join } from "node:path"
import { readFileSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import type { HostConfig, McpRegisterParams, RunError } from "@tackroom/protocol/run"
import { Duration, Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import {
  agent,
  approval,
  at,
  call,
  ended,
  failure,
  folder,
  interrupted,
  journal,
  ofType,
  openHost,
  respond,
  run,
  say,
  stage,
  type Stage,
  start
} from "../runs/Kit.ts"
import { httpServer } from "./HttpServer.ts"
import { awaitLine, server } from "./Kit.ts"
import type { ServerManner } from "./fixtures/server.ts"

const value = "canary-value-of-a-server"
const done = [say("Done.")]

/** What registers a server of the tests. */
const registration = (manner: ServerManner = {}, more: Partial<McpRegisterParams> = {}): McpRegisterParams => {
  const { args, command } = server(manner) as Extract<ReturnType<typeof server>, { readonly transport: "stdio" }>
  return { name: "manners", transport: { type: "stdio", command, args }, ...more }
}

const withEnv = (manner: ServerManner = {}, env: Readonly<Record<string, string>> = { TOKEN: value }) => {
  const given = registration(manner)
  return { ...given, transport: { ...given.transport, env } } as McpRegisterParams
}

const user = { name: "user", tools: ["manners.echo", "manners.sum"] } as const

/** A session of an agent that has tools of the server, registered as an app does it. */
const sessionOf = (on: Stage, definition: Parameters<typeof agent>[0] = {}) =>
  Effect.gen(function* () {
    yield* on.api["agent/register"]({ agent: agent({ id: "user", tools: [...user.tools], ...definition }) })
    const { session } = yield* on.api["agent/session"]({ agent: "user", workspace: on.folder.workspace })
    return { ...on, sessionId: session.sessionId } satisfies Stage
  })

describe("mcp/register", () => {
  it.live("starts the server, tells its tools, and is the same when repeated [RUN-250] [RUN-251]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const given = registration({ tools: ["echo", "has space", "a/b"] })
      const { duplicate, server: made } = yield* on.api["mcp/register"](given)
      assert.isFalse(duplicate)
      assert.deepStrictEqual([made.name, made.state], ["manners", "ready"])
      assert.deepStrictEqual(made.tools, [
        { name: "echo", qualifiedName: "manners.echo", alias: "manners__echo", category: "external" },
        { name: "a/b", qualifiedName: "manners.a/b", alias: "manners__a_b", category: "external" }
      ])
      assert.deepStrictEqual(yield* on.api["mcp/register"]({ ...given, tools: { exclude: [] } }), {
        server: made,
        duplicate: true
      })
      assert.deepStrictEqual((yield* on.api["mcp/list"]({})).servers, [made])
      const changed = yield* failure(on.api["mcp/register"]({ ...given, tools: { include: ["echo"] } }))
      assert.deepInclude(changed, { kind: "conflict", reason: "mcp_immutable", id: "manners" })
    })
  )

  it.live("keeps nothing of a server that does not come up, and says how it ended [RUN-250] [RUN-225]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const error = yield* failure(on.api["mcp/register"](withEnv({ dies: `no ${value}` })))
      assert.deepInclude(error, { kind: "provider_unavailable", what: "mcp_server", name: "manners", exitCode: 4 })
      assert.strictEqual(error["stderrTail"], "no [redacted:mcp/manners/TOKEN]\n")
      assert.deepStrictEqual((yield* on.api["mcp/list"]({})).servers, [])
      assert.isFalse((yield* on.api["mcp/register"](withEnv())).duplicate)
    })
  )

  it.effect("gives a server thirty seconds [RUN-250] [RUN-040]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const waiting = yield* Effect.forkChild(failure(on.api["mcp/register"](registration({ silent: true }))), {
        startImmediately: true
      })
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 seconds")
      assert.deepInclude(yield* Fiber.join(waiting), {
        kind: "provider_unavailable",
        detail: "it did not answer in time"
      })
    })
  )

  it.live("reaches servers of this machine alone, also when they redirect [RUN-252]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const web = yield* httpServer()
      const http = (name: string, url: string): McpRegisterParams => ({ name, transport: { type: "http", url } })
      for (const url of ["https://example.com/mcp", "http://192.0.2.1/", "http://127.0.0.1.example.com/"]) {
        const error = yield* failure(on.api["mcp/register"](http("far", url)))
        assert.deepInclude(error, { kind: "invalid_params", path: "transport.url" })
      }
      const near = yield* on.api["mcp/register"](http("near", web.url.replace("127.0.0.1", "localhost")))
      assert.strictEqual(near.server.state, "ready")
      const away = yield* httpServer({ redirect: "http://192.0.2.1/mcp" })
      const error = yield* failure(on.api["mcp/register"](http("away", away.url)))
      assert.deepInclude(error, { kind: "provider_unavailable", name: "away" })
    })
  )

  it.live(
    "refuses by its place what no program or request can be given, and repeats no value [RUN-061] [RUN-225]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage()
        const { transport } = registration()
        const web = { type: "http", url: "http://127.0.0.1:1/mcp" } as const
        for (const [given, path] of [
          [{ ...transport, env: { "A=B": value } }, "transport.env"],
          [{ ...transport, env: { TOKEN: `${value}\0` } }, "transport.env"],
          [{ ...transport, args: ["\0"] }, "transport.args"],
          [{ ...transport, command: "\0" }, "transport.command"],
          [{ ...web, headers: { "x y": value } }, "transport.headers"],
          [{ ...web, headers: { x: `${value}\r\nx: y` } }, "transport.headers"],
          [{ ...web, headers: { x: `${value}€` } }, "transport.headers"],
          [{ ...web, url: `http://me:${value}@127.0.0.1/` }, "transport.url"],
          [{ ...web, url: "http://[" }, "transport.url"]
        ] as const) {
          const error = yield* failure(
            on.api["mcp/register"]({ name: "odd", transport: given as McpRegisterParams["transport"] })
          )
          assert.deepInclude(error, { kind: "invalid_params", path })
          assert.notInclude(JSON.stringify(error), value)
        }
      })
  )

  it.live(
    "selects tools and their categories; what the server does not have is refused by its place [RUN-253] [RUN-254]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage()
        const tools = { include: ["echo", "sum", "pid"], exclude: ["pid"], categories: { echo: "read" as const } }
        const { server: made } = yield* on.api["mcp/register"](registration({}, { tools }))
        assert.deepStrictEqual(
          made.tools.map(({ category, name }) => [name, category]),
          [
            ["echo", "read"],
            ["sum", "external"]
          ]
        )
        const refused = (selection: McpRegisterParams["tools"]) =>
          Effect.map(
            failure(
              on.api["mcp/register"](registration({}, { name: "other", ...(selection && { tools: selection }) }))
            ),
            (error) => error["path"]
          )
        assert.strictEqual(yield* refused({ include: ["echo", "nothing"] }), "tools.include[1]")
        assert.strictEqual(yield* refused({ exclude: ["nothing"] }), "tools.exclude[0]")
        assert.strictEqual(yield* refused({ categories: { nothing: "read" } }), "tools.categories")
      })
  )

  it.live("is bounded: 128 tools of a server, 512 in all, 16 servers [RUN-253]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const register = (name: string, count: number) =>
        Effect.gen(function* () {
          const { url } = yield* httpServer({ tools: Array.from({ length: count }, (_, n) => `tool-${n}`) })
          return yield* on.api["mcp/register"]({ name, transport: { type: "http", url } })
        })
      const refused = (effect: Effect.Effect<unknown, RunError, Scope.Scope>) =>
        Effect.map(Effect.flip(effect), (error) => [at(error, "limit"), at(error, "max")])
      assert.deepStrictEqual(yield* refused(register("large", 129)), ["mcp_tools", 128])
      for (let n = 0; n < 4; n++) yield* register(`full-${n}`, 128)
      assert.deepStrictEqual(yield* refused(register("more", 1)), ["mcp_tools", 512])
      for (let n = 0; n < 12; n++) yield* register(`none-${n}`, 0)
      assert.deepStrictEqual(yield* refused(register("last", 0)), ["mcp_servers", 16])
    })
  )
})

describe("an agent that selects tools of a server", () => {
  it.live("has them and no other, asks for them, and calls them [AGT-030] [AGT-034] [RUN-322]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[call("manners.sum", { a: 1, b: 2 }), call("manners.pid", {})], done] })
      const early = yield* failure(sessionOf(on))
      assert.deepInclude(early, { kind: "not_found", what: "tool", id: "manners.echo" })
      yield* on.api["mcp/register"](registration())
      const mine = yield* sessionOf(on)
      yield* start(mine)
      const asked = approval(yield* interrupted(mine))
      assert.deepStrictEqual([asked.qualifiedName, asked.category], ["manners.sum", "external"])
      yield* respond(mine, asked.id, "once")
      assert.strictEqual((yield* ended(mine)).status, "completed")
      const events = yield* journal(mine)
      assert.deepStrictEqual(
        ofType(events, "tool-output").map((event) => event["output"]),
        [{ sum: 3 }]
      )
      // The server has it, the agent does not.
      assert.strictEqual(ofType(events, "tool-error").length, 1)
    })
  )

  it.live("keeps what it was made with: a changed tool asks, one that is new is not its own [RUN-256] [AGT-121]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("manners.change", {})], [call("manners.echo", { words: "hi" }), call("manners.sum", {})], done]
      })
      yield* on.api["mcp/register"](registration())
      const tools = ["manners.echo", "manners.sum", "manners.change"]
      const mine = yield* sessionOf(on, { tools, approvals: { mode: "never" } })
      yield* start(mine)
      const asked = approval(yield* interrupted(mine))
      assert.deepStrictEqual([asked.qualifiedName, asked.reason], ["manners.echo", "binding_changed"])
      yield* respond(mine, asked.id, "once")
      yield* ended(mine)
      assert.deepStrictEqual(
        ofType(yield* journal(mine), "tool-error").map((event) => at(event, "metadata", "outcome")),
        ["not_run"]
      )
      const names = (yield* on.api["mcp/list"]({})).servers[0]?.tools.map(({ name }) => name) ?? []
      assert.include(names, "extra")
      assert.notInclude(names, "sum")
    })
  )
})

describe("after a restart", () => {
  it.live(
    "a server with values waits for the same registration; no value is on disk [RUN-255] [RUN-331] [RUN-225]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [[call("manners.echo", { text: "hi" })], done, [call("manners.echo", { text: "hi" })], done]
        })
        yield* on.api["mcp/register"](withEnv())
        const mine = yield* sessionOf(on, { approvals: { mode: "never" } })
        const again = { ...(yield* on.reopen()), sessionId: mine.sessionId } satisfies Stage
        assert.notInclude(on.folder.kept(), value)

        const [waiting] = (yield* again.api["mcp/list"]({})).servers
        assert.deepStrictEqual([waiting?.state, at(waiting, "transport", "env")], ["needs_registration", ["TOKEN"]])
        assert.include(waiting?.tools.map(({ name }) => name) ?? [], "echo")
        const late = yield* failure(
          again.api["agent/register"]({ agent: agent({ id: "late", tools: ["manners.echo"] }) })
        )
        assert.deepInclude(late, { kind: "not_found", what: "tool" })

        assert.strictEqual((yield* run(again)).status, "completed")
        const other = yield* failure(again.api["mcp/register"](withEnv({}, { TOKEN: "another value" })))
        assert.deepInclude(other, { kind: "conflict", reason: "mcp_immutable" })
        const back = yield* again.api["mcp/register"](withEnv())
        assert.deepStrictEqual([back.duplicate, back.server.state], [true, "ready"])
        yield* again.api["agent/register"]({ agent: agent({ id: "late", tools: ["manners.echo"] }) })
        assert.strictEqual((yield* run(again, "m-2")).status, "completed")
        const events = yield* journal(again)
        assert.deepStrictEqual(
          [...ofType(events, "tool-error"), ...ofType(events, "tool-output")].map((event) =>
            at(event, "metadata", "outcome")
          ),
          ["not_run", "completed"]
        )
      })
  )

  it.live("a server without values is started by the first call of its tools [RUN-255] [RUN-257]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[call("manners.echo", { text: "hi" })], done] })
      const notes = join(on.folder.root, "notes")
      yield* on.api["mcp/register"](registration({ notes }))
      const mine = yield* sessionOf(on, { approvals: { mode: "never" } })
      const again = { ...(yield* on.reopen()), sessionId: mine.sessionId } satisfies Stage
      const [before] = (yield* again.api["mcp/list"]({})).servers
      assert.strictEqual(before?.state, "stopped")
      assert.strictEqual((yield* run(again)).status, "completed")
      assert.strictEqual(ofType(yield* journal(again), "tool-output").length, 1)
      const [after] = (yield* again.api["mcp/list"]({})).servers
      assert.deepStrictEqual([after?.state, after?.tools], ["ready", before?.tools])
      assert.deepStrictEqual(readFileSync(notes, "utf8").trim().split("\n"), ["end of input", "call echo"])
    })
  )
})

describe("a recovered turn with a tool of a server that waits for its values", () => {
  const waiting = Effect.gen(function* () {
    const on = yield* stage({ scenario: [[call("manners.echo", { text: "hi" })], done] })
    yield* on.api["mcp/register"](withEnv())
    const mine = yield* sessionOf(on)
    yield* start(mine)
    const { id } = approval(yield* interrupted(mine))
    const again = { ...(yield* on.reopen()), sessionId: mine.sessionId } satisfies Stage
    yield* respond(again, id, "once")
    return again
  })
  const outcome = (on: Stage) =>
    Effect.map(Effect.andThen(ended(on), journal(on)), (events) =>
      at([...ofType(events, "tool-error"), ...ofType(events, "tool-output")][0], "metadata", "outcome")
    )

  it.effect("goes on when the server is registered again [RUN-521] [RUN-255]", () =>
    Effect.gen(function* () {
      const again = yield* waiting
      yield* TestClock.adjust("50 seconds")
      const { phases } = yield* again.api["session/state"]({ sessionId: again.sessionId })
      assert.deepStrictEqual(
        phases.map(({ phase }) => phase),
        ["recovering"]
      )
      yield* again.api["mcp/register"](withEnv())
      assert.strictEqual(yield* outcome(again), "completed")
    })
  )

  it.effect("goes on without it after 60 s [RUN-521]", () =>
    Effect.gen(function* () {
      const again = yield* waiting
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual(yield* outcome(again), "not_run")
    })
  )
})

describe("servers of the configuration", () => {
  it.live("are started with the host, and its agents have their tools [RUN-331]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const config: HostConfig = {
        stateDir: place.stateDir,
        sandbox: "none",
        providers: [{ name: "script", api: "script", scenario: place.scenario("script", { default: [done] }) }],
        servers: [withEnv({ starts: join(place.root, "starts") })],
        agents: [agent({ tools: ["manners.echo"] })]
      }
      for (let n = 0; n < 2; n++) {
        const opened = yield* openHost(config)
        const [only] = (yield* opened.api["mcp/list"]({})).servers
        // The first time its tools have to be known; the second time nothing waits for it.
        assert.strictEqual(only?.state, n === 0 ? "ready" : "stopped")
        assert.include(only?.tools.map(({ name }) => name) ?? [], "echo")
        yield* awaitLine(place.root, "starts", "started", n + 1)
        yield* opened.close
      }
      assert.notInclude(place.kept(), value)
      // What the configuration says of its own servers may change.
      const changed = yield* openHost({ ...config, servers: [registration()] })
      assert.strictEqual((yield* changed.api["mcp/list"]({})).servers[0]?.state, "ready")
      yield* changed.close
      const unseen = yield* Effect.flip(openHost({ ...config, agents: [agent({ tools: ["manners.never"] })] }))
      assert.deepInclude(unseen, { reason: "bad_config", path: "agents[0]" })
      const elsewhere = { name: "far", transport: { type: "http", url: "https://example.com/" } } as const
      const refused = yield* Effect.flip(openHost({ ...config, servers: [elsewhere] }))
      assert.deepInclude(refused, { reason: "bad_config", path: "servers[0]" })
    })
  )

  it.live("that do not come up are a warning, and missed only by the agents that name their tools [RUN-331]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const config: HostConfig = {
        stateDir: place.stateDir,
        sandbox: "none",
        servers: [registration({ dies: "no" }, { name: "short" }), registration()],
        agents: [agent({ tools: ["manners.echo"] })]
      }
      const opened = yield* openHost(config, { initialize: false })
      const warnings = at(yield* opened.wire("initialize"), "warnings")
      assert.include(String(warnings), "mcp server short is not available: it ended (exit code 4): no")
      assert.deepStrictEqual(
        (yield* opened.api["mcp/list"]({})).servers.map(({ name }) => name),
        ["manners"]
      )
      yield* opened.close
      const missed = yield* Effect.flip(openHost({ ...config, agents: [agent({ tools: ["short.echo"] })] }))
      assert.deepInclude(missed, { reason: "bad_config", path: "agents[0]" })
    })
  )

  it.live("that are slow hold up nothing: they start behind, and an agent that names their tools waits [RUN-040]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const slow = { waitsFor: join(place.root, "open") }
      const dies = { waitsFor: join(place.root, "open"), diesThen: "no more" }
      const config: HostConfig = {
        stateDir: place.stateDir,
        sandbox: "none",
        servers: [registration(slow), registration(dies, { name: "short" })]
      }
      const [took, opened] = yield* Effect.timed(openHost(config, { initialize: false }))
      assert.isBelow(Duration.toMillis(took), 20_000)
      const warnings = String(at(yield* opened.wire("initialize"), "warnings"))
      assert.include(warnings, "mcp server manners is still starting")
      assert.include(warnings, "mcp server short is still starting")
      const states = Effect.map(opened.api["mcp/list"]({}), ({ servers }) => servers.map(({ state }) => state))
      assert.deepStrictEqual(yield* states, ["starting", "starting"])
      const registering = yield* Effect.forkChild(
        opened.api["agent/register"]({ agent: agent({ tools: ["manners.echo"] }) })
      )
      // A registration of the same waits for it, and is told what became of it.
      const again = yield* Effect.forkChild(
        Effect.flip(opened.api["mcp/register"](registration(dies, { name: "short" })))
      )
      yield* Effect.yieldNow
      writeFileSync(slow.waitsFor, "")
      assert.strictEqual((yield* Fiber.join(registering)).duplicate, false)
      assert.deepInclude(yield* Fiber.join(again), { _tag: "ProviderUnavailable", name: "short" })
      const { servers } = yield* opened.api["mcp/list"]({})
      assert.deepStrictEqual(
        servers.map(({ error, name, state }) => [name, state, error ?? ""]),
        [
          ["manners", "ready", ""],
          ["short", "failed", "it ended (exit code 4): no more"]
        ]
      )
      yield* opened.close
      // From now on it is known, and nobody waits for it.
      const second = yield* openHost({ ...config, servers: [registration(slow)] })
      assert.strictEqual((yield* second.api["mcp/list"]({})).servers[0]?.state, "stopped")
      yield* second.close
    })
  )
})
