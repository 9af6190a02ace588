/**
 * The errors of the run protocol (run-protocol section 5), one class per kind, from one table.
 *
 * Every error has `_tag`, `kind`, `message` and the data fields of its row, in camelCase. A default message is made from
 * the fields; `message` may be given instead. Code and HTTP status are annotations of the class and columns of
 * `runErrorTable`. No error carries a stack trace, an argument's value or a secret: whoever makes one sees to it.
 *
 * ```ts
 * new NotFound({ what: "session", id: "ses_A" })
 * new InvalidState({ reason: "run_active", submissionId: "m-1", message: "a run is active" })
 * ```
 */
import { Schema } from "effect"
import { constant, makeErrorClass, messageField } from "../internal/ErrorClass.ts"
import { lazyClass, lazySchema, memoised } from "../internal/Lazy.ts"
import { int, optional } from "./Bounds.ts"
import { wireMapper, type WireMapper } from "./internal/WireMapper.ts"

/** Whether repeating the same request may succeed. */
export type Retry = "no" | "yes" | "maybe"

interface Row<Kind extends string, Fields extends Schema.Struct.Fields> {
  readonly kind: Kind
  readonly code: number
  readonly status: number
  readonly retry?: Retry
  readonly fields: Fields
  readonly message: (error: Schema.Struct.Type<Fields>) => string
}

const text = Schema.String

/** Makes the class of one row. */
const define =
  <Self>() =>
  <const Tag extends string, const Kind extends string, const Fields extends Schema.Struct.Fields>(
    tag: Tag,
    row: Row<Kind, Fields>
  ) =>
    lazyClass(
      () => {
        const Made = makeErrorClass<Self>()(tag, {
          identifier: `Run${tag}Error`,
          fields: { kind: constant(row.kind), message: messageField, ...row.fields },
          annotations: { httpApiStatus: row.status, jsonRpcCode: row.code },
          message: (props) => row.message(props as Schema.Struct.Type<Fields>)
        })
        return Made as typeof Made & { readonly row: Row<Kind, Fields> }
      },
      { row }
    )

const named = (id: string | undefined): string => (id === undefined ? "" : ` ${id}`)
const because = (detail: string | undefined): string => (detail === undefined ? "" : `: ${detail}`)

/** On errors that refused a reserved submission for good: the receipt keeps the error (RUN-386). */
const receipt = { receipt: optional(Schema.Literal("not_accepted")) }

/** A frame was not UTF-8 or not JSON (RUN-005). */
export class ParseFailed extends define<ParseFailed>()("ParseFailed", {
  kind: "parse_error",
  code: -32700,
  status: 400,
  fields: { atByte: optional(int(0)) },
  message: () => "not a JSON frame"
}) {}

/** A frame was no request of the protocol (RUN-007 to RUN-013). */
export class InvalidRequest extends define<InvalidRequest>()("InvalidRequest", {
  kind: "invalid_request",
  code: -32600,
  status: 400,
  fields: { reason: Schema.Literals(["batch", "jsonrpc", "id", "method", "too_deep"]) },
  message: (e) =>
    ({
      batch: "a frame is one object; batches are not supported",
      jsonrpc: 'a frame is an object with jsonrpc "2.0"',
      id: "an id is a string of at most 256 bytes or an integer within 2^53",
      method: "a method is a string of 1 to 128 characters",
      too_deep: "a frame is nested at most 128 deep"
    })[e.reason]
}) {}

/** There is no such method (RUN-063). */
export class MethodNotFound extends define<MethodNotFound>()("MethodNotFound", {
  kind: "method_not_found",
  code: -32601,
  status: 404,
  fields: { method: text },
  message: (e) => `there is no method ${e.method}`
}) {}

const issue = { path: text, expected: text }

/** Params do not fit: the wire path of the first bad field, and what was expected; never a value (RUN-061). */
export class InvalidParams extends define<InvalidParams>()("InvalidParams", {
  kind: "invalid_params",
  code: -32602,
  status: 422,
  fields: { ...issue, issues: Schema.Array(Schema.Struct(issue)) },
  message: (e) => `${e.path === "" ? "params" : e.path}: expected ${e.expected}`
}) {}

/** Something went wrong inside; `ref` is in the stderr log too. */
export class InternalFailure extends define<InternalFailure>()("InternalFailure", {
  kind: "internal",
  code: -32603,
  status: 500,
  fields: { ref: text },
  message: (e) => `something went wrong inside the host; the log has it as ${e.ref}`
}) {}

/** A request came before `initialize` (RUN-121). */
export class NotInitialized extends define<NotInitialized>()("NotInitialized", {
  kind: "not_initialized",
  code: -32000,
  status: 409,
  fields: {},
  message: () => "initialize comes first"
}) {}

