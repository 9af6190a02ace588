/**
 * Permissions and questions (3.4): what a harness asks, what a person or a policy answers, and how a request ends
 * without an answer. Both kinds share one id space, prefix `int_` (D-2).
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { InteractionId, TurnId } from "../Ids.ts"
import { Timestamp } from "./Content.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Who decided. Only the runtime sets one other than `person` (D-10). @since 0.1.0 */
export const Origin = lazySchema(() =>
  Schema.Literals(["person", "policy", "app_policy", "reviewer", "grant", "system"]).annotate({
    identifier: "Origin"
  })
)
/** @since 0.1.0 */
export type Origin = typeof Origin.Type

/** What a tool call can do to the world (D-10). @since 0.1.0 */
export const Category = lazySchema(() =>
  Schema.Literals(["read", "write_local", "exec", "network", "external"]).annotate({
    identifier: "Category"
  })
)
/** @since 0.1.0 */
export type Category = typeof Category.Type

/** The two kinds of interaction. @since 0.1.0 */
export const InteractionKind = lazySchema(() =>
  Schema.Literals(["permission", "question"]).annotate({ identifier: "InteractionKind" })
)
/** @since 0.1.0 */
export type InteractionKind = typeof InteractionKind.Type

/** A decision on a permission. `deny` refuses this once. @since 0.1.0 */
export const Decision = lazySchema(() =>
  Schema.Literals(["allow_once", "allow_always", "deny", "reject_always"]).annotate({
    identifier: "Decision"
  })
)
/** @since 0.1.0 */
export type Decision = typeof Decision.Type

/** What an offered option does. @since 0.1.0 */
export const OptionKind = lazySchema(() =>
  Schema.Literals(["allow_once", "allow_always", "reject_once", "reject_always"]).annotate({
    identifier: "OptionKind"
  })
)
/** @since 0.1.0 */
export type OptionKind = typeof OptionKind.Type

/** An option of a permission, exactly as the harness offered it. @since 0.1.0 */
export const PermissionOption = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    label: Schema.String,
    description: Schema.optionalKey(Schema.String),
    kind: Schema.optionalKey(OptionKind)
  }).annotate({ identifier: "PermissionOption" })
)
/** @since 0.1.0 */
export type PermissionOption = typeof PermissionOption.Type

/** What a permission is about, beyond its tool and arguments. @since 0.1.0 */
export const PermissionDetails = lazySchema(() =>
  Schema.Struct({
    command: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    diff: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: "PermissionDetails" })
)
/** @since 0.1.0 */
export type PermissionDetails = typeof PermissionDetails.Type

/** One choice of a question. @since 0.1.0 */
export const QuestionOption = lazySchema(() =>
  Schema.Struct({
    label: Schema.String,
    description: Schema.optionalKey(Schema.String),
    preview: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "QuestionOption" })
)
/** @since 0.1.0 */
export type QuestionOption = typeof QuestionOption.Type

/**
 * One question. `multiple` allows several answers (default false), `custom` free text (default true); a `secret` answer
 * is stored nowhere (RT-260).
 *
 * @since 0.1.0
 */
export const Question = lazySchema(() =>
  Schema.Struct({
    question: Schema.String,
    header: Schema.optionalKey(Schema.String),
    options: Schema.Array(QuestionOption),
    multiple: Schema.optionalKey(Schema.Boolean),
    custom: Schema.optionalKey(Schema.Boolean),
    secret: Schema.optionalKey(Schema.Boolean),
    topic: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "Question" })
)
/** @since 0.1.0 */
export type Question = typeof Question.Type

/** The questions asked together: 1 to 16. @since 0.1.0 */
export const Questions = lazySchema(() =>
  Schema.Array(Question).check(Schema.isMinLength(1), Schema.isMaxLength(16)).annotate({ identifier: "Questions" })
)
/** @since 0.1.0 */
export type Questions = typeof Questions.Type

/** One list of answers per question (RT-259). @since 0.1.0 */
export const Answers = lazySchema(() => Schema.Array(Schema.Array(Schema.String)).annotate({ identifier: "Answers" }))
/** @since 0.1.0 */
export type Answers = typeof Answers.Type

