/** What a case of this family sees, one entry an event: messages that went in, lines that came out, the model's requests, the end. */
import type { Evidence } from "../Evidence.ts"
import type { JsonObject } from "../Json.ts"
import type { Timeline } from "../Timeline.ts"

interface Event<Kind extends Evidence["kind"], What extends string> extends Evidence {
  readonly kind: Kind
  readonly what: What
}

export interface MessageSent extends Event<"acp", "sent"> {}

/** A line of stdout, split at byte 0x0A. */
export interface LineSeen extends Event<"line", "line"> {
  readonly bytes: Uint8Array
  /** Undefined when the line is no JSON object in UTF-8. */
  readonly line: JsonObject | undefined
}

/** The program asked the kit's model. */
export interface ModelAsked extends Event<"request", "model"> {}

/** A request of the program ended before its answer was complete. */
export interface ModelLeft extends Event<"request", "model-left"> {}

export interface ErrorOutput extends Event<"process", "stderr"> {}

export interface ProgramEnded extends Event<"process", "ended"> {
  readonly code: number | null
  readonly signal: number | null
}

/** An MCP server of the kit began or ended. */
export interface ServerSeen extends Event<"process", "server-started" | "server-ended"> {}

export interface LeftOver extends Event<"process", "left-over"> {}

export type Seen = MessageSent | LineSeen | ModelAsked | ModelLeft | ErrorOutput | ProgramEnded | ServerSeen | LeftOver

export type AcpTimeline = Timeline<Seen>
