/**
 * The options of a runtime (section 2), checked once and completed with their defaults.
 *
 * Implements RT-021.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { HarnessDuplicate, RuntimeOptionInvalid } from "@tackroom/protocol"
import {
  McpEntry,
  type Envelope,
  type HarnessRef,
  type Interaction,
  type PermissionLevel,
  type Session,
  type TurnOutcome
} from "@tackroom/protocol/events"
import { Context, Exit, Schema, type Effect } from "effect"
import { harnessKey, type HarnessFactory, type TurnBudget } from "../harness/Harness.ts"
import type { ProcessOwnerService } from "../process/ProcessOwner.ts"
import type { SessionRow, TurnRow } from "../store/Rows.ts"
import type { AdmitOutcome, RuntimeStore, StoreOp } from "../store/RuntimeStore.ts"
import { problemOf } from "./Decoding.ts"
import { coalesceDefaults, type CoalesceOptions } from "./Coalescer.ts"

/** A value, a promise of it, or an effect of it: what callbacks of an application may answer. */
export type Answer<A> = A | Promise<A> | Effect.Effect<A>

/** Who reads a subscription (7.1). */
export interface Identity {
  readonly connectionId: string
  readonly actorId: string
  readonly actorKind: "human" | "agent"
  readonly orgId?: string
  readonly workspaceId: string
  readonly role: "viewer" | "operator" | "admin"
  readonly credential?: string
}

/** Authorization of every delivered event (7.3). */
export interface EventDeliveryPolicy {
  readonly authorize: (input: {
    readonly identity: Identity
    readonly envelope: Envelope
  }) => Answer<"deliver" | "omit" | "terminate">
  readonly subscribe?: (input: {
    readonly identity: Identity
    readonly sessionId: string
    readonly rootSessionId: string
  }) => Answer<"allow" | "deny">
}

/** Named secrets; values are stored nowhere and replaced in what a harness says (RT-320, RT-321). */
export interface SecretSource {
  readonly get: (name: string) => Answer<string | undefined>
}

/** A decision without a person (RT-264); `undefined` leaves it to a person. */
export type PolicyDecision =
  | {
      readonly decision: "allow_once" | "allow_always" | "deny" | "reject_always"
      readonly optionId?: string
      readonly note?: string
      readonly by?: string
      readonly origin: "policy" | "app_policy" | "reviewer" | "grant" | "system"
    }
  | {
      readonly answers: ReadonlyArray<ReadonlyArray<string>> | null
      readonly by?: string
      readonly origin: "policy" | "app_policy" | "reviewer" | "grant" | "system"
    }

/** Where ids get their random bytes and programs their machine facts; replaced in tests. */
export interface Machine {
  readonly random: (bytes: number) => Uint8Array
}

/** What a program gives to {@link createAgentRuntime}. */
export interface AgentRuntimeOptions {
  /** Owned by the caller, who closes it after every runtime on it is disposed. */
  readonly store: RuntimeStore
  readonly harnesses: ReadonlyArray<HarnessFactory>
  readonly subscriberBufferSize?: number
  readonly eventDelivery?: EventDeliveryPolicy
  readonly workspaceId?: string
  readonly nodeId?: string
  readonly coalesce?: {
    readonly ms?: number
    readonly bytes?: number
    readonly youngMs?: number
    readonly laterMs?: number
  }
  readonly permissionCeiling?: PermissionLevel
  readonly interactionTimeoutMs?: number | null
  readonly resolveHarness?: (ref: HarnessRef) => HarnessFactory | undefined
  readonly sessionPolicy?: (session: {
    readonly id?: string
    readonly workspaceId: string
    readonly directory: string
    readonly harness: HarnessRef
  }) => { readonly permissionCeiling?: PermissionLevel; readonly harnesses?: ReadonlyArray<string> } | undefined
  readonly secrets?: SecretSource
  /** MCP servers that a session can name; it gets none that it does not name (section 12). */
  readonly mcp?: Readonly<Record<string, McpEntry>>
  readonly recover?: "all" | "opened"
  readonly owner?: string
  readonly decide?: (interaction: Interaction, session: Session) => Answer<PolicyDecision | undefined>
  readonly maxActiveTurns?: number
  /** `false`: recovery classifies at open and starts nothing until `startRecovered` (RUN-124). */
  readonly autoStart?: boolean
  readonly cancelGraceMs?: number
  readonly killGraceMs?: number
  readonly leaseMs?: number
  readonly leaseRenewMs?: number
  readonly openTimeoutMs?: number
  readonly probeTimeoutMs?: number
  readonly steerTimeoutMs?: number
  readonly reofferMs?: number
  /** A turn whose first event does not come in this time fails `harness_timeout`; none by default. */
  readonly firstEventTimeoutMs?: number | null
  readonly machine?: Machine
}

