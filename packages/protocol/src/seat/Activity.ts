/**
 * Activity posts (seat contract 5.2 and 6.1): what a runner tells of its agent's turns, and what a service answers.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"
import { bytes, optional } from "../run/Bounds.ts"
import { seatCodec } from "./Decoding.ts"
import { seatLimits } from "./SeatLimits.ts"

const Named = bytes(1, seatLimits.nameBytes)

/** The agent's or the runner's number of something; a number reads as its decimal string. @since 0.1.0 */
export const Identifier = lazySchema(() =>
  Schema.Union([Named, Schema.Finite]).annotate({
    identifier: "Identifier",
    expected: "a string of 1 to 256 bytes, or a number"
  })
)

/** The text that an identifier is compared by: `7` and `"7"` are the same. @since 0.1.0 */
export const identifierText = (value: string | number | null): string => String(value)

/**
 * `POST /api/activity/hooks`. Without a grant one of `sessionName` and `nodeId` is needed. `occurredAt`,
 * `livenessSeconds` and `eventFamily` take any value: one that cannot be used counts as absent, it is no error.
 *
 * @since 0.1.0
 */
export const ActivityPost = lazySchema(() =>
  Schema.Struct({
    sessionName: optional(Named),
    nodeId: optional(Named),
    runtime: optional(Named),
    generation: optional(Named),
    sequence: optional(Schema.Natural.annotate({ expected: "an integer of 0 or more" })),
    occurredAt: optional(Schema.Json.annotate({ description: "ISO 8601 with an offset" })),
    hookEvent: Named,
    subtype: Named,
    turnId: optional(Identifier),
    askId: optional(Named),
    livenessSeconds: optional(Schema.Json.annotate({ description: "seconds" })),
    eventFamily: optional(Schema.Json)
  }).annotate({ identifier: "ActivityPost" })
)
/** @since 0.1.0 */
export type ActivityPost = typeof ActivityPost.Type

/** @since 0.1.0 */
export const activityPost = seatCodec(ActivityPost)

/** The pairs of `hookEvent` and `subtype` that are the same for every runner. @since 0.1.0 */
export const activityEvents = {
  accepted: { hookEvent: "UserPromptSubmit", subtype: "accepted" },
  agentMessage: { hookEvent: "active", subtype: "agent_message" },
  liveness: { hookEvent: "active", subtype: "liveness" },
  permissionResolved: { hookEvent: "active", subtype: "permission_resolved" },
  permissionPrompt: { hookEvent: "Notification", subtype: "permission_prompt" },
  runtimeError: { hookEvent: "Notification", subtype: "runtime_error" },
  idleHeartbeat: { hookEvent: "Stop", subtype: "idle_heartbeat" }
} as const

/** Name of the event whose subtype is the kind of a tool. @since 0.1.0 */
export const toolEvent = "PreToolUse"
/** Name of the event whose subtype is a stop reason, `idle_heartbeat`, or an exit. @since 0.1.0 */
export const stopEvent = "Stop"

/** The subtype with which a `Stop` says that the agent's process ended. @since 0.1.0 */
export const exitSubtype = (presetName: string): string => `${presetName}_exited`

/** What a post means. @since 0.1.0 */
export type ActivityKind =
  | "accepted"
  | "agent_message"
  | "tool"
  | "permission_resolved"
  | "beat"
  | "permission_prompt"
  | "stop"
  | "idle_heartbeat"
  | "exit"
  | "runtime_error"
  | "unmapped"

const fixed = new Map<string, ActivityKind>([
  ["UserPromptSubmit accepted", "accepted"],
  ["active agent_message", "agent_message"],
  ["active liveness", "beat"],
  ["active permission_resolved", "permission_resolved"],
  ["Notification permission_prompt", "permission_prompt"],
  ["Notification runtime_error", "runtime_error"],
  ["Stop idle_heartbeat", "idle_heartbeat"]
])

/** What a post means by its two words; every pair that has no meaning is `unmapped` (6.1). @since 0.1.0 */
export const activityKind = (
  post: Pick<ActivityPost, "hookEvent" | "subtype"> & { readonly eventFamily?: unknown }
): ActivityKind => {
  if (post.eventFamily !== undefined) return "unmapped"
  const known = fixed.get(`${post.hookEvent} ${post.subtype}`)
  if (known !== undefined) return known
  if (post.hookEvent === toolEvent) return "tool"
  if (post.hookEvent === stopEvent) return post.subtype.endsWith("_exited") ? "exit" : "stop"
  return "unmapped"
}

/** The first condition of a working beat that failed (6.3), in the order in which they are looked at. @since 0.1.0 */
export const beatCauses = [
  "no_generation",
  "attention",
  "turn_unknown",
  "opener_without_generation",
  "wrong_turn",
  "turn_closed",
  "no_sequence",
  "sequence_not_higher"
] as const
/** @since 0.1.0 */
export type BeatCause = (typeof beatCauses)[number]

/** Why a stored post counts or does not (6.2). @since 0.1.0 */
export const countWords = [
  "counted",
  "older",
  "other_generation",
  "generation_pending",
  "no_occupant",
  "plain_seat",
  "recorded_only",
  "unmapped",
  ...beatCauses.map((cause) => `beat_ignored:${cause}` as const)
] as const
/** @since 0.1.0 */
export type CountWord = (typeof countWords)[number]

/** A seat's activity as an answer to a post words it. @since 0.1.0 */
export const activityStates = {
  working: "running",
  idle: "idle",
  needs_input: "needs_input",
  unknown: "unknown"
} as const

/** What a seat's activity reads (6.4). @since 0.1.0 */
export type ActivityValue = keyof typeof activityStates
/** @since 0.1.0 */
export const ActivityValue = lazySchema(() =>
  Schema.Literals(["working", "idle", "needs_input", "unknown"]).annotate({ identifier: "ActivityValue" })
)

/** What decided the reading. @since 0.1.0 */
export const ActivitySource = lazySchema(() =>
  Schema.Literals(["none", "post", "ask", "exit", "beat", "screen"]).annotate({ identifier: "ActivitySource" })
)
/** @since 0.1.0 */
export type ActivitySource = typeof ActivitySource.Type

/**
 * The answer to a post: stored, which is not counted. `state` is the seat's state after it. `tackroom` is an addition of
 * this service.
 *
 * @since 0.1.0
 */
export const ActivityAnswer = lazySchema(() =>
  Schema.Struct({
    ok: Schema.Literal(true),
    activity: Schema.Struct({
      state: Schema.Literals(["running", "idle", "needs_input", "unknown"]),
      reason: Schema.String,
      evidenceSource: Schema.Literal("runtime_hook"),
      sampledAt: Schema.String,
      evidence: Schema.String,
      eventAt: Schema.String,
      rawEvent: Schema.String,
      rawSubtype: Schema.String,
      runtime: Schema.String,
      fallback: Schema.Literal(false),
      stale: Schema.Boolean,
      generation: Schema.NullOr(Schema.String)
    }),
    tackroom: optional(Schema.Struct({ counted: Schema.Boolean, why: Schema.Literals(countWords) }))
  }).annotate({ identifier: "ActivityAnswer" })
)
/** @since 0.1.0 */
export type ActivityAnswer = typeof ActivityAnswer.Type
