/** The messages of agent/session, agent/close and session/* but attach and state (run-protocol sections 13, 16 and 17). */
import { Schema } from "effect"
import {
  AbsolutePath,
  bytes,
  chars,
  Cursors,
  HostId,
  IdParam,
  MessageText,
  AgentModel,
  optional,
  pattern,
  SubmissionId
} from "./Bounds.ts"
import { limits } from "./Limits.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** A member of a team: its session and its agent. */
export const MemberRef = lazySchema(() =>
  Schema.Struct({ sessionId: HostId, agent: Schema.String }).annotate({
    identifier: "MemberRef"
  })
)
/** A member of a team: its session and its agent. */
export type MemberRef = typeof MemberRef.Type

/** A lead session, and its team when the agent has subagents: workers in definition order. */
export const SessionRef = lazySchema(() =>
  Schema.Struct({
    sessionId: HostId,
    agent: Schema.String,
    team: optional(Schema.Struct({ teamId: HostId, workers: Schema.Array(MemberRef) })),
    journalId: HostId,
    workspace: Schema.String
  }).annotate({ identifier: "SessionRef" })
)
/** A lead session, and its team when the agent has subagents. */
export type SessionRef = typeof SessionRef.Type

/** Params of `agent/session`. */
export const AgentSessionParams = lazySchema(() =>
  Schema.Struct({
    agent: IdParam,
    workspace: AbsolutePath,
    name: optional(chars(0, 200)),
    model: optional(AgentModel),
    creationId: optional(pattern(/^[A-Za-z0-9._:@-]{1,128}$/u, "1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"))
  })
)
/** Params of `agent/session`. */
export type AgentSessionParams = typeof AgentSessionParams.Type

/** Why one member could not be cancelled or closed: the kind of the error and a sentence. */
export const MemberError = lazySchema(() =>
  Schema.Struct({ kind: Schema.String, message: Schema.String }).annotate({
    identifier: "MemberError"
  })
)
/** Per-member failures by session id; empty when every member was reached. */
export const MemberErrors = lazySchema(() => Schema.Record(Schema.String, MemberError))
/** Per-member failures by session id. */
export type MemberErrors = typeof MemberErrors.Type

/** Result of `agent/close`: the sessions that are closed now, and why others are not (RUN-477). */
export const CloseResult = lazySchema(() =>
  Schema.Struct({ closed: Schema.Array(HostId), errors: MemberErrors }).annotate({
    identifier: "CloseResult"
  })
)
/** Result of `agent/close`. */
export type CloseResult = typeof CloseResult.Type

/** Result of `run/cancel` and `team/cancel` (section 17). */
export const CancelResult = lazySchema(() =>
  Schema.Struct({
    cancelled: Schema.Array(HostId),
    teamCancelled: Schema.Boolean,
    errors: MemberErrors
  }).annotate({ identifier: "CancelResult" })
)
/** Result of `run/cancel` and `team/cancel`. */
export type CancelResult = typeof CancelResult.Type

/** A decision on an approval. */
export const RunDecision = lazySchema(() =>
  Schema.Literals(["once", "session", "deny"]).annotate({ identifier: "RunDecision" })
)
/** A decision on an approval. */
export type RunDecision = typeof RunDecision.Type

/** The text of an answer to a question: 1 to 16,384 bytes. */
export const AnswerText = bytes(1, limits.answerBytes)

/** What an app sends to a session. An input without `type` is a message (RUN-362). */
export const SessionInput = lazySchema(() =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("message"), text: MessageText }),
    Schema.Struct({
      type: Schema.Literal("approval"),
      interactionId: IdParam,
      decision: RunDecision,
      targetSessionId: optional(IdParam)
    }),
    Schema.Struct({
      type: Schema.Literal("answer"),
      interactionId: IdParam,
      text: AnswerText,
      targetSessionId: optional(IdParam)
    })
  ]).annotate({
    identifier: "SessionInput",
    expected: "an input of type message, approval or answer",
    wireDefaults: { type: "message" }
  })
)
/** What an app sends to a session. */
export type SessionInput = typeof SessionInput.Type

/** The turn that a start made, or that a session is in. */
export const TurnRef = lazySchema(() =>
  Schema.Struct({ turnId: HostId, sessionId: HostId }).annotate({ identifier: "TurnRef" })
)
/** The turn that a start made. */
export type TurnRef = typeof TurnRef.Type

const isSubmissionId = Schema.is(SubmissionId)

/**
 * Params of `session/send`. Beside a message `submissionId` is the new run's id, with the bounds of `run/start`; beside
 * a control it names the run that the control is for (RUN-363).
 */
export const SessionSendParams = lazySchema(() =>
  Schema.Struct({
    sessionId: IdParam,
    submissionId: optional(chars(1, 200)),
    input: SessionInput
  }).check(
    Schema.makeFilter(
      (params: { readonly submissionId?: string; readonly input: SessionInput }) =>
        params.input.type !== "message" || params.submissionId === undefined || isSubmissionId(params.submissionId)
          ? true
          : {
              path: ["submissionId"],
              issue: "a submission id without control characters and without a reserved prefix"
            },
      { toJsonSchema: () => [{}, true] }
    )
  )
)
/** Params of `session/send`. */
export type SessionSendParams = typeof SessionSendParams.Type

/** Result of `session/send`, by the type of the input. */
export const SessionSendResult = lazySchema(() =>
  Schema.Union([
    Schema.Struct({
      type: Schema.Literal("message"),
      submissionId: Schema.String,
      turn: TurnRef,
      duplicate: Schema.Boolean,
      cursors: Cursors
    }),
    Schema.Struct({
      type: Schema.Literals(["approval", "answer"]),
      submissionId: Schema.String,
      interactionId: HostId,
      alreadyResolved: Schema.Boolean,
      response: Schema.String
    })
  ]).annotate({ identifier: "SessionSendResult" })
)
/** Result of `session/send`. */
export type SessionSendResult = typeof SessionSendResult.Type
