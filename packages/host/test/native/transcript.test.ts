/** What a model is sent: a fold over the journal that equals what the turn lived (AGT-002, AGT-012). */
import { assert, describe, it } from "@effect/vitest"
import { AgentRuntime, Hub, Sessions, Turns } from "@tackroom/sdk/effect"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { Context, Effect, Layer, Queue, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ModelFailure } from "../../src/models/ModelFailure.ts"
import type { ModelPart, ModelRequest } from "../../src/models/ModelRequest.ts"
import { unreportedTokens } from "../../src/models/ModelRequest.ts"
import { inflate } from "../../src/runs/JournalReader.ts"
import { native } from "../../src/native/NativeHarness.ts"
import type { SessionSetup, SessionTool } from "../../src/native/SessionSetup.ts"
import * as Transcript from "../../src/native/Transcript.ts"
import { bare, sse } from "../models/Providers.ts"
import { wires } from "../models/Wires.ts"
import { approval, at, ended, folder, interrupted, respond, run, stage, start } from "../runs/Kit.ts"

const Text = Schema.Literals(["", "a", "two words", "\ud83d\ude00 ok", "lone \ud800 half", "x".repeat(70_000)])

const Call = Schema.Struct({
  tool: Schema.Literals(["work", "missing"]),
  id: Schema.Literals(["call", "call_1", "not a good id"]),
  path: Text,
  problem: Schema.Literals(["none", "not_json"]),
  end: Schema.Literals(["output", "large", "failed", "not_run", "unknown"])
})

const Response = Schema.Struct({
  parts: Schema.Array(Schema.Struct({ type: Schema.Literals(["text", "thinking"]), text: Text })).check(
    Schema.isMaxLength(3)
  ),
  calls: Schema.Array(Call).check(Schema.isMinLength(1), Schema.isMaxLength(4)),
  replay: Schema.Boolean,
  failures: Schema.Literals([0, 0, 1])
})
type Response = typeof Response.Type

const tool: SessionTool = {
  qualifiedName: "test.work",
  alias: "work",
  description: "",
  schema: {},
  category: "read",
  source: "native",
  validate: () => []
}

const setupOf = (sessionId: string): SessionSetup => ({
  sessionId,
  agentId: "agent",
  instructions: "Play.",
  workspace: "/",
  tools: [tool],
  model: { connection: "c", model: "m" },
  fallback: undefined,
  approvals: { mode: "always", tools: [] },
  bindingChanged: () => false
})

const partsOf = (response: Response): ReadonlyArray<ModelPart> => [
  ...response.parts.map(({ text, type }, part) => ({ type, part, delta: text })),
  ...response.calls.map((one): ModelPart => {
    const args = { path: one.path, end: one.end }
    return {
      type: "call",
      callId: one.id,
      tool: one.tool,
      argumentsText: JSON.stringify(args),
      ...(one.problem === "none" ? { arguments: args } : { arguments: "{bad", problem: "not_json" as const })
    }
  }),
  { type: "usage", tokens: unreportedTokens },
  { type: "finish", reason: "tool_calls", ...(response.replay ? { replay: { signature: "s".repeat(10) } } : {}) }
]

const last: ReadonlyArray<ModelPart> = [
  { type: "text", part: 0, delta: "Done." },
  { type: "usage", tokens: unreportedTokens },
  { type: "finish", reason: "stop" }
]

const broken = new ModelFailure({
  kind: "disconnect",
  status: null,
  retryAfterMs: null,
  errorClass: "model",
  message: "broke off"
})

interface Sent {
  readonly responseId: string
  readonly request: ModelRequest
}

