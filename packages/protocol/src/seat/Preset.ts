/**
 * The preset of a seat's program (seat contract, section 3), after its file was parsed: YAML is the reader's business,
 * what a preset may say is decided here.
 *
 * `checkPreset` tells every problem at once, as paths into the file, and gives the preset when none of them is an error.
 * What a launch keeps of it is its {@link Declaration}.
 *
 * @since 0.1.0
 */
import { Effect, Result, Schema, SchemaAST, SchemaParser } from "effect"
import { fieldIssues } from "../internal/Issues.ts"
import { lazySchema, memoised } from "../internal/Lazy.ts"
import { bytes, chars, list, optional } from "../run/Bounds.ts"
import { editDistance } from "../text/EditDistance.ts"
import { fromWire, toWireName } from "../text/WireNames.ts"
import { splitCommand } from "./CommandWords.ts"
import { PresetName } from "./Names.ts"

/** Name of an environment variable. */
const Variable = Schema.String.check(
  Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/u, { expected: "the name of an environment variable" })
)

const Word = bytes(1, 4096)
const Argument = bytes(0, 4096)

/** A program and its arguments. */
const Words = Schema.TupleWithRest(Schema.Tuple([Word]), [Argument]).annotate({
  expected: "a list of words, the program first"
})

/** Where `tackroom-seat` puts the declared model: exactly one of three. @since 0.1.0 */
export const PresetModel = lazySchema(() =>
  Schema.Struct({ env: optional(Variable), flag: optional(Word), configOption: optional(Word) })
    .check(
      Schema.makeFilter((model: object) => Object.keys(model).length === 1, {
        expected: "exactly one of env, flag and config_option",
        toJsonSchema: () => ({ minProperties: 1, maxProperties: 1 })
      })
    )
    .annotate({ identifier: "PresetModel" })
)
/** @since 0.1.0 */
export type PresetModel = typeof PresetModel.Type

/** What `tackroom-seat` reads of a preset; the service reads `env` alone. @since 0.1.0 */
export const PresetRunner = lazySchema(() =>
  Schema.Struct({
    agentCommand: optional(Words),
    env: optional(list(Variable, 100)),
    auth: optional(chars(1, 200)),
    model: optional(PresetModel),
    listIsComplete: optional(Schema.Boolean),
    notFoundCodes: optional(list(Schema.Int, 20, 1)),
    showThoughts: optional(Schema.Boolean),
    whenUnanswerable: optional(Schema.Literals(["permit", "refuse"]))
  }).annotate({ identifier: "PresetRunner" })
)
/** @since 0.1.0 */
export type PresetRunner = typeof PresetRunner.Type

interface Switches {
  readonly runner?: boolean
  readonly launchResult?: boolean
  readonly resume?: boolean
  readonly namesConversation?: boolean
}

/** What binds several fields of a preset: which of them is wrong and how, in the words of the file. */
const conflicts: ReadonlyArray<{
  readonly field: keyof Switches
  readonly expected: string
  readonly code: "preset_invalid" | "preset_conflict" | "preset_unsupported"
  readonly when: (preset: Switches) => boolean
}> = [
  {
    field: "runner",
    expected: "launch_result: true",
    code: "preset_invalid",
    when: ({ runner, launchResult }) => runner === true && launchResult !== true
  },
  {
    field: "resume",
    expected: "launch_result: true",
    code: "preset_invalid",
    when: ({ resume, launchResult }) => resume === true && launchResult !== true
  },
  {
    field: "namesConversation",
    expected: "no runner: true",
    code: "preset_conflict",
    when: ({ namesConversation, runner }) => namesConversation === true && runner === true
  },
  {
    field: "namesConversation",
    expected: "false; no service here lets a preset name the conversation",
    code: "preset_unsupported",
    when: ({ namesConversation, runner }) => namesConversation === true && runner !== true
  }
]

const needsLaunchResult = (field: string) => ({
  anyOf: [
    { properties: { [field]: { const: false } } },
    { properties: { launchResult: { const: true } }, required: ["launchResult"] }
  ]
})

