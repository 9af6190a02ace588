/**
 * The ops of serve mode as a driver writes them (serve-mode 3). What a program accepts beyond these forms, and in which
 * order it looks at the fields, is `OpReading`.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"
import { chars, int, list, optional } from "../run/Bounds.ts"
import { toWire } from "../text/WireNames.ts"
import { wireJson } from "../text/WireJson.ts"
import { serveLimits } from "./Limits.ts"

const id = chars(1, serveLimits.idCharacters)
const integer = int(Number.MIN_SAFE_INTEGER)

/** Echoed as text on everything the op causes. @since 0.1.0 */
export const OpId = lazySchema(() =>
  Schema.Union([chars(0, serveLimits.idCharacters), integer, Schema.Boolean]).annotate({ identifier: "OpId" })
)

const runId = lazySchema(() => Schema.Union([id, integer]).annotate({ identifier: "ServeRunId" }))
const scalar = lazySchema(() =>
  Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null]).annotate({ identifier: "AnswerScalar" })
)

const op = <const Name extends string, const Fields extends Schema.Struct.Fields>(name: Name, fields: Fields) =>
  Schema.Struct({ op: Schema.Literal(name), opId: optional(OpId), ...fields })

/** Starts a run. `submissionId` is the message id of its turn and makes it idempotent (SRV-299). @since 0.1.0 */
export const SubmitOp = lazySchema(() =>
  op("submit", { runId, prompt: Schema.String, submissionId: optional(chars(1, 200)) }).annotate({
    identifier: "SubmitOp"
  })
)
/** Settles the open ask; see serve-mode 5.3 for what the values mean. @since 0.1.0 */
export const AnswerOp = lazySchema(() =>
  op("answer", {
    runId,
    answers: list(Schema.Union([scalar, list(scalar, serveLimits.answers)]), serveLimits.answers, 1),
    askId: optional(Schema.Union([id, integer]))
  }).annotate({ identifier: "AnswerOp" })
)
/** Cancels the active run. @since 0.1.0 */
export const CancelOp = lazySchema(() => op("cancel", { runId }).annotate({ identifier: "CancelOp" }))
/** Asks whether one of these versions is spoken. @since 0.1.0 */
export const HelloOp = lazySchema(() =>
  op("hello", {
    protocolVersions: optional(Schema.Array(Schema.Json)),
    protocolVersion: optional(Schema.Json)
  }).annotate({ identifier: "HelloOp" })
)
/** Asks for a `pong`. @since 0.1.0 */
export const PingOp = lazySchema(() => op("ping", {}).annotate({ identifier: "PingOp" }))
/** Cancels, drains and exits. @since 0.1.0 */
export const ShutdownOp = lazySchema(() => op("shutdown", {}).annotate({ identifier: "ShutdownOp" }))

/** An op as a driver writes it; unknown fields are ignored. @since 0.1.0 */
export const ServeOp = lazySchema(() =>
  Schema.Union([SubmitOp, AnswerOp, CancelOp, HelloOp, PingOp, ShutdownOp]).annotate({ identifier: "ServeOp" })
)
/** @since 0.1.0 */
export type ServeOp = typeof ServeOp.Type

/** The names of all ops. @since 0.1.0 */
export const opNames = ["submit", "answer", "cancel", "hello", "ping", "shutdown"] as const

const map = toWire(ServeOp)

/** An op as one line, without its end. @since 0.1.0 */
export const encodeOp = (op: ServeOp): string => wireJson(map(op))