/** Plays the responses in one turn; gives what was sent with each request, and what the journal says before it. */
const play = (responses: ReadonlyArray<Response>) =>
  Effect.gen(function* () {
    const { stateDir, workspace } = yield* folder
    const store = createSqliteRuntimeStore({ root: stateDir })
    yield* Effect.acquireRelease(store.open, () => store.close)
    const sent: Array<Sent> = []
    const harness = native({
      store,
      setup: (sessionId) => Effect.succeed(setupOf(sessionId)),
      redact: (value) => value,
      servers: { open: () => Effect.void, close: () => Effect.void },
      streamModel: (step) => {
        sent.push({
          responseId: `${step.turnId}.${step.responseIndex + 1}.${step.attempt}`,
          request: structuredClone(step.request)
        })
        const response = responses[step.responseIndex]
        if (response === undefined) return Stream.fromIterable(last)
        const parts = Stream.fromIterable(partsOf(response))
        return step.attempt > response.failures
          ? parts
          : Stream.concat(Stream.take(parts, response.parts.length), Stream.fail(broken))
      },
      execute: (one) => {
        const { end, path } = one.arguments as { readonly end: string; readonly path: string }
        const output = end === "large" ? { path, lines: Array.from({ length: 9_000 }, () => "a line") } : { path }
        if (end === "not_run") return Effect.fail({ outcome: "not_run" as const, message: `refused ${path}` })
        return Effect.andThen(
          one.beforeDispatch,
          end === "failed" || end === "unknown"
            ? Effect.fail({ outcome: end as "failed" | "unknown", message: `went wrong ${path}` })
            : Effect.succeed({ output })
        )
      }
    })
    const services = yield* Layer.build(AgentRuntime.layer({ store, harnesses: [harness] }))
    const events = yield* Queue.unbounded<{ readonly type: string; readonly delay: number }>()
    Context.get(services, Hub).subscribe("*", ({ payload }) => {
      Queue.offerUnsafe(events, {
        type: payload.type,
        delay: payload.type === "session-retry" ? (payload.delayMs ?? 0) : 0
      })
    })
    const session = yield* Context.get(services, Sessions).create({
      directory: workspace,
      harness: { id: "native", access: "native" }
    })
    yield* Context.get(services, Turns).start({ sessionId: session.id, messageId: "m-1", text: "Go on." })
    while (true) {
      const event = yield* Queue.take(events)
      if (event.type === "session-retry") yield* TestClock.adjust(event.delay)
      if (event.type === "finish" || event.type === "error") break
    }
    const folded = new Map<string, ReadonlyArray<unknown>>()
    const transcript = Transcript.empty()
    let after = 0
    while (true) {
      const page = yield* store.read(session.id, after, 1_000)
      for (const event of page.events) {
        if (event.payload.type === "response-start") {
          folded.set(event.payload.responseId, structuredClone(Transcript.toMessages(transcript)))
        }
        const payload = event.artifacts === null ? event.payload : yield* inflate(store, event)
        Transcript.apply(transcript, payload, event.turnId ?? undefined)
        after = event.seq
      }
      if (after >= page.head) break
    }
    return { sent, folded }
  })

describe("transcripts", () => {
  it.effect.prop(
    "what is sent is what a fold over the journal gives, whatever was said and done [AGT-002]",
    [Schema.Array(Response).check(Schema.isMaxLength(5))],
    ([responses]) =>
      Effect.gen(function* () {
        const { folded, sent } = yield* Effect.scoped(play(responses))
        assert.isAtLeast(sent.length, responses.length + 1)
        for (const { request, responseId } of sent) {
          assert.deepStrictEqual(folded.get(responseId), request.messages as ReadonlyArray<unknown>)
        }
      }),
    { arbitrary: { runs: 20 }, timeout: 120_000 }
  )

  it.live("a result goes to the model with at most 100,000 chars, as head and tail [AGT-012]", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const server = yield* bare((response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        const wire = wires["chat-completions"]
        response.end(
          sse(
            server.requests.length === 1
              ? wire.call("c1", "shell__run", JSON.stringify({ command: "seq 1 200000; seq 1 200000 >&2" }))
              : server.requests.length === 2
                ? wire.call("c2", "files__read", JSON.stringify({ path: "long" }))
                : wire.text("Done.", null)
          )
        )
      })
      const on = yield* stage({
        config: { providers: [{ name: "script", api: "chat-completions", baseUrl: `${server.url}/v1` }] },
        agent: { tools: ["shell.run", "files.read"], approvals: { mode: "never" } }
      })
      assert.strictEqual((yield* run(on)).status, "completed")
      const messages = at(server.requests[2], "body", "messages") as ReadonlyArray<{ readonly content: unknown }>
      for (const { content } of messages) if (typeof content === "string") seen.push(content)
      for (const text of seen) assert.isAtMost([...text].length, 100_000)
      const long = seen.find((text) => text.includes("stdout"))
      assert.isDefined(long)
      assert.match(long ?? "", /^exit code 0/)
      assert.match(long ?? "", /199999\n200000/)
    })
  )

  it.live("a step taken up after a restart sends the same content [AGT-002] [RUN-520]", () =>
    Effect.gen(function* () {
      const bodies = (restart: boolean) =>
        Effect.gen(function* () {
          const wire = wires["chat-completions"]
          const server = yield* bare((response) => {
            response.writeHead(200, { "content-type": "text/event-stream" })
            const write = JSON.stringify({ path: "a.txt", content: "text" })
            response.end(
              sse(
                server.requests.length === 1
                  ? wire.call("c1", "files__write", write)
                  : server.requests.length === 2
                    ? wire.call("c2", "files__write", "{not json")
                    : wire.text("Done.", null)
              )
            )
          })
          const on = yield* stage({
            config: { providers: [{ name: "script", api: "chat-completions", baseUrl: `${server.url}/v1` }] },
            agent: { tools: ["files.write"] }
          })
          yield* start(on)
          const pending = approval(yield* interrupted(on))
          const then = restart ? yield* on.reopen() : on
          yield* respond(then, pending.id, "once")
          const state = yield* ended(then)
          assert.deepStrictEqual([state.status, state.finalOutput], ["completed", "Done."])
          return server.requests.map(({ body }) => body)
        })
      assert.deepStrictEqual(yield* bodies(true), yield* bodies(false))
    })
  )
})
