/**
 * Joins deltas before they are journaled (6.4): one open buffer per session. A buffer is closed by its 4 KiB bound, by any
 * event that is not a delta of the same type, part and stream, and by the flush clock. Pure: it knows no time but what it
 * is told, and writes nothing.
 *
 * Implements RT-200, RT-201, RT-203, RT-204 and D-44.
 *
 * @since 0.1.0
 */
import type { DeltaEvent } from "@tackroom/protocol/events"
import { noRedaction, type OpenText, type Redactor } from "@tackroom/protocol/text"

/** Periods of the flush clock in milliseconds, and the bound of one row in bytes. */
export interface CoalesceOptions {
  /** While a part is young. */
  readonly ms: number
  /** How long a part is young. */
  readonly youngMs: number
  /** After that. */
  readonly laterMs: number
  readonly bytes: number
}

/** D-44. */
export const coalesceDefaults: CoalesceOptions = { ms: 25, youngMs: 250, laterMs: 100, bytes: 4096 }

/** The slowest the flush clock may get (6.4). */
export const slowestPeriodMs = 250

/** Redacts what is written: a row may end in the middle of a secret, so it is done before rows are cut (RUN-174). */
export type TextRedaction = Pick<Redactor, "text" | "open">

const keyOf = (event: DeltaEvent): string =>
  event.type === "tool-output-delta"
    ? `${event.type}\u0000${event.toolCallId}\u0000${event.stream}`
    : `${event.type}\u0000${event.messageId}\u0000${event.partId}`

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** Bytes of UTF-8; a lone surrogate counts three. */
export const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if (isHigh(unit) && isLow(text.charCodeAt(i + 1))) {
      bytes += 2
      i += 1
    } else bytes += 2
  }
  return bytes
}

/** The longest prefix of at most `bytes` bytes that ends between scalar values; its length in UTF-16 units, at least one scalar. */
export const prefixUnits = (text: string, bytes: number): number => {
  let used = 0
  let i = 0
  while (i < text.length) {
    const unit = text.charCodeAt(i)
    const pair = isHigh(unit) && isLow(text.charCodeAt(i + 1))
    const size = unit < 0x80 ? 1 : unit < 0x800 ? 2 : pair ? 4 : 3
    if (used + size > bytes && i > 0) return i
    used += size
    i += pair ? 2 : 1
  }
  return text.length
}

const carriesMeta = (event: DeltaEvent): boolean =>
  event.raw !== undefined ||
  event.diagnostics !== undefined ||
  (event.type === "tool-output-delta" && event.truncated !== undefined)

interface Open {
  readonly key: string
  readonly first: DeltaEvent
  /** When the first delta of this part came; decides the period. */
  readonly since: number
  text: string
  bytes: number
  dueAt: number
}

/** One session's delta buffer. */
export class Coalescer {
  #open: Open | undefined
  #lastKey: string | undefined
  #lastSince = 0
  readonly #options: CoalesceOptions
  readonly #redaction: TextRedaction

  constructor(options: CoalesceOptions, redaction: TextRedaction = noRedaction) {
    this.#options = options
    this.#redaction = redaction
  }

  /** When the open buffer wants to be flushed; undefined while there is nothing to flush. */
  get dueAt(): number | undefined {
    return this.#open !== undefined && this.#open.text.length > 0 ? this.#open.dueAt : undefined
  }

  get openBytes(): number {
    return this.#open?.bytes ?? 0
  }

  /** Takes a delta; answers the rows it closed. */
  push(event: DeltaEvent, now: number): Array<DeltaEvent> {
    if (carriesMeta(event)) {
      const rows = this.close()
      rows.push(event)
      return rows
    }
    const key = keyOf(event)
    const rows = this.#open !== undefined && this.#open.key !== key ? this.close() : []
    if (event.delta.length === 0) return rows
    if (this.#open === undefined) {
      if (this.#lastKey !== key) {
        this.#lastKey = key
        this.#lastSince = now
      }
      const period = now - this.#lastSince < this.#options.youngMs ? this.#options.ms : this.#options.laterMs
      this.#open = { key, first: event, since: this.#lastSince, text: "", bytes: 0, dueAt: now + period }
    }
    const open = this.#open
    open.text += event.delta
    open.bytes += utf8Length(event.delta)
    if (open.bytes >= this.#options.bytes) this.#emitFull(open, rows)
    return rows
  }

  /** What may be written now; a broken scalar or a held-back tail stays open. */
  flush(): DeltaEvent | undefined {
    const open = this.#open
    if (open === undefined) return undefined
    const { done, rest } = this.#ready(open.text)
    if (done === "") return undefined
    const row = { ...open.first, delta: done }
    open.text = rest
    if (open.text.length === 0) this.#open = undefined
    else {
      open.bytes = utf8Length(open.text)
      open.dueAt += this.#options.laterMs
    }
    return row
  }

  /** Ends the buffer: everything in it becomes rows of at most the bound. */
  close(): Array<DeltaEvent> {
    const open = this.#open
    this.#open = undefined
    if (open === undefined || open.text.length === 0) return []
    const rows: Array<DeltaEvent> = []
    let rest = this.#redaction.text(open.text)
    while (rest.length > 0) {
      const units = prefixUnits(rest, this.#options.bytes)
      rows.push({ ...open.first, delta: rest.slice(0, units) })
      rest = rest.slice(units)
    }
    return rows
  }

  #emitFull(open: Open, rows: Array<DeltaEvent>): void {
    const { done, rest } = this.#ready(open.text)
    let at = 0
    while (at < done.length) {
      const left = done.slice(at)
      const units = prefixUnits(left, this.#options.bytes)
      // A last piece below the bound waits for more, so that small deltas do not leave small rows.
      if (units === left.length && utf8Length(left) < this.#options.bytes) break
      rows.push({ ...open.first, delta: left.slice(0, units) })
      at += units
    }
    open.text = done.slice(at) + rest
    open.bytes = utf8Length(open.text)
    if (open.text.length === 0) this.#open = undefined
  }

  #ready(text: string): OpenText {
    const open = this.#redaction.open(text)
    const last = open.done.length - 1
    return isHigh(open.done.charCodeAt(last))
      ? { done: open.done.slice(0, last), rest: open.done.slice(last) + open.rest }
      : open
  }
}