/** A second `initialize` (RUN-122). */
export class AlreadyInitialized extends define<AlreadyInitialized>()("AlreadyInitialized", {
  kind: "already_initialized",
  code: -32001,
  status: 409,
  fields: {},
  message: () => "the host is initialized already"
}) {}

/** What a `not_found` may be about. */
export const notFoundSubjects = [
  "harness",
  "agent",
  "session",
  "run",
  "interaction",
  "artifact",
  "team",
  "task",
  "provider",
  "tool",
  "mcp_server",
  "memory",
  "schedule"
] as const

/** The named thing does not exist, or not for this caller. */
export class NotFound extends define<NotFound>()("NotFound", {
  kind: "not_found",
  code: -32002,
  status: 404,
  fields: { what: Schema.Literals(notFoundSubjects), id: optional(text), hint: optional(text), ...receipt },
  message: (e) => `there is no ${e.what.replace("_", " ")}${named(e.id)}${because(e.hint)}`
}) {}

/** Every reason of a `conflict`. */
export const conflictReasons = [
  "submission_text_differs",
  "definition_changed",
  "id_in_use",
  "worker_id_in_use",
  "creation_differs",
  "provider_immutable",
  "mcp_immutable",
  "tool_owner",
  "response_differs",
  "request_differs",
  "task_revision"
] as const
/** A reason of a `conflict`. */
export type ConflictReason = (typeof conflictReasons)[number]

/** The id exists with other content, and nothing was changed. `response` is the stored answer (RUN-441). */
export class Conflict extends define<Conflict>()("Conflict", {
  kind: "conflict",
  code: -32003,
  status: 409,
  fields: {
    reason: Schema.Literals(conflictReasons),
    id: text,
    differingFields: optional(Schema.Array(text)),
    response: optional(text)
  },
  message: (e) =>
    ({
      submission_text_differs: `submission ${e.id} was made with other text`,
      definition_changed: `agent ${e.id} is registered with another definition`,
      id_in_use: `the id ${e.id} is in use`,
      worker_id_in_use: `${e.id} is the id of a worker`,
      creation_differs: `${e.id} was created with other params`,
      provider_immutable: `provider ${e.id} exists with another api, endpoint or scenario`,
      mcp_immutable: `MCP server ${e.id} is registered with other content`,
      tool_owner: `tool ${e.id} belongs to another owner`,
      response_differs: `interaction ${e.id} was answered already, differently`,
      request_differs: `${e.id} is not the id of this request`,
      task_revision: `task ${e.id} has changed since that revision`
    })[e.reason]
}) {}

/** The host cannot take this now; the same request may be made again after `retryAfterMs` milliseconds. */
export class Busy extends define<Busy>()("Busy", {
  kind: "busy",
  code: -32004,
  status: 503,
  retry: "yes",
  fields: { retryAfterMs: int(0) },
  message: (e) => `the host is busy; try again in ${e.retryAfterMs} ms`
}) {}

/** Every reason of an `invalid_state`. */
export const invalidStateReasons = [
  "run_active",
  "not_admitted",
  "turn_ended",
  "session_closed",
  "worker_session",
  "worker_only_agent",
  "no_model",
  "team_ended",
  "transition"
] as const
/** A reason of an `invalid_state`. */
export type InvalidStateReason = (typeof invalidStateReasons)[number]

/** The request does not fit the state of what it names; the ids that help are with it. */
export class InvalidState extends define<InvalidState>()("InvalidState", {
  kind: "invalid_state",
  code: -32005,
  status: 409,
  fields: {
    reason: Schema.Literals(invalidStateReasons),
    sessionId: optional(text),
    leadSessionId: optional(text),
    submissionId: optional(text),
    turnId: optional(text),
    interactionId: optional(text),
    agent: optional(text),
    teamId: optional(text),
    taskId: optional(text),
    ...receipt
  },
  message: (e) =>
    ({
      run_active: "a run is active",
      not_admitted: "the run was reserved and never admitted; start it again with the same id and text",
      turn_ended: "the turn has ended",
      session_closed: "the session is closed",
      worker_session: "this is a worker's session; use the lead's",
      worker_only_agent: "this agent works for a lead only",
      no_model: "there is no model; give the agent a default model or the session an override",
      team_ended: "the team has ended",
      transition: "the task cannot go there from its state"
    })[e.reason]
}) {}

/** A limit of the host is reached: its wire name, its value, and what was observed where that helps. */
export class LimitExceeded extends define<LimitExceeded>()("LimitExceeded", {
  kind: "limit_exceeded",
  code: -32006,
  status: 429,
  fields: { limit: text, max: int(0), observed: optional(int(0)) },
  message: (e) => `the limit ${e.limit} is ${e.max}`
}) {}

