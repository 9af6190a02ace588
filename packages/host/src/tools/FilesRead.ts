/** files.read, in the runner: a part of one file by lines, or its first bytes as base64 (`FileContent.ts`). */
import type { FileHandle } from "node:fs/promises"
import { type FilesReadInput, readContent, tooLarge } from "./FileContent.ts"
import { limits } from "./Limits.ts"
import { fileFailure } from "./Refusal.ts"
import type { FilesReadResult } from "./Results.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

/** Reads a whole opened file, also one whose size says 0 (as in /proc) or that grows, and fails above `max` bytes. */
export const readAll = async (handle: FileHandle, given: string, max: number, signal: AbortSignal): Promise<Buffer> => {
  const { size } = await handle.stat()
  if (size > max) throw tooLarge(given, max)
  const chunks: Array<Buffer> = []
  let total = 0
  for (let next = Math.max(size + 1, 64 * 1024); ; next = 1024 * 1024) {
    signal.throwIfAborted()
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(next, max + 1 - total)), 0)
    if (bytesRead === 0) break
    chunks.push(buffer.subarray(0, bytesRead))
    total += bytesRead
    if (total > max) throw tooLarge(given, max)
  }
  const [first] = chunks
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, total)
}

/** Reads a checked file to its end. */
export const readWhole = async (
  workspace: Workspace,
  path: Resolved,
  max: number,
  signal: AbortSignal
): Promise<Buffer> => {
  const handle = await workspace.openFile(path)
  try {
    return await readAll(handle, path.given, max, signal)
  } catch (cause) {
    if (signal.aborted) throw cause
    throw fileFailure(path.given, cause)
  } finally {
    await handle.close()
  }
}

export const filesRead = async (
  workspace: Workspace,
  path: Resolved,
  input: FilesReadInput,
  signal: AbortSignal
): Promise<FilesReadResult> => readContent(path, await readWhole(workspace, path, limits.readFileBytes, signal), input)
