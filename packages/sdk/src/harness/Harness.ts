/**
 * The driver contract (HRN-): what a harness gives the runtime. A driver translates native frames to canonical events; it
 * writes no store, publishes nothing and retries no turn. Disposal is the scope's.
 */
import type { HarnessError, ResumeUnconfirmed, SessionMissing, UnsupportedOperation } from "@tackroom/protocol"
import type {
  Category,
  Command,
  ConfigOption,
  Decision,
  EventPayload,
  ExecutionBinding,
  HarnessEvent,
  PermissionDetails,
  PermissionOption,
  PromptInput,
  Question,
  SessionConfig,
  SessionConfigUpdate,
  TurnOrigin,
  WithdrawalReason
} from "@tackroom/protocol/events"
import { Data, Deferred, Effect, type Schema, type Scope, type Stream } from "effect"
import type { EnvironmentSpec } from "../process/ChildEnvironment.ts"
import type { ProcessOwnerService } from "../process/ProcessOwner.ts"
import type { HarnessCapabilities } from "./Capabilities.ts"

/**
 * A place in a turn's stream up to which everything must be durable. The runtime completes it once all events before it
 * are committed: a driver that must not act before its record is on disk (AGT-003, AGT-033) emits one and awaits it.
 */
export class Barrier extends Data.TaggedClass("Barrier")<{ readonly committed: Deferred.Deferred<void> }> {}

/** Makes a barrier to emit and the effect that waits for it. */
export const makeBarrier: Effect.Effect<Barrier> = Effect.map(
  Deferred.make<void>(),
  (committed) => new Barrier({ committed })
)

/**
 * An event together with the place in the harness's own record up to which this turn is told with it (HRN-241). The place
 * is committed with the event, so that whoever takes the turn up goes on right behind it and takes nothing twice. Opaque
 * to the runtime; it comes back as `peerCursor`.
 *
 * @since 0.1.0
 */
export class Positioned extends Data.TaggedClass("Positioned")<{
  readonly event: HarnessEvent
  readonly peerCursor: string
}> {}

/** What a turn's stream may hold. */
export type HarnessItem = HarnessEvent | Barrier | Positioned

/**
 * A turn that the harness begins itself, such as a wake-up or the next step of a goal (RT-147). A driver emits it between
 * turns; the runtime admits it like any turn and then runs it. While another turn runs it waits.
 *
 * @since 0.1.0
 */
export class OwnTurn extends Data.TaggedClass("OwnTurn")<{
  readonly origin: "harness" | "goal"
  /** The user's message that it goes back to. Default: that of the session's last turn. */
  readonly parentMessageId?: string
  /** The turn itself, under the same rules as `runTurn`. Its prompt is empty. */
  readonly run: (turn: TurnInput) => Stream.Stream<HarnessItem, HarnessError>
}> {}

/** An ask that was withdrawn before anyone decided. */
export class Withdrawn extends Data.TaggedError("Withdrawn")<{ readonly reason: WithdrawalReason }> {}

/** The harness lost the turn it was asked to continue. */
export class TurnLost extends Data.TaggedError("TurnLost")<{ readonly message: string }> {}

export interface PermissionAsk {
  /** Completed once the request is in the journal, or will never be: so that asks of one response are raised together. */
  readonly raised?: Deferred.Deferred<void>
  readonly tool: string
  readonly title?: string
  readonly arguments?: Schema.Json
  readonly toolCallId?: string
  readonly paths?: ReadonlyArray<string>
  readonly patterns?: ReadonlyArray<string>
  readonly category?: Category
  readonly details?: PermissionDetails
  readonly sessionId: string
  readonly turnId: string
  /** The harness's own id of the request: the same id in the same turn is the same ask, also after a restart. */
  readonly nativeRequestId: string
  readonly options: ReadonlyArray<PermissionOption>
}

export interface PermissionDecision {
  readonly interactionId: string
  readonly decision: Decision
  readonly optionId?: string
  readonly note?: string
  readonly origin: string
}

export interface QuestionAsk {
  readonly questions: ReadonlyArray<Question>
  readonly sessionId: string
  readonly turnId: string
  readonly nativeRequestId: string
  readonly toolCallId?: string
}

export interface QuestionAnswer {
  readonly interactionId: string
  /** One list per question, or null when the person rejected the question. */
  readonly answers: ReadonlyArray<ReadonlyArray<string>> | null
}

