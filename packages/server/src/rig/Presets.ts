/**
 * Presets as files: YAML 1.2 read strictly, every problem with its line and column. What a preset may say is decided by
 * `checkPreset` of the protocol.
 */
import {
  checkPreset,
  type Preset,
  PresetConflict,
  PresetInvalid,
  PresetNotFound,
  type PresetProblem,
  PresetUnsupported,
  seatLimits
} from "@tackroom/protocol/seat"
import { Result } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { isScalar, isSeq, LineCounter, isMap, type Node, type Pair, parseDocument } from "yaml"

/** A problem of a file with its place. */
export interface PlacedProblem extends PresetProblem {
  readonly file: string
  readonly line: number
  readonly column: number
}

export interface PresetReading {
  readonly preset: Preset | undefined
  readonly problems: ReadonlyArray<PlacedProblem>
}

const extension = ".yaml"

/** A problem as one line. */
export const problemLine = ({ file, line, column, message }: PlacedProblem): string =>
  `${path.basename(file)}:${line}:${column} ${message}`

const fileProblem = (file: string, message: string, at = { line: 1, col: 1 }): PlacedProblem => ({
  file,
  line: at.line,
  column: at.col,
  severity: "error",
  code: "preset_invalid",
  path: [],
  expected: "a preset",
  got: "something else",
  message
})

/** Offset of the deepest key of a path that the file has; a missing field is where its mapping begins. */
const offsetOf = (root: Node | null, steps: ReadonlyArray<string | number>): number => {
  let node: unknown = root
  let offset = root?.range?.[0] ?? 0
  for (const step of steps) {
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      if (pair === undefined) return offset
      if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      const item = node.items[Number(step)] as Node | undefined
      if (item === undefined) return offset
      offset = item.range?.[0] ?? offset
      node = item
    } else return offset
  }
  return offset
}

/** Checks the text of a preset file. */
export const readPresetText = (file: string, text: string): PresetReading => {
  if (Buffer.byteLength(text) > seatLimits.presetBytes) {
    return { preset: undefined, problems: [fileProblem(file, `a preset has at most ${seatLimits.presetBytes} bytes`)] }
  }
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    version: "1.2",
    schema: "core",
    strict: true,
    uniqueKeys: true,
    customTags: null,
    // Silent would also keep quiet about a second document.
    logLevel: "error"
  })
  const faults = [...document.errors, ...document.warnings]
  if (faults.length > 0) {
    const problems = faults.map(({ code, message, pos }) =>
      fileProblem(
        file,
        code === "MULTIPLE_DOCS"
          ? "a preset is one YAML document, and another one begins here"
          : (message.split("\n")[0] ?? message).replace(/ at line \d+.*$/u, ""),
        lines.linePos(pos[0])
      )
    )
    return { preset: undefined, problems }
  }
  // A value that holds itself, or grows without end, is found out here: a preset has no use for either.
  const value = Result.try((): unknown => JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 20 }) ?? null)))
  if (Result.isFailure(value)) {
    return { preset: undefined, problems: [fileProblem(file, "its aliases (*name) repeat too much, or without end")] }
  }
  const checked = checkPreset(value.success, path.basename(file, extension))
  return {
    preset: checked.preset,
    problems: checked.problems.map((problem) => {
      const { line, col } = lines.linePos(offsetOf(document.contents, problem.path))
      return { ...problem, file, line, column: col }
    })
  }
}

/** Checks a preset file. */
export const readPresetFile = (file: string): PresetReading => {
  try {
    const stat = fs.statSync(file)
    if (!stat.isFile()) return { preset: undefined, problems: [fileProblem(file, "it is no file")] }
    if (stat.size > seatLimits.presetBytes) {
      const message = `a preset has at most ${seatLimits.presetBytes} bytes`
      return { preset: undefined, problems: [fileProblem(file, message)] }
    }
    return readPresetText(file, fs.readFileSync(file, "utf8"))
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
    return {
      preset: undefined,
      problems: [
        {
          ...fileProblem(file, code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`),
          code: "preset_not_found"
        }
      ]
    }
  }
}

/** Where a preset of this name is. */
export const presetFile = (folder: string, name: string): string => path.join(folder, `${name}${extension}`)

/** Finds a preset by its name, with the warnings of its file. */
export const findPreset = (
  folder: string,
  name: string
):
  | { readonly preset: Preset; readonly warnings: ReadonlyArray<string> }
  | PresetNotFound
  | PresetInvalid
  | PresetConflict
  | PresetUnsupported => {
  const { preset, problems } = readPresetFile(presetFile(folder, name))
  if (preset !== undefined) return { preset, warnings: problems.map(problemLine) }
  const errors = problems.filter(({ severity }) => severity === "error")
  const fields = { preset: name, problems: errors.map(problemLine) }
  if (errors.some(({ code }) => code === "preset_not_found")) return new PresetNotFound(fields)
  if (errors.every(({ code }) => code === "preset_conflict")) return new PresetConflict(fields)
  return errors.every(({ code }) => code === "preset_unsupported")
    ? new PresetUnsupported(fields)
    : new PresetInvalid(fields)
}
