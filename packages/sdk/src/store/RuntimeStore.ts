/**
 * The store contract (STO-): durable truth, leases and projections. A store calls no harness and decides nothing about
 * turns; it applies one batch per call, atomically, and numbers each session's events 1, 2, 3 … without gaps.
 *
 * Every writing call takes `WriteOptions`: rows of an extension (`ops`) and events of further sessions (`others`) commit
 * with the call or not at all (STO-010, STO-011).
 */
import type { EventPayload, Resolution, Todo, TurnOutcome, WithdrawalReason } from "@tackroom/protocol/events"
import type {
  InteractionAlreadyResolved,
  InteractionNotFound,
  InteractionWithdrawn,
  QueueEntryStarted,
  QueueInvalid,
  QueueRevisionConflict,
  RuntimeError,
  RuntimeStoreCorruptRow,
  SessionConflict,
  SessionGone,
  SessionNotFound,
  SessionTurnFenceStale,
  StoreBusy,
  StoreDependencyMissing,
  StoreFull,
  StoreUnavailable,
  UnsupportedRuntimeStoreSchema
} from "@tackroom/protocol"
import { Data, type Effect, type Stream } from "effect"
import type {
  ArtifactReference,
  ArtifactRow,
  BindingRow,
  EventRow,
  InstanceRow,
  InteractionRow,
  LeaseRow,
  MessageRow,
  PartRow,
  ProcessRow,
  QueueRow,
  ReceiptRow,
  SessionRow,
  StartRow,
  TurnRow
} from "./Rows.ts"

export type StoreFailure =
  | StoreBusy
  | StoreUnavailable
  | StoreFull
  | RuntimeStoreCorruptRow
  | UnsupportedRuntimeStoreSchema
  | StoreDependencyMissing

/** A journal entry before it has a cursor. `at` defaults to the clock at commit and never decreases within a session. */
export interface NewEntry {
  readonly payload: EventPayload
  readonly turnId?: string
  readonly afterTurn?: string
  readonly at?: number
  readonly artifacts?: ReadonlyArray<ArtifactReference>
  /** Rows of the artifacts named above whose chunks were already put with `putArtifact` (RT-211). */
  readonly artifactRows?: ReadonlyArray<ArtifactRow>
}

/** One operation of a registered extension, run in the open transaction. */
export interface StoreOp {
  readonly extension: string
  readonly op: string
  readonly args: unknown
}

/** `A` is what the call is about to answer: `ops` may depend on numbers that only the transaction knows. */
export interface WriteOptions<A = unknown> {
  readonly ops?: ReadonlyArray<StoreOp> | ((outcome: A) => ReadonlyArray<StoreOp>)
  readonly others?: ReadonlyArray<{ readonly sessionId: string; readonly entries: ReadonlyArray<NewEntry> }>
  /**
   * The instance that writes, for the check of `others` against their leases (STO-011). Default: the owner of the lease
   * of the session written to.
   */
  readonly owner?: string
}

/** What `others` may add to the failures of a call (STO-011). */
export type OthersFailure = SessionNotFound | SessionGone | SessionTurnFenceStale

/** What every write answers besides its own result: the events it stored, for the hub to publish after the commit. */
export interface Committed<A> {
  readonly value: A
  readonly events: ReadonlyArray<EventRow>
  /** Results of the `ops`, in order. */
  readonly ops: ReadonlyArray<unknown>
}

export interface LeaseRequest {
  readonly leaseId: string
  readonly owner: string
  readonly ttlMs: number
}

/** What the admission decision may look at; read under the session's lock. */
export interface AdmissionState {
  readonly session: SessionRow
  readonly receipt: ReceiptRow | undefined
  readonly openTurn: TurnRow | undefined
  readonly queue: ReadonlyArray<QueueRow>
  readonly lease: LeaseRow | undefined
  readonly now: number
}

/** The pure decision of agent-runtime 5.1, made by the runtime, applied by the store. */
export type AdmissionDecision =
  | {
      readonly _tag: "Started"
      readonly turn: Omit<TurnRow, "fence" | "startSeq">
      readonly receipt: Omit<ReceiptRow, "startSeq" | "createdAt">
      readonly lease: LeaseRequest
      readonly entries: ReadonlyArray<NewEntry>
      readonly session: SessionPatch
      /** The queue entry this turn was made of, removed in the same transaction. */
      readonly dequeue?: string
    }
  | { readonly _tag: "Duplicate"; readonly receipt: ReceiptRow }
  | {
      readonly _tag: "Queued"
      readonly row: Omit<QueueRow, "position">
      readonly receipt: Omit<ReceiptRow, "startSeq" | "createdAt">
      readonly entries: (queue: ReadonlyArray<QueueRow>, revision: number) => ReadonlyArray<NewEntry>
    }
  | {
      readonly _tag: "Steering"
      readonly turn: TurnRow
      readonly receipt: Omit<ReceiptRow, "startSeq" | "createdAt">
    }
  | { readonly _tag: "Refused"; readonly error: RuntimeError }

