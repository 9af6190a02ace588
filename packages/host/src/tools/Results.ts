/**
 * What the runner's tools return, one schema per tool, with the table of bounds beside it.
 *
 * Owns the results' form and size (AGT-155: the host decodes what the runner says with these before it believes it) and the
 * limits of run-protocol.md section 20. Wire keys are snake_case: results are free JSON to every face. The runner imports
 * types only.
 */
import { Exit, Schema } from "effect"
import { limits } from "./Limits.ts"

/** AGT-065: the tools that run in the runner. */
const runnerTools = ["files.read", "files.list", "files.search", "files.write", "files.edit", "shell.run"] as const
export type RunnerTool = (typeof runnerTools)[number]

export const isRunnerTool = (name: string): name is RunnerTool => runnerTools.some((tool) => tool === name)

const text = (max: number) => Schema.String.check(Schema.isMaxLength(max))
const path = text(limits.pathChars)
const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** files.read. Lines are counted from 1; `base64` results have no line numbers. */
export const FilesReadResult = Schema.Struct({
  path,
  content: text(limits.readChars * 4),
  start_line: Schema.optionalKey(count),
  end_line: Schema.optionalKey(count),
  total_lines: Schema.optionalKey(count),
  bytes: count,
  sha256: digest,
  truncated: Schema.Boolean
})

/** files.list. `bytes` is the size of the entry itself. */
export const FilesListResult = Schema.Struct({
  entries: Schema.Array(
    Schema.Struct({
      path,
      type: Schema.Literals(["file", "dir", "symlink", "other"]),
      bytes: count,
      modified_at: text(40)
    })
  ).check(Schema.isMaxLength(limits.listEntries)),
  truncated: Schema.Boolean
})

const line = text(limits.matchChars * 2)
const context = Schema.Array(line).check(Schema.isMaxLength(limits.contextLines))

/** files.search. `line` and `column` (in chars) are counted from 1; one match per line. */
export const FilesSearchResult = Schema.Struct({
  matches: Schema.Array(
    Schema.Struct({
      path,
      line: count,
      column: count,
      text: line,
      before: Schema.optionalKey(context),
      after: Schema.optionalKey(context)
    })
  ).check(Schema.isMaxLength(limits.searchMatches)),
  truncated: Schema.Boolean
})

export const FilesWriteResult = Schema.Struct({ path, bytes: count, sha256: digest, created: Schema.Boolean })

export const FilesEditResult = Schema.Struct({ path, replacements: count, sha256: digest })

/** shell.run as the runner ends it: the captured output went ahead as deltas. */
export const ShellEnd = Schema.Struct({
  exit_code: Schema.NullOr(Schema.Int),
  signal: Schema.optionalKey(text(32)),
  timed_out: Schema.Boolean,
  duration_ms: count,
  stdout_bytes: count,
  stderr_bytes: count
})

/** shell.run as it is journaled: `stdout` and `stderr` hold what was captured, `…_bytes` what was written in all. */
export const ShellResult = Schema.Struct({ ...ShellEnd.fields, stdout: Schema.String, stderr: Schema.String })

/** AGT-064: what the caller journals as `file-diff`. `oldText` is left out for a new, a binary and a very large old file. */
export const FileDiff = Schema.Struct({
  path,
  oldText: Schema.optionalKey(text(limits.diffOldBytes)),
  newText: text(limits.editFileBytes)
})

export type FilesReadResult = typeof FilesReadResult.Type
export type FilesListResult = typeof FilesListResult.Type
export type FilesSearchResult = typeof FilesSearchResult.Type
export type FilesWriteResult = typeof FilesWriteResult.Type
export type FilesEditResult = typeof FilesEditResult.Type
export type ShellEnd = typeof ShellEnd.Type
export type ShellResult = typeof ShellResult.Type
export type FileDiff = typeof FileDiff.Type

interface Outputs {
  readonly "files.read": FilesReadResult
  readonly "files.list": FilesListResult
  readonly "files.search": FilesSearchResult
  readonly "files.write": FilesWriteResult
  readonly "files.edit": FilesEditResult
  readonly "shell.run": ShellResult
}

/** What a call returns: the output as it is journaled, and for files.write and files.edit the material of a `file-diff`. */
export type ToolResult = {
  readonly [T in RunnerTool]: { readonly tool: T; readonly output: Outputs[T]; readonly diff?: FileDiff }
}[RunnerTool]

const decoders: Readonly<Record<RunnerTool, (output: unknown) => Exit.Exit<ToolResult["output"], unknown>>> = {
  "files.read": Schema.decodeUnknownExit(FilesReadResult),
  "files.list": Schema.decodeUnknownExit(FilesListResult),
  "files.search": Schema.decodeUnknownExit(FilesSearchResult),
  "files.write": Schema.decodeUnknownExit(FilesWriteResult),
  "files.edit": Schema.decodeUnknownExit(FilesEditResult),
  "shell.run": Schema.decodeUnknownExit(ShellResult)
}

/** An output in the form of its tool's schema, or undefined. */
export const decodeResult = (tool: RunnerTool, output: unknown, diff?: FileDiff): ToolResult | undefined => {
  const decoded = decoders[tool](output)
  if (!Exit.isSuccess(decoded)) return undefined
  return { tool, output: decoded.value, ...(diff !== undefined && { diff }) } as ToolResult
}
