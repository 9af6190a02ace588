import { assert, describe, it } from "@effect/vitest"
import type { Interaction } from "@tackroom/protocol/events"
import type { FaceConfig } from "@tackroom/protocol/run"
import { isDeepStrictEqual } from "node:util"
import { parseRun, type RunArguments } from "../../src/faces/headless/Arguments.ts"
import { decideBy } from "../../src/faces/headless/Settlement.ts"
import { Usage } from "../../src/faces/start/Flags.ts"
import { keyVariables, setUp, type Setup } from "../../src/faces/start/Setup.ts"

const options = (args: string): RunArguments => {
  const parsed = parseRun([...args.split(" ").filter((word) => word !== ""), "do it"], { stdin: true, stderr: true })
  return parsed instanceof Usage ? assert.fail(parsed.message) : parsed
}
const made = (args: string, config: FaceConfig = {}): Setup => {
  const setup = setUp(options(args), config, "/state", "/state/script.json")
  return "refused" in setup ? assert.fail(setup.refused) : setup
}
const refused = (args: string, config: FaceConfig = {}): string => {
  const setup = setUp(options(args), config, "/state", "/state/script.json")
  return "refused" in setup ? setup.refused : assert.fail("it was set up")
}
const has = (list: ReadonlyArray<unknown> | undefined, item: unknown): void =>
  assert.isTrue(
    list?.some((each) => isDeepStrictEqual(each, item)),
    JSON.stringify(list)
  )
const agent = (id: string, more: object = {}) => ({ id, instructions: "", tools: ["files.read"], ...more })

describe("what a command line becomes", () => {
  it("without anything: the built-in agent and the scripted demonstration [SRV-002] [AGT-337]", () => {
    const { agent, config, model, needsKey, scenario } = made("")
    assert.strictEqual(agent, "assistant")
    assert.deepStrictEqual(model, { connection: "script", model: "scripted-demo" })
    assert.deepStrictEqual(config.providers, [{ name: "script", api: "script", scenario: "/state/script.json" }])
    assert.strictEqual(scenario?.id, "demo")
    assert.isUndefined(needsKey)
    const [assistant] = config.agents ?? []
    assert.isTrue(assistant?.planning)
    assert.deepStrictEqual(assistant?.approvals, { mode: "always" })
    assert.isFalse(assistant?.tools?.includes("web.search"))
  })

  it("the agent is the one named, else the configuration's own choice, else its only one [SRV-002]", () => {
    assert.strictEqual(made("--agent b", { agents: [agent("a"), agent("b")] }).agent, "b")
    assert.strictEqual(made("", { agents: [agent("a"), agent("b")], serve: { agent: "a" } }).agent, "a")
    assert.strictEqual(made("", { agents: [agent("a")] }).agent, "a")
    assert.strictEqual(made("", { agents: [agent("a"), agent("b")] }).agent, "assistant")
    const own = made("", { agents: [agent("assistant")] })
    assert.deepStrictEqual(own.config.agents, [agent("assistant")])
  })

  it("an agent's own model is kept unless another is asked for", () => {
    const config = {
      agents: [agent("a", { model: { connection: "own", model: "m" } })],
      providers: [{ name: "own", api: "responses" as const }]
    }
    assert.isUndefined(made("", config).model)
    assert.deepStrictEqual(made("--model own/other", config).model, { connection: "own", model: "other" })
  })

  it("a vendor's connection is made with its own interface and needs its key", () => {
    const openai = made("--model openai/gpt-5-mini")
    has(openai.config.providers, { name: "openai", api: "responses" })
    assert.strictEqual(openai.needsKey, "openai")
    has(openai.keys, { connection: "openai", variable: "OPENAI_API_KEY" })
    const anthropic = made("--model anthropic/claude-sonnet-4-5 --key-env MINE")
    has(anthropic.config.providers, { name: "anthropic", api: "anthropic" })
    has(anthropic.keys, { connection: "anthropic", variable: "MINE" })
  })

  it("another connection needs an endpoint; a vendor's key is not for it", () => {
    assert.include(refused("--model local/m"), "--base-url")
    const local = made("--model local/m --base-url http://127.0.0.1:1/v1")
    has(local.config.providers, {
      name: "local",
      api: "chat-completions",
      baseUrl: "http://127.0.0.1:1/v1"
    })
    assert.isUndefined(local.needsKey)
    const borrowed = made("--model openai/m --base-url https://example.org/v1")
    assert.notInclude(
      borrowed.keys.map(({ connection }) => connection),
      "openai"
    )
  })

  it("what the configuration has wins over what is built in, and is not changed by a flag", () => {
    const config = { providers: [{ name: "script", api: "script" as const, scenario: "/own.json" }] }
    const own = made("--model script/anything", config)
    assert.deepStrictEqual(own.config.providers, config.providers)
    assert.isUndefined(own.scenario)
    const named = { providers: [{ name: "local", api: "responses" as const }] }
    assert.include(refused("--model local/m --base-url https://a.example", named), "already has")
  })

  it("a built-in scenario is chosen by its name; one that is none is refused with the names", () => {
    assert.deepStrictEqual(made("--model script/hello").model, { connection: "script", model: "scripted-hello" })
    assert.deepStrictEqual(made("--model script/scripted-hello").scenario?.id, "hello")
    assert.include(refused("--model script/none"), "demo, hello")
  })

  it("a harness by its key is served bare, with its own model and no limits of an agent [SRV-002]", () => {
    const bare = made("--harness scripted --model demo", { agents: [agent("a")] })
    assert.isTrue(bare.isBare)
    assert.deepStrictEqual(bare.model, { connection: "scripted", model: "demo" })
    const carrier = bare.config.agents?.find(({ id }) => id === bare.agent)
    assert.deepStrictEqual(carrier?.harness, { id: "scripted", access: "native" })
    assert.isFalse(made("--harness native", { agents: [agent("a")] }).isBare)
    assert.strictEqual(made("--harness native", { agents: [agent("a")] }).agent, "assistant")
    assert.match(refused("--harness nothing"), /there are native, .*scripted/u)
  })

  it("an agent of another harness is served with it", () => {
    const foreign = agent("f", { harness: { id: "scripted", access: "native" } })
    const { agent: id, isBare, keys, model } = made("--agent f --model hello", { agents: [foreign] })
    assert.deepStrictEqual([id, isBare, model, keys], ["f", false, { connection: "scripted", model: "hello" }, []])
    assert.include(refused("--agent a --model hello", { agents: [agent("a")] }), "CONNECTION/MODEL")
  })

  it("all variables that may hold a key are known, so that all are removed [SRV-009, SRV-013]", () => {
    assert.deepStrictEqual(
      keyVariables({ serve: { keys: { local: "LOCAL_KEY" } } }, options("--model a/b --key-env X")),
      ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_KEY", "X"]
    )
  })
})

