/**
 * The seat's terminal: raw mode and bracketed paste from the program's first instruction on, and back on every way out
 * (SEAT-001, SEAT-002). Node's own parts only: this is loaded before anything else.
 *
 * It hands bytes on and interprets none. Bytes that arrive before somebody listens are kept.
 */
import * as fs from "node:fs"
import type { Readable } from "node:stream"

const pasteOn = "\u001b[?2004h"
const pasteOff = "\u001b[?2004l"

/** Where the seat's input comes from. */
export interface SeatTerminal {
  readonly isTty: boolean
  /** One listener. It gets what came before it at once. */
  readonly listen: (listener: InputListener) => void
  /** Back to what the terminal was. Synchronous; the second call does nothing. */
  readonly restore: () => void
}

export interface InputListener {
  readonly data: (bytes: Uint8Array) => void
  /** The end of input, or the terminal is gone. */
  readonly end: () => void
}

/** The terminal under the names that it may be opened by once more, to be written without waiting. */
const terminals = ["/dev/tty", "/dev/fd/1"]

/** A pane that nobody reads takes no bytes; the way out must not wait for it. */
const writeWithoutWaiting = (text: string): void => {
  const { O_NOCTTY, O_NONBLOCK, O_WRONLY } = fs.constants
  for (const name of terminals) {
    try {
      const descriptor = fs.openSync(name, O_WRONLY | O_NONBLOCK | O_NOCTTY)
      try {
        fs.writeSync(descriptor, text)
        return
      } finally {
        fs.closeSync(descriptor)
      }
    } catch {
      // It hung up, is full, or is none of ours. Without any of them nothing is left to be told.
    }
  }
}

const writeOnce = (text: string): void => {
  try {
    fs.writeSync(1, text)
  } catch {
    // Nobody sees the pane; the seat works all the same.
  }
}

interface RawInput extends Readable {
  readonly isTTY?: boolean
  readonly setRawMode?: (raw: boolean) => unknown
}

/** Takes the terminal of the program. */
export const takeTerminal = (): SeatTerminal => {
  const input: RawInput = process.stdin
  const isTty = input.isTTY === true
  const kept: Array<Uint8Array> = []
  let ended = false
  let listener: InputListener | undefined

  const data = (bytes: Uint8Array): void => {
    if (listener === undefined) kept.push(bytes)
    else listener.data(bytes)
  }
  const end = (): void => {
    if (ended) return
    ended = true
    listener?.end()
  }
  // A closed pane is an error of the descriptor on Linux and an end elsewhere.
  input.on("error", end)
  input.on("end", end)
  input.on("close", end)

  let restored = false
  const restore = (): void => {
    if (restored) return
    restored = true
    if (!isTty) return
    writeWithoutWaiting(pasteOff)
    try {
      input.setRawMode?.(false)
    } catch {
      // As above: a terminal that is gone has no mode.
    }
  }

  if (isTty) {
    input.setRawMode?.(true)
    process.once("exit", restore)
    writeOnce(pasteOn)
    input.on("data", data)
  }

  return {
    isTty,
    restore,
    listen: (next) => {
      listener = next
      for (const bytes of kept.splice(0)) next.data(bytes)
      if (!isTty) input.on("data", data)
      if (ended) next.end()
    }
  }
}
