/** run/wait and event/read: what a run is at one moment, its pages and cursors (run-protocol 8, 15). */
import { assert, describe, it } from "@effect/vitest"
import type { RunError, RunState } from "@tackroom/protocol/run"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  answer,
  at,
  awaitEvent,
  call,
  type Event,
  failure,
  first,
  interrupted,
  journal,
  ofType,
  run,
  say,
  stage,
  type Stage,
  start
} from "./Kit.ts"

const done = [say("Done.")]
const plan = (content: string) => call("plan.update", { items: [{ content, status: "pending" }] })
const ask = (text: string) => call("ask_user", { question: text })

const wait = (on: Stage, more: object = {}) =>
  on.api["run/wait"]({ sessionId: on.sessionId, submissionId: "m-1", waitMs: 0, ...more })

describe("run/wait", () => {
  it.effect("it returns when the wait is over, at a change, and at once when there is news [RUN-410] [RUN-036]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[say("One."), { delay_ms: 60_000 }, say("Two.")]] })
      yield* start(on)
      yield* awaitEvent(on, "response-start")
      const parked = yield* Effect.forkChild(wait(on, { waitMs: 4_000 }))
      yield* TestClock.adjust("3 seconds")
      assert.isUndefined(parked.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(parked)).status, "running")
      // Above 5,000 counts as 5,000.
      const longer = yield* Effect.forkChild(wait(on, { waitMs: 60_000 }))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(longer)).status, "running")
      // A streaming caller is served at once while there are events behind its cursors.
      const { cursors, events } = yield* wait(on, { waitMs: 5_000, cursors: {} })
      assert.isNotEmpty(events)
      const streaming = yield* Effect.forkChild(wait(on, { waitMs: 5_000, cursors }))
      yield* Effect.yieldNow
      assert.isUndefined(streaming.pollUnsafe())
      yield* on.api["run/cancel"]({ sessionId: on.sessionId })
      assert.isNotEmpty((yield* Fiber.join(streaming)).events)
    })
  )

  it.effect(
    "interrupted means not terminal and something pending; what the caller knows does not wake it [RUN-412] [RUN-414]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[ask("One?"), ask("Two?")], done] })
        yield* start(on)
        const state = yield* interrupted(on, "m-1", 2)
        assert.deepStrictEqual([state.status, state.finalOutput, state.failure], ["interrupted", null, undefined])
        const known = state.interruptions.map(({ id }) => id)
        assert.strictEqual(
          (yield* wait(on, { waitMs: 5_000, knownInteractions: known.slice(1) })).status,
          "interrupted"
        )
        const parked = yield* Effect.forkChild(wait(on, { waitMs: 5_000, knownInteractions: known }))
        yield* TestClock.adjust("4 seconds")
        assert.isUndefined(parked.pollUnsafe())
        yield* TestClock.adjust("1 second")
        const after = yield* Fiber.join(parked)
        assert.deepStrictEqual(after, state)
      })
  )

  it.live("it observes only: asking often changes nothing [RUN-411]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask("One?")], done] })
      yield* start(on)
      const state = yield* interrupted(on)
      for (let n = 0; n < 20; n++) assert.deepStrictEqual(yield* wait(on), state)
      assert.strictEqual(state.cursor, (yield* journal(on)).length)
    })
  )

  it.live(
    "a terminal run answers the same for ever, with the events up to its end alone [RUN-413] [RUN-415] [RUN-416] [RUN-417]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[plan("a")], [say("First.")], [say("Second.")]] })
        yield* run(on)
        const state = yield* wait(on, { cursors: {} })
        assert.deepStrictEqual([state.status, state.finalOutput, state.moreEvents], ["completed", "First.", false])
        assert.strictEqual(state.events?.at(-1)?.event["type"], "session-status")
        assert.strictEqual(state.events?.at(-2)?.event["type"], "finish")
        yield* run(on, "m-2")
        const strip = ({ cursor: _cursor, ...rest }: typeof state) => rest
        assert.deepStrictEqual(strip(yield* wait(on, { cursors: {} })), strip(state))
        const again = yield* on.reopen()
        assert.deepStrictEqual(strip(yield* wait(again, { cursors: {} })), strip(state))
        // Without an id the latest run is meant.
        assert.strictEqual((yield* again.api["run/wait"]({ sessionId: on.sessionId })).submissionId, "m-2")
      })
  )

  it.live("an unknown submission and an unknown session are not found [RUN-419]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const run = yield* failure(wait(on, { submissionId: "nobody" }))
      assert.deepStrictEqual([run["kind"], run["what"], run["id"]], ["not_found", "run", "nobody"])
      const session = yield* failure(wait(on, { sessionId: "ses_nobody" }))
      assert.deepStrictEqual([session["kind"], session["what"]], ["not_found", "session"])
    })
  )

  it.live("a long output is a preview with its artifact [RUN-418] [RUN-200]", () =>
    Effect.gen(function* () {
      const text = "word ".repeat(40_000)
      const on = yield* stage({ scenario: [[say(text)]] })
      const state = yield* run(on)
      assert.isAtMost(Buffer.byteLength(JSON.stringify(state.finalOutput)), 131_072)
      assert.isTrue(text.startsWith(state.finalOutput?.slice(0, -1) ?? "-"))
      const { artifactId, bytes } = state.finalOutputArtifact ?? { artifactId: "", bytes: 0 }
      assert.strictEqual(bytes, text.length)
      const whole = yield* on.api["artifact/read"]({ sessionId: on.sessionId, artifactId, length: 524_288 })
      assert.strictEqual(Buffer.from(whole.data, "base64").toString(), text)
    })
  )

  it.live("at most 64 interruptions, and so many as fit, oldest first [RUN-418]", () =>
    Effect.gen(function* () {
      const long = "y".repeat(3_900)
      const on = yield* stage({ scenario: [Array.from({ length: 60 }, (_, n) => ask(`${n} ${long}`)), done] })
      yield* start(on)
      const seen = yield* Effect.gen(function* () {
        while (true) {
          const state = yield* wait(on)
          if (state.moreInterruptions === true) return state
          yield* awaitEvent(on, "question", state.cursor)
        }
      })
      assert.isAtMost(Buffer.byteLength(JSON.stringify(seen.interruptions)), 196_608 + 1_024)
      assert.isAbove(seen.interruptions.length, 30)
      assert.match(at(first(seen), "question") as string, /^0 /)
    })
  )
})