/** The host does not have this: `feature` is a capability's wire name or a narrower feature. */
export class Unsupported extends define<Unsupported>()("Unsupported", {
  kind: "unsupported",
  code: -32007,
  status: 501,
  fields: { feature: text, hint: optional(text) },
  message: (e) => `${e.feature} is not supported${because(e.hint)}`
}) {}

/** The provider has no key, or its key was refused. */
export class CredentialsMissing extends define<CredentialsMissing>()("CredentialsMissing", {
  kind: "credentials_missing",
  code: -32008,
  status: 503,
  fields: { provider: text, ...receipt },
  message: (e) => `provider ${e.provider} has no credentials; set them with provider/set or connection/set`
}) {}

/** A provider, an MCP server or a scenario cannot be used. `stderrTail` is at most 2 KiB and redacted. */
export class ProviderUnavailable extends define<ProviderUnavailable>()("ProviderUnavailable", {
  kind: "provider_unavailable",
  code: -32009,
  status: 503,
  retry: "maybe",
  fields: {
    what: Schema.Literals(["model_provider", "mcp_server", "scenario"]),
    name: text,
    detail: optional(text),
    exitCode: optional(Schema.Int),
    stderrTail: optional(text),
    ...receipt
  },
  message: (e) => `${e.what.replace("_", " ")} ${e.name} is not available${because(e.detail)}`
}) {}

/** A cursor cannot be used; `head` tells how far the journal goes (RUN-141, RUN-142, RUN-144). */
export class InvalidCursor extends define<InvalidCursor>()("InvalidCursor", {
  kind: "invalid_cursor",
  code: -32010,
  status: 409,
  fields: {
    reason: Schema.Literals(["malformed", "ahead", "foreign_session", "journal_replaced"]),
    sessionId: optional(text),
    head: int(0),
    heads: optional(Schema.Record(text, int(0))),
    journalId: text
  },
  message: (e) =>
    ({
      malformed: "a cursor is an integer from 0 to the head",
      ahead: "cursor is ahead of the journal",
      foreign_session: "the session is not a member of this run",
      journal_replaced: "the journal was replaced; read it again from the start"
    })[e.reason]
}) {}

/** A frame is over the limit and was discarded (RUN-004). */
export class FrameTooLarge extends define<FrameTooLarge>()("FrameTooLarge", {
  kind: "frame_too_large",
  code: -32011,
  status: 413,
  fields: { limitBytes: int(0), observedBytes: int(0) },
  message: (e) => `frame is larger than ${e.limitBytes} bytes`
}) {}

/** The wall around tools could not be proved; nothing was run outside it. */
export class SandboxUnavailable extends define<SandboxUnavailable>()("SandboxUnavailable", {
  kind: "sandbox_unavailable",
  code: -32012,
  status: 503,
  fields: {
    sandbox: text,
    check: Schema.Literals(["missing_parts", "start", "write_outside", "write_inside", "read_state", "network"]),
    detail: text,
    hint: text,
    ...receipt
  },
  message: (e) => `the sandbox ${e.sandbox} is not available: ${e.detail}`
}) {}

/** Something could not be made durable. With outcome `unknown` it may have been, else nothing has changed (RUN-062). */
export class StorageFailed extends define<StorageFailed>()("StorageFailed", {
  kind: "storage_failure",
  code: -32013,
  status: 503,
  retry: "maybe",
  fields: {
    store: Schema.Literals(["sessions", "catalog", "secure"]),
    operation: text,
    outcome: Schema.Literals(["not_written", "unknown"])
  },
  message: (e) =>
    `${e.operation} failed in the store ${e.store}; ${e.outcome === "not_written" ? "nothing was written" : "the outcome is unknown"}`
}) {}

/** The host takes no new work. */
export class ShuttingDown extends define<ShuttingDown>()("ShuttingDown", {
  kind: "shutting_down",
  code: -32014,
  status: 503,
  fields: {},
  message: () => "the host is shutting down"
}) {}

/** The host could not start (RUN-080, RUN-081). */
export class StartupFailed extends define<StartupFailed>()("StartupFailed", {
  kind: "startup_failed",
  code: -32015,
  status: 500,
  fields: {
    reason: Schema.Literals(["bad_config", "state_dir", "state_dir_locked", "storage", "agent_conflict", "coworkers"]),
    path: optional(text),
    detail: text
  },
  message: (e) => `the host could not start: ${e.detail}`
}) {}

