/** What a send may paste, how it is wrapped, and how it is found again in the pane (seat contract 9.5). Pure. */
import { InvalidText, readSeatReference, seatLimits, TextTooLarge } from "@tackroom/protocol/seat"
import { headCodePoints } from "@tackroom/protocol/text"
import { Result } from "effect"

/** A control character that is neither TAB nor LF: ESC could end the paste early, 03 would cancel. Half a pair is no text. */
const refused = /(?![\t\n])\p{Cc}|\p{Cs}/u

/** A runner drops a block over this whole, so what is pasted is measured, its envelope included. */
export const beyondPrompt = (text: string): TextTooLarge | undefined =>
  Buffer.byteLength(text) > seatLimits.promptBytes ? new TextTooLarge({ limit: seatLimits.promptBytes }) : undefined

/** The text as it is pasted (CRLF is LF), or why it is not: where, in bytes. */
export const pastable = (text: string): string | InvalidText | TextTooLarge => {
  const plain = text.replaceAll("\r\n", "\n")
  if (plain.trim() === "") return new InvalidText({ offset: 0, reason: "it is empty" })
  const tooLarge = beyondPrompt(plain)
  if (tooLarge !== undefined) return tooLarge
  const at = plain.search(refused)
  if (at < 0) return plain
  const code = plain.charCodeAt(at).toString(16).toUpperCase().padStart(4, "0")
  return new InvalidText({
    offset: Buffer.byteLength(plain.slice(0, at)),
    reason: /\p{Cs}/u.test(plain[at] ?? "") ? `it holds U+${code} alone` : `it holds the control character U+${code}`
  })
}

/** A command only where it would work: what is no seat reads this pane and takes no sends. */
const reply = (from: string): string =>
  readSeatReference(from) === undefined ? "Reply: here, in your own words" : `Reply: tackroom rig send ${from} "…"`

/** A message between seats. `From` is what the caller says; it is no authentication (RIG-232). */
export const envelope = (from: string, to: string, text: string): string =>
  [`From: ${from}`, `To: ${to}`, "---", text, "---", reply(from)].join("\n")

/** Where bytes stop being UTF-8: the first that cannot go on what came before it, or the end of a cut character. */
export const notUtf8At = (bytes: Uint8Array): number => {
  const fits = (length: number): boolean =>
    Result.isSuccess(
      Result.try(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length), { stream: true }))
    )
  let [good, bad] = [0, bytes.length + 1]
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (fits(middle)) good = middle
    else bad = middle
  }
  return good
}

/** The beginning of what was pasted, as a pane shows it. */
export const needleOf = (text: string): string => headCodePoints(text.split("\n")[0] ?? "", 40).trim()

export const count = (screen: string, needle: string): number => (needle === "" ? 0 : screen.split(needle).length - 1)

export const evidenceNote =
  "This is evidence of the pane only: it does not show that the agent received or did anything."
