/**
 * camelCase in TypeScript, snake_case on the wire: the one key mapping (D-32).
 *
 * Names are mapped where a schema names them. Inside a field whose schema is free JSON nothing is mapped, nor are the
 * keys of records. A mapper is compiled once from a schema, at module scope, and is then a plain function.
 *
 * @since 0.1.0
 */
import { Schema, SchemaAST } from "effect"
import { memoised } from "../internal/Lazy.ts"

/**
 * Names whose wire form does not follow the rule.
 *
 * @since 0.1.0
 */
export const wireNameExceptions = { providerID: "provider_id", modelID: "model_id" } as const

const exceptions: ReadonlyMap<string, string> = new Map(Object.entries(wireNameExceptions))
const exceptionsBack: ReadonlyMap<string, string> = new Map(
  Object.entries(wireNameExceptions).map(([name, wire]) => [wire, name])
)

/**
 * The wire name of a field: `messageId` is `message_id`.
 *
 * @since 0.1.0
 */
export const toWireName = (name: string): string =>
  exceptions.get(name) ?? name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)

/**
 * The field of a wire name: `message_id` is `messageId`. By name alone `provider_id` is `providerID`; a struct that has
 * `providerId` itself reads it back through {@link fromWire}, which goes by the schema.
 *
 * @since 0.1.0
 */
export const fromWireName = (wire: string): string =>
  exceptionsBack.get(wire) ?? wire.replace(/(?<=[A-Za-z0-9])_([a-z])/gu, (_, letter: string) => letter.toUpperCase())

/** Maps an encoded value; the identity where nothing has another name. @since 0.1.0 */
export type WireMapper = (value: unknown) => unknown

type Names = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Names =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const put = (target: Record<string, unknown>, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  } else target[key] = value
}

/** `undefined` = the identity. */
type Compiled = WireMapper | undefined

interface Direction {
  readonly source: (name: string) => string
  readonly target: (name: string) => string
  readonly memo: WeakMap<SchemaAST.AST, { compiled?: Compiled; done: boolean }>
}

const compile = (ast: SchemaAST.AST, direction: Direction): Compiled => {
  const known = direction.memo.get(ast)
  if (known !== undefined) {
    // a cycle: the mapper is looked up when it is used
    return known.done ? known.compiled : (value) => (known.compiled === undefined ? value : known.compiled(value))
  }
  const entry: { compiled?: Compiled; done: boolean } = { done: false }
  direction.memo.set(ast, entry)
  entry.compiled = build(ast, direction)
  entry.done = true
  return entry.compiled
}

const build = (ast: SchemaAST.AST, direction: Direction): Compiled => {
  switch (ast._tag) {
    case "Objects":
      return buildObject(ast, direction)
    case "Arrays":
      return buildArray(ast, direction)
    case "Union":
      return buildUnion(ast, direction)
    case "Suspend":
      return compile(SchemaAST.toEncoded(ast.thunk()), direction)
    default:
      return undefined
  }
}

const buildObject = (ast: SchemaAST.Objects, direction: Direction): Compiled => {
  const fields = ast.propertySignatures.map((signature) => {
    const name = String(signature.name)
    return {
      source: direction.source(name),
      target: direction.target(name),
      map: compile(signature.type, direction)
    }
  })
  const rest = ast.indexSignatures.map((signature) => compile(signature.type, direction))
  const mapRest = rest.find((mapper) => mapper !== undefined)
  const identity = fields.every((field) => field.map === undefined && field.source === field.target)
  if (identity && mapRest === undefined) return undefined

  const open = ast.indexSignatures.length > 0
  const sources = new Set(fields.map((field) => field.source))
  return (value) => {
    if (!isObject(value)) return value
    const out: Record<string, unknown> = {}
    for (const field of fields) {
      if (!Object.hasOwn(value, field.source)) continue
      const member = value[field.source]
      if (member === undefined) continue
      put(out, field.target, field.map === undefined ? member : field.map(member))
    }
    if (open) {
      for (const key of Object.keys(value)) {
        if (sources.has(key)) continue
        put(out, key, mapRest === undefined ? value[key] : mapRest(value[key]))
      }
    }
    return out
  }
}

const buildArray = (ast: SchemaAST.Arrays, direction: Direction): Compiled => {
  const elements = ast.elements.map((element) => compile(element, direction))
  const rest = ast.rest.map((element) => compile(element, direction))
  const [first] = rest
  if (elements.every((mapper) => mapper === undefined) && rest.every((mapper) => mapper === undefined)) return undefined
  return (value) =>
    Array.isArray(value)
      ? value.map((member: unknown, index) => {
          const map = index < elements.length ? elements[index] : first
          return map === undefined ? member : map(member)
        })
      : value
}