/** What only the package around the runtime may give (D-30): through the layer, never through the Promise facade. */
export interface EmbedderOptions {
  readonly budgets?: (session: SessionRow, turn: TurnRow) => TurnBudget | undefined
  /**
   * Rows of the embedder's tables that commit with every settlement, recovery's too. Called inside the settling call with
   * what only it knows: `head` is the cursor of the settlement's last event, `lastText` the turn's last assistant text.
   */
  readonly settleOps?: (settled: {
    readonly session: SessionRow
    readonly turn: TurnRow
    readonly outcome: TurnOutcome
    readonly head: number
    readonly lastText: string | undefined
  }) => ReadonlyArray<StoreOp>
  /** Rows that commit with the start of a queued entry. */
  readonly admissionOps?: (session: string, outcome: AdmitOutcome) => ReadonlyArray<StoreOp>
  /** The owner of harness processes, for a program that has one; it then ends what dead owners left behind. */
  readonly processes?: ProcessOwnerService
  /** Asked before a recovered turn is continued; false leaves it waiting. */
  readonly mayContinue?: (session: SessionRow, turn: TurnRow) => boolean
}

/** The checked options, every default filled in. */
export interface ResolvedOptions {
  readonly store: RuntimeStore
  readonly harnesses: ReadonlyMap<string, HarnessFactory>
  readonly resolveHarness: ((ref: HarnessRef) => HarnessFactory | undefined) | undefined
  readonly subscriberBufferSize: number
  readonly subscriberBufferBytes: number
  readonly maxSubscribers: number
  readonly eventDelivery: EventDeliveryPolicy | undefined
  readonly workspaceId: string
  readonly nodeId: string | undefined
  readonly coalesce: CoalesceOptions
  readonly permissionCeiling: PermissionLevel
  readonly interactionTimeoutMs: number | null
  readonly sessionPolicy: AgentRuntimeOptions["sessionPolicy"]
  readonly secrets: SecretSource | undefined
  readonly mcp: ReadonlyMap<string, McpEntry>
  readonly recover: "all" | "opened"
  readonly owner: string | null
  readonly decide: AgentRuntimeOptions["decide"]
  readonly maxActiveTurns: number
  readonly autoStart: boolean
  readonly cancelGraceMs: number
  readonly killGraceMs: number
  readonly leaseMs: number
  readonly leaseRenewMs: number
  readonly openTimeoutMs: number
  readonly probeTimeoutMs: number
  readonly steerTimeoutMs: number
  readonly reofferMs: number
  readonly firstEventTimeoutMs: number | null
  readonly machine: Machine
  readonly embedder: EmbedderOptions
}

const integer = (
  option: string,
  value: number | undefined,
  otherwise: number,
  min: number,
  max = Number.MAX_SAFE_INTEGER
): number => {
  if (value === undefined) return otherwise
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RuntimeOptionInvalid({ option, expected: `an integer from ${min} to ${max}` })
}

const name = (option: string, value: string | undefined): string | undefined => {
  if (value === undefined || (value.trim().length > 0 && value.length <= 128)) return value
  throw new RuntimeOptionInvalid({ option, expected: "a text of 1 to 128 characters" })
}

const decodeServers = Schema.decodeUnknownExit(Schema.Record(Schema.String, McpEntry))

