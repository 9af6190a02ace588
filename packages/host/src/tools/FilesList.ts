/**
 * files.list, in the runner: the entries of a folder and, with `depth`, of those below it, by the order of `Walk.ts`.
 *
 * A glob selects among the entries and does not stop the descent. `truncated`: the limit or the time was reached, or a folder
 * could not be read.
 */
import { compileGlob } from "./Glob.ts"
import { limits } from "./Limits.ts"
import type { FilesListResult } from "./Results.ts"
import { walkFolder } from "./Walk.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

export interface FilesListInput {
  readonly path?: string
  readonly depth?: number
  readonly glob?: string
  readonly hidden?: boolean
  readonly limit?: number
}

/** Checks what can be checked before the call is dispatched. */
export const checkList = (input: FilesListInput): void => {
  if (input.glob !== undefined) compileGlob(input.glob)
}

export const filesList = async (
  workspace: Workspace,
  path: Resolved,
  input: FilesListInput,
  signal: AbortSignal,
  now: () => number
): Promise<FilesListResult> => {
  const matches = input.glob === undefined ? () => true : compileGlob(input.glob)
  const limit = input.limit ?? limits.listEntriesDefault
  const entries: Array<FilesListResult["entries"][number]> = []
  const top = await workspace.openDirectory(path)
  try {
    const end = await walkFolder(
      workspace,
      top,
      {
        depth: input.depth ?? 1,
        hidden: input.hidden ?? false,
        skipGit: false,
        now,
        deadline: now() + limits.walkMillis,
        signal
      },
      async ({ below, info }) => {
        if (!matches(below)) return true
        if (entries.length === limit) return false
        entries.push({
          path: path.shown === "." ? below : `${path.shown}/${below}`,
          type: info.isFile() ? "file" : info.isDirectory() ? "dir" : info.isSymbolicLink() ? "symlink" : "other",
          bytes: info.size,
          modified_at: info.mtime.toISOString()
        })
        return true
      }
    )
    return { entries, truncated: !end.complete }
  } finally {
    await top.handle.close()
  }
}
