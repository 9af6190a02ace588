/**
 * Summaries of events (run-protocol section 8.2): what a simple client shows. A summary comes from its event alone, so a
 * replay gives the same one (RUN-180).
 */
import { Schema } from "effect"
import type { EventPayload } from "../events/Event.ts"
import { Todo } from "../events/Content.ts"
import { optional } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** A summary of an event; `tool` is the alias. */
export const Summary = lazySchema(() =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("message"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literals(["tool_started", "tool_finished", "auto_approved"]), tool: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("plan_updated"),
      plan: Schema.Union([
        Schema.Struct({
          items: Schema.Array(
            Schema.Struct({ id: optional(Schema.String), content: Schema.String, status: Todo.fields.status })
          )
        }),
        Schema.Struct({ markdown: Schema.String })
      ])
    })
  ]).annotate({ identifier: "Summary" })
)
/** A summary of an event. */
export type Summary = typeof Summary.Type

type Metadata = { readonly [key: string]: Schema.Json } | undefined

const alias = (metadata: Metadata): string | undefined => {
  const tool = metadata === undefined ? undefined : metadata["tool"]
  return typeof tool === "string" ? tool : undefined
}

const finished = (metadata: Metadata): Summary | null => {
  const tool = alias(metadata)
  return tool === undefined || metadata?.["outcome"] === "not_run" ? null : { type: "tool_finished", tool }
}

/** The summary of an event, or null. Pure: it needs nothing but the payload. */
export const summaryOf = (event: EventPayload): Summary | null => {
  switch (event.type) {
    case "text-end":
      return event.channel === "text" ? { type: "message", text: event.text } : null
    case "tool-status": {
      if (event.status === "uncertain") return finished(event.metadata)
      if (event.status !== "running" || event.metadata?.["dispatch"] !== true) return null
      const tool = alias(event.metadata)
      return tool === undefined ? null : { type: "tool_started", tool }
    }
    case "tool-output":
    case "tool-error":
      return finished(event.metadata)
    case "permission-resolved":
      return event.origin === "app_policy" || event.origin === "reviewer"
        ? { type: "auto_approved", tool: event.tool }
        : null
    case "todo-update":
      return {
        type: "plan_updated",
        plan: {
          items: event.todos.map(({ id, content, status }) =>
            id === undefined ? { content, status } : { id, content, status }
          )
        }
      }
    case "proposed-plan-complete":
      return { type: "plan_updated", plan: { markdown: event.planMarkdown } }
    default:
      return null
  }
}
