import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { configure } from "../../src/command/Configuration.ts"
import { flagNames, readCommandLine } from "../../src/command/Flags.ts"
import { help } from "../../src/command/Help.ts"

type Preset = Parameters<typeof configure>[2]

const read = (argv: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}, preset?: Preset) =>
  configure(readCommandLine(argv), environment, preset)

const good = (...parts: Parameters<typeof read>) => Result.getOrThrow(read(...parts))
const problems = (...parts: Parameters<typeof read>): ReadonlyArray<string> => {
  const result = read(...parts)
  return Result.isFailure(result) ? result.failure : []
}

const base = ["--harness", "otter"]
const agent = ["--", "otter", "acp"]

describe("what a seat runs with", () => {
  it("comes from the flag, then its variable, then the preset, then the default", () => {
    const preset = {
      format: 1,
      name: "otter",
      command: "tackroom-seat",
      tackroom: {
        agentCommand: ["of-preset", "a b"],
        env: ["KEY"],
        auth: "preset",
        notFoundCodes: [-1],
        listIsComplete: true,
        showThoughts: true,
        whenUnanswerable: "refuse"
      }
    } as const
    const ofPreset = good([], {}, preset)
    assert.deepInclude(ofPreset, {
      harness: "otter",
      command: "of-preset",
      args: ["a b"],
      envNames: ["KEY"],
      auth: "preset",
      notFoundCodes: [-1],
      listIsComplete: true,
      showThoughts: true,
      whenUnanswerable: "refuse",
      livenessSeconds: 30,
      idleLivenessSeconds: 60,
      openTimeoutSeconds: 60
    })
    const variables = {
      TACKROOM_SEAT_AGENT_COMMAND: `otter 'a b' --x`,
      TACKROOM_SEAT_ENV: "A, B",
      TACKROOM_SEAT_AUTH: "variable",
      TACKROOM_SEAT_SHOW_THOUGHTS: "false",
      TACKROOM_SEAT_LIVENESS: "10"
    }
    assert.deepInclude(good([], variables, preset), {
      command: "otter",
      args: ["a b", "--x"],
      envNames: ["A", "B"],
      auth: "variable",
      showThoughts: false,
      livenessSeconds: 10
    })
    assert.deepInclude(good(["--auth=flag", "--env", "C", "--liveness", "60", ...agent], variables, preset), {
      command: "otter",
      args: ["acp"],
      envNames: ["C"],
      auth: "flag",
      livenessSeconds: 60
    })
  })

  it("is the harness of the flag where the seat names another, and says so", () => {
    const { harness, names, remarks } = good([...base, ...agent], { OPENRIG_RUNTIME: "dsh" })
    assert.deepStrictEqual([harness, names.runtime], ["otter", "otter"])
    assert.deepStrictEqual(remarks, ["the seat is told to run dsh; --harness otter wins"])
    assert.deepStrictEqual(good(agent, { OPENRIG_RUNTIME: "dsh" }).harness, "dsh")
  })

  it("puts the declared model where it is told, and never drops it [SEAT-097]", () => {
    const environment = { OPENRIG_MODEL: "large" }
    assert.deepStrictEqual(problems([...base, ...agent], environment), [
      "OPENRIG_MODEL is set and nothing says where it goes: --model-env, --model-flag or --model-config"
    ])
    assert.deepStrictEqual(good([...base, "--model-env", "M", ...agent], environment).modelVariable, {
      variable: "M",
      value: "large"
    })
    assert.deepStrictEqual(good([...base, "--model-flag", "-m", ...agent], environment).args, ["acp", "-m", "large"])
    assert.deepStrictEqual(good([...base, "--model-config", "model", ...agent], environment).modelOption, {
      configId: "model",
      value: "large"
    })
    assert.deepStrictEqual(good([...base, "--model-flag", "-m", ...agent]).args, ["acp"])
    assert.lengthOf(problems([...base, "--model-env", "M", "--model-flag", "-m", ...agent]), 1)
  })

  it("tells every problem at once, and repeats no value [SEAT-004]", () => {
    assert.deepStrictEqual(
      problems([
        "--unknown=secret",
        "stray",
        "--reopen",
        "never",
        "--liveness",
        "99",
        "--idle-liveness=0",
        "--env",
        "KEY=secret",
        "--not-found-code",
        "x",
        "--agent-command",
        "'open",
        "--auth"
      ]),
      [
        "there is no flag --unknown",
        `"stray" belongs to no flag; the agent's command follows --`,
        "--auth needs a value",
        "--harness is missing, and OPENRIG_RUNTIME is not set",
        "--agent-command: a ' is not closed",
        "--env takes the name of a variable, without its value",
        "--not-found-code is a whole number",
        "--reopen is one of auto, resume, load",
        "--liveness is a whole number from 5 to 60",
        "--idle-liveness is a whole number from 1 to 3600"
      ]
    )
    assert.deepStrictEqual(problems(base), ["the agent's command is missing: --agent-command, or its words after --"])
    assert.deepStrictEqual(problems([...base, "--agent-command", "a", "--", "b"]), [
      "the agent's command is given twice: --agent-command and the words after --"
    ])
    assert.deepStrictEqual(problems(["--harness", "a b", ...agent]), [
      "the harness is not a preset's name: 1 to 64 of A-Z a-z 0-9 _ -"
    ])
  })

  it("has every flag in its help", () => {
    for (const name of flagNames) assert.include(help, `--${name}`)
    for (const line of help.split("\n")) assert.isAtMost(line.length, 80, line)
  })
})
