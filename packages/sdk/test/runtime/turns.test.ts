import { assert, describe, it } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { Cause, Deferred, Effect, Exit } from "effect"
import { Events, Sessions, Turns } from "../../src/effect.ts"
import { create, failing, gate, journal, outcome, programmable, start, stores, types, until, within } from "./Kit.ts"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import { text } from "./Programmable.ts"

for (const kind of stores) {
  describe(`turns over ${kind.name}`, () => {
    it.live("50 equal submissions at once make one turn and one message [RT-081, RT-091]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          const answers = yield* Effect.forEach(Array.from({ length: 50 }), () => start(session.id, "m"), {
            concurrency: "unbounded"
          })
          yield* outcome(session.id, "m")
          assert.strictEqual(answers.filter((answer) => answer.duplicate).length, 49)
          assert.strictEqual(new Set(answers.map((answer) => answer.turnId)).size, 1)
          assert.isTrue(answers.every((answer) => answer.startCursor === 1 && answer.userMessageId === "m"))
          const events = yield* journal(session.id)
          assert.strictEqual(events.filter((event) => event.payload.type === "user-message").length, 1)
          assert.strictEqual(events.filter((event) => event.payload.type === "turn-start").length, 1)
        })
      )
    )

    it.live("an id with other content is refused, and a refused start leaves nothing [RT-082, RT-090, RT-089]", () => {
      const held = gate()
      return within(kind, programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }), ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          const before = yield* journal(session.id)
          assert.strictEqual(yield* failing(start(session.id, "m", "other")), "submission_conflict")
          assert.strictEqual(yield* failing(start(session.id, "n")), "session_turn_in_progress")
          assert.strictEqual(yield* failing(start(session.id, "team/1")), "prompt_invalid")
          assert.strictEqual(yield* failing(start(session.id, "n", "x", { actorId: "a" })), "prompt_invalid")
          assert.strictEqual(yield* failing(start(session.id, "n", "x".repeat(1_048_577))), "prompt_too_large")
          assert.strictEqual(
            yield* failing(
              start(session.id, "n", undefined, {
                text: undefined,
                parts: [{ type: "file", mime: "a/b", url: "ftp://x" }]
              })
            ),
            "prompt_invalid"
          )
          assert.strictEqual(yield* failing(start("nobody", "n")), "session_not_found")
          assert.deepStrictEqual(yield* journal(session.id), before)
          yield* held.release
          yield* outcome(session.id, "m")
          const again = yield* start(session.id, "n")
          assert.strictEqual(again.delivery, "start")
          yield* outcome(session.id, "n")
        })
      )
    })

    it.live("onAdmitted runs before harness work, and its failure stops nothing [RT-086]", () => {
      const driver = programmable()
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          const told = Deferred.makeUnsafe<number>()
          yield* start(session.id, "m", "go", {
            onAdmitted: () => {
              Deferred.doneUnsafe(told, Exit.succeed(driver.prompts.length))
              throw new Error("application trouble")
            }
          })
          const ended = yield* outcome(session.id, "m")
          assert.strictEqual(ended.status, "completed")
          assert.strictEqual(yield* Deferred.await(told), 0)
        })
      )
    })

    it.live(
      "events carry the admission's ids, in the driver's order, and one end closes the turn [RT-085, RT-141, RT-148, RT-190, RT-206]",
      () => {
        const driver = programmable({
          turn: (s) =>
            s.emit(
              { type: "response-start", responseId: "r1" },
              { type: "thinking-delta", delta: "hm", messageId: "native", partId: "k" },
              { ...text(s.input, "a"), messageId: "native" } as never,
              text(s.input, "b"),
              { type: "tool-start", toolCallId: "c1", toolName: "t" },
              { type: "tool-output", toolCallId: "c1", output: "ok" },
              text(s.input, "done", "p2"),
              { type: "finish", sessionId: "x", assistantMessageId: "native", reason: "end_turn" }
            )
        })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            const admission = yield* start(session.id, "m")
            yield* outcome(session.id, "m")
            const events = yield* journal(session.id)
            assert.deepStrictEqual(types(events), [
              "session-created",
              "user-message",
              "session-status",
              "turn-start",
              "response-start",
              "thinking-delta",
              "text-end",
              "text-delta",
              "text-end",
              "tool-start",
              "tool-output",
              "text-delta",
              "text-end",
              "finish",
              "session-status"
            ])
            assert.deepStrictEqual(
              events.map((event) => event.cursor),
              events.map((_, i) => i + 1)
            )
            const end = events.find((event) => event.payload.type === "finish")?.payload
            assert.deepStrictEqual(end, {
              type: "finish",
              sessionId: session.id,
              assistantMessageId: "m_r",
              reason: "end_turn",
              finalText: "done"
            })
            const last = events.at(-1)
            assert.isUndefined(last?.turnId)
            assert.strictEqual(last?.payload.type, "session-status")
            assert.isTrue(events.slice(1, -1).every((event) => event.turnId === admission.turnId))
            const messages = yield* Effect.flatMap(Effect.service(Events), (all) => all.list(session.id))
            assert.deepStrictEqual(
              messages.map((message) => [message.role, message.id]),
              [
                ["user", "m"],
                ["assistant", "m_r"]
              ]
            )
            assert.deepStrictEqual(
              messages[1]?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
              ["ab", "done"]
            )
          })
        )
      }
    )

    it.live(
      "a stream that ends without a terminal event is a failed turn, and open tools are uncertain [RT-143, RT-144, RT-149]",
      () =>
        within(
          kind,
          programmable({ turn: (s) => s.emit({ type: "tool-start", toolCallId: "c1", toolName: "t" }) }),
          ({ root }) =>
            Effect.gen(function* () {
              const session = yield* create(root)
              yield* start(session.id, "m")
              const ended = yield* outcome(session.id, "m")
              assert.isTrue(ended.status === "failed" && ended.error.code === "harness_protocol")
              const events = yield* journal(session.id)
              assert.deepStrictEqual(types(events).slice(-3), ["tool-status", "error", "session-status"])
              const sessions = yield* Sessions
              assert.strictEqual((yield* sessions.get(session.id))?.status, "error")
            })
        )
    )

    it.live("an error that is followed by a finish is failed, and a driver's defect is internal [RT-142, RT-380]", () =>
      within(
        kind,
        programmable({
          turn: (s) =>
            s.input.prompt.text === "die"
              ? Effect.die(new Error("secret stack"))
              : s.emit({ type: "error", error: "no", code: "truncated", assistantMessageId: "x" }, s.finish())
        }),
        ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            yield* start(session.id, "m")
            const ended = yield* outcome(session.id, "m")
            assert.isTrue(ended.status === "failed" && ended.error.code === "truncated")
            const events = yield* journal(session.id)
            assert.strictEqual(
              events.filter((event) => ["finish", "error", "cancelled"].includes(event.payload.type)).length,
              1
            )
            yield* start(session.id, "n", "die")
            const died = yield* outcome(session.id, "n")
            assert.isTrue(died.status === "failed" && died.error.code === "internal")
            assert.isFalse(JSON.stringify(yield* journal(session.id)).includes("secret stack"))
          })
      )
    )

    it.live("output after the end joins its turn and changes no outcome [RT-146]", () =>
      within(kind, programmable({ turn: (s) => s.emit(s.finish(), { type: "usage", contextUsed: 5 }) }), ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          const usage = yield* until(session.id, (payload) => payload.type === "usage")
          const admission = yield* start(session.id, "m")
          const late = yield* usage
          assert.isUndefined(late.turnId)
          assert.strictEqual(late.afterTurn, admission.turnId)
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
        })
      )
    )

    it.live("a steer is committed to the running turn, refused it waits in the queue [RT-087, RT-111]", () => {
      const held = gate()
      const steered: Array<string> = []
      const driver = programmable({
        turn: (s) => (s.input.messageId === "m" ? Effect.andThen(held.pass, s.emit(s.finish())) : s.emit(s.finish())),
        driver: () => ({
          steer: (_turn, prompt) =>
            Effect.sync(() => {
              steered.push(prompt.text ?? "")
              return prompt.text === "no" ? ("declined" as const) : ("taken" as const)
            })
        })
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          const first = yield* start(session.id, "m")
          yield* held.begun
          const taken = yield* start(session.id, "s1", "yes", { delivery: "steer" })
          assert.deepStrictEqual([taken.delivery, taken.turnId, taken.steering], ["steer", first.turnId, { ok: true }])
          const refused = yield* start(session.id, "s2", "no", { delivery: "steer" })
          assert.deepStrictEqual([refused.delivery, refused.steering], ["queue", { ok: false, status: "declined" }])
          const again = yield* start(session.id, "s1", "yes", { delivery: "steer" })
          assert.isTrue(again.duplicate)
          assert.deepStrictEqual(steered, ["yes", "no"])
          yield* held.release
          assert.strictEqual((yield* outcome(session.id, "s2")).status, "completed")
          assert.strictEqual((yield* outcome(session.id, "s1")).status, "completed")
          const messages = (yield* journal(session.id)).flatMap((event) =>
            event.payload.type === "user-message" ? [[event.payload.messageId, event.payload.delivery]] : []
          )
          assert.deepStrictEqual(messages, [
            ["m", "start"],
            ["s1", "steer"],
            ["s2", "queue"]
          ])
        })
      )
    })

    it.live("a steer without an answer is unknown and not queued [RT-087]", () => {
      const held = gate()
      const driver = programmable({
        turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())),
        driver: () => ({ steer: () => Effect.never })
      })
      return within(
        kind,
        driver,
        ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            const lost = yield* start(session.id, "s", "x", { delivery: "steer" })
            assert.deepStrictEqual([lost.delivery, lost.steering], ["steer", { ok: false, status: "unknown" }])
            const events = yield* journal(session.id)
            const message = events.find(
              (event) => event.payload.type === "user-message" && event.payload.messageId === "s"
            )
            assert.isTrue(message?.payload.type === "user-message" && message.payload.uncertain === true)
            yield* held.release
            yield* outcome(session.id, "m")
          }),
        { steerTimeoutMs: 20 }
      )
    })

    it.live("a steer that its process did not survive is uncertain when it is asked for again [RT-088]", () => {
      const held = gate()
      return within(
        kind,
        programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }),
        ({ root, store }) =>
          Effect.gen(function* () {
            const session = yield* create(root)
            const first = yield* start(session.id, "m")
            yield* held.begun
            const receipt = yield* Effect.orDie(store.receipt(session.id, "m"))
            // As a process leaves it that dies between the commit and the harness's answer.
            yield* Effect.orDie(
              store.admit(session.id, "s", (state) => ({
                _tag: "Steering",
                turn: state.openTurn!,
                receipt: {
                  sessionId: session.id,
                  messageId: "s",
                  digest: receipt?.digest ?? "",
                  state: "steering",
                  turnId: first.turnId ?? null,
                  endSeq: null,
                  outcome: null
                }
              }))
            )
            const again = yield* start(session.id, "s", "go", { delivery: "steer" })
            assert.deepStrictEqual(
              [again.duplicate, again.delivery, again.steering],
              [true, "steer", { ok: false, status: "unknown" }]
            )
            yield* held.release
            yield* outcome(session.id, "m")
          })
      )
    })

    it.live("events that come without a pause share commits", () => {
      const parts = 200
      let appends = 0
      const counted = {
        ...kind,
        make: (root: string): RuntimeStore => {
          const store = kind.make(root)
          return {
            ...store,
            append: (...call: Parameters<RuntimeStore["append"]>) => {
              appends += 1
              return store.append(...call)
            }
          } as RuntimeStore
        }
      }
      const driver = programmable({
        turn: (s) =>
          Effect.gen(function* () {
            for (let n = 0; n < parts; n++) {
              yield* s.emit(text(s.input, "word", `p${n}`))
              yield* Effect.yieldNow
            }
            yield* s.emit(s.finish())
          })
      })
      return within(counted, driver, ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* outcome(session.id, "m")
          const ends = (yield* journal(session.id)).filter((event) => event.payload.type === "text-end")
          assert.strictEqual(ends.length, parts)
          assert.isBelow(appends, parts / 4)
        })
      )
    })

    // Under the test clock, which a file's own timers do not follow.
    if (kind.name === "memory") {
      it.effect("text reaches a subscriber one period of the clock after it was emitted [RT-202]", () => {
        const said = gate()
        const driver = programmable({ turn: (s) => Effect.andThen(s.emit(text(s.input, "early")), said.pass) })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const events = yield* Events
            const session = yield* create(root)
            const subscription = events.subscribe({ sessionId: session.id })
            yield* start(session.id, "m")
            yield* said.begun
            const seen: Array<string> = []
            yield* Effect.forkChild(
              Effect.gen(function* () {
                while (true) {
                  const item = yield* subscription.next
                  if (item !== undefined) seen.push(item.payload.type)
                }
              })
            )
            yield* TestClock.adjust(24)
            assert.isFalse(seen.includes("text-delta"))
            yield* TestClock.adjust(2)
            yield* Effect.yieldNow
            assert.isTrue(seen.includes("text-delta"))
          })
        )
      })
    }

    it.live("the first prompt titles an untitled session, whatever the harness ranks below a person [RT-150]", () =>
      within(
        kind,
        programmable({
          turn: (s) => s.emit({ type: "session-title", title: "by harness", titleSource: "harness" }, s.finish())
        }),
        ({ root }) =>
          Effect.gen(function* () {
            const sessions = yield* Sessions
            const untitled = yield* create(root, { title: undefined })
            yield* start(untitled.id, "m", `${"long ".repeat(40)}\nsecond line`)
            yield* outcome(untitled.id, "m")
            const events = yield* journal(untitled.id)
            const first = events.find((event) => event.payload.type === "session-title")?.payload
            assert.isTrue(first?.type === "session-title" && first.titleSource === "prompt" && first.title.length <= 80)
            assert.strictEqual((yield* sessions.get(untitled.id))?.title, "by harness")
            const named = yield* create(root, { title: "mine" })
            yield* start(named.id, "m")
            yield* outcome(named.id, "m")
            assert.strictEqual((yield* sessions.get(named.id))?.title, "mine")
          })
      )
    )

    it.live("a budget of rounds, tokens or time ends the turn failed [RT-140]", () => {
      const rounds = programmable({
        turn: (s) =>
          Effect.andThen(
            s.emit({ type: "response-start", responseId: "1" }, { type: "response-start", responseId: "2" }),
            Effect.never
          )
      })
      const slow = programmable({ turn: () => Effect.never })
      return Effect.gen(function* () {
        yield* within(
          kind,
          rounds,
          ({ root }) =>
            Effect.gen(function* () {
              const session = yield* create(root)
              yield* start(session.id, "m")
              const ended = yield* outcome(session.id, "m")
              assert.isTrue(ended.status === "failed" && ended.error.code === "budget")
            }),
          {},
          { budgets: () => ({ maxRounds: 1 }) }
        )
        yield* within(
          kind,
          slow,
          ({ root }) =>
            Effect.gen(function* () {
              const session = yield* create(root)
              const turns = yield* Turns
              yield* turns.start({ sessionId: session.id, messageId: "m", text: "go" }, { budget: { wallMs: 20 } })
              const ended = yield* outcome(session.id, "m")
              assert.isTrue(ended.status === "failed" && ended.error.code === "timeout")
            }),
          {}
        )
      })
    })

    it.live("turns over the limit wait for a place in phase starting [RT-080]", () => {
      const held = gate()
      return within(
        kind,
        programmable({
          turn: (s) => (s.input.messageId === "a" ? Effect.andThen(held.pass, s.emit(s.finish())) : s.emit(s.finish()))
        }),
        ({ root, driver }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const sessions = yield* Sessions
            const one = yield* create(root)
            const two = yield* create(root)
            yield* start(one.id, "a")
            yield* held.begun
            yield* start(two.id, "b")
            assert.strictEqual(turns.phase(two.id), "queued")
            assert.strictEqual((yield* sessions.get(two.id))?.phase, "starting")
            assert.strictEqual(driver.prompts.length, 1)
            yield* held.release
            assert.strictEqual((yield* outcome(two.id, "b")).status, "completed")
          }),
        { maxActiveTurns: 1 }
      )
    })

    it.live("the busy state ends with the terminal event, not with the driver's clean-up [RT-151]", () => {
      const cleaning = gate()
      let turns = 0
      const driver = programmable({
        turn: (s) => {
          turns += 1
          return turns === 1
            ? Effect.ensuring(s.emit(s.finish("one")), Effect.andThen(Effect.sleep(0), cleaning.pass))
            : s.emit(s.finish("two"))
        }
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const session = yield* create(root)
          yield* start(session.id, "m")
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          yield* cleaning.begun
          assert.isNull((yield* sessions.get(session.id))?.status)
          yield* start(session.id, "n")
          assert.strictEqual((yield* outcome(session.id, "n")).status, "completed")
          yield* cleaning.release
        })
      )
    })

    it.live(
      "lastTurn tells how the last settled turn ended, while a later one runs too [RT-152] [RT-153] [RT-149]",
      () => {
        const held = gate()
        const driver = programmable({
          turn: (s) =>
            s.input.messageId === "bad"
              ? s.emit({ type: "error", error: "no", code: "harness_error", assistantMessageId: "x" })
              : Effect.andThen(s.emit(text(s.input, "more")), Effect.andThen(held.pass, s.emit(s.finish())))
        })
        return within(kind, driver, ({ root, store }) =>
          Effect.gen(function* () {
            const sessions = yield* Sessions
            const session = yield* create(root)
            assert.isUndefined(session.lastTurn)
            yield* start(session.id, "bad")
            yield* outcome(session.id, "bad")
            assert.strictEqual((yield* sessions.get(session.id))?.status, "error")
            const admitted = yield* start(session.id, "good")
            yield* held.begun
            const during = yield* sessions.get(session.id)
            assert.strictEqual(during?.status, "busy")
            assert.isTrue(during?.lastTurn?.status === "failed" && during.lastTurn.messageId === "bad")
            yield* held.release
            yield* outcome(session.id, "good")
            const after = yield* sessions.get(session.id)
            assert.isNull(after?.status)
            assert.strictEqual(after?.lastTurn?.assistantMessageId, admitted.assistantMessageId)
            // Nothing an idle row or a message says is the outcome: the failed turn's message has its time too.
            const messages = yield* Effect.orDie(store.messages(session.id, { limit: 10 }))
            const failed = messages.find(({ message }) => message.id === "bad_r")?.message
            assert.isNotNull(failed?.completedAt)
            assert.isDefined(failed?.info.error)
          })
        )
      }
    )

    it.live("a repeated start of the running turn answers as the first did and adds nothing [RT-133] [RT-084]", () => {
      const held = gate()
      return within(kind, programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }), ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const session = yield* create(root)
          const first = yield* start(session.id, "m")
          yield* held.begun
          const before = (yield* journal(session.id)).length
          assert.deepStrictEqual(yield* start(session.id, "m"), { ...first, duplicate: true })
          assert.strictEqual((yield* journal(session.id)).length, before)
          yield* held.release
          yield* outcome(session.id, "m")
          // Without an id of the caller's a repeat is another turn.
          const minted = yield* turns.start({ sessionId: session.id, text: "go" })
          assert.match(minted.userMessageId, /^msg_/u)
          yield* outcome(session.id, minted.userMessageId)
          const again = yield* turns.start({ sessionId: session.id, text: "go" })
          assert.notStrictEqual(again.turnId, minted.turnId)
          yield* outcome(session.id, again.userMessageId)
        })
      )
    })

    it.live("a journal is whole for as long as its session is there [RT-183]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const session = yield* create(root)
          for (const id of ["a", "b", "c"]) {
            yield* start(session.id, id)
            yield* outcome(session.id, id)
          }
          yield* sessions.close(session.id)
          yield* sessions.update(session.id, { time: { archived: true } })
          const events = yield* journal(session.id)
          assert.deepStrictEqual(
            events.map((event) => event.cursor),
            events.map((_, i) => i + 1)
          )
          assert.strictEqual(events[0]?.payload.type, "session-created")
          assert.strictEqual(types(events).filter((type) => type === "finish").length, 3)
        })
      )
    )

    it.live("interrupting the caller undoes no admitted turn [RT-027]", () => {
      const held = gate()
      return within(kind, programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }), ({ root }) =>
        Effect.gen(function* () {
          const session = yield* create(root)
          yield* start(session.id, "m")
          const waiting = yield* Effect.forkChild(outcome(session.id, "m"))
          yield* held.begun
          const exit = yield* Effect.exit(Effect.timeout(outcome(session.id, "m"), 10))
          assert.isTrue(Exit.isFailure(exit) && !Cause.hasDies(exit.cause))
          yield* held.release
          yield* Effect.flatMap(Effect.service(Turns), (turns) => turns.whenIdle(session.id))
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          void waiting
        })
      )
    })
  })
}
