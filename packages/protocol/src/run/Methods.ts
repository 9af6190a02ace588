/**
 * The method table of the run protocol (run-protocol section 2), as data: the one source of the host's dispatcher, the
 * client's calls, the codec and `openrpc.json`. A method that is not here does not exist anywhere.
 */
import { Schema } from "effect"
import type { Effect } from "effect"
import { AgentDefinition, Profile } from "./Agent.ts"
import { ApplicationRegisterParams, ApplicationRegisterResult } from "./Application.ts"
import { chars, IdParam, int, optional, ProviderName, QualifiedName } from "./Bounds.ts"
import type { Capability } from "./Capabilities.ts"
import { HostInfo, InitializeParams, InitializeResult } from "./Initialize.ts"
import { McpRegisterParams, McpServer } from "./Mcp.ts"
import { MemoryEntry, MemoryForgetParams, MemoryListParams } from "./Memory.ts"
import { Connection, ConnectionSetParams, ProviderRow, ProviderSetParams, ProviderSetResult } from "./Provider.ts"
import {
  ArtifactReadParams,
  ArtifactReadResult,
  AttachResult,
  EventReadParams,
  EventReadResult,
  RespondParams,
  RespondResult,
  RunStartResult,
  RunState,
  RunWaitParams,
  SessionRow,
  SessionState,
  StartParams,
  TurnStartResult
} from "./Run.ts"
import type { commonErrors, RunError, RunErrorKind, RunErrorOf } from "./RunErrors.ts"
import { ScheduleEntry } from "./Schedule.ts"
import {
  AgentSessionParams,
  CancelResult,
  CloseResult,
  SessionRef,
  SessionSendParams,
  SessionSendResult
} from "./Session.ts"
import { Task, Team, TeamRow, TeamTaskParams } from "./Team.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Params of a method: a struct, possibly with checks over several fields. */
type AnyParams = Schema.Constraint & { readonly Type: object; readonly fields: Schema.Struct.Fields }

/**
 * How the host schedules a request (section 4). `ordinary` requests take effect one at a time in arrival order; `control`
 * ones as soon as the session's earlier mutating requests have; `wait` ones may be parked and occupy no lane. Two methods
 * depend on their params: use `requestKind`.
 */
export type RequestKind = "ordinary" | "control" | "wait"

/** A row of the method table. */
export interface MethodRow {
  readonly params: AnyParams
  readonly result: Schema.Constraint
  /** The kinds of error this method may answer with, beside those every method has. */
  readonly errors: ReadonlyArray<RunErrorKind>
  /** The capability that must be true, else `unsupported`. */
  readonly capability: Capability | null
  readonly kind: RequestKind
  /** Whether it can change anything. Reads may be repeated freely. */
  readonly mutating: boolean
  /** The params (in wire names) by which a repeat of a mutating request is recognised. */
  readonly idempotencyKey?: ReadonlyArray<string>
  readonly summary: string
}

const method = <P extends AnyParams, R extends Schema.Constraint, const E extends ReadonlyArray<RunErrorKind>>(
  row: Omit<MethodRow, "params" | "result" | "errors"> & {
    readonly params: () => P
    readonly result: () => R
    readonly errors: E
  }
) => ({ ...row, params: lazySchema(row.params), result: lazySchema(row.result) })

const read = { kind: "ordinary", mutating: false } as const
const write = { kind: "ordinary", mutating: true } as const
const control = { kind: "control", mutating: true } as const

const none = lazySchema(() => Schema.Struct({}))
const bySession = lazySchema(() => Schema.Struct({ sessionId: IdParam }))
const byTeam = lazySchema(() => Schema.Struct({ teamId: IdParam }))
const page = { limit: optional(int(1, 200)), after: optional(chars(0, 1_024)) }
const next = { next: optional(Schema.String) }
const warnings = { warnings: optional(Schema.Array(Schema.String)) }

const startErrors = [
  "not_found",
  "conflict",
  "invalid_state",
  "credentials_missing",
  "provider_unavailable",
  "sandbox_unavailable"
] as const
const respondErrors = ["not_found", "invalid_state", "conflict"] as const

