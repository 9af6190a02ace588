/**
 * Finds the rule ids that tests cite. Owns the form of a citation; does not own which ids exist.
 *
 * A citation stands in square brackets in a string literal, the name of a test: `"… [RUN-031]"`, `"… [RUN-031, RT-004]"`.
 * In a contract kit it may also be the value of `id` or `rule`, a member of `rules`, or the first argument of a call that
 * makes a case (one id, or an array of them, before the case's title). Comments cite nothing.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { parseSync } from "vite"

export interface Citation {
  readonly id: string
  /** Path from the root of the repository. */
  readonly file: string
}

export interface Citations {
  readonly cited: ReadonlyArray<Citation>
  /** Brackets that look like a citation and have another form, and files that do not parse: nobody would count them. */
  readonly malformed: ReadonlyArray<{ readonly text: string; readonly file: string }>
}

/** A family's three digits, or the row of a table of the seat contract: `RIG-D4`, `SEAT-Q12`. */
const ruleId = /^(?:(?:RT|HRN|STO|RUN|AGT|SEAT|RIG|CHK|ACP|SRV|HDL)-\d{3}|(?:RIG|SEAT)-[A-Z]\d{1,2})$/
const brackets = /\[([^[\]]*)\]/g
const looksLikeRule = /\b(?:RT|HRN|STO|RUN|AGT|SEAT|RIG|CHK|ACP|SRV|HDL)-?\d/

const isNode = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const cooked = (quasi: unknown): string => {
  const value = isNode(quasi) ? quasi["value"] : undefined
  return isNode(value) && typeof value["cooked"] === "string" ? value["cooked"] : ""
}

const textOf = (node: unknown): string | undefined => {
  if (!isNode(node)) return undefined
  if (node["type"] === "Literal" && typeof node["value"] === "string") return node["value"]
  if (node["type"] !== "TemplateLiteral" || !Array.isArray(node["quasis"])) return undefined
  return node["quasis"].map((quasi: unknown) => cooked(quasi)).join("…")
}

const keyOf = (node: Record<string, unknown>): string | undefined => {
  const key = node["key"]
  if (!isNode(key)) return undefined
  return typeof key["name"] === "string" ? key["name"] : typeof key["value"] === "string" ? key["value"] : undefined
}

/** The citations of one source. `kit` also reads the fields `id`, `rule` and `rules`. */
export const citationsOf = (file: string, source: string, kit: boolean): Citations => {
  const cited: Array<Citation> = []
  const malformed: Array<{ text: string; file: string }> = []

  const named = (text: string): void => {
    for (const [whole, inner = ""] of text.matchAll(brackets)) {
      const ids = inner.split(", ")
      if (ids.every((id) => ruleId.test(id))) for (const id of ids) cited.push({ id, file })
      else if (looksLikeRule.test(inner)) malformed.push({ text: whole, file })
    }
  }

  const field = (node: Record<string, unknown>): void => {
    const key = keyOf(node)
    const value = node["value"]
    if (!isNode(value)) return
    const texts =
      key === "rules" && value["type"] === "ArrayExpression" && Array.isArray(value["elements"])
        ? value["elements"].map(textOf)
        : key === "id" || key === "rule"
          ? [textOf(value)]
          : []
    for (const text of texts) if (text !== undefined && ruleId.test(text)) cited.push({ id: text, file })
  }

  /** `make("HRN-001", "title", …)`, `testCase(["STO-001"], "title", …)`. */
  const made = (node: Record<string, unknown>): void => {
    const [first, title]: ReadonlyArray<unknown> = Array.isArray(node["arguments"]) ? node["arguments"] : []
    if (!isNode(first) || textOf(title) === undefined) return
    const listed = first["type"] === "ArrayExpression" && Array.isArray(first["elements"]) ? first["elements"] : [first]
    for (const text of listed.map(textOf)) if (text !== undefined && ruleId.test(text)) cited.push({ id: text, file })
  }

  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const child of node) visit(child)
      return
    }
    if (!isNode(node)) return
    const text = textOf(node)
    if (text !== undefined) named(text)
    if (kit && node["type"] === "Property") field(node)
    if (kit && node["type"] === "CallExpression") made(node)
    for (const child of Object.values(node)) if (typeof child === "object") visit(child)
  }

  const parsed = parseSync(file, source)
  const fault = parsed.errors[0]
  if (fault !== undefined) return { cited: [], malformed: [{ text: fault.message, file }] }
  visit(parsed.program)
  return { cited, malformed }
}

const sourcesUnder = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/[\\/](?:node_modules|dist)[\\/]/.test(path))
    .toSorted()

const isKit = (path: string): boolean => path.includes("/src/testing/") || path.endsWith(".suite.ts")

/** Reads every test and contract kit of the workspace at `root`. */
export const readCitations = (root: string): Citations => {
  const files = [
    ...readdirSync(join(root, "packages"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => sourcesUnder(join(root, "packages", entry.name))),
    ...sourcesUnder(join(root, "test/e2e")).filter((path) => !path.includes("/e2e/requirements"))
  ]
  const found = files
    .filter((path) => /\/packages\/[^/]+\/test\//.test(path) || path.includes("/test/e2e/") || isKit(path))
    .map((path) => citationsOf(relative(root, path), readFileSync(path, "utf8"), isKit(path)))
  return { cited: found.flatMap((one) => one.cited), malformed: found.flatMap((one) => one.malformed) }
}
