import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createAgentRuntime, isEnvelope } from "../../src/index.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { createSqliteRuntimeStore } from "../../src/store/sqlite/index.ts"
import { gate, harness, programmable } from "./Kit.ts"

const directory = mkdtempSync(join(tmpdir(), "tackroom-life-"))

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: { readonly code?: string }) => error.code
  )

describe("the life of a runtime", () => {
  it("wrong options throw at once, naming the option [RT-021, RT-020]", () => {
    const store = createMemoryRuntimeStore()
    const driver = programmable()
    for (const subscriberBufferSize of [0, 1.5, 70_000, Number.NaN]) {
      try {
        createAgentRuntime({ store, harnesses: [], subscriberBufferSize })
        assert.fail("it did not throw")
      } catch (error) {
        assert.include(error, { code: "runtime_option_invalid", option: "subscriberBufferSize" })
      }
    }
    assert.throws(() => createAgentRuntime({ store, harnesses: [driver.factory, driver.factory] }), /native:test/u)
  })

  it("a store that cannot open fails ready and every call with its error [RT-020]", async () => {
    const root = mkdtempSync(join(tmpdir(), "tackroom-life-"))
    writeFileSync(join(root, "agent-runtime.db"), "this is no database")
    const store = createSqliteRuntimeStore({ root })
    const runtime = createAgentRuntime({ store, harnesses: [programmable().factory] })
    const codes = [
      await codeOf(runtime.ready()),
      await codeOf(runtime.sessions.create({ directory, harness })),
      await codeOf(runtime.turns.start({ sessionId: "x", text: "y" }))
    ]
    assert.strictEqual(new Set(codes).size, 1)
    assert.isDefined(codes[0])
    await runtime.dispose()
    await Effect.runPromise(store.close)
  })

  it("dispose cancels turns as shutdown, closes subscribers, and later calls are refused [RT-023, RT-024, RT-025]", async () => {
    const store = createMemoryRuntimeStore()
    const held = gate()
    const runtime = createAgentRuntime({ store, harnesses: [programmable({ turn: () => held.pass }).factory] })
    const session = await runtime.sessions.create({ directory, harness, title: "t" })
    const live = runtime.events.subscribe({ sessionId: session.id })
    await runtime.turns.start({ sessionId: session.id, messageId: "m", text: "go" })
    await Effect.runPromise(held.begun)
    const first = runtime.dispose()
    assert.strictEqual(runtime.dispose(), first)
    assert.strictEqual(await codeOf(runtime.sessions.get(session.id)), "runtime_disposed")
    await first
    for await (const item of live) assert.isTrue(isEnvelope(item))
    const turn = (await Effect.runPromise(store.turnsOf(session.id, 1)))[0]
    assert.isTrue(turn?.outcome?.status === "cancelled" && turn.outcome.reason === "shutdown")
    await Effect.runPromise(store.close)
  })

  it("a call that still waits when the runtime is closed is refused, not left open [RT-023, RT-028]", async () => {
    const store = createMemoryRuntimeStore()
    const held = gate()
    const runtime = createAgentRuntime({ store, harnesses: [programmable({ turn: () => held.pass }).factory] })
    const session = await runtime.sessions.create({ directory, harness, title: "t" })
    await runtime.turns.start({ sessionId: session.id, messageId: "m", text: "go" })
    await runtime.turns.start({ sessionId: session.id, messageId: "q", text: "go", delivery: "queue" })
    await Effect.runPromise(held.begun)
    const waiting = [runtime.turns.wait(session.id, "m"), runtime.turns.wait(session.id, "q")].map(codeOf)
    const changes = runtime.events.changes()[Symbol.asyncIterator]()
    assert.strictEqual((await changes.next()).value.type, "snapshot")
    const more = (async () => {
      while (!(await changes.next()).done);
    })()
    await runtime.dispose({ turns: "leave" })
    assert.deepStrictEqual(await Promise.all(waiting), ["runtime_disposed", "runtime_disposed"])
    await more
    await Effect.runPromise(store.close)
  })

  it("a signal stops waiting and undoes nothing [RT-027]", async () => {
    const store = createMemoryRuntimeStore()
    const held = gate()
    const runtime = createAgentRuntime({
      store,
      harnesses: [programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }).factory]
    })
    const session = await runtime.sessions.create({ directory, harness, title: "t" })
    await runtime.turns.start({ sessionId: session.id, messageId: "m", text: "go" })
    const controller = new AbortController()
    const waiting = runtime.turns.wait(session.id, "m", { signal: controller.signal })
    controller.abort()
    const error = await waiting.then(
      () => undefined,
      (reason: { readonly name?: string }) => reason
    )
    assert.strictEqual(error?.name, "AbortError")
    await Effect.runPromise(held.release)
    assert.strictEqual((await runtime.turns.wait(session.id, "m")).status, "completed")
    await runtime[Symbol.asyncDispose]()
    await Effect.runPromise(store.close)
  })

  it("what this version does not have says so [RT-068, RT-380]", async () => {
    const store = createMemoryRuntimeStore()
    const runtime = createAgentRuntime({ store, harnesses: [programmable().factory] })
    assert.strictEqual(await codeOf(runtime.sessions.fork("x")), "unsupported_operation")
    assert.strictEqual(await codeOf(runtime.goals.read("x")), "unsupported_operation")
    assert.strictEqual(await codeOf(runtime.sessions.receipt("x", "y")), "session_not_found")
    await runtime.dispose()
    await Effect.runPromise(store.close)
  })

  it("two runtimes share a store: one works on a session, both see its events [RT-026, RT-258]", async () => {
    const root = mkdtempSync(join(tmpdir(), "tackroom-life-"))
    const stores = [createSqliteRuntimeStore({ root }), createSqliteRuntimeStore({ root })] as const
    const held = gate()
    const one = createAgentRuntime({
      store: stores[0],
      harnesses: [programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }).factory]
    })
    const two = createAgentRuntime({ store: stores[1], harnesses: [programmable().factory] })
    const session = await one.sessions.create({ directory, harness, title: "t" })
    await two.ready()
    const seen: Array<number> = []
    const watching = (async () => {
      for await (const item of two.events.subscribe({ sessionId: session.id, after: 0 })) {
        if (!isEnvelope(item)) continue
        seen.push(item.cursor)
        if (item.payload.type === "finish") return
      }
    })()
    await one.turns.start({ sessionId: session.id, messageId: "m", text: "go" })
    await Effect.runPromise(held.begun)
    assert.strictEqual(
      await codeOf(two.turns.start({ sessionId: session.id, messageId: "n", text: "go" })),
      "session_turn_in_progress"
    )
    const waiting = two.turns.wait(session.id, "m")
    await Effect.runPromise(held.release)
    assert.strictEqual((await waiting).status, "completed")
    await watching
    assert.deepStrictEqual(
      seen,
      seen.map((_, i) => i + 1)
    )
    await two.turns.start({ sessionId: session.id, messageId: "n", text: "go" })
    assert.strictEqual((await one.turns.wait(session.id, "n")).status, "completed")
    await one.dispose()
    await two.dispose()
    for (const store of stores) await Effect.runPromise(store.close)
  })
})
