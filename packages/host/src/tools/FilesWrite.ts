/**
 * files.write and files.edit, in the runner: a file is replaced as a whole or not at all (AGT-062).
 *
 * The new content goes to a new file in the target's directory, is flushed, takes the target's mode, and replaces it by rename.
 * A symlink was followed when the path was resolved, so its target is replaced. Changes to one file are taken one after
 * another within this runner, so that no two edits lose each other. Edits work on bytes: what they do not name stays as it
 * is, whatever its encoding and line ends. Each edit sees the file as the one before left it.
 */
import { randomUUID } from "node:crypto"
import { constants, type Stats } from "node:fs"
import { access, lstat, open, rename, unlink } from "node:fs/promises"
import { basename } from "node:path"
import { isBinary, readWhole, sha256 } from "./FilesRead.ts"
import { limits } from "./Limits.ts"
import { errnoOf, Failed, fileFailure, named, NotRun } from "./Refusal.ts"
import type { FileDiff, FilesEditResult, FilesWriteResult } from "./Results.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

export interface FilesWriteInput {
  readonly path: string
  readonly content: string
  readonly create_dirs?: boolean
  readonly expect_sha256?: string
}

export interface FilesEditInput {
  readonly path: string
  readonly edits: ReadonlyArray<{ readonly old: string; readonly new: string; readonly all?: boolean }>
  readonly expect_sha256?: string
}

export interface Changed<R> {
  readonly output: R
  readonly diff: FileDiff
}

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

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return undefined
  }
}

const oldTextOf = (bytes: Buffer | undefined): { readonly oldText?: string } => {
  if (bytes === undefined || bytes.length > limits.diffOldBytes || isBinary(bytes)) return {}
  const text = textOf(bytes)
  return text === undefined ? {} : { oldText: text }
}

const expectDigest = (path: Resolved, bytes: Buffer | undefined, expected: string | undefined): void => {
  if (expected === undefined) return
  if (bytes === undefined)
    throw new Failed(`${named(path.given)} does not exist, so its sha256 is not the expected one`)
  if (sha256(bytes) !== expected.toLowerCase()) {
    throw new Failed(`${named(path.given)} has changed: its sha256 is not the expected one; nothing was written`)
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

/** Checks what can be checked before the call is dispatched. */
export const checkWrite = (input: FilesWriteInput): void => {
  if (!input.content.isWellFormed()) throw new NotRun("content is not well-formed Unicode text")
  if (Buffer.byteLength(input.content) > limits.writeBytes) {
    throw new NotRun(`content is larger than ${limits.writeBytes} bytes`)
  }
}

export const checkEdit = (input: FilesEditInput): void => {
  for (const [index, edit] of input.edits.entries()) {
    if (!edit.old.isWellFormed() || !edit.new.isWellFormed()) {
      throw new NotRun(`edits[${index}] is not well-formed Unicode text`)
    }
  }
}

export const filesWrite = (
  workspace: Workspace,
  path: Resolved,
  input: FilesWriteInput,
  signal: AbortSignal
): Promise<Changed<FilesWriteResult>> =>
  alone(path.real, async () => {
    signal.throwIfAborted()
    // Whether it exists is looked at now: a call before this one may have made it.
    const now = await workspace.resolve(path.given)
    if (now.real !== path.real) throw new Failed(`${named(path.given)} changed; nothing was written`)
    if (now.kind === "dir") throw new Failed(`${named(path.given)} is a directory`)
    const old = now.kind === "missing" ? undefined : await oldBytes(workspace, now, input.expect_sha256, signal)
    expectDigest(path, old, input.expect_sha256)
    const content = Buffer.from(input.content, "utf8")
    await replace(workspace, now, content, input.create_dirs ?? true, signal)
    return {
      output: { path: path.shown, bytes: content.length, sha256: sha256(content), created: now.kind === "missing" },
      diff: { path: path.shown, ...oldTextOf(old), newText: input.content }
    }
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

/** Where `wanted` stands: every place without overlap, or, for one that must be unique, the first two with overlap. */
const occurrences = (bytes: Buffer, wanted: Buffer, all: boolean): ReadonlyArray<number> => {
  const found: Array<number> = []
  const step = all ? wanted.length : 1
  for (let at = bytes.indexOf(wanted); at !== -1; at = bytes.indexOf(wanted, at + step)) {
    found.push(at)
    if (!all && found.length === 2) break
  }
  return found
}

const splice = (bytes: Buffer, at: ReadonlyArray<number>, length: number, fresh: Buffer): Buffer => {
  const result = Buffer.allocUnsafe(bytes.length + at.length * (fresh.length - length))
  let from = 0
  let to = 0
  for (const index of at) {
    to += bytes.copy(result, to, from, index)
    to += fresh.copy(result, to)
    from = index + length
  }
  bytes.copy(result, to, from)
  return result
}

const editBytes = (path: Resolved, bytes: Buffer, input: FilesEditInput): { bytes: Buffer; replacements: number } => {
  let current = bytes
  let replacements = 0
  for (const [index, edit] of input.edits.entries()) {
    const wanted = Buffer.from(edit.old, "utf8")
    const fresh = Buffer.from(edit.new, "utf8")
    const found = occurrences(current, wanted, edit.all ?? false)
    if (found.length === 0) {
      const hint = edit.old.includes("\n") && !edit.old.includes("\r") && current.includes("\r\n")
      throw new Failed(
        `edits[${index}].old does not occur in ${named(path.given)}${hint ? " (its lines end with \\r\\n)" : ""}; nothing was changed`
      )
    }
    if (found.length > 1 && !(edit.all ?? false)) {
      throw new Failed(
        `edits[${index}].old occurs more than once in ${named(path.given)}; make it longer or set all; nothing was changed`
      )
    }
    if (current.length + found.length * (fresh.length - wanted.length) > limits.editFileBytes) {
      throw new Failed(
        `${named(path.given)} would become larger than ${limits.editFileBytes} bytes; nothing was changed`
      )
    }
    current = splice(current, found, wanted.length, fresh)
    replacements += found.length
  }
  return { bytes: current, replacements }
}

export const filesEdit = (
  workspace: Workspace,
  path: Resolved,
  input: FilesEditInput,
  signal: AbortSignal
): Promise<Changed<FilesEditResult>> =>
  alone(path.real, async () => {
    signal.throwIfAborted()
    const old = await readWhole(workspace, path, limits.editFileBytes, signal)
    expectDigest(path, old, input.expect_sha256)
    if (isBinary(old)) throw new Failed(`${named(path.given)} is a binary file; nothing was changed`)
    const { bytes, replacements } = editBytes(path, old, input)
    await replace(workspace, path, bytes, false, signal)
    return {
      output: { path: path.shown, replacements, sha256: sha256(bytes) },
      diff: { path: path.shown, ...oldTextOf(old), newText: bytes.toString("utf8") }
    }
  })
