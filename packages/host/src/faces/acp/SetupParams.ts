/** What a client gives when it sets a session up: directory and MCP servers, checked (serve-mode 12.3, 12.9). */
import type { McpServer } from "@agentclientprotocol/sdk"
import type { McpEntry } from "@tackroom/protocol/events"
import type { McpRegisterParams } from "@tackroom/protocol/run"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import * as fs from "node:fs"
import { isIPv4 } from "node:net"
import * as path from "node:path"
import { transportProblem } from "../../mcp/Registration.ts"
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

/** A name that can stand in a line; the harness makes it fit where its tools want another. */
const isName = (name: string): boolean => name.trim().length > 0 && name.length <= 128 && !/\p{Cc}/u.test(name)

const hasTwice = (names: ReadonlyArray<string>): boolean => new Set(names).size < names.length

const valuesOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))

/** What the system, or HTTP, cannot take. */
const unfit = (server: McpRegisterParams): string | undefined => {
  const problem = transportProblem(server)
  return problem === undefined ? undefined : `a server has at ${problem.path.split(".").at(-1)}: ${problem.expected}`
}

const badServer = (server: McpServer): string | undefined => {
  if (!isName(server.name)) return "the name of a server has 1 to 128 characters"
  if ("command" in server) {
    if (!path.isAbsolute(server.command)) return "the command of a server is an absolute path"
    if (hasTwice(server.env.map(({ name }) => name))) return "a variable of a server has one value"
    const { args, command, env, name } = server
    return unfit({ name, transport: { type: "stdio", command, args, env: valuesOf(env) } })
  }
  if (hasTwice(server.headers.map(({ name }) => name.toLowerCase()))) return "a header of a server has one value"
  if (!URL.canParse(server.url)) return "the url of a server is a URL"
  const { hostname, password, protocol, username } = new URL(server.url)
  if (username !== "" || password !== "") return "the url of a server has no password: there are headers for it"
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback(hostname))) {
    return "the url of a server is https, or of this machine"
  }
  const { headers, name, url } = server
  return unfit({ name, transport: { type: "http", url, headers: valuesOf(headers) } })
}

/** What is taken of servers, and whether the agent has one of that name itself. */
export interface Taking {
  readonly takes: HarnessCapabilities["mcp"]
  readonly isUsed: (name: string) => boolean
}

/** Refuses servers that are wrong, and then those of a kind that the harness does not take (ACP-215, ACP-216). */
export const checkServers = (servers: ReadonlyArray<McpServer>, { isUsed, takes }: Taking): Refusal | undefined => {
  if (servers.length > serverLimit)
    return invalidParams("mcp_invalid", `A session has at most ${serverLimit} MCP servers`)
  const names = new Set<string>()
  for (const server of servers) {
    if (isUsed(server.name)) return invalidParams("mcp_invalid", "The agent has an MCP server of that name")
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

/** Checked servers as entries of the session. */
export const entriesOf = (servers: ReadonlyArray<McpServer>): Readonly<Record<string, McpEntry>> =>
  Object.fromEntries(
    servers.map((server): readonly [string, McpEntry] => [
      server.name,
      "command" in server
        ? { type: "stdio", command: server.command, args: server.args, env: valuesOf(server.env) }
        : { type: "remote", url: server.url, headers: valuesOf(server.headers) }
    ])
  )
