/**
 * The kinds of `notify` lines and the data of each (serve-mode 4.4, 5.1, 5.4). `notifyTable` is the one list: schemas,
 * types and the set of the contract's kinds come from it.
 *
 * Kinds are only ever added. A reader ignores those it does not know.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { Attachment, Command, ConfigOption, Cost, FileLocation, Timestamp, Todo } from "../events/Content.ts"
import { Category, OptionKind, Origin } from "../events/Interaction.ts"
import { Goal } from "../events/Session.ts"
import { lazySchema } from "../internal/Lazy.ts"
import { bytes, chars, list, optional } from "../run/Bounds.ts"
import { serveLimits } from "./Limits.ts"

const text = Schema.String
/** Says that the field before it was cut at its bound. */
const cut = optional(Schema.Boolean)

/** Tokens of a run and its answered model requests (4.3). @since 0.1.0 */
export const ServeUsage = lazySchema(() =>
  Schema.Struct({ input: Schema.Natural, output: Schema.Natural, rounds: Schema.Natural }).annotate({
    identifier: "ServeUsage"
  })
)
/** @since 0.1.0 */
export type ServeUsage = typeof ServeUsage.Type

/** A call whose input is complete; `args` is its JSON on one line. @since 0.1.0 */
export const ServeToolCall = lazySchema(() =>
  Schema.Struct({
    name: text,
    args: bytes(0, serveLimits.toolArgsBytes),
    argsTruncated: cut,
    id: optional(text)
  }).annotate({
    identifier: "ServeToolCall"
  })
)

/** A question of an ask, and how it may be answered. @since 0.1.0 */
export const AskQuestion = lazySchema(() =>
  Schema.Struct({
    question: bytes(0, serveLimits.questionBytes),
    questionTruncated: cut,
    options: list(bytes(0, serveLimits.optionBytes), serveLimits.options),
    optionsTruncated: cut,
    multiple: Schema.Boolean,
    custom: Schema.Boolean,
    header: optional(text),
    optionDetails: optional(
      Schema.Array(Schema.Struct({ label: text, description: optional(text), preview: optional(text) }))
    ),
    secret: optional(Schema.Boolean)
  }).annotate({ identifier: "AskQuestion" })
)
/** @since 0.1.0 */
export type AskQuestion = typeof AskQuestion.Type

/** An option of a permission, as the harness offered it. @since 0.1.0 */
export const AskOption = lazySchema(() =>
  Schema.Struct({ id: text, label: text, kind: optional(OptionKind) }).annotate({ identifier: "AskOption" })
)
/** @since 0.1.0 */
export type AskOption = typeof AskOption.Type

const askId = chars(1, serveLimits.idCharacters)
const askRest = { agent: optional(text), timeout: optional(Schema.Finite) }

/** A question to the driver. @since 0.1.0 */
export const QuestionAsk = lazySchema(() =>
  Schema.Struct({
    kind: Schema.Literal("ask"),
    askId,
    about: optional(Schema.Literals(["question"])),
    questions: list(AskQuestion, 16, 1),
    ...askRest
  }).annotate({ identifier: "ServeQuestionAsk" })
)
/** @since 0.1.0 */
export type QuestionAsk = typeof QuestionAsk.Type

/** A yes or no from the driver, or one of the options of a permission. @since 0.1.0 */
export const ConfirmAsk = lazySchema(() =>
  Schema.Struct({
    kind: Schema.Literal("confirm"),
    askId,
    prompt: bytes(0, serveLimits.questionBytes),
    promptTruncated: cut,
    about: optional(Schema.Literals(["permission", "plan"])),
    tool: optional(
      Schema.Struct({
        id: text,
        name: text,
        args: bytes(0, serveLimits.toolArgsBytes),
        argsTruncated: cut,
        category: optional(Category),
        paths: optional(Schema.Array(text))
      })
    ),
    options: optional(Schema.Array(AskOption)),
    ...askRest
  }).annotate({ identifier: "ServeConfirmAsk" })
)
/** @since 0.1.0 */
export type ConfirmAsk = typeof ConfirmAsk.Type

/** The data of an `ask`. @since 0.1.0 */
export const Ask = lazySchema(() => Schema.Union([QuestionAsk, ConfirmAsk]).annotate({ identifier: "ServeAsk" }))
/** @since 0.1.0 */
export type Ask = typeof Ask.Type

/** How an ask ended. @since 0.1.0 */
export const AskResolved = lazySchema(() =>
  Schema.Struct({
    askId,
    outcome: Schema.Literals(["answered", "allowed", "refused", "unanswered", "withdrawn"]),
    by: Schema.Literals(["driver", "timeout", "cancel", "other_face", "run_end", "no_driver", "policy"]),
    option: optional(text),
    answers: optional(Schema.Array(Schema.Array(text)))
  }).annotate({ identifier: "ServeAskResolved" })
)
/** @since 0.1.0 */
export type AskResolved = typeof AskResolved.Type

/** Why a run is being stopped. @since 0.1.0 */
export const CancelCause = lazySchema(() =>
  Schema.Literals(["cancel", "shutdown", "eof", "signal", "timeout", "max_rounds", "gone"]).annotate({
    identifier: "ServeCancelCause"
  })
)
/** @since 0.1.0 */
export type CancelCause = typeof CancelCause.Type

const row = <S extends Schema.Top, const Source extends boolean>(source: Source, schema: S) => ({ source, schema })
const data = <const Fields extends Schema.Struct.Fields>(name: string, fields: () => Fields) =>
  lazySchema(() => Schema.Struct(fields()).annotate({ identifier: `Serve${name}Data` }))

