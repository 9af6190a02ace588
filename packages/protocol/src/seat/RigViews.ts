/**
 * What a rig service shows to people and programs (seat contract 9.7): rigs, seats, asks, people, the stream, the feed.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { Timestamp } from "../events/Content.ts"
import { lazySchema } from "../internal/Lazy.ts"
import { optional } from "../run/Bounds.ts"
import { ActivitySource, ActivityValue } from "./Activity.ts"
import { LaunchState, SeatOutcomeWord } from "./LaunchState.ts"
import { PersonId, PresetName, RigName, SessionName } from "./Names.ts"
import { AskState, permitReasons, SeatOption } from "./Permission.ts"
import { Declaration } from "./Preset.ts"

const text = Schema.String
const orNull = Schema.NullOr

/** A position in the feed: 0 is before the first event. @since 0.1.0 */
export const FeedCursor = lazySchema(() => Schema.Natural.annotate({ identifier: "FeedCursor" }))

/** What is known of a seat's terminal session; `unavailable` says that nobody could be asked. @since 0.1.0 */
export const SessionState = lazySchema(() =>
  Schema.Literals(["present", "exited", "absent", "unavailable"]).annotate({ identifier: "SeatSessionState" })
)
/** @since 0.1.0 */
export type SessionState = typeof SessionState.Type

/** The last launch of a seat. @since 0.1.0 */
export const SeatLaunch = lazySchema(() =>
  Schema.Struct({
    state: LaunchState,
    /** When the state was set. */
    at: orNull(Timestamp),
    ordinal: Schema.Natural,
    generation: orNull(text),
    attempt: orNull(text),
    resumes: Schema.Boolean,
    /** Whether the record came after the wait. */
    late: Schema.Boolean,
    /** Whether a person has seen a state that needs one. */
    seen: Schema.Boolean,
    /** The record's error, or why nothing started. */
    reason: orNull(text),
    /** The conversation that a mismatched resume opened. */
    otherRef: orNull(text),
    warnings: Schema.Array(text)
  }).annotate({ identifier: "SeatLaunch" })
)
/** @since 0.1.0 */
export type SeatLaunch = typeof SeatLaunch.Type

/** Who is asked when a seat's agent wants something. @since 0.1.0 */
export const PermissionSetting = lazySchema(() =>
  Schema.Struct({
    mode: Schema.Literals(["default", "person", "deny"]),
    person: optional(PersonId),
    reason: optional(text),
    by: optional(text),
    at: optional(Timestamp)
  }).annotate({ identifier: "PermissionSetting" })
)
/** @since 0.1.0 */
export type PermissionSetting = typeof PermissionSetting.Type

/** What a seat's activity reads, since when, and until when without newer evidence. @since 0.1.0 */
export const SeatActivity = lazySchema(() =>
  Schema.Struct({ value: ActivityValue, source: ActivitySource, since: Timestamp, until: orNull(Timestamp) }).annotate({
    identifier: "SeatActivity"
  })
)
/** @since 0.1.0 */
export type SeatActivity = typeof SeatActivity.Type

/** A seat. The conversation is what the launcher reported; nobody here observed it. @since 0.1.0 */
export const SeatView = lazySchema(() =>
  Schema.Struct({
    seat: SessionName,
    nodeId: text,
    rig: RigName,
    pod: text,
    member: text,
    harness: PresetName,
    cwd: text,
    guest: Schema.Boolean,
    declaration: orNull(Declaration),
    launch: SeatLaunch,
    session: SessionState,
    activity: SeatActivity,
    /** Why the seat needs a person; empty when it does not. */
    attention: Schema.Array(Schema.Literals(["launch", "post", "ask"])),
    openAsks: Schema.Natural,
    /** A send whose text may stand in the pane without its Enter. */
    draft: optional(Schema.Struct({ sendId: text, from: text, at: Timestamp })),
    nativeRef: orNull(text),
    identitySource: orNull(Schema.Literal("launcher-reported")),
    conversationMissing: Schema.Boolean,
    model: Schema.Struct({ declared: orNull(text), effective: Schema.Literal("unknown") }),
    permissions: PermissionSetting
  }).annotate({ identifier: "SeatView" })
)
/** @since 0.1.0 */
export type SeatView = typeof SeatView.Type

/** A rig and its seats. @since 0.1.0 */
export const RigView = lazySchema(() =>
  Schema.Struct({
    rig: RigName,
    createdAt: Timestamp,
    seats: Schema.Array(SessionName),
    snapshots: Schema.Natural
  }).annotate({ identifier: "RigView" })
)
/** @since 0.1.0 */
export type RigView = typeof RigView.Type

