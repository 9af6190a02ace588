/**
 * Makes a provider's own words fit for an error: one line, bounded, without key, part of a key or stack (RUN-225,
 * RT-320, RT-323).
 *
 * Pure. Providers echo keys whole, cut or masked ("sk-ab***xyz"), so every stretch of 6 characters or more that the key
 * holds is replaced, and so is every word that looks masked or like a vendor's key.
 */
import { messageLimit } from "./ModelFailure.ts"

const gram = 6
const scanLimit = 2_000
const redacted = "[redacted]"
const looksLikeKey = /\b(?:sk|pk|rk|xai|gsk|key)[-_][A-Za-z0-9_*.…-]{4,}|\S*\*{3,}\S*|\bBearer\s+\S+/gi
const stack = /\n\s+at |\n?Traceback \(most recent call last\)|\n\s+File "/

const withoutKey = (text: string, key: string): string => {
  if (key === "") return text
  if (key.length <= gram) return text.replaceAll(key, redacted)
  const grams = new Set<string>()
  for (let i = 0; i + gram <= key.length; i++) grams.add(key.slice(i, i + gram))
  let out = ""
  let at = 0
  while (at < text.length) {
    let end = at
    for (let i = at; i + gram <= text.length && grams.has(text.slice(i, i + gram)); i++) end = i + gram
    if (end > at) {
      out += redacted
      at = end
    } else {
      out += text[at]
      at += 1
    }
  }
  return out
}

/** `text` as it may be shown; `key` is the key of the request, or "". */
export const sanitize = (text: string, key: string, limit = messageLimit): string => {
  const cut = text.slice(0, scanLimit).split(stack, 1)[0] ?? ""
  const line = withoutKey(cut, key)
    .replace(looksLikeKey, redacted)
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\s]+/g, " ")
    .trim()
    .toWellFormed()
  return line.length <= limit ? line : `${line.slice(0, limit - 1).toWellFormed()}…`
}
