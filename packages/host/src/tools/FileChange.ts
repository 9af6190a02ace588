/**
 * What files.write and files.edit make of a file: checks, digest, edits, result and diff (AGT-063, AGT-064). Pure; where the old
 * bytes come from and the new ones go, the disk or the client, is the caller's.
 *
 * Edits work on bytes: what they do not name stays as it is, whatever its encoding and line ends. Each edit sees the file as
 * the one before left it.
 */
import { isBinary, sha256 } from "./FileContent.ts"
import { limits } from "./Limits.ts"
import { Failed, named, NotRun } from "./Refusal.ts"
import type { FileDiff, FilesEditResult, FilesWriteResult } from "./Results.ts"
import type { Resolved } from "./Workspace.ts"

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

/** What a client does of a change (ACP-211): it holds the old text, or takes the new one. The rest is done on the disk. */
export interface ClientPart {
  readonly old?: string
  readonly takes?: true
}

export interface Changed<R> {
  readonly output: R
  readonly diff: FileDiff
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

/** Refuses a file that is not the one the model knows. */
const expectDigest = (path: Resolved, bytes: Buffer | undefined, expected: string | undefined): void => {
  if (expected === undefined) return
  if (bytes === undefined)
    throw new Failed(`${named(path.given)} does not exist, so its sha256 is not the expected one`)
  if (sha256(bytes) !== expected.toLowerCase()) {
    throw new Failed(`${named(path.given)} has changed: its sha256 is not the expected one; nothing was written`)
  }
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

/** A file with its new content. */
export interface Change<R> extends Changed<R> {
  readonly content: Buffer
}

/** What files.write makes of a file; `old` is undefined where it is not known. */
export const writeChange = (
  path: Resolved,
  input: FilesWriteInput,
  old: Buffer | undefined,
  created: boolean
): Change<FilesWriteResult> => {
  expectDigest(path, old, input.expect_sha256)
  const content = Buffer.from(input.content, "utf8")
  return {
    content,
    output: { path: path.shown, bytes: content.length, sha256: sha256(content), created },
    diff: { path: path.shown, ...oldTextOf(old), newText: input.content }
  }
}

/** What files.edit makes of a file. */
export const editChange = (path: Resolved, input: FilesEditInput, old: Buffer): Change<FilesEditResult> => {
  expectDigest(path, old, input.expect_sha256)
  if (isBinary(old)) throw new Failed(`${named(path.given)} is a binary file; nothing was changed`)
  const { bytes, replacements } = editBytes(path, old, input)
  return {
    content: bytes,
    output: { path: path.shown, replacements, sha256: sha256(bytes) },
    diff: { path: path.shown, ...oldTextOf(old), newText: bytes.toString("utf8") }
  }
}