/** How one seat came out of a command on several. @since 0.1.0 */
export const SeatOutcome = lazySchema(() =>
  Schema.Struct({
    seat: SessionName,
    outcome: SeatOutcomeWord,
    reason: optional(text),
    detail: optional(text),
    warnings: optional(Schema.Array(text)),
    leftovers: optional(Schema.Array(Schema.Struct({ pid: Schema.Natural, command: text })))
  }).annotate({ identifier: "SeatOutcome" })
)
/** @since 0.1.0 */
export type SeatOutcome = typeof SeatOutcome.Type

/** A seat as a snapshot keeps it. @since 0.1.0 */
export const SnapshotSeat = lazySchema(() =>
  Schema.Struct({
    seat: SessionName,
    harness: PresetName,
    declaration: orNull(Declaration),
    nativeRef: orNull(text),
    cwd: text,
    permissions: PermissionSetting,
    launchState: LaunchState
  }).annotate({ identifier: "SnapshotSeat" })
)
/** @since 0.1.0 */
export type SnapshotSeat = typeof SnapshotSeat.Type

/** What `down` keeps of a rig. @since 0.1.0 */
export const SnapshotView = lazySchema(() =>
  Schema.Struct({ snapshotId: text, rig: RigName, takenAt: Timestamp, seats: Schema.Array(SnapshotSeat) }).annotate({
    identifier: "SnapshotView"
  })
)
/** @since 0.1.0 */
export type SnapshotView = typeof SnapshotView.Type

/** A registered person. @since 0.1.0 */
export const Person = lazySchema(() =>
  Schema.Struct({ id: PersonId, name: text, isDefault: Schema.Boolean, addedAt: Timestamp }).annotate({
    identifier: "Person"
  })
)
/** @since 0.1.0 */
export type Person = typeof Person.Type

/** Who holds a row. @since 0.1.0 */
export const RowOwner = lazySchema(() =>
  Schema.Union([Schema.Struct({ person: text }), Schema.Struct({ seat: text })]).annotate({ identifier: "RowOwner" })
)
/** @since 0.1.0 */
export type RowOwner = typeof RowOwner.Type

/** Where a row stands. @since 0.1.0 */
export const rowStates = ["open", "chosen", "done", "failed", "denied", "canceled", "handed_off", "superseded"] as const
/** @since 0.1.0 */
export type RowState = (typeof rowStates)[number]

/** One owner's turn at an ask. @since 0.1.0 */
export const AskRow = lazySchema(() =>
  Schema.Struct({
    rowId: text,
    owner: RowOwner,
    state: Schema.Literals(rowStates),
    openedAt: Timestamp,
    closedAt: orNull(Timestamp),
    by: orNull(text),
    note: orNull(text)
  }).annotate({ identifier: "AskRow" })
)
/** @since 0.1.0 */
export type AskRow = typeof AskRow.Type

/** What an option of kind `allow_always` says beside its name (RIG-192). @since 0.1.0 */
export const rememberedNote =
  "The agent's harness remembers this and allows similar requests without asking. The rig neither records nor revokes that."

/** An option as a person is shown it. @since 0.1.0 */
export const ShownOption = lazySchema(() =>
  Schema.Struct({ ...SeatOption.fields, note: orNull(text) }).annotate({ identifier: "ShownOption" })
)
/** @since 0.1.0 */
export type ShownOption = typeof ShownOption.Type

/** How an ask was settled. @since 0.1.0 */
export const settledHow = [
  "option",
  "yes",
  "no",
  "drop",
  "approve",
  "words",
  "row_done",
  "row_failed",
  "row_denied",
  "row_canceled",
  "withdraw",
  "turn",
  "exit",
  "replaced"
] as const
/** @since 0.1.0 */
export type SettledHow = (typeof settledHow)[number]

/** How an ask ended. @since 0.1.0 */
export const AskResult = lazySchema(() =>
  Schema.Struct({
    optionId: optional(text),
    reason: optional(text),
    said: optional(text),
    by: text,
    how: Schema.Literals(settledHow)
  }).annotate({ identifier: "AskResult" })
)
/** @since 0.1.0 */
export type AskResult = typeof AskResult.Type

/** A request that a person is or was asked about, with everyone's turn at it, oldest first. @since 0.1.0 */
export const AskView = lazySchema(() =>
  Schema.Struct({
    askId: text,
    state: AskState,
    seat: SessionName,
    generation: text,
    nativeRef: text,
    turnId: text,
    requestId: text,
    toolCall: Schema.Record(text, Schema.Json),
    options: Schema.Array(ShownOption),
    why: text,
    default: orNull(SeatOption),
    openedAt: Timestamp,
    settledAt: orNull(Timestamp),
    result: orNull(AskResult),
    rows: Schema.Array(AskRow)
  }).annotate({ identifier: "AskView" })
)
/** @since 0.1.0 */
export type AskView = typeof AskView.Type

/** The tag of records of permits that the service decided by default. @since 0.1.0 */
export const permitTag = "runner-permission-permit"