export type AdmitOutcome =
  | {
      readonly _tag: "Started"
      readonly turn: TurnRow
      readonly receipt: ReceiptRow
      readonly lease: LeaseRow
      readonly session: SessionRow
    }
  | { readonly _tag: "Duplicate"; readonly receipt: ReceiptRow }
  | { readonly _tag: "Queued"; readonly receipt: ReceiptRow; readonly queue: QueueState }
  | { readonly _tag: "Steering"; readonly receipt: ReceiptRow; readonly turn: TurnRow }

export interface QueueState {
  readonly entries: ReadonlyArray<QueueRow>
  readonly revision: number
  readonly held: "turn_failed" | "turn_cancelled" | null
}

export type QueueChange =
  | { readonly _tag: "Remove"; readonly messageId: string }
  | { readonly _tag: "Move"; readonly messageId: string; readonly before: string | null }
  | { readonly _tag: "Reorder"; readonly messageIds: ReadonlyArray<string> }
  | { readonly _tag: "Edit"; readonly messageId: string; readonly prompt: QueueRow["prompt"]; readonly digest: string }
  | { readonly _tag: "Release" }

/**
 * Columns that a caller may set directly, over what the events of the same call project. A column that events project too
 * (title, status, config, tags, metadata, archived, closed) is rebuilt from events alone (STO-005): set it here only together
 * with an event that says the same. `phase` may be set alone: it tells what happens now and is no history. `updatedAt` moves by itself with admissions, settlements and row edits.
 */
export type SessionPatch = Partial<
  Pick<
    SessionRow,
    | "title"
    | "titleSource"
    | "status"
    | "phase"
    | "config"
    | "metadata"
    | "tags"
    | "harnessPayload"
    | "owner"
    | "archivedAt"
    | "closedAt"
    | "updatedAt"
  >
>

export interface SettleRequest {
  readonly turnId: string
  readonly outcome: TurnOutcome
  /** Everything up to and including the terminal event and the following `session-status`. */
  readonly entries: ReadonlyArray<NewEntry>
  readonly session: SessionPatch
  /** Set when the turn failed or was cancelled and the queue is not empty (RT-112). */
  readonly holdQueue?: "turn_failed" | "turn_cancelled"
  readonly holdEntries?: (queue: QueueState) => ReadonlyArray<NewEntry>
}

export interface SettleOutcome {
  /** False when the turn had been settled before: the first result stands and nothing was written (STO-004). */
  readonly written: boolean
  readonly outcome: TurnOutcome
  readonly head: number
  /** First entry of an unheld queue, which may start now (RT-111). */
  readonly next: QueueRow | undefined
}

export interface ListSessions {
  readonly workspaceId?: string
  readonly directory?: string
  readonly parentSessionId?: string | null
  readonly owner?: string | null
  readonly archived?: boolean
  readonly status?: SessionRow["status"]
  readonly limit: number
  /** Position after which the page starts: newest `updatedAt` first, ties by id. */
  readonly after?: { readonly updatedAt: number; readonly id: string }
}

export interface StoreInfo {
  readonly kind: "memory" | "sqlite" | "postgres"
  readonly schemaVersion: string
  readonly journalId: string
  readonly multiProcess: boolean
  readonly multiNode: boolean
}

export type ResolveOutcome =
  | { readonly _tag: "Resolved"; readonly row: InteractionRow }
  | { readonly _tag: "Already"; readonly row: InteractionRow }

type Result<A, E = never> = Effect.Effect<A, E | StoreFailure>
type Write<A, E = never> = Effect.Effect<Committed<A>, E | StoreFailure | OpFailed | OthersFailure>

/** An `op` refused; the whole call was rolled back. `error` is the extension's own typed error. */
export class OpFailed extends Data.TaggedError("OpFailed")<{
  readonly extension: string
  readonly op: string
  readonly error: unknown
}> {}

export interface RuntimeStore {
  readonly kind: StoreInfo["kind"]
  /** Opens, verifies and migrates. Idempotent; every later call waits for it and fails with its error. */
  readonly open: Result<StoreInfo>
  readonly close: Effect.Effect<void>
  readonly info: Result<StoreInfo>

