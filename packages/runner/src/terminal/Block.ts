/**
 * What a finished block of input means: a prompt, the cancel control, or nothing. Both ways of reading input (the machine
 * of a terminal, the lines of a pipe) end here, so that a block means the same however it came.
 */
import { utf8Length } from "@tackroom/protocol/text"

/** What input asks for. */
export type InputEvent =
  /** A prompt. `replaced` counts the characters that were not UTF-8. */
  | { readonly _tag: "Prompt"; readonly text: string; readonly replaced: number }
  | { readonly _tag: "Cancel" }
  /** A block over the limit was dropped. */
  | { readonly _tag: "TooLarge"; readonly bytes: number }
  /** A paste had no end marker; what came of it is the draft now. */
  | { readonly _tag: "UnendedPaste" }

/** The one text that is a control and never a prompt. */
const cancelText = "/abort"

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
const replacement = "\ufffd"

const occurrences = (bytes: Uint8Array): number => {
  let count = 0
  for (let at = bytes.indexOf(0xef); at !== -1; at = bytes.indexOf(0xef, at + 1)) {
    if (bytes[at + 1] === 0xbf && bytes[at + 2] === 0xbd) count += 1
  }
  return count
}

/** Reads a whole block; `undefined` when it is empty or white space alone. */
export const readBlock = (bytes: Uint8Array): InputEvent | undefined => {
  const text = decoder.decode(bytes)
  if (text.trim() === "") return undefined
  if (text === cancelText) return { _tag: "Cancel" }
  const replaced = text.includes(replacement) ? text.split(replacement).length - 1 - occurrences(bytes) : 0
  return { _tag: "Prompt", text, replaced }
}

/** The first line of a prompt that was lost, for the line that says so, and its size. */
export const describePrompt = (text: string): string => {
  const first = (text.trimStart().split("\n", 1)[0] ?? "").slice(0, 80)
  return `${first} (${utf8Length(text)} bytes)`
}
