/**
 * The errors of the seat contract and of the rig API (seat contract 5.1, 9.7), one class per code, from one table (D-33).
 *
 * On the wire an error is `{"ok": false, "code", "error", …fields}` under the status of its row. A client goes by `code`
 * alone: other services leave `error` out, and may send codes that this table does not know ({@link UnknownRefusal}).
 * Messages repeat no secret and no value of a body.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { constant, makeErrorClass, messageField } from "../internal/ErrorClass.ts"
import { lazyClass, memoised } from "../internal/Lazy.ts"

interface Row<Code extends string, Fields extends Schema.Struct.Fields> {
  readonly code: Code
  readonly status: number
  readonly fields: Fields
  readonly message: (error: Schema.Struct.Type<Fields>) => string
}

const text = Schema.String
const optional = Schema.optionalKey

/** Makes the class of one row. */
const define =
  <Self>() =>
  <const Tag extends string, const Code extends string, const Fields extends Schema.Struct.Fields>(
    tag: Tag,
    row: Row<Code, Fields>
  ) =>
    lazyClass(
      () => {
        const Made = makeErrorClass<Self>()(tag, {
          identifier: `Seat${tag}Error`,
          fields: { code: constant(row.code), message: messageField, ...row.fields },
          annotations: { httpApiStatus: row.status },
          message: (props) => row.message(props as Schema.Struct.Type<Fields>)
        })
        return Made as typeof Made & { readonly row: Row<Code, Fields> }
      },
      { row }
    )

const because = (detail: string | undefined): string => (detail === undefined ? "" : `: ${detail}`)
const shouldBe = (expected: string | undefined): string => (expected === undefined ? "" : `: expected ${expected}`)

const seat = { seat: text }
const preset = { preset: text, problems: optional(Schema.Array(text)) }

/** The token is missing or unknown; on the guest listener also the local one. @since 0.1.0 */
export class HookUnauthorized extends define<HookUnauthorized>()("HookUnauthorized", {
  code: "activity_hook_unauthorized",
  status: 401,
  fields: {},
  message: () => "the token is missing or not known"
}) {}

/** The store is closing; the same post may be made again. @since 0.1.0 */
export class HookUnconfigured extends define<HookUnconfigured>()("HookUnconfigured", {
  code: "activity_hook_unconfigured",
  status: 503,
  fields: {},
  message: () => "the service is closing"
}) {}

/** The body is not one JSON object in UTF-8. @since 0.1.0 */
export class InvalidJson extends define<InvalidJson>()("InvalidJson", {
  code: "invalid_json",
  status: 400,
  fields: {},
  message: () => "the body is no JSON object"
}) {}

/** A field has another type or is out of bounds; `path` names it. @since 0.1.0 */
export class InvalidField extends define<InvalidField>()("InvalidField", {
  code: "invalid_field",
  status: 400,
  fields: { path: text, expected: optional(text) },
  message: (e) => `${e.path === "" ? "the body" : e.path} does not fit${shouldBe(e.expected)}`
}) {}

/** With the local token a post names its seat. @since 0.1.0 */
export class MissingSessionIdentity extends define<MissingSessionIdentity>()("MissingSessionIdentity", {
  code: "missing_session_identity",
  status: 400,
  fields: {},
  message: () => "sessionName or nodeId is needed"
}) {}

/** A post names a seat that does not exist. @since 0.1.0 */
export class SessionNotFound extends define<SessionNotFound>()("SessionNotFound", {
  code: "session_not_found",
  status: 404,
  fields: {},
  message: () => "there is no such seat"
}) {}

/** The grant speaks for another seat. @since 0.1.0 */
export class GrantWrongSeat extends define<GrantWrongSeat>()("GrantWrongSeat", {
  code: "activity_grant_wrong_seat",
  status: 403,
  fields: {},
  message: () => "the grant speaks for another seat"
}) {}

/** The generation of the grant was replaced, or the body claims another. @since 0.1.0 */
export class GrantStale extends define<GrantStale>()("GrantStale", {
  code: "activity_grant_stale",
  status: 409,
  fields: {},
  message: () => "the launch of this grant no longer occupies the seat"
}) {}

