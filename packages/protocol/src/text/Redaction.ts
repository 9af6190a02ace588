/**
 * Keeps known secrets out of journals, logs and errors (RUN-174): each is replaced by `[redacted:<name>]`, also when it
 * is split over the deltas of a stream. Secrets under 8 characters are not looked for; they would hit ordinary text.
 *
 * @since 0.1.0
 */

/** A secret and the name that stands for it. @since 0.1.0 */
export interface Secret {
  readonly name: string
  readonly value: string
}

/** The shortest secret that is looked for. @since 0.1.0 */
export const minSecretLength = 8

/** Redacts a stream of deltas. Its outputs joined are the redaction of its inputs joined. @since 0.1.0 */
export interface StreamRedactor {
  /** Takes a delta and gives what is certain; the start of a possible secret is held back. */
  readonly push: (delta: string) => string
  /** Gives what is still held back. */
  readonly end: () => string
}

/** Redacts text with one set of secrets. @since 0.1.0 */
export interface Redactor {
  /** Redacts one text. */
  readonly text: (text: string) => string
  /** Redacts every string of a JSON value, keys included; gives the value itself when nothing was found. */
  readonly json: <A>(value: A) => A
  /** Redacts a stream. */
  readonly stream: () => StreamRedactor
}

const same = <A>(value: A): A => value

/** Redacts nothing. @since 0.1.0 */
export const noRedaction: Redactor = {
  text: same,
  json: same,
  stream: () => ({ push: same, end: () => "" })
}

interface Pattern {
  readonly text: string
  readonly mark: string
}

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/gu, "\\$&")

/** A secret is looked for as it is and as it stands inside a JSON text, longest first. */
const patternsOf = (secrets: Iterable<Secret>): ReadonlyArray<Pattern> => {
  const patterns = new Map<string, string>()
  for (const { name, value } of secrets) {
    if (value.length < minSecretLength) continue
    const mark = `[redacted:${name}]`
    for (const text of [value, JSON.stringify(value).slice(1, -1)]) {
      if (!patterns.has(text)) patterns.set(text, mark)
    }
  }
  return [...patterns].map(([text, mark]) => ({ text, mark })).sort((a, b) => b.text.length - a.text.length)
}

/**
 * Makes a redactor. Of secrets that overlap, the one that starts first wins, then the longest.
 *
 * @since 0.1.0
 */
export const makeRedactor = (secrets: Iterable<Secret>): Redactor => {
  const patterns = patternsOf(secrets)
  if (patterns.length === 0) return noRedaction
  const marks = new Map(patterns.map(({ text, mark }) => [text, mark]))
  const source = patterns.map((pattern) => escapeRegExp(pattern.text)).join("|")
  const all = new RegExp(source, "g")
  const longest = patterns[0]?.text.length ?? 0
  const starts = new Set(patterns.map((pattern) => pattern.text.charCodeAt(0)))
  const markOf = (found: string): string => marks.get(found) ?? "[redacted]"

  const text = (input: string): string => (input.length < minSecretLength ? input : input.replace(all, markOf))

  const json = <A>(value: A): A => redactJson(value, text) as A

  /** The first index at which the rest of the text may be the start of a secret that still arrives. */
  const openFrom = (input: string, from: number): number => {
    for (let i = Math.max(from, input.length - longest + 1); i < input.length; i++) {
      if (!starts.has(input.charCodeAt(i))) continue
      const rest = input.slice(i)
      if (patterns.some((pattern) => pattern.text.length > rest.length && pattern.text.startsWith(rest))) return i
    }
    return input.length
  }

  const stream = (): StreamRedactor => {
    let held = ""
    const next = new RegExp(source, "g")
    const push = (delta: string): string => {
      const input = held + delta
      let out = ""
      let from = 0
      for (;;) {
        const open = openFrom(input, from)
        next.lastIndex = from
        const match = next.exec(input)
        if (match === null || match.index >= open) {
          held = input.slice(open)
          return out + input.slice(from, open)
        }
        out += input.slice(from, match.index) + markOf(match[0])
        from = match.index + match[0].length
      }
    }
    const end = (): string => {
      const rest = text(held)
      held = ""
      return rest
    }
    return { push, end }
  }

  return { text, json, stream }
}

const redactJson = (value: unknown, text: (input: string) => string): unknown => {
  if (typeof value === "string") return text(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    let changed = false
    const out = value.map((member: unknown) => {
      const redacted = redactJson(member, text)
      if (redacted !== member) changed = true
      return redacted
    })
    return changed ? out : value
  }
  let changed = false
  const entries = Object.entries(value).map(([key, member]: [string, unknown]) => {
    const name = text(key)
    const redacted = redactJson(member, text)
    if (name !== key || redacted !== member) changed = true
    return [name, redacted] as const
  })
  return changed ? Object.fromEntries(entries) : value
}
