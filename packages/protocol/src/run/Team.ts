/** Teams on the wire (run-protocol section 24): board, task, team/get, team/list and team/task. */
import { Schema } from "effect"
import { bytes, chars, exactlyOne, HostId, IdParam, int, list, optional, Timestamp } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** The states of a task. */
export const TaskState = lazySchema(() =>
  Schema.Literals(["open", "in_progress", "blocked", "review", "done", "canceled"]).annotate({
    identifier: "TaskState"
  })
)
/** The state of a task. */
export type TaskState = typeof TaskState.Type

/** A team's board as `run/wait`, `session/state` and the event `board-update` carry it. */
export const Board = lazySchema(() =>
  Schema.Struct({
    teamId: HostId,
    revision: int(0),
    open: int(0),
    truncated: Schema.Boolean,
    items: Schema.Array(
      Schema.Struct({
        id: HostId,
        title: Schema.String,
        status: TaskState,
        assignee: optional(Schema.String),
        note: optional(Schema.String)
      })
    )
  }).annotate({ identifier: "Board" })
)
/** A team's board. */
export type Board = typeof Board.Type

/** A task whole. */
export const Task = lazySchema(() =>
  Schema.Struct({
    taskId: HostId,
    title: Schema.String,
    description: optional(Schema.String),
    acceptance: optional(Schema.Array(Schema.String)),
    assignee: optional(Schema.String),
    state: TaskState,
    revision: int(0),
    createdBy: Schema.Literals(["lead", "user"]),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    blockedReason: optional(Schema.String),
    report: optional(Schema.String)
  }).annotate({ identifier: "Task" })
)
/** A task whole. */
export type Task = typeof Task.Type

const TeamState = Schema.Literals(["active", "ended"])

/** A team as `team/get` shows it. */
export const Team = lazySchema(() =>
  Schema.Struct({
    teamId: HostId,
    sessionId: HostId,
    agent: Schema.String,
    state: TeamState,
    members: Schema.Array(
      Schema.Struct({
        sessionId: HostId,
        agent: Schema.String,
        role: Schema.Literals(["lead", "worker"]),
        state: Schema.Literals(["idle", "running", "waiting", "closed"])
      })
    ),
    board: Board,
    deliveries: Schema.Struct({ queued: int(0), held: int(0) }),
    outbox: int(0)
  }).annotate({ identifier: "Team" })
)
/** A team as `team/get` shows it. */
export type Team = typeof Team.Type

/** A row of `team/list`. */
export const TeamRow = lazySchema(() =>
  Schema.Struct({
    teamId: HostId,
    sessionId: HostId,
    agent: Schema.String,
    state: TeamState,
    open: int(0)
  }).annotate({ identifier: "TeamRow" })
)
/** A row of `team/list`. */
export type TeamRow = typeof TeamRow.Type

/** Params of `team/task`: exactly one of a new task and a transition. */
export const TeamTaskParams = lazySchema(() =>
  Schema.Struct({
    teamId: IdParam,
    add: optional(
      Schema.Struct({
        title: chars(1, 200),
        description: optional(bytes(0, 8_192)),
        acceptance: optional(list(chars(0, 500), 16))
      })
    ),
    transition: optional(
      Schema.Struct({
        taskId: IdParam,
        to: TaskState,
        expectedRevision: optional(int(0)),
        comment: optional(bytes(0, 8_192))
      })
    ),
    requestId: optional(
      Schema.String.check(
        Schema.isPattern(/^[\u0020-\u007e]{1,200}$/u, { expected: "1 to 200 printable ASCII characters" })
      )
    )
  }).check(exactlyOne("add", "transition"))
)
/** Params of `team/task`. */
export type TeamTaskParams = typeof TeamTaskParams.Type
