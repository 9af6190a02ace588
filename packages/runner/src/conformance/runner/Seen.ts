/**
 * What a case of this family sees, one entry an event, from the rig's side, the agent's side, the pane and the machine.
 */
import type { Evidence } from "../Evidence.ts"
import type { Timeline } from "../Timeline.ts"
import type { Json, JsonObject } from "../Json.ts"

interface Event<Kind extends Evidence["kind"], What extends string> extends Evidence {
  readonly kind: Kind
  readonly what: What
}

/** An activity post, when its body had arrived. */
export interface Post extends Event<"post", "post"> {
  readonly body: JsonObject
  readonly authorization: string | undefined
  /** How many posts had no answer yet when it arrived, itself included. */
  readonly inFlight: number
}

export interface Submit extends Event<"request", "submit"> {
  readonly body: JsonObject
  readonly authorization: string | undefined
  readonly askId: string | undefined
}

export interface Read extends Event<"request", "read"> {
  readonly askId: string
  readonly waitSeconds: number | undefined
}

export interface Withdraw extends Event<"request", "withdraw"> {
  readonly askId: string
  readonly reason: Json | undefined
}

/** A request the wire does not have, or one that is no good HTTP. */
export interface Stray extends Event<"request", "stray"> {}

/** A line that the agent got, or gave. */
export interface Frame extends Event<"acp", "received" | "sent"> {
  /** Undefined when the line is no JSON object. */
  readonly message: JsonObject | undefined
}

export interface AgentStarted extends Event<"process", "agent-started"> {
  readonly pid: number
  readonly argv: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export interface AgentChild extends Event<"process", "agent-child"> {
  readonly pid: number
}

export interface AgentEnded extends Event<"process", "agent-ended"> {}

export interface RunnerEnded extends Event<"process", "runner-ended"> {
  readonly code: number | null
  readonly signal: number | null
}

export interface LeftOver extends Event<"process", "left-over"> {}

export interface Pane extends Event<"pane", "output" | "input"> {
  readonly bytes: Uint8Array
}

/** The launch record as it was read: undefined when the file was no JSON object at that moment. */
export interface RecordSeen extends Event<"file", "record"> {
  readonly record: JsonObject | undefined
}

export type Seen =
  | Post
  | Submit
  | Read
  | Withdraw
  | Stray
  | Frame
  | AgentStarted
  | AgentChild
  | AgentEnded
  | RunnerEnded
  | LeftOver
  | Pane
  | RecordSeen

/** What only a runner at work brings about; what it writes into its pane may be anything. */
export const isWork = ({ what }: Seen): boolean =>
  what === "post" ||
  what === "submit" ||
  what === "read" ||
  what === "withdraw" ||
  what === "stray" ||
  what === "received" ||
  what === "agent-started" ||
  what === "record"

export type SeatTimeline = Timeline<Seen>