/** The grant was revoked and nobody has taken its place. @since 0.1.0 */
export class GrantRevoked extends define<GrantRevoked>()("GrantRevoked", {
  code: "activity_grant_revoked",
  status: 401,
  fields: {},
  message: () => "the grant was revoked"
}) {}

/** The launch of the grant has not registered its occupant. @since 0.1.0 */
export class GrantPending extends define<GrantPending>()("GrantPending", {
  code: "activity_grant_pending",
  status: 409,
  fields: {},
  message: () => "the launch of this grant has not registered yet"
}) {}

/** With the local token: not the current occupant of the seat. @since 0.1.0 */
export class StaleGeneration extends define<StaleGeneration>()("StaleGeneration", {
  code: "stale_generation",
  status: 409,
  fields: {},
  message: () => "this is not the current occupant of the seat"
}) {}

/** The seat is set to refuse, or nobody can be asked and the service refuses then. @since 0.1.0 */
export class DeniedBySeat extends define<DeniedBySeat>()("DeniedBySeat", {
  code: "denied_by_seat",
  status: 409,
  fields: {},
  message: () => "requests of this seat are refused"
}) {}

/** Nobody can be asked and there is nothing to permit. @since 0.1.0 */
export class OptionsUnsupported extends define<OptionsUnsupported>()("OptionsUnsupported", {
  code: "options_unsupported",
  status: 422,
  fields: {},
  message: () => "nobody can be asked, and no option allows the request"
}) {}

/** The request id was already submitted in another turn. @since 0.1.0 */
export class DuplicateRequest extends define<DuplicateRequest>()("DuplicateRequest", {
  code: "duplicate_request",
  status: 409,
  fields: {},
  message: () => "this request id was submitted in another turn"
}) {}

/** No ask has this id. @since 0.1.0 */
export class AskNotFound extends define<AskNotFound>()("AskNotFound", {
  code: "ask_not_found",
  status: 404,
  fields: {},
  message: () => "there is no such ask"
}) {}

/** The body is over the limit of its route. @since 0.1.0 */
export class BodyTooLarge extends define<BodyTooLarge>()("BodyTooLarge", {
  code: "body_too_large",
  status: 413,
  fields: { limit: optional(Schema.Natural) },
  message: (e) => `the body is larger than ${e.limit ?? "the limit"} bytes`
}) {}

/** The body did not arrive in time. @since 0.1.0 */
export class BodyTimeout extends define<BodyTimeout>()("BodyTimeout", {
  code: "body_timeout",
  status: 408,
  fields: {},
  message: () => "the body did not arrive in time"
}) {}

/** The grant posts faster than the guest listener takes. @since 0.1.0 */
export class RateLimited extends define<RateLimited>()("RateLimited", {
  code: "rate_limited",
  status: 429,
  fields: {},
  message: () => "too many posts; try again in a moment"
}) {}

/** The path exists with another method. @since 0.1.0 */
export class MethodNotAllowed extends define<MethodNotAllowed>()("MethodNotAllowed", {
  code: "method_not_allowed",
  status: 405,
  fields: {},
  message: () => "the path has no such method"
}) {}

/** No route has this path. @since 0.1.0 */
export class RouteNotFound extends define<RouteNotFound>()("RouteNotFound", {
  code: "not_found",
  status: 404,
  fields: {},
  message: () => "not found"
}) {}

/** A fault; nothing was recorded. @since 0.1.0 */
export class InternalFault extends define<InternalFault>()("InternalFault", {
  code: "internal",
  status: 500,
  fields: { traceId: optional(text) },
  message: () => "a fault of the service; nothing was recorded"
}) {}

/** A text for people is over its limit; nothing was recorded. @since 0.1.0 */
export class TooLong extends define<TooLong>()("TooLong", {
  code: "too_long",
  status: 400,
  fields: { path: text, max: Schema.Natural },
  message: (e) => `${e.path} takes at most ${e.max} characters`
}) {}