/** A preset. In its file names are snake_case; see {@link checkPreset}. @since 0.1.0 */
export const Preset = lazySchema(() =>
  Schema.Struct({
    format: Schema.Literal(1),
    name: PresetName,
    command: Schema.Union([Word, Words]),
    maintainer: optional(chars(1, 200)),
    runner: optional(Schema.Boolean),
    launchResult: optional(Schema.Boolean),
    resume: optional(Schema.Boolean),
    firstInput: optional(Schema.Boolean),
    passesModel: optional(Schema.Boolean),
    namesConversation: optional(Schema.Boolean),
    limits: optional(list(chars(1, 500), 50)),
    tackroom: optional(PresetRunner)
  })
    .check(
      Schema.makeFilter((preset: Switches) => !conflicts.some(({ when }) => when(preset)), {
        expected: "a preset whose switches go together",
        toJsonSchema: () => ({
          allOf: [
            needsLaunchResult("runner"),
            needsLaunchResult("resume"),
            { properties: { namesConversation: { const: false } } }
          ]
        })
      })
    )
    .annotate({ identifier: "Preset" })
)
/** @since 0.1.0 */
export type Preset = typeof Preset.Type

const switchedOff = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

/**
 * What a preset declares at the moment of a launch, frozen for its occupant. A launch recorded before a field existed
 * reads it as false.
 *
 * @since 0.1.0
 */
export const Declaration = lazySchema(() =>
  Schema.Struct({
    runner: switchedOff,
    launchResult: switchedOff,
    resume: switchedOff,
    firstInput: switchedOff,
    passesModel: switchedOff,
    namesConversation: switchedOff
  }).annotate({ identifier: "Declaration" })
)
/** @since 0.1.0 */
export type Declaration = typeof Declaration.Type

/** The declaration of a preset. @since 0.1.0 */
export const declarationOf = (preset: Preset): Declaration => ({
  runner: preset.runner ?? false,
  launchResult: preset.launchResult ?? false,
  resume: preset.resume ?? false,
  firstInput: preset.firstInput ?? false,
  passesModel: preset.passesModel ?? false,
  namesConversation: preset.namesConversation ?? false
})

/** The program of a checked preset as separate words. @since 0.1.0 */
export const presetCommand = (preset: Preset): ReadonlyArray<string> =>
  typeof preset.command === "string" ? Result.getOrElse(splitCommand(preset.command), () => []) : preset.command

/** A code of a preset that cannot be used. @since 0.1.0 */
export type PresetCode = "preset_not_found" | "preset_invalid" | "preset_conflict" | "preset_unsupported"

/** Something wrong or doubtful in a preset. @since 0.1.0 */
export interface PresetProblem {
  readonly severity: "error" | "warning"
  readonly code: PresetCode
  /** Where in the file: keys as the file writes them, and indexes. */
  readonly path: ReadonlyArray<string | number>
  readonly expected: string
  /** What stands there, shortened. A preset holds no secrets, but values of `command` are not repeated. */
  readonly got: string
  /** The sentence for a person, without the place. */
  readonly message: string
}

/** What a check found: the preset when no problem is an error. @since 0.1.0 */
export interface PresetCheck {
  readonly preset: Preset | undefined
  readonly problems: ReadonlyArray<PresetProblem>
}

const fileToPreset = fromWire(Preset)
const decodePreset = memoised(() => SchemaParser.decodeUnknownResult(Preset, { errors: "all" }))

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const shown = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (value === null) return "null"
  if (Array.isArray(value)) return "a list"
  if (typeof value === "object") return "a mapping"
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  return `${typeof value === "number" || typeof value === "boolean" ? String(value) : "another value"}`
}

const valueAt = (file: unknown, path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      Array.isArray(value) && typeof key === "number" ? value[key] : isObject(value) ? value[key] : undefined,
    file
  )

/** `tackroom.env[3]` as steps. Field names of a preset hold neither dots nor brackets. */
const stepsOf = (path: string): ReadonlyArray<string | number> =>
  path === ""
    ? []
    : [...path.matchAll(/([^.[\]]+)|\[(\d+)\]/gu)].map((match) =>
        match[2] === undefined ? (match[1] ?? "") : Number(match[2])
      )

