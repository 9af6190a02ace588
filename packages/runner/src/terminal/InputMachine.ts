/**
 * The only reader of what is typed or pasted into the seat: bytes in, events out. It does no I/O and knows no clock, and
 * what it gives depends on the bytes alone, never on how the terminal cut them into reads.
 *
 * A block is everything up to a carriage return outside of a paste. Rows of the table are named beside their code.
 */
import { seatLimits } from "@tackroom/protocol/seat"
import { type InputEvent, readBlock } from "./Block.ts"

const BS = 0x08
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const ETX = 0x03
const NAK = 0x15
const ESC = 0x1b
const DEL = 0x7f

const ascii = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0))

/** What follows the escape character in the marks around a paste. */
const pasteStart = ascii("200~")
const pasteEnd = ascii("[201~")

/** Longest parameter part of a control sequence that is still taken for one. */
const longestSequence = 32

/** How long a paste may be silent before it is taken for unended; the caller keeps the clock. */
export const unendedPasteMs = 5_000

/** Of what is typed the draft shows the end. */
const draftBytes = 1_024

/** A piece of the draft, as it may be shown before it is a prompt. */
export type DraftPart =
  | { readonly _tag: "Typed"; readonly bytes: Uint8Array }
  | { readonly _tag: "Pasted"; readonly lines: number }

/** The machine. Its state is inside; two machines never share any. */
export interface InputMachine {
  readonly push: (bytes: Uint8Array) => ReadonlyArray<InputEvent>
  /** True inside a paste: the caller then calls `silence` when no byte came for `unendedPasteMs`. */
  readonly isPasting: () => boolean
  readonly silence: () => ReadonlyArray<InputEvent>
  readonly draft: () => ReadonlyArray<DraftPart>
}

type Mode = "text" | "esc" | "ss3" | "csi" | "paste" | "tail"

/** The bytes of a block, and which of them were pasted. */
const makeBlock = (limit: number) => {
  let bytes = new Uint8Array(256)
  let length = 0
  let seen = 0
  // Where each run starts, whether it was pasted, and how many line feeds it holds.
  let runs: Array<{ readonly start: number; readonly pasted: boolean; feeds: number }> = []

  const clear = (): void => {
    if (bytes.length > 65_536) bytes = new Uint8Array(256)
    length = 0
    seen = 0
    runs = []
  }

  return {
    clear,
    append: (byte: number, pasted: boolean): void => {
      seen += 1
      if (length === limit) return
      if (length === bytes.length) {
        const grown = new Uint8Array(Math.min(limit, bytes.length * 2))
        grown.set(bytes)
        bytes = grown
      }
      let run = runs.at(-1)
      if (run?.pasted !== pasted) {
        run = { start: length, pasted, feeds: 0 }
        runs.push(run)
      }
      if (byte === LF) run.feeds += 1
      bytes[length++] = byte
    },
    /** Removes the last character: a whole UTF-8 sequence, or one byte that belongs to none. */
    removeLast: (): void => {
      if (length === 0 || seen > length) return
      let start = length - 1
      while (start > 0 && length - start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
      const lead = bytes[start] ?? 0
      const whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
      const run = runs.at(-1)
      if (run !== undefined && bytes[length - 1] === LF) run.feeds -= 1
      length = length - start === whole ? start : length - 1
      seen = length
      while ((runs.at(-1)?.start ?? -1) >= length) runs.pop()
    },
    /** The finished block, which is then empty. */
    take: (): InputEvent | undefined => {
      const event: InputEvent | undefined =
        seen > limit ? { _tag: "TooLarge", bytes: seen } : readBlock(bytes.subarray(0, length))
      clear()
      return event
    },
    draft: (): ReadonlyArray<DraftPart> =>
      runs.map(({ start, pasted, feeds }, index) => {
        if (pasted) return { _tag: "Pasted", lines: feeds + 1 }
        const end = runs[index + 1]?.start ?? length
        return { _tag: "Typed", bytes: bytes.slice(Math.max(start, end - draftBytes), end) }
      })
  }
}

export const makeInputMachine = (limit: number = seatLimits.promptBytes): InputMachine => {
  const block = makeBlock(limit)
  let mode: Mode = "text"
  let sequence: Array<number> = []
  let matched = 0
  let pastedReturn = false
  let events: Array<InputEvent> = []

  const emit = (event: InputEvent | undefined): void => {
    if (event !== undefined) events.push(event)
  }

  const text = (byte: number): void => {
    mode = "text"
    if (byte === CR) emit(block.take()) // I1
    else if (byte === ETX) emit({ _tag: "Cancel" }) // I2
    else if (byte === BS || byte === DEL) block.removeLast() // I4
    else if (byte === NAK) block.clear() // I5
    else if (byte === ESC) mode = "esc" // I6
    else if (byte === TAB || byte === LF || byte >= 0x20) block.append(byte, false) // I3, I7
  }

  /** Inside a paste CR LF and a lone CR are one line feed. */
  const paste = (byte: number): void => {
    mode = "paste"
    const afterReturn = pastedReturn
    pastedReturn = byte === CR
    if (byte === ESC) {
      // I14
      mode = "tail"
      matched = 0
    } else if (byte === CR) block.append(LF, true)
    else if (byte === LF && afterReturn) return
    else {
      block.append(byte, true) // I16
      if (byte === ETX) emit({ _tag: "Cancel" }) // I15
    }
  }

  const appendMatched = (): void => {
    block.append(ESC, true)
    for (let i = 0; i < matched; i++) block.append(pasteEnd[i] ?? 0, true)
  }

  const tail = (byte: number): void => {
    if (byte !== pasteEnd[matched]) {
      // I18
      appendMatched()
      paste(byte)
    } else if (++matched === pasteEnd.length) mode = "text" // I17
  }

  const csi = (byte: number): void => {
    const parameter = byte >= 0x20 && byte <= 0x3f
    if (parameter && sequence.length < longestSequence) {
      sequence.push(byte) // I11
    } else if (byte >= 0x40 && byte <= 0x7e) {
      // I12
      const starts = [...sequence, byte]
      const opensPaste = starts.length === pasteStart.length && starts.every((value, i) => value === pasteStart[i])
      mode = opensPaste ? "paste" : "text"
      pastedReturn = false
    } else text(byte) // I13
  }

  const esc = (byte: number): void => {
    // I8, I9
    if (byte === 0x5b) {
      mode = "csi"
      sequence = []
    } else if (byte === 0x4f) mode = "ss3"
    else if (byte !== ESC) text(byte)
  }

  const ss3 = (byte: number): void => {
    // I10
    if (byte >= 0x40 && byte <= 0x7e) mode = "text"
    else text(byte)
  }

  const steps: Readonly<Record<Mode, (byte: number) => void>> = { text, esc, ss3, csi, paste, tail }

  const taken = (): ReadonlyArray<InputEvent> => {
    const out = events
    events = []
    return out
  }

  return {
    push: (bytes) => {
      for (const byte of bytes) steps[mode](byte)
      return taken()
    },
    isPasting: () => mode === "paste" || mode === "tail",
    silence: () => {
      // I19
      if (mode !== "paste" && mode !== "tail") return []
      if (mode === "tail") appendMatched()
      mode = "text"
      emit({ _tag: "UnendedPaste" })
      return taken()
    },
    draft: block.draft
  }
}
