import { mkdtempSync, realpathSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type AcpConnection, agentMethods, AgentGone, AgentRefused } from "../../src/agent/AcpConnection.ts"
import { open, type OpeningOptions, type Reopen } from "../../src/agent/Opening.ts"

const cwd = realpathSync(tmpdir())

/** What an agent answers: a result, an error code, `gone`, or nothing. */
type Reply = { readonly result: unknown } | { readonly code: number } | "gone" | "silence"
type Script = Readonly<Record<string, Reply | ((params: Readonly<Record<string, unknown>>) => Reply)>>

const initialized = (capabilities: object | null = {}): Reply => ({
  result: { protocolVersion: 1, agentInfo: { name: "otter", version: "2.3" }, agentCapabilities: capabilities }
})

const openWith = (script: Script, options: Partial<OpeningOptions> = {}) => {
  const calls: Array<readonly [string, unknown]> = []
  const connection: AcpConnection = {
    request: (method, params) => {
      calls.push([method, params])
      const entry = script[method] ?? { code: -32601 }
      const reply = typeof entry === "function" ? entry(params as Readonly<Record<string, unknown>>) : entry
      if (reply === "silence") return Effect.never
      if (reply === "gone") return Effect.fail(new AgentGone())
      return "code" in reply
        ? Effect.fail(new AgentRefused({ code: reply.code, message: "conversation not found" }))
        : Effect.succeed(reply.result)
    },
    notify: () => undefined,
    closed: Effect.never
  }
  const opening = open(connection, {
    methods: agentMethods,
    cwd,
    version: "1.0.0",
    auth: undefined,
    modelOption: undefined,
    resumeRef: undefined,
    reopen: "auto",
    notFoundCodes: [-32002],
    listIsComplete: false,
    limitMs: 60_000,
    ...options
  })
  return Effect.map(opening, ({ info, outcome }) => ({
    info,
    outcome,
    calls,
    methods: calls.map(([method]) => method)
  }))
}

const reopened = (capabilities: object, reply: Reply, more: Script = {}, options: Partial<OpeningOptions> = {}) =>
  openWith(
    { initialize: initialized(capabilities), "session/resume": reply, "session/load": reply, ...more },
    { resumeRef: "c-81", ...options }
  )

const canResume = { sessionCapabilities: { resume: {} } }
const canLoad = { loadSession: true }
const canBoth = { ...canLoad, sessionCapabilities: { resume: {}, list: {} } }
const canList = { sessionCapabilities: { resume: {}, list: {} } }
const done: Reply = { result: null }

describe("a new conversation", () => {
  it.effect("is opened with version 1 and nothing offered [SEAT-092]", () =>
    Effect.gen(function* () {
      const { calls, info, outcome } = yield* openWith({
        initialize: initialized(),
        "session/new": { result: { sessionId: "c-1" } }
      })
      assert.deepStrictEqual(calls, [
        [
          "initialize",
          { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: "tackroom-seat", version: "1.0.0" } }
        ],
        ["session/new", { cwd, mcpServers: [] }]
      ])
      assert.deepStrictEqual(outcome, { _tag: "Opened", nativeRef: "c-1", resumed: false })
      assert.deepStrictEqual(info, { name: "otter", version: "2.3" })
    })
  )

  it.effect("fails with an agent of another version, an error, a silence or no name [SEAT-092, SEAT-222]", () =>
    Effect.gen(function* () {
      const fine = { initialize: initialized() }
      const scripts: ReadonlyArray<Script> = [
        { initialize: { result: { protocolVersion: 2 } } },
        { initialize: { result: null } },
        { initialize: { code: -32603 } },
        { initialize: "gone" },
        { ...fine, "session/new": { code: -32000 } },
        { ...fine, "session/new": { result: { sessionId: "" } } },
        { ...fine, "session/new": { result: { sessionId: "c".repeat(1_025) } } },
        { ...fine, "session/new": { result: {} } }
      ]
      for (const script of scripts) {
        const { outcome } = yield* openWith(script)
        assert.strictEqual(outcome._tag, "Failed", JSON.stringify(script))
      }
    })
  )

  it.effect("has a limit for each step [SEAT-222]", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(openWith({ initialize: initialized(), "session/new": "silence" }))
      yield* TestClock.adjust(60_000)
      const { outcome } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(outcome, { _tag: "Failed", why: "session/new had no answer after 60 s" })
    })
  )

  it.effect("is authenticated first, and given its model before it counts as open [SEAT-097]", () =>
    Effect.gen(function* () {
      const script: Script = {
        initialize: initialized(),
        authenticate: done,
        "session/new": { result: { sessionId: "c-1" } },
        "session/set_config_option": { result: {} }
      }
      const options = { auth: "key", modelOption: { configId: "model", value: "large" } }
      const opened = yield* openWith(script, options)
      assert.deepStrictEqual(opened.calls.slice(1), [
        ["authenticate", { methodId: "key" }],
        ["session/new", { cwd, mcpServers: [] }],
        ["session/set_config_option", { sessionId: "c-1", configId: "model", value: "large" }]
      ])
      const refused = yield* openWith({ ...script, "session/set_config_option": { code: -32602 } }, options)
      assert.strictEqual(refused.outcome._tag, "Failed")
    })
  )
})

