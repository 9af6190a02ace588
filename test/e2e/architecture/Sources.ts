/** Reads the sources of the workspace: what each one imports and which globals it touches. Owns no rule. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { parseSync } from "vite"

export const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

export interface Import {
  /** As written; absent for `import(expression)`. */
  readonly specifier: string | undefined
  /** True when nothing of it is left after the types are stripped. */
  readonly typeOnly: boolean
  readonly dynamic: boolean
}

export interface Source {
  /** Path from the root of the repository. */
  readonly path: string
  readonly imports: ReadonlyArray<Import>
  /** Globals touched, as `process.env`, `console.log`, `new Date()`. */
  readonly globals: ReadonlyArray<string>
}

type Node = Record<string, unknown> & { readonly type: string }

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

const literal = (node: unknown): string | undefined =>
  isNode(node) && node.type === "Literal" && typeof node["value"] === "string" ? node["value"] : undefined

const nameOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === "Identifier" && typeof node["name"] === "string" ? node["name"] : undefined

const isTypeOnly = (node: Node): boolean => {
  if (node["importKind"] === "type" || node["exportKind"] === "type") return true
  const specifiers = node["specifiers"]
  return (
    Array.isArray(specifiers) &&
    specifiers.length > 0 &&
    specifiers.every((one) => isNode(one) && (one["importKind"] === "type" || one["exportKind"] === "type"))
  )
}

const importOf = (node: Node): Import | undefined => {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportAllDeclaration":
    case "ExportNamedDeclaration": {
      const specifier = literal(node["source"])
      return specifier === undefined ? undefined : { specifier, typeOnly: isTypeOnly(node), dynamic: false }
    }
    case "ImportExpression":
      return { specifier: literal(node["source"]), typeOnly: false, dynamic: true }
    case "TSImportType":
      return { specifier: literal(node["source"] ?? node["argument"]), typeOnly: true, dynamic: false }
    case "TSExternalModuleReference":
      return { specifier: literal(node["expression"]), typeOnly: false, dynamic: false }
    case "CallExpression": {
      const args = node["arguments"]
      return nameOf(node["callee"]) === "require" && Array.isArray(args)
        ? { specifier: literal(args[0]), typeOnly: false, dynamic: true }
        : undefined
    }
    default:
      return undefined
  }
}

const globalOf = (node: Node): string | undefined => {
  if (node.type === "MemberExpression") {
    const owner = nameOf(node["object"])
    if (owner !== "console" && owner !== "process" && owner !== "Date" && owner !== "Math") return undefined
    const property = nameOf(node["property"]) ?? literal(node["property"])
    return `${owner}.${property ?? "…"}`
  }
  const args = node["arguments"]
  return node.type === "NewExpression" && nameOf(node["callee"]) === "Date" && Array.isArray(args) && args.length === 0
    ? "new Date()"
    : undefined
}

export const parseSource = (path: string, text: string): Source => {
  const imports: Array<Import> = []
  const globals = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one)
    else if (isNode(value)) {
      const found = importOf(value)
      if (found !== undefined) imports.push(found)
      const global = globalOf(value)
      if (global !== undefined) globals.add(global)
      for (const child of Object.values(value)) if (typeof child === "object") visit(child)
    }
  }
  const parsed = parseSync(path, text)
  const fault = parsed.errors[0]
  if (fault !== undefined) throw new Error(`${path} does not parse: ${fault.message}`)
  visit(parsed.program)
  return { path, imports, globals: [...globals] }
}

const skipped = /(?:^|\/)(?:node_modules|dist|results)(?:\/|$)/

/** Every TypeScript file of the workspace. */
export const readSources = (): ReadonlyArray<Source> =>
  ["packages", "apps", "bench", "scripts", "test"]
    .flatMap((top) => readdirSync(join(root, top), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.(?:ts|tsx|mts)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !skipped.test(path))
    .toSorted()
    .map((path) => parseSource(path, readFileSync(join(root, path), "utf8")))

/** The path from the root that a relative specifier names, or undefined for a bare one. */
export const resolveRelative = (source: Source, specifier: string): string | undefined =>
  specifier.startsWith(".") ? relative(root, join(root, dirname(source.path), specifier)) : undefined

/** `@scope/name/deep` and `name/deep` belong to `@scope/name` and `name`. */
export const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")
