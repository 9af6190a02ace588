/**
 * The tools of one MCP server as an agent may be given them: named, bounded, bound (AGT-031, AGT-032, AGT-121, RUN-253,
 * RUN-254). Pure. It does not own which agent sees them, nor what became of a tool since: it reads one listing.
 */
import type { Category } from "@tackroom/protocol/events"
import type { Schema } from "effect"
import type { SessionTool } from "../native/SessionSetup.ts"
import { compileArguments, type JsonSchema, type Validate } from "../tools/Arguments.ts"
import { aliasOf, bindingText, schemaDigest, splitQualifiedName } from "../tools/Tools.ts"

/** Tools of one server that an agent is given at most. */
export const mostTools = 128

/** A tool as its server lists it. Hints are not read: they lower no category. */
export interface ListedTool {
  readonly name: string
  readonly description?: string | undefined
  /** Absent where what stands there describes no object. */
  readonly inputSchema: { readonly [key: string]: unknown } | undefined
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined

/** Reads what a server lists as a tool, as far as it is one: a bad one leaves out itself and no other. */
export const listedTool = (value: unknown): ListedTool => {
  const { description, inputSchema, name } = fieldsOf(value) ?? {}
  const schema = fieldsOf(inputSchema)
  return {
    name: typeof name === "string" ? name : "",
    description: typeof description === "string" ? description : undefined,
    inputSchema: schema?.["type"] === "object" ? schema : undefined
  }
}

/** A tool of a server, under the server's own name for it. */
export interface ServerTool {
  readonly name: string
  readonly tool: SessionTool & { readonly boundTo: string }
}

export interface Listing {
  readonly tools: ReadonlyArray<ServerTool>
  /** Tools that were left out, each with why. */
  readonly leftOut: ReadonlyArray<{ readonly name: string; readonly why: string }>
}

/** What the tools of a listing have in common. */
export interface Provider {
  /** Fit for `mcp/register`. */
  readonly name: string
  /** What the server says it is; a part of the binding. */
  readonly version: string
  readonly source: "mcp" | "session"
  readonly categoryOf: (tool: string) => Category
  /** The alias that a name was given before: it stays (AGT-032). */
  readonly aliasBefore: (qualifiedName: string) => string | undefined
  /** True for an alias that another tool has. */
  readonly isTaken: (alias: string) => boolean
}

const compiled = (schema: JsonSchema): Validate | undefined => {
  try {
    return compileArguments(schema)
  } catch {
    return undefined
  }
}

/** Reads a listing. A name that was listed twice counts once. */
export const read = (provider: Provider, listed: ReadonlyArray<ListedTool>): Listing => {
  const tools: Array<ServerTool> = []
  const leftOut: Array<{ readonly name: string; readonly why: string }> = []
  const aliases = new Set<string>()
  for (const { description, inputSchema, name } of listed) {
    const qualifiedName = `${provider.name}.${name}`
    if (splitQualifiedName(qualifiedName) === undefined) {
      leftOut.push({ name, why: "its name does not fit" })
      continue
    }
    if (tools.some((known) => known.name === name)) {
      leftOut.push({ name, why: "its name is listed twice" })
      continue
    }
    if (inputSchema === undefined) {
      leftOut.push({ name, why: "it has no schema of an object for its arguments" })
      continue
    }
    // What came over the wire as JSON is JSON.
    const schema = inputSchema as { readonly [key: string]: Schema.Json }
    const validate = compiled(schema)
    if (validate === undefined) {
      leftOut.push({ name, why: "its schema cannot be read" })
      continue
    }
    if (tools.length >= mostTools) {
      leftOut.push({ name, why: `a server may give ${mostTools} tools` })
      continue
    }
    const taken = (alias: string): boolean => aliases.has(alias) || provider.isTaken(alias)
    const alias = provider.aliasBefore(qualifiedName) ?? aliasOf(qualifiedName, taken)
    if (taken(alias)) {
      leftOut.push({ name, why: "its alias is taken" })
      continue
    }
    aliases.add(alias)
    const category = provider.categoryOf(name)
    tools.push({
      name,
      tool: {
        qualifiedName,
        alias,
        description: description ?? "",
        schema,
        category,
        source: provider.source,
        boundTo: bindingText({
          source: `mcp:${provider.name}`,
          version: provider.version,
          schemaDigest: schemaDigest(schema),
          category
        }),
        validate
      }
    })
  }
  return { tools, leftOut }
}