interface Member {
  readonly required: ReadonlyArray<string>
  readonly known: ReadonlySet<string>
  readonly literals: ReadonlyMap<string, unknown>
  readonly open: boolean
  readonly map: Compiled
}

const flatten = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  ast._tag === "Union"
    ? ast.types.flatMap(flatten)
    : ast._tag === "Suspend"
      ? flatten(SchemaAST.toEncoded(ast.thunk()))
      : [ast]

const describe = (ast: SchemaAST.Objects, direction: Direction): Member => {
  const names = ast.propertySignatures.map(
    (signature) => [direction.source(String(signature.name)), signature] as const
  )
  return {
    required: names.filter(([, signature]) => signature.type.context?.isOptional !== true).map(([name]) => name),
    known: new Set(names.map(([name]) => name)),
    literals: new Map(
      names.flatMap(([name, { type }]) =>
        type._tag === "Literal" && type.context?.isOptional !== true ? [[name, type.literal] as const] : []
      )
    ),
    open: ast.indexSignatures.length > 0,
    map: compile(ast, direction)
  }
}

/** A key that is a literal in every member and another one in each. */
const discriminatorOf = (members: ReadonlyArray<Member>): string | undefined => {
  const [first] = members
  if (first === undefined) return undefined
  for (const key of first.literals.keys()) {
    const values = new Set(members.map((member) => member.literals.get(key)))
    if (!values.has(undefined) && values.size === members.length) return key
  }
  return undefined
}

const matches = (member: Member, value: Names): boolean =>
  member.required.every((key) => Object.hasOwn(value, key)) &&
  [...member.literals].every(([key, literal]) => value[key] === literal)

const buildUnion = (ast: SchemaAST.Union, direction: Direction): Compiled => {
  const types = flatten(ast)
  const members = types.filter((type) => type._tag === "Objects").map((type) => describe(type, direction))
  const arrays = types.flatMap((type) => (type._tag === "Arrays" ? [compile(type, direction)] : []))
  const mapArray = arrays.find((mapper) => mapper !== undefined)
  if (members.every((member) => member.map === undefined) && mapArray === undefined) return undefined

  const pick = picker(members)
  return (value) => {
    if (Array.isArray(value)) return mapArray === undefined ? value : mapArray(value)
    if (!isObject(value)) return value
    const map = pick(value)
    return map === undefined ? value : map(value)
  }
}

const picker = (members: ReadonlyArray<Member>): ((value: Names) => Compiled) => {
  const [only] = members
  if (only !== undefined && members.length === 1) return () => only.map
  const key = discriminatorOf(members)
  if (key !== undefined) {
    const byLiteral = new Map(members.map((member) => [member.literals.get(key), member.map]))
    return (value) => byLiteral.get(value[key])
  }
  // structurally: of the members whose required fields are there, the one that knows most of the value's fields
  return (value) => {
    let best: Member | undefined
    let bestScore = -1
    const keys = Object.keys(value)
    for (const member of members) {
      if (!matches(member, value)) continue
      const score = keys.filter((name) => member.known.has(name)).length + (member.open ? 0 : 0.5)
      if (score > bestScore) {
        best = member
        bestScore = score
      }
    }
    return best?.map
  }
}

const same = (name: string): string => name
const outward: Direction = { source: same, target: toWireName, memo: new WeakMap() }
const inward: Direction = { source: toWireName, target: same, memo: new WeakMap() }

const mapper = (schema: Schema.Constraint, direction: Direction): WireMapper => {
  const map = memoised((): WireMapper => compile(SchemaAST.toEncoded(schema.ast), direction) ?? ((value) => value))
  return (value) => map()(value)
}

/**
 * Compiles the mapping of a schema's encoded values to their wire form. Use at module scope:
 *
 * ```ts
 * const encodeRow = Schema.encodeUnknownSync(Row)
 * const rowToWire = toWire(Row)
 * rowToWire(encodeRow(row))
 * ```
 *
 * Members that the schema does not name are left out; a value that fits no member of a union is given back as it is.
 *
 * @since 0.1.0
 */
export const toWire = (schema: Schema.Constraint): WireMapper => mapper(schema, outward)

/**
 * Compiles the mapping of wire values to what the schema decodes. It checks nothing: decode the result.
 *
 * @since 0.1.0
 */
export const fromWire = (schema: Schema.Constraint): WireMapper => mapper(schema, inward)