/**
 * The notify kinds (4.4): whether the contract has the kind, and the schema of its data.
 *
 * @since 0.1.0
 */
export const notifyTable = {
  tool_start: row(true, Schema.Array(text)),
  tool_calls: row(
    true,
    lazySchema(() => Schema.Array(ServeToolCall))
  ),
  tool_running: row(true, text),
  tools: row(true, Schema.Null),
  retry: row(true, Schema.Null),
  error: row(true, text),
  usage: row(true, ServeUsage),
  ask: row(true, Ask),
  run_finished: row(true, Schema.Null),
  ask_resolved: row(false, AskResolved),
  cancelling: row(
    false,
    data("Cancelling", () => ({ cause: CancelCause }))
  ),
  tool_status: row(
    false,
    data("ToolStatus", () => ({
      id: text,
      name: text,
      status: Schema.Literals(["running", "completed", "failed", "uncertain"]),
      preview: optional(bytes(0, serveLimits.previewBytes)),
      previewTruncated: cut,
      error: optional(bytes(0, serveLimits.previewBytes)),
      errorTruncated: cut,
      locations: optional(Schema.Array(FileLocation)),
      attachments: optional(Schema.Array(Attachment))
    }))
  ),
  diff: row(
    false,
    data("Diff", () => ({
      toolId: optional(text),
      path: text,
      oldText: Schema.NullOr(bytes(0, serveLimits.diffBytes)),
      oldTextTruncated: cut,
      newText: bytes(0, serveLimits.diffBytes),
      newTextTruncated: cut
    }))
  ),
  thinking: row(
    false,
    data("Thinking", () => ({ text: bytes(0, serveLimits.deltaBytes) }))
  ),
  text_replace: row(
    false,
    data("TextReplace", () => ({
      channel: Schema.Literals(["text", "thinking"]),
      text: bytes(0, serveLimits.deltaBytes),
      textTruncated: cut
    }))
  ),
  plan: row(
    false,
    data("Plan", () => ({
      markdown: bytes(0, serveLimits.planBytes),
      markdownTruncated: cut,
      complete: Schema.Boolean
    }))
  ),
  todos: row(
    false,
    data("Todos", () => ({
      items: Schema.Array(
        Schema.Struct({
          id: text,
          description: text,
          status: Todo.fields.status,
          priority: Todo.fields.priority
        })
      )
    }))
  ),
  auto_approved: row(
    false,
    data("AutoApproved", () => ({ tool: text, id: text, origin: Origin }))
  ),
  subagent: row(
    false,
    data("Subagent", () => ({
      agent: text,
      key: optional(text),
      status: optional(text),
      event: optional(text),
      text: optional(bytes(0, serveLimits.previewBytes)),
      textTruncated: cut
    }))
  ),
  media: row(
    false,
    data("Media", () => ({
      mime: text,
      bytes: Schema.Natural,
      data: optional(bytes(0, serveLimits.mediaBytes)),
      uri: optional(text),
      name: optional(text)
    }))
  ),
  status: row(
    false,
    data("Status", () => ({ status: Schema.Literals(["recovering", "error"]) }))
  ),
  compaction: row(
    false,
    data("Compaction", () => ({ phase: Schema.Literals(["started", "completed"]), reason: optional(text) }))
  ),
  context: row(
    false,
    data("Context", () => ({ used: Schema.Natural, size: Schema.Natural, cost: optional(Cost) }))
  ),
  title: row(
    false,
    data("Title", () => ({ title: text }))
  ),
  commands: row(
    false,
    data("Commands", () => ({ commands: Schema.Array(Command) }))
  ),
  config: row(
    false,
    data("Config", () => ({
      options: optional(Schema.Array(ConfigOption)),
      agent: optional(text),
      mode: optional(text)
    }))
  ),
  goal: row(
    false,
    data("Goal", () => ({ goal: Schema.NullOr(Goal) }))
  ),
  mcp: row(
    false,
    data("Mcp", () => ({ server: text, status: text, error: optional(text) }))
  ),
  auth: row(
    false,
    data("Auth", () => ({ status: text }))
  ),
  rate_limit: row(
    false,
    data("RateLimit", () => ({ status: text, resetsAt: optional(Timestamp) }))
  ),
  background: row(
    false,
    data("Background", () => ({ kind: text, data: Schema.Json }))
  ),
  background_dropped: row(
    false,
    data("BackgroundDropped", () => ({ count: Schema.Natural }))
  ),
  event: row(
    false,
    data("Event", () => ({ type: text, payload: Schema.Json, payloadTruncated: cut }))
  )
} as const

/** @since 0.1.0 */
export type NotifyKind = keyof typeof notifyTable

/** The data of a kind. @since 0.1.0 */
export type NotifyData<Kind extends NotifyKind> = (typeof notifyTable)[Kind]["schema"]["Type"]

/** A notify before it has a number: its kind and data. @since 0.1.0 */
export type Notice = { readonly [K in NotifyKind]: { readonly kind: K; readonly data: NotifyData<K> } }[NotifyKind]

/** All kinds, in the order of the table. @since 0.1.0 */
export const notifyKinds = Object.keys(notifyTable) as ReadonlyArray<NotifyKind>

/** Whether the contract that any serve-mode program shares has this kind. @since 0.1.0 */
export const isSourceKind = (kind: NotifyKind): boolean => notifyTable[kind].source
