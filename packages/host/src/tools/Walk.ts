/**
 * Walking a folder of the workspace for files.list and files.search, in the runner.
 *
 * Order: breadth first, names sorted by code unit, so that a cut result shows the upper levels. Symlinks are reported and never
 * followed; `state_dir` is not there; names that are not UTF-8 are left out. Without `hidden`, names that begin with a dot
 * are skipped; with `skipGit`, folders called `.git` are. Nothing else is ignored: no ignore file is read.
 *
 * Each folder is entered through the open folder above it, so that an exchange for a symlink leads nowhere. Folders that went
 * away or may not be read are counted, not raised. Ends at the deadline and on the signal, which are looked at per folder
 * and, by the caller, per file.
 */
import type { Stats } from "node:fs"
import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import type { Directory, Workspace } from "./Workspace.ts"

export interface WalkOptions {
  readonly depth: number
  readonly hidden: boolean
  readonly skipGit: boolean
  readonly now: () => number
  readonly deadline: number
  readonly signal: AbortSignal
}

export interface Entry {
  readonly name: string
  /** Below the walked folder. */
  readonly below: string
  readonly folder: Directory
  readonly info: Stats
}

export interface WalkEnd {
  /** False when something was left out: the visitor stopped, time was over, or a folder could not be read. */
  readonly complete: boolean
}

interface Pending {
  readonly path: ReadonlyArray<string>
  readonly depth: number
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Walks below `top`. The visitor returns false to stop. */
export const walkFolder = async (
  workspace: Workspace,
  top: Directory,
  options: WalkOptions,
  visit: (entry: Entry) => Promise<boolean>
): Promise<WalkEnd> => {
  let complete = true
  let level: Array<Pending> = [{ path: [], depth: 1 }]
  while (level.length > 0) {
    const next: Array<Pending> = []
    for (const pending of level) {
      options.signal.throwIfAborted()
      if (options.now() >= options.deadline) return { complete: false }
      const folder = await descend(workspace, top, pending.path)
      if (folder === undefined) {
        complete = false
        continue
      }
      try {
        const names = await readdir(folder.path).catch(() => undefined)
        if (names === undefined) {
          complete = false
          continue
        }
        for (const name of names.toSorted(byName)) {
          if (!options.hidden && name.startsWith(".")) continue
          if (workspace.isDenied(join(folder.real, name))) continue
          const info = await lstat(folder.at(name)).catch(() => undefined)
          if (info === undefined) continue
          if (options.skipGit && name === ".git" && info.isDirectory()) continue
          const path = [...pending.path, name]
          if (!(await visit({ name, below: path.join("/"), folder, info }))) return { complete: false }
          if (info.isDirectory() && pending.depth < options.depth) next.push({ path, depth: pending.depth + 1 })
          if (options.now() >= options.deadline) return { complete: false }
        }
      } finally {
        if (folder !== top) await folder.handle.close()
      }
    }
    level = next
  }
  return { complete }
}

const descend = async (
  workspace: Workspace,
  top: Directory,
  path: ReadonlyArray<string>
): Promise<Directory | undefined> => {
  let current = top
  for (const name of path) {
    const entered: Directory | undefined = await workspace.enter(current, name)
    if (current !== top) await current.handle.close()
    if (entered === undefined) return undefined
    current = entered
  }
  return current
}
