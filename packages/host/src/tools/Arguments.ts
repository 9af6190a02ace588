/**
 * Checking a model's arguments against a tool's JSON Schema 2020-12 (AGT-005).
 *
 * A validator is compiled once per tool. Issues name a path and what was expected, never a value: messages of the engine are
 * not used, because they may quote. Bounds in bytes and well-formed text, which JSON Schema cannot state, are named beside
 * the schema per property.
 */
import { type OutputUnit, type Schema as EngineSchema, Validator } from "@cfworker/json-schema"
import type { Schema } from "effect"

export interface Issue {
  /** As in `edits[2].old`; `(arguments)` for the whole. */
  readonly path: string
  readonly expected: string
}

export type JsonSchema = { readonly [key: string]: Schema.Json }

/** Largest number of UTF-8 bytes per top-level property; such a property must also be well-formed Unicode text. */
export type ByteBounds = Readonly<Record<string, number>>

export type Validate = (input: unknown) => ReadonlyArray<Issue>

const unescape = (part: string): string => part.replaceAll("~1", "/").replaceAll("~0", "~")

const decodePart = (part: string): string => {
  try {
    return unescape(decodeURIComponent(part))
  } catch {
    return unescape(part)
  }
}

const partsOf = (pointer: string): ReadonlyArray<string> =>
  pointer
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map(decodePart)

const show = (parts: ReadonlyArray<string>): string => {
  const path = parts
    .map((part) => {
      const text = part.length > 64 ? `${part.slice(0, 64)}…` : part
      return /^\d+$/.test(part) ? `[${part}]` : /^[\w$-]+$/.test(text) ? `.${text}` : `[${JSON.stringify(text)}]`
    })
    .join("")
  return path === "" ? "(arguments)" : path.replace(/^\./, "")
}

/** The keyword's own value in the schema; undefined behind a `$ref`, where the location is no path of the document. */
const keywordValue = (schema: JsonSchema, unit: OutputUnit): unknown => {
  let current: unknown = schema
  for (const part of partsOf(unit.keywordLocation)) {
    if (typeof current !== "object" || current === null) return undefined
    current = (current as Readonly<Record<string, unknown>>)[part]
  }
  return current
}

const plural = (count: unknown, noun: string): string => `${String(count)} ${noun}${count === 1 ? "" : "s"}`

const expectation = (keyword: string, value: unknown): string => {
  switch (keyword) {
    case "type":
      return Array.isArray(value) ? value.join(" or ") : typeof value === "string" ? value : "another type"
    case "enum":
      return Array.isArray(value) ? `one of ${value.map((each) => JSON.stringify(each)).join(", ")}` : "a listed value"
    case "const":
      return value === undefined ? "a fixed value" : JSON.stringify(value)
    case "minLength":
      return `at least ${plural(value, "char")}`
    case "maxLength":
      return `at most ${plural(value, "char")}`
    case "minimum":
      return `at least ${String(value)}`
    case "maximum":
      return `at most ${String(value)}`
    case "exclusiveMinimum":
      return `more than ${String(value)}`
    case "exclusiveMaximum":
      return `less than ${String(value)}`
    case "multipleOf":
      return `a multiple of ${String(value)}`
    case "minItems":
      return `at least ${plural(value, "item")}`
    case "maxItems":
      return `at most ${plural(value, "item")}`
    case "minProperties":
      return `at least ${plural(value, "member")}`
    case "maxProperties":
      return `at most ${plural(value, "member")}`
    case "pattern":
      return typeof value === "string" ? `text that matches ${value}` : "text of another form"
    case "format":
      return typeof value === "string" ? `text of format ${value}` : "text of another form"
    case "uniqueItems":
      return "no item twice"
    default:
      return "a value that fits the schema"
  }
}

/** Keywords that only say that something below them did not fit. */
const wrapping = new Set([
  "properties",
  "additionalProperties",
  "patternProperties",
  "unevaluatedProperties",
  "propertyNames",
  "items",
  "prefixItems",
  "additionalItems",
  "unevaluatedItems",
  "$ref",
  "$dynamicRef",
  "$recursiveRef",
  "allOf",
  "anyOf",
  "oneOf",
  "then",
  "else",
  "if",
  "dependentSchemas"
])

const missing = /required property "(.*)"\.$/s

const issueOf = (schema: JsonSchema, unit: OutputUnit): Issue => {
  const parts = partsOf(unit.instanceLocation)
  if (unit.keyword === "false") return { path: show(parts), expected: "no such member" }
  if (unit.keyword === "required" || unit.keyword === "dependentRequired") {
    const name = missing.exec(unit.error)?.[1]
    return { path: show(name === undefined ? parts : [...parts, name]), expected: "a value (required)" }
  }
  return { path: show(parts), expected: expectation(unit.keyword, keywordValue(schema, unit)) }
}

const byteIssues = (input: unknown, bounds: ByteBounds): ReadonlyArray<Issue> => {
  if (typeof input !== "object" || input === null) return []
  return Object.entries(bounds).flatMap(([name, max]) => {
    const value: unknown = Object.hasOwn(input, name) ? Reflect.get(input, name) : undefined
    if (typeof value !== "string") return []
    if (!value.isWellFormed()) return [{ path: name, expected: "well-formed Unicode text" }]
    return Buffer.byteLength(value) > max ? [{ path: name, expected: `at most ${max} bytes of UTF-8` }] : []
  })
}

const mostIssues = 10

/** Compiles a schema. The schema itself must be valid; its `$ref`s stay inside it. */
export const compileArguments = (schema: JsonSchema, bounds: ByteBounds = {}): Validate => {
  const validator = new Validator(schema as EngineSchema, "2020-12", false)
  return (input) => {
    const { valid, errors } = validator.validate(input)
    if (valid) return byteIssues(input, bounds)
    const own = errors.filter((unit) => !wrapping.has(unit.keyword))
    const issues = (own.length > 0 ? own : errors).map((unit) => issueOf(schema, unit))
    const seen = new Set<string>()
    return issues
      .filter(({ path, expected }) => {
        const key = `${path}\n${expected}`
        return !seen.has(key) && seen.add(key)
      })
      .slice(0, mostIssues)
  }
}
