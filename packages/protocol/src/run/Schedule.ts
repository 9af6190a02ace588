/** Schedules on the wire (run-protocol section 26). */
import { Schema } from "effect"
import { HostId, int, optional } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** A schedule of a session; `nextRunAt` is in UTC Unix seconds. */
export const ScheduleEntry = lazySchema(() =>
  Schema.Struct({
    id: HostId,
    name: optional(Schema.String),
    text: Schema.String,
    cron: optional(Schema.String),
    zone: optional(Schema.String),
    at: optional(Schema.String),
    nextRunAt: Schema.Int,
    remainingRuns: int(0),
    lastSubmissionId: optional(Schema.String)
  }).annotate({ identifier: "ScheduleEntry" })
)
/** A schedule of a session. */
export type ScheduleEntry = typeof ScheduleEntry.Type
