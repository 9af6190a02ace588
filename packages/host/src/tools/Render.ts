/**
 * What a model reads of a tool's result (AGT-012, AGT-072): text, at most 100,000 chars, head and tail when longer.
 *
 * Pure. The journal keeps the result itself; this is made from it whenever a request is built, so that the same result
 * always reads the same. Output of a command is folded at carriage returns and cut per stream.
 */
import type { Attachment } from "@tackroom/protocol/events"
import { limits } from "./Limits.ts"
import {
  decodeResult,
  type FilesListResult,
  type FilesReadResult,
  type FilesSearchResult,
  isRunnerTool,
  type ShellResult,
  type ToolResult
} from "./Results.ts"
import { foldCarriageReturns, headAndTail } from "./Text.ts"

/** Cuts any text that goes to the model. */
export const forModel = (text: string): string => headAndTail(text, limits.modelChars)

const endLine = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`)

const renderRead = (result: FilesReadResult): string => {
  const lines =
    result.total_lines === undefined
      ? "base64"
      : result.total_lines === 0
        ? "empty file"
        : `lines ${result.start_line}-${result.end_line} of ${result.total_lines}`
  const cut = result.truncated ? ", more follows" : ""
  return `${result.path} (${lines}, ${result.bytes} bytes, sha256 ${result.sha256}${cut})\n${result.content}`
}

const renderList = (result: FilesListResult): string => {
  const lines = result.entries.map(
    ({ path, type, bytes, modified_at }) =>
      `${type === "dir" ? `${path}/` : path} (${type}, ${bytes} bytes, ${modified_at})`
  )
  if (lines.length === 0) lines.push("no entries")
  if (result.truncated) lines.push("(incomplete: more entries than shown)")
  return lines.join("\n")
}

const renderSearch = (result: FilesSearchResult): string => {
  const lines = result.matches.flatMap(({ path, line, column, text, before = [], after = [] }) => [
    ...before.map((each, index) => `${path}-${line - before.length + index}- ${each}`),
    `${path}:${line}:${column}: ${text}`,
    ...after.map((each, index) => `${path}-${line + 1 + index}- ${each}`)
  ])
  if (lines.length === 0) lines.push("no matches")
  if (result.truncated) lines.push("(incomplete: there may be more matches)")
  return lines.join("\n")
}

const stream = (name: string, text: string, bytes: number): string => {
  if (bytes === 0) return ""
  const folded = headAndTail(foldCarriageReturns(text), limits.shellModelChars)
  const lost = bytes > limits.captureBytes ? ` (${bytes} bytes in all, the first ${limits.captureBytes} kept)` : ""
  return `${name}${lost}:\n${endLine(folded)}`
}

const renderShell = (result: ShellResult): string => {
  const how = result.timed_out
    ? "ended at the time-out"
    : result.exit_code === null
      ? `ended by ${result.signal ?? "a signal"}`
      : `exit code ${result.exit_code}`
  const output =
    stream("stdout", result.stdout, result.stdout_bytes) + stream("stderr", result.stderr, result.stderr_bytes)
  return `${how} after ${result.duration_ms} ms\n${output === "" ? "no output\n" : output}`
}

/** The result in words for the model. */
export const render = (result: ToolResult): string => {
  switch (result.tool) {
    case "files.read":
      return forModel(renderRead(result.output))
    case "files.list":
      return forModel(renderList(result.output))
    case "files.search":
      return forModel(renderSearch(result.output))
    case "files.write":
      return `${result.output.created ? "created" : "wrote"} ${result.output.path} (${result.output.bytes} bytes, sha256 ${result.output.sha256})`
    case "files.edit":
      return `edited ${result.output.path} (${result.output.replacements} replacements, sha256 ${result.output.sha256})`
    case "shell.run":
      return forModel(renderShell(result.output))
  }
}

const plain = (output: unknown): string => (typeof output === "string" ? output : (JSON.stringify(output) ?? "null"))

/** Text and structured content of one answer: the text as text, the rest as JSON. */
const isTextAndMore = (output: unknown): output is { readonly text: string; readonly structured_content: unknown } =>
  typeof output === "object" &&
  output !== null &&
  Object.keys(output).length === 2 &&
  "text" in output &&
  typeof output.text === "string" &&
  "structured_content" in output

const attached = (attachment: Attachment): string => {
  const name = attachment.filename ?? "an attachment"
  if (attachment.type === "inline") return `(${name}, ${attachment.mime}, kept as artifact ${attachment.artifactId})`
  return `(${name}, ${attachment.mime}${attachment.type === "unretained" ? `, ${attachment.bytes} bytes, not kept` : ""})`
}

/**
 * A journaled output in words for the model; one of another tool or form as JSON, a string as it is. What was kept beside
 * it is named (AGT-036).
 */
export const renderOutput = (tool: string, output: unknown, attachments: ReadonlyArray<Attachment> = []): string => {
  const result = isRunnerTool(tool) ? decodeResult(tool, output) : undefined
  if (result !== undefined) return render(result)
  const said = isTextAndMore(output) ? `${output.text}\n${plain(output.structured_content)}` : plain(output)
  const parts = said === "" && attachments.length > 0 ? [] : [said]
  return forModel([...parts, ...attachments.map(attached)].join("\n"))
}
