/** How a turn's end is answered (serve-mode 12.6). Pure. */
import type { PromptResponse } from "@agentclientprotocol/sdk"
import type { TerminalEvent } from "@tackroom/protocol/events"
import { internal, type Refusal } from "./Refusals.ts"

/** The reason, and where it is not the whole truth, what really stopped the turn. */
export interface Stopped {
  readonly stopReason: PromptResponse["stopReason"]
  readonly stop?: string
}

/** The answer to a prompt whose turn ended so; `cancelled`: the client had cancelled it before. */
export const stopOf = (event: TerminalEvent, cancelled: boolean): Stopped | Refusal => {
  switch (event.type) {
    case "finish":
      return { stopReason: event.reason === "refusal" ? "refusal" : "end_turn" }
    case "cancelled":
      return { stopReason: "cancelled" }
    case "error":
      switch (event.code) {
        case "truncated":
          return { stopReason: "max_tokens" }
        case "budget":
          return { stopReason: "max_turn_requests" }
        case "timeout":
          return { stopReason: "max_turn_requests", stop: "timeout" }
        default:
          // A cancelled prompt is answered as that, whatever the harness made of it (ACP-180).
          return cancelled
            ? { stopReason: "cancelled", stop: event.code }
            : internal("turn_failed", event.error, { class: event.errorClass ?? "unknown", runtimeCode: event.code })
      }
  }
}