const permission = (category: string, kinds: ReadonlyArray<string>): Interaction =>
  ({ kind: "permission", category, options: kinds.map((kind) => ({ id: kind, label: kind, kind })) }) as never
const question = (custom: boolean): Interaction =>
  ({ kind: "question", questions: [{ question: "?", options: [{ label: "a" }], custom }] }) as never

describe("the policies of --approve", () => {
  it("follow the table [HDL-030, HDL-033]", () => {
    const decisionOf = (mode: "ask" | "never" | "reads" | "all", interaction: Interaction): string | undefined => {
      const made = decideBy(mode)(interaction)
      return made === undefined ? undefined : "decision" in made ? made.decision : "answers"
    }
    const kinds = ["allow_once", "allow_always", "reject_once"]
    for (const category of ["read", "write_local", "exec", "network", "external"]) {
      const ask = permission(category, kinds)
      assert.isUndefined(decisionOf("ask", ask))
      assert.strictEqual(decisionOf("never", ask), "deny")
      assert.strictEqual(decisionOf("reads", ask), category === "read" ? "allow_once" : "deny")
      assert.strictEqual(decisionOf("all", ask), "allow_once")
    }
  })

  it("nothing is allowed when allowing once is not offered [HDL-032]", () => {
    assert.deepStrictEqual(decideBy("all")(permission("exec", ["allow_always", "reject_once"])), {
      decision: "deny",
      origin: "policy"
    })
  })

  it("without any options a plain yes is given [HDL-032]", () => {
    assert.deepStrictEqual(decideBy("all")(permission("exec", [])), { decision: "allow_once", origin: "policy" })
  })

  it("a question is left unanswered; one without free text is rejected", () => {
    assert.deepStrictEqual(decideBy("all")(question(true)), { answers: [["Unanswered"]], origin: "policy" })
    assert.deepStrictEqual(decideBy("never")(question(false)), { answers: null, origin: "policy" })
    assert.isUndefined(decideBy("ask")(question(true)))
  })
})
