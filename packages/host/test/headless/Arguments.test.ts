import { assert, describe, it } from "@effect/vitest"
import { parseRun, type RunArguments } from "../../src/faces/headless/Arguments.ts"

const terminal = { stdin: true, stderr: true }
const pipe = { stdin: false, stderr: false }

const understood = (args: ReadonlyArray<string>, terminals = terminal): RunArguments => {
  const parsed = parseRun(args, terminals)
  if (parsed._tag === "Usage") throw new Error(parsed.message)
  return parsed.options
}
const refused = (args: ReadonlyArray<string>, terminals = terminal): string => {
  const parsed = parseRun(args, terminals)
  return parsed._tag === "Usage" ? parsed.message : assert.fail(`understood: ${args.join(" ")}`)
}

describe("the command line of run", () => {
  it("takes one prompt and every flag", () => {
    const flags =
      "--project /p --agent a --model openai/gpt-5-mini --key-env MY_KEY --base-url https://example.com/v1 " +
      "--session ses_1 --state-dir /s --config c.json --approve reads --quiet --run-id r"
    const options = understood([...flags.split(" "), "Do it"])
    assert.deepStrictEqual(options, {
      prompt: "Do it",
      project: "/p",
      agent: "a",
      model: { connection: "openai", model: "gpt-5-mini" },
      keyEnv: "MY_KEY",
      baseUrl: "https://example.com/v1",
      session: "ses_1",
      stateDir: "/s",
      config: "c.json",
      approve: "reads",
      json: false,
      quiet: true,
      runId: "r"
    })
  })

  it("splits the model at the first slash", () => {
    assert.deepStrictEqual(understood(["--model", "local/org/model:7b", "x"]).model, {
      connection: "local",
      model: "org/model:7b"
    })
  })

  it("an unknown flag, a flag without value, a value out of bounds or a second prompt is refused [SRV-001]", () => {
    assert.include(refused(["--modle", "x", "y"]), "--modle")
    refused(["x", "--model"])
    refused(["x", "--model="])
    refused(["--model", "gpt-5-mini", "x"])
    refused(["--model", "openai/", "x"])
    refused(["--approve", "maybe", "x"])
    refused(["--run-id", "r".repeat(257), "x"])
    refused(["--base-url", "ftp://a", "--model", "a/b", "x"])
    refused(["--base-url", "https://user:pw@a", "--model", "a/b", "x"])
    refused(["--base-url", "https://a", "x"])
    assert.include(refused(["one", "two"]), "more than one prompt")
  })

  it("a key in the place of a variable's name is refused without being repeated", () => {
    const message = refused(["--key-env", "sk-secret-key", "--model", "openai/gpt-5-mini", "x"])
    assert.notInclude(message, "sk-secret-key")
  })

  it("caps and filters of a later version are refused by name, never dropped", () => {
    for (const flag of ["--max-rounds=3", "--timeout", "--harness", "--events"]) {
      assert.include(refused([flag, "5", "x"]), "not part of this version")
    }
    assert.strictEqual(understood(["--", "--timeout"]).prompt, "--timeout")
  })

  it("without an argument the prompt comes from stdin, unless that is a terminal [HDL-001]", () => {
    assert.isUndefined(understood([], pipe).prompt)
    assert.isUndefined(understood(["-"], pipe).prompt)
    assert.strictEqual(understood(["-"]).approve, "never")
    assert.include(refused([]), "prompt is missing")
  })

  it("asks on a terminal and refuses without one; ask needs a terminal and no --json [HDL-030]", () => {
    assert.strictEqual(understood(["x"]).approve, "ask")
    assert.strictEqual(understood(["x"], pipe).approve, "never")
    assert.strictEqual(understood(["--json", "x"]).approve, "never")
    assert.strictEqual(understood(["x"], { stdin: true, stderr: false }).approve, "never")
    refused(["--approve", "ask", "--json", "x"])
    refused(["--approve", "ask", "x"], pipe)
  })
})
