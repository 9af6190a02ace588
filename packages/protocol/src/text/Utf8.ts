/**
 * UTF-8 without surprises: strict decoding, encoding, and the encoded length of a string without encoding it.
 *
 * @since 0.1.0
 */
import { Result } from "effect"

declare const TextDecoder: new (
  label: string,
  options: { readonly fatal: boolean; readonly ignoreBOM: boolean }
) => { readonly decode: (bytes: Uint8Array) => string }

declare const TextEncoder: new () => { readonly encode: (text: string) => Uint8Array }

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Decodes UTF-8 strictly: `undefined` when the bytes are not valid UTF-8 (RUN-005). A byte order mark is kept.
 *
 * @since 0.1.0
 */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined =>
  Result.getOrUndefined(Result.try(() => strict.decode(bytes)))

const encoder = new TextEncoder()

/**
 * The UTF-8 bytes of a string; a lone surrogate becomes the replacement character.
 *
 * @since 0.1.0
 */
export const encodeUtf8 = (text: string): Uint8Array => encoder.encode(text)

/**
 * The number of UTF-8 bytes of a string. A lone surrogate counts 3, as its replacement character does.
 *
 * @since 0.1.0
 */
export const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if (unit >= 0xd800 && unit < 0xdc00 && isLow(text.charCodeAt(i + 1))) {
      bytes += 2
      i++
    } else bytes += 2
  }
  return bytes
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000
