/** Servers of a session over Streamable HTTP: real requests on loopback. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import type { McpServer } from "@tackroom/sdk/adapters"
import { McpServerName } from "@tackroom/protocol/run"
import { Effect, Schema } from "effect"
import { fittedNames } from "../../src/mcp/ServerName.ts"
import { onThisMachine, overTls } from "../../src/mcp/Reach.ts"
import { httpServer } from "./HttpServer.ts"
import { open, sessionId } from "./Kit.ts"

const remote = (url: string, headers: Readonly<Record<string, string>> = {}): McpServer => ({
  name: "far",
  transport: "remote",
  url,
  headers
})

const isServerName = Schema.is(McpServerName)

const key = { authorization: "Bearer a-secret-value" }

describe("a server over HTTP", () => {
  it.live("is called with its headers, in one answer or a stream, and told when its session ends", () =>
    Effect.gen(function* () {
      const web = yield* httpServer()
      const on = yield* open(remote(web.url, key))
      yield* on.status("ready")
      assert.strictEqual((yield* on.call("far.plain")).output?.output, "plain")
      assert.strictEqual((yield* on.call("far.stream")).output?.output, "streamed")
      assert.deepStrictEqual((yield* on.call("far.refused")).problem?.outcome, "failed")
      yield* on.servers.close(sessionId)
      assert.deepStrictEqual(
        new Set(web.seen.map(({ headers }) => headers.authorization)),
        new Set([key.authorization])
      )
      assert.strictEqual(web.seen.at(-1)?.method, "DELETE")
      // By our own transport: that of Node ends the process with a server that hangs up early.
      assert.deepStrictEqual(new Set(web.seen.map(({ headers }) => headers["user-agent"])), new Set(["tackroom"]))
    })
  )

  for (const tool of ["broken", "dropped", "endless"]) {
    it.live(`an answer that is ${tool} leaves the call unknown, and the next connects again [RUN-258]`, () =>
      Effect.gen(function* () {
        const web = yield* httpServer()
        const on = yield* open(remote(web.url))
        yield* on.status("ready")
        const { dispatched, problem } = yield* on.call(`far.${tool}`)
        assert.deepStrictEqual([problem?.outcome, dispatched], ["unknown", true])
        assert.strictEqual((yield* on.call("far.plain")).output?.output, "plain")
        const calls = web.seen.filter(({ rpc }) => rpc === "tools/call")
        assert.strictEqual(calls.length, 2)
      })
    )
  }

  it.live("one that is not there is told by its place, and one that refuses by its status", () =>
    Effect.gen(function* () {
      const answering = createServer((_, response) => void response.writeHead(404).end())
      yield* Effect.promise(() => once(answering.listen(0, "127.0.0.1"), "listening"))
      const place = `127.0.0.1:${(answering.address() as AddressInfo).port}`
      const failure = Effect.flatMap(open(remote(`http://${place}/mcp`)), (on) => on.status("failed"))
      assert.strictEqual((yield* failure).error, "it answered with HTTP 404 Not Found")
      answering.closeAllConnections()
      yield* Effect.promise(() => once(answering.close(), "close"))
      assert.strictEqual((yield* failure).error, `nobody listens at ${place}`)
    })
  )

  it.live("a server that was started anew refuses a call once and is connected to by the next", () =>
    Effect.gen(function* () {
      const web = yield* httpServer()
      const on = yield* open(remote(web.url))
      yield* on.status("ready")
      web.forget()
      assert.deepStrictEqual((yield* on.call("far.plain")).problem?.outcome, "failed")
      assert.strictEqual((yield* on.call("far.plain")).output?.output, "plain")
    })
  )

  it.live("a redirect within the server is followed; one to elsewhere is not, and no header goes there [ACP-215]", () =>
    Effect.gen(function* () {
      const here = yield* httpServer({ redirect: "/elsewhere" })
      const near = yield* open(remote(here.url, key))
      yield* near.status("ready")
      assert.strictEqual((yield* near.call("far.plain")).output?.output, "plain")

      const other = yield* httpServer()
      for (const status of [302, 307]) {
        const away = yield* httpServer({ redirect: other.url, status })
        const far = yield* open(remote(away.url, key))
        assert.include((yield* far.status("failed")).error, "Redirect")
        assert.deepStrictEqual(other.seen, [])
      }
    })
  )

  it.live("plain http to another machine is not tried [ACP-215]", () =>
    Effect.gen(function* () {
      const on = yield* open(remote("http://192.0.2.1/mcp", key))
      assert.include((yield* on.status("failed")).error, "no MCP server may be at this address")
      for (const url of ["https://example.com/mcp", "http://localhost:1/", "http://127.9.9.9/", "http://[::1]/"]) {
        assert.isTrue(overTls(new URL(url)), url)
      }
      for (const url of ["http://example.com/", "http://127.0.0.1.example.com/", "ftp://localhost/"]) {
        assert.isFalse(overTls(new URL(url)), url)
      }
      for (const [url, may] of [
        ["http://127.1.2.3:8080/mcp", true],
        ["https://[::1]/mcp", true],
        ["http://localhost/mcp", true],
        ["http://sub.localhost/mcp", false],
        ["http://[::ffff:192.0.2.1]/", false],
        ["https://example.com/", false]
      ] as const) {
        const answer = yield* Effect.promise(() => Promise.resolve(onThisMachine(new URL(url))))
        assert.strictEqual(answer, may, url)
      }
    })
  )
})

describe("the name of a session's server", () => {
  it.effect.prop(
    "fits whatever it was, no two are one, and one that fits stays [ACP-214]",
    [Schema.Array(Schema.String)],
    ([given]) =>
      Effect.sync(() => {
        const free = () => false
        const fitted = fittedNames(given, free)
        for (const name of fitted) assert.isTrue(isServerName(name), name)
        assert.strictEqual(new Set(fitted).size, given.length)
        assert.deepStrictEqual(fittedNames(fitted, free), fitted)
      })
  )

  it("is made to fit, and no two are one [ACP-214]", () => {
    const given = [
      "docs",
      "Docs",
      "My Server",
      "7up",
      "files",
      "",
      "é".repeat(40),
      "docs",
      `${"a".repeat(40)}`,
      "a".repeat(40)
    ]
    assert.deepStrictEqual(
      fittedNames(given, (name) => name === "docs_3"),
      [
        "docs",
        "docs_2",
        "my_server",
        "m_7up",
        "m_files",
        "m_",
        `m_${"_".repeat(30)}`,
        "docs_4",
        "a".repeat(32),
        `${"a".repeat(30)}_2`
      ]
    )
  })
})
