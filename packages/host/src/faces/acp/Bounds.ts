/** What one frame may hold (serve-mode 12.5): texts cut or split, values left out, pictures replaced. Pure. */
import type { ContentBlock } from "@agentclientprotocol/sdk"
import { cutHeadTail, headBytes, utf8Length, wireJson } from "@tackroom/protocol/text"

/** Bytes of one chunk of a message. */
export const chunkBytes = 65_536
/** Bytes of all text of one call. */
const callTextBytes = 262_144
/** Bytes of `rawInput` and of `rawOutput`. */
const rawBytes = 65_536
/** Bytes of one side of a diff. */
const diffBytes = 262_144
/** Characters of base64 of an image, a sound or a blob. */
const mediaBytes = 524_288
/** Bytes of all content of one call: with the rest of the frame it stays under 1 MiB. */
export const contentBytes = 786_432

/** The text in chunks; none for an empty text. */
export const chunksOf = (text: string): ReadonlyArray<string> => {
  if (text === "") return []
  if (text.length * 3 <= chunkBytes || utf8Length(text) <= chunkBytes) return [text]
  const chunks: Array<string> = []
  for (let rest = text; rest !== "";) {
    const head = headBytes(rest, chunkBytes)
    chunks.push(head)
    rest = rest.slice(head.length)
  }
  return chunks
}

/** The text of a call, cut in the middle where it is too long, with what is missing. */
export const callText = (text: string): string => {
  if (text.length * 3 <= callTextBytes) return text
  const sizes = { limit: callTextBytes, head: callTextBytes / 2, tail: callTextBytes / 4 }
  const cut = cutHeadTail(text, sizes)
  if (cut === undefined) return text
  const missing = utf8Length(text) - utf8Length(cut.head) - utf8Length(cut.tail)
  return `${cut.head}\n… ${missing} bytes are left out here …\n${cut.tail}`
}

/** A raw value, or nothing when it is too large. */
export const rawValue = (value: unknown): { readonly value: unknown } | undefined =>
  value === undefined || utf8Length(wireJson(value)) > rawBytes ? undefined : { value }

/** Whether both sides of a diff fit. */
export const fitsDiff = (oldText: string | undefined, newText: string): boolean =>
  [oldText ?? "", newText].every((side) => side.length * 3 <= diffBytes || utf8Length(side) <= diffBytes)

/** Base64 that fits. */
export const fitsMedia = (data: string): boolean => data.length <= mediaBytes

export const textBlock = (text: string): ContentBlock => ({ type: "text", text })
