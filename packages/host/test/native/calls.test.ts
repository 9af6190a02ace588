/** The calls of a response: check, approval, dispatch, end (AGT-004, AGT-005, AGT-012, AGT-013, AGT-030 to AGT-035). */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answer,
  approval,
  at,
  awaitEvent,
  call,
  ended,
  type Event,
  interrupted,
  journal,
  ofType,
  respond,
  run,
  say,
  settled,
  stage,
  start
} from "../runs/Kit.ts"

const done = [say("Done.")]
const allow = { mode: "never" } as const

const ends = (events: ReadonlyArray<Event>) =>
  events
    .filter(
      (event) =>
        event.type === "tool-output" ||
        event.type === "tool-error" ||
        (event.type === "tool-status" && event["status"] === "uncertain")
    )
    .map((event) => ({
      type: event.type,
      outcome: (event["metadata"] as { readonly outcome?: string } | undefined)?.outcome,
      tool: (event["metadata"] as { readonly tool?: string } | undefined)?.tool,
      code: event["code"],
      error: event["error"]
    }))

describe("calls", () => {
  it.live(
    "all approvals of a response are pending together, and the calls run in their order [AGT-004] [AGT-033]",
    () =>
      Effect.gen(function* () {
        const write = (path: string) => call("files.write", { path, content: path })
        const on = yield* stage({
          scenario: [[write("a"), write("b"), write("c")], done],
          agent: { tools: ["files.write"] }
        })
        yield* start(on)
        const waiting = yield* interrupted(on, "m-1", 3)
        assert.deepStrictEqual(
          waiting.interruptions.map((one) => one.kind === "approval" && one.arguments),
          ["a", "b", "c"].map((path) => ({ path, content: path }))
        )
        // Answered in another order: each call still waits for those before it.
        const [a, b, c] = waiting.interruptions
        yield* respond(on, c?.id ?? "", "once")
        yield* respond(on, b?.id ?? "", "once")
        assert.isFalse(existsSync(join(on.folder.workspace, "b")))
        yield* respond(on, a?.id ?? "", "once")
        const state = yield* ended(on)
        assert.strictEqual(state.status, "completed")
        const events = yield* journal(on)
        const order = events
          .filter((event) => event.type === "tool-output" || event.type === "tool-status")
          .map((event) => `${event.type} ${String(event["tool_call_id"]).at(-1)}`)
        assert.deepStrictEqual(order, [
          "tool-status 0",
          "tool-output 0",
          "tool-status 1",
          "tool-output 1",
          "tool-status 2",
          "tool-output 2"
        ])
      })
  )

  it.live("no call is dispatched before every approval of its response was asked for [AGT-004]", () =>
    Effect.gen(function* () {
      const write = call("files.write", { path: "a", content: "a" })
      const command = call("shell.run", { command: "true" })
      const on = yield* stage({
        scenario: [[write, write, command], done],
        agent: { tools: ["files.write", "shell.run"], approvals: { mode: "only", tools: ["shell.run"] } }
      })
      yield* start(on)
      const waiting = yield* interrupted(on)
      yield* respond(on, waiting.interruptions[0]?.id ?? "", "once")
      yield* ended(on)
      const events = yield* journal(on)
      const asked = ofType(events, "permission-request").map((event) => event.seq)
      const dispatched = ofType(events, "tool-status").map((event) => event.seq)
      assert.lengthOf(asked, 3)
      assert.lengthOf(dispatched, 3)
      assert.isBelow(Math.max(...asked), Math.min(...dispatched))
    })
  )

  it.live("neighbouring reads run at once, a call behind them waits for all of them [AGT-004]", () =>
    Effect.gen(function* () {
      const reads = 6
      const on = yield* stage({
        scenario: [
          [
            ...Array.from({ length: reads }, () => call("files.read", { path: "there" })),
            call("files.write", { path: "new", content: "" }),
            call("files.read", { path: "new" })
          ],
          done
        ],
        agent: { tools: ["files.read", "files.write"], approvals: allow }
      })
      writeFileSync(join(on.folder.workspace, "there"), "text")
      yield* run(on)
      const events = yield* journal(on)
      const order = events
        .filter((event) => event.type === "tool-output" || event.type === "tool-status")
        .map((event) => ({ type: event.type, call: Number(String(event["tool_call_id"]).at(-1)) }))
      const together = order.slice(0, 2 * reads)
      assert.isTrue(together.every((event) => event.call < reads))
      // One by one, each would end before the next begins; which of them is faster is nobody's promise.
      assert.isTrue(together.some((event, at) => event.type === "tool-status" && together[at - 1]?.type === event.type))
      assert.deepStrictEqual(
        order.slice(2 * reads).map((event) => `${event.type} ${event.call - reads}`),
        ["tool-status 0", "tool-output 0", "tool-status 1", "tool-output 1"]
      )
      assert.deepStrictEqual(
        ends(events).map(({ outcome }) => outcome),
        Array.from({ length: reads + 2 }, () => "completed")
      )
    })
  )

  it.live(
    "an unknown tool and arguments that break the schema are not run, and nobody is asked [AGT-005] [AGT-035]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [
            [
              call("files.remove", { path: "a" }),
              call("files.write", { path: 7, secret: "do not repeat me" }),
              call("files.write", "no object"),
              // Registered, but not selected by this agent (AGT-030).
              call("shell.run", { command: "true" })
            ],
            done
          ],
          agent: { tools: ["files.write"] }
        })
        const state = yield* run(on)
        assert.strictEqual(state.status, "completed")
        const events = yield* journal(on)
        assert.lengthOf(ofType(events, "permission-request"), 0)
        assert.lengthOf(ofType(events, "tool-status"), 0)
        const all = ends(events)
        assert.deepStrictEqual(
          all.map(({ code, outcome, type }) => [type, outcome, code]),
          Array.from({ length: 4 }, () => ["tool-error", "not_run", "failed"])
        )
        assert.match(String(all[1]?.error), /path: expected/)
        assert.match(String(all[1]?.error), /content: expected a value/)
        assert.notMatch(String(all[1]?.error), /do not repeat me/)
        assert.match(String(all[2]?.error), /not a JSON object/)
        assert.match(String(all[3]?.error), /no tool of this name/)
        const errors = yield* on.api["run/wait"]({ sessionId: on.sessionId, cursors: {}, maxEvents: 1_000 })
        assert.deepStrictEqual(
          errors.events?.filter(({ summary }) => summary?.type === "tool_finished"),
          []
        )
      })
  )

  it.live("a response may hold 64 calls; the others are not run [AGT-013]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [Array.from({ length: 66 }, () => call("plan.update", { items: [] })), done]
      })
      yield* run(on)
      const all = ends(yield* journal(on))
      assert.lengthOf(all, 66)
      assert.lengthOf(
        all.filter(({ outcome }) => outcome === "completed"),
        64
      )
      assert.deepStrictEqual(
        all.filter(({ outcome }) => outcome === "not_run").map(({ error }) => error),
        ["a response may hold at most 64 calls", "a response may hold at most 64 calls"]
      )
    })
  )

  it.live(
    "each end says its outcome: completed, failed, denied, and a failed tool ends no turn [AGT-035] [RUN-447]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [
            [
              call("files.read", { path: "../outside" }),
              call("files.edit", { path: "a", edits: [{ old: "x", new: "y" }] }),
              call("shell.run", { command: "exit 3" })
            ],
            done
          ],
          agent: { tools: ["files.read", "files.edit", "shell.run"] }
        })
        writeFileSync(join(on.folder.workspace, "a"), "nothing to replace")
        yield* start(on)
        const waiting = yield* interrupted(on, "m-1", 2)
        const [edit, shell] = waiting.interruptions
        yield* respond(on, shell?.id ?? "", "deny", "not on this machine")
        yield* respond(on, edit?.id ?? "", "once")
        assert.strictEqual((yield* ended(on)).status, "completed")
        const all = ends(yield* journal(on))
        assert.deepStrictEqual(
          all.map(({ code, outcome, tool }) => [tool, outcome, code]),
          [
            ["files__read", "not_run", "failed"],
            ["files__edit", "failed", "failed"],
            ["shell__run", "not_run", "denied"]
          ]
        )
        assert.match(String(all[2]?.error), /not on this machine/)
      })
  )

  it.live("a nonzero exit is an output, and its stream comes as deltas before it [AGT-035] [RUN-170]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("shell.run", { command: "echo out; exit 3" })], done],
        agent: { tools: ["shell.run"], approvals: allow }
      })
      yield* run(on)
      const events = yield* journal(on)
      const [output] = ofType(events, "tool-output")
      assert.strictEqual(at(output, "output", "exit_code"), 3)
      assert.strictEqual(
        ofType(events, "tool-output-delta")
          .map((event) => event["delta"])
          .join(""),
        "out\n"
      )
    })
  )

  it.live("what was written is journaled as a diff of its call [AGT-064] [AGT-116]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[call("files.write", { path: "a.txt", content: "new" })], done],
        agent: { tools: ["files.write"] }
      })
      yield* start(on)
      const pending = approval(yield* interrupted(on))
      assert.deepStrictEqual(pending.arguments, { path: "a.txt", content: "new" })
      yield* respond(on, pending.id, "once")
      yield* ended(on)
      assert.strictEqual(readFileSync(join(on.folder.workspace, "a.txt"), "utf8"), "new")
      const [diff] = ofType(yield* journal(on), "file-diff")
      assert.deepStrictEqual(
        [diff?.["path"], diff?.["new_text"], diff?.["tool_call_id"]],
        ["a.txt", "new", pending.callId]
      )
    })
  )

  it.live("questions of one response are pending together, each with its own answer [AGT-180] [RUN-440]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [
          [
            call("ask_user", { question: "First?" }),
            call("plan.update", { items: [] }),
            call("ask_user", { question: "Second?", options: ["red", "blue"], allow_text: false }),
            call("ask_user", { question: "Third?", allow_text: false })
          ],
          done
        ]
      })
      yield* start(on)
      const waiting = yield* interrupted(on, "m-1", 2)
      assert.deepStrictEqual(
        waiting.interruptions.map((one) => one.kind === "question" && [one.question, one.options, one.allowText]),
        [
          ["First?", [], true],
          ["Second?", ["red", "blue"], false]
        ]
      )
      const [one, two] = waiting.interruptions
      yield* answer(on, two?.id ?? "", "blue")
      yield* answer(on, one?.id ?? "", "yes")
      const state = yield* ended(on)
      assert.strictEqual(state.status, "completed")
      const events = yield* journal(on)
      assert.deepStrictEqual(
        ofType(events, "tool-output").map((event) => event["output"]),
        [{ answer: "yes" }, { items: [] }, { answer: "blue" }]
      )
      const [refused] = ofType(events, "tool-error")
      assert.match(String(refused?.["error"]), /no options/)
    })
  )

  it.live("the plan is replaced as a whole and every item has an id [AGT-033]", () =>
    Effect.gen(function* () {
      const item = { content: "look", status: "pending" } as const
      const on = yield* stage({
        scenario: [[call("plan.update", { items: [item, { ...item, id: "mine" }] })], done]
      })
      yield* run(on)
      const [update] = ofType(yield* journal(on), "todo-update")
      const todos = update?.["todos"] as ReadonlyArray<{ readonly id: string; readonly content: string }>
      assert.lengthOf(todos, 2)
      assert.isNotEmpty(todos[0]?.id)
      assert.strictEqual(todos[1]?.id, "mine")
      const state = yield* on.api["run/wait"]({ sessionId: on.sessionId, cursors: {} })
      const plans = state.events?.flatMap(({ summary }) => (summary?.type === "plan_updated" ? [summary.plan] : []))
      assert.deepStrictEqual(plans, [{ items: [...todos] } as never])
    })
  )

  it.live("cancelling ends a running tool, and the calls behind it are not run [RUN-472] [AGT-035]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [
          [call("shell.run", { command: "echo here; sleep 60" }), call("shell.run", { command: "touch late" })],
          done
        ],
        agent: { tools: ["shell.run"], approvals: allow }
      })
      yield* start(on)
      yield* awaitEvent(on, "tool-output-delta")
      const cancelled = yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      assert.deepStrictEqual(cancelled, { cancelled: [on.sessionId], teamCancelled: false, errors: {} })
      const state = yield* settled(on)
      assert.strictEqual(state.status, "cancelled")
      const events = yield* journal(on)
      assert.deepStrictEqual(
        ends(events).map(({ code, outcome, tool }) => [tool, outcome, code]),
        [
          ["shell__run", "failed", "cancelled"],
          ["shell__run", "not_run", "cancelled"]
        ]
      )
      assert.lengthOf(ofType(events, "cancelled"), 1)
      assert.isFalse(existsSync(join(on.folder.workspace, "late")))
    })
  )
})
