/**
 * Keeps known secrets out of journals, logs and errors (RUN-174): each is replaced by `[redacted:<name>]`, also when it
 * is split over the deltas of a stream. Secrets under 8 characters are not looked for; they would hit ordinary text.
 *
 * @since 0.1.0
 */
import { encodeUtf8 } from "./Utf8.ts"

/** A secret and the name that stands for it. @since 0.1.0 */
export interface Secret {
  readonly name: string
  readonly value: string
  /** Where alone the name may be said, such as one session; without it, anywhere. The value is replaced everywhere. */
  readonly scope?: string | undefined
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

/** What is certain of a text that goes on. @since 0.1.0 */
export interface OpenText {
  /** Redacted. */
  readonly done: string
  /** May be the start of a secret, and is as it came. */
  readonly rest: string
}

/** Redacts with one set of secrets. What is redacted for a scope names no secret of another one. @since 0.1.0 */
export interface Redactor {
  /** Redacts one text. */
  readonly text: (text: string, scope?: string) => string
  /** Redacts every string of a JSON value, keys included; gives the value itself when nothing was found. */
  readonly json: <A>(value: A, scope?: string) => A
  /** Redacts bytes in which secrets stand as UTF-8; gives the bytes themselves when nothing was found. */
  readonly bytes: (bytes: Uint8Array, scope?: string) => Uint8Array
  /** Redacts a text that goes on, as far as it is certain. */
  readonly open: (text: string, scope?: string) => OpenText
  /** Redacts a stream. */
  readonly stream: (scope?: string) => StreamRedactor
}

const same = <A>(value: A): A => value

/** Redacts nothing. @since 0.1.0 */
export const noRedaction: Redactor = {
  text: same,
  json: same,
  bytes: same,
  open: (text) => ({ done: text, rest: "" }),
  stream: () => ({ push: same, end: () => "" })
}

/** The names of one value, by where they may be said. */
type Names = Map<string | undefined, Set<string>>

interface Pattern {
  readonly text: string
  readonly names: Names
}

/** Stands for a value that has several names, or none that may be said. */
const nameless = "secret"

const markOf = (names: Names | undefined, scope: string | undefined): string => {
  const sayable = scope === undefined ? [...(names?.values() ?? [])] : [names?.get(undefined), names?.get(scope)]
  const [name, ...others] = new Set(sayable.flatMap((some) => [...(some ?? [])]))
  return `[redacted:${name === undefined || others.length > 0 ? nameless : name}]`
}

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/gu, "\\$&")

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

const toAscii = (text: string): string =>
  text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A secret as it is, as it stands inside a JSON text, also one of ASCII alone, and inside a JSON text within another. */
const formsOf = (value: string): ReadonlySet<string> => {
  const escaped = inJson(value)
  return new Set([value, escaped, toAscii(escaped), inJson(escaped), inJson(toAscii(escaped))])
}

/** Longest first. */
const patternsOf = (secrets: Iterable<Secret>): ReadonlyArray<Pattern> => {
  const byValue = new Map<string, Names>()
  for (const { name, scope, value } of secrets) {
    if (value.length < minSecretLength) continue
    const names: Names = byValue.get(value) ?? new Map()
    byValue.set(value, names.set(scope, (names.get(scope) ?? new Set()).add(name)))
  }
  const patterns = new Map(byValue)
  for (const [value, names] of byValue) {
    for (const form of formsOf(value)) if (!patterns.has(form)) patterns.set(form, names)
  }
  return [...patterns].map(([text, names]) => ({ text, names })).sort((a, b) => b.text.length - a.text.length)
}

/**
 * Makes a redactor. Of secrets that overlap, the one that starts first wins, then the longest.
 *
 * @since 0.1.0
 */