/** The text of a send is empty or holds a character that would act on the pane. @since 0.1.0 */
export class InvalidText extends define<InvalidText>()("InvalidText", {
  code: "invalid_text",
  status: 400,
  fields: { offset: Schema.Natural, reason: optional(text) },
  message: (e) => `the text cannot be pasted at byte ${e.offset}${because(e.reason)}`
}) {}

/** A rig file does not fit; `path` names where. @since 0.1.0 */
export class RigInvalid extends define<RigInvalid>()("RigInvalid", {
  code: "rig_invalid",
  status: 400,
  fields: { path: text, expected: optional(text) },
  message: (e) => `${e.path === "" ? "the rig" : e.path} does not fit${shouldBe(e.expected)}`
}) {}

/** A rig file sets what only a command may set. @since 0.1.0 */
export class FieldNotAllowed extends define<FieldNotAllowed>()("FieldNotAllowed", {
  code: "field_not_allowed",
  status: 400,
  fields: { path: text },
  message: (e) => `${e.path} is not set in a rig file`
}) {}

/** No file has the preset's name. @since 0.1.0 */
export class PresetNotFound extends define<PresetNotFound>()("PresetNotFound", {
  code: "preset_not_found",
  status: 404,
  fields: preset,
  message: (e) => `there is no preset ${e.preset}`
}) {}

/** The preset has errors; `problems` names each with its place. @since 0.1.0 */
export class PresetInvalid extends define<PresetInvalid>()("PresetInvalid", {
  code: "preset_invalid",
  status: 400,
  fields: preset,
  message: (e) => `preset ${e.preset} cannot be used`
}) {}

/** The preset declares what does not go together. @since 0.1.0 */
export class PresetConflict extends define<PresetConflict>()("PresetConflict", {
  code: "preset_conflict",
  status: 400,
  fields: preset,
  message: (e) => `preset ${e.preset} declares what does not go together`
}) {}

/** The preset declares what no service here has. @since 0.1.0 */
export class PresetUnsupported extends define<PresetUnsupported>()("PresetUnsupported", {
  code: "preset_unsupported",
  status: 400,
  fields: preset,
  message: (e) => `preset ${e.preset} declares what this service does not have`
}) {}

/** The route takes the operator token or a person's. @since 0.1.0 */
export class OperatorUnauthorized extends define<OperatorUnauthorized>()("OperatorUnauthorized", {
  code: "operator_unauthorized",
  status: 401,
  fields: {},
  message: () => "the operator token is missing or not known"
}) {}

/** A person acts as themselves, and a seat closes its own rows. @since 0.1.0 */
export class NotAllowed extends define<NotAllowed>()("NotAllowed", {
  code: "not_allowed",
  status: 403,
  fields: { reason: optional(text) },
  message: (e) => `the caller may not do this${because(e.reason)}`
}) {}

/** The request was made by a page of another site. @since 0.1.0 */
export class BadOrigin extends define<BadOrigin>()("BadOrigin", {
  code: "bad_origin",
  status: 403,
  fields: {},
  message: () => "requests of other sites are refused"
}) {}

/** The Host header does not name this listener. @since 0.1.0 */
export class BadHost extends define<BadHost>()("BadHost", {
  code: "bad_host",
  status: 421,
  fields: {},
  message: () => "the Host header does not name this listener"
}) {}

/** No rig has this name. @since 0.1.0 */
export class RigNotFound extends define<RigNotFound>()("RigNotFound", {
  code: "rig_not_found",
  status: 404,
  fields: { rig: text },
  message: (e) => `there is no rig ${e.rig}`
}) {}

/** A rig of this name exists with other seats. @since 0.1.0 */
export class RigExists extends define<RigExists>()("RigExists", {
  code: "rig_exists",
  status: 409,
  fields: { rig: text },
  message: (e) => `rig ${e.rig} exists with other content`
}) {}

