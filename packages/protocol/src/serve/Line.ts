/**
 * The lines that a serve-mode program writes (serve-mode 4.1, 4.3): control lines, and the lines of a run.
 *
 * What only this project's programs write is optional here, so that the lines of any serve-mode program decode.
 *
 * @since 0.1.0
 */
import { Result, Schema } from "effect"
import { lazySchema, memoised } from "../internal/Lazy.ts"
import { bytes, chars, list, optional } from "../run/Bounds.ts"
import { fromWire } from "../text/WireNames.ts"
import { Cost } from "../events/Content.ts"
import { serveLimits, serveVersion } from "./Limits.ts"
import { isSourceKind, notifyKinds, notifyTable, ServeUsage, type NotifyData, type NotifyKind } from "./Notify.ts"
import { LineError, refusalDetail, refusalMessage, type Refusal } from "./Refusal.ts"

const text = Schema.String
const version = Schema.Literal(serveVersion)
const opId = optional(chars(0, serveLimits.idCharacters))
const names = Schema.Array(text)

const control = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: () => Fields
) =>
  lazySchema(() =>
    Schema.Struct({ protocol: version, type: Schema.Literal(type), ...fields() }).annotate({
      identifier: `Serve${type[0]?.toUpperCase()}${type.slice(1)}Line`
    })
  )

/** Codes of `result.errors` (4.5). The set is closed (SRV-130). @since 0.1.0 */
export const errorCodes = [
  "budget",
  "timeout",
  "nothing",
  "no_answer",
  "restore",
  "cancelled",
  "protocol",
  "unknown"
] as const

/** An error of a run. @since 0.1.0 */
export const RunFault = lazySchema(() =>
  Schema.Struct({
    code: Schema.Literals(errorCodes),
    message: bytes(0, serveLimits.messageBytes),
    class: optional(text),
    runtimeCode: optional(text)
  }).annotate({ identifier: "ServeRunFault" })
)
/** @since 0.1.0 */
export type RunFault = typeof RunFault.Type

/** How a run ended, in one word. @since 0.1.0 */
export const RunEnd = lazySchema(() =>
  Schema.Literals(["completed", "failed", "cancelled"]).annotate({ identifier: "ServeRunEnd" })
)
/** Why a run ended. @since 0.1.0 */
export const StopReason = lazySchema(() =>
  Schema.Literals([
    "end_turn",
    "max_tokens",
    "refusal",
    "max_rounds",
    "timeout",
    "cancelled",
    "error",
    "interrupted"
  ]).annotate({ identifier: "ServeStopReason" })
)
/** @since 0.1.0 */
export type StopReason = typeof StopReason.Type

/** A call whose effect is not known. @since 0.1.0 */
export const UncertainCall = lazySchema(() =>
  Schema.Struct({ id: text, name: text }).annotate({ identifier: "ServeUncertainCall" })
)

/** How the last turn of a resumed session ended (SRV-296). @since 0.1.0 */
export const LastRun = lazySchema(() =>
  Schema.Struct({
    submissionId: text,
    turnId: text,
    status: RunEnd,
    stopReason: StopReason,
    answer: text,
    errors: Schema.Array(RunFault),
    cursor: Schema.Natural,
    uncertain: optional(Schema.Array(UncertainCall)),
    withdrawnAsks: optional(names)
  }).annotate({ identifier: "ServeLastRun" })
)
/** @since 0.1.0 */
export type LastRun = typeof LastRun.Type

/** The first line, once, before any op is read. @since 0.1.0 */
export const ReadyLine = control("ready", () => ({
  pid: Schema.Int,
  protocolVersion: Schema.Int,
  capabilities: names,
  server: optional(Schema.Struct({ name: text, version: text })),
  sessionId: optional(text),
  resumed: optional(Schema.Boolean),
  sessionCursor: optional(Schema.Natural),
  agent: optional(text),
  harness: optional(text),
  model: optional(text),
  scripted: optional(Schema.Boolean),
  project: optional(text),
  limits: optional(Schema.Struct({ lineBytes: Schema.Natural, depth: Schema.Natural })),
  budgets: optional(
    Schema.Struct({
      maxRounds: Schema.NullOr(Schema.Int),
      timeout: Schema.NullOr(Schema.Finite),
      answerTimeout: Schema.NullOr(Schema.Finite)
    })
  ),
  eof: optional(Schema.Literals(["cancel", "finish"])),
  warnings: optional(names),
  lastRun: optional(LastRun)
}))
/** @since 0.1.0 */
export type ReadyLine = typeof ReadyLine.Type

