/**
 * What the lines of a run mean (serve-mode 4.3, 4.4). Pure: one line and what is known of the run give the events and what
 * is known then. Only the contract's kinds can be counted on.
 */
import type { HarnessEvent } from "@tackroom/protocol/events"
import type { NotifyLine, RunLine, ServeUsage } from "@tackroom/protocol/serve"
import type { Schema } from "effect"
import { callsTold, isRunning, resultDelivered, toolStatus } from "./CallLines.ts"
import { resultTold } from "./ResultLines.ts"
import {
  only,
  replaceText,
  respond,
  responded,
  retried,
  type RunProgress,
  say,
  andThen,
  type Translated
} from "./RunProgress.ts"

/** How usage is told before its end: what the input counts is only known with the result's detail (HRN-017). */
const usageSoFar = (state: RunProgress, usage: ServeUsage): Translated => {
  // A response without a word was one all the same.
  let begun: Translated = only(state)
  while (begun.state.rounds < usage.rounds) begun = andThen(begun, (next) => respond(responded(next)))
  return andThen(begun, (next) =>
    only(
      { ...next, isCounted: true },
      {
        type: "usage",
        observation: {
          kind: "cumulative",
          nativeSessionId: state.turnId,
          tokens: { input: null, output: usage.output, reasoning: null, cache: { read: null, write: null } }
        }
      }
    )
  )
}

const notice = (
  code: string,
  message: string,
  severity: "debug" | "info" | "warn" | "error",
  details?: Schema.Json
): HarnessEvent => ({
  type: "harness-notice",
  code,
  message,
  severity,
  ...(details === undefined ? {} : { details })
})

const mcpStatuses = ["starting", "ready", "failed", "cancelled"] as const
const authStatuses = ["authenticated", "unauthenticated", "unknown"] as const

const notified = (state: RunProgress, line: NotifyLine): Translated => {
  switch (line.kind) {
    case "tool_start":
      return andThen(respond(state), (next) =>
        only({ ...next, open: undefined, announced: [...next.announced, ...line.data] })
      )
    case "tool_calls":
      return callsTold(state, line.data)
    case "tool_running":
      return isRunning(state, line.data)
    case "tools":
      return resultDelivered(state)
    case "tool_status":
      return toolStatus(state, line.data)
    case "retry":
      return retried(state)
    case "usage":
      return usageSoFar(state, line.data)
    case "thinking":
      return line.data.text === "" ? only(state) : say(state, "thinking", line.data.text)
    case "text_replace":
      return line.data.textTruncated === true ? only(state) : replaceText(state, line.data.channel, line.data.text)
    case "diff": {
      const { newText, newTextTruncated, oldText, oldTextTruncated, path, toolId } = line.data
      if (newTextTruncated === true || oldTextTruncated === true) {
        return only(state, notice("diff_truncated", `The change of ${path} is too large to be told`, "info", { path }))
      }
      return only(state, {
        type: "file-diff",
        path,
        newText,
        ...(oldText === null ? {} : { oldText }),
        ...(toolId === undefined ? {} : { toolCallId: toolId })
      })
    }
    case "plan":
      if (line.data.markdownTruncated === true) return only(state)
      return line.data.complete
        ? only(state, { type: "proposed-plan-complete", planMarkdown: line.data.markdown })
        : only(state)
    case "todos":
      return only(state, {
        type: "todo-update",
        todos: line.data.items.map(({ description, id, priority, status }) => ({
          id,
          content: description,
          status,
          ...(priority === undefined ? {} : { priority })
        }))
      })
    case "auto_approved":
      return only(
        state,
        notice("auto_approved", `${line.data.tool} was approved by the program itself`, "debug", {
          tool: line.data.tool,
          toolCallId: line.data.id,
          origin: line.data.origin
        })
      )
    case "subagent":
      return only(state, notice("subagent", `Agent ${line.data.agent}: ${line.data.event ?? "works"}`, "debug"))
    case "compaction":
      return only(state, {
        type: "session-compaction",
        phase: line.data.phase,
        ...(line.data.reason === undefined ? {} : { reason: line.data.reason })
      })
    case "context":
      return only(state, {
        type: "usage",
        contextUsed: line.data.used,
        contextSize: line.data.size,
        ...(line.data.cost === undefined ? {} : { cost: line.data.cost })
      })
    case "title":
      return only(state, { type: "session-title", title: line.data.title, titleSource: "harness" })
    case "mcp": {
      const status = mcpStatuses.find((known) => known === line.data.status)
      if (status === undefined) return only(state)
      return only(state, {
        type: "mcp-server-status",
        serverName: line.data.server,
        status,
        ...(line.data.error === undefined ? {} : { error: line.data.error })
      })
    }
    case "auth":
      return only(state, {
        type: "auth-status",
        status: authStatuses.find((known) => known === line.data.status) ?? "unknown"
      })
    case "rate_limit":
      return only(state, {
        type: "rate-limit",
        status: line.data.status === "limited" ? "limited" : "ok",
        ...(line.data.resetsAt === undefined ? {} : { resetsAt: line.data.resetsAt })
      })
    case "media":
      return line.data.uri === undefined
        ? only(state)
        : only(state, {
            type: "resource-link-delta",
            uri: line.data.uri,
            name: line.data.name ?? line.data.uri,
            mimeType: line.data.mime
          })
    case "background":
      return only(state, notice("background", `Between two runs: ${line.data.kind}`, "debug", line.data.data))
    case "background_dropped":
      return only(
        state,
        notice("background_dropped", `${line.data.count} notices between two runs were left out`, "info")
      )
    case "event":
      return only(state, notice("native_event", `The program tells of ${line.data.type}`, "debug", line.data.payload))
    // The end and the asks of a run are told elsewhere; the others are the program's own session, or liveness.
    case "ask":
    case "ask_resolved":
    case "cancelling":
    case "commands":
    case "config":
    case "error":
    case "goal":
    case "run_finished":
    case "status":
      return only(state)
  }
}

/** The events of one line of a run. */
export const translateLine = (state: RunProgress, line: RunLine): Translated => {
  switch (line.type) {
    case "start":
      return only(state, ...line.warnings.map((warning) => notice("run_warning", warning, "warn")))
    case "delta":
      return say(state, "text", line.text)
    case "log":
      return only(state, notice(line.code ?? "log", line.message, line.level ?? "info"))
    case "notify":
      return notified(state, line)
    case "result":
      return resultTold(state, line)
  }
}
