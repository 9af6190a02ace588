/**
 * What passed between the driver and a real agent, as a fixture of the driver's own tests: the frames of one process in
 * order, small, and the same each time the same agent does the same. `packages/sdk/test/acp/programs/replay.ts` plays it.
 *
 * Names of this run (ids, paths, times, counts) become fixed ones; an id keeps its name over all recordings of an agent, so
 * that a conversation which is reopened is the one that was left.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual } from "node:util"
import type { Agent } from "./Agents.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

const folder = fileURLToPath(new URL("../../../packages/sdk/test/acp/recorded/", import.meta.url))

/** Lists and texts of an agent are cut to this; none of ours is as long. */
const longestList = 6
const longestText = 240

/** Names that an agent makes up, and the one that takes the place of the nth of its kind. */
const names: ReadonlyArray<readonly [RegExp, (n: number) => string]> = [
  [
    /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gu,
    (n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`
  ],
  [/\bses_[0-9A-Za-z]{20,}/gu, (n) => `ses_${n}`],
  [/\bmsg[_-][\w-]{10,}/gu, (n) => `msg_${n}`],
  [/\bchatcmpl-[\w-]{10,}/gu, (n) => `chatcmpl-${n}`],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/gu, () => "2026-01-01T00:00:00.000Z"],
  [/PGID: \d+/gu, () => "PGID: 1"]
]

/** Numbers that differ from run to run. */
const counts = /^(?:pid|used|durationMs|timestamp|startTime|.*Tokens|mtime|createdAt|updatedAt)$/u

/** What an agent says when it has nothing else to do, so here or there or not at all. */
const byChance = /prompt-suggestion/u

const isEqual = (before: ReadonlyArray<string>, now: ReadonlyArray<string>): boolean =>
  isDeepStrictEqual(before.toSorted(), now.toSorted())

/** The recorder of one agent's recordings. */
export const makeRecorder = (agent: Agent, places: ReadonlyArray<readonly [path: string, name: string]>) => {
  const known = new Map<string, string>()
  const made = new Map<RegExp, number>()

  const named = (text: string): string => {
    let out = places.reduce((rest, [path, name]) => rest.replaceAll(path, name), text)
    for (const [pattern, name] of names) {
      out = out.replaceAll(pattern, (found) => {
        const before = known.get(found)
        if (before !== undefined) return before
        const n = (made.get(pattern) ?? 0) + 1
        made.set(pattern, n)
        known.set(found, name(n))
        return name(n)
      })
    }
    return out
  }

  const fixed = (value: Json, cut: boolean, key = ""): Json => {
    if (typeof value === "number") return counts.test(key) ? 0 : value
    if (typeof value === "string") {
      const text = named(value)
      return cut && text.length > longestText ? `${text.slice(0, longestText)}…` : text
    }
    if (Array.isArray(value)) {
      const list = value as ReadonlyArray<Json>
      return (cut ? list.slice(0, longestList) : list).map((entry) => fixed(entry, cut))
    }
    if (value === null || typeof value !== "object") return value
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fixed(entry, cut, name)]))
  }

  /** Keeps what `tee.ts` wrote to `file` as the recording of that name. */
  return (file: string, name: string): void => {
    const entries = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "" && !byChance.test(line))
      .map((line) => JSON.parse(line) as { readonly by: "client" | "agent"; readonly line: string })
    const head = { agent: agent.id, package: `${agent.package}@${agent.version}` }
    const lines = entries.map(({ by, line }) => ({ by, frame: fixed(JSON.parse(line) as Json, by === "agent") }))
    const target = join(folder, agent.id, `${name}.jsonl`)
    const recording = [head, ...lines].map((entry) => JSON.stringify(entry))
    // Both sides talk at once: another order of the same frames is chance.
    if (existsSync(target) && isEqual(readFileSync(target, "utf8").trim().split("\n"), recording)) return
    mkdirSync(join(folder, agent.id), { recursive: true })
    writeFileSync(target, `${recording.join("\n")}\n`)
  }
}