/** One page of a session's journal; a `RuntimeStore` has it. @since 0.1.0 */
export interface SessionJournal {
  readonly read: (
    sessionId: string,
    after: number,
    limit: number
  ) => Effect.Effect<
    {
      readonly events: ReadonlyArray<{
        readonly seq: number
        readonly turnId: string | null
        readonly payload: EventPayload
      }>
      readonly head: number
    },
    { readonly message: string }
  >
}

export interface HarnessContext {
  readonly ask: {
    readonly permission: (ask: PermissionAsk) => Effect.Effect<PermissionDecision, Withdrawn | HarnessError>
    readonly question: (ask: QuestionAsk) => Effect.Effect<QuestionAnswer, Withdrawn | HarnessError>
  }
  /** Keeps a value too large for an event; the event names it in its `attachments` or fields. */
  readonly artifacts: {
    readonly put: (sessionId: string, mime: string, bytes: Uint8Array) => Effect.Effect<string, HarnessError>
  }
  /** The session's journal, for drivers whose own record it is (native, scripted). */
  readonly journal: SessionJournal
  readonly secrets: { readonly get: (name: string) => Effect.Effect<string | undefined> }
  /** Starts children that end with the runtime at the latest (10.3); fails where there are no processes. */
  readonly processes: Effect.Effect<ProcessOwnerService, UnsupportedOperation>
  /** An event outside any turn. */
  readonly notice: (sessionId: string, event: HarnessEvent) => Effect.Effect<void>
  readonly instanceId: string
}

/**
 * An MCP server that a session is opened with. Its values are read for the opening and stand in memory only (RT-304).
 *
 * Nothing waits for a server: a driver that starts servers itself tells `starting` of each with a notice before the
 * opening answers, and later what became of it. A driver whose agent starts them tells nothing.
 */
export type McpServer =
  | {
      readonly name: string
      readonly transport: "stdio"
      readonly command: string
      readonly args: ReadonlyArray<string>
      readonly env: Readonly<Record<string, string>>
    }
  | {
      readonly name: string
      /** Streamable HTTP. */
      readonly transport: "remote"
      readonly url: string
      readonly headers: Readonly<Record<string, string>>
    }

export interface OpenSession {
  readonly sessionId: string
  readonly workspaceId: string
  readonly directory: string
  readonly model?: string
  readonly variant?: string
  readonly agent?: string
  readonly instructions?: string
  readonly permissionMode?: string
  readonly title?: string
  /** Only what the driver's `capabilities.mcp` takes; absent when there is none. */
  readonly mcp?: ReadonlyArray<McpServer>
}

export interface NativeSession {
  readonly upstreamSessionId: string
  readonly upstreamState: "pending" | "confirmed"
  readonly ownerKey?: string
  readonly config?: SessionConfig
  readonly configOptions?: ReadonlyArray<ConfigOption>
  readonly commands?: ReadonlyArray<Command>
}

/** Budgets of one turn, enforced by the runtime (D-28). Absent: no limit. Times in milliseconds. */
export interface TurnBudget {
  readonly maxRounds?: number
  readonly maxOutputTokens?: number
  /** Time not spent waiting for people. */
  readonly activeMs?: number
  readonly wallMs?: number
}

export interface TurnInput {
  readonly binding: ExecutionBinding
  readonly turnId: string
  readonly messageId: string
  readonly assistantMessageId: string
  /** Uncut (RT-213). */
  readonly prompt: PromptInput
  readonly config: SessionConfig
  readonly origin: TurnOrigin
  readonly freshContext: boolean
  /** Cursor of the turn's `user-message` minus one. */
  readonly startCursor: number
  /** What the driver gave with the turn's last journaled event, for a turn that is taken up (HRN-241). */
  readonly peerCursor?: string
  /** True when another model round fits the turn's budget; a driver of our own asks before each request (D-28). */
  readonly roundFits: Effect.Effect<boolean>
}

export interface TurnRef {
  readonly binding: ExecutionBinding
  readonly turnId: string
  readonly messageId: string
  readonly nativeTurnId?: string
  readonly startCursor: number
}

export interface ModelOption {
  readonly providerID: string
  readonly modelID: string
  readonly name?: string
  readonly connected?: boolean
  readonly effortLevels?: ReadonlyArray<string>
}