/** Every method of the run protocol. */
export const methods = {
  initialize: method({
    params: () => InitializeParams,
    result: () => InitializeResult,
    errors: ["already_initialized", "startup_failed"],
    capability: null,
    kind: "ordinary",
    mutating: true,
    summary: "Open the connection: versions, capabilities, limits. Comes first, once."
  }),
  "host/info": method({
    params: () => none,
    result: () => HostInfo,
    errors: [],
    capability: null,
    ...read,
    summary: "What the host is and how much it has counted."
  }),
  "agent/register": method({
    params: () => Schema.Struct({ agent: AgentDefinition }),
    result: () => Schema.Struct({ agent: Profile, duplicate: Schema.Boolean, ...warnings }),
    errors: ["conflict", "not_found"],
    capability: "dynamicAgents",
    ...write,
    idempotencyKey: ["agent.id"],
    summary: "Register an agent with its workers, durably and for good."
  }),
  "agent/list": method({
    params: () => none,
    result: () => Schema.Struct({ agents: Schema.Array(Profile) }),
    errors: [],
    capability: "agentRuns",
    ...read,
    summary: "The profiles of all agents and workers."
  }),
  "agent/session": method({
    params: () => AgentSessionParams,
    result: () => Schema.Struct({ session: SessionRef, duplicate: Schema.Boolean, ...warnings }),
    errors: ["not_found", "invalid_state", "conflict", "credentials_missing", "sandbox_unavailable"],
    capability: "agentRuns",
    ...write,
    idempotencyKey: ["creation_id"],
    summary: "Create a session of an agent in a directory, and its team."
  }),
  "agent/close": method({
    params: () => bySession,
    result: () => CloseResult,
    errors: ["not_found", "invalid_state"],
    capability: "agentRuns",
    ...write,
    idempotencyKey: ["session_id"],
    summary: "Close a session and its workers for good."
  }),
  "run/start": method({
    params: () => StartParams,
    result: () => RunStartResult,
    errors: startErrors,
    capability: "agentRuns",
    ...write,
    idempotencyKey: ["session_id", "submission_id"],
    summary: "Start a run; repeating it with the same id and text never starts a second one."
  }),
  "run/wait": method({
    params: () => RunWaitParams,
    result: () => RunState,
    errors: ["not_found", "invalid_state", "invalid_cursor"],
    capability: "agentRuns",
    kind: "wait",
    mutating: false,
    summary: "Observe a run, and read its events when cursors are sent."
  }),
  "run/respond": method({
    params: () => RespondParams,
    result: () => RespondResult,
    errors: respondErrors,
    capability: "agentRuns",
    ...control,
    idempotencyKey: ["interaction_id"],
    summary: "Decide on an approval or answer a question; the first answer wins."
  }),
  "run/cancel": method({
    params: () => Schema.Struct({ sessionId: IdParam, team: optional(Schema.Boolean) }),
    result: () => CancelResult,
    errors: ["not_found", "invalid_state"],
    capability: "agentRuns",
    ...control,
    idempotencyKey: ["session_id"],
    summary: "Cancel the active turns of a session and its workers, and with team the team itself."
  }),
  "session/send": method({
    params: () => SessionSendParams,
    result: () => SessionSendResult,
    errors: startErrors,
    capability: "sessionSend",
    ...write,
    idempotencyKey: ["submission_id", "input.interaction_id"],
    summary: "Send a message, a decision or an answer to a session."
  }),
  "session/state": method({
    params: () => bySession,
    result: () => SessionState,
    errors: ["not_found"],
    capability: "sessionSend",
    ...read,
    summary: "The aggregate state of a session and its team."
  }),
  "session/attach": method({
    params: () => Schema.Struct({ sessionId: IdParam, journalId: optional(IdParam) }),
    result: () => AttachResult,
    errors: ["not_found", "invalid_cursor"],
    capability: "agentRuns",
    ...read,
    summary: "What a client needs to go on with a session after a restart. Starts nothing."
  }),
  "session/list": method({
    params: () => Schema.Struct({ agent: optional(IdParam), includeClosed: optional(Schema.Boolean), ...page }),
    result: () => Schema.Struct({ sessions: Schema.Array(SessionRow), ...next }),
    errors: [],
    capability: "sessionList",
    ...read,
    summary: "Sessions, newest activity first."
  }),
  "session/revoke": method({
    params: () => Schema.Struct({ sessionId: IdParam, qualifiedName: QualifiedName }),
    result: () => Schema.Struct({ revoked: Schema.Boolean }),
    errors: ["not_found"],
    capability: "sessionSend",
    ...write,
    idempotencyKey: ["session_id", "qualified_name"],
    summary: "Drop a session grant; later calls ask again."
  }),
  "turn/start": method({
    params: () => StartParams,
    result: () => TurnStartResult,
    errors: startErrors,
    capability: "agentRuns",
    ...write,
    idempotencyKey: ["session_id", "submission_id"],
    summary: "The same admission as run/start, with the lead's cursor alone."
  }),
  "event/read": method({
    params: () => EventReadParams,
    result: () => EventReadResult,
    errors: ["not_found", "invalid_cursor"],
    capability: "agentRuns",
    kind: "wait",
    mutating: false,
    summary: "Events of one session after a cursor."
  }),
  "interaction/respond": method({
    params: () => RespondParams,
    result: () => RespondResult,
    errors: respondErrors,
    capability: "agentRuns",
    ...control,
    idempotencyKey: ["interaction_id"],
    summary: "The same as run/respond."
  }),
  "artifact/read": method({
    params: () => ArtifactReadParams,
    result: () => ArtifactReadResult,
    errors: ["not_found"],
    capability: "artifacts",
    ...read,
    summary: "A piece of an artifact, in base64."
  }),
  "team/get": method({
    params: () => Schema.Struct({ teamId: IdParam, taskId: optional(IdParam) }),
    result: () => Schema.Struct({ team: Team, task: optional(Task) }),
    errors: ["not_found"],
    capability: "teams",
    ...read,
    summary: "A team, and one of its tasks whole."
  }),
  "team/list": method({
    params: () => Schema.Struct({ includeEnded: optional(Schema.Boolean), ...page }),
    result: () => Schema.Struct({ teams: Schema.Array(TeamRow), ...next }),
    errors: [],
    capability: "teams",
    ...read,
    summary: "The teams of the host."
  }),
  "team/cancel": method({
    params: () => byTeam,
    result: () => CancelResult,
    errors: ["not_found"],
    capability: "teams",
    ...control,
    idempotencyKey: ["team_id"],
    summary: "Cancel a team's run and end the team for good."
  }),
  "team/task": method({
    params: () => TeamTaskParams,
    result: () => Schema.Struct({ task: Task, duplicate: Schema.Boolean }),
    errors: ["not_found", "invalid_state", "conflict"],
    capability: "teams",
    ...write,
    idempotencyKey: ["request_id"],
    summary: "Add a task to a team's board, or move one."
  }),
  "provider/set": method({
    params: () => ProviderSetParams,
    result: () => ProviderSetResult,
    errors: ["conflict", "unsupported"],
    capability: "providers",
    ...write,
    idempotencyKey: ["name"],
    summary: "Create a model provider, or give it another key."
  }),
  "provider/list": method({
    params: () => none,
    result: () => Schema.Struct({ providers: Schema.Array(ProviderRow) }),
    errors: [],
    capability: "providers",
    ...read,
    summary: "The model providers of the host, without their keys."
  }),
  "connection/set": method({
    params: () => ConnectionSetParams,
    result: () => Schema.Struct({ connection: Connection, created: Schema.Boolean }),
    errors: ["not_found", "unsupported"],
    capability: "providers",
    ...write,
    idempotencyKey: ["connection"],
    summary: "Give a connection its key."
  }),
  "connection/list": method({
    params: () => none,
    result: () => Schema.Struct({ connections: Schema.Array(Connection) }),
    errors: [],
    capability: "providers",
    ...read,
    summary: "The connections of the host, without their keys."
  }),
  "connection/remove": method({
    params: () => Schema.Struct({ connection: ProviderName }),
    result: () => Schema.Struct({ removed: Schema.Boolean }),
    errors: ["not_found"],
    capability: "providers",
    ...write,
    idempotencyKey: ["connection"],
    summary: "Drop a connection's key; the provider stays."
  }),
  "mcp/register": method({
    params: () => McpRegisterParams,
    result: () => Schema.Struct({ server: McpServer, duplicate: Schema.Boolean }),
    errors: ["conflict", "provider_unavailable"],
    capability: "mcpServers",
    ...write,
    idempotencyKey: ["name"],
    summary: "Start and register an MCP server."
  }),
  "mcp/list": method({
    params: () => none,
    result: () => Schema.Struct({ servers: Schema.Array(McpServer) }),
    errors: [],
    capability: "mcpServers",
    ...read,
    summary: "The registered MCP servers."
  }),
  "application/register": method({
    params: () => ApplicationRegisterParams,
    result: () => ApplicationRegisterResult,
    errors: ["conflict"],
    capability: "applicationCallbacks",
    ...write,
    idempotencyKey: ["owner", "tools.qualified_name"],
    summary: "Bind tools of the app to this connection."
  }),
  "memory/list": method({
    params: () => MemoryListParams,
    result: () => Schema.Struct({ entries: Schema.Array(MemoryEntry), ...next }),
    errors: ["not_found"],
    capability: "memoryTools",
    ...read,
    summary: "The entries of a memory, newest first."
  }),
  "memory/forget": method({
    params: () => MemoryForgetParams,
    result: () => Schema.Struct({ forgotten: Schema.Boolean }),
    errors: ["not_found"],
    capability: "memoryTools",
    ...write,
    idempotencyKey: ["memory_id"],
    summary: "Remove an entry from a memory."
  }),
  "schedule/list": method({
    params: () => Schema.Struct({ sessionId: IdParam, after: page.after }),
    result: () => Schema.Struct({ schedules: Schema.Array(ScheduleEntry), ...next }),
    errors: ["not_found"],
    capability: "scheduledTasks",
    ...read,
    summary: "The active schedules of a session."
  }),
  "schedule/cancel": method({
    params: () => Schema.Struct({ sessionId: IdParam, scheduleId: IdParam }),
    result: () => Schema.Struct({ cancelled: Schema.Boolean }),
    errors: ["not_found"],
    capability: "scheduledTasks",
    ...write,
    idempotencyKey: ["schedule_id"],
    summary: "Cancel a schedule."
  })
} as const satisfies Record<string, MethodRow>

