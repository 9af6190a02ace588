/** Who is at the other end of a connection. What it is asked goes through the SDK; what it is told goes straight to the pipe. */
import type { AgentContext, SessionUpdate } from "@agentclientprotocol/sdk"
import type { Effect } from "effect"

export interface Peer {
  readonly asked: AgentContext
  /** Writes an update, whole and at once; nobody hears it when the client is gone. */
  readonly tell: (sessionId: string, update: SessionUpdate) => void
  /** Completes when the client is not far behind in reading (ACP-117). */
  readonly room: Effect.Effect<void>
}
