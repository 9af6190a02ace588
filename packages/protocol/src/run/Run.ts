/** Runs: start, wait and respond, what they answer, and the states of a run and a session (run-protocol sections 13 to 16). */
import { Schema } from "effect"
import {
  chars,
  CursorParam,
  Cursor,
  Cursors,
  exactlyOne,
  HostId,
  IdParam,
  int,
  list,
  map,
  MessageText,
  AgentModel,
  optional,
  SandboxKind,
  SubmissionId,
  Timestamp,
  ToolCategory
} from "./Bounds.ts"
import { AnswerText, RunDecision, SessionRef, TurnRef } from "./Session.ts"
import { Summary } from "./Summary.ts"
import { Board } from "./Team.ts"
import { WireEvent } from "./WireEvent.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Why a run failed (AGT-202); a new value needs a new protocol version. */
export const Failure = lazySchema(() =>
  Schema.Literals([
    "truncated",
    "budget",
    "not_accepted",
    "timeout",
    "interrupted",
    "credentials_missing",
    "sandbox_unavailable",
    "model_error",
    "internal"
  ]).annotate({ identifier: "Failure" })
)
/** Why a run failed. */
export type Failure = typeof Failure.Type

/** What a run is doing or how it ended. */
export const RunStatus = lazySchema(() =>
  Schema.Literals(["running", "completed", "interrupted", "cancelled", "failed"]).annotate({
    identifier: "RunStatus"
  })
)
/** What a run is doing or how it ended. */
export type RunStatus = typeof RunStatus.Type

/** A run status that never changes again. */
export type TerminalStatus = "completed" | "cancelled" | "failed"

/** Params of `run/start` and `turn/start`. */
export const StartParams = lazySchema(() =>
  Schema.Struct({ sessionId: IdParam, submissionId: SubmissionId, text: MessageText })
)
/** Params of `run/start` and `turn/start`. */
export type StartParams = typeof StartParams.Type

/** Result of `run/start`: every member's head before the turn is in `cursors`; a repeat gives the same (RUN-383). */
export const RunStartResult = lazySchema(() =>
  Schema.Struct({
    submissionId: Schema.String,
    turn: TurnRef,
    duplicate: Schema.Boolean,
    cursors: Cursors
  }).annotate({ identifier: "RunStartResult" })
)
/** Result of `run/start`. */
export type RunStartResult = typeof RunStartResult.Type

/** Result of `turn/start`: the same admission, with the lead's start cursor alone (RUN-388). */
export const TurnStartResult = lazySchema(() =>
  Schema.Struct({
    submissionId: Schema.String,
    turn: TurnRef,
    duplicate: Schema.Boolean,
    cursor: Cursor
  }).annotate({ identifier: "TurnStartResult" })
)
/** Result of `turn/start`. */
export type TurnStartResult = typeof TurnStartResult.Type

/** Params of `run/wait`. `cursors` makes the caller a streaming one; its values are checked by the host (RUN-141). */
export const RunWaitParams = lazySchema(() =>
  Schema.Struct({
    sessionId: IdParam,
    submissionId: optional(IdParam),
    waitMs: optional(int(0)),
    cursors: optional(map(CursorParam, 64)),
    maxEvents: optional(int(1)),
    journalId: optional(IdParam),
    knownInteractions: optional(list(IdParam, 256))
  })
)
/** Params of `run/wait`. */
export type RunWaitParams = typeof RunWaitParams.Type

const interruption = {
  id: HostId,
  sessionId: HostId,
  agent: Schema.String,
  submissionId: Schema.String,
  turnId: HostId,
  createdAt: Timestamp
}

/** A call that waits for a person. `tool` is the alias; long argument strings are previews, the artifact has all of it. */
export const ApprovalInterruption = lazySchema(() =>
  Schema.Struct({
    ...interruption,
    kind: Schema.Literal("approval"),
    tool: Schema.String,
    arguments: Schema.Json,
    category: ToolCategory,
    qualifiedName: Schema.String,
    callId: Schema.String,
    decisions: Schema.Array(RunDecision),
    reason: Schema.Literals(["policy", "escalated", "binding_changed"]),
    argumentsTruncated: optional(Schema.Boolean),
    argumentsArtifactId: optional(HostId)
  }).annotate({ identifier: "ApprovalInterruption" })
)
/** A question that waits for a person. `options` are labels and may be empty. */
export const QuestionInterruption = lazySchema(() =>
  Schema.Struct({
    ...interruption,
    kind: Schema.Literal("question"),
    question: Schema.String,
    options: Schema.Array(Schema.String),
    allowText: Schema.Boolean,
    topic: Schema.Literals(["agent", "compaction"])
  }).annotate({ identifier: "QuestionInterruption" })
)
/** Something that a person must settle before the run can go on. */
export const Interruption = lazySchema(() =>
  Schema.Union([ApprovalInterruption, QuestionInterruption]).annotate({
    identifier: "Interruption"
  })
)
/** Something that a person must settle before the run can go on. */
export type Interruption = typeof Interruption.Type