/** The answer to `hello`. @since 0.1.0 */
export const HelloLine = control("hello", () => ({
  protocolVersion: Schema.Int,
  capabilities: names,
  pid: optional(Schema.Int),
  opId
}))
/** The answer to `ping`. @since 0.1.0 */
export const PongLine = control("pong", () => ({ opId }))
/** A refusal. @since 0.1.0 */
export const ErrorLine = control("error", () => ({ error: LineError, message: text, opId }))

const run = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({
    protocol: version,
    seq: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
    type: Schema.Literal(type),
    runId: optional(text),
    ...fields,
    cursor: optional(Schema.Natural),
    opId
  })

/** The first line of every run that starts. @since 0.1.0 */
export const StartLine = lazySchema(() =>
  run("start", {
    prompt: text,
    warnings: names,
    turnId: optional(text),
    sessionId: optional(text),
    duplicate: optional(Schema.Boolean)
  }).annotate({ identifier: "ServeStartLine" })
)
/** Text of the answer as it comes. @since 0.1.0 */
export const DeltaLine = lazySchema(() =>
  run("delta", { text: bytes(1, serveLimits.deltaBytes) }).annotate({ identifier: "ServeDeltaLine" })
)
const notifyName = (kind: string): string =>
  `Serve${kind.replace(/(?:^|_)([a-z])/gu, (_, letter: string) => letter.toUpperCase())}Notify`

/** Something that happened in the run; see `notifyTable`. @since 0.1.0 */
export const NotifyLine = lazySchema(() =>
  Schema.Union(
    notifyKinds.map((kind) =>
      run("notify", {
        kind: Schema.Literal(kind),
        data: notifyTable[kind].schema as unknown as Schema.Codec<NotifyData<NotifyKind>>
      }).annotate({ identifier: notifyName(kind) })
    )
  ).annotate({ identifier: "ServeNotifyLine" })
)
/** A notice of the agent or of its host. @since 0.1.0 */
export const LogLine = lazySchema(() =>
  run("log", {
    message: bytes(0, serveLimits.logBytes),
    messageTruncated: optional(Schema.Boolean),
    level: optional(Schema.Literals(["debug", "info", "warn", "error"])),
    code: optional(text)
  }).annotate({ identifier: "ServeLogLine" })
)
const count = Schema.Natural
const detailCount = Schema.NullOr(Schema.Natural)

/** What usage was made of; null where it was not reported. @since 0.1.0 */
export const UsageDetail = lazySchema(() =>
  Schema.Struct({
    cacheRead: detailCount,
    cacheWrite: detailCount,
    reasoning: detailCount,
    cost: Schema.NullOr(Cost)
  }).annotate({ identifier: "ServeUsageDetail" })
)
/** @since 0.1.0 */
export type UsageDetail = typeof UsageDetail.Type

/** The last line of every run. @since 0.1.0 */
export const ResultLine = lazySchema(() =>
  run("result", {
    answer: text,
    errors: Schema.Array(RunFault),
    errorMessages: names,
    usage: optional(ServeUsage),
    cancelled: Schema.Boolean,
    model: optional(text),
    status: optional(RunEnd),
    stopReason: optional(StopReason),
    usageDetail: optional(UsageDetail),
    uncertain: optional(list(UncertainCall, 1_000)),
    asks: optional(Schema.Struct({ allowed: count, refused: count, unanswered: count })),
    cancelOpId: opId,
    duplicate: optional(Schema.Boolean),
    committed: optional(Schema.Boolean)
  }).annotate({ identifier: "ServeResultLine" })
)

/** @since 0.1.0 */
export type HelloLine = typeof HelloLine.Type
/** @since 0.1.0 */
export type PongLine = typeof PongLine.Type
/** @since 0.1.0 */
export type ErrorLine = typeof ErrorLine.Type
/** @since 0.1.0 */
export type StartLine = typeof StartLine.Type
/** @since 0.1.0 */
export type DeltaLine = typeof DeltaLine.Type
/** @since 0.1.0 */
export type LogLine = typeof LogLine.Type
/** @since 0.1.0 */
export type ResultLine = typeof ResultLine.Type
/** A notify of one kind. @since 0.1.0 */
export type NotifyLineOf<Kind extends NotifyKind> = {
  readonly protocol: typeof serveVersion
  readonly seq: number
  readonly type: "notify"
  readonly runId?: string
  readonly kind: Kind
  readonly data: NotifyData<Kind>
  readonly cursor?: number
  readonly opId?: string
}
/** A notify of any kind; `kind` tells the type of `data`. @since 0.1.0 */
export type NotifyLine = { readonly [K in NotifyKind]: NotifyLineOf<K> }[NotifyKind]