/** Why a permit was given by default. @since 0.1.0 */
export const PermitWhy = lazySchema(() =>
  Schema.Literals([...permitReasons, "closed_without_choice"]).annotate({ identifier: "PermitWhy" })
)
/** @since 0.1.0 */
export type PermitWhy = typeof PermitWhy.Type

/** The facts of a permit by default (7.5). @since 0.1.0 */
export const PermitRecord = lazySchema(() =>
  Schema.Struct({
    toolCall: Schema.Struct({ toolCallId: orNull(text), title: text, kind: orNull(text) }),
    why: PermitWhy,
    closed: orNull(
      Schema.Struct({
        askId: text,
        rowId: text,
        by: text,
        how: Schema.Literals(["drop", "approve", "words", "done", "failed"]),
        at: Timestamp
      })
    ),
    option: Schema.Struct({ ...SeatOption.fields, rememberedByHarness: Schema.Boolean }),
    conversation: text,
    requestId: text,
    turnId: text,
    askId: orNull(text)
  }).annotate({ identifier: "PermitRecord" })
)
/** @since 0.1.0 */
export type PermitRecord = typeof PermitRecord.Type

/** An item of the stream: something to read, which wakes no one. @since 0.1.0 */
export const StreamItem = lazySchema(() =>
  Schema.Struct({
    streamItemId: text,
    tsEmitted: Timestamp,
    sourceSession: text,
    hintTags: Schema.Array(text),
    format: Schema.Literal("text"),
    interrupt: Schema.Literal(false),
    archivedAt: orNull(Timestamp),
    body: text,
    data: PermitRecord
  }).annotate({ identifier: "StreamItem" })
)
/** @since 0.1.0 */
export type StreamItem = typeof StreamItem.Type

/** What came of a send. It is evidence of the pane and of nothing else. @since 0.1.0 */
export const SendResult = lazySchema(() =>
  Schema.Struct({
    sendId: text,
    outcome: Schema.Literals(["sent", "delivered", "unconfirmed"]),
    advisory: optional(text),
    evidence: text
  }).annotate({ identifier: "SendResult" })
)
/** @since 0.1.0 */
export type SendResult = typeof SendResult.Type

/** Data of feed events by type: the new view of the thing. @since 0.1.0 */
export const feedTypes = {
  "seat.activity": SeatView,
  "seat.launch": SeatView,
  "seat.attention": SeatView,
  "ask.opened": AskView,
  "ask.row": AskView,
  "ask.settled": AskView,
  "stream.item": StreamItem,
  "people.changed": lazySchema(() => Schema.Struct({ people: Schema.Array(Person) })),
  "rig.changed": RigView
} as const
/** The type of a feed event. @since 0.1.0 */
export type FeedType = keyof typeof feedTypes
/** The data of a feed event. @since 0.1.0 */
export type FeedData<Type extends FeedType = FeedType> = (typeof feedTypes)[Type]["Type"]

/** An event of the feed. @since 0.1.0 */
export const FeedEvent = lazySchema(() =>
  Schema.Union(
    (Object.keys(feedTypes) as ReadonlyArray<FeedType>).map((type) =>
      Schema.Struct({ cursor: FeedCursor, type: Schema.Literal(type), at: Timestamp, data: feedTypes[type] })
    )
  ).annotate({ identifier: "FeedEvent" })
)
/** @since 0.1.0 */
export type FeedEvent = {
  readonly [Type in FeedType]: {
    readonly cursor: number
    readonly type: Type
    readonly at: string
    readonly data: FeedData<Type>
  }
}[FeedType]

/** Control frames of the feed, by the name of their event. None has an id. @since 0.1.0 */
export const feedFrames = {
  "tackroom.open": lazySchema(() => Schema.Struct({ head: FeedCursor, journalId: text, after: FeedCursor })),
  "tackroom.synced": lazySchema(() => Schema.Struct({ cursor: FeedCursor })),
  "tackroom.reset": lazySchema(() =>
    Schema.Struct({
      reason: Schema.Literals(["malformed", "ahead", "journal_replaced", "trimmed"]),
      head: FeedCursor,
      journalId: text,
      resumedFrom: orNull(FeedCursor),
      oldest: optional(FeedCursor)
    })
  ),
  "tackroom.overflow": lazySchema(() =>
    Schema.Struct({ reason: Schema.Literal("slow_client"), resumeAfter: FeedCursor })
  ),
  "tackroom.bye": lazySchema(() =>
    Schema.Struct({ reason: Schema.Literals(["lifetime", "shutdown"]), retryAfterMs: Schema.Natural })
  )
} as const
/** The event name of a control frame. @since 0.1.0 */
export type FeedFrame = keyof typeof feedFrames
/** The data of a control frame. @since 0.1.0 */
export type FeedFrameData<Name extends FeedFrame> = (typeof feedFrames)[Name]["Type"]
