/**
 * The key mapping between TypeScript (camelCase) and the wire (snake_case), compiled from a schema.
 *
 * Owns renaming, leaving out what a schema does not declare, and "null counts as absent". Does not own validation: a
 * value of another shape than its schema's passes through, for the decoder behind it to refuse. Nothing is mapped inside
 * free JSON, inside a value that is already in wire form, and no key of a map. A key such as `__proto__` is plain data.
 */
import type { Schema } from "effect"
import { SchemaAST } from "effect"
import { memoised } from "../../internal/Lazy.ts"
import { toWireName } from "../../text/WireNames.ts"

/** Maps one value; `undefined` as a mapper means that the value passes through as it is. */
type Map = ((value: unknown) => unknown) | undefined

/** Both directions of one schema. */
export interface WireMapper {
  readonly toWire: (value: unknown) => unknown
  readonly fromWire: (value: unknown) => unknown
}

type Direction = "toWire" | "fromWire"

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Sets a member also when its key is `__proto__`. */
export const setMember = (target: Record<string, unknown>, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  } else target[key] = value
}

/** Whether a schema takes null, so that a null in its place is a value and not an absent field. */
const takesNull = (ast: SchemaAST.AST): boolean => {
  if (SchemaAST.isNull(ast) || SchemaAST.isUnknown(ast) || SchemaAST.isAny(ast) || isFreeJson(ast)) return true
  return SchemaAST.isUnion(ast) && ast.types.some(takesNull)
}

/** Whether a schema is `Schema.Json`, annotated or not. */
export const isFreeJson = (ast: SchemaAST.AST): boolean => {
  if (!SchemaAST.isDeclaration(ast)) return false
  const representation = ast.annotations?.["representation"]
  return isObject(representation) && representation["id"] === "effect/schema/Json"
}

/** The member that stands in for an absent discriminant on input, from the annotation `wireDefaults` of a union. */
const defaultsOf = (ast: SchemaAST.AST): ReadonlyArray<readonly [string, string]> => {
  const defaults = ast.annotations?.["wireDefaults"]
  return isObject(defaults)
    ? Object.entries(defaults).filter((entry): entry is [string, string] => typeof entry[1] === "string")
    : []
}

const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<unknown> | undefined => {
  if (SchemaAST.isLiteral(ast)) return [ast.literal]
  if (SchemaAST.isUnion(ast) && ast.types.every(SchemaAST.isLiteral)) {
    return ast.types.map((type) => (SchemaAST.isLiteral(type) ? type.literal : undefined))
  }
  return undefined
}

/** Whether a schema is of a map, whose keys are data. */
const isMap = (ast: SchemaAST.Objects): boolean => ast.propertySignatures.length === 0 && ast.indexSignatures.length > 0

const compilers: { readonly [D in Direction]: WeakMap<SchemaAST.AST, { readonly map: Map }> } = {
  toWire: new WeakMap(),
  fromWire: new WeakMap()
}

const compile = (ast: SchemaAST.AST, direction: Direction): Map => {
  const known = compilers[direction].get(ast)
  if (known !== undefined) return known.map
  const map = build(ast, direction)
  compilers[direction].set(ast, { map })
  return map
}

const build = (ast: SchemaAST.AST, direction: Direction): Map => {
  switch (ast._tag) {
    case "Objects":
      return isMap(ast) ? record(ast, direction) : struct(ast, direction)
    case "Arrays":
      return array(ast, direction)
    case "Union":
      return union(ast, direction)
    case "Suspend": {
      let map: { readonly map: Map } | undefined
      return (value) => {
        map ??= { map: compile(ast.thunk(), direction) }
        return map.map === undefined ? value : map.map(value)
      }
    }
    default:
      return undefined
  }
}

const struct = (ast: SchemaAST.Objects, direction: Direction): Map => {
  const fields = ast.propertySignatures.map(({ name, type }) => {
    const key = String(name)
    const wire = toWireName(key)
    return {
      from: direction === "toWire" ? key : wire,
      to: direction === "toWire" ? wire : key,
      map: compile(type, direction),
      dropNull: direction === "fromWire" && SchemaAST.isOptional(type) && !takesNull(type)
    }
  })
  return (value) => {
    if (!isObject(value)) return value
    const out: Record<string, unknown> = {}
    for (const field of fields) {
      const member = value[field.from]
      if (member === undefined || (member === null && field.dropNull)) continue
      out[field.to] = field.map === undefined ? member : field.map(member)
    }
    return out
  }
}

