/**
 * What messages and events are made of: prompt parts, message parts, tool display, attachments, usage, and the small
 * rows of 3.5 that events carry.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { ArtifactId } from "../Ids.ts"
import { lazySchema } from "../internal/Lazy.ts"

/**
 * A time: ISO 8601 in UTC with milliseconds, `2026-01-31T12:00:00.000Z`.
 *
 * @since 0.1.0
 */
export const Timestamp = lazySchema(() =>
  Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u)).annotate({
    identifier: "Timestamp",
    expected: "a UTC time like 2026-01-31T12:00:00.000Z"
  })
)
/**
 * How a harness is reached.
 *
 * @since 0.1.0
 */
export const HarnessAccess = lazySchema(() =>
  Schema.Literals(["native", "acp", "connection"]).annotate({ identifier: "HarnessAccess" })
)
/** @since 0.1.0 */
export type HarnessAccess = typeof HarnessAccess.Type

/**
 * Names a registered harness. Its registry key is `access:id`.
 *
 * @since 0.1.0
 */
export const HarnessRef = lazySchema(() =>
  Schema.Struct({ id: Schema.String, access: HarnessAccess }).annotate({
    identifier: "HarnessRef"
  })
)
/** @since 0.1.0 */
export type HarnessRef = typeof HarnessRef.Type

/**
 * Names a model of a provider.
 *
 * @since 0.1.0
 */
export const ModelRef = lazySchema(() =>
  Schema.Struct({ providerID: Schema.String, modelID: Schema.String }).annotate({
    identifier: "ModelRef"
  })
)
/** @since 0.1.0 */
export type ModelRef = typeof ModelRef.Type

/**
 * Who wrote a message.
 *
 * @since 0.1.0
 */
export const Author = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    name: Schema.String,
    kind: Schema.Literals(["human", "agent"]),
    avatarUrl: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "Author" })
)
/** @since 0.1.0 */
export type Author = typeof Author.Type

/** Text of a prompt. @since 0.1.0 */
export const TextPromptPart = lazySchema(() =>
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }).annotate({
    identifier: "TextPromptPart"
  })
)
/** @since 0.1.0 */
export type TextPromptPart = typeof TextPromptPart.Type

/**
 * A file of a prompt: exactly one of `url` (`data`, `file`, `http`, `https` or no scheme), `artifactId`, or `data`
 * (base64, at most 20 MiB decoded).
 *
 * @since 0.1.0
 */
export const FilePromptPart = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("file"),
    mime: Schema.String,
    filename: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    artifactId: Schema.optionalKey(ArtifactId),
    data: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "FilePromptPart" })
)
/** @since 0.1.0 */
export type FilePromptPart = typeof FilePromptPart.Type

/** A mention of an agent in a prompt. @since 0.1.0 */
export const AgentPromptPart = lazySchema(() =>
  Schema.Struct({ type: Schema.Literal("agent"), name: Schema.String }).annotate({
    identifier: "AgentPromptPart"
  })
)
/** @since 0.1.0 */
export type AgentPromptPart = typeof AgentPromptPart.Type

/**
 * One part of a prompt (3.3); at most 64 per prompt, their text at most 1 MiB.
 *
 * @since 0.1.0
 */
export const PromptPart = lazySchema(() =>
  Schema.Union([TextPromptPart, FilePromptPart, AgentPromptPart]).annotate({
    identifier: "PromptPart"
  })
)
/** @since 0.1.0 */
export type PromptPart = typeof PromptPart.Type

/**
 * The structured answer a prompt asks for.
 *
 * @since 0.1.0
 */
export const OutputFormat = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    name: Schema.String,
    schema: Schema.Json,
    strict: Schema.optionalKey(Schema.Boolean)
  }).annotate({ identifier: "OutputFormat" })
)
/** @since 0.1.0 */
export type OutputFormat = typeof OutputFormat.Type

/**
 * What a caller submits (3.3): `text` or `parts`, and options. The rules between the fields (RT-089, RT-090, limits of
 * 3.1) are the runtime's; a decoded value still has to be admitted.
 *
 * @since 0.1.0
 */
export const PromptInput = lazySchema(() =>
  Schema.Struct({
    text: Schema.optionalKey(Schema.String),
    parts: Schema.optionalKey(Schema.Array(PromptPart)),
    messageId: Schema.optionalKey(Schema.String),
    agent: Schema.optionalKey(Schema.String),
    model: Schema.optionalKey(ModelRef),
    variant: Schema.optionalKey(Schema.String),
    system: Schema.optionalKey(Schema.String),
    tools: Schema.optionalKey(Schema.Record(Schema.String, Schema.Boolean)),
    format: Schema.optionalKey(OutputFormat),
    permissionMode: Schema.optionalKey(Schema.String),
    author: Schema.optionalKey(Author),
    delivery: Schema.optionalKey(Schema.Literals(["steer", "queue"])),
    actorId: Schema.optionalKey(Schema.String),
    actorKind: Schema.optionalKey(Schema.Literals(["human", "agent"])),
    allowFreshContext: Schema.optionalKey(Schema.Boolean)
  }).annotate({ identifier: "PromptInput" })
)
/** @since 0.1.0 */
export type PromptInput = typeof PromptInput.Type