describe("cursors", () => {
  it.live(
    "events are numbered from 1 without gaps, times never decrease, and every page is consistent [RUN-140] [RUN-171] [RUN-181]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [[plan("a")], done] })
        yield* run(on)
        const events = yield* journal(on)
        assert.deepStrictEqual(
          events.map(({ seq }) => seq),
          events.map((_, index) => index + 1)
        )
        assert.strictEqual(events[0]?.type, "session-created")
        const times = events.map((event) => String(event["at"]))
        assert.deepStrictEqual(times, [...times].sort())
        const state = yield* wait(on, { cursors: {}, maxEvents: 1_000 })
        for (const entry of state.events ?? []) {
          assert.deepStrictEqual(entry.event as unknown as Event, events[(entry.event["seq"] as number) - 1])
          assert.deepStrictEqual([entry.agent, entry.sessionId], ["helper", on.sessionId])
        }
      })
  )

  it.live(
    "small pages joined equal one large page, from any cursor, before and after a restart [RUN-143] [RUN-145] [RUN-146] [RUN-190] [RUN-192] [RUN-193]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({ scenario: [...Array.from({ length: 8 }, (_, n) => [plan(`step ${n}`)]), done] })
        yield* run(on)
        const whole = yield* wait(on, { cursors: {}, maxEvents: 1_000 })
        assert.isFalse(whole.moreEvents)
        const pages = (from: Stage, maxEvents: number) =>
          Effect.gen(function* () {
            const joined: Array<unknown> = []
            let cursors: Readonly<Record<string, number>> | undefined = {}
            while (true) {
              const page: typeof whole = yield* wait(from, { cursors, maxEvents })
              joined.push(...(page.events ?? []))
              assert.isAtMost(page.events?.length ?? 0, maxEvents)
              cursors = page.cursors
              if (page.moreEvents !== true) return { joined, cursors }
              assert.lengthOf(page.events ?? [], maxEvents)
            }
          })
        for (const size of [1, 7, 256]) {
          const { cursors, joined } = yield* pages(on, size)
          assert.deepStrictEqual(joined, [...(whole.events ?? [])])
          assert.deepStrictEqual(cursors, whole.cursors)
        }
        const again = yield* on.reopen()
        assert.deepStrictEqual((yield* pages(again, 5)).joined, [...(whole.events ?? [])])
        // Nothing left: the cursor that was sent comes back.
        const empty = yield* wait(again, { cursors: whole.cursors })
        assert.deepStrictEqual([empty.events, empty.cursors, empty.moreEvents], [[], whole.cursors, false])
      })
  )

  it.live("a page holds at most 512 KiB and at least one event [RUN-190] [RUN-172]", () =>
    Effect.gen(function* () {
      const text = "z".repeat(60_000)
      const on = yield* stage({ scenario: [...Array.from({ length: 12 }, () => [say(text), plan("a")]), done] })
      yield* run(on)
      let after = 0
      let pages = 0
      while (true) {
        const page = yield* on.api["event/read"]({ sessionId: on.sessionId, after, maxEvents: 1_000 })
        assert.isAtMost(Buffer.byteLength(JSON.stringify(page.events)), 524_288)
        for (const event of page.events) assert.isAtMost(Buffer.byteLength(JSON.stringify(event)), 262_144)
        pages += 1
        after = page.cursor
        if (!page.moreEvents) break
        assert.isNotEmpty(page.events)
      }
      assert.isAbove(pages, 2)
    })
  )

  it.live("a cursor that is none, or ahead, or foreign, is refused with the head [RUN-141] [RUN-142]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      yield* run(on)
      const head = (yield* journal(on)).length
      const ask = (cursor: unknown) =>
        failure(
          on.wire("run/wait", { session_id: on.sessionId, submission_id: "m-1", cursors: { [on.sessionId]: cursor } })
        )
      for (const cursor of [-1, 1.5, "1", null]) {
        const error = yield* ask(cursor)
        assert.deepStrictEqual(
          [error["kind"], error["reason"], error["head"]],
          ["invalid_cursor", "malformed", head],
          String(cursor)
        )
      }
      const ahead = yield* ask(head + 1)
      assert.deepStrictEqual([ahead["kind"], ahead["reason"], ahead["head"]], ["invalid_cursor", "ahead", head])
      for (const foreign of ["ses_nobody", on.sessionId.slice(0, -1)]) {
        const error = yield* failure(wait(on, { cursors: { [foreign]: 0 } }))
        assert.deepStrictEqual([error["kind"], error["reason"]], ["invalid_cursor", "foreign_session"])
      }
      const read = yield* failure(on.api["event/read"]({ sessionId: on.sessionId, after: head + 9 }))
      assert.deepStrictEqual([read["kind"], read["reason"], read["head"]], ["invalid_cursor", "ahead", head])
      const zero = yield* failure(on.wire("event/read", { session_id: on.sessionId, max_events: 0 }))
      assert.deepStrictEqual([zero["kind"], zero["path"]], ["invalid_params", "max_events"])
    })
  )

  it.live("another journal is told with its id and heads [RUN-144]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      const state = yield* run(on)
      assert.match(state.journalId, /^jrn_/)
      const head = (yield* journal(on)).length
      for (const refused of [
        wait(on, { journalId: "jrn_old" }),
        on.api["event/read"]({ sessionId: on.sessionId, journalId: "jrn_old" }),
        on.api["session/attach"]({ sessionId: on.sessionId, journalId: "jrn_old" })
      ] as ReadonlyArray<Effect.Effect<unknown, RunError>>) {
        const error = yield* failure(refused)
        assert.deepStrictEqual(
          [error["kind"], error["reason"], error["journalId"], error["heads"]],
          ["invalid_cursor", "journal_replaced", state.journalId, { [on.sessionId]: head }]
        )
      }
      assert.strictEqual((yield* wait(on, { journalId: state.journalId })).status, "completed")
    })
  )

  it.live(
    "state, events and boundary of an answer are of one moment, however fast the run is [RUN-194] [RUN-413]",
    () =>
      Effect.gen(function* () {
        const on = yield* stage({
          scenario: [...Array.from({ length: 30 }, (_, n) => [say(`Step ${n}.`), plan(`${n}`)]), done]
        })
        yield* start(on)
        const watch = Effect.gen(function* () {
          let cursors: Readonly<Record<string, number>> | undefined = {}
          while (true) {
            const state: RunState = yield* on.api["run/wait"]({
              sessionId: on.sessionId,
              submissionId: "m-1",
              waitMs: 1_000,
              cursors: cursors ?? {}
            })
            cursors = state.cursors
            const end = state.events?.some(({ event }) => event["type"] === "finish") === true
            if (state.moreEvents !== true && cursors !== undefined) {
              assert.strictEqual(cursors[on.sessionId], state.cursor)
            }
            // Either both the end's event and the end, or neither.
            if (end && state.moreEvents !== true) assert.strictEqual(state.status, "completed")
            if (state.status === "completed" && state.moreEvents !== true) {
              assert.isTrue(end)
              return
            }
          }
        })
        yield* Effect.all([watch, watch, watch], { concurrency: "unbounded" })
      })
  )
})

