/**
 * What text from elsewhere may do in the pane: nothing but be read. Control characters go, and what other programs take
 * for a menu, a spinner or a question is written another way, so that a pane is never mistaken for one that waits.
 */

import { headCodePoints } from "@tackroom/protocol/text"

// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu
const pointers = /[\u276f\u203a]/gu
const spinners = /[\u2800-\u28ff]/gu

/** Text of the agent or of a person, with its line feeds and tabs. */
export const foreignText = (text: string): string => text.replace(controls, "").replace(pointers, ">")

/** Characters of a name or a title that a line has room for. */
const pieceCharacters = 200

/** Characters of what somebody has to read whole to help: an error, an id. */
export const wholeCharacters = 1_024

/** A piece of foreign text inside a line of ours, in one line, cut where it is longer than such pieces are. */
export const foreignPiece = (text: string, most: number = pieceCharacters): string => {
  const head = headCodePoints(text, most)
  const shown = foreignText(head)
    .replace(/\s*\n\s*/gu, " ")
    .replace(spinners, "*")
    .replace(/esc to interrupt/giu, "esc-to-interrupt")
    .replace(/do you want to/giu, "do you want-to")
  return head.length < text.length ? `${shown}\u2026` : shown
}

/** As many columns of a terminal as a character takes, near enough to keep a draft on one line. */
const columnsOf = (character: string): number => {
  const code = character.codePointAt(0) ?? 0
  if (code === 0x09) return 8
  return code >= 0x1100 &&
    /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\uff00-\uff60]/u.test(
      character
    )
    ? 2
    : 1
}

/** The end of a text that fits into the columns. */
export const lastColumns = (text: string, columns: number): string => {
  const characters = [...text]
  let left = columns
  let from = characters.length
  while (from > 0) {
    left -= columnsOf(characters[from - 1] ?? "")
    if (left < 0) break
    from -= 1
  }
  return characters.slice(from).join("")
}
