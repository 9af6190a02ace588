/**
 * The published JSON Schema of ACP v1, as a judge of what a program writes: whether a value has the shape of its message, and
 * whether a type of the protocol has a field that the protocol does not know. Pure.
 */
import schema from "@agentclientprotocol/sdk/schema/v1/schema.json" with { type: "json" }
import { type Schema as JsonSchema, Validator } from "@cfworker/json-schema"
import { isList, isObject, type Json, type JsonObject } from "../Json.ts"

const definitions: Readonly<Record<string, object>> = schema.$defs

/** The definition of a method's message, by the side that serves the method. */
const named = (side: "agent" | "client", method: string, end: RegExp): string | undefined =>
  Object.entries(definitions).find(
    ([name, definition]) =>
      end.test(name) &&
      "x-method" in definition &&
      definition["x-method"] === method &&
      "x-side" in definition &&
      definition["x-side"] === side
  )?.[0]

/** What a result of a method of the agent is. */
export const resultName = (method: string): string | undefined => named("agent", method, /Response$/u)

/** What the params of a method of the client are. */
export const paramsName = (method: string): string | undefined => named("client", method, /(?:Request|Notification)$/u)

const validators = new Map<string, Validator>()

const validatorOf = (name: string): Validator => {
  const known = validators.get(name)
  if (known !== undefined) return known
  // The keywords that the schema adds to the standard are nothing to a validator.
  const whole = { $schema: schema.$schema, $ref: `#/$defs/${name}`, $defs: definitions } as JsonSchema
  const made = new Validator(whole, "2020-12", false)
  validators.set(name, made)
  return made
}

/** What is wrong with a value, or undefined. */
export const shapeProblem = (name: string, value: Json | undefined): string | undefined => {
  const { errors, valid } = validatorOf(name).validate(value ?? null)
  if (valid) return undefined
  const deepest = errors.toSorted((a, b) => b.instanceLocation.length - a.instanceLocation.length)[0]
  return `${name}${deepest?.instanceLocation.slice(1) ?? ""}: ${deepest?.error ?? "is not valid"}`
}

type Node = Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && !Array.isArray(value)

const nodesIn = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.filter(isNode) : [])

/** The schemas that describe one object: this one, those it refers to, and of alternatives all that agree with its marks. */
const layers = (node: Node, value: JsonObject): ReadonlyArray<Node> => {
  const reference = node["$ref"]
  if (typeof reference === "string") {
    const target = definitions[reference.slice("#/$defs/".length)]
    return isNode(target) ? layers(target, value) : []
  }
  const agrees = ({ properties }: Node): boolean =>
    !isNode(properties) ||
    Object.entries(properties).every(
      ([name, property]) => !isNode(property) || !("const" in property) || property["const"] === value[name]
    )
  const choices = [...nodesIn(node["anyOf"]), ...nodesIn(node["oneOf"])].filter(agrees)
  return [node, ...[...nodesIn(node["allOf"]), ...choices].flatMap((inner) => layers(inner, value))]
}

const strangeIn = (nodes: ReadonlyArray<Node>, value: Json | undefined, path: string): string | undefined => {
  if (isList(value)) {
    const items = nodes.flatMap((node) => (isNode(node["items"]) ? [node["items"]] : []))
    for (const [index, item] of value.entries()) {
      const found = items.length === 0 ? undefined : strange(items, item, `${path}/${index}`)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isObject(value)) return undefined
  const properties = nodes.flatMap((node) => (isNode(node["properties"]) ? [node["properties"]] : []))
  // A type that lists no fields, or takes any, is nobody's to judge.
  if (properties.length === 0 || nodes.some((node) => node["additionalProperties"] === true)) return undefined
  for (const [name, inner] of Object.entries(value)) {
    const known = properties.flatMap((one) => (Object.hasOwn(one, name) ? [one[name]] : []))
    if (known.length === 0) return `${path}/${name}`
    const found = name === "_meta" ? undefined : strange(known.filter(isNode), inner, `${path}/${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

const strange = (nodes: ReadonlyArray<Node>, value: Json | undefined, path: string): string | undefined =>
  strangeIn(
    nodes.flatMap((node) => layers(node, isObject(value) ? value : {})),
    value,
    path
  )

/** The path of the first field that the protocol does not know, or undefined. */
export const strangeField = (name: string, value: Json | undefined): string | undefined =>
  strange([{ $ref: `#/$defs/${name}` }], value, name)
