/** Who decides about a call: modes, grants, bindings (run-protocol 21). */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answer,
  approval,
  at,
  call,
  ended,
  type Event,
  failure,
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

const shell = (command: string) => call("shell.run", { command })
const read = call("files.list", {})
const done = [say("Done.")]
const tools = ["shell.run", "files.list"]

const resolved = (events: ReadonlyArray<Event>) =>
  ofType(events, "permission-resolved").map((event) => [event["tool"], event["decision"], event["origin"]])

const autoApproved = (on: Stage) =>
  Effect.map(on.api["run/wait"]({ sessionId: on.sessionId, cursors: {}, maxEvents: 1_000 }), (state) =>
    (state.events ?? []).flatMap(({ summary }) => (summary?.type === "auto_approved" ? [summary.tool] : []))
  )

describe("approvals", () => {
  it.live("always: a read needs no approval and leaves no record, everything else asks [AGT-110]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[read, shell("true")], done], agent: { tools } })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      assert.deepStrictEqual(
        [pending.tool, pending.qualifiedName, pending.category, pending.reason, pending.decisions],
        ["shell__run", "shell.run", "exec", "policy", ["once", "session", "deny"]]
      )
      yield* respond(on, pending.id, "once")
      assert.strictEqual((yield* ended(on)).status, "completed")
      const events = yield* journal(on)
      const [request] = ofType(events, "permission-request")
      assert.lengthOf(ofType(events, "permission-request"), 1)
      assert.deepStrictEqual(
        (at(request, "options") as ReadonlyArray<{ readonly id: string; readonly kind: string }>).map(
          ({ id, kind }) => [id, kind]
        ),
        [
          ["once", "allow_once"],
          ["session", "allow_always"],
          ["deny", "reject_once"]
        ]
      )
      assert.deepStrictEqual(resolved(events), [["shell__run", "allow_once", "person"]])
    })
  )

  it.live(
    "never: the host approves every call once, reads too, before its dispatch [AGT-110] [AGT-111] [RUN-180]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [[read, shell("true"), call("plan.update", { items: [] })], done],
          agent: { tools, approvals: { mode: "never" } }
        })
        assert.strictEqual((yield* run(on)).status, "completed")
        const events = yield* journal(on)
        assert.deepStrictEqual(resolved(events), [
          ["files__list", "allow_once", "app_policy"],
          ["shell__run", "allow_once", "app_policy"]
        ])
        assert.deepStrictEqual(yield* autoApproved(on), ["files__list", "shell__run"])
        for (const approved of ofType(events, "permission-resolved")) {
          const dispatch = ofType(events, "tool-status").find(
            (event) => event["tool_call_id"] === approved["tool_call_id"] && event["status"] === "running"
          )
          assert.isAbove(dispatch?.seq ?? 0, approved.seq)
          // Asked and decided in one transaction: nothing stands between.
          assert.strictEqual(events[approved.seq - 2]?.type, "permission-request")
        }
      })
  )

  it.live("only: exactly the listed tools ask, whatever their category [AGT-110] [AGT-111]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[shell("true"), read], done],
        agent: { tools, approvals: { mode: "only", tools: ["files.list"] } }
      })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      assert.strictEqual(pending.tool, "files__list")
      yield* respond(on, pending.id, "once")
      yield* ended(on)
      assert.deepStrictEqual(resolved(yield* journal(on)), [
        ["shell__run", "allow_once", "app_policy"],
        ["files__list", "allow_once", "person"]
      ])
    })
  )

  it.live("the host answers no question and makes no grant [AGT-113]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[shell("true"), call("ask_user", { question: "Sure?" })], done],
        agent: { tools, approvals: { mode: "never" } }
      })
      yield* start(on)
      const state = yield* interrupted(on)
      const [pending] = state.interruptions
      assert.strictEqual(pending?.kind, "question")
      assert.deepStrictEqual((yield* on.api["session/state"]({ sessionId: on.sessionId })).grants, [])
      yield* answer(on, pending?.id ?? "", "yes")
      assert.strictEqual((yield* ended(on)).status, "completed")
    })
  )

  it.live("a denied call is not run, and no client can speak for the host [AGT-113] [RUN-444] [RUN-447]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[shell("touch it")], done], agent: { tools } })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      const given = { session_id: on.sessionId, interaction_id: pending.id, decision: "deny", origin: "app_policy" }
      assert.deepStrictEqual(yield* on.wire("run/respond", given), { already_resolved: false, response: "deny" })
      assert.strictEqual((yield* ended(on)).status, "completed")
      assert.deepStrictEqual(resolved(yield* journal(on)), [["shell__run", "deny", "person"]])
      assert.isFalse(existsSync(join(on.folder.workspace, "it")))
    })
  )

  it.live(
    "a grant covers the tool for the session, also after a restart, until it is revoked [AGT-120] [RUN-365] [RUN-446]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [[shell("echo 1"), shell("echo 2")], done, [shell("echo 3")], done, [shell("echo 4")], done],
          agent: { tools }
        })
        yield* start(on)
        const waiting = yield* interrupted(on, "m-1", 2)
        const pending = approval(waiting)
        assert.deepStrictEqual(yield* respond(on, pending.id, "session"), {
          alreadyResolved: false,
          response: "session"
        })
        assert.strictEqual((yield* ended(on)).status, "completed")
        assert.deepStrictEqual(resolved(yield* journal(on)), [
          ["shell__run", "allow_always", "person"],
          ["shell__run", "allow_once", "grant"]
        ])
        const { grants } = yield* on.api["session/state"]({ sessionId: on.sessionId })
        assert.deepStrictEqual(
          grants.map(({ interactionId, qualifiedName, sessionId, tool }) => [
            interactionId,
            qualifiedName,
            sessionId,
            tool
          ]),
          [[pending.id, "shell.run", on.sessionId, "shell__run"]]
        )

        const again = yield* on.reopen()
        assert.strictEqual((yield* run(again, "m-2")).status, "completed")
        assert.deepStrictEqual(resolved(yield* journal(again)).slice(2), [["shell__run", "allow_once", "grant"]])

        const revoke = { sessionId: on.sessionId, qualifiedName: "shell.run" }
        assert.deepStrictEqual(yield* again.api["session/revoke"](revoke), { revoked: true })
        assert.deepStrictEqual(yield* again.api["session/revoke"](revoke), { revoked: false })
        yield* start(again, "m-3")
        assert.strictEqual(approval(yield* interrupted(again, "m-3")).tool, "shell__run")
      })
  )

  it.live("a grant of one session holds for no other [AGT-120]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[shell("true")], done], agent: { tools } })
      yield* start(on)
      yield* respond(on, approval(yield* interrupted(on)).id, "session")
      yield* ended(on)
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      const other = { ...on, sessionId: session.sessionId }
      yield* start(other)
      assert.strictEqual(approval(yield* interrupted(other)).sessionId, session.sessionId)
    })
  )

  const lowered = { limits: { shellTimeoutSMax: 60 } }

  it.live("never: a changed tool asks a person once more per call, and says so [AGT-121] [AGT-122]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[shell("true")], done, [shell("true"), read], done],
        agent: { tools, approvals: { mode: "never" } }
      })
      yield* run(on)
      yield* on.close
      const again: Stage = { ...on, ...(yield* Effect.orDie(openHost({ ...on.config, ...lowered }))) }
      yield* start(again, "m-2")
      const pending = approval(yield* interrupted(again, "m-2"))
      assert.deepStrictEqual(
        [pending.tool, pending.reason, pending.decisions],
        ["shell__run", "binding_changed", ["once", "deny"]]
      )
      const refused = yield* failure(respond(again, pending.id, "session"))
      assert.deepStrictEqual([refused["kind"], refused["path"]], ["invalid_params", "decision"])
      yield* respond(again, pending.id, "once")
      assert.strictEqual((yield* ended(again, "m-2")).status, "completed")
      const events = yield* journal(again)
      assert.sameDeepMembers(resolved(events), [
        ["shell__run", "allow_once", "app_policy"],
        ["files__list", "allow_once", "app_policy"],
        ["shell__run", "allow_once", "person"]
      ])
      const notices = ofType(events, "harness-notice").filter((event) => event["code"] === "binding_changed")
      assert.lengthOf(notices, 1)
    })
  )

  it.live("always: a changed tool ends its grant, and may be granted anew as it is now [AGT-120] [AGT-121]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[shell("true")], done, [shell("true")], done, [shell("true")], done],
        agent: { tools }
      })
      yield* start(on)
      yield* respond(on, approval(yield* interrupted(on)).id, "session")
      yield* ended(on)
      yield* on.close
      const again: Stage = { ...on, ...(yield* Effect.orDie(openHost({ ...on.config, ...lowered }))) }
      yield* start(again, "m-2")
      const pending = approval(yield* interrupted(again, "m-2"))
      assert.deepStrictEqual([pending.reason, pending.decisions], ["policy", ["once", "session", "deny"]])
      yield* respond(again, pending.id, "session")
      yield* ended(again, "m-2")
      assert.strictEqual((yield* run(again, "m-3")).status, "completed")
      assert.deepStrictEqual(resolved(yield* journal(again)).slice(1), [
        ["shell__run", "allow_always", "person"],
        ["shell__run", "allow_once", "grant"]
      ])
    })
  )

  it.live("a person sees long arguments whole, as an artifact that survives a restart [AGT-116] [RUN-200]", () =>
    Effect.gen(function* () {
      const content = "0123456789".repeat(1_000)
      const on = yield* stage({
        scenario: [[call("files.write", { path: "long.txt", content })], done],
        agent: { tools: ["files.write"] }
      })
      yield* start(on)
      const shown = approval(yield* interrupted(on))
      assert.isTrue(shown.argumentsTruncated)
      const preview = (shown.arguments as { readonly content: string }).content
      assert.strictEqual(preview, `${content.slice(0, 4_096)}…`)
      const read = (on: Stage, artifactId: string) =>
        Effect.map(on.api["artifact/read"]({ sessionId: on.sessionId, artifactId }), ({ data, mediaType }) => [
          mediaType,
          JSON.parse(Buffer.from(data, "base64").toString())
        ])
      const whole = ["application/json", { path: "long.txt", content }]
      assert.deepStrictEqual(yield* read(on, shown.argumentsArtifactId ?? ""), whole)

      const again = yield* on.reopen()
      const after = approval(yield* interrupted(again))
      assert.deepStrictEqual(after, shown)
      assert.deepStrictEqual(yield* read(again, after.argumentsArtifactId ?? ""), whole)
      yield* respond(again, after.id, "once")
      assert.strictEqual((yield* ended(again)).status, "completed")
      assert.strictEqual(readFileSync(join(on.folder.workspace, "long.txt"), "utf8"), content)
    })
  )
})
