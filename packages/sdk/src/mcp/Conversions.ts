/**
 * MCP servers in the words of those who start them. Pure; the values are filled in, so what comes out is for a pipe or a
 * process and not for a file or a log (RT-304).
 *
 * Implements RT-303.
 *
 * @since 0.1.0
 */
import type { McpServer } from "../harness/Harness.ts"
import type { McpStatus } from "./Resolver.ts"

/** A server as `session/new`, `session/load` and `session/resume` of the Agent Client Protocol take it. @since 0.1.0 */
export type AcpMcpServer =
  | {
      name: string
      command: string
      args: Array<string>
      env: Array<{ name: string; value: string }>
    }
  | {
      type: "http"
      name: string
      url: string
      headers: Array<{ name: string; value: string }>
    }

const pairs = (values: Readonly<Record<string, string>>): Array<{ name: string; value: string }> =>
  Object.entries(values).map(([name, value]) => ({ name, value }))

const statusOf = (server: McpServer & { readonly source?: "managed" | "user" }) => {
  const isManaged = server.source === "managed"
  return {
    default: isManaged,
    override: !isManaged,
    enabled: true,
    control: isManaged ? "managed" : "generated-config"
  } as const
}

/**
 * The servers for an ACP agent. One that the agent cannot reach is not among them, and its status says so.
 *
 * @since 0.1.0
 */
export const toAcpMcpServers = (
  mcp: Readonly<Record<string, McpServer>>,
  caps: { readonly http: boolean }
): { readonly servers: Array<AcpMcpServer>; readonly status: Readonly<Record<string, McpStatus>> } => {
  const servers: Array<AcpMcpServer> = []
  const status: Array<readonly [string, McpStatus]> = []
  for (const [name, server] of Object.entries(mcp)) {
    if (server.transport === "remote" && !caps.http) {
      const error = "the agent takes no MCP server over HTTP"
      status.push([name, { ...statusOf(server), apply: "blocked", error }])
      continue
    }
    status.push([name, { ...statusOf(server), apply: "applied" }])
    servers.push(
      server.transport === "stdio"
        ? { name, command: server.command, args: [...server.args], env: pairs(server.env) }
        : { type: "http", name, url: server.url, headers: pairs(server.headers) }
    )
  }
  return { servers, status: Object.fromEntries(status) }
}

/** A server in the `mcp` part of opencode's configuration. @since 0.1.0 */
export type OpencodeMcpServer =
  | {
      readonly type: "local"
      readonly command: ReadonlyArray<string>
      readonly environment: Readonly<Record<string, string>>
      readonly enabled: true
    }
  | {
      readonly type: "remote"
      readonly url: string
      readonly headers: Readonly<Record<string, string>>
      readonly enabled: true
    }

/** The `mcp` part of opencode's configuration. @since 0.1.0 */
export const toOpencodeConfig = (
  mcp: Readonly<Record<string, McpServer>>
): Readonly<Record<string, OpencodeMcpServer>> =>
  Object.fromEntries(
    Object.entries(mcp).map(([name, server]): readonly [string, OpencodeMcpServer] => [
      name,
      server.transport === "stdio"
        ? { type: "local", command: [server.command, ...server.args], environment: server.env, enabled: true }
        : { type: "remote", url: server.url, headers: server.headers, enabled: true }
    ])
  )
