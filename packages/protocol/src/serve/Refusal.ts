/**
 * Why a line or an op was refused (serve-mode 4.2), and the `error` line that says so.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"
import { headBytes } from "../text/WellFormed.ts"
import { toWire, type WireMapper } from "../text/WireNames.ts"
import { serveLimits } from "./Limits.ts"

const text = Schema.String
const line = { line: Schema.Natural }

/** The detail of each reason. @since 0.1.0 */
export const refusalDetails = {
  bad_utf8: lazySchema(() => Schema.Struct(line)),
  bad_json: lazySchema(() => Schema.Struct(line)),
  not_an_object: lazySchema(() => Schema.Struct(line)),
  line_too_long: lazySchema(() => Schema.Struct({ ...line, limit: Schema.Natural })),
  too_deep: lazySchema(() => Schema.Struct({ ...line, limit: Schema.Natural })),
  bad_op: lazySchema(() => Schema.Struct({})),
  unknown_op: lazySchema(() => Schema.Struct({ op: text })),
  missing_field: lazySchema(() => Schema.Struct({ field: text })),
  bad_field: lazySchema(() => Schema.Struct({ field: text, expected: text })),
  busy: lazySchema(() => Schema.Struct({ activeRunId: Schema.NullOr(text) })),
  run_id_reused: lazySchema(() => Schema.Struct({ runId: text })),
  submission_conflict: lazySchema(() => Schema.Struct({ submissionId: text })),
  unknown_run: lazySchema(() => Schema.Struct({ runId: Schema.NullOr(text), activeRunId: Schema.NullOr(text) })),
  no_pending_ask: lazySchema(() => Schema.Struct({})),
  ambiguous_answer: lazySchema(() => Schema.Struct({ askId: text })),
  stale_answer: lazySchema(() => Schema.Struct({ askId: text, pendingAskId: text })),
  not_an_option: lazySchema(() => Schema.Struct({ question: text, options: Schema.Array(text) })),
  version: lazySchema(() =>
    Schema.Struct({ requested: Schema.Array(Schema.Finite), supported: Schema.Array(Schema.Finite) })
  )
} as const

/** @since 0.1.0 */
export type RefusalReason = keyof typeof refusalDetails

/** All reasons, in the order of the table. @since 0.1.0 */
export const refusalReasons = Object.keys(refusalDetails) as ReadonlyArray<RefusalReason>

/** A refusal: its reason and what the reason is about. @since 0.1.0 */
export type Refusal = {
  readonly [R in RefusalReason]: { readonly reason: R; readonly detail: (typeof refusalDetails)[R]["Type"] }
}[RefusalReason]

/** Makes a refusal. @since 0.1.0 */
export const refuse = <R extends RefusalReason>(reason: R, detail: (typeof refusalDetails)[R]["Type"]): Refusal =>
  ({ reason, detail }) as Refusal

const named = (id: string | null): string => id ?? "(missing)"

const sentence = (refusal: Refusal): string => {
  switch (refusal.reason) {
    case "bad_utf8":
      return `line ${refusal.detail.line} is not valid UTF-8`
    case "bad_json":
      return `line ${refusal.detail.line} is not JSON`
    case "not_an_object":
      return `line ${refusal.detail.line} is not a JSON object`
    case "line_too_long":
      return `line ${refusal.detail.line} is longer than ${refusal.detail.limit} bytes`
    case "too_deep":
      return `line ${refusal.detail.line} is nested deeper than ${refusal.detail.limit} levels`
    case "bad_op":
      return "op is missing or is not a string"
    case "unknown_op":
      return `there is no op ${JSON.stringify(refusal.detail.op)}`
    case "missing_field":
      return `${refusal.detail.field} is missing`
    case "bad_field":
      return `${refusal.detail.field}: expected ${refusal.detail.expected}`
    case "busy":
      return refusal.detail.activeRunId === null
        ? "another turn is active in this session"
        : `run ${refusal.detail.activeRunId} is active`
    case "run_id_reused":
      return `run id ${refusal.detail.runId} was used before in this process`
    case "submission_conflict":
      return `submission ${refusal.detail.submissionId} was used before with another prompt`
    case "unknown_run":
      return `there is no active run ${named(refusal.detail.runId)}`
    case "no_pending_ask":
      return "no ask is open"
    case "ambiguous_answer":
      return `ambiguous answer: ask ${refusal.detail.askId} is over without an answer of yours, name the ask`
    case "stale_answer":
      return `stale answer: ask ${refusal.detail.askId} is over, ${refusal.detail.pendingAskId} is open`
    case "not_an_option":
      return `the answer to ${JSON.stringify(refusal.detail.question)} has to be one of its options`
    case "version":
      return `versions ${refusal.detail.requested.join(", ")} are asked for, ${refusal.detail.supported.join(", ")} is spoken`
  }
}

/** The refusal in one sentence. @since 0.1.0 */
export const refusalMessage = (refusal: Refusal): string => headBytes(sentence(refusal), serveLimits.messageBytes)

const detailMappers = Object.fromEntries(
  refusalReasons.map((reason) => [reason, toWire(refusalDetails[reason])])
) as unknown as { readonly [R in RefusalReason]: WireMapper }

/** The detail with the names of the wire. @since 0.1.0 */
export const refusalDetail = ({ detail, reason }: Refusal): Schema.JsonObject =>
  detailMappers[reason](detail) as Schema.JsonObject

/** The error of an `error` line. Reason and detail are ours; other programs may leave them out. @since 0.1.0 */
export const LineError = lazySchema(() =>
  Schema.Struct({
    code: text,
    message: text,
    reason: Schema.optionalKey(text),
    detail: Schema.optionalKey(Schema.JsonObject)
  }).annotate({ identifier: "LineError" })
)
