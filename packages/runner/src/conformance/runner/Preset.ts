/**
 * Reads the preset of a runner under test, as far as the promises speak of it. Of its own: the check does not take the rig
 * service's word for what a good preset is. Pure.
 */
import { parse } from "effect/encoding/Yaml"
import { isList, isObject, type Json, type JsonObject } from "../Json.ts"

export interface PresetReading {
  /** What is wrong with it, one sentence each. */
  readonly problems: ReadonlyArray<string>
  readonly declared: JsonObject
}

const sizeLimit = 65_536

const booleans = ["runner", "launch_result", "resume", "first_input", "passes_model", "names_conversation"] as const

const isText = (value: Json | undefined, most: number): boolean =>
  typeof value === "string" && value.length >= 1 && Buffer.byteLength(value) <= most

const isWords = (value: Json | undefined): boolean =>
  isList(value) && value.length > 0 && value.every((word) => typeof word === "string" && word !== "")

const keys = ["format", "name", "command", "maintainer", ...booleans, "limits", "tackroom"]

/** Letters to put in, take out or change. */
const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [above, letter] of [...left].entries()) {
    const next = [above + 1]
    for (const [index, other] of [...right].entries()) {
      const change = (row[index] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(change, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** An unknown key has no effect; one that is nearly a known one was meant to have it. */
const misspelt = (preset: JsonObject): ReadonlyArray<string> =>
  Object.keys(preset).flatMap((key) => {
    const near = keys.includes(key) ? undefined : keys.find((known) => distance(key, known) <= 2)
    return near === undefined ? [] : [`${key} is no key, ${near} is`]
  })

const problemsOf = (preset: JsonObject, fileName: string): ReadonlyArray<string> => {
  const problems: Array<string> = [...misspelt(preset)]
  const { command, format, limits, maintainer, name } = preset
  if (format !== 1) problems.push("format is not 1")
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/u.test(name))
    problems.push("name is no preset name")
  else if (`${name}.yaml` !== fileName) problems.push(`name is ${name}, the file is ${fileName}`)
  if (!isText(command, 4_096) && !isWords(command)) problems.push("command is neither a program nor a list of words")
  if (maintainer !== undefined && !isText(maintainer, 200))
    problems.push("maintainer is no text of 1 to 200 characters")
  for (const field of booleans) {
    if (preset[field] !== undefined && typeof preset[field] !== "boolean") problems.push(`${field} is no boolean`)
  }
  if (preset["runner"] === true && preset["launch_result"] !== true)
    problems.push("runner: true needs launch_result: true")
  if (preset["resume"] === true && preset["launch_result"] !== true)
    problems.push("resume: true needs launch_result: true")
  if (preset["runner"] === true && preset["names_conversation"] === true) {
    problems.push("runner and names_conversation exclude each other")
  }
  if (limits !== undefined) {
    const good =
      isList(limits) &&
      limits.length <= 50 &&
      limits.every((limit) => typeof limit === "string" && limit.length >= 1 && limit.length <= 500)
    if (!good) problems.push("limits is no list of at most 50 texts of 1 to 500 characters")
  }
  return problems
}

/** Reads the text of a preset file. */
export const readPreset = (text: string, fileName: string): PresetReading => {
  if (Buffer.byteLength(text) > sizeLimit) return { problems: ["the file is larger than 64 KiB"], declared: {} }
  try {
    const value = parse(text) as Json
    if (!isObject(value)) return { problems: ["the file is no mapping"], declared: {} }
    return { problems: problemsOf(value, fileName), declared: value }
  } catch (cause) {
    return { problems: [`not YAML: ${cause instanceof Error ? cause.message : String(cause)}`], declared: {} }
  }
}
