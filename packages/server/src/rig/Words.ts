/** What a person's typed answer says (seat contract 7.4): yes, no, a choice, or words that are no answer. Pure. */
import type { SeatOption } from "@tackroom/protocol/seat"

const yes: ReadonlySet<string> = new Set([
  "yes",
  "y",
  "yep",
  "yeah",
  "yup",
  "sure",
  "ok",
  "okay",
  "k",
  "allow",
  "allow it",
  "allow once",
  "approve",
  "approved",
  "accept",
  "accepted",
  "permit",
  "permitted",
  "go",
  "go ahead",
  "go on",
  "do it",
  "proceed",
  "continue",
  "fine",
  "confirm",
  "confirmed",
  "yes go ahead",
  "yes, go ahead",
  "yes do it",
  "👍",
  "✅"
])

const no: ReadonlySet<string> = new Set([
  "no",
  "n",
  "nope",
  "nah",
  "never",
  "deny",
  "denied",
  "reject",
  "rejected",
  "refuse",
  "refused",
  "decline",
  "declined",
  "disallow",
  "forbid",
  "stop",
  "stop it",
  "cancel",
  "abort",
  "block",
  "don't",
  "dont",
  "do not",
  "don't do it",
  "do not do it",
  "not now",
  "no way",
  "absolutely not",
  "no stop",
  "no, stop",
  "👎",
  "❌",
  "🛑"
])

const courtesies = ["please", "thanks", "thank you"]

/** Takes a leading or trailing courtesy away, with the comma that sets it off. */
const withoutCourtesy = (text: string): string => {
  for (const word of courtesies) {
    const lead = new RegExp(`^${word}(?:,\\s*|\\s+)`, "u")
    if (lead.test(text)) return text.replace(lead, "")
    const trail = new RegExp(`(?:,\\s*|\\s+)${word}$`, "u")
    if (trail.test(text)) return text.replace(trail, "")
  }
  return text
}

const withoutEnd = (text: string): string => text.replace(/[.!?,\s]+$/u, "")

/** The form in which texts are compared. */
export const normalise = (text: string): string => {
  const plain = text
    .normalize("NFKC")
    .replaceAll(/[\u2018\u2019\u201b]/gu, "'")
    .replaceAll(/[\u201c\u201d]/gu, '"')
    .toLowerCase()
    .replaceAll(/\s+/gu, " ")
    .trim()
  return withoutEnd(withoutCourtesy(withoutEnd(plain))).trim()
}

export type Said =
  | { readonly _tag: "Yes" }
  | { readonly _tag: "No" }
  | { readonly _tag: "Choice"; readonly option: SeatOption }
  | { readonly _tag: "Words" }

/** What a text says about these options. A choice equals one option's name, or one option's exact id. */
export const classify = (text: string, options: ReadonlyArray<SeatOption>): Said => {
  const said = normalise(text)
  if (yes.has(said)) return { _tag: "Yes" }
  if (no.has(said)) return { _tag: "No" }
  const matching = options.filter((option) => option.optionId === text.trim() || normalise(option.name) === said)
  const [option] = matching
  return option !== undefined && matching.length === 1 ? { _tag: "Choice", option } : { _tag: "Words" }
}