const Count = Schema.NullOr(Schema.Natural)

/**
 * Tokens of one report. `null` = the provider did not report it, which is not 0. `input` leaves out cached tokens,
 * `output` contains reasoning, whatever the provider's own convention (6.2).
 *
 * @since 0.1.0
 */
export const TokenUsage = lazySchema(() =>
  Schema.Struct({
    input: Count,
    output: Count,
    reasoning: Count,
    cache: Schema.Struct({ read: Count, write: Count })
  }).annotate({ identifier: "TokenUsage" })
)
/** @since 0.1.0 */
export type TokenUsage = typeof TokenUsage.Type

/**
 * One report of usage: `delta` adds to what was reported before, `cumulative` replaces it.
 *
 * @since 0.1.0
 */
export const UsageObservation = lazySchema(() =>
  Schema.Struct({
    kind: Schema.Literals(["cumulative", "delta"]),
    tokens: TokenUsage,
    sequence: Schema.optionalKey(Schema.Natural),
    providerObservationId: Schema.optionalKey(Schema.String),
    nativeSessionId: Schema.optionalKey(Schema.String),
    observedAt: Schema.optionalKey(Timestamp)
  }).annotate({ identifier: "UsageObservation" })
)
/** @since 0.1.0 */
export type UsageObservation = typeof UsageObservation.Type

/** Money as the provider reported it. @since 0.1.0 */
export const Cost = lazySchema(() =>
  Schema.Struct({ amount: Schema.Finite, currency: Schema.String }).annotate({ identifier: "Cost" })
)
/** @since 0.1.0 */
export type Cost = typeof Cost.Type

/** What sort of work a tool does, for display (6.2). @since 0.1.0 */
export const ToolKind = lazySchema(() =>
  Schema.Literals([
    "shell",
    "read",
    "lint",
    "edit",
    "search",
    "list",
    "fetch",
    "move",
    "delete",
    "reasoning",
    "task",
    "todos",
    "question",
    "mcp",
    "image",
    "computer",
    "switch_mode",
    "generic"
  ]).annotate({ identifier: "ToolKind" })
)
/** @since 0.1.0 */
export type ToolKind = typeof ToolKind.Type

/** A place in a file; `line` counts from 1. @since 0.1.0 */
export const FileLocation = lazySchema(() =>
  Schema.Struct({
    path: Schema.String,
    line: Schema.optionalKey(Schema.Natural)
  }).annotate({ identifier: "FileLocation" })
)
/** @since 0.1.0 */
export type FileLocation = typeof FileLocation.Type

/** A changed file with its line counts where they are known. @since 0.1.0 */
export const FileChange = lazySchema(() =>
  Schema.Struct({
    path: Schema.String,
    additions: Schema.optionalKey(Schema.Natural),
    deletions: Schema.optionalKey(Schema.Natural)
  }).annotate({ identifier: "FileChange" })
)
/** @since 0.1.0 */
export type FileChange = typeof FileChange.Type

/**
 * What a user interface may show of a tool call. Every field is optional; none is authoritative.
 *
 * @since 0.1.0
 */
export const ToolDisplay = lazySchema(() =>
  Schema.Struct({
    kind: Schema.optionalKey(ToolKind),
    intent: Schema.optionalKey(Schema.String),
    mode: Schema.optionalKey(Schema.String),
    summary: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.String),
    command: Schema.optionalKey(Schema.String),
    path: Schema.optionalKey(Schema.String),
    filePath: Schema.optionalKey(Schema.String),
    pattern: Schema.optionalKey(Schema.String),
    query: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    sourcePath: Schema.optionalKey(Schema.String),
    targetPath: Schema.optionalKey(Schema.String),
    sessionId: Schema.optionalKey(Schema.String),
    agentId: Schema.optionalKey(Schema.String),
    subagentType: Schema.optionalKey(Schema.String),
    durationMs: Schema.optionalKey(Schema.Natural),
    files: Schema.optionalKey(Schema.Array(FileChange)),
    locations: Schema.optionalKey(Schema.Array(FileLocation)),
    input: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: "ToolDisplay" })
)
/** @since 0.1.0 */
export type ToolDisplay = typeof ToolDisplay.Type

const attachmentBase = { mime: Schema.String, filename: Schema.optionalKey(Schema.String) }