/** Configured servers. An incomplete one is told of when a session names it (RT-301). */
const servers = (given: unknown): ReadonlyMap<string, McpEntry> => {
  const decoded = decodeServers(given)
  if (Exit.isSuccess(decoded)) return new Map(Object.entries(decoded.value))
  const problem = problemOf(decoded)
  const option = ["mcp", problem?.path ?? ""].filter((part) => part !== "").join(".")
  throw new RuntimeOptionInvalid({ option, expected: problem?.expected ?? "entries by name" })
}

const defaultMachine: Machine = { random: platform.randomBytes }

/**
 * Checks the options. Throws, because a wrong option is a mistake in the program that made the runtime.
 *
 * @throws RuntimeOptionInvalid naming the option
 * @throws HarnessDuplicate when two harnesses have one key
 */
export const resolveOptions = (options: AgentRuntimeOptions, embedder: EmbedderOptions = {}): ResolvedOptions => {
  const harnesses = new Map<string, HarnessFactory>()
  for (const factory of options.harnesses) {
    const key = harnessKey(factory)
    if (harnesses.has(key)) throw new HarnessDuplicate({ key })
    harnesses.set(key, factory)
  }
  const timeout = options.interactionTimeoutMs ?? null
  return {
    store: options.store,
    harnesses,
    resolveHarness: options.resolveHarness,
    subscriberBufferSize: integer("subscriberBufferSize", options.subscriberBufferSize, 256, 1, 65_536),
    subscriberBufferBytes: 4 * 1024 * 1024,
    maxSubscribers: 10_000,
    eventDelivery: options.eventDelivery,
    workspaceId: name("workspaceId", options.workspaceId) ?? "default",
    nodeId: name("nodeId", options.nodeId),
    coalesce: {
      ms: integer("coalesce.ms", options.coalesce?.ms, coalesceDefaults.ms, 5, 1000),
      bytes: integer("coalesce.bytes", options.coalesce?.bytes, coalesceDefaults.bytes, 256, 65_536),
      youngMs: integer("coalesce.youngMs", options.coalesce?.youngMs, coalesceDefaults.youngMs, 0),
      laterMs: integer("coalesce.laterMs", options.coalesce?.laterMs, coalesceDefaults.laterMs, 5, 1000)
    },
    permissionCeiling: options.permissionCeiling ?? "full",
    interactionTimeoutMs: timeout === null ? null : integer("interactionTimeoutMs", timeout, 1000, 1000),
    sessionPolicy: options.sessionPolicy,
    secrets: options.secrets,
    mcp: servers(options.mcp ?? {}),
    recover: options.recover ?? "all",
    owner: name("owner", options.owner) ?? null,
    decide: options.decide,
    maxActiveTurns: integer("maxActiveTurns", options.maxActiveTurns, Number.MAX_SAFE_INTEGER, 1),
    autoStart: options.autoStart ?? true,
    cancelGraceMs: integer("cancelGraceMs", options.cancelGraceMs, 10_000, 0),
    killGraceMs: integer("killGraceMs", options.killGraceMs, 2_000, 0),
    leaseMs: integer("leaseMs", options.leaseMs, 30_000, 100),
    leaseRenewMs: integer("leaseRenewMs", options.leaseRenewMs, 10_000, 20),
    openTimeoutMs: integer("openTimeoutMs", options.openTimeoutMs, 60_000, 1),
    probeTimeoutMs: integer("probeTimeoutMs", options.probeTimeoutMs, 30_000, 1),
    steerTimeoutMs: integer("steerTimeoutMs", options.steerTimeoutMs, 10_000, 1),
    reofferMs: integer("reofferMs", options.reofferMs, 30_000, 1),
    firstEventTimeoutMs: options.firstEventTimeoutMs ?? null,
    machine: options.machine ?? defaultMachine,
    embedder
  }
}

/** The checked options, as every part of the runtime sees them. */
export class Options extends Context.Service<Options, ResolvedOptions>()("@tackroom/sdk/runtime/Options") {}
