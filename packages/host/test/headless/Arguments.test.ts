import { assert, describe, it } from "@effect/vitest"
import { parseRun, type RunArguments } from "../../src/faces/headless/Arguments.ts"
import { splitModel, Usage } from "../../src/faces/start/Flags.ts"

const terminal = { stdin: true, stderr: true }
const pipe = { stdin: false, stderr: false }

const understood = (args: ReadonlyArray<string>, terminals = terminal): RunArguments => {
  const parsed = parseRun(args, terminals)
  return parsed instanceof Usage ? assert.fail(parsed.message) : parsed
}
const refused = (args: ReadonlyArray<string>, terminals = terminal): string => {
  const parsed = parseRun(args, terminals)
  return parsed instanceof Usage ? parsed.message : assert.fail(`understood: ${args.join(" ")}`)
}

describe("the command line of run", () => {
  it("takes one prompt and every flag", () => {
    const flags =
      "--project /p --agent a --model openai/gpt-5-mini --key-env MY_KEY --base-url https://example.com/v1 " +
      "--session ses_1 --state-dir /s --config c.json --approve reads --quiet --run-id r --max-rounds 8 --timeout 2.5 " +
      "--events source"
    const options = understood([...flags.split(" "), "Do it"])
    assert.deepStrictEqual(options, {
      prompt: "Do it",
      project: "/p",
      agent: "a",
      harness: undefined,
      model: "openai/gpt-5-mini",
      keyEnv: "MY_KEY",
      baseUrl: "https://example.com/v1",
      session: "ses_1",
      stateDir: "/s",
      config: "c.json",
      maxRounds: 8,
      timeout: 2.5,
      events: "source",
      approve: "reads",
      json: false,
      quiet: true,
      runId: "r"
    })
  })

  it("splits the model at the first slash", () => {
    assert.deepStrictEqual(splitModel("local/org/model:7b"), { connection: "local", model: "org/model:7b" })
    assert.isUndefined(splitModel("/m"))
    assert.isUndefined(splitModel("a/"))
    assert.isUndefined(splitModel(`a/${"m".repeat(129)}`))
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

  it("a cap is an integer, a time a number of seconds; zero and below switch off [SRV-001]", () => {
    for (const [given, cap] of [
      ["3", 3],
      ["0", null],
      ["-1", null]
    ] as const) {
      assert.strictEqual(understood(["--max-rounds", given, "x"]).maxRounds, cap)
      assert.strictEqual(understood([`--max-rounds=${given}`, "x"]).maxRounds, cap)
      assert.strictEqual(understood(["--timeout", given, "x"]).timeout, cap)
    }
    assert.strictEqual(understood(["--timeout", ".5", "x"]).timeout, 0.5)
    for (const bad of ["1.5", "", "many", "1e3", "0x10", "99999999999999999999"]) refused(["--max-rounds", bad, "x"])
    for (const bad of ["2147484", "", "soon", "NaN", "Infinity"]) refused(["--timeout", bad, "x"])
    refused(["--events", "some", "x"])
    assert.strictEqual(understood(["--", "--timeout"]).prompt, "--timeout")
  })

  it("an agent and a harness exclude each other; a foreign harness names its model itself [SRV-001]", () => {
    assert.include(refused(["--agent", "a", "--harness", "scripted", "x"]), "exclude each other")
    assert.strictEqual(understood(["--harness", "scripted", "--model", "demo", "x"]).model, "demo")
    refused(["--harness", "native", "--model", "demo", "x"])
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
