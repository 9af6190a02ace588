/** Model providers and their keys (run-protocol 9). */
import { assert, describe, it } from "@effect/vitest"
import type { HostConfig } from "@tackroom/protocol/run"
import { Effect } from "effect"
import { bare, sse } from "../models/Providers.ts"
import { wires } from "../models/Wires.ts"
import { agent, at, ended, failed, failure, folder, openHost, type Opened, type Stage } from "../runs/Kit.ts"

const canary = "canary-9c1f7d-never-shown"
const local = "http://127.0.0.1:9/v1"

const open = (more: Partial<HostConfig> = {}) =>
  Effect.gen(function* () {
    const place = yield* folder
    const config: HostConfig = { stateDir: place.stateDir, ...more }
    const on = yield* Effect.orDie(openHost(config))
    return { ...on, place, config }
  })

const chat = { name: "local", api: "chat-completions", base_url: local }
const key = (api_key: string, storage = "memory") => ({ credentials: { api_key, storage } })

const set = (on: Opened, params: object) => on.wire("provider/set", params)

describe("provider/set", () => {
  it.live("a provider is created once and means the same for ever [RUN-220] [RUN-221]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const row = { name: "local", api: "chat-completions", base_url: local, has_credentials: false, storage: null }
      assert.deepStrictEqual(yield* set(on, chat), { provider: row, created: true })
      assert.deepStrictEqual(yield* set(on, { ...chat, base_url: "HTTP://127.0.0.1:9/v1/" }), {
        provider: row,
        created: false
      })
      assert.deepStrictEqual(yield* set(on, { name: "local", api: "chat-completions" }), {
        provider: row,
        created: false
      })
      for (const other of [
        { ...chat, api: "responses" },
        { ...chat, base_url: "http://127.0.0.1:9/v2" }
      ]) {
        const error = yield* failure(set(on, other))
        assert.deepStrictEqual(
          [error["kind"], error["reason"], error["id"]],
          ["conflict", "provider_immutable", "local"]
        )
      }
      yield* on.close
      const again = yield* Effect.orDie(openHost(on.config))
      assert.deepStrictEqual(yield* again.wire("provider/list"), { providers: [{ ...row, scripted: false }] })
    })
  )

  it.live("a chat-completions provider needs its endpoint, the vendors' have theirs [RUN-222]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const error = yield* failure(set(on, { name: "x", api: "chat-completions" }))
      assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", "base_url"])
      for (const api of ["responses", "anthropic"]) {
        assert.strictEqual(at(yield* set(on, { name: api, api }), "provider", "base_url"), null)
      }
      for (const base_url of ["ftp://x/", "http://u:p@x/", "http://x/?a=1", "http://x/#a", "nonsense"]) {
        assert.strictEqual((yield* failure(set(on, { ...chat, name: "y", base_url })))["path"], "base_url", base_url)
      }
      for (const name of ["", "-a", "a b", "x".repeat(65)]) {
        assert.strictEqual((yield* failure(set(on, { ...chat, name })))["path"], "name", name)
      }
    })
  )

  it.live("a key that no header can carry is refused when it is set, and nothing is kept [RUN-061]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const base_url = "https://models.test/v1"
      for (const bad of ["ключ", "sk-\ud800"]) {
        const error = yield* failure(set(on, { ...chat, base_url, ...key(bad) }))
        assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", "credentials.api_key"], bad)
      }
      assert.deepStrictEqual(yield* on.wire("provider/list"), { providers: [] })
    })
  )

  it.live("a key is not sent over plain http but to loopback [RUN-223]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      for (const base_url of ["http://10.0.0.1/v1", "http://models.test/v1", "http://127.evil.test/"]) {
        const error = yield* failure(set(on, { ...chat, base_url, ...key(canary) }))
        assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", "base_url"], base_url)
      }
      assert.deepStrictEqual(yield* on.wire("provider/list"), { providers: [] })
      for (const [index, base_url] of ["http://localhost:9/", "http://[::1]:9/", "https://models.test/"].entries()) {
        assert.isTrue(at(yield* set(on, { ...chat, name: `n${index}`, base_url, ...key(canary) }), "created"))
      }
    })
  )

  it.live("the next request uses a replaced key, no session changes [RUN-224]", () =>
    Effect.gen(function* () {
      const server = yield* bare((response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(sse(wires["chat-completions"].text("Done.", null)))
      })
      const on = yield* open({ agents: [agent({ model: { connection: "local", model: "m" } })] })
      const provider = { ...chat, base_url: `${server.url}/v1` }
      yield* set(on, { ...provider, ...key("first-secret-key") })
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.place.workspace })
      const stage = { ...on, sessionId: session.sessionId } as unknown as Stage
      const go = (submissionId: string) =>
        Effect.andThen(
          on.api["run/start"]({ sessionId: session.sessionId, submissionId, text: "Go" }),
          ended(stage, submissionId)
        )
      yield* go("m-1")
      yield* set(on, { ...provider, ...key("second-secret-key") })
      yield* go("m-2")
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers.authorization),
        ["Bearer first-secret-key", "Bearer second-secret-key"]
      )
    })
  )

  it.live("a keychain that is not there is unsupported, and nothing changes [RUN-226]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      for (const call of [
        set(on, { ...chat, ...key(canary, "secure") }),
        on.wire("connection/set", { connection: "openai", api_key: canary }),
        on.wire("connection/set", { connection: "openai", api_key: canary, storage: "secure" })
      ]) {
        const error = yield* failure(call)
        assert.deepStrictEqual([error["kind"], error["feature"]], ["unsupported", "secure_storage"])
        assert.match(String(error["hint"]), /memory/)
      }
      assert.deepStrictEqual(yield* on.wire("provider/list"), { providers: [] })
    })
  )

  it.live(
    "a provider that had a key is never used without one; memory keys are gone after a restart [RUN-227] [RUN-228] [RUN-230]",
    () =>
      Effect.gen(function* () {
        const on = yield* open({ agents: [agent({ model: { connection: "local", model: "m" } })] })
        yield* set(on, { ...chat, ...key(canary) })
        const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.place.workspace })
        const begin = (host: Opened, submissionId: string) =>
          host.api["run/start"]({ sessionId: session.sessionId, submissionId, text: "Go" })
        assert.deepStrictEqual(yield* on.wire("connection/remove", { connection: "local" }), { removed: true })
        assert.deepStrictEqual(yield* on.wire("connection/remove", { connection: "local" }), { removed: false })
        const removed = yield* failure(begin(on, "m-1"))
        assert.deepStrictEqual(
          [removed["kind"], removed["provider"], removed["receipt"]],
          ["credentials_missing", "local", "not_accepted"]
        )
        yield* set(on, { ...chat, ...key(canary) })
        yield* on.close
        const again = yield* Effect.orDie(openHost(on.config))
        assert.strictEqual((yield* failure(begin(again, "m-2")))["kind"], "credentials_missing")
        assert.strictEqual(
          (yield* failure(again.wire("connection/remove", { connection: "nobody" })))["kind"],
          "not_found"
        )
      })
  )

  it.live("connection/set makes the vendors' providers, and knows no other name [RUN-229]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      const connect = (connection: string) =>
        on.wire("connection/set", { connection, api_key: canary, storage: "memory" })
      assert.deepStrictEqual(yield* connect("openai"), {
        connection: { name: "openai", api: "responses", has_credentials: true, storage: "memory" },
        created: true
      })
      assert.strictEqual(at(yield* connect("anthropic"), "connection", "api"), "anthropic")
      assert.strictEqual(at(yield* connect("openai"), "created"), false)
      const error = yield* failure(connect("mine"))
      assert.deepStrictEqual([error["kind"], error["what"], error["hint"]], ["not_found", "provider", "provider/set"])
      assert.lengthOf(at(yield* on.wire("connection/list"), "connections") as ReadonlyArray<unknown>, 2)
    })
  )

  it.live("at most 64 providers, for good [RUN-231]", () =>
    Effect.gen(function* () {
      const on = yield* open()
      for (let n = 0; n < 64; n++) yield* set(on, { ...chat, name: `p${n}` })
      const error = yield* failure(set(on, { ...chat, name: "one-more" }))
      assert.deepStrictEqual([error["kind"], error["limit"], error["max"]], ["limit_exceeded", "providers", 64])
      assert.isFalse(at(yield* set(on, { ...chat, name: "p0" }), "created"))
    })
  )

  it.live("no answer, event, row or file shows a key or a part of it [RUN-225] [RUN-174] [RT-321]", () =>
    Effect.gen(function* () {
      const wire = wires["chat-completions"]
      const server = yield* bare((response) => {
        if (server.requests.length === 4) {
          response.writeHead(400, { "content-type": "application/json" })
          return void response.end(JSON.stringify({ error: { message: `bad key ${canary}` } }))
        }
        response.writeHead(200, { "content-type": "text/event-stream" })
        const leak = JSON.stringify({ path: `${canary}.txt`, content: `the key is ${canary}, again: ${canary}` })
        const events =
          server.requests.length === 1
            ? wire.call("c1", "files__write", leak)
            : server.requests.length === 2
              ? wire.call("c2", "shell__run", JSON.stringify({ command: `echo ${canary}; echo ${canary} >&2` }))
              : [...wire.begun(canary.slice(0, 9)), ...wire.text(`${canary.slice(9)} was the key.`, null)]
        response.end(sse(events))
      })
      const logged: Array<string> = []
      const place = yield* folder
      const config: HostConfig = {
        stateDir: place.stateDir,
        providers: [{ name: "local", api: "chat-completions", baseUrl: `${server.url}/v1` }],
        agents: [
          agent({
            model: { connection: "local", model: "m" },
            tools: ["files.write", "shell.run"],
            approvals: { mode: "only", tools: ["files.write"] }
          })
        ]
      }
      const on = yield* Effect.orDie(openHost(config, { onSecret: ({ name }) => logged.push(name) }))
      // Set after the start.
      const answers: Array<unknown> = [
        yield* set(on, { name: "local", api: "chat-completions", ...key(canary) }),
        yield* on.wire("provider/list"),
        yield* on.wire("connection/list"),
        yield* on.wire("host/info")
      ]
      assert.deepStrictEqual(logged, ["local"])
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: place.workspace })
      const { sessionId } = session
      const start = (submission_id: string) =>
        on.wire("run/start", { session_id: sessionId, submission_id, text: `my key is ${canary}` })
      answers.push(yield* start("m-1"))
      const stage = { ...on, sessionId } as unknown as Stage
      const waiting = yield* Effect.gen(function* () {
        while (true) {
          const state = yield* on.api["run/wait"]({ sessionId, waitMs: 5_000 })
          if (state.status === "interrupted") return state
        }
      })
      answers.push(waiting)
      yield* on.api["run/respond"]({
        sessionId,
        interactionId: waiting.interruptions[0]?.id ?? "",
        decision: "deny",
        reason: `because of ${canary}`
      })
      const state = yield* ended(stage)
      assert.strictEqual(state.status, "completed")
      assert.match(state.finalOutput ?? "", /\[redacted:local\] was the key/)
      yield* start("m-2")
      const second = yield* ended(stage, "m-2")
      failed(second, "model_error")
      answers.push(
        state,
        second,
        yield* on.api["run/wait"]({ sessionId, submissionId: "m-1", cursors: {}, maxEvents: 1_000 }),
        yield* on.api["session/state"]({ sessionId }),
        yield* on.api["event/read"]({ sessionId, maxEvents: 1_000 })
      )
      assert.notInclude(JSON.stringify(answers), canary)
      yield* on.close
      const kept = place.kept()
      assert.include(kept, "[redacted:local]")
      for (const part of [canary, canary.slice(0, 16)]) assert.notInclude(kept, part)
    })
  )
})