  // ---- sessions
  readonly createSessions: (
    sessions: ReadonlyArray<{
      readonly row: Omit<SessionRow, "head" | "fence">
      readonly entries: ReadonlyArray<NewEntry>
    }>,
    options?: WriteOptions<ReadonlyArray<SessionRow>>
  ) => Write<ReadonlyArray<SessionRow>, SessionConflict | SessionGone>
  readonly getSession: (id: string) => Result<SessionRow | undefined, SessionGone>
  readonly listSessions: (input: ListSessions) => Result<ReadonlyArray<SessionRow>>
  readonly updateSession: (
    id: string,
    patch: SessionPatch,
    entries: ReadonlyArray<NewEntry>,
    options?: WriteOptions<SessionRow>
  ) => Write<SessionRow, SessionNotFound | SessionGone>
  /** Commits the tombstone, then removes rows in slices of at most 2,000 (RT-051). */
  readonly deleteSession: (
    id: string,
    options?: Pick<WriteOptions<void>, "ops">
  ) => Result<void, SessionNotFound | SessionGone | OpFailed>

  // ---- turns
  readonly admit: (
    sessionId: string,
    messageId: string,
    decide: (state: AdmissionState) => AdmissionDecision,
    options?: WriteOptions<AdmitOutcome>
  ) => Write<AdmitOutcome, RuntimeError>
  /** A turn's write: `fence` must be the session's current token. */
  readonly append: (
    sessionId: string,
    fence: number,
    entries: ReadonlyArray<NewEntry>,
    options?: WriteOptions<number> & {
      readonly turn?: {
        readonly id: string
        readonly patch: Partial<Pick<TurnRow, "state" | "handedOver" | "recoveries" | "cancelRequested" | "peerCursor">>
      }
      readonly session?: SessionPatch
    }
  ) => Write<number, SessionNotFound | SessionGone | SessionTurnFenceStale>
  /** Entries outside any turn (queue, interaction, row changes); takes the row lock and needs no token. */
  readonly appendUnfenced: (
    sessionId: string,
    entries: ReadonlyArray<NewEntry>,
    options?: WriteOptions<number> & { readonly session?: SessionPatch }
  ) => Write<number, SessionNotFound | SessionGone>
  readonly settle: (
    sessionId: string,
    fence: number,
    request: SettleRequest,
    options?: WriteOptions<SettleOutcome>
  ) => Write<SettleOutcome, SessionNotFound | SessionGone | SessionTurnFenceStale>
  readonly openTurns: (filter: {
    readonly sessionId?: string
    readonly owner?: string | null
  }) => Result<ReadonlyArray<TurnRow>>
  readonly turn: (turnId: string) => Result<TurnRow | undefined>
  readonly turnsOf: (sessionId: string, limit: number) => Result<ReadonlyArray<TurnRow>>
  readonly receipt: (sessionId: string, messageId: string) => Result<ReceiptRow | undefined>
  /** Receipts in a state, of one session or of the sessions of an owner; none counts as an owner of its own (RT-088). */
  readonly receipts: (filter: {
    readonly state: ReceiptRow["state"]
    readonly sessionId?: string
    readonly owner?: string | null
  }) => Result<ReadonlyArray<ReceiptRow>>
  /** Steering and recovery move a receipt on: `steering → steered | queued | uncertain`. */
  readonly updateReceipt: (
    sessionId: string,
    messageId: string,
    state: ReceiptRow["state"],
    entries: ReadonlyArray<NewEntry>,
    options?: WriteOptions<ReceiptRow>
  ) => Write<ReceiptRow, SessionNotFound | SessionGone>

  // ---- leases
  readonly acquireLease: (
    sessionId: string,
    request: LeaseRequest,
    takeOver?: (lease: LeaseRow) => boolean
  ) => Result<LeaseRow | undefined>
  readonly renewLeases: (owner: string, ttlMs: number) => Result<ReadonlyArray<LeaseRow>>
  readonly releaseLease: (sessionId: string, leaseId: string) => Result<void>
  readonly expiredLeases: Result<ReadonlyArray<LeaseRow>>
  readonly lease: (sessionId: string) => Result<LeaseRow | undefined>

  // ---- queue
  readonly queue: (sessionId: string) => Result<QueueState>
  /** Ids of sessions whose queue is neither empty nor held (RT-119). */
  readonly waitingQueues: (filter: { readonly owner?: string | null }) => Result<ReadonlyArray<string>>
  readonly queueChange: (
    sessionId: string,
    change: QueueChange,
    revision: number | undefined,
    entries: (queue: QueueState) => ReadonlyArray<NewEntry>,
    options?: WriteOptions<QueueState>
  ) => Write<QueueState, SessionNotFound | SessionGone | QueueRevisionConflict | QueueEntryStarted | QueueInvalid>