/** No seat fits the reference. @since 0.1.0 */
export class SeatNotFound extends define<SeatNotFound>()("SeatNotFound", {
  code: "seat_not_found",
  status: 404,
  fields: { seat: text },
  message: (e) => `there is no seat ${e.seat}`
}) {}

/** The reference fits several seats. @since 0.1.0 */
export class SeatAmbiguous extends define<SeatAmbiguous>()("SeatAmbiguous", {
  code: "seat_ambiguous",
  status: 409,
  fields: { seat: text, matches: Schema.Array(text) },
  message: (e) => `${e.seat} may be ${e.matches.join(" or ")}`
}) {}

/** The seat is at work already. @since 0.1.0 */
export class SeatRunning extends define<SeatRunning>()("SeatRunning", {
  code: "seat_running",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} is running`
}) {}

/** Nobody is in the seat. @since 0.1.0 */
export class SeatStopped extends define<SeatStopped>()("SeatStopped", {
  code: "seat_stopped",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} is not running`
}) {}

/** The launch has not come to an end. @since 0.1.0 */
export class SeatNotReady extends define<SeatNotReady>()("SeatNotReady", {
  code: "seat_not_ready",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} is still starting`
}) {}

/** The launch state needs a person first. @since 0.1.0 */
export class SeatNeedsAttention extends define<SeatNeedsAttention>()("SeatNeedsAttention", {
  code: "seat_needs_attention",
  status: 409,
  fields: { ...seat, state: text },
  message: (e) => `the launch of ${e.seat} is ${e.state} and needs a person`
}) {}

/** Another launch of the seat has not come to an end. @since 0.1.0 */
export class LaunchInProgress extends define<LaunchInProgress>()("LaunchInProgress", {
  code: "launch_in_progress",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} is being launched`
}) {}

