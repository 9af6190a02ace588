/**
 * Where the members of a JSON object lie in its text, and how much each is, found in one pass that builds no values: what a
 * parser needs seconds for costs milliseconds here, and what is not wanted need never be parsed.
 *
 * Brackets, names and strings are followed; the numbers and words of a value are not checked. Pure.
 */

/** A member of an object, from its name's quote to its value's end. */
export interface Member {
  readonly start: number
  readonly valueStart: number
  readonly end: number
  /** Bytes that its JSON takes at least, with all white space gone; the contents of texts are not counted. */
  readonly weight: number
}

export interface Members {
  /** By name; as in a parser, the last of several wins. */
  readonly kept: ReadonlyMap<string, Member>
  /** Some of those that were too many to be kept. */
  readonly others: ReadonlyArray<Member>
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Members of one object that are kept, beside those that are wanted by name. */
const mostMembers = 1_024
const mostOthers = 16

/** A character takes at most six in a text, and at least one. */
const escapeUnits = 6
/** An element and its comma, the two brackets, the quotes and the colon of a member. */
const elementWeight = 2
const bracketsWeight = 2
const nameWeight = 3

const isSpace = (unit: number): boolean => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09

const skipSpace = (text: string, from: number): number => {
  let at = from
  while (isSpace(text.charCodeAt(at))) at += 1
  return at
}

/** Behind the closing quote of the text that opens here; behind the whole when it never closes. */
const stringEnd = (text: string, from: number): number => {
  for (let at = from + 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === backslash) at += 1
    else if (unit === quote) return at + 1
  }
  return text.length + 1
}

interface Value {
  readonly end: number
  readonly weight: number
}

/** The value that starts here, or `undefined` when it does not end. */
const valueAt = (text: string, from: number): Value | undefined => {
  let weight = 0
  let depth = 0
  let nameUnits = 0
  let at = from
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      const end = stringEnd(text, at)
      if (end > text.length) return undefined
      nameUnits = end - at - 2
      at = end
      if (depth === 0) return { end, weight }
      continue
    }
    if (unit === openBrace || unit === openBracket) {
      depth += 1
      weight += bracketsWeight
    } else if (unit === closeBrace || unit === closeBracket) {
      // The end of what holds this value.
      if (depth === 0) return { end: at, weight }
      depth -= 1
      if (depth === 0) return { end: at + 1, weight }
    } else if (unit === comma) {
      if (depth === 0) return { end: at, weight }
      weight += elementWeight
    } else if (unit === colon) {
      if (depth === 0) return undefined
      weight += nameWeight + Math.floor(nameUnits / escapeUnits)
    } else if (depth === 0 && isSpace(unit)) return { end: at, weight }
    at += 1
  }
  return undefined
}

const parseName = (text: string): string | undefined => {
  const name = text.slice(1, -1)
  if (!name.includes("\\")) return name
  try {
    return String(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * The members of the object whose text this is, from `from` to `to`; `undefined` when it is no object. Those that are
 * `wanted` are found wherever they are.
 */
export const membersOf = (
  text: string,
  wanted: ReadonlySet<string>,
  from = 0,
  to = text.length
): Members | undefined => {
  const kept = new Map<string, Member>()
  const others: Array<Member> = []
  let at = skipSpace(text, from)
  if (text.charCodeAt(at) !== openBrace) return undefined
  at = skipSpace(text, at + 1)
  let closed = text.charCodeAt(at) === closeBrace
  while (!closed) {
    if (text.charCodeAt(at) !== quote) return undefined
    const start = at
    const nameEnd = stringEnd(text, start)
    at = skipSpace(text, nameEnd)
    if (text.charCodeAt(at) !== colon) return undefined
    const valueStart = skipSpace(text, at + 1)
    const value = valueAt(text, valueStart)
    const name = parseName(text.slice(start, nameEnd))
    if (value === undefined || value.end === valueStart || name === undefined) return undefined
    const ownWeight = elementWeight + nameWeight + Math.floor((nameEnd - start - 2) / escapeUnits)
    const member: Member = { start, valueStart, end: value.end, weight: ownWeight + value.weight }
    if (kept.size < mostMembers || wanted.has(name) || kept.has(name)) kept.set(name, member)
    else if (others.length < mostOthers) others.push(member)
    at = skipSpace(text, value.end)
    closed = text.charCodeAt(at) === closeBrace
    if (!closed) {
      if (text.charCodeAt(at) !== comma) return undefined
      at = skipSpace(text, at + 1)
    }
  }
  return skipSpace(text, at + 1) >= to ? { kept, others } : undefined
}

/** The first elements of the array whose text lies here, as many as the weight allows; `undefined` when it is no array. */
export const headOfArray = (text: string, from: number, mostWeight: number): string | undefined => {
  if (text.charCodeAt(from) !== openBracket) return undefined
  let at = skipSpace(text, from + 1)
  let end = from + 1
  let weight = bracketsWeight
  for (;;) {
    const value = valueAt(text, at)
    // An array that is empty, or that ends in a comma: whoever parses it says what it is.
    if (value === undefined || value.end === at) break
    weight += elementWeight + value.weight
    if (weight > mostWeight) break
    end = value.end
    at = skipSpace(text, end)
    if (text.charCodeAt(at) !== comma) break
    at = skipSpace(text, at + 1)
  }
  return `${text.slice(from, end)}]`
}
