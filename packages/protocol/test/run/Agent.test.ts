import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  AgentDefinition,
  decodeParams,
  defaultModel,
  differingFields,
  fallbackModel,
  fullDefinition,
  profilesOf,
  repeatedIds
} from "@tackroom/protocol/run"

type Wire = Readonly<Record<string, unknown>>

const lead: Wire = { id: "assistant", instructions: "Help.", tools: ["files.read", "files.write"] }

const register = (agent: Wire) => decodeParams("agent/register", { agent })

const decoded = (agent: Wire): AgentDefinition => {
  const result = register(agent)
  return Result.isFailure(result) ? assert.fail(result.failure.message) : result.success.agent
}

const full = (agent: Wire) => fullDefinition(decoded(agent))

const refusedAt = (agent: Wire): string => {
  const result = register(agent)
  return Result.isSuccess(result) ? "accepted" : result.failure.path
}

describe("a definition", () => {
  it("has at most 15 subagents and 128 tools", () => {
    const workers = (count: number) => Array.from({ length: count }, (_, index) => ({ ...lead, id: `w${index}` }))
    assert.strictEqual(refusedAt({ ...lead, subagents: workers(15) }), "accepted")
    assert.strictEqual(refusedAt({ ...lead, subagents: workers(16) }), "agent.subagents")
    const tools = (count: number) => Array.from({ length: count }, (_, index) => `crm.tool${index}`)
    assert.strictEqual(refusedAt({ ...lead, tools: tools(128) }), "accepted")
    assert.strictEqual(refusedAt({ ...lead, tools: tools(129) }), "agent.tools")
  })

  it("is one level deep, and only a lead schedules [RUN-321]", () => {
    const worker = { ...lead, id: "w" }
    assert.strictEqual(
      refusedAt({ ...lead, subagents: [{ ...worker, subagents: [] }] }),
      "agent.subagents[0].subagents"
    )
    const scheduling = { ...worker, scheduling: true }
    assert.strictEqual(refusedAt({ ...lead, subagents: [scheduling] }), "agent.subagents[0].scheduling")
    assert.strictEqual(refusedAt({ ...lead, scheduling: true }), "accepted")
  })

  it("selects a tool, unless planning, memory or scheduling is on [RUN-323]", () => {
    const bare = { id: "a", instructions: "" }
    assert.strictEqual(refusedAt(bare), "agent.tools")
    assert.strictEqual(refusedAt({ ...bare, planning: false }), "agent.tools")
    for (const flag of ["planning", "memory", "scheduling"]) {
      assert.strictEqual(refusedAt({ ...bare, [flag]: true }), "accepted")
    }
    assert.strictEqual(refusedAt({ ...lead, subagents: [bare] }), "agent.subagents[0].tools")
  })

  it("has a memory scope only with memory [RUN-324]", () => {
    assert.strictEqual(refusedAt({ ...lead, memory_scope: "shared" }), "agent.memory_scope")
    assert.strictEqual(refusedAt({ ...lead, memory: true, memory_scope: "shared" }), "accepted")
  })

  it("lists tools for mode only, of its tree, and for no other mode [RUN-324]", () => {
    const approvals = (value: unknown) => ({ ...lead, approvals: value })
    assert.strictEqual(refusedAt(approvals({ mode: "only" })), "agent.approvals.tools")
    assert.strictEqual(refusedAt(approvals({ mode: "only", tools: [] })), "accepted")
    assert.strictEqual(refusedAt(approvals({ mode: "only", tools: ["files.write"] })), "accepted")
    assert.strictEqual(
      refusedAt(approvals({ mode: "only", tools: ["files.write", "web.fetch"] })),
      "agent.approvals.tools[1]"
    )
    assert.strictEqual(refusedAt(approvals({ mode: "always", tools: ["files.write"] })), "agent.approvals.tools")
    assert.strictEqual(refusedAt(approvals({ mode: "never", tools: [] })), "accepted")
    const worker = { id: "w", instructions: "", tools: ["web.search"] }
    const tree = { ...approvals({ mode: "only", tools: ["web.search"] }), subagents: [worker] }
    assert.strictEqual(refusedAt(tree), "accepted")
  })

  it("has qualified tool names, each once", () => {
    for (const tool of ["files", ".x", "1a.b", "a.", "a b.c", `a.${"x".repeat(129)}`]) {
      assert.strictEqual(refusedAt({ ...lead, tools: [tool] }), "agent.tools[0]", tool)
    }
    for (const tool of ["a.b/c.d-e", `a.${"x".repeat(128)}`])
      assert.strictEqual(refusedAt({ ...lead, tools: [tool] }), "accepted")
    assert.strictEqual(refusedAt({ ...lead, tools: ["a.b", "a.b"] }), "agent.tools")
  })
})

