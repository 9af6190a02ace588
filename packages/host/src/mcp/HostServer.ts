/**
 * One MCP server of the host: what is known of it now, and how that is shown, kept and told when it is missing. Which
 * servers there are, and what is done with them, is `HostServers.ts`.
 */
import {
  type InvalidParams,
  type LimitExceeded,
  type McpServer as ShownServer,
  ProviderUnavailable,
  type StorageFailed
} from "@tackroom/protocol/run"
import type { Fiber, Scope } from "effect"
import type { ServerRecord } from "../catalog/Catalog.ts"
import type { SessionTool } from "../native/SessionSetup.ts"
import { splitQualifiedName } from "../tools/Tools.ts"
import type { NotConnected } from "./Connection.ts"
import { type Registration, shownTransport } from "./Registration.ts"
import type { Server } from "./Server.ts"
import type { ServerTool } from "./ServerTools.ts"

/** Why a server is not there: it did not come up, or what it has does not fit. */
export type Missing = InvalidParams | LimitExceeded | ProviderUnavailable | StorageFailed

export interface HostServer {
  readonly registration: Registration
  readonly configured: boolean
  state: ShownServer["state"]
  error: string | undefined
  /** Absent while its values are missing. */
  server: Server | undefined
  scope: Scope.Closeable | undefined
  /** It was up once and fits: it is kept, and its name is its own. */
  isAccepted: boolean
  /** Its first start, while that is under way behind whoever wants to go on. */
  coming: Fiber.Fiber<void, Missing> | undefined
  /** What is known of its tools while no server says so. */
  known: ReadonlyArray<ServerTool>
}

export const newHostServer = (
  given: Pick<HostServer, "registration" | "configured" | "state" | "known">
): HostServer => ({
  ...given,
  error: undefined,
  server: undefined,
  scope: undefined,
  isAccepted: false,
  coming: undefined
})

/** Its tools as they are, or as they were when it was up last. */
export const toolsOf = ({ known, server }: HostServer): ReadonlyArray<SessionTool> =>
  server?.tools() ?? known.map(({ tool }) => tool)

export const toolOf = ({ known, server }: HostServer, qualifiedName: string): SessionTool | undefined =>
  server === undefined
    ? known.find(({ tool }) => tool.qualifiedName === qualifiedName)?.tool
    : server.find(qualifiedName)

/** What is kept of it (RUN-255). */
export const recordOf = ({ configured, known, registration }: HostServer, version: string): ServerRecord => ({
  registration,
  configured,
  version,
  tools: known.map(({ name, tool }) => ({
    name,
    alias: tool.alias,
    description: tool.description,
    inputSchema: tool.schema
  }))
})

export const shown = (one: HostServer): ShownServer => ({
  name: one.registration.name,
  transport: shownTransport(one.registration),
  state: one.state,
  tools: toolsOf(one).map(({ alias, category, qualifiedName }) => ({
    name: splitQualifiedName(qualifiedName)?.tool ?? qualifiedName,
    qualifiedName,
    alias,
    category: category ?? "external"
  })),
  ...(one.error === undefined ? {} : { error: one.error })
})

const stderrBytes = 2_048

/** The end of a text, without the rest of a character that was cut. */
const lastBytes = (text: string): string =>
  Buffer.from(text)
    .subarray(-stderrBytes)
    .toString("utf8")
    .replace(/^\uFFFD+/u, "")

export const unavailable = (name: string, { exitCode, message, stderrTail }: NotConnected): ProviderUnavailable =>
  new ProviderUnavailable({
    what: "mcp_server",
    name,
    detail: message,
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(stderrTail === undefined ? {} : { stderrTail: lastBytes(stderrTail) })
  })
