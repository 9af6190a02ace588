/** What a client gives when it sets a session up: directory and MCP servers, checked (serve-mode 12.3, 12.9). */
import type { McpServer } from "@agentclientprotocol/sdk"
import * as fs from "node:fs"
import { isIPv4 } from "node:net"
import * as path from "node:path"
import { invalidParams, type Refusal } from "./Refusals.ts"

/** The real path of a directory. */
export const realDirectory = (cwd: string): { readonly directory: string } | Refusal => {
  if (!path.isAbsolute(cwd)) return invalidParams("cwd_not_absolute", "cwd is an absolute path")
  try {
    const directory = fs.realpathSync(cwd)
    if (fs.statSync(directory).isDirectory()) return { directory }
  } catch {
    // It is told below, as anything that is no directory.
  }
  return invalidParams("cwd_not_found", "cwd is an existing directory")
}

const serverLimit = 16

const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."))

const badServer = (server: McpServer): string | undefined => {
  if ("command" in server)
    return path.isAbsolute(server.command) ? undefined : "the command of a server is an absolute path"
  if (!URL.canParse(server.url)) return "the url of a server is a URL"
  const { hostname, protocol } = new URL(server.url)
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname))
    ? undefined
    : "the url of a server is https, or of this machine"
}

/** Refuses servers that are wrong, and then any, for a harness that takes none (ACP-215, ACP-216). */
export const checkServers = (
  servers: ReadonlyArray<McpServer>,
  takes: "none" | "stdio" | "stdio+http"
): Refusal | undefined => {
  if (servers.length > serverLimit)
    return invalidParams("mcp_invalid", `A session has at most ${serverLimit} MCP servers`)
  const names = new Set<string>()
  for (const server of servers) {
    if (names.has(server.name)) return invalidParams("mcp_invalid", "Two MCP servers have one name")
    names.add(server.name)
    const bad = badServer(server)
    if (bad !== undefined) return invalidParams("mcp_invalid", bad)
  }
  for (const server of servers) {
    const type = "type" in server ? server.type : "stdio"
    const isTaken = type === "stdio" ? takes !== "none" : type === "http" && takes === "stdio+http"
    if (!isTaken) return invalidParams("mcp_unsupported", `This agent takes no MCP server of type ${type}`)
  }
  return undefined
}
