/**
 * Permission requests between a runner and a rig (seat contract 5.3 to 5.5): submit, read, withdraw and their answers.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"
import { bytes, optional } from "../run/Bounds.ts"
import { Identifier } from "./Activity.ts"
import { seatCodec } from "./Decoding.ts"
import { seatLimits } from "./SeatLimits.ts"

const Named = bytes(1, seatLimits.nameBytes)

/**
 * An option as the agent offered it. A kind beside `allow_once`, `allow_always`, `reject_once` and `reject_always` is
 * shown to people and never picked by default.
 *
 * @since 0.1.0
 */
export const SeatOption = lazySchema(() =>
  Schema.Struct({ optionId: Schema.String, name: Schema.String, kind: Schema.String }).annotate({
    identifier: "SeatOption"
  })
)
/** @since 0.1.0 */
export type SeatOption = typeof SeatOption.Type

/** The first option of the wanted kinds: of the first kind if there is one, else of the next. @since 0.1.0 */
export const optionOfKind = <A extends { readonly kind: string }>(
  options: ReadonlyArray<A>,
  ...kinds: ReadonlyArray<string>
): A | undefined => {
  for (const kind of kinds) {
    const found = options.find((option) => option.kind === kind)
    if (found !== undefined) return found
  }
  return undefined
}

/** What a permit by default takes: the first `allow_once`, else the first `allow_always` (7.1). @since 0.1.0 */
export const permitOption = <A extends { readonly kind: string }>(options: ReadonlyArray<A>): A | undefined =>
  optionOfKind(options, "allow_once", "allow_always")

/** What a plain no takes: the first `reject_once`, else the first `reject_always` (P4). @since 0.1.0 */
export const rejectOption = <A extends { readonly kind: string }>(options: ReadonlyArray<A>): A | undefined =>
  optionOfKind(options, "reject_once", "reject_always")

/** `POST /api/activity/permission-requests`. @since 0.1.0 */
export const PermissionSubmit = lazySchema(() =>
  Schema.Struct({
    sessionName: optional(Named),
    nodeId: optional(Named),
    generation: optional(Named),
    nativeRef: optional(bytes(0, 1024)),
    turnId: Identifier,
    requestId: Schema.Union([bytes(0, seatLimits.nameBytes), Schema.Finite, Schema.Null]).annotate({
      expected: "a string of at most 256 bytes, a number, or null"
    }),
    toolCall: Schema.Record(Schema.String, Schema.Json),
    options: Schema.Array(SeatOption),
    occurredAt: optional(Schema.Json.annotate({ description: "ISO 8601 with an offset" }))
  }).annotate({ identifier: "PermissionSubmit" })
)
/** @since 0.1.0 */
export type PermissionSubmit = typeof PermissionSubmit.Type
/** @since 0.1.0 */
export const permissionSubmit = seatCodec(PermissionSubmit)

/** Why a request was permitted at once without asking anybody (7.1). @since 0.1.0 */
export const permitReasons = [
  "options_not_showable",
  "chosen_person_removed",
  "people_unreadable",
  "no_registered_person",
  "several_people_no_default"
] as const
/** @since 0.1.0 */
export type PermitReason = (typeof permitReasons)[number]

/** A person is asked. @since 0.1.0 */
export const AskOpened = lazySchema(() =>
  Schema.Struct({ ok: Schema.Literal(true), askId: Named, created: Schema.Boolean }).annotate({
    identifier: "AskOpened"
  })
)
/** Nobody can be asked, and this option is permitted. @since 0.1.0 */
export const PermittedAtSubmit = lazySchema(() =>
  Schema.Struct({
    ok: Schema.Literal(true),
    state: Schema.Literal("permitted"),
    optionId: Schema.String,
    reason: optional(Schema.String)
  }).annotate({ identifier: "PermittedAtSubmit" })
)
/** The answer to a submit. @since 0.1.0 */
export const PermissionSubmitted = lazySchema(() =>
  Schema.Union([AskOpened, PermittedAtSubmit]).annotate({ identifier: "PermissionSubmitted" })
)
/** @since 0.1.0 */
export type PermissionSubmitted = typeof PermissionSubmitted.Type
/** @since 0.1.0 */
export const permissionSubmitted = seatCodec(PermissionSubmitted)

/** Where an ask stands. All but `pending` are final. @since 0.1.0 */
export const askStates = ["pending", "answered", "permitted", "refused", "withdrawn", "stale"] as const
/** @since 0.1.0 */
export type AskState = (typeof askStates)[number]
/** @since 0.1.0 */
export const AskState = lazySchema(() => Schema.Literals(askStates).annotate({ identifier: "AskState" }))

/** Why an ask ended `refused`. @since 0.1.0 */
export const refusalReasons = ["said_no", "no_allow_offered"] as const
/** @since 0.1.0 */
export type RefusalReason = (typeof refusalReasons)[number]

const read = <const State extends AskState, const Fields extends Schema.Struct.Fields>(state: State, fields: Fields) =>
  Schema.Struct({ ok: Schema.Literal(true), askId: optional(Named), state: Schema.Literal(state), ...fields })

/**
 * The answer to a read. `said` holds a person's words that were no answer: they are the next prompt, never the outcome.
 *
 * @since 0.1.0
 */
export const PermissionRead = lazySchema(() =>
  Schema.Union([
    read("pending", {}),
    read("answered", { optionId: Schema.String }),
    read("permitted", { optionId: Schema.String, reason: optional(Schema.String), said: optional(Schema.String) }),
    read("refused", { reason: optional(Schema.String), said: optional(Schema.String) }),
    read("withdrawn", { reason: optional(Schema.String) }),
    read("stale", {})
  ]).annotate({ identifier: "PermissionRead" })
)
/** @since 0.1.0 */
export type PermissionRead = typeof PermissionRead.Type
/** @since 0.1.0 */
export const permissionRead = seatCodec(PermissionRead)

/** Why a runner withdraws a request. @since 0.1.0 */
export const withdrawReasons = ["turn_cancelled", "turn_ended", "exited"] as const
/** @since 0.1.0 */
export type WithdrawReason = (typeof withdrawReasons)[number]

/** `POST /api/activity/permission-requests/<askId>/withdraw`. @since 0.1.0 */
export const PermissionWithdraw = lazySchema(() =>
  Schema.Struct({ reason: Schema.Literals(withdrawReasons) }).annotate({ identifier: "PermissionWithdraw" })
)
/** @since 0.1.0 */
export type PermissionWithdraw = typeof PermissionWithdraw.Type
/** @since 0.1.0 */
export const permissionWithdraw = seatCodec(PermissionWithdraw)

/** The answer to a withdraw: the state after it, which is an earlier end when there was one. @since 0.1.0 */
export const PermissionWithdrawn = lazySchema(() =>
  Schema.Struct({ ok: Schema.Literal(true), askId: Named, state: AskState }).annotate({
    identifier: "PermissionWithdrawn"
  })
)
/** @since 0.1.0 */
export type PermissionWithdrawn = typeof PermissionWithdrawn.Type
/** @since 0.1.0 */
export const permissionWithdrawn = seatCodec(PermissionWithdrawn)

/** Paths of the four routes between a runner and a rig. @since 0.1.0 */
export const seatPaths = {
  hooks: "/api/activity/hooks",
  submit: "/api/activity/permission-requests",
  read: (askId: string): string => `/api/activity/permission-requests/${encodeURIComponent(askId)}`,
  withdraw: (askId: string): string => `/api/activity/permission-requests/${encodeURIComponent(askId)}/withdraw`
} as const