describe("events and artifacts", () => {
  it.live("event/read of a closed session works as before [RUN-203] [RUN-477]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [done] })
      yield* run(on)
      const before = yield* journal(on)
      yield* on.api["agent/close"]({ sessionId: on.sessionId })
      assert.deepStrictEqual((yield* journal(on)).slice(0, before.length), before)
      assert.strictEqual((yield* wait(on)).status, "completed")
    })
  )

  it.effect("event/read waits when it is asked to, and gives what came [RUN-033] [RUN-145]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario: [[ask("Go?")], done] })
      yield* start(on)
      const state = yield* interrupted(on)
      const after = state.cursor
      const now = yield* on.api["event/read"]({ sessionId: on.sessionId, after })
      assert.deepStrictEqual([now.events, now.cursor, now.head, now.moreEvents], [[], after, after, false])
      const parked = yield* Effect.forkChild(on.api["event/read"]({ sessionId: on.sessionId, after, waitMs: 5_000 }))
      yield* Effect.yieldNow
      assert.isUndefined(parked.pollUnsafe())
      yield* answer(on, first(state).id, "yes")
      assert.isNotEmpty((yield* Fiber.join(parked)).events)
    })
  )

  it.live(
    "a cut field names its artifact, which is readable in pieces and through its own session alone [RUN-170] [RUN-200] [RUN-201] [RUN-202]",
    () =>
      Effect.gen(function* () {
        const text = "0123456789".repeat(10_000)
        const on = yield* stage({ scenario: [[say(text)]] })
        yield* run(on)
        const [end] = ofType(yield* journal(on), "text-end")
        assert.isBelow(String(end?.["text"]).length, text.length)
        const artifactId = at(end, "artifacts", 0, "artifact_id") as string
        assert.strictEqual(at(end, "artifacts", 0, "path"), "/text")
        const read = (more: object) => on.api["artifact/read"]({ sessionId: on.sessionId, artifactId, ...more })
        const piece = yield* read({ offset: 10, length: 5 })
        assert.deepStrictEqual(
          [Buffer.from(piece.data, "base64").toString(), piece.length, piece.totalBytes, piece.eof, piece.encoding],
          ["01234", 5, text.length, false, "base64"]
        )
        for (const offset of [text.length, text.length + 7]) {
          const beyond = yield* read({ offset })
          assert.deepStrictEqual([beyond.data, beyond.length, beyond.eof], ["", 0, true])
        }
        const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
        const foreign = yield* failure(read({ sessionId: session.sessionId }))
        assert.deepStrictEqual([foreign["kind"], foreign["what"]], ["not_found", "artifact"])
        assert.strictEqual((yield* failure(read({ artifactId: "art_nobody" })))["kind"], "not_found")
      })
  )

  it.live("summaries come from the events alone, so that a replay gives the same ones [RUN-180]", () =>
    Effect.gen(function* () {
      const on = yield* stage({
        scenario: [[say("Hi."), plan("a"), call("files.list", {}), call("files.read", { path: "none" })], done],
        agent: { tools: ["files.list", "files.read"], approvals: { mode: "never" } }
      })
      yield* run(on)
      const summaries = (from: Stage) =>
        Effect.map(wait(from, { cursors: {}, maxEvents: 1_000 }), (state) =>
          (state.events ?? []).flatMap(({ summary }) => (summary === null ? [] : [summary]))
        )
      const live = yield* summaries(on)
      assert.sameDeepMembers(
        live.map((one) => [one.type, "tool" in one ? one.tool : undefined]),
        [
          ["message", undefined],
          ["plan_updated", undefined],
          ["tool_started", "plan__update"],
          ["tool_finished", "plan__update"],
          ["auto_approved", "files__list"],
          ["auto_approved", "files__read"],
          ["tool_started", "files__list"],
          ["tool_finished", "files__list"],
          ["tool_started", "files__read"],
          ["tool_finished", "files__read"],
          ["message", undefined]
        ]
      )
      assert.deepStrictEqual(yield* summaries(yield* on.reopen()), live)
    })
  )
})
