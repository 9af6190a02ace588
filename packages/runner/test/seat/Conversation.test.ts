import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeReporter } from "../../src/activity/Reporter.ts"
import { type AcpConnection, agentMethods, AgentGone, AgentRefused } from "../../src/agent/AcpConnection.ts"
import { makeConversation } from "../../src/seat/Conversation.ts"
import { makePromptQueue } from "../../src/seat/PromptQueue.ts"

/** A conversation with an agent that the test plays, in virtual time. */
const make = Effect.gen(function* () {
  const lines: Array<string> = []
  const told: Array<string> = []
  const prompts: Array<{ readonly text: string; readonly end: (reason: string) => void; readonly die: () => void }> = []
  const notified: Array<string> = []
  const reporter = yield* makeReporter({
    queue: { add: ({ subtype }) => told.push(subtype), dropSoft: () => undefined, seal: () => undefined },
    harness: "otter",
    livenessSeconds: 30,
    idleLivenessSeconds: 3_600
  })
  const queue = yield* makePromptQueue
  const conversation = yield* makeConversation({
    pane: {
      line: (text) => lines.push(text),
      say: (voice, text) => lines.push(`${voice} > ${text}`),
      draft: () => undefined,
      whenWritten: () => undefined
    },
    prompts: queue,
    reporter,
    permissions: {
      turnStarted: () => undefined,
      ask: () => undefined,
      takeBack: () => undefined,
      cancelTurn: () => undefined,
      turnEnded: Effect.void,
      exited: () => undefined,
      drained: Effect.void
    },
    showThoughts: false,
    showHistory: false
  })
  const connection: Pick<AcpConnection, "request" | "notify"> = {
    request: (_, params) =>
      Effect.callback<unknown, AgentGone | AgentRefused>((resume) => {
        const { prompt } = params as { readonly prompt: ReadonlyArray<{ readonly text: string }> }
        reporter.accepted()
        prompts.push({
          text: prompt[0]?.text ?? "",
          end: (stopReason) => resume(Effect.succeed({ stopReason })),
          die: () => resume(Effect.fail(new AgentGone()))
        })
      }),
    notify: (method) => notified.push(method)
  }
  yield* Effect.forkScoped(conversation.open({ connection, methods: agentMethods, sessionId: "c-81" }))
  const type = (text: string): void => conversation.input({ _tag: "Prompt", text, replaced: 0 })
  const tick = TestClock.adjust(1)
  return { conversation, lines, notified, prompts, queue, told, tick, type }
})

describe("a cancel that the agent does not answer", () => {
  it.effect(
    "is said not to be confirmed after ten seconds, and forces nothing while the turn beats on [SEAT-202]",
    () =>
      Effect.gen(function* () {
        const { conversation, lines, notified, prompts, told, tick, type } = yield* make
        type("work")
        yield* tick
        conversation.input({ _tag: "Cancel" })
        yield* TestClock.adjust(9_999)
        assert.notInclude(lines, "cancel > not confirmed yet")
        yield* TestClock.adjust(1)
        assert.strictEqual(lines.filter((line) => line === "cancel > not confirmed yet").length, 1)
        type("next")
        yield* TestClock.adjust(3_600_000)
        assert.deepStrictEqual(notified, ["session/cancel"])
        assert.strictEqual(prompts.length, 1)
        assert.isTrue(conversation.isInTurn())
        assert.deepStrictEqual(new Set(told), new Set(["accepted", "liveness"]))
        prompts[0]?.end("cancelled")
        yield* tick
        assert.include(lines, "cancel > confirmed by the agent")
        assert.strictEqual(prompts[1]?.text, "next")
      })
  )

  it.effect("of a turn that ended in time says nothing more [SEAT-202]", () =>
    Effect.gen(function* () {
      const { conversation, lines, prompts, tick, type } = yield* make
      type("work")
      yield* tick
      conversation.input({ _tag: "Cancel" })
      prompts[0]?.end("end_turn")
      yield* TestClock.adjust(60_000)
      assert.notInclude(lines, "cancel > not confirmed yet")
    })
  )
})

describe("a conversation", () => {
  it.effect("takes no prompt once it is stopped, and leaves what waits to be told [SEAT-037, SEAT-250]", () =>
    Effect.gen(function* () {
      const { conversation, notified, prompts, queue, tick, type } = yield* make
      type("one")
      yield* tick
      type("two")
      conversation.stop()
      conversation.stop()
      type("three")
      prompts[0]?.end("cancelled")
      yield* tick
      assert.deepStrictEqual(notified, ["session/cancel"])
      assert.strictEqual(prompts.length, 1)
      assert.deepStrictEqual(queue.drain(), ["two"])
    })
  )

  it.effect("with an agent that is gone ends no turn: its exit will [SEAT-132]", () =>
    Effect.gen(function* () {
      const { conversation, prompts, told, tick, type } = yield* make
      type("one")
      yield* tick
      prompts[0]?.die()
      yield* tick
      assert.isTrue(conversation.isInTurn())
      assert.deepStrictEqual(told, ["accepted"])
    })
  )

  it.effect("shows no update of another conversation [SEAT-095]", () =>
    Effect.gen(function* () {
      const { conversation, lines, tick } = yield* make
      yield* tick
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "hi" } }
      conversation.update({ sessionId: "c-99", update })
      conversation.update({ sessionId: "c-81", update })
      assert.deepStrictEqual(lines, ["agent > hi"])
    })
  )

  it.effect("says how many characters were no UTF-8 [SEAT-034]", () =>
    Effect.gen(function* () {
      const { conversation, lines } = yield* make
      conversation.input({ _tag: "Prompt", text: "a\ufffd", replaced: 1 })
      assert.strictEqual(lines[0], "seat > 1 characters were not UTF-8 and are shown as \ufffd")
    })
  )
})
