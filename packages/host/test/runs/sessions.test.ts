/** Sessions of agents (run-protocol 13). */
import { mkdirSync, realpathSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  agent,
  approval,
  at,
  call,
  ended,
  failure,
  folder,
  interrupted,
  openHost,
  respond,
  run,
  say,
  stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]

describe("agent/session", () => {
  it.live("the same creation id gives the same session, with other params a conflict [RUN-355]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const create = (more: object) =>
        on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace, creationId: "c-1", ...more })
      const all = yield* Effect.all([create({}), create({}), create({})], { concurrency: "unbounded" })
      assert.strictEqual(new Set(all.map(({ session }) => session.sessionId)).size, 1)
      assert.deepStrictEqual(all.map(({ duplicate }) => duplicate).sort(), [false, true, true])
      const again = yield* on.reopen()
      const later = yield* again.api["agent/session"]({
        agent: "helper",
        workspace: on.folder.workspace,
        creationId: "c-1"
      })
      assert.deepStrictEqual(later, { session: all[0]?.session, duplicate: true } as never)
      const error = yield* failure(
        again.api["agent/session"]({
          agent: "helper",
          workspace: on.folder.workspace,
          creationId: "c-1",
          name: "another"
        })
      )
      assert.deepStrictEqual([error["kind"], error["reason"], error["id"]], ["conflict", "creation_differs", "c-1"])
    })
  )

  it.live("the workspace is a real directory, neither the root nor the host's own [RUN-351]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const { root, stateDir, workspace } = on.folder
      const file = join(root, "file")
      writeFileSync(file, "")
      mkdirSync(join(stateDir, "inside"))
      const create = (workspace: string) => on.wire("agent/session", { agent: "helper", workspace })
      for (const bad of [file, join(root, "missing"), "relative", "/", stateDir, join(stateDir, "inside"), ""]) {
        const error = yield* failure(create(bad))
        assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", "workspace"], bad)
      }
      const link = join(root, "link")
      symlinkSync(workspace, link)
      assert.strictEqual(at(yield* create(link), "session", "workspace"), realpathSync(workspace))
      const inner = join(root, "state-link")
      symlinkSync(stateDir, inner)
      assert.strictEqual((yield* failure(create(inner)))["kind"], "invalid_params")
    })
  )

  it.live("a workspace that is gone later fails the call, never runs it elsewhere [RUN-351]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("shell.run", { command: "touch here" })], done],
        agent: { tools: ["shell.run"] }
      })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      renameSync(on.folder.workspace, `${on.folder.workspace}-moved`)
      yield* respond(on, pending.id, "once")
      const state = yield* ended(on)
      assert.strictEqual(state.status, "completed")
      const page = yield* on.api["event/read"]({ sessionId: on.sessionId, maxEvents: 1_000 })
      const end = page.events.find((event) => event["type"] === "tool-error")
      assert.include(["failed", "not_run"], at(end, "metadata", "outcome"))
    })
  )

  it.live("a model given for the session is its own, and has to be usable [RUN-353] [RUN-354]", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const on = yield* openHost({
        stateDir: place.stateDir,
        providers: [{ name: "live", api: "chat-completions", baseUrl: "http://127.0.0.1:1/v1" }],
        agents: [
          agent({ model: { connection: "live", model: "one" } }),
          { id: "bare", instructions: "", planning: true }
        ]
      })
      const create = (agent: string, model?: { readonly connection: string; readonly model: string }) =>
        on.api["agent/session"]({ agent, workspace: place.workspace, ...(model === undefined ? {} : { model }) })
      const none = yield* failure(create("bare"))
      assert.deepStrictEqual([none["kind"], none["reason"]], ["invalid_state", "no_model"])
      const missing = yield* failure(create("bare", { connection: "nobody", model: "m" }))
      assert.deepStrictEqual([missing["kind"], missing["what"], missing["id"]], ["not_found", "provider", "nobody"])
      yield* on.api["provider/set"]({
        name: "keyed",
        api: "chat-completions",
        baseUrl: "http://127.0.0.1:1/v1",
        credentials: { apiKey: "a-secret-key", storage: "memory" }
      })
      yield* on.api["connection/remove"]({ connection: "keyed" })
      const noKey = yield* failure(create("helper", { connection: "keyed", model: "m" }))
      assert.deepStrictEqual([noKey["kind"], noKey["provider"]], ["credentials_missing", "keyed"])
      const { session } = yield* create("helper", { connection: "live", model: "two" })
      const state = yield* on.api["session/state"]({ sessionId: session.sessionId })
      assert.deepStrictEqual(state.model, { connection: "live", model: "two" })
      assert.isFalse(state.scripted)
      const own = yield* create("helper")
      assert.deepStrictEqual((yield* on.api["session/state"]({ sessionId: own.session.sessionId })).model, {
        connection: "live",
        model: "one"
      })
    })
  )

  it.live("an agent whose own model is scripted keeps it, with a warning [RUN-354]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const created = yield* on.api["agent/session"]({
        agent: "helper",
        workspace: on.folder.workspace,
        model: { connection: "nobody", model: "m" }
      })
      assert.lengthOf(created.warnings ?? [], 1)
      assert.strictEqual((yield* run({ ...on, sessionId: created.session.sessionId })).status, "completed")
    })
  )

  it.live("an unknown agent is not found [RUN-352]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const error = yield* failure(on.api["agent/session"]({ agent: "nobody", workspace: on.folder.workspace }))
      assert.deepStrictEqual([error["kind"], error["what"], error["id"]], ["not_found", "agent", "nobody"])
    })
  )

  it.live("a session keeps what it was made with, whatever the config says later [RUN-330] [AGT-122]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("shell.run", { command: "true" })], done],
        agent: { tools: ["shell.run"], approvals: { mode: "never" } }
      })
      yield* on.close
      // The agent is gone from the configuration, its provider stays.
      const later = yield* Effect.orDie(openHost({ ...on.config, agents: [agent({ tools: ["shell.run"] })] }))
      const again = { ...on, ...later }
      const state = yield* run(again)
      assert.strictEqual(state.status, "completed")
    })
  )
})

