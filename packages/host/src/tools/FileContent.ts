/**
 * What a file holds, for files.read: its digest, whether it is text, and a part of it by lines. Pure; where the bytes come
 * from, the disk or the client, is the caller's.
 *
 * Lines end at `\n`, which stays in the content like a `\r` before it; bytes that are no UTF-8 become U+FFFD; a byte order
 * mark is content. `truncated` says that the content does not reach the end of the file. A line is never split unless the
 * first one alone passes the limit. The digest is of the whole file.
 */
import { createHash } from "node:crypto"
import { limits } from "./Limits.ts"
import { Failed, named } from "./Refusal.ts"
import type { FilesReadResult } from "./Results.ts"
import { cutChars } from "./Text.ts"
import type { Resolved } from "./Workspace.ts"

export interface FilesReadInput {
  readonly path: string
  readonly start_line?: number
  readonly max_lines?: number
  readonly encoding?: "utf8" | "base64"
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** Whether a file holds a NUL near its start. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, limits.binaryProbeBytes).includes(0)

export const tooLarge = (given: string, max: number): Failed =>
  new Failed(`${named(given)} is larger than ${max} bytes`)

const newline = 0x0a

/** Byte offsets at which the lines `from` to `to` begin, and the one after; a last `\n` begins no line. */
const linesOf = (
  bytes: Buffer,
  from: number,
  to: number
): { readonly starts: Array<number>; readonly total: number } => {
  const starts: Array<number> = []
  let total = 0
  for (let at = 0; at < bytes.length;) {
    total += 1
    if (total >= from && total <= to + 1) starts.push(at)
    const end = bytes.indexOf(newline, at)
    if (end === -1) break
    at = end + 1
  }
  return { starts, total }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** The part that was asked for, of a file of these bytes. */
export const readContent = (path: Resolved, bytes: Buffer, input: FilesReadInput): FilesReadResult => {
  const known = { path: path.shown, bytes: bytes.length, sha256: sha256(bytes) }
  if (input.encoding === "base64") {
    const part = bytes.subarray(0, limits.readBase64Bytes)
    return { ...known, content: part.toString("base64"), truncated: part.length < bytes.length }
  }
  if (isBinary(bytes)) throw new Failed(`${named(path.given)} is a binary file; read it with encoding base64`)
  const first = input.start_line ?? 1
  const end = first - 1 + (input.max_lines ?? limits.readLinesDefault)
  const { starts, total } = linesOf(bytes, first, end)
  if (first > Math.max(total, 1)) throw new Failed(`${named(path.given)} has ${total} lines; start_line is ${first}`)
  const wanted = Math.min(total, end)
  let content = ""
  let chars = 0
  let last = first - 1
  let cut = false
  while (last < wanted) {
    const line = decoder.decode(bytes.subarray(starts[last - first + 1], starts[last - first + 2] ?? bytes.length))
    const size = charCount(line)
    if (chars + size > limits.readChars) {
      cut = true
      if (last === first - 1) {
        content = cutChars(line, limits.readChars)
        last += 1
      }
      break
    }
    content += line
    chars += size
    last += 1
  }
  return { ...known, content, start_line: first, end_line: last, total_lines: total, truncated: cut || last < total }
}

const charCount = (line: string): number => {
  let count = line.length
  for (const char of line) if (char.length === 2) count -= 1
  return count
}