const fieldNames = (schema: Schema.Constraint): ReadonlyArray<string> => {
  const { ast } = schema
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => toWireName(String(name))) : []
}

const error = (
  path: ReadonlyArray<string | number>,
  expected: string,
  got: string,
  message?: string,
  code: PresetCode = "preset_invalid"
): PresetProblem => ({
  severity: "error",
  code,
  path,
  expected,
  got,
  message: message ?? `${path.length === 0 ? "a preset" : path.join(".")} is ${got}, expected ${expected}`
})

const warning = (path: ReadonlyArray<string | number>, expected: string, got: string, message: string) =>
  ({ severity: "warning", code: "preset_invalid", path, expected, got, message }) as const

const unknownKeys = (
  mapping: unknown,
  schema: Schema.Constraint,
  path: ReadonlyArray<string>
): ReadonlyArray<PresetProblem> => {
  if (!isObject(mapping)) return []
  const known = fieldNames(schema)
  return Object.keys(mapping)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const near = known
        .map((name) => ({ name, off: editDistance(key, name) }))
        .filter(({ off }) => off <= 2)
        .toSorted((left, right) => left.off - right.off)[0]
      const at = [...path, key]
      return near === undefined
        ? warning(at, "a known key", key, `${at.join(".")} is not a key of a preset and has no effect`)
        : error(at, near.name, key, `${at.join(".")} is not a key; ${near.name} is`)
    })
}

const keyOrder: ReadonlyArray<string> = ["format", "name", "command"]

/**
 * Checks a parsed preset file. `fileName` is the name of the file without `.yaml`, which the preset's name must equal.
 *
 * @since 0.1.0
 */
export const checkPreset = (file: unknown, fileName?: string): PresetCheck => {
  if (!isObject(file)) return { preset: undefined, problems: [error([], "a mapping", shown(file))] }
  const problems: Array<PresetProblem> = [...unknownKeys(file, Preset, [])]
  problems.push(...unknownKeys(file["tackroom"], PresetRunner, ["tackroom"]))
  if (isObject(file["tackroom"])) {
    problems.push(...unknownKeys(file["tackroom"]["model"], PresetModel, ["tackroom", "model"]))
  }
  const decoded = decodePreset()(fileToPreset(file))
  if (Result.isFailure(decoded)) {
    for (const issue of fieldIssues(Preset.ast, decoded.failure, { nameOf: toWireName, limit: 100 })) {
      const path = stepsOf(issue.path)
      // The switches have entries of their own below.
      if (path.length === 0) continue
      problems.push(error(path, issue.expected, shown(valueAt(file, path))))
    }
  }
  const switches = {
    runner: file["runner"] === true,
    launchResult: file["launch_result"] === true,
    resume: file["resume"] === true,
    namesConversation: file["names_conversation"] === true
  }
  for (const { field, expected, code, when } of conflicts) {
    if (!when(switches)) continue
    const key = toWireName(field)
    const verb = code === "preset_invalid" ? "needs" : "takes"
    problems.push(error([key], expected, "true", `${key}: true ${verb} ${expected}`, code))
  }
  if (typeof file["command"] === "string") {
    const words = splitCommand(file["command"])
    if (Result.isFailure(words)) {
      problems.push(error(["command"], "a command line", "another text", `command: ${words.failure}`))
    }
  }
  if (fileName !== undefined && typeof file["name"] === "string" && file["name"] !== fileName) {
    problems.push(error(["name"], `${fileName}, as the file is called`, shown(file["name"])))
  }
  if (file["maintainer"] === undefined) {
    problems.push(warning(["maintainer"], "who maintains it", "nothing", "maintainer is missing: say who to ask"))
  }
  if (file["runner"] === true && file["limits"] === undefined) {
    problems.push(warning(["limits"], "a list", "nothing", "limits is missing: say what the harness does not do"))
  }
  const at = ({ path: [key] }: PresetProblem): number => {
    const order = keyOrder.indexOf(String(key))
    return order < 0 ? keyOrder.length : order
  }
  const failed = problems.some(({ severity }) => severity === "error")
  return {
    preset: Result.isSuccess(decoded) && !failed ? decoded.success : undefined,
    problems: problems.toSorted((left, right) => at(left) - at(right))
  }
}
