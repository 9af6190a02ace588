/**
 * The registry of a host's tools: names, aliases, schemas, categories, bindings.
 *
 * Owns: which qualified names exist, the alias of each, fixed at registration (AGT-031, AGT-032), argument checks (AGT-005) and
 * bindings (AGT-121). Does not own which agent sees which tool, approval, or running a tool. Registering fails as a whole
 * and changes nothing then.
 */
import { createHash } from "node:crypto"
import type { Category } from "@tackroom/protocol/events"
import { canonicalJson } from "@tackroom/protocol/text"
import { Context, Data, Effect, Layer } from "effect"
import { compileArguments, type JsonSchema, type Validate } from "./Arguments.ts"
import { type Declaration, declarations } from "./NativeTools.ts"

/** What a session grant is bound to (AGT-121): when any of it changes, the grant does not hold any more. */
export interface Binding {
  readonly source: string
  readonly version: string
  readonly schemaDigest: string
  readonly category: Category | null
}

/** One text for everything that a grant and a session are bound to (AGT-121). */
export const bindingText = ({ category, schemaDigest, source, version }: Binding): string =>
  [source, version, schemaDigest, category ?? ""].join(" ")

export interface Tool {
  readonly qualifiedName: string
  /** What models, summaries and interruptions use. */
  readonly alias: string
  readonly description: string
  readonly schema: JsonSchema
  readonly category: Category | undefined
  readonly source: "native" | "internal"
  readonly binding: Binding
  /** Issues of arguments that break the schema, empty when they fit. Names no value. */
  readonly validate: Validate
}

export class ToolRefused extends Data.TaggedError("ToolRefused")<{
  readonly qualifiedName: string
  readonly reason: "name" | "taken" | "schema"
}> {}

/** Of the native and internal tools: goes up when a tool comes to do something else under the same schema. */
const toolVersion = "1"

const provider = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const tool = /^[A-Za-z0-9._/-]{1,128}$/
const aliasChars = 64

/** `provider.tool`, split at the first dot (AGT-031). */
export const splitQualifiedName = (name: string): { readonly provider: string; readonly tool: string } | undefined => {
  const dot = name.indexOf(".")
  const parts = { provider: name.slice(0, dot), tool: name.slice(dot + 1) }
  return dot > 0 && provider.test(parts.provider) && tool.test(parts.tool) ? parts : undefined
}

const sha256Hex = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/** The alias of a name (AGT-032); `taken` says whether another tool has one already. */
export const aliasOf = (qualifiedName: string, taken: (alias: string) => boolean): string => {
  const parts = splitQualifiedName(qualifiedName)
  const text = parts === undefined ? qualifiedName : `${parts.provider}__${parts.tool}`
  const plain = text.replaceAll(/[^A-Za-z0-9_-]/g, "_")
  if (plain.length <= aliasChars && !taken(plain)) return plain
  return `${plain.slice(0, 55)}_${sha256Hex(qualifiedName).slice(0, 8)}`
}

/** SHA-256 (hex) of a schema, whatever the order of its members. */
export const schemaDigest = (schema: JsonSchema): string => sha256Hex(canonicalJson(schema))

export interface ToolsService {
  /** In order of registration. */
  readonly list: () => ReadonlyArray<Tool>
  readonly find: (qualifiedName: string) => Tool | undefined
  readonly findAlias: (alias: string) => Tool | undefined
  /** Adds tools, all or none. An alias once given stays with its name. */
  readonly register: (tools: ReadonlyArray<Declaration>) => Effect.Effect<ReadonlyArray<Tool>, ToolRefused>
}

const makeTool = (declared: Declaration, alias: string): Tool => {
  let validate: Validate | undefined
  let digest: string | undefined
  return {
    qualifiedName: declared.qualifiedName,
    alias,
    description: declared.description,
    schema: declared.schema,
    category: declared.category,
    source: declared.source,
    binding: {
      source: declared.source,
      version: toolVersion,
      get schemaDigest() {
        return (digest ??= schemaDigest(declared.schema))
      },
      category: declared.category ?? null
    },
    validate: (input) => (validate ??= compileArguments(declared.schema, declared.bytes))(input)
  }
}

const isSchema = ({ bytes, schema }: Declaration): boolean => {
  try {
    compileArguments(schema, bytes)
    return true
  } catch {
    return false
  }
}

export interface ToolsOptions {
  /** `shell_timeout_s_max`, when the host's configuration lowers it. */
  readonly shellSecondsMax?: number
}

/** The native and internal tools, ready to use; more can be registered. */
export const makeTools = (options: ToolsOptions = {}): ToolsService => {
  const byName = new Map<string, Tool>()
  const byAlias = new Map<string, Tool>()

  const add = (
    tools: ReadonlyArray<Declaration>,
    fits: (declared: Declaration) => boolean
  ): ReadonlyArray<Tool> | ToolRefused => {
    const made: Array<Tool> = []
    const taken = (alias: string): boolean => byAlias.has(alias) || made.some((each) => each.alias === alias)
    for (const declared of tools) {
      const { qualifiedName, source } = declared
      const wrong = (reason: ToolRefused["reason"]) => new ToolRefused({ qualifiedName, reason })
      if (source !== "internal" && splitQualifiedName(qualifiedName) === undefined) return wrong("name")
      if (byName.has(qualifiedName) || made.some((each) => each.qualifiedName === qualifiedName)) return wrong("taken")
      const alias = aliasOf(qualifiedName, taken)
      if (taken(alias)) return wrong("taken")
      if (!fits(declared)) return wrong("schema")
      made.push(makeTool(declared, alias))
    }
    for (const tool of made) {
      byName.set(tool.qualifiedName, tool)
      byAlias.set(tool.alias, tool)
    }
    return made
  }

  // Our own schemas are tested; compiling and digesting them waits for the first call.
  add(declarations(options.shellSecondsMax), () => true)
  return {
    list: () => [...byName.values()],
    find: (qualifiedName) => byName.get(qualifiedName),
    findAlias: (alias) => byAlias.get(alias),
    register: (tools) =>
      Effect.suspend(() => {
        const added = add(tools, isSchema)
        return added instanceof ToolRefused ? Effect.fail(added) : Effect.succeed(added)
      })
  }
}

export class Tools extends Context.Service<Tools, ToolsService>()("@tackroom/host/tools/Tools") {
  static readonly layerWith = (options: ToolsOptions): Layer.Layer<Tools> =>
    Layer.sync(Tools, () => Tools.of(makeTools(options)))
  static readonly layer: Layer.Layer<Tools> = Tools.layerWith({})
}
