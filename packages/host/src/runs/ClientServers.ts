/**
 * The MCP servers that a client brings to a session (ACP-214 to ACP-218). It owns nothing: what a session has stands in its
 * config, without values, and where its servers stand the runtime knows (D-39).
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { HarnessRef, McpEntry } from "@tackroom/protocol/events"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import type { McpServers, McpServerState } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import type { HostRuntime } from "./HostRuntime.ts"

export interface ClientServers {
  /** What every session of a harness takes; known without starting it (ACP-030). */
  readonly takes: (harness: HarnessRef) => HarnessCapabilities["mcp"]
  /** The host itself has a server of that name (ACP-215). */
  readonly isUsed: (name: string) => boolean
  /** These in place of those before; the session has them when it is opened next (ACP-073). */
  readonly replace: (
    sessionId: string,
    entries: Readonly<Record<string, McpEntry>>
  ) => Effect.Effect<void, RuntimeError>
  /** What is known of an open session's servers. */
  readonly states: (sessionId: string) => ReadonlyArray<McpServerState>
  /** Completes when none of them is starting. */
  readonly settled: (sessionId: string) => Effect.Effect<void>
}

export const make = (
  runtime: Pick<HostRuntime, "config">,
  servers: McpServers["Service"],
  known: Pick<ClientServers, "takes" | "isUsed">
): ClientServers => ({
  ...known,
  replace: (sessionId, entries) =>
    Effect.gen(function* () {
      const { mcp } = yield* runtime.config.read(sessionId)
      if (mcp === undefined && Object.keys(entries).length === 0) return
      yield* runtime.config.update(sessionId, { mcp: entries })
    }),
  states: servers.states,
  settled: servers.settled
})