export const makeRedactor = (secrets: Iterable<Secret>): Redactor => {
  const patterns = patternsOf(secrets)
  if (patterns.length === 0) return noRedaction
  const names = new Map(patterns.map((pattern) => [pattern.text, pattern.names]))
  const source = patterns.map((pattern) => escapeRegExp(pattern.text)).join("|")
  const all = new RegExp(source, "g")
  const any = new RegExp(source)
  const longest = patterns[0]?.text.length ?? 0
  const shortest = patterns.at(-1)?.text.length ?? 0
  const starts = new Set(patterns.map((pattern) => pattern.text.charCodeAt(0)))
  const only = patterns.length === 1 ? patterns[0]?.text : undefined
  const mark = (found: string, scope: string | undefined): string => markOf(names.get(found), scope)

  const has = (input: string): boolean => {
    if (input.length < shortest) return false
    // One expression is quicker than some searches, and slower than one.
    return only === undefined ? any.test(input) : input.includes(only)
  }

  const text = (input: string, scope?: string): string =>
    has(input) ? input.replace(all, (found) => mark(found, scope)) : input

  const json = <A>(value: A, scope?: string): A => redactJson(value, (input) => text(input, scope)) as A

  /** The first index at which the rest of the text may be the start of a secret that still arrives. */
  const openFrom = (input: string, from: number): number => {
    for (let i = Math.max(from, input.length - longest + 1); i < input.length; i++) {
      if (!starts.has(input.charCodeAt(i))) continue
      const rest = input.slice(i)
      if (patterns.some((pattern) => pattern.text.length > rest.length && pattern.text.startsWith(rest))) return i
    }
    return input.length
  }

  const next = new RegExp(source, "g")
  const open = (input: string, scope?: string): OpenText => {
    let done = ""
    let from = 0
    for (;;) {
      const held = openFrom(input, from)
      next.lastIndex = from
      const match = next.exec(input)
      if (match === null || match.index >= held)
        return { done: done + input.slice(from, held), rest: input.slice(held) }
      done += input.slice(from, match.index) + mark(match[0], scope)
      from = match.index + match[0].length
    }
  }

  const stream = (scope?: string): StreamRedactor => {
    let held = ""
    return {
      push: (delta) => {
        const { done, rest } = open(held + delta, scope)
        held = rest
        return done
      },
      end: () => {
        const rest = text(held, scope)
        held = ""
        return rest
      }
    }
  }

  const encoded = patterns.map((pattern) => ({ bytes: encodeUtf8(pattern.text), names: pattern.names }))
  const bytes = (input: Uint8Array, scope?: string): Uint8Array =>
    redactBytes(input, encoded, (found) => encodeUtf8(markOf(found, scope)))

  return { text, json, bytes, open, stream }
}

/** Names as the keys of one object: two that became the same are told apart. */
const distinct = (names: ReadonlyArray<string>, keys: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set(names.filter((name, i) => name === keys[i]))
  return names.map((name, i) => {
    if (name === keys[i]) return name
    let free = name
    for (let n = 2; taken.has(free); n++) free = `${name}#${n}`
    taken.add(free)
    return free
  })
}

const redactJson = (value: unknown, text: (input: string) => string): unknown => {
  if (typeof value === "string") return text(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    let out: Array<unknown> | undefined
    for (let i = 0; i < value.length; i++) {
      const member: unknown = value[i]
      const redacted = redactJson(member, text)
      if (redacted !== member) out ??= value.slice()
      if (out !== undefined) out[i] = redacted
    }
    return out ?? value
  }
  const members = value as Readonly<Record<string, unknown>>
  const keys = Object.keys(members)
  let out: Array<unknown> | undefined
  let isRenamed = false
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] ?? ""
    if (text(key) !== key) isRenamed = true
    const member = members[key]
    const redacted = redactJson(member, text)
    if (redacted !== member) out ??= keys.map((one) => members[one])
    if (out !== undefined) out[i] = redacted
  }
  if (out === undefined && !isRenamed) return value
  const names = isRenamed ? distinct(keys.map(text), keys) : keys
  return Object.fromEntries(keys.map((key, i) => [names[i] ?? key, out === undefined ? members[key] : out[i]]))
}

const startsAt = (bytes: Uint8Array, at: number, pattern: Uint8Array): boolean => {
  for (let i = 1; i < pattern.length; i++) if (bytes[at + i] !== pattern[i]) return false
  return true
}

/** Where the pattern stands at or after an index; infinity when nowhere. */
const indexOf = (bytes: Uint8Array, pattern: Uint8Array, from: number): number => {
  const last = bytes.length - pattern.length
  for (
    let at = bytes.indexOf(pattern[0] ?? 0, from);
    at >= 0 && at <= last;
    at = bytes.indexOf(pattern[0] ?? 0, at + 1)
  ) {
    if (startsAt(bytes, at, pattern)) return at
  }
  return Infinity
}

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    out.set(piece, at)
    at += piece.length
  }
  return out
}

const redactBytes = (
  bytes: Uint8Array,
  patterns: ReadonlyArray<{ readonly bytes: Uint8Array; readonly names: Names }>,
  mark: (names: Names) => Uint8Array
): Uint8Array => {
  const places = patterns.map((pattern) => ({ pattern, at: indexOf(bytes, pattern.bytes, 0) }))
  const pieces: Array<Uint8Array> = []
  let from = 0
  for (;;) {
    let first = places[0]
    // The longest comes first, and stays when another starts where it does.
    for (const place of places) if (first === undefined || place.at < first.at) first = place
    if (first === undefined || first.at === Infinity) break
    pieces.push(bytes.subarray(from, first.at), mark(first.pattern.names))
    from = first.at + first.pattern.bytes.length
    for (const place of places) if (place.at < from) place.at = indexOf(bytes, place.pattern.bytes, from)
  }
  return pieces.length === 0 ? bytes : joined([...pieces, bytes.subarray(from)])
}