/** A line without a number. @since 0.1.0 */
export type ControlLine = ReadyLine | HelloLine | PongLine | ErrorLine
/** A line of a run. @since 0.1.0 */
export type RunLine = StartLine | DeltaLine | NotifyLine | LogLine | ResultLine
/** Any line of serve mode. @since 0.1.0 */
export type ServeLine = ControlLine | RunLine

/** Any line; the schema of the published document. @since 0.1.0 */
export const ServeLine = lazySchema(() =>
  Schema.Union([
    ReadyLine,
    HelloLine,
    PongLine,
    ErrorLine,
    StartLine,
    DeltaLine,
    NotifyLine,
    LogLine,
    ResultLine
  ]).annotate({ identifier: "ServeLine" })
)

const lineSchemas = {
  ready: ReadyLine,
  hello: HelloLine,
  pong: PongLine,
  error: ErrorLine,
  start: StartLine,
  delta: DeltaLine,
  log: LogLine,
  result: ResultLine
} as const

/** The `error` line of a refusal. @since 0.1.0 */
export const errorLine = (refusal: Refusal, opId?: string): ErrorLine => {
  const message = refusalMessage(refusal)
  return {
    protocol: serveVersion,
    type: "error",
    error: { code: "protocol", message, reason: refusal.reason, detail: refusalDetail(refusal) },
    message,
    ...(opId === undefined ? {} : { opId })
  }
}

/** What a reader of lines makes of one: a line it knows, one to be ignored, or one that breaks its schema. @since 0.1.0 */
export type DecodedLine =
  | { readonly _tag: "Line"; readonly line: ServeLine }
  /** A type or kind this version does not know (SRV-380). */
  | { readonly _tag: "Unknown"; readonly type: string }
  | { readonly _tag: "Malformed"; readonly message: string }

const reader = (schema: Schema.Constraint) => {
  const map = fromWire(schema)
  const decode = memoised(() => Schema.decodeUnknownResult(schema as unknown as Schema.Codec<unknown>))
  return (json: unknown) => decode()(map(json))
}

const readers = Object.fromEntries(
  Object.entries(lineSchemas).map(([type, schema]) => [type, reader(schema as unknown as Schema.Constraint)])
)

const notifyHead = lazySchema(() => run("notify", { kind: text, data: Schema.Json }))
const readNotify = reader(notifyHead)
const dataReaders = Object.fromEntries(notifyKinds.map((kind) => [kind, reader(notifyTable[kind].schema)]))

const asLine = (result: Result.Result<unknown, { readonly message: string }>): DecodedLine =>
  Result.isSuccess(result)
    ? { _tag: "Line", line: result.success as ServeLine }
    : { _tag: "Malformed", message: result.failure.message }

/**
 * Decodes the parsed JSON of one line, of this project's programs or of any other that speaks serve mode. Unknown fields
 * are dropped.
 *
 * @since 0.1.0
 */
export const decodeLine = (json: unknown): DecodedLine => {
  if (typeof json !== "object" || json === null || !("type" in json) || typeof json.type !== "string") {
    return { _tag: "Malformed", message: "a line is an object with a type" }
  }
  const { type } = json
  if (type === "notify") {
    const head = readNotify(json)
    if (Result.isFailure(head)) return { _tag: "Malformed", message: head.failure.message }
    const line = head.success as { readonly kind: string; readonly data: unknown }
    const readData = Object.hasOwn(dataReaders, line.kind) ? dataReaders[line.kind] : undefined
    if (readData === undefined) return { _tag: "Unknown", type: `notify ${line.kind}` }
    return asLine(Result.map(readData(line.data), (data) => ({ ...line, data })))
  }
  const read = Object.hasOwn(readers, type) ? readers[type] : undefined
  return read === undefined ? { _tag: "Unknown", type } : asLine(read(json))
}

/** Whether a line is written when only the contract's kinds are wanted (SRV-342). @since 0.1.0 */
export const isSourceLine = (line: { readonly type: string; readonly kind?: NotifyKind }): boolean =>
  line.type !== "notify" || (line.kind !== undefined && isSourceKind(line.kind))

/** The schemas of lines other than `notify`, by their type. @since 0.1.0 */
export const lineSchemaOf = (type: keyof typeof lineSchemas): Schema.Constraint =>
  lineSchemas[type] as unknown as Schema.Constraint