/** How a permission was decided. @since 0.1.0 */
export const PermissionResolution = lazySchema(() =>
  Schema.Struct({
    decision: Decision,
    optionId: Schema.optionalKey(Schema.String),
    note: Schema.optionalKey(Schema.String),
    by: Schema.optionalKey(Schema.String),
    origin: Origin,
    at: Timestamp
  }).annotate({ identifier: "PermissionResolution" })
)
/** @since 0.1.0 */
export type PermissionResolution = typeof PermissionResolution.Type

/** How a question was answered; `answers: null` = rejected. @since 0.1.0 */
export const QuestionResolution = lazySchema(() =>
  Schema.Struct({
    answers: Schema.NullOr(Answers),
    by: Schema.optionalKey(Schema.String),
    origin: Origin,
    at: Timestamp
  }).annotate({ identifier: "QuestionResolution" })
)
/** @since 0.1.0 */
export type QuestionResolution = typeof QuestionResolution.Type

/** The stored resolution of either kind. @since 0.1.0 */
export const Resolution = lazySchema(() =>
  Schema.Union([PermissionResolution, QuestionResolution]).annotate({
    identifier: "Resolution"
  })
)
/** @since 0.1.0 */
export type Resolution = typeof Resolution.Type

/** Why an interaction ended without an answer. @since 0.1.0 */
export const WithdrawalReason = lazySchema(() =>
  Schema.Literals(["turn_ended", "cancelled", "process_lost", "restart", "replaced", "expired"]).annotate({
    identifier: "WithdrawalReason"
  })
)
/** @since 0.1.0 */
export type WithdrawalReason = typeof WithdrawalReason.Type

/** The end of an interaction that nobody answered. @since 0.1.0 */
export const Withdrawal = lazySchema(() =>
  Schema.Struct({ reason: WithdrawalReason, at: Timestamp }).annotate({
    identifier: "Withdrawal"
  })
)
/** @since 0.1.0 */
export type Withdrawal = typeof Withdrawal.Type

const interactionBase = {
  id: InteractionId,
  sessionId: Schema.String,
  rootSessionId: Schema.String,
  turnId: TurnId,
  state: Schema.Literals(["pending", "resolved", "withdrawn"]),
  createdAt: Timestamp,
  nativeRequestId: Schema.String,
  toolCallId: Schema.optionalKey(Schema.String),
  withdrawal: Schema.optionalKey(Withdrawal)
}

/** A permission that is or was asked. @since 0.1.0 */
export const PermissionInteraction = lazySchema(() =>
  Schema.Struct({
    kind: Schema.Literal("permission"),
    ...interactionBase,
    tool: Schema.String,
    title: Schema.String,
    arguments: Schema.optionalKey(Schema.Json),
    paths: Schema.Array(Schema.String),
    patterns: Schema.Array(Schema.String),
    details: PermissionDetails,
    category: Schema.optionalKey(Category),
    options: Schema.Array(PermissionOption),
    resolution: Schema.optionalKey(PermissionResolution)
  }).annotate({ identifier: "PermissionInteraction" })
)
/** @since 0.1.0 */
export type PermissionInteraction = typeof PermissionInteraction.Type

/** A question that is or was asked. @since 0.1.0 */
export const QuestionInteraction = lazySchema(() =>
  Schema.Struct({
    kind: Schema.Literal("question"),
    ...interactionBase,
    questions: Questions,
    resolution: Schema.optionalKey(QuestionResolution)
  }).annotate({ identifier: "QuestionInteraction" })
)
/** @since 0.1.0 */
export type QuestionInteraction = typeof QuestionInteraction.Type

/** The row of an interaction (3.4). @since 0.1.0 */
export const Interaction = lazySchema(() =>
  Schema.Union([PermissionInteraction, QuestionInteraction]).annotate({
    identifier: "Interaction"
  })
)
/** @since 0.1.0 */
export type Interaction = typeof Interaction.Type
