/**
 * From a schema issue to what an answer says of it: the path as the client wrote it and what was expected (RUN-061,
 * RT-322). An input value never gets into either.
 */
import { SchemaAST } from "effect"
import type { SchemaIssue } from "effect"

/** One bad field: its path in wire names, empty for the whole value, and what was expected there. */
export interface FieldIssue {
  readonly path: string
  readonly expected: string
}

type Path = ReadonlyArray<PropertyKey>

const annotation = (annotations: { readonly [key: string]: unknown } | undefined, key: string): string | undefined => {
  const value = annotations?.[key]
  return typeof value === "string" ? value : undefined
}

const checksOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  (ast.checks ?? []).flatMap((check) => {
    const expected = annotation(check.annotations, "expected")
    return expected === undefined ? [] : [expected]
  })

/** What a schema takes, in words. */
const expectedOf = (ast: SchemaAST.AST): string => {
  const own = annotation(ast.annotations, "expected")
  if (own !== undefined) return own
  const checks = checksOf(ast)
  switch (ast._tag) {
    case "String":
      return checks[0] ?? "a string"
    case "Number":
      return checks.at(-1) ?? "a number"
    case "Boolean":
      return "a boolean"
    case "Null":
      return "null"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Objects":
      return "an object"
    case "Arrays":
      return checks[0] ?? "a list"
    case "Never":
      return "nothing"
    case "Union":
      return ast.types.every(SchemaAST.isLiteral)
        ? `one of ${ast.types.map(expectedOf).join(", ")}`
        : [...new Set(ast.types.map(expectedOf))].join(" or ")
    default:
      return "a JSON value"
  }
}

/** The schemas that may describe what is at one step below a schema. */
const step = (ast: SchemaAST.AST, key: PropertyKey): ReadonlyArray<SchemaAST.AST> => {
  switch (ast._tag) {
    case "Objects": {
      const property = ast.propertySignatures.find(({ name }) => name === key)
      if (property !== undefined) return [property.type]
      const signature = ast.indexSignatures[0]
      return signature === undefined ? [] : [signature.type]
    }
    case "Arrays": {
      const item = ast.elements[Number(key)] ?? ast.rest[0]
      return item === undefined ? [] : [item]
    }
    case "Union":
      return ast.types.flatMap((type) => step(type, key))
    case "Suspend":
      return step(ast.thunk(), key)
    default:
      return []
  }
}

const isField = (ast: SchemaAST.AST, key: PropertyKey): boolean => {
  switch (ast._tag) {
    case "Objects":
      return ast.propertySignatures.some(({ name }) => name === key)
    case "Union":
      return ast.types.some((type) => isField(type, key))
    case "Suspend":
      return isField(ast.thunk(), key)
    default:
      return false
  }
}

const plainKey = /^[A-Za-z_][A-Za-z0-9_-]*$/

/** A path as the wire writes it: `agent.subagents[0].tools`, and `cursors["ses:1"]` for a key that is no plain name. */
const wirePath = (root: SchemaAST.AST, path: Path, nameOf: (field: string) => string): string => {
  let asts: ReadonlyArray<SchemaAST.AST> = [root]
  let out = ""
  for (const key of path) {
    if (typeof key === "number") out += `[${key}]`
    else {
      const name = String(key)
      const wire = asts.some((ast) => isField(ast, key)) ? nameOf(name) : name
      out += plainKey.test(wire) ? (out === "" ? wire : `.${wire}`) : `[${JSON.stringify(wire)}]`
    }
    asts = asts.flatMap((ast) => step(ast, key))
  }
  return out
}

const at = (root: SchemaAST.AST, path: Path): SchemaAST.AST | undefined => {
  let asts: ReadonlyArray<SchemaAST.AST> = [root]
  for (const key of path) asts = asts.flatMap((ast) => step(ast, key))
  return asts[0]
}

/** How issues are told: how the family's wire writes the name of a field, and at most how many of them (10). */
export interface IssueOptions {
  readonly nameOf: (field: string) => string
  readonly limit?: number
}

/** The bad fields of an issue, in the order of the schema. */
export const fieldIssues = (
  root: SchemaAST.AST,
  issue: SchemaIssue.Issue,
  { nameOf, limit = 10 }: IssueOptions
): ReadonlyArray<FieldIssue> => {
  const found: Array<FieldIssue> = []
  const add = (path: Path, expected: string) => {
    const entry = { path: wirePath(root, path, nameOf), expected }
    if (found.length < limit && !found.some((other) => other.path === entry.path)) found.push(entry)
  }
  const walk = (node: SchemaIssue.Issue, path: Path, expected: string | undefined): void => {
    if (found.length >= limit) return
    switch (node._tag) {
      case "Pointer":
        return walk(node.issue, [...path, ...node.path], undefined)
      case "Filter":
        return walk(node.issue, path, annotation(node.filter.annotations, "expected"))
      case "Encoding":
        return walk(node.issue, path, expected)
      case "Composite":
        return node.issues.forEach((inner) => walk(inner, path, expected))
      case "AnyOf":
        // With one member left, as after a discriminant, its own issues tell more than the union's.
        return node.issues.length === 1 && node.issues[0] !== undefined
          ? walk(node.issues[0], path, expected)
          : add(path, expectedOf(node.ast))
      case "MissingKey": {
        const ast = at(root, path)
        return add(path, ast === undefined ? "a value" : expectedOf(ast))
      }
      case "InvalidType":
        return add(path, expectedOf(node.ast))
      case "InvalidValue":
        return add(path, annotation(node.annotations, "message") ?? expected ?? "another value")
      default:
        return add(path, expected ?? "another value")
    }
  }
  walk(issue, [], undefined)
  return found
}
