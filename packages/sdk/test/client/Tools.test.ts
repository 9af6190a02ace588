import { assert, describe, it } from "@effect/vitest"
import {
  type ApplicationEvent,
  capabilityKeys,
  encodeNotification,
  encodeResult,
  type InitializeResult,
  limits,
  type MethodName,
  type ResultOf
} from "@tackroom/protocol/run"
import { Schema } from "effect"
import { connectHost, type EmbeddedHost, type Host, makeInProcessTransport, tool } from "../../src/client/index.ts"

interface Sent {
  readonly method: string
  readonly params: Record<string, unknown>
}

/** A host that only registers and calls tools. */
class CallingHost implements EmbeddedHost {
  readonly requests: Array<Sent> = []
  readonly notified: Array<Sent> = []
  private readonly listeners = new Set<(method: string, params: unknown) => void>()
  private readonly waiting: Array<{ readonly count: number; readonly done: () => void }> = []
  private readonly callbacks: boolean

  constructor(callbacks = true) {
    this.callbacks = callbacks
  }

  call = async (method: string, params: unknown): Promise<unknown> => {
    this.requests.push({ method, params: params as Record<string, unknown> })
    const result = <M extends MethodName>(name: M, value: ResultOf<M>): unknown => encodeResult(name, value)
    if (method === "initialize") {
      const capabilities = Object.fromEntries(capabilityKeys.map((key) => [key, true]))
      return result("initialize", {
        protocolVersion: 1,
        host: { name: "calling", version: "0.0.0" },
        capabilities: {
          ...(capabilities as InitializeResult["capabilities"]),
          applicationCallbacks: this.callbacks
        },
        limits,
        journalId: "jrn_1",
        eventContract: 1,
        sandbox: { selected: "none", available: ["none"] },
        warnings: []
      })
    }
    if (method === "application/register") return result(method, { owner: "app", tools: [], generation: 1 })
    return result("agent/register", {
      agent: { id: "a", name: "a", description: "", approvals: { mode: "always" }, subagents: [], workerOnly: false },
      duplicate: false
    })
  }
  notify = (method: string, params: unknown): void => {
    this.notified.push({ method, params: params as Record<string, unknown> })
    for (const { count, done } of this.waiting) if (this.notified.length >= count) done()
  }
  onNotification = (listener: (method: string, params: unknown) => void): (() => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
  close = (): Promise<void> => Promise.resolve()

  emit(event: ApplicationEvent): void {
    for (const listener of this.listeners) listener("application/event", encodeNotification("application/event", event))
  }
  invoke(invocationId: string, name: string, args: Schema.Json): void {
    this.emit({
      kind: "call",
      invocationId,
      owner: "app",
      tool: name,
      arguments: args,
      context: { sessionId: "ses_1", turnId: "trn_1", callId: "call_1", workspace: "/w" },
      timeoutMs: 1_000
    })
  }
  /** Waits for this many notifications of the application. */
  heard(count: number): Promise<ReadonlyArray<Sent>> {
    return new Promise((resolve) => {
      const done = (): void => resolve(this.notified)
      if (this.notified.length >= count) done()
      else this.waiting.push({ count, done })
    })
  }
}

const connect = async (host: CallingHost): Promise<Host> =>
  connectHost(() => Promise.resolve(makeInProcessTransport(host)))

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  input: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  run: ({ a, b }, { sessionId }) => ({ sum: a + b, sessionId })
})

const define = (run: (context: { progress: (m: string) => void; signal: AbortSignal }) => unknown) =>
  tool({ name: "odd.one", description: "Does as the test wants.", input: Schema.Struct({}), run: (_, c) => run(c) })

const withTool = async (one: ReturnType<typeof define>): Promise<CallingHost> => {
  const calling = new CallingHost()
  const host = await connect(calling)
  await host.agent({ id: "a", instructions: "", tools: [one] })
  return calling
}