const record = (ast: SchemaAST.Objects, direction: Direction): Map => {
  const signature = ast.indexSignatures[0]
  const map = signature === undefined ? undefined : compile(signature.type, direction)
  if (map === undefined) return undefined
  return (value) => {
    if (!isObject(value)) return value
    const out: Record<string, unknown> = {}
    for (const key of Object.keys(value)) setMember(out, key, map(value[key]))
    return out
  }
}

const array = (ast: SchemaAST.Arrays, direction: Direction): Map => {
  const elements = ast.elements.map((element) => compile(element, direction))
  const first = ast.rest[0]
  const rest = first === undefined ? undefined : compile(first, direction)
  if (rest === undefined && elements.every((element) => element === undefined)) return undefined
  return (value) => {
    if (!Array.isArray(value)) return value
    return value.map((item: unknown, index) => {
      const map = index < elements.length ? elements[index] : rest
      return map === undefined ? item : map(item)
    })
  }
}

interface Discriminant {
  readonly key: string
  readonly members: ReadonlyMap<unknown, Map>
}

/** The key by whose literal value the struct members of a union are told apart, if there is one. */
const discriminantOf = (members: ReadonlyArray<SchemaAST.Objects>, direction: Direction): Discriminant | undefined => {
  const first = members[0]
  if (first === undefined) return undefined
  for (const { name } of first.propertySignatures) {
    const byValue = new globalThis.Map<unknown, Map>()
    const complete = members.every((member) => {
      const property = member.propertySignatures.find((candidate) => candidate.name === name)
      const literals = property === undefined ? undefined : literalsOf(property.type)
      if (literals === undefined || literals.some((literal) => byValue.has(literal))) return false
      for (const literal of literals) byValue.set(literal, compile(member, direction))
      return true
    })
    if (complete) return { key: direction === "toWire" ? String(name) : toWireName(String(name)), members: byValue }
  }
  return undefined
}

const union = (ast: SchemaAST.Union, direction: Direction): Map => {
  const maps = ast.types.map((type) => compile(type, direction))
  if (maps.every((map) => map === undefined)) return undefined
  const structs = ast.types.filter(SchemaAST.isObjects).filter((type) => !isMap(type))
  const arrays = ast.types.findIndex(SchemaAST.isArrays)
  const records = ast.types.findIndex((type) => SchemaAST.isObjects(type) && isMap(type))
  const nested = ast.types.findIndex((type) => SchemaAST.isUnion(type) || SchemaAST.isSuspend(type))
  const discriminant = structs.length > 1 ? discriminantOf(structs, direction) : undefined
  const defaults = direction === "fromWire" ? defaultsOf(ast) : []
  const candidates = structs.map((type) => ({
    map: compile(type, direction),
    required: type.propertySignatures
      .filter((property) => !SchemaAST.isOptional(property.type))
      .map(({ name }) => (direction === "toWire" ? String(name) : toWireName(String(name))))
  }))
  const apply = (map: Map, value: unknown) => (map === undefined ? value : map(value))
  return (value) => {
    if (Array.isArray(value)) return arrays < 0 ? value : apply(maps[arrays], value)
    if (!isObject(value)) return value
    const absent = defaults.filter(([key]) => value[key] === undefined || value[key] === null)
    const input = absent.length === 0 ? value : { ...value, ...Object.fromEntries(absent) }
    if (discriminant !== undefined) return apply(discriminant.members.get(input[discriminant.key]), input)
    const candidate = candidates.find(({ required }) => required.every((key) => input[key] !== undefined))
    if (candidate !== undefined) return apply(candidate.map, input)
    if (records >= 0) return apply(maps[records], input)
    return nested < 0 ? input : apply(maps[nested], input)
  }
}

/** The mapping of a schema, compiled once per schema and direction, at its first use. */
export const wireMapper = (schema: Schema.Constraint): WireMapper => {
  const compiled = (direction: Direction) => {
    const map = memoised(() => compile(schema.ast, direction) ?? same)
    return (value: unknown): unknown => map()(value)
  }
  return { toWire: compiled("toWire"), fromWire: compiled("fromWire") }
}

const same = (value: unknown): unknown => value
