/**
 * files.search, in the runner: lines that hold a text or match a linear-time regular expression.
 *
 * One match per line, its first. Files below a folder are taken in the order of `Walk.ts`, also hidden ones; `.git` folders
 * only when the path leads into one. Symlinks are not followed, binary files and files above the size of files.read are
 * skipped. A `\r` before the `\n` is no part of the line. `column` counts chars from 1. Of a long line 500 chars around the
 * match are shown. `truncated`: limit or time reached, or something that could hold matches was not looked at.
 */
import { setImmediate } from "node:timers/promises"
import { RE2JS } from "re2js"
import { isBinary } from "./FileContent.ts"
import { readAll, readWhole } from "./FilesRead.ts"
import { compileGlob } from "./Glob.ts"
import { limits } from "./Limits.ts"
import { NotRun, named } from "./Refusal.ts"
import type { FilesSearchResult } from "./Results.ts"
import { cutChars } from "./Text.ts"
import { walkFolder } from "./Walk.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

export interface FilesSearchInput {
  readonly pattern: string
  readonly path?: string
  readonly regex?: boolean
  readonly case_sensitive?: boolean
  readonly glob?: string
  readonly context_lines?: number
  readonly limit?: number
}

type Match = FilesSearchResult["matches"][number]
/** The UTF-16 offset of the first match in a line, or -1. */
type Find = (line: string) => number

const compile = (input: FilesSearchInput): Find => {
  const sensitive = input.case_sensitive ?? true
  if (!(input.regex ?? false) && sensitive) return (line) => line.indexOf(input.pattern)
  try {
    const source = (input.regex ?? false) ? input.pattern : RE2JS.quote(input.pattern)
    const compiled = RE2JS.compile(source, sensitive ? 0 : RE2JS.CASE_INSENSITIVE)
    return (line) => {
      const matcher = compiled.matcher(line)
      return matcher.find() ? matcher.start() : -1
    }
  } catch {
    throw new NotRun(
      `the pattern ${named(input.pattern)} is not a regular expression of the supported kind (RE2: no look-around, no back-reference)`
    )
  }
}

/** Checks what can be checked before the call is dispatched. */
export const checkSearch = (input: FilesSearchInput): void => {
  compile(input)
  if (input.glob !== undefined) compileGlob(input.glob)
}

const charsBefore = (line: string, units: number): number => {
  let count = 0
  for (let index = 0; index < units; count += 1) index += (line.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
  return count
}

const lead = 100

/** At most 500 chars of a line, so chosen that the match at `at` is among them. */
const shown = (line: string, at: number): string => {
  if (line.length <= limits.matchChars || at <= limits.matchChars - lead) return cutChars(line, limits.matchChars)
  let from = at - lead
  if (line.charCodeAt(from) >= 0xdc00 && line.charCodeAt(from) <= 0xdfff) from -= 1
  return cutChars(line.slice(from), limits.matchChars)
}

export const filesSearch = async (
  workspace: Workspace,
  path: Resolved,
  input: FilesSearchInput,
  signal: AbortSignal,
  now: () => number
): Promise<FilesSearchResult> => {
  const find = compile(input)
  const selected = input.glob === undefined ? () => true : compileGlob(input.glob)
  const limit = input.limit ?? limits.searchMatchesDefault
  const around = input.context_lines ?? 0
  const deadline = now() + limits.walkMillis
  const matches: Array<Match> = []
  let complete = true
  let lastTurn = now()

  /** Gives the loop a turn, so that a cancel is heard; false when time is over. */
  const goOn = async (): Promise<boolean> => {
    const time = now()
    if (time - lastTurn >= 20) {
      await setImmediate()
      lastTurn = time
    }
    signal.throwIfAborted()
    return time < deadline
  }

  const searchText = async (file: string, content: string): Promise<boolean> => {
    const lines = content.split("\n")
    if (content.endsWith("\n")) lines.pop()
    const line = (index: number): string => {
      const text = lines[index] ?? ""
      return text.endsWith("\r") ? text.slice(0, -1) : text
    }
    for (let index = 0; index < lines.length; index += 1) {
      if (index % 1000 === 0 && !(await goOn())) return false
      const whole = line(index)
      const text = whole.length > limits.searchLineUnits ? whole.slice(0, limits.searchLineUnits) : whole
      if (text !== whole) {
        complete = false
        if (!(await goOn())) return false
      }
      const at = find(text)
      if (at === -1) continue
      if (matches.length === limit) return false
      const context = (from: number, to: number): ReadonlyArray<string> =>
        Array.from({ length: Math.max(0, to - from) }, (_, offset) => cutChars(line(from + offset), limits.matchChars))
      matches.push({
        path: file,
        line: index + 1,
        column: charsBefore(text, at) + 1,
        text: shown(text, at),
        ...(around > 0 && {
          before: context(Math.max(0, index - around), index),
          after: context(index + 1, Math.min(lines.length, index + 1 + around))
        })
      })
    }
    return true
  }

  if (path.kind === "file") {
    const bytes = await readWhole(workspace, path, limits.readFileBytes, signal)
    if (!isBinary(bytes)) complete = (await searchText(path.shown, decoder.decode(bytes))) && complete
    return { matches, truncated: !complete }
  }
  const top = await workspace.openDirectory(path)
  try {
    const end = await walkFolder(
      workspace,
      top,
      { depth: Number.POSITIVE_INFINITY, hidden: true, skipGit: true, now, deadline, signal },
      async ({ name, below, folder, info }) => {
        if (!info.isFile() || !selected(below)) return true
        if (!(await goOn())) return false
        const handle = info.size > limits.readFileBytes ? undefined : await workspace.openEntry(folder, name)
        if (handle === undefined) {
          complete = false
          return true
        }
        try {
          const bytes = await readAll(handle, below, limits.readFileBytes, signal).catch(() => undefined)
          signal.throwIfAborted()
          if (bytes === undefined) complete = false
          if (bytes === undefined || isBinary(bytes)) return true
          return await searchText(path.shown === "." ? below : `${path.shown}/${below}`, decoder.decode(bytes))
        } finally {
          await handle.close()
        }
      }
    )
    return { matches, truncated: !(end.complete && complete) }
  } finally {
    await top.handle.close()
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
