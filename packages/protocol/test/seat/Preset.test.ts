import { assert, describe, it } from "@effect/vitest"
import {
  checkPreset,
  Declaration,
  declarationOf,
  Preset,
  presetCommand,
  PresetRunner,
  splitCommand
} from "@tackroom/protocol/seat"
import { toWire } from "@tackroom/protocol/text"
import { Effect, Result, Schema, Struct } from "effect"

const file = {
  format: 1,
  name: "otter",
  command: "otter-seat --fast",
  maintainer: "somebody",
  runner: true,
  launch_result: true,
  limits: ["none"]
}
const check = (changes: Record<string, unknown>, name = "otter") => {
  const given = Object.entries({ ...file, ...changes }).filter(([, value]) => value !== undefined)
  return checkPreset(Object.fromEntries(given), name)
}
const said = (changes: Record<string, unknown>) =>
  check(changes).problems.map(
    ({ severity, code, path, message }) => `${severity} ${code} ${path.join(".")}: ${message}`
  )

/** Switches that go together are not found by chance. */
const generator = Schema.Struct({
  ...Struct.omit(Preset.fields, ["tackroom", "command", "namesConversation"]),
  command: Schema.Literals(["otter", "otter --a 'b c'"]),
  launchResult: Schema.Literal(true),
  namesConversation: Schema.Literal(false),
  tackroom: Schema.Struct(Struct.omit(PresetRunner.fields, ["model"]))
})
const toFile = toWire(Preset)

describe("a preset", () => {
  it.effect.prop(
    "as its file has it is the preset again",
    [generator],
    ([generated]) =>
      Effect.sync(() => {
        const preset = JSON.parse(JSON.stringify(generated)) as Preset
        const found = checkPreset(JSON.parse(JSON.stringify(toFile(preset))))
        assert.deepStrictEqual(found.preset, preset)
      }),
    { arbitrary: { runs: 40 } }
  )

  it("that is right has no problems, and declares what it says", () => {
    const { preset, problems } = check({
      resume: true,
      tackroom: { agent_command: ["otter", "acp"], env: ["OTTER_KEY"] }
    })
    assert.deepStrictEqual(problems, [])
    if (preset === undefined) assert.fail("no preset")
    assert.deepStrictEqual(preset.tackroom, { agentCommand: ["otter", "acp"], env: ["OTTER_KEY"] })
    assert.deepStrictEqual(declarationOf(preset), {
      runner: true,
      launchResult: true,
      resume: true,
      firstInput: false,
      passesModel: false,
      namesConversation: false
    })
    assert.deepStrictEqual(presetCommand(preset), ["otter-seat", "--fast"])
  })

  it("a declaration recorded before a field existed reads it as false", () => {
    assert.deepStrictEqual(Schema.decodeUnknownSync(Declaration)({ runner: true, launchResult: true }), {
      runner: true,
      launchResult: true,
      resume: false,
      firstInput: false,
      passesModel: false,
      namesConversation: false
    })
  })

  it("tells all its problems at once, each with its place and what was expected", () => {
    assert.deepStrictEqual(said({ format: 2, runner: "yes", command: 7, limits: ["", 3] }), [
      "error preset_invalid format: format is 2, expected 1",
      "error preset_invalid command: command is 7, expected a string of 1 to 4096 bytes or a list of words, the program first",
      'error preset_invalid runner: runner is "yes", expected a boolean',
      'error preset_invalid limits.0: limits.0 is "", expected a string of 1 to 500 characters',
      "error preset_invalid limits.1: limits.1 is 3, expected a string of 1 to 500 characters"
    ])
    assert.isUndefined(check({ format: 2 }).preset)
  })

  it("its switches need each other", () => {
    assert.deepStrictEqual(said({ launch_result: undefined }), [
      "error preset_invalid runner: runner: true needs launch_result: true"
    ])
    assert.deepStrictEqual(said({ runner: undefined, launch_result: false, resume: true }), [
      "error preset_invalid resume: resume: true needs launch_result: true"
    ])
    assert.deepStrictEqual(said({ names_conversation: true }), [
      "error preset_conflict names_conversation: names_conversation: true takes no runner: true"
    ])
    assert.deepStrictEqual(
      said({ runner: false, names_conversation: true }).map((line) => line.slice(0, 43)),
      ["error preset_unsupported names_conversation"]
    )
  })

  it("a key nobody knows is a warning, and an error when it is a mistyped one", () => {
    assert.deepStrictEqual(said({ colour: "red" }), [
      "warning preset_invalid colour: colour is not a key of a preset and has no effect"
    ])
    assert.deepStrictEqual(said({ runer: true }), ["error preset_invalid runer: runer is not a key; runner is"])
    assert.deepStrictEqual(said({ tackroom: { enw: [] } }), [
      "error preset_invalid tackroom.enw: tackroom.enw is not a key; env is"
    ])
    assert.deepStrictEqual(said({ constructor: 1 }).length, 1)
  })

  it("without a maintainer or, as a runner, without its limits it is doubtful", () => {
    assert.deepStrictEqual(
      check({ maintainer: undefined, limits: undefined }).problems.map(({ severity, path }) => [severity, ...path]),
      [
        ["warning", "maintainer"],
        ["warning", "limits"]
      ]
    )
    assert.isDefined(check({ maintainer: undefined, limits: undefined }).preset)
    assert.deepStrictEqual(said({ runner: false, launch_result: undefined, limits: undefined }), [])
  })

  it("is called as its file is, and its model goes one way", () => {
    assert.strictEqual(check({}, "badger").problems[0]?.path.join("."), "name")
    assert.strictEqual(
      check({ tackroom: { model: { env: "M", flag: "--model" } } }).problems[0]?.expected,
      "exactly one of env, flag and config_option"
    )
    assert.strictEqual(checkPreset([file]).problems[0]?.message, "a preset is a list, expected a mapping")
  })
})

describe("a command line", () => {
  it("is split on blanks with quotes, and nothing is expanded", () => {
    const words = (text: string) => Result.getOrElse(splitCommand(text), (failure) => [`! ${failure}`])
    assert.deepStrictEqual(words(`otter  --say 'a "b" $HOME' "c\\"d \\e" f\\ g ''`), [
      "otter",
      "--say",
      'a "b" $HOME',
      'c"d \\e',
      "f g",
      ""
    ])
    assert.deepStrictEqual(words("otter 'a"), ["! a ' is not closed"])
    assert.deepStrictEqual(words("otter \\"), ["! a backslash at the end escapes nothing"])
    assert.deepStrictEqual(words("  "), ["! there is no program"])
    assert.deepStrictEqual(words("'' x"), ["! there is no program"])
  })
})