/** The seat waits for a person. @since 0.1.0 */
export class TargetNeedsInput extends define<TargetNeedsInput>()("TargetNeedsInput", {
  code: "target_needs_input",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} waits for a person; a send would be typed into that`
}) {}

/** Other sends to the seat did not end in time. @since 0.1.0 */
export class SendBusy extends define<SendBusy>()("SendBusy", {
  code: "send_busy",
  status: 409,
  fields: seat,
  message: (e) => `other sends to ${e.seat} did not end in time`
}) {}

/** There is nothing to clear. @since 0.1.0 */
export class NotInAttention extends define<NotInAttention>()("NotInAttention", {
  code: "not_in_attention",
  status: 409,
  fields: seat,
  message: (e) => `${e.seat} needs no attention`
}) {}

/** The ask has ended; how, by whom and when stands in the fields. @since 0.1.0 */
export class AskSettled extends define<AskSettled>()("AskSettled", {
  code: "ask_settled",
  status: 409,
  fields: { askId: text, state: text, optionId: optional(text), by: optional(text), at: optional(text) },
  message: (e) => `the ask is ${e.state} already`
}) {}

/** The row has ended. @since 0.1.0 */
export class RowClosed extends define<RowClosed>()("RowClosed", {
  code: "row_closed",
  status: 409,
  fields: { rowId: text, state: text },
  message: (e) => `the row is ${e.state} already`
}) {}

/** A seat holds the ask: no option and no text answers it. @since 0.1.0 */
export class RowHeldBySeat extends define<RowHeldBySeat>()("RowHeldBySeat", {
  code: "row_held_by_seat",
  status: 409,
  fields: { seat: text },
  message: (e) => `${e.seat} holds the ask; close its row or hand it to a person`
}) {}

/** The text is no choice, no yes and no no; nothing was recorded. @since 0.1.0 */
export class WordsNotAnAnswer extends define<WordsNotAnAnswer>()("WordsNotAnAnswer", {
  code: "words_not_an_answer",
  status: 409,
  fields: { wouldPermit: optional(text), wouldRefuse: optional(text) },
  message: (e) =>
    e.wouldPermit === undefined
      ? "the words are no answer; accepting the default refuses the request"
      : `the words are no answer; accepting the default permits ${e.wouldPermit}`
}) {}

/** The ask was handed on too often. @since 0.1.0 */
export class HandoffLimit extends define<HandoffLimit>()("HandoffLimit", {
  code: "handoff_limit",
  status: 409,
  fields: { limit: Schema.Natural },
  message: (e) => `an ask is handed on at most ${e.limit} times`
}) {}

/** A person of this id is registered. @since 0.1.0 */
export class PersonExists extends define<PersonExists>()("PersonExists", {
  code: "person_exists",
  status: 409,
  fields: { person: text },
  message: (e) => `${e.person} is registered`
}) {}

/** The key was used with another request, or with one that was cut off, of which nobody knows what it did. @since 0.1.0 */
export class IdempotencyConflict extends define<IdempotencyConflict>()("IdempotencyConflict", {
  code: "idempotency_conflict",
  status: 409,
  fields: { interrupted: optional(Schema.Literal(true)) },
  message: (e) =>
    e.interrupted === true
      ? "the call under this idempotency key was cut off when the service ended, and what it did is unknown; look before it is made again under another key"
      : "the idempotency key was used with another body"
}) {}

/** The text of a send is over its limit, with what is put around it. @since 0.1.0 */
export class TextTooLarge extends define<TextTooLarge>()("TextTooLarge", {
  code: "text_too_large",
  status: 413,
  fields: { limit: Schema.Natural },
  message: (e) => `a text, its envelope included, has at most ${e.limit} bytes`
}) {}

/** Nobody is registered under this id. @since 0.1.0 */
export class UnknownPerson extends define<UnknownPerson>()("UnknownPerson", {
  code: "unknown_person",
  status: 422,
  fields: { person: text },
  message: (e) => `nobody is registered as ${e.person}`
}) {}

/** The agent did not offer this option. @since 0.1.0 */
export class UnknownOption extends define<UnknownOption>()("UnknownOption", {
  code: "unknown_option",
  status: 422,
  fields: { option: text },
  message: (e) => `the agent did not offer ${e.option}`
}) {}

/** A plain yes has nothing to pick. @since 0.1.0 */
export class NoSuchOption extends define<NoSuchOption>()("NoSuchOption", {
  code: "no_such_option",
  status: 422,
  fields: { wanted: text },
  message: (e) => `the agent offers no option to ${e.wanted}`
}) {}

/** The asking seat cannot hold its own ask. @since 0.1.0 */
export class OwnSeat extends define<OwnSeat>()("OwnSeat", {
  code: "own_seat",
  status: 422,
  fields: seat,
  message: (e) => `${e.seat} asks and cannot answer itself`
}) {}

/** Asks are not handed to other hosts. @since 0.1.0 */
export class OtherHostUnsupported extends define<OtherHostUnsupported>()("OtherHostUnsupported", {
  code: "other_host_unsupported",
  status: 422,
  fields: {},
  message: () => "seats of other hosts are not supported"
}) {}

/** The rig has no such snapshot. @since 0.1.0 */
export class SnapshotNotFound extends define<SnapshotNotFound>()("SnapshotNotFound", {
  code: "snapshot_not_found",
  status: 404,
  fields: { snapshot: optional(text) },
  message: (e) => (e.snapshot === undefined ? "the rig has no snapshot" : `there is no snapshot ${e.snapshot}`)
}) {}

/** The snapshot was not written, so nothing was stopped. @since 0.1.0 */
export class SnapshotFailed extends define<SnapshotFailed>()("SnapshotFailed", {
  code: "snapshot_failed",
  status: 500,
  fields: {},
  message: () => "the snapshot was not written; nothing was stopped"
}) {}

/** No row has this id. @since 0.1.0 */
export class RowNotFound extends define<RowNotFound>()("RowNotFound", {
  code: "row_not_found",
  status: 404,
  fields: { row: text },
  message: (e) => `there is no row ${e.row}`
}) {}

/** The file of the first input was not written; nothing started. @since 0.1.0 */
export class FirstInputFailed extends define<FirstInputFailed>()("FirstInputFailed", {
  code: "first_input_failed",
  status: 500,
  fields: seat,
  message: (e) => `the first input of ${e.seat} was not written; nothing started`
}) {}

/** The terminal session was not made; the reservation is gone. @since 0.1.0 */
export class LaunchFailed extends define<LaunchFailed>()("LaunchFailed", {
  code: "launch_failed",
  status: 502,
  fields: { ...seat, detail: optional(text) },
  message: (e) => `${e.seat} was not started${because(e.detail)}`
}) {}

/** The step of a send at which an earlier one stands in the way. @since 0.1.0 */
export const draftStep = "draft"

/** A step of the send failed before Enter. @since 0.1.0 */
export class SendFailed extends define<SendFailed>()("SendFailed", {
  code: "send_failed",
  status: 502,
  fields: { ...seat, step: text, mayStandAsDraft: Schema.Boolean },
  message: (e) =>
    e.step === draftStep
      ? `nothing was sent to ${e.seat}: the text of a send that was cut off may stand as a draft in its pane; clear it there and send with --force --reason`
      : `the send to ${e.seat} failed at ${e.step}${e.mayStandAsDraft ? "; the text may stand as a draft in the pane" : ""}`
}) {}

/** tmux does not answer, which says nothing about any seat. @since 0.1.0 */
export class TmuxUnavailable extends define<TmuxUnavailable>()("TmuxUnavailable", {
  code: "tmux_unavailable",
  status: 503,
  fields: {},
  message: () => "tmux does not answer; nothing was concluded"
}) {}

/** The class of every code. @since 0.1.0 */
export const seatErrors = {
  activity_hook_unauthorized: HookUnauthorized,
  activity_hook_unconfigured: HookUnconfigured,
  invalid_json: InvalidJson,
  invalid_field: InvalidField,
  missing_session_identity: MissingSessionIdentity,
  session_not_found: SessionNotFound,
  activity_grant_wrong_seat: GrantWrongSeat,
  activity_grant_stale: GrantStale,
  activity_grant_revoked: GrantRevoked,
  activity_grant_pending: GrantPending,
  stale_generation: StaleGeneration,
  denied_by_seat: DeniedBySeat,
  options_unsupported: OptionsUnsupported,
  duplicate_request: DuplicateRequest,
  ask_not_found: AskNotFound,
  body_too_large: BodyTooLarge,
  body_timeout: BodyTimeout,
  rate_limited: RateLimited,
  method_not_allowed: MethodNotAllowed,
  not_found: RouteNotFound,
  internal: InternalFault,
  too_long: TooLong,
  invalid_text: InvalidText,
  rig_invalid: RigInvalid,
  field_not_allowed: FieldNotAllowed,
  preset_not_found: PresetNotFound,
  preset_invalid: PresetInvalid,
  preset_conflict: PresetConflict,
  preset_unsupported: PresetUnsupported,
  operator_unauthorized: OperatorUnauthorized,
  not_allowed: NotAllowed,
  bad_origin: BadOrigin,
  bad_host: BadHost,
  rig_not_found: RigNotFound,
  rig_exists: RigExists,
  seat_not_found: SeatNotFound,
  seat_ambiguous: SeatAmbiguous,
  seat_running: SeatRunning,
  seat_stopped: SeatStopped,
  seat_not_ready: SeatNotReady,
  seat_needs_attention: SeatNeedsAttention,
  launch_in_progress: LaunchInProgress,
  target_needs_input: TargetNeedsInput,
  send_busy: SendBusy,
  not_in_attention: NotInAttention,
  ask_settled: AskSettled,
  row_closed: RowClosed,
  row_held_by_seat: RowHeldBySeat,
  words_not_an_answer: WordsNotAnAnswer,
  handoff_limit: HandoffLimit,
  person_exists: PersonExists,
  idempotency_conflict: IdempotencyConflict,
  text_too_large: TextTooLarge,
  unknown_person: UnknownPerson,
  unknown_option: UnknownOption,
  no_such_option: NoSuchOption,
  own_seat: OwnSeat,
  other_host_unsupported: OtherHostUnsupported,
  snapshot_not_found: SnapshotNotFound,
  snapshot_failed: SnapshotFailed,
  row_not_found: RowNotFound,
  first_input_failed: FirstInputFailed,
  launch_failed: LaunchFailed,
  send_failed: SendFailed,
  tmux_unavailable: TmuxUnavailable
} as const

/** A code of the table. @since 0.1.0 */
export type SeatErrorCode = keyof typeof seatErrors
/** The error of one code. @since 0.1.0 */
export type SeatErrorOf<Code extends SeatErrorCode> = InstanceType<(typeof seatErrors)[Code]>
/** Any error of the table. @since 0.1.0 */
export type SeatError = SeatErrorOf<SeatErrorCode>

/** All codes, in the order of the table. @since 0.1.0 */
export const seatErrorCodes = Object.keys(seatErrors) as ReadonlyArray<SeatErrorCode>

const rowOf = (code: SeatErrorCode): Row<string, Schema.Struct.Fields> =>
  seatErrors[code].row as unknown as Row<string, Schema.Struct.Fields>

/** The HTTP status of every code. @since 0.1.0 */
export const seatErrorStatus = Object.fromEntries(seatErrorCodes.map((code) => [code, rowOf(code).status])) as {
  readonly [Code in SeatErrorCode]: number
}

const isCode = (code: unknown): code is SeatErrorCode => typeof code === "string" && Object.hasOwn(seatErrors, code)

/** Whether a value is an error of the table. @since 0.1.0 */
export const isSeatError = (value: unknown): value is SeatError =>
  value instanceof Error && "code" in value && isCode(value.code) && value instanceof seatErrors[value.code]

/** An error as an answer's body carries it. @since 0.1.0 */
export interface SeatErrorBody {
  readonly ok: false
  readonly code: string
  readonly error?: string
  readonly [field: string]: unknown
}

/** The body that answers with this error. @since 0.1.0 */
export const seatErrorBody = (error: SeatError): SeatErrorBody => {
  const fields = error as unknown as Readonly<Record<string, unknown>>
  return {
    ok: false,
    code: error.code,
    error: error.message,
    ...Object.fromEntries(
      Object.keys(rowOf(error.code).fields)
        .filter((name) => fields[name] !== undefined)
        .map((name) => [name, fields[name]])
    )
  }
}

/** A refusal that is not in this table, or no refusal at all: another service, a proxy, a body that is no JSON. */
export class UnknownRefusal extends lazyClass(() =>
  Schema.TaggedError<UnknownRefusal>("SeatUnknownRefusalError")("UnknownRefusal", {
    status: Schema.Int,
    code: optional(text),
    message: text
  })
) {}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The code of a refusal's body, whatever service wrote it; `undefined` when it has none. @since 0.1.0 */
export const refusalCode = (body: unknown): string | undefined =>
  isObject(body) && typeof body["code"] === "string" ? body["code"] : undefined

const fits = Object.fromEntries(
  seatErrorCodes.map((code) => [code, memoised(() => Schema.is(Schema.Struct(rowOf(code).fields)))])
) as unknown as Readonly<Record<SeatErrorCode, () => (fields: unknown) => boolean>>

/** The typed error of a refusal, on the client's side. @since 0.1.0 */
export const readSeatError = (status: number, body: unknown): SeatError | UnknownRefusal => {
  const code = refusalCode(body)
  const fields = isObject(body) ? body : {}
  const said = typeof fields["error"] === "string" ? { message: fields["error"] } : {}
  if (isCode(code) && fits[code]()(fields)) {
    const known = Object.fromEntries(
      Object.keys(rowOf(code).fields).flatMap((name) => (Object.hasOwn(fields, name) ? [[name, fields[name]]] : []))
    )
    const Class = seatErrors[code] as unknown as new (props: Readonly<Record<string, unknown>>) => SeatError
    return new Class({ ...known, ...said })
  }
  return new UnknownRefusal({
    status,
    ...(code === undefined ? {} : { code }),
    message: said.message ?? `the service answered ${status}`
  })
}