export interface HarnessHealth {
  readonly status: "ok" | "degraded" | "unavailable"
  readonly reason?: string
  readonly message?: string
  readonly sessions?: number
}

/** A way in which a person signs in to a harness. @since 0.1.0 */
export interface SignInMethod {
  readonly id: string
  readonly name: string
  readonly description?: string
  /** The person works through it in a terminal: the program to run there. */
  readonly terminal?: {
    readonly command: string
    readonly args: ReadonlyArray<string>
    readonly env: EnvironmentSpec
  }
}

/** Signing in to a harness that can be signed in to from outside. @since 0.1.0 */
export interface SignIn {
  /** The ways that it named when it was last started; starts nothing. */
  readonly known: () => ReadonlyArray<SignInMethod>
  /** Starts the harness and asks it. */
  readonly methods: (directory: string) => Effect.Effect<ReadonlyArray<SignInMethod>, HarnessError>
  /** Signs in, which may wait for a person; fails with the harness's own reason. Later processes are signed in where they want it. */
  readonly use: (id: string, directory: string) => Effect.Effect<void, HarnessError>
}

export interface HarnessDriver {
  readonly capabilities: (query: {
    readonly directory: string
    readonly sessionId?: string
  }) => Effect.Effect<HarnessCapabilities, HarnessError>
  readonly openSession: (input: OpenSession) => Effect.Effect<NativeSession, HarnessError>
  /** `servers` are those of this opening, in place of all before. */
  readonly resumeSession: (
    binding: ExecutionBinding,
    servers?: ReadonlyArray<McpServer>
  ) => Effect.Effect<NativeSession, SessionMissing | ResumeUnconfirmed | HarnessError>
  /** Emits exactly one terminal event and then ends (HRN-009). */
  readonly runTurn: (turn: TurnInput) => Stream.Stream<HarnessItem, HarnessError>
  /** Continues a turn from the driver's own durable record. */
  readonly recoverTurn: (turn: TurnInput) => Stream.Stream<HarnessItem, TurnLost | HarnessError>
  /** What the harness says while no turn runs, and the turns it begins itself. */
  readonly betweenTurns: (binding: ExecutionBinding) => Stream.Stream<HarnessEvent | OwnTurn, HarnessError>
  readonly steer: (
    turn: TurnRef,
    prompt: PromptInput
  ) => Effect.Effect<"taken" | "no_active_turn" | "declined", UnsupportedOperation | HarnessError>
  /** `acknowledged`: the turn's stream ends with `cancelled`, or may be interrupted now. */
  readonly cancel: (turn: TurnRef) => Effect.Effect<"acknowledged" | "idle", UnsupportedOperation | HarnessError>
  readonly configure: (
    binding: ExecutionBinding,
    update: SessionConfigUpdate
  ) => Effect.Effect<SessionConfig, UnsupportedOperation | HarnessError>
  readonly configOptions: (
    directory: string
  ) => Effect.Effect<ReadonlyArray<ConfigOption>, UnsupportedOperation | HarnessError>
  readonly models: (directory: string) => Effect.Effect<ReadonlyArray<ModelOption>, UnsupportedOperation | HarnessError>
  readonly commands: (
    directory: string,
    sessionId?: string
  ) => Effect.Effect<ReadonlyArray<Command>, UnsupportedOperation | HarnessError>
  readonly signIn?: SignIn
  readonly closeSession: (binding: ExecutionBinding) => Effect.Effect<void, HarnessError>
  readonly deleteSession: (binding: ExecutionBinding) => Effect.Effect<void, HarnessError>
  /** Starts nothing. */
  readonly health: (directory?: string) => Effect.Effect<HarnessHealth>
}

export interface HarnessDefinition {
  readonly label: string
  readonly authEnv: string | null
  readonly peer?: { readonly package: string; readonly range: string }
  readonly program?: { readonly name: string; readonly range: string }
}

export interface HarnessFactory {
  readonly id: string
  readonly access: "native" | "acp" | "connection"
  readonly definition: HarnessDefinition
  readonly make: (context: HarnessContext) => Effect.Effect<HarnessDriver, HarnessError, Scope.Scope>
}

/** `access:id`, the key under which a harness is registered. */
export const harnessKey = (harness: { readonly id: string; readonly access: string }): string =>
  `${harness.access}:${harness.id}`