/** A file which the tool made outside the workspace. @since 0.1.0 */
export const ToolFileAttachment = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("tool-file"),
    ...attachmentBase,
    path: Schema.String
  }).annotate({ identifier: "ToolFileAttachment" })
)
/** A file of the workspace. @since 0.1.0 */
export const WorkspaceFileAttachment = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("workspace-file"),
    ...attachmentBase,
    path: Schema.String,
    sourcePath: Schema.String
  }).annotate({ identifier: "WorkspaceFileAttachment" })
)
/** Content kept as an artifact. @since 0.1.0 */
export const InlineAttachment = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("inline"),
    ...attachmentBase,
    artifactId: ArtifactId
  }).annotate({ identifier: "InlineAttachment" })
)
/** Content that was too large to keep; only its size in bytes is known. @since 0.1.0 */
export const UnretainedAttachment = lazySchema(() =>
  Schema.Struct({
    type: Schema.Literal("unretained"),
    ...attachmentBase,
    sourcePath: Schema.optionalKey(Schema.String),
    bytes: Schema.Natural
  }).annotate({ identifier: "UnretainedAttachment" })
)
/** What a tool returned beside its output (6.2). @since 0.1.0 */
export const Attachment = lazySchema(() =>
  Schema.Union([ToolFileAttachment, WorkspaceFileAttachment, InlineAttachment, UnretainedAttachment]).annotate({
    identifier: "Attachment"
  })
)
/** @since 0.1.0 */
export type Attachment = typeof Attachment.Type

/** One entry of a todo list (3.5). @since 0.1.0 */
export const Todo = lazySchema(() =>
  Schema.Struct({
    id: Schema.optionalKey(Schema.String),
    content: Schema.String,
    status: Schema.Literals(["pending", "in_progress", "completed", "cancelled"]),
    priority: Schema.optionalKey(Schema.Literals(["low", "medium", "high"]))
  }).annotate({ identifier: "Todo" })
)
/** @since 0.1.0 */
export type Todo = typeof Todo.Type

/** A command that can be executed in a session; `name` has no leading slash (3.5). @since 0.1.0 */
export const Command = lazySchema(() =>
  Schema.Struct({
    name: Schema.String,
    description: Schema.optionalKey(Schema.String),
    input: Schema.optionalKey(Schema.Struct({ hint: Schema.String })),
    content: Schema.optionalKey(Schema.String),
    source: Schema.Literals(["file", "harness"]),
    path: Schema.optionalKey(Schema.String)
  }).annotate({ identifier: "Command" })
)
/** @since 0.1.0 */
export type Command = typeof Command.Type

/** One choice of a {@link ConfigOption}. @since 0.1.0 */
export const SelectOption = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    name: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.String),
    value: Schema.optionalKey(Schema.Json),
    connected: Schema.optionalKey(Schema.Boolean)
  }).annotate({ identifier: "SelectOption" })
)
/** @since 0.1.0 */
export type SelectOption = typeof SelectOption.Type

/** A setting that a harness offers for a session (3.5). @since 0.1.0 */
export const ConfigOption = lazySchema(() =>
  Schema.Struct({
    id: Schema.String,
    name: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.String),
    category: Schema.optionalKey(Schema.String),
    type: Schema.Literals(["select", "boolean"]),
    currentValue: Schema.optionalKey(Schema.Json),
    selectOptions: Schema.optionalKey(Schema.Array(SelectOption))
  }).annotate({ identifier: "ConfigOption" })
)
/** @since 0.1.0 */
export type ConfigOption = typeof ConfigOption.Type

/** A condition worth telling that is no failure of the turn. @since 0.1.0 */
export const Diagnostic = lazySchema(() =>
  Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optionalKey(Schema.Json)
  }).annotate({ identifier: "Diagnostic" })
)
/** @since 0.1.0 */
export type Diagnostic = typeof Diagnostic.Type

/** An artifact row (3.5): `retained: false` when only size and digest are kept (RT-212). @since 0.1.0 */
export const Artifact = lazySchema(() =>
  Schema.Struct({
    id: ArtifactId,
    mime: Schema.String,
    bytes: Schema.Natural,
    sha256: Schema.String,
    retained: Schema.Boolean
  }).annotate({ identifier: "Artifact" })
)
/** @since 0.1.0 */
export type Artifact = typeof Artifact.Type

/**
 * Where a field of an event was cut: `path` is the JSON Pointer of the field in the payload, the artifact has the whole
 * value of `bytes` bytes (6.5).
 *
 * @since 0.1.0
 */
export const ArtifactRef = lazySchema(() =>
  Schema.Struct({
    path: Schema.String,
    artifactId: ArtifactId,
    bytes: Schema.Natural,
    mime: Schema.String
  }).annotate({ identifier: "ArtifactRef" })
)
/** @since 0.1.0 */
export type ArtifactRef = typeof ArtifactRef.Type
