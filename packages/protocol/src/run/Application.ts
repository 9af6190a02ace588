/** Application callbacks: registration and the three notifications (run-protocol section 11). */
import { Schema } from "effect"
import {
  chars,
  FreeObject,
  HostId,
  IdParam,
  int,
  list,
  optional,
  pattern,
  QualifiedName,
  ToolCategory
} from "./Bounds.ts"
import { limits } from "./Limits.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** The name under which an app owns its tools. */
export const Owner = pattern(/^[A-Za-z0-9._-]{1,128}$/u, "1 to 128 of the characters A-Z a-z 0-9 . _ -")

/** A tool of the app. The host compiles `inputSchema` and refuses one over 64 KiB, with its path (RUN-283). */
export const ToolDescriptor = lazySchema(() =>
  Schema.Struct({
    qualifiedName: QualifiedName,
    description: chars(1, 4_096),
    inputSchema: FreeObject,
    version: chars(1, 64),
    category: optional(ToolCategory)
  }).annotate({ identifier: "ToolDescriptor" })
)
/** A tool of the app. */
export type ToolDescriptor = typeof ToolDescriptor.Type

/** Params of `application/register`. */
export const ApplicationRegisterParams = lazySchema(() =>
  Schema.Struct({
    owner: Owner,
    tools: list(ToolDescriptor, limits.applicationTools)
  })
)
/** Params of `application/register`. */
export type ApplicationRegisterParams = typeof ApplicationRegisterParams.Type

/** Result of `application/register`. */
export const ApplicationRegisterResult = lazySchema(() =>
  Schema.Struct({
    owner: Schema.String,
    tools: Schema.Array(
      Schema.Struct({
        qualifiedName: Schema.String,
        alias: Schema.String,
        version: Schema.String,
        changed: Schema.Boolean
      })
    ),
    generation: int(0)
  }).annotate({ identifier: "ApplicationRegisterResult" })
)
/** Result of `application/register`. */
export type ApplicationRegisterResult = typeof ApplicationRegisterResult.Type

/** Notification `application/event`, host to app: do a call, or stop one. */
export const ApplicationEvent = lazySchema(() =>
  Schema.Union([
    Schema.Struct({
      kind: Schema.Literal("call"),
      invocationId: HostId,
      owner: Schema.String,
      tool: Schema.String,
      arguments: Schema.Json,
      context: Schema.Struct({
        sessionId: HostId,
        turnId: HostId,
        callId: Schema.String,
        workspace: Schema.String
      }),
      timeoutMs: int(0)
    }),
    Schema.Struct({ kind: Schema.Literal("cancel"), invocationId: HostId, owner: Schema.String })
  ]).annotate({ identifier: "ApplicationEvent", expected: "an event of kind call or cancel" })
)
/** Notification `application/event`, host to app. */
export type ApplicationEvent = typeof ApplicationEvent.Type

/** What went wrong in the app's handler. The host cuts and redacts the text (RUN-289). */
export const ApplicationError = lazySchema(() =>
  Schema.Union([
    Schema.String,
    Schema.Struct({ message: Schema.String, code: optional(Schema.Union([Schema.String, Schema.Finite])) })
  ]).annotate({ identifier: "ApplicationError", expected: "a string or an object with a message" })
)
/** Notification `application/result`, app to host: exactly one of `output` (any JSON, null too) and `error`. */
export const ApplicationResult = lazySchema(() =>
  Schema.Struct({
    owner: Owner,
    invocationId: IdParam,
    output: optional(Schema.Json),
    error: optional(ApplicationError)
  })
    .check(
      Schema.makeFilter(
        (result: { readonly output?: Schema.Json; readonly error?: unknown }) =>
          result.error === undefined
            ? result.output !== undefined
            : result.output === undefined || result.output === null,
        {
          expected: "exactly one of output and error",
          toJsonSchema: () => ({ oneOf: [{ required: ["output"] }, { required: ["error"] }] })
        }
      )
    )
    .annotate({ identifier: "ApplicationResult" })
)
/** Notification `application/result`, app to host. */
export type ApplicationResult = typeof ApplicationResult.Type

/** Notification `application/progress`, app to host. `data` is at most 16 KiB encoded; the host drops what is larger. */
export const ApplicationProgress = lazySchema(() =>
  Schema.Struct({
    owner: Owner,
    invocationId: IdParam,
    message: chars(0, 2_000),
    data: optional(Schema.Json)
  }).annotate({ identifier: "ApplicationProgress" })
)
/** Notification `application/progress`, app to host. */
export type ApplicationProgress = typeof ApplicationProgress.Type
