/**
 * A line as it is written: names of the wire, escapes, and never longer than a line may be (SRV-060 to SRV-064).
 *
 * @since 0.1.0
 */
import { memoised } from "../internal/Lazy.ts"
import { utf8Length } from "../text/Utf8.ts"
import { headBytes } from "../text/WellFormed.ts"
import { wireJson } from "../text/WireJson.ts"
import { toWire, type WireMapper } from "../text/WireNames.ts"
import { serveLimits } from "./Limits.ts"
import { lineSchemaOf, type ServeLine } from "./Line.ts"
import { notifyKinds, notifyTable } from "./Notify.ts"

const dataMappers = memoised(
  () => new Map<string, WireMapper>(notifyKinds.map((kind) => [kind, toWire(notifyTable[kind].schema)]))
)
const lineMappers = new Map<string, WireMapper>()

const mapperOf = (type: Exclude<ServeLine["type"], "notify">): WireMapper => {
  const known = lineMappers.get(type)
  if (known !== undefined) return known
  const mapper = toWire(lineSchemaOf(type))
  lineMappers.set(type, mapper)
  return mapper
}

type Fields = Record<string, unknown>

/** The line with the names of the wire. */
const wireForm = (line: ServeLine): Fields => {
  if (line.type !== "notify") return mapperOf(line.type)(line) as Fields
  const { cursor, data, kind, opId, protocol, runId, seq, type } = line
  return {
    protocol,
    seq,
    type,
    ...(runId === undefined ? {} : { run_id: runId }),
    kind,
    data: dataMappers().get(kind)?.(data) ?? data,
    ...(cursor === undefined ? {} : { cursor }),
    ...(opId === undefined ? {} : { op_id: opId })
  }
}

const nextLine = /\u0085/gu
const written = (value: unknown): string => {
  const json = wireJson(value)
  return json.includes("\u0085") ? json.replace(nextLine, "\\u0085") : json
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Where something can be cut: the object that says so, the field, its weight, and how to make it this much shorter. */
interface Place {
  readonly owner: Fields
  readonly field: string
  readonly weight: number
  readonly shorten: (bytes: number) => void
}

/** The part that stays of something of `bytes` bytes which has to lose `excess`. */
const remaining = (bytes: number, excess: number): number => Math.max(0, Math.min(0.9, (bytes - excess - 64) / bytes))

/** Fields that name things: without them a line means nothing. */
const kept: ReadonlySet<string> = new Set(["type", "kind", "run_id", "op_id", "ask_id", "session_id", "turn_id"])

/** Lists of so few items are never the reason. */
const fewItems = 64

/** The longest text of a value, or its longest list where that is made of many small things. */
const longestPlace = (root: Fields): Place | undefined => {
  let longest: Place | undefined
  const offer = (place: Place): void => {
    if (place.weight > (longest?.weight ?? 2)) longest = place
  }
  const walk = (value: unknown, owner: Fields, field: string, put: (value: unknown) => void): void => {
    if (typeof value === "string") {
      // What is written is longer than the text where it needs escapes.
      const bytes = utf8Length(written(value))
      offer({
        owner,
        field,
        weight: bytes,
        shorten: (excess) => put(headBytes(value, Math.floor(utf8Length(value) * remaining(bytes, excess))))
      })
    } else if (Array.isArray(value)) {
      const items = value as Array<unknown>
      items.forEach((item, index) =>
        walk(item, owner, field, (next) => {
          items[index] = next
        })
      )
      if (items.length <= fewItems) return
      const bytes = utf8Length(written(items))
      offer({
        owner,
        field,
        // Half: one long text in a list is cut before items are dropped.
        weight: Math.floor(bytes / 2),
        shorten: (excess) => put(items.slice(0, Math.floor(items.length * remaining(bytes, excess))))
      })
    } else if (isObject(value)) walkFields(value)
  }
  const walkFields = (fields: Fields): void => {
    for (const [field, value] of Object.entries(fields)) {
      if (kept.has(field)) continue
      walk(value, fields, field, (next) => {
        fields[field] = next
      })
    }
  }
  walkFields(root)
  return longest
}

/** Cuts the longest parts until the line fits; what was cut is marked beside it. */
const fitted = (whole: string, limit: number): string => {
  let text = whole
  const root = JSON.parse(text) as Fields
  for (let excess = utf8Length(text) - limit; excess > 0; excess = utf8Length(text) - limit) {
    const place = longestPlace(root)
    if (place === undefined) return text
    place.shorten(excess)
    place.owner[`${place.field}_truncated`] = true
    text = written(root)
  }
  return text
}

/**
 * One line of JSON without its end. It is never longer than a line may be: what is too long is cut at a code point, and
 * `<field>_truncated: true` stands beside the field that was cut.
 *
 * @since 0.1.0
 */
export const encodeLine = (line: ServeLine): string => {
  const text = written(wireForm(line))
  const limit = serveLimits.lineBytes - 1
  return text.length * 3 <= limit || utf8Length(text) <= limit ? text : fitted(text, limit)
}
