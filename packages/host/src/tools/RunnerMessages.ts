/**
 * What the host and its tool runner say to each other. Private: both ends are the same version (RUN-092).
 *
 * A call has two phases. The runner checks it (paths, patterns, sizes) and says `ready` or `not_run`; the host makes its dispatch
 * record durable and says `go`. So `not_run` never follows a dispatch record (AGT-035). `spawned` names a process group
 * before its command runs; the command waits for `owned`. The host decodes every message with these schemas (AGT-155); the
 * runner imports the types only.
 */
import { Schema } from "effect"
import type { ClientPart } from "./FileChange.ts"
import { limits } from "./Limits.ts"
import { FileDiff, type RunnerTool } from "./Results.ts"

const id = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const group = Schema.Int.check(Schema.isGreaterThan(1))
const message = Schema.String.check(Schema.isMaxLength(8_192))

export const FromRunner = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    protocol: Schema.Int,
    version: Schema.String.check(Schema.isMaxLength(200))
  }),
  Schema.Struct({ type: Schema.Literal("ready"), id }),
  Schema.Struct({ type: Schema.Literal("not_run"), id, code: Schema.Literals(["denied", "failed"]), message }),
  Schema.Struct({ type: Schema.Literal("spawned"), id, group }),
  Schema.Struct({ type: Schema.Literal("ended"), id, group }),
  Schema.Struct({
    type: Schema.Literal("delta"),
    id,
    stream: Schema.Literals(["stdout", "stderr"]),
    text: Schema.String.check(Schema.isMaxLength(limits.captureBytes))
  }),
  Schema.Struct({
    type: Schema.Literal("result"),
    id,
    output: Schema.Unknown,
    diff: Schema.optionalKey(FileDiff)
  }),
  Schema.Struct({
    type: Schema.Literal("failed"),
    id,
    code: Schema.Literals(["failed", "timeout", "cancelled"]),
    message,
    output: Schema.optionalKey(Schema.Unknown)
  })
])
export type FromRunner = typeof FromRunner.Type

/** What the host says; the runner trusts it. */
export type ToRunner =
  | {
      readonly type: "call"
      readonly id: number
      readonly tool: RunnerTool
      readonly arguments: unknown
      readonly workspace: string
      readonly stateDir?: string
      readonly shellSecondsMax: number
      readonly client?: ClientPart
    }
  | { readonly type: "go"; readonly id: number }
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "owned"; readonly group: number }