describe("a full definition", () => {
  it("has every default", () => {
    assert.deepStrictEqual(full(lead), {
      id: "assistant",
      name: "assistant",
      description: "",
      instructions: "Help.",
      tools: ["files.read", "files.write"],
      planning: false,
      approvals: { mode: "always" },
      memory: false,
      questions: true,
      compaction: "auto",
      maxRounds: 100,
      timeoutSeconds: 3_600,
      scheduling: false,
      subagents: []
    })
  })

  it("gives a worker what it leaves to its lead, and nothing else", () => {
    const model = { connection: "openai", model: "m" }
    const definition = full({
      ...lead,
      model,
      provider: "backup",
      fallback_model: "f",
      approvals: { mode: "never" },
      compaction: "off",
      max_rounds: 7,
      timeout_seconds: 8,
      max_output_tokens: 9,
      planning: true,
      subagents: [
        { id: "w", instructions: "", tools: ["web.search"] },
        { id: "v", instructions: "", tools: ["web.search"], max_rounds: 1, approvals: { mode: "always" } }
      ]
    })
    const [first, second] = definition.subagents
    assert.deepInclude(first, {
      model,
      provider: "backup",
      fallbackModel: "f",
      approvals: { mode: "never" },
      compaction: "off",
      maxRounds: 7,
      timeoutSeconds: 8,
      maxOutputTokens: 9,
      planning: false
    })
    assert.deepInclude(second, { maxRounds: 1, approvals: { mode: "always" } })
  })

  it("is the same with defaults written out and tools in another order [RUN-325]", () => {
    const written = {
      ...lead,
      name: "assistant",
      tools: ["files.write", "files.read"],
      approvals: { mode: "always", tools: [] },
      questions: true,
      max_rounds: 100,
      subagents: []
    }
    assert.deepStrictEqual(differingFields(full(lead), full(written)), [])
    const only = (tools: ReadonlyArray<string>) => full({ ...lead, approvals: { mode: "only", tools } })
    assert.deepStrictEqual(
      differingFields(only(["files.read", "files.write"]), only(["files.write", "files.read"])),
      []
    )
  })

  it("names the fields in which another differs, in wire names [RUN-325]", () => {
    const other = {
      ...lead,
      instructions: "Other.",
      max_rounds: 5,
      model: { connection: "c", model: "m" },
      planning: true
    }
    assert.deepStrictEqual(differingFields(full(lead), full(other)), [
      "instructions",
      "max_rounds",
      "model",
      "planning"
    ])
    const worker = { id: "w", instructions: "", tools: ["web.search"] }
    assert.deepStrictEqual(differingFields(full(lead), full({ ...lead, subagents: [worker] })), ["subagents"])
  })

  it("shows its own and its workers' repeated ids", () => {
    const worker = { ...lead, id: "w" }
    assert.deepStrictEqual(repeatedIds(full({ ...lead, subagents: [worker] })), [])
    assert.sameMembers([...repeatedIds(full({ ...lead, subagents: [worker, worker, lead] }))], ["assistant", "w"])
  })

  it("has a default model and one to fall back to", () => {
    const pair = { provider: "backup", fallback_model: "f" }
    const model = { connection: "openai", model: "m" }
    assert.isUndefined(defaultModel(full(lead)))
    assert.deepStrictEqual(defaultModel(full({ ...lead, ...pair })), { connection: "backup", model: "f" })
    assert.deepStrictEqual(defaultModel(full({ ...lead, ...pair, model })), model)
    assert.deepStrictEqual(fallbackModel(full({ ...lead, ...pair, model }), model), {
      connection: "backup",
      model: "f"
    })
    assert.deepStrictEqual(fallbackModel(full({ ...lead, fallback_model: "f", model }), model), {
      connection: "openai",
      model: "f"
    })
    assert.isUndefined(fallbackModel(full({ ...lead, model }), model))
    assert.isUndefined(fallbackModel(full({ ...lead, provider: "openai", fallback_model: "m", model }), model))
  })

  it("shows a profile for the lead and one per worker", () => {
    const worker = { id: "w", instructions: "", description: "Finds facts", tools: ["web.search"] }
    const approvals = { mode: "only", tools: ["files.write"] } as const
    assert.deepStrictEqual(profilesOf(full({ ...lead, name: "Assistant", approvals, subagents: [worker] })), [
      { id: "assistant", name: "Assistant", description: "", approvals, subagents: ["w"], workerOnly: false },
      { id: "w", name: "w", description: "Finds facts", approvals, subagents: [], workerOnly: true }
    ])
  })
})