describe("tools of the application", () => {
  it("are registered before the agent that uses them, once [RUN-280] [RUN-294]", async () => {
    const calling = new CallingHost()
    const host = await connect(calling)
    await host.agent({ id: "a", instructions: "", tools: ["files.read", add], memoryScope: "team" })
    await host.agent({ id: "a", instructions: "", tools: ["files.read", add], memoryScope: "team" })
    assert.deepStrictEqual(
      calling.requests.map((request) => request.method),
      ["initialize", "application/register", "agent/register", "agent/register"]
    )
    const [descriptor] = calling.requests[1]!.params["tools"] as ReadonlyArray<Record<string, unknown>>
    assert.strictEqual(descriptor?.["qualified_name"], "app.add")
    const schema = descriptor?.["input_schema"] as { type: string; properties: object }
    assert.strictEqual(schema.type, "object")
    assert.deepStrictEqual(Object.keys(schema.properties), ["a", "b"])
    const agent = calling.requests[2]?.params["agent"] as Record<string, unknown>
    assert.deepStrictEqual(agent["tools"], ["files.read", "app.add"])
  })

  it("memoryScope switches memory on [RT-358]", async () => {
    const calling = new CallingHost()
    const host = await connect(calling)
    await host.agent({ id: "a", instructions: "", memoryScope: "team" })
    assert.deepStrictEqual(calling.requests[1]?.params["agent"], {
      id: "a",
      instructions: "",
      memory_scope: "team",
      memory: true
    })
  })

  it("are refused by a host without callbacks, before anything is sent", async () => {
    const calling = new CallingHost(false)
    const host = await connect(calling)
    const error = await host.agent({ id: "a", instructions: "", tools: [add] }).then(
      () => undefined,
      (failure: unknown) => failure
    )
    assert.strictEqual((error as { feature?: string }).feature, "application_callbacks")
    assert.strictEqual(calling.requests.length, 1)
  })

  it("give their result, and refuse arguments that do not fit", async () => {
    const calling = new CallingHost()
    const host = await connect(calling)
    await host.agent({ id: "a", instructions: "", tools: [add] })
    calling.invoke("inv_1", "app.add", { a: 1, b: 2 })
    calling.invoke("inv_2", "app.add", { a: "one" })
    const [first, second] = await calling.heard(2)
    assert.deepStrictEqual(first, {
      method: "application/result",
      params: { owner: "app", invocation_id: "inv_1", output: { sum: 3, sessionId: "ses_1" } }
    })
    assert.deepStrictEqual(second?.params["error"], {
      message: "the arguments do not fit the tool's schema",
      code: "invalid_arguments"
    })
  })

  it("errors are sent without their stack, results over the limit not at all [RT-356] [RUN-287]", async () => {
    const failing = await withTool(
      define(() => {
        throw new Error("it broke\n    at secret.ts:1:1")
      })
    )
    failing.invoke("inv_1", "odd.one", {})
    const [error] = await failing.heard(1)
    assert.deepStrictEqual(error?.params["error"], { message: "it broke" })

    const large = await withTool(define(() => "x".repeat(limits.applicationResultBytes)))
    large.invoke("inv_1", "odd.one", {})
    const [tooLarge] = await large.heard(1)
    assert.strictEqual((tooLarge!.params["error"] as { code: string }).code, "result_too_large")

    const cyclic: Record<string, unknown> = {}
    cyclic["self"] = cyclic
    const strange = await withTool(define(() => cyclic))
    strange.invoke("inv_1", "odd.one", {})
    const [invalid] = await strange.heard(1)
    assert.strictEqual((invalid!.params["error"] as { code: string }).code, "result_invalid")
  })

  it("tell progress, hear of a cancel, and never block the reader [RT-350] [RUN-570]", async () => {
    const calling = await withTool(
      define(
        ({ progress, signal }) =>
          new Promise((_, reject) => {
            progress("half way")
            signal.addEventListener("abort", () => reject(new Error("stopped")))
          })
      )
    )
    calling.invoke("inv_1", "odd.one", {})
    const [progress] = await calling.heard(1)
    assert.deepStrictEqual(progress, {
      method: "application/progress",
      params: { owner: "app", invocation_id: "inv_1", message: "half way" }
    })
    calling.emit({ kind: "cancel", invocationId: "inv_1", owner: "app" })
    const [, ended] = await calling.heard(2)
    assert.deepStrictEqual(ended?.params["error"], { message: "stopped" })
  })
})
