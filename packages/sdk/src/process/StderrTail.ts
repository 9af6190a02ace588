/**
 * The last bytes a child wrote to stderr: 64 KiB are kept, redacted when read; at most 4 KiB of them go into an error
 * (HRN-036).
 */

/** Bytes of stderr kept per child. */
export const stderrKeptBytes = 65_536

/** Bytes of a `stderrTail`. */
export const stderrTailBytes = 4096

/** The kept end of one stderr. */
export interface StderrTail {
  readonly push: (chunk: Uint8Array) => void
  /** All kept text, redacted. */
  readonly text: () => string
  /** The end of it, at most 4 KiB of UTF-8, redacted. */
  readonly tail: () => string
  /** Bytes ever written by the child. */
  readonly total: () => number
}

const decoder = new TextDecoder("utf-8")
const encoder = new TextEncoder()

/** First index at or after `from` that starts a UTF-8 scalar. */
const scalarStart = (bytes: Uint8Array, from: number): number => {
  let index = from
  while (index < bytes.length && ((bytes[index] ?? 0) & 0xc0) === 0x80) index += 1
  return index
}

/** Keeps the end of a stderr. `redact` sees whole lines, so a secret cut in half by the limit is dropped, not shown. */
export const makeStderrTail = (redact: (text: string) => string): StderrTail => {
  let chunks: Array<Uint8Array> = []
  let size = 0
  let total = 0
  let cut = false

  const bytes = (): Uint8Array => {
    const joined = new Uint8Array(size)
    let offset = 0
    for (const chunk of chunks) {
      joined.set(chunk, offset)
      offset += chunk.length
    }
    chunks = size === 0 ? [] : [joined]
    return joined
  }

  const text = (): string => {
    const kept = bytes()
    if (!cut) return redact(decoder.decode(kept))
    // The first line lost its beginning: a secret in it would not be recognised any more.
    const newline = kept.indexOf(0x0a)
    const from = newline >= 0 && newline < kept.length - 1 ? newline + 1 : scalarStart(kept, 0)
    return redact(decoder.decode(kept.subarray(from)))
  }

  return {
    push: (chunk) => {
      total += chunk.length
      const kept = chunk.length > stderrKeptBytes ? chunk.subarray(chunk.length - stderrKeptBytes) : chunk
      if (kept.length < chunk.length) cut = true
      chunks.push(Uint8Array.from(kept))
      size += kept.length
      if (chunks.length > 1024) bytes()
      while (size > stderrKeptBytes) {
        const first = chunks[0]
        if (first === undefined) break
        cut = true
        const over = size - stderrKeptBytes
        if (first.length <= over) {
          chunks.shift()
          size -= first.length
        } else {
          chunks[0] = first.subarray(over)
          size -= over
        }
      }
    },
    text,
    tail: () => {
      const all = encoder.encode(text())
      if (all.length <= stderrTailBytes) return decoder.decode(all)
      return decoder.decode(all.subarray(scalarStart(all, all.length - stderrTailBytes)))
    },
    total: () => total
  }
}