describe("session/state", () => {
  it.live("it tells identity, phases, outcome, usage and what may come next [RUN-360] [RUN-361]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[call("ask_user", { question: "Which?" })], done] })
      const read = on.api["session/state"]({ sessionId: on.sessionId })
      const idle = yield* read
      assert.deepStrictEqual(
        [idle.state, idle.phases, idle.turn, idle.outcome, idle.canAcceptMessage, idle.timers, idle.capabilities],
        ["idle", [], null, undefined, true, null, { steering: false, timers: false }]
      )
      assert.deepStrictEqual([idle.scripted, idle.sandbox], [true, { kind: "none", proved: false }])
      yield* start(on)
      const waiting = yield* interrupted(on)
      const now = yield* read
      assert.deepStrictEqual([now.state, now.canAcceptMessage, now.turn?.submissionId, now.interactions], [
        "waiting",
        false,
        "m-1",
        waiting.interruptions
      ] as never)
      assert.deepStrictEqual(
        now.phases.map(({ agent, phase, sessionId }) => [agent, phase, sessionId]),
        [["helper", "question", on.sessionId]]
      )
      assert.isAtMost(
        Math.abs(Date.parse(now.phases[0]?.since ?? "") - Date.parse(waiting.interruptions[0]?.createdAt ?? "")),
        1_000
      )
      yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      const after = yield* read
      assert.deepStrictEqual([after.state, after.outcome], [
        "idle",
        { status: "cancelled", finalOutput: null, submissionId: "m-1" }
      ] as never)
    })
  )

  it.live("an unknown session is not found, whatever is asked of it [RUN-366]", () =>
    Effect.gen(function* () {
      const on = yield* stage()
      const sessionId = "ses_nobody"
      for (const call of [
        on.api["session/state"]({ sessionId }),
        on.api["session/attach"]({ sessionId }),
        on.api["agent/close"]({ sessionId }),
        on.api["session/revoke"]({ sessionId, qualifiedName: "shell.run" }),
        on.api["event/read"]({ sessionId })
      ] as ReadonlyArray<ReturnType<(typeof on.api)["session/state"]>>) {
        const error = yield* failure(call)
        assert.deepStrictEqual([error["kind"], error["what"], error["id"]], ["not_found", "session", sessionId])
      }
    })
  )
})

describe("session/list", () => {
  it.live("newest activity first, in pages that miss nothing, open ones unless asked [RUN-357] [RUN-021]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const ids = [on.sessionId]
      for (let n = 0; n < 6; n++) {
        const { session } = yield* on.api["agent/session"]({
          agent: "helper",
          workspace: on.folder.workspace,
          name: `session ${n}`
        })
        ids.push(session.sessionId)
      }
      yield* run(on)
      const whole = yield* on.api["session/list"]({})
      assert.isUndefined(whole.next)
      assert.strictEqual(whole.sessions[0]?.session.sessionId, on.sessionId)
      assert.deepStrictEqual(
        [whole.sessions[0]?.state, whole.sessions[0]?.submissionId, whole.sessions[1]?.submissionId],
        ["idle", "m-1", undefined]
      )
      const times = whole.sessions.map(({ lastActivityAt }) => lastActivityAt)
      assert.deepStrictEqual(times, times.toSorted().toReversed())
      const paged: Array<string> = []
      let after: string | undefined
      do {
        const page: typeof whole = yield* on.api["session/list"]({
          limit: 2,
          ...(after === undefined ? {} : { after })
        })
        paged.push(...page.sessions.map(({ session }) => session.sessionId))
        after = page.next
      } while (after !== undefined)
      assert.deepStrictEqual(
        paged,
        whole.sessions.map(({ session }) => session.sessionId)
      )
      assert.sameMembers(paged, ids)
      yield* on.api["agent/close"]({ sessionId: ids[1] ?? "" })
      assert.lengthOf((yield* on.api["session/list"]({})).sessions, 6)
      const all = yield* on.api["session/list"]({ includeClosed: true })
      assert.strictEqual(all.sessions.find(({ session }) => session.sessionId === ids[1])?.state, "closed")
      assert.lengthOf((yield* on.api["session/list"]({ agent: "nobody" })).sessions, 0)
      for (const after of ["nonsense", "W10", Buffer.from('["x",1]').toString("base64url")]) {
        const error = yield* failure(on.api["session/list"]({ after }))
        assert.deepStrictEqual([error["kind"], error["path"]], ["invalid_params", "after"])
      }
      for (const limit of [0, 201, 1.5]) {
        assert.strictEqual((yield* failure(on.wire("session/list", { limit })))["kind"], "invalid_params")
      }
    })
  )

  it.live("a page is at most 512 KiB [RUN-021]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      // Names of the longest kind: 200 chars of 4 bytes, written as they are.
      const name = "\ud83d\ude80".repeat(200)
      for (let n = 0; n < 20; n++) {
        yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace, name })
      }
      const page = yield* on.wire("session/list", { limit: 200 })
      assert.isAtMost(Buffer.byteLength(JSON.stringify(page)), 524_288)
      assert.strictEqual(at(page, "sessions", 0, "name"), name)
    })
  )
})