describe("reopening", () => {
  it.effect(
    "takes resume where it is offered, else load, else nothing; a null result is success [SEAT-223, SEAT-224]",
    () =>
      Effect.gen(function* () {
        const ways: ReadonlyArray<readonly [object, Reopen, string | undefined]> = [
          [canResume, "auto", "session/resume"],
          [canLoad, "auto", "session/load"],
          [canBoth, "auto", "session/resume"],
          [canBoth, "load", "session/load"],
          [canLoad, "resume", undefined],
          [{ loadSession: "yes", sessionCapabilities: { resume: null } }, "auto", undefined]
        ]
        for (const [capabilities, reopen, method] of ways) {
          for (const result of [null, {}, { sessionId: "c-81" }]) {
            const { calls, methods, outcome } = yield* reopened(capabilities, { result }, {}, { reopen })
            assert.notInclude(methods, "session/new")
            if (method === undefined) assert.strictEqual(outcome._tag, "Unconfirmed")
            else {
              assert.deepStrictEqual(calls[1], [method, { sessionId: "c-81", cwd, mcpServers: [] }])
              assert.deepStrictEqual(outcome, { _tag: "Opened", nativeRef: "c-81", resumed: true })
            }
          }
        }
      })
  )

  it.effect("tells another conversation from the one that was named [SEAT-225]", () =>
    Effect.gen(function* () {
      const { outcome } = yield* reopened(canResume, { result: { sessionId: "c-99" } })
      assert.deepStrictEqual(outcome, { _tag: "Other", nativeRef: "c-99" })
    })
  )

  it.effect("is missing by the agent's own code alone [SEAT-226, SEAT-227]", () =>
    Effect.gen(function* () {
      const notFound = yield* reopened(canResume, { code: -32002 })
      assert.strictEqual(notFound.outcome._tag, "Missing")
      for (const reply of [{ code: -32602 }, { code: -32603 }, "gone"] as const) {
        const { outcome } = yield* reopened(canList, reply, { "session/list": { result: { sessions: [] } } })
        assert.strictEqual(outcome._tag, "Unconfirmed", JSON.stringify(reply))
      }
      const defined = yield* reopened(canResume, { code: -32602 }, {}, { notFoundCodes: [-32602] })
      assert.strictEqual(defined.outcome._tag, "Missing")
      const other = yield* reopened(canResume, { code: -32002 }, {}, { notFoundCodes: [-32602] })
      assert.strictEqual(other.outcome._tag, "Unconfirmed")
    })
  )

  it.effect("is not confirmed while nobody answers [SEAT-227]", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(reopened(canResume, "silence"))
      yield* TestClock.adjust(60_000)
      const { outcome } = yield* Fiber.join(fiber)
      assert.strictEqual(outcome._tag, "Unconfirmed")
    })
  )

  const pages = (...all: ReadonlyArray<Reply>) => {
    let page = 0
    const cursors: Array<unknown> = []
    const script: Script = {
      "session/list": (params) => {
        cursors.push(params["cursor"])
        return all[page++] ?? "silence"
      }
    }
    return { script, cursors }
  }
  const page = (ids: ReadonlyArray<string>, nextCursor?: string | null): Reply => ({
    result: {
      sessions: ids.map((sessionId) => ({ sessionId, cwd })),
      ...(nextCursor === undefined ? {} : { nextCursor })
    }
  })

  it.effect(
    "of a conversation that the agent lists is not confirmed, over every cursor, the empty one included [SEAT-226, SEAT-228]",
    () =>
      Effect.gen(function* () {
        const { cursors, script } = pages(page(["c-70"], ""), page(["c-71"], "x"), page(["c-81"], null))
        const { outcome } = yield* reopened(canList, { code: -32002 }, script)
        assert.strictEqual(outcome._tag, "Unconfirmed")
        assert.deepStrictEqual(cursors, [undefined, "", "x"])
      })
  )

  it.effect("takes the agent's word where the list does not name it, or decides nothing [SEAT-226, SEAT-228]", () =>
    Effect.gen(function* () {
      const unreadable: ReadonlyArray<ReadonlyArray<Reply>> = [
        [page(["c-70"], null)],
        [page(["c-70"], "a"), page([], "a")],
        [page(["c-70"], "a"), { code: -32603 }],
        [{ result: { sessions: [{ id: "c-81" }] } }],
        Array.from({ length: 120 }, (_, index) => page([], `p${index}`))
      ]
      for (const replies of unreadable) {
        const { cursors, script } = pages(...replies)
        const { outcome } = yield* reopened(canList, { code: -32002 }, script)
        assert.strictEqual(outcome._tag, "Missing")
        assert.isAtMost(cursors.length, 100)
      }
    })
  )

  it.effect("by a complete list is missing only when the whole list was read without it [SEAT-227, SEAT-228]", () =>
    Effect.gen(function* () {
      const complete = { listIsComplete: true }
      const cases = [
        [[page(["c-70"], "a"), page(["c-71"])], "Missing"],
        [[page(["c-70"], "a"), { code: -32603 }], "Unconfirmed"],
        [[page(["c-81"])], "Unconfirmed"]
      ] as const
      for (const [replies, expected] of cases) {
        const { outcome } = yield* reopened(canList, { code: -32603 }, pages(...replies).script, complete)
        assert.strictEqual(outcome._tag, expected)
      }
      const slow = yield* Effect.forkChild(reopened(canList, { code: -32603 }, pages(page([], "a")).script, complete))
      yield* TestClock.adjust(10_000)
      assert.strictEqual((yield* Fiber.join(slow)).outcome._tag, "Unconfirmed")
    })
  )

  it.effect("in another working folder is not confirmed, whatever the code [SEAT-230]", () =>
    Effect.gen(function* () {
      const elsewhere = mkdtempSync(join(cwd, "elsewhere-"))
      const linked = join(elsewhere, "link")
      symlinkSync(cwd, linked)
      const row = (folder: string): Reply => ({ result: { sessions: [{ sessionId: "c-81", cwd: folder }] } })
      const other = yield* reopened(canList, { code: -32002 }, pages(row(elsewhere)).script)
      assert.deepInclude(other.outcome, { _tag: "Unconfirmed" })
      assert.include(JSON.stringify(other.outcome), "another working folder")
      const same = yield* reopened(canList, { code: -32002 }, pages(row(linked)).script)
      assert.notInclude(JSON.stringify(same.outcome), "another working folder")
    })
  )
})