/** The table of section 5: the class of every kind, in table order. */
export const runErrors = {
  parse_error: ParseFailed,
  invalid_request: InvalidRequest,
  method_not_found: MethodNotFound,
  invalid_params: InvalidParams,
  internal: InternalFailure,
  not_initialized: NotInitialized,
  already_initialized: AlreadyInitialized,
  not_found: NotFound,
  conflict: Conflict,
  busy: Busy,
  invalid_state: InvalidState,
  limit_exceeded: LimitExceeded,
  unsupported: Unsupported,
  credentials_missing: CredentialsMissing,
  provider_unavailable: ProviderUnavailable,
  invalid_cursor: InvalidCursor,
  frame_too_large: FrameTooLarge,
  sandbox_unavailable: SandboxUnavailable,
  storage_failure: StorageFailed,
  shutting_down: ShuttingDown,
  startup_failed: StartupFailed
} as const

/** The kind of an error of the table: it decides the type. */
export type RunErrorKind = keyof typeof runErrors

/** The error of one kind. */
export type RunErrorOf<Kind extends RunErrorKind> = InstanceType<(typeof runErrors)[Kind]>

/** Any error of the run protocol. */
export type RunError = RunErrorOf<RunErrorKind>

/** All kinds, in the order of the table. */
export const runErrorKinds = Object.keys(runErrors) as ReadonlyArray<RunErrorKind>

const rowOf = (kind: RunErrorKind): Row<string, Schema.Struct.Fields> =>
  runErrors[kind].row as unknown as Row<string, Schema.Struct.Fields>

/** Code, HTTP status and retry of every kind. */
export const runErrorTable = Object.fromEntries(
  runErrorKinds.map((kind) => {
    const { code, status, retry } = rowOf(kind)
    return [kind, { code, status, retry: retry ?? "no" }]
  })
) as { readonly [Kind in RunErrorKind]: { readonly code: number; readonly status: number; readonly retry: Retry } }

/** The errors that every method may answer with and no row of the method table repeats (section 2). */
export const commonErrors = [
  "not_initialized",
  "invalid_params",
  "limit_exceeded",
  "busy",
  "storage_failure",
  "shutting_down",
  "internal",
  "unsupported"
] as const satisfies ReadonlyArray<RunErrorKind>

/** An error object of JSON-RPC as this protocol writes it. */
export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data: { readonly kind: string; readonly [field: string]: unknown }
}

/** The schema of the data of each kind, `kind` included. */
export const runErrorData = Object.fromEntries(
  runErrorKinds.map((kind) => [
    kind,
    lazySchema(() =>
      Schema.Struct({ kind: Schema.Literal(kind), ...rowOf(kind).fields }).annotate({
        identifier: `${runErrors[kind].identifier.replace(/Error$/, "")}Data`
      })
    )
  ])
) as unknown as { readonly [Kind in RunErrorKind]: Schema.Codec<unknown> }

const mappers = Object.fromEntries(runErrorKinds.map((kind) => [kind, wireMapper(runErrorData[kind])])) as Record<
  RunErrorKind,
  WireMapper
>

const isKind = (kind: unknown): kind is RunErrorKind => typeof kind === "string" && Object.hasOwn(runErrors, kind)

/** Whether a value is an error of the table. */
export const isRunError = (value: unknown): value is RunError =>
  value instanceof Error && "kind" in value && isKind(value.kind) && value instanceof runErrors[value.kind]

/** The error object that answers a request with this error (RUN-060). */
export const toErrorObject = (error: RunError): ErrorObject => ({
  code: runErrorTable[error.kind].code,
  message: error.message,
  data: mappers[error.kind].toWire(error) as ErrorObject["data"]
})

/** An error of a kind this package does not know, or whose data do not fit its kind: as it came from the other side. */
export class UnknownFailure extends lazyClass(() =>
  Schema.TaggedError<UnknownFailure>("RunUnknownFailureError")("UnknownFailure", {
    kind: text,
    code: Schema.Int,
    message: text,
    data: optional(Schema.Json)
  })
) {}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const fit = Object.fromEntries(
  runErrorKinds.map((kind) => [kind, memoised(() => Schema.is(runErrorData[kind]))])
) as unknown as Record<RunErrorKind, () => (data: unknown) => boolean>

const construct = (kind: RunErrorKind, data: Record<string, unknown>, message: string): RunError => {
  const Class = runErrors[kind] as unknown as new (props: Record<string, unknown>) => RunError
  return new Class({ ...data, message })
}

/** The typed error of an error object, on the client's side. */
export const fromErrorObject = (object: {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}): RunError | UnknownFailure => {
  const data = isObject(object.data) ? object.data : {}
  const kind = data["kind"]
  if (isKind(kind)) {
    const fields = mappers[kind].fromWire(data)
    if (fit[kind]()(fields) && isObject(fields)) return construct(kind, fields, object.message)
  }
  return new UnknownFailure({
    kind: typeof kind === "string" ? kind : "unknown",
    code: object.code,
    message: object.message,
    ...(object.data === undefined ? {} : { data: object.data as Schema.Json })
  })
}