const reported = Schema.NullOr(int(0))

/** Token counts of a run or a session; null = not reported. */
export const Usage = lazySchema(() =>
  Schema.Struct({
    inputTokens: reported,
    outputTokens: reported,
    cachedInputTokens: reported,
    rounds: int(0)
  }).annotate({ identifier: "Usage" })
)
/** Token counts of a run or a session; null = not reported. */
export type Usage = typeof Usage.Type

/** One event of a page: whose it is, the wire event unchanged, and its summary (RUN-181). */
export const RunEvent = lazySchema(() =>
  Schema.Struct({
    agent: Schema.String,
    sessionId: HostId,
    event: WireEvent,
    summary: Schema.NullOr(Summary)
  }).annotate({ identifier: "RunEvent" })
)
/** One event of a page. */
export type RunEvent = typeof RunEvent.Type

/**
 * What `run/wait` observes. `failure` and `error` are there exactly when the status is failed; `events`, `cursors` and
 * `moreEvents` exactly when the caller sent cursors; `board` for teams.
 */
export const RunState = lazySchema(() =>
  Schema.Struct({
    status: RunStatus,
    failure: optional(Failure),
    finalOutput: Schema.NullOr(Schema.String),
    interruptions: Schema.Array(Interruption),
    submissionId: Schema.String,
    cursor: Cursor,
    board: optional(Board),
    events: optional(Schema.Array(RunEvent)),
    cursors: optional(Cursors),
    moreEvents: optional(Schema.Boolean),
    error: optional(Schema.Struct({ message: Schema.String, kind: optional(Schema.String) })),
    usage: Usage,
    journalId: HostId,
    scripted: optional(Schema.Boolean),
    finalOutputArtifact: optional(Schema.Struct({ artifactId: HostId, bytes: int(0) })),
    moreInterruptions: optional(Schema.Boolean)
  }).annotate({ identifier: "RunState" })
)
/** What `run/wait` observes. */
export type RunState = typeof RunState.Type

/** Params of `run/respond` and `interaction/respond`: an approval takes `decision`, a question `answer` (RUN-440). */
export const RespondParams = lazySchema(() =>
  Schema.Struct({
    sessionId: IdParam,
    interactionId: IdParam,
    decision: optional(RunDecision),
    answer: optional(AnswerText),
    reason: optional(chars(0, 2_000))
  }).check(exactlyOne("decision", "answer"))
)
/** Params of `run/respond` and `interaction/respond`. */
export type RespondParams = typeof RespondParams.Type

/** Result of `run/respond`: the stored response, and whether an earlier call had stored it (RUN-441). */
export const RespondResult = lazySchema(() =>
  Schema.Struct({ alreadyResolved: Schema.Boolean, response: Schema.String }).annotate({
    identifier: "RespondResult"
  })
)
/** Result of `run/respond`. */
export type RespondResult = typeof RespondResult.Type

/** What a member of a session is busy with. */
export const Phase = lazySchema(() =>
  Schema.Struct({
    sessionId: HostId,
    agent: Schema.String,
    turnId: HostId,
    phase: Schema.Literals([
      "queued",
      "model",
      "tool",
      "reviewing",
      "approval",
      "question",
      "compacting",
      "delivering",
      "recovering",
      "cancelling"
    ]),
    tool: optional(Schema.String),
    since: Timestamp
  }).annotate({ identifier: "Phase" })
)
/** What a member of a session is busy with. */
export type Phase = typeof Phase.Type

/** What a session is doing; `waiting` means that something waits for a person. */
export const SessionActivity = lazySchema(() =>
  Schema.Literals(["idle", "running", "waiting", "closed"]).annotate({
    identifier: "SessionActivity"
  })
)
/** What a session is doing. */
export type SessionActivity = typeof SessionActivity.Type

