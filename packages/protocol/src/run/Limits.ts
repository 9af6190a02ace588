/**
 * The limits of the run protocol, once as data. `initialize.limits` carries every one of them, error data names their
 * wire keys, and `HostConfig.limits` may lower those marked lowerable (run-protocol section 29).
 */
import { Schema } from "effect"
import { toWireName } from "../text/WireNames.ts"

/**
 * Every limit and its value in protocol version 1. Keys ending in `Bytes` count UTF-8 bytes, in `Ms` milliseconds, in
 * `S` seconds; the others count things.
 */
export const limits = {
  frameBytes: 1_048_576,
  waitMsDefault: 1_000,
  waitMsMax: 5_000,
  maxEventsDefault: 256,
  maxEventsMax: 1_000,
  eventPageBytes: 524_288,
  eventBytes: 262_144,
  inlineBytes: 65_536,
  artifactBytes: 33_554_432,
  artifactChunkBytes: 524_288,
  textBytes: 524_288,
  answerBytes: 16_384,
  instructionsBytes: 262_144,
  pendingRequests: 256,
  pendingRequestBytes: 16_777_216,
  activeTurns: 32,
  agents: 16,
  subagents: 15,
  subagentLevels: 1,
  toolsPerAgent: 128,
  applicationTools: 128,
  applicationPending: 64,
  applicationResultBytes: 131_072,
  applicationIdleMs: 120_000,
  applicationTimeoutMs: 600_000,
  providers: 64,
  mcpServers: 16,
  mcpTools: 512,
  memoryEntries: 1_000,
  memoryEntryBytes: 8_192,
  schedulesPerSession: 32,
  scheduleMinIntervalS: 60,
  teamTasks: 256,
  teamDeliveriesPerRun: 200,
  shellTimeoutSDefault: 120,
  shellTimeoutSMax: 600
} as const

/** The TypeScript name of a limit. */
export type LimitKey = keyof typeof limits

/** The names of all limits, in table order. */
export const limitKeys = Object.keys(limits) as ReadonlyArray<LimitKey>

/** The limits a host configuration may lower (never raise). */
export const lowerableLimits = ["maxEventsMax", "activeTurns", "applicationPending", "shellTimeoutSMax"] as const

/** The name of a limit that a host configuration may lower. */
export type LowerableLimit = (typeof lowerableLimits)[number]

/** The wire name of a limit, as error data carries it: `textBytes` is `text_bytes`. */
export const limitName = (key: LimitKey): string => toWireName(key)

const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The limits of a host as `initialize` reports them: every key, whole numbers. */
export const Limits = Schema.Struct(
  Object.fromEntries(limitKeys.map((key) => [key, natural])) as { readonly [K in LimitKey]: typeof natural }
).annotate({ identifier: "Limits" })
/** The limits of a host as `initialize` reports them. */
export type Limits = typeof Limits.Type

const lowered = <K extends LowerableLimit>(key: K) =>
  Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limits[key] })))

/** The lowerable limits as `HostConfig.limits` sets them: 1 up to the value of the table. */
export const LoweredLimits = Schema.Struct({
  maxEventsMax: lowered("maxEventsMax"),
  activeTurns: lowered("activeTurns"),
  applicationPending: lowered("applicationPending"),
  shellTimeoutSMax: lowered("shellTimeoutSMax")
}).annotate({ identifier: "LoweredLimits" })
/** The lowerable limits as `HostConfig.limits` sets them. */
export type LoweredLimits = typeof LoweredLimits.Type

/** The limits in force for a host whose configuration lowers some of them. */
export const effectiveLimits = (lowered: LoweredLimits = {}): Limits => ({ ...limits, ...lowered })

/** How long a wait request may be held: absent is the default, more than the maximum counts as the maximum (RUN-036). */
export const effectiveWaitMs = (waitMs: number | undefined, absent: number = limits.waitMsDefault): number =>
  waitMs === undefined ? absent : Math.min(waitMs, limits.waitMsMax)

/** How many events a page may hold: absent is 256, more than the maximum counts as the maximum (RUN-190). */
export const effectiveMaxEvents = (maxEvents: number | undefined, maximum: number = limits.maxEventsMax): number =>
  Math.min(maxEvents ?? limits.maxEventsDefault, maximum)