/** The method table's type. */
export type Methods = typeof methods

/** The name of a method. */
export type MethodName = keyof Methods

/** The params of a method, in camelCase. */
export type ParamsOf<M extends MethodName> = Methods[M]["params"]["Type"]

/** The result of a method, in camelCase; events inside it are in wire form. */
export type ResultOf<M extends MethodName> = Methods[M]["result"]["Type"]

/** The errors of a method: its own and those of every method. */
export type ErrorOf<M extends MethodName> = RunErrorOf<Methods[M]["errors"][number] | (typeof commonErrors)[number]>

/**
 * A handler for every method: what a host is behind its transports. A handler may fail with any error of the table,
 * because what it calls may; `ErrorOf` names those a client has to expect.
 */
export type Handlers<R = never> = {
  readonly [M in MethodName]: (params: ParamsOf<M>) => Effect.Effect<ResultOf<M>, RunError, R>
}

/** The names of all methods, in table order. */
export const methodNames = Object.keys(methods) as ReadonlyArray<MethodName>

/** Whether a string names a method. */
export const isMethodName = (name: string): name is MethodName => Object.hasOwn(methods, name)

/**
 * How the host schedules one request: `session/send` is a control when it carries a decision or an answer (RUN-032), and
 * `event/read` waits only with a `waitMs` above 0 (RUN-033).
 */
export const requestKind = <M extends MethodName>(method: M, params: ParamsOf<M>): RequestKind => {
  if (method === "session/send") {
    return (params as ParamsOf<"session/send">).input.type === "message" ? "ordinary" : "control"
  }
  if (method === "event/read") return ((params as ParamsOf<"event/read">).waitMs ?? 0) > 0 ? "wait" : "ordinary"
  return methods[method].kind
}