/** The aggregate state of a session and its team (section 13). */
export const SessionState = lazySchema(() =>
  Schema.Struct({
    sessionId: HostId,
    agent: Schema.String,
    name: optional(Schema.String),
    workspace: Schema.String,
    journalId: HostId,
    state: SessionActivity,
    phases: Schema.Array(Phase),
    interactions: Schema.Array(Interruption),
    canAcceptMessage: Schema.Boolean,
    turn: Schema.NullOr(Schema.Struct({ turnId: HostId, submissionId: Schema.String })),
    outcome: optional(
      Schema.Struct({
        status: Schema.Literals(["completed", "cancelled", "failed"]),
        failure: optional(Failure),
        finalOutput: Schema.NullOr(Schema.String),
        submissionId: Schema.String
      })
    ),
    cursors: Cursors,
    timers: Schema.NullOr(Schema.Array(Schema.Struct({ id: HostId, nextRunAt: Schema.Int, remainingRuns: int(0) }))),
    capabilities: Schema.Struct({ steering: Schema.Boolean, timers: Schema.Boolean }),
    board: optional(Board),
    grants: Schema.Array(
      Schema.Struct({
        sessionId: HostId,
        qualifiedName: Schema.String,
        tool: Schema.String,
        grantedAt: Timestamp,
        interactionId: HostId
      })
    ),
    model: optional(AgentModel),
    sandbox: Schema.Struct({ kind: SandboxKind, proved: Schema.Boolean }),
    usage: Usage,
    scripted: Schema.Boolean
  }).annotate({ identifier: "SessionState" })
)
/** The aggregate state of a session and its team. */
export type SessionState = typeof SessionState.Type

/** A run of a session as `session/attach` lists it, newest first. */
export const RunRow = lazySchema(() =>
  Schema.Struct({
    submissionId: Schema.String,
    status: RunStatus,
    failure: optional(Failure),
    startedAt: Timestamp,
    endedAt: optional(Timestamp),
    startCursors: Cursors,
    endCursors: optional(Cursors)
  }).annotate({ identifier: "RunRow" })
)
/** A run of a session as `session/attach` lists it. */
export type RunRow = typeof RunRow.Type

/** Result of `session/attach` (RUN-356). */
export const AttachResult = lazySchema(() =>
  Schema.Struct({
    session: SessionRef,
    state: SessionState,
    runs: Schema.Array(RunRow),
    cursors: Cursors
  }).annotate({ identifier: "AttachResult" })
)
/** Result of `session/attach`. */
export type AttachResult = typeof AttachResult.Type

/** A row of `session/list`; `submissionId` is the active run's, else the latest one's. */
export const SessionRow = lazySchema(() =>
  Schema.Struct({
    session: SessionRef,
    name: optional(Schema.String),
    state: SessionActivity,
    createdAt: Timestamp,
    lastActivityAt: Timestamp,
    submissionId: optional(Schema.String)
  }).annotate({ identifier: "SessionRow" })
)
/** A row of `session/list`. */
export type SessionRow = typeof SessionRow.Type

/** Params of `event/read`; `after` is checked by the host (RUN-141). */
export const EventReadParams = lazySchema(() =>
  Schema.Struct({
    sessionId: IdParam,
    after: optional(CursorParam),
    maxEvents: optional(int(1)),
    waitMs: optional(int(0)),
    journalId: optional(IdParam)
  })
)
/** Params of `event/read`. */
export type EventReadParams = typeof EventReadParams.Type

/** Result of `event/read`. */
export const EventReadResult = lazySchema(() =>
  Schema.Struct({
    events: Schema.Array(WireEvent),
    cursor: Cursor,
    head: Cursor,
    moreEvents: Schema.Boolean,
    journalId: HostId
  }).annotate({ identifier: "EventReadResult" })
)
/** Result of `event/read`. */
export type EventReadResult = typeof EventReadResult.Type

/** Params of `artifact/read`. */
export const ArtifactReadParams = lazySchema(() =>
  Schema.Struct({
    sessionId: IdParam,
    artifactId: IdParam,
    offset: optional(int(0)),
    length: optional(int(1, 524_288))
  })
)
/** Params of `artifact/read`. */
export type ArtifactReadParams = typeof ArtifactReadParams.Type

/** Result of `artifact/read`. */
export const ArtifactReadResult = lazySchema(() =>
  Schema.Struct({
    artifactId: HostId,
    offset: int(0),
    length: int(0),
    totalBytes: int(0),
    mediaType: Schema.String,
    encoding: Schema.Literal("base64"),
    data: Schema.String,
    eof: Schema.Boolean
  }).annotate({ identifier: "ArtifactReadResult" })
)
/** Result of `artifact/read`. */
export type ArtifactReadResult = typeof ArtifactReadResult.Type
