/**
 * A tool call in few words: what it is given and what came of it. Pure.
 *
 * It knows the native tools; any other tool shows its arguments as JSON. Everything it returns is one safe line.
 */
import type { Schema } from "effect"
import { count, oneLine } from "./Style.ts"

type Fields = { readonly [name: string]: unknown }

const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)
const list = (value: unknown): ReadonlyArray<unknown> | undefined => (Array.isArray(value) ? value : undefined)

/** The fields that say most, in this order. */
const telling = ["command", "path", "pattern", "url", "query", "question"] as const

/** The arguments of a call in brief. */
export const briefArguments = (input: Schema.Json | undefined): string => {
  if (input === undefined) return ""
  const given = fields(input)
  const main = telling.map((name) => text(given[name])).find((value) => value !== undefined)
  if (main === undefined) return oneLine(JSON.stringify(input))
  const where = text(given["pattern"]) !== undefined ? text(given["path"]) : undefined
  return oneLine(where === undefined ? main : `${main} in ${where}`)
}

const shellEnd = (output: Fields): string => {
  if (output["timed_out"] === true) return "timed out"
  const code = number(output["exit_code"])
  return code === undefined ? `ended by ${text(output["signal"]) ?? "a signal"}` : `exit ${code}`
}

/** What a call returned, in brief; empty when there is nothing to tell. */
export const briefOutput = (tool: string, output: unknown): string => {
  const given = fields(output)
  switch (tool) {
    case "files.read": {
      const lines = number(given["total_lines"])
      const bytes = number(given["bytes"])
      if (lines !== undefined) return count(lines, "line")
      return bytes === undefined ? "" : count(bytes, "byte")
    }
    case "files.list": {
      const entries = list(given["entries"])
      return entries === undefined ? "" : count(entries.length, "entry", "entries")
    }
    case "files.search": {
      const matches = list(given["matches"])
      return matches === undefined ? "" : count(matches.length, "match", "matches")
    }
    case "files.write": {
      const bytes = number(given["bytes"])
      const what = given["created"] === true ? "new file" : "replaced"
      return bytes === undefined ? what : `${what}, ${count(bytes, "byte")}`
    }
    case "files.edit": {
      const replacements = number(given["replacements"])
      return replacements === undefined ? "" : count(replacements, "replacement")
    }
    case "shell.run":
      return shellEnd(given)
    case "web.fetch": {
      const status = number(given["status"])
      return status === undefined ? "" : `HTTP ${status}`
    }
    case "web.search": {
      const results = list(given["results"])
      return results === undefined ? "" : count(results.length, "result")
    }
    default:
      return ""
  }
}

/** Whether what a command wrote says that it failed. */
export const failedCommand = (tool: string, output: unknown): boolean =>
  tool === "shell.run" && fields(output)["exit_code"] !== 0

/** The last lines a command wrote, for a person; at most `max`. */
export const commandTail = (output: unknown, max: number): ReadonlyArray<string> => {
  const given = fields(output)
  const written = [text(given["stdout"]) ?? "", text(given["stderr"]) ?? ""].flatMap((stream) =>
    stream
      .split("\n")
      // A progress line is rewritten with carriage returns; its last state is what a terminal would show.
      .map((line) => line.replace(/\r+$/u, "").split("\r").at(-1) ?? "")
      .filter((line) => line.trim() !== "")
  )
  return written.slice(-max)
}
