/** Files by their absolute paths, as the protocol names them; a harness may name them from its workspace. Pure. */
import type { SessionUpdate, ToolCallContent, ToolCallLocation } from "@agentclientprotocol/sdk"
import { resolve } from "node:path"

interface Located {
  readonly locations?: ReadonlyArray<ToolCallLocation> | null
  readonly content?: ReadonlyArray<ToolCallContent> | null
}

/** A call with every path in it absolute. */
export const absoluteCall = <Call extends Located>(workspace: string, call: Call): Call => ({
  ...call,
  ...(call.locations == null
    ? {}
    : { locations: call.locations.map((one) => ({ ...one, path: resolve(workspace, one.path) })) }),
  ...(call.content == null
    ? {}
    : {
        content: call.content.map((one) => (one.type === "diff" ? { ...one, path: resolve(workspace, one.path) } : one))
      })
})

/** An update with every path in it absolute. */
export const absoluteUpdate = (workspace: string, update: SessionUpdate): SessionUpdate =>
  update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update"
    ? absoluteCall(workspace, update)
    : update
