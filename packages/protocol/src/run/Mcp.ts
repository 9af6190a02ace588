/** MCP servers (run-protocol section 10). */
import { Schema } from "effect"
import { AbsolutePath, bytes, chars, HttpUrl, list, map, optional, ToolCategory } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Provider names that belong to native and internal tools, which no MCP server may take. */
export const reservedProviderNames = ["files", "shell", "web", "memory", "schedule", "plan", "user", "team"] as const

/** The name of an MCP server. */
export const McpServerName = lazySchema(() =>
  Schema.String.check(
    Schema.isPattern(/^(?!(?:files|shell|web|memory|schedule|plan|user|team)$)[a-z][a-z0-9_-]{0,31}$/u, {
      expected: "1 to 32 of the characters a-z 0-9 _ -, the first a letter, and no name of a native tool provider",
      arbitraryConstraint: { patterns: [{ source: "^x[a-z0-9_-]{0,31}$", flags: "" }] }
    })
  )
)
/** How a host reaches an MCP server: a child over stdio, or Streamable HTTP on loopback (RUN-252). */
export const McpTransport = lazySchema(() =>
  Schema.Union([
    Schema.Struct({
      type: Schema.Literal("stdio"),
      command: bytes(1, 4_096),
      args: optional(list(bytes(0, 65_536), 64)),
      env: optional(map(bytes(0, 65_536), 128)),
      cwd: optional(AbsolutePath)
    }),
    Schema.Struct({
      type: Schema.Literal("http"),
      url: HttpUrl,
      headers: optional(map(bytes(0, 8_192), 64))
    })
  ]).annotate({ identifier: "McpTransport", expected: "a transport of type stdio or http" })
)
/** How a host reaches an MCP server. */
export type McpTransport = typeof McpTransport.Type

/** Which tools of a server are selected, and their categories; without a category a tool is `external` (RUN-254). */
export const McpTools = lazySchema(() =>
  Schema.Struct({
    include: optional(list(chars(1, 128), 512)),
    exclude: optional(list(chars(1, 128), 512)),
    categories: optional(map(ToolCategory, 512))
  }).annotate({ identifier: "McpTools" })
)
/** Which tools of a server are selected, and their categories. */
export type McpTools = typeof McpTools.Type

/** Params of `mcp/register`, and an entry of `HostConfig.servers`. */
export const McpRegisterParams = lazySchema(() =>
  Schema.Struct({
    name: McpServerName,
    transport: McpTransport,
    tools: optional(McpTools)
  })
)
/** Params of `mcp/register`, and an entry of `HostConfig.servers`. */
export type McpRegisterParams = typeof McpRegisterParams.Type

/** A registered MCP server. `transport` is shown without the values of `env` and `headers`. */
export const McpServer = lazySchema(() =>
  Schema.Struct({
    name: Schema.String,
    transport: Schema.Union([
      Schema.Struct({
        type: Schema.Literal("stdio"),
        command: Schema.String,
        args: optional(Schema.Array(Schema.String)),
        env: optional(Schema.Array(Schema.String)),
        cwd: optional(Schema.String)
      }),
      Schema.Struct({
        type: Schema.Literal("http"),
        url: Schema.String,
        headers: optional(Schema.Array(Schema.String))
      })
    ]),
    state: Schema.Literals(["starting", "ready", "failed", "stopped", "needs_registration"]),
    tools: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        qualifiedName: Schema.String,
        alias: Schema.String,
        category: ToolCategory
      })
    ),
    error: optional(Schema.String)
  }).annotate({ identifier: "McpServer" })
)
/** A registered MCP server. */
export type McpServer = typeof McpServer.Type
