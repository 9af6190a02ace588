/**
 * Splits a byte stream into frames at byte 0x0A (RUN-002 to RUN-004, RUN-015, HRN-043).
 *
 * U+2028, U+2029, U+0085 and a carriage return elsewhere are data; one carriage return directly before the 0x0A is
 * dropped; a byte order mark at the very start is skipped. The limit counts the bytes of one frame without its
 * terminator. A larger frame is thrown away in constant memory and reported when it ends, or at once (`early`). The cost is linear in the
 * bytes, however they are chunked.
 *
 * @since 0.1.0
 */

/** Reads the bytes of a frame that is too large, piece by piece, and says at its end what it found. @since 0.1.0 */
export interface OversizeScan<A> {
  readonly push: (bytes: Uint8Array) => void
  readonly end: () => A
}

/** Options of {@link makeLines}. @since 0.1.0 */
export interface LinesOptions<A = undefined> {
  /** Largest frame in bytes, without its terminator. */
  readonly limit: number
  /** How many bytes of a frame that is too large are kept; default 4,096, at most the limit. */
  readonly headBytes?: number
  /** Makes the scan of a frame that is too large, e.g. `makeIdScan`. */
  readonly scan?: () => OversizeScan<A>
  /**
   * Reports a frame that is too large as soon as it is, and not when it ends: with the bytes seen so far and without a
   * scan. Nothing more comes of that frame (SRV-034).
   */
  readonly early?: boolean
}

/** A whole frame. The bytes may be a view into the chunk that was pushed. @since 0.1.0 */
export interface Frame {
  readonly _tag: "Frame"
  readonly bytes: Uint8Array
}

/** A frame over the limit: how large it was, its first bytes, and what the scan found. @since 0.1.0 */
export interface Oversize<A = undefined> {
  readonly _tag: "Oversize"
  readonly observedBytes: number
  readonly head: Uint8Array
  readonly scan: A | undefined
}

/** What a chunk can complete. @since 0.1.0 */
export type Line<A = undefined> = Frame | Oversize<A>

/** An incremental splitter. @since 0.1.0 */
export interface Lines<A = undefined> {
  /** Takes the next bytes and gives the frames that they complete, in order. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line<A>>
  /** The bytes after the last terminator as a last frame; `undefined` when there are none. Starts over. */
  readonly end: () => Line<A> | undefined
}

const LF = 0x0a
const CR = 0x0d
const nothing = new Uint8Array(0)

const startsWithBom = (bytes: Uint8Array, length: number): boolean =>
  length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

/**
 * Whether a frame holds only JSON white space and is to be ignored (RUN-006).
 *
 * @since 0.1.0
 */
export const isBlankFrame = (bytes: Uint8Array): boolean => {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte !== 0x20 && byte !== 0x09 && byte !== CR) return false
  }
  return true
}

/**
 * Makes a splitter.
 *
 * @since 0.1.0
 */
export const makeLines = <A = undefined>(options: LinesOptions<A>): Lines<A> => {
  const limit = options.limit
  const keep = Math.min(options.headBytes ?? 4096, limit)
  let held = nothing
  let length = 0
  let first = true
  let out: Array<Line<A>> = []
  let oversize: { head: Uint8Array; observed: number; cr: boolean; scan: OversizeScan<A> | undefined } | undefined

  const hold = (bytes: Uint8Array): void => {
    if (length + bytes.length > held.length) {
      const grown = new Uint8Array(Math.max(256, held.length * 2, length + bytes.length))
      grown.set(held.subarray(0, length))
      held = grown
    }
    held.set(bytes, length)
    length += bytes.length
  }

  /** The scan never sees a carriage return that turns out to belong to the terminator. */
  const discard = (bytes: Uint8Array): void => {
    if (oversize === undefined || bytes.length === 0) return
    oversize.observed += bytes.length
    if (oversize.scan === undefined) {
      oversize.cr = bytes[bytes.length - 1] === CR
      return
    }
    if (oversize.cr) oversize.scan.push(Uint8Array.of(CR))
    oversize.cr = bytes[bytes.length - 1] === CR
    oversize.scan.push(oversize.cr ? bytes.subarray(0, -1) : bytes)
  }

  const skipped = (): number => (first && startsWithBom(held, length) ? 3 : 0)

  const overflow = (): void => {
    const body = held.subarray(skipped(), length)
    oversize = { head: body.slice(0, keep), observed: 0, cr: false, scan: options.scan?.() }
    if (options.early === true) {
      out.push({ _tag: "Oversize", observedBytes: body.length, head: oversize.head, scan: undefined })
    }
    held = nothing
    length = 0
    discard(body)
  }

  /** Adds bytes that hold no terminator. */
  const add = (bytes: Uint8Array): void => {
    if (oversize !== undefined) return discard(bytes)
    // a byte order mark, a carriage return and one byte too many are the most that is ever held beyond the limit
    const room = limit + 5 - length
    if (bytes.length > room) {
      hold(bytes.subarray(0, room))
      overflow()
      return discard(bytes.subarray(room))
    }
    hold(bytes)
    // one more byte may be the carriage return of the terminator
    if (length > limit + skipped() + (held[length - 1] === CR ? 1 : 0)) overflow()
  }

  /** Ends the frame whose bytes were added; `bytes` is the frame itself when nothing was held. */
  const complete = (terminated: boolean): Line<A> | undefined => {
    const start = skipped()
    first = false
    if (oversize !== undefined) {
      const ended = oversize
      oversize = undefined
      if (options.early === true) return undefined
      if (!terminated && ended.cr) ended.scan?.push(Uint8Array.of(CR))
      return {
        _tag: "Oversize",
        observedBytes: terminated && ended.cr ? ended.observed - 1 : ended.observed,
        head: ended.head,
        scan: ended.scan?.end()
      }
    }
    const stop = terminated && length > start && held[length - 1] === CR ? length - 1 : length
    const bytes = held.subarray(start, stop)
    held = nothing
    length = 0
    return { _tag: "Frame", bytes }
  }

  const push = (chunk: Uint8Array): ReadonlyArray<Line<A>> => {
    const lines: Array<Line<A>> = []
    out = lines
    let from = 0
    while (from < chunk.length) {
      const at = chunk.indexOf(LF, from)
      if (at === -1) {
        add(from === 0 ? chunk : chunk.subarray(from))
        break
      }
      if (length === 0 && oversize === undefined && !first && at - from <= limit) {
        lines.push({ _tag: "Frame", bytes: chunk.subarray(from, at > from && chunk[at - 1] === CR ? at - 1 : at) })
      } else {
        add(chunk.subarray(from, at))
        const line = complete(true)
        if (line !== undefined) lines.push(line)
      }
      from = at + 1
    }
    return lines
  }

  const end = (): Line<A> | undefined => {
    out = []
    // a carriage return that no terminator follows is data
    if (oversize === undefined && length > limit + skipped()) overflow()
    const empty = oversize === undefined && length === skipped()
    const last = complete(false)
    first = true
    return empty ? undefined : (last ?? out[0])
  }

  return { push, end }
}
