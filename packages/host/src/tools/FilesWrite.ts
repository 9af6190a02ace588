/**
 * files.write and files.edit, in the runner: a file is replaced as a whole or not at all (AGT-062).
 *
 * The new content goes to a new file in the target's directory, is flushed, takes the target's mode, and replaces it by rename.
 * A symlink was followed when the path was resolved, so its target is replaced. Changes to one file are taken one after
 * another within this runner, so that no two edits lose each other. What becomes of the content is `FileChange.ts`.
 */
import { randomUUID } from "node:crypto"
import { constants, type Stats } from "node:fs"
import { access, lstat, open, rename, unlink } from "node:fs/promises"
import { basename } from "node:path"
import {
  type Changed,
  type ClientPart,
  editChange,
  type FilesEditInput,
  type FilesWriteInput,
  writeChange
} from "./FileChange.ts"
import { readWhole } from "./FilesRead.ts"
import { limits } from "./Limits.ts"
import { errnoOf, Failed, fileFailure, named } from "./Refusal.ts"
import type { FilesEditResult, FilesWriteResult } from "./Results.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

const queues = new Map<string, Promise<unknown>>()

/** Runs `change` when the changes of the same file before it are done. */
const alone = async <A>(real: string, change: () => Promise<A>): Promise<A> => {
  const before = queues.get(real) ?? Promise.resolve()
  const mine = before.then(change, change)
  queues.set(real, mine)
  try {
    return await mine
  } finally {
    if (queues.get(real) === mine) queues.delete(real)
  }
}

/** Writes `content` beside the target, flushed and with its mode, and moves it over the target. */
const replace = async (
  workspace: Workspace,
  path: Resolved,
  content: Uint8Array,
  createDirs: boolean,
  signal: AbortSignal
): Promise<void> => {
  const folder = await workspace.openParent(path, createDirs)
  const target = folder.at(basename(path.real))
  const name = `.tackroom-${randomUUID()}.tmp`
  const fresh = folder.at(name)
  let made = false
  try {
    const old = await lstat(target).catch((cause: unknown) => {
      if (errnoOf(cause) === "ENOENT") return undefined
      throw cause
    })
    if (old !== undefined) await checkTarget(path, target, old)
    const handle = await open(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666)
    made = true
    try {
      await workspace.verify(handle, folder, name, path.given)
      await handle.writeFile(content)
      if (old !== undefined) {
        const now = await handle.stat()
        if (now.uid !== old.uid || now.gid !== old.gid) {
          await handle.chown(old.uid, old.gid).catch((cause: unknown) => {
            // Only root may give a file away; the mode is what is promised.
            if (errnoOf(cause) !== "EPERM") throw cause
          })
        }
        await handle.chmod(old.mode & 0o7777)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    signal.throwIfAborted()
    await rename(fresh, target)
    made = false
    // The rename itself is flushed where directories can be; the content already is.
    await folder.handle.sync().catch(() => undefined)
  } catch (cause) {
    if (made) await unlink(fresh).catch(() => undefined)
    if (signal.aborted) throw cause
    throw fileFailure(path.given, cause)
  } finally {
    await folder.handle.close()
  }
}

const checkTarget = async (path: Resolved, target: string, old: Stats): Promise<void> => {
  if (old.isDirectory()) throw new Failed(`${named(path.given)} is a directory`)
  if (!old.isFile())
    throw new Failed(`${named(path.given)} is a symlink, device, pipe or socket by now; nothing was written`)
  await access(target, constants.W_OK)
}

export const filesWrite = (
  workspace: Workspace,
  path: Resolved,
  input: FilesWriteInput,
  signal: AbortSignal,
  client: ClientPart = {}
): Promise<Changed<FilesWriteResult>> =>
  alone(path.real, async () => {
    signal.throwIfAborted()
    // Whether it exists is looked at now: a call before this one may have made it.
    const now = await workspace.resolve(path.given)
    if (now.real !== path.real) throw new Failed(`${named(path.given)} changed; nothing was written`)
    if (now.kind === "dir") throw new Failed(`${named(path.given)} is a directory`)
    const held = client.old === undefined ? undefined : Buffer.from(client.old, "utf8")
    const old =
      held ?? (now.kind === "missing" ? undefined : await oldBytes(workspace, now, input.expect_sha256, signal))
    const { content, diff, output } = writeChange(path, input, old, now.kind === "missing")
    if (client.takes !== true) await replace(workspace, now, content, input.create_dirs ?? true, signal)
    return { output, diff }
  })

/** The old content where it is needed: for the digest always, else only when it is small enough for a diff. */
const oldBytes = async (
  workspace: Workspace,
  path: Resolved,
  expected: string | undefined,
  signal: AbortSignal
): Promise<Buffer | undefined> => {
  if (expected !== undefined) return readWhole(workspace, path, limits.readFileBytes, signal)
  const info = await lstat(path.real)
  if (info.size > limits.diffOldBytes) return undefined
  return readWhole(workspace, path, limits.diffOldBytes * 2, signal).catch((cause: unknown) => {
    // A file that may be written but not read has no old text.
    if (cause instanceof Failed) return undefined
    throw cause
  })
}

export const filesEdit = (
  workspace: Workspace,
  path: Resolved,
  input: FilesEditInput,
  signal: AbortSignal,
  client: ClientPart = {}
): Promise<Changed<FilesEditResult>> =>
  alone(path.real, async () => {
    signal.throwIfAborted()
    const old =
      client.old === undefined
        ? await readWhole(workspace, path, limits.editFileBytes, signal)
        : Buffer.from(client.old, "utf8")
    const { content, diff, output } = editChange(path, input, old)
    if (client.takes !== true) await replace(workspace, path, content, false, signal)
    return { output, diff }
  })