  // ---- interactions
  /** Stores the request (and, for a decision made by policy, its resolution) with its events. Same native id of the same turn: the stored row. */
  readonly openInteraction: (
    row: InteractionRow,
    fence: number,
    entries: ReadonlyArray<NewEntry>,
    options?: WriteOptions<InteractionRow> & { readonly session?: SessionPatch }
  ) => Write<InteractionRow, SessionNotFound | SessionGone | SessionTurnFenceStale>
  /** Compare and set on `pending` (RT-251, RT-252). */
  readonly resolveInteraction: (
    id: string,
    resolution: Resolution,
    entries: (row: InteractionRow) => ReadonlyArray<NewEntry>,
    options?: WriteOptions<ResolveOutcome> & { readonly session?: SessionPatch }
  ) => Write<ResolveOutcome, InteractionNotFound | InteractionWithdrawn | InteractionAlreadyResolved>
  readonly withdrawInteractions: (
    ids: ReadonlyArray<string>,
    reason: WithdrawalReason,
    options?: WriteOptions<ReadonlyArray<InteractionRow>> & { readonly session?: SessionPatch }
  ) => Write<ReadonlyArray<InteractionRow>>
  readonly markDelivered: (id: string) => Result<void>
  readonly interaction: (id: string) => Result<InteractionRow | undefined>
  readonly interactions: (filter: {
    readonly sessionId?: string
    readonly rootId?: string
    readonly turnId?: string
    readonly state?: InteractionRow["state"]
    readonly limit?: number
  }) => Result<ReadonlyArray<InteractionRow>>

  // ---- reads
  /** Events `after + 1 …`, at most `limit` (≤ 1,000) and, once it has one, at most `maxBytes` of stored payload. */
  readonly read: (
    sessionId: string,
    after: number,
    limit: number,
    maxBytes?: number
  ) => Result<{ readonly events: ReadonlyArray<EventRow>; readonly head: number }, SessionNotFound | SessionGone>
  readonly head: (sessionId: string) => Result<number, SessionNotFound | SessionGone>
  readonly messages: (
    sessionId: string,
    request: { readonly limit: number; readonly before?: number; readonly turnId?: string }
  ) => Result<ReadonlyArray<{ readonly message: MessageRow; readonly parts: ReadonlyArray<PartRow> }>>
  readonly todos: (sessionId: string) => Result<ReadonlyArray<Todo>>
  /** A read of an extension, from one consistent snapshot. */
  readonly query: (extension: string, name: string, args: unknown) => Result<unknown>
  /** Hints that a session's head moved, also by another process; may lose, duplicate or reorder (STO-009). */
  readonly wakeups: Stream.Stream<{ readonly sessionId: string; readonly head: number }, StoreFailure>

  // ---- artifacts
  /** Puts chunks ahead of the event, in transactions of their own; the row commits with the event (RT-211). */
  readonly putArtifact: (sessionId: string, mime: string, bytes: Uint8Array) => Result<ArtifactRow>
  readonly artifact: (id: string) => Result<ArtifactRow | undefined>
  readonly artifactBytes: (id: string, offset: number, length: number) => Result<Uint8Array>

  // ---- bindings and starts
  readonly binding: (sessionId: string) => Result<BindingRow | undefined>
  readonly putBinding: (row: BindingRow, start?: StartRow) => Result<void>
  readonly sessionStart: (sessionId: string) => Result<StartRow | undefined>
  readonly putStart: (row: StartRow) => Result<void>

  // ---- usage
  /** Sum of the usage observations of a session or a turn; null where nothing was reported. */
  readonly usage: (sessionId: string, turnId?: string) => Result<UsageTotals>

  // ---- instances and processes; these rows need no FULL commit (STO-041)
  readonly registerInstance: (row: InstanceRow) => Result<void>
  readonly heartbeat: (instanceId: string) => Result<void>
  readonly removeInstance: (instanceId: string) => Result<void>
  readonly instances: Result<ReadonlyArray<InstanceRow>>
  readonly addProcess: (row: ProcessRow) => Result<void>
  readonly removeProcess: (id: string) => Result<void>
  readonly processes: Result<ReadonlyArray<ProcessRow>>
}

export interface UsageTotals {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cachedInputTokens: number | null
  readonly rounds: number
}
