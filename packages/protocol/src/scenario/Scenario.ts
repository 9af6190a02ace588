/**
 * The scenario file (run-protocol section 27): what a scripted model or a scripted harness plays. The file is JSON with
 * snake_case names; here it has camelCase ones.
 *
 * The provider `script` plays a model behind the native agent; the harness `scripted` plays a whole harness (AGT-335).
 * They share the format, and steps which only the harness knows are told by {@link isHarnessOnlyStep} (AGT-336).
 *
 * @since 0.1.0
 */
import { Result, Schema } from "effect"
import { Todo } from "../events/Content.ts"
import { type HarnessEvent, type HarnessEventType, eventSchemas, eventTable, eventTypes } from "../events/Event.ts"
import { PermissionOption, QuestionOption } from "../events/Interaction.ts"
import { fromWire, toWireName } from "../text/WireNames.ts"
import { lazySchema, memoised } from "../internal/Lazy.ts"

const optional = Schema.optionalKey
const step = <const Fields extends Schema.Struct.Fields>(name: string, fields: () => Fields) =>
  lazySchema(() => Schema.Struct(fields()).annotate({ identifier: `Scenario${name}Step` }))

/** Text of the answer. @since 0.1.0 */
export const TextStep = step("Text", () => ({ text: Schema.String }))
/** Text of the reasoning. @since 0.1.0 */
export const ThinkingStep = step("Thinking", () => ({ thinking: Schema.String }))

/**
 * A tool call by qualified name. The provider's host runs it; the harness plays it (AGT-335): `ask` asks for permission
 * first, with the usual options or those given; the call then runs for `runningMs` milliseconds and ends with `output`
 * or `error`. The provider ignores these four.
 *
 * @since 0.1.0
 */
export const CallStep = step("Call", () => ({
  call: Schema.Struct({
    tool: Schema.String,
    arguments: Schema.Json,
    ask: optional(Schema.Union([Schema.Boolean, Schema.Array(PermissionOption)])),
    runningMs: optional(Schema.Natural),
    output: optional(Schema.Json),
    error: optional(Schema.String)
  }).annotate({ identifier: "ScenarioCall" })
}))
/** Waits. @since 0.1.0 */
export const DelayStep = step("Delay", () => ({ delayMs: Schema.Natural }))
/** Fails the first `attempts` (1) attempts of the request as a live provider would (AGT-331). @since 0.1.0 */
export const FailStep = step("Fail", () => ({
  fail: Schema.Literals(["rate_limit", "server", "disconnect", "auth", "overflow"]),
  attempts: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
}))
/** Ends the response at the output limit. @since 0.1.0 */
export const StopStep = step("Stop", () => ({ stop: Schema.Literal("length") }))
/** The tokens that the response reports. @since 0.1.0 */
export const UsageStep = step("Usage", () => ({
  usage: Schema.Struct({ input: Schema.Natural, output: Schema.Natural })
}))
/** Harness only: asks a person. @since 0.1.0 */
export const QuestionStep = step("Question", () => ({
  question: Schema.Struct({
    question: Schema.String,
    header: optional(Schema.String),
    options: optional(Schema.Array(QuestionOption)),
    multiple: optional(Schema.Boolean),
    custom: optional(Schema.Boolean),
    secret: optional(Schema.Boolean),
    topic: optional(Schema.String)
  }).annotate({ identifier: "ScenarioQuestion" })
}))
/** Harness only: replaces the todo list. @since 0.1.0 */
export const PlanStep = step("Plan", () => ({ plan: Schema.Array(Todo) }))

const harnessEventTypes = eventTypes.filter((type): type is HarnessEventType => eventTable[type].harness)

/**
 * Harness only: emits any event a harness may emit. Its fields are in wire names, as in the file; see
 * {@link scenarioEvent}.
 *
 * @since 0.1.0
 */
export const EventStep = step("Event", () => ({
  event: Schema.StructWithRest(Schema.Struct({ type: Schema.Literals(harnessEventTypes) }), [
    Schema.Record(Schema.String, Schema.Json)
  ])
}))
/** Harness only: its process is gone, with this exit code. @since 0.1.0 */
export const ExitStep = step("Exit", () => ({ exit: Schema.Int }))

/** One step of a response; exactly one kind. @since 0.1.0 */
export const ScenarioStep = lazySchema(() =>
  Schema.Union(
    [
      TextStep,
      ThinkingStep,
      CallStep,
      DelayStep,
      FailStep,
      StopStep,
      UsageStep,
      QuestionStep,
      PlanStep,
      EventStep,
      ExitStep
    ],
    { mode: "oneOf" }
  ).annotate({ identifier: "ScenarioStep" })
)
/** @since 0.1.0 */
export type ScenarioStep = typeof ScenarioStep.Type

/** A model response: its steps in order. @since 0.1.0 */
export const ScenarioResponse = lazySchema(() =>
  Schema.Array(ScenarioStep).annotate({ identifier: "ScenarioResponse" })
)
/** @since 0.1.0 */
export type ScenarioResponse = typeof ScenarioResponse.Type

const Responses = Schema.Array(ScenarioResponse)

/**
 * A scenario. A request takes the entry whose number is the count of completed responses of its kind (AGT-330): of
 * `agents` under its agent id, else of `default`; of `reviewer` and `compaction` for those.
 *
 * @since 0.1.0
 */
export const Scenario = lazySchema(() =>
  Schema.Struct({
    scenario: Schema.Literal(1),
    name: Schema.String,
    contextWindow: optional(Schema.Natural),
    agents: optional(Schema.Record(Schema.String, Responses)),
    default: optional(Responses),
    reviewer: optional(Responses),
    compaction: optional(Responses),
    exhausted: optional(Schema.Literals(["error", "echo"]))
  }).annotate({ identifier: "Scenario" })
)
/** @since 0.1.0 */
export type Scenario = typeof Scenario.Type

/** The context window of a scenario that names none, in tokens. @since 0.1.0 */
export const defaultContextWindow = 128_000

/** The largest scenario file in bytes. @since 0.1.0 */
export const maxScenarioBytes = 1_048_576

/** Whether only the harness `scripted` knows this step (AGT-335, AGT-336). @since 0.1.0 */
export const isHarnessOnlyStep = (step: ScenarioStep): boolean =>
  "question" in step || "plan" in step || "event" in step || "exit" in step

/**
 * Where a scenario has steps that only the harness knows, as paths like `default[0][2]`. The provider refuses a file
 * with any (AGT-336).
 *
 * @since 0.1.0
 */
export const harnessOnlySteps = (scenario: Scenario): ReadonlyArray<string> => {
  const lists: ReadonlyArray<readonly [string, ReadonlyArray<ScenarioResponse> | undefined]> = [
    ...Object.entries(scenario.agents ?? {}).map(([id, list]) => [`agents.${id}`, list] as const),
    ["default", scenario.default],
    ["reviewer", scenario.reviewer],
    ["compaction", scenario.compaction]
  ]
  return lists.flatMap(([name, responses]) =>
    (responses ?? []).flatMap((response, i) =>
      response.flatMap((step, j) => (isHarnessOnlyStep(step) ? [`${name}[${i}][${j}]`] : []))
    )
  )
}

const fromFile = fromWire(Scenario)
const decode = memoised(() => Schema.decodeUnknownResult(Scenario))

/** A message of the decoder with the names that stand in the file. */
const inFileNames = (message: string): string =>
  message.replace(/\["([A-Za-z]+)"\]/gu, (_, name: string) => `["${toWireName(name)}"]`)

/**
 * Reads the parsed JSON of a scenario file; a failure says where and what was expected.
 *
 * @since 0.1.0
 */
export const decodeScenario = (file: unknown): Result.Result<Scenario, string> =>
  Result.mapError(decode()(fromFile(file)), (error) => inFileNames(error.message))

const eventReaders = Object.fromEntries(
  harnessEventTypes.map((type) => [
    type,
    {
      map: fromWire(eventSchemas[type]),
      decode: memoised(() => Schema.decodeUnknownResult(eventSchemas[type] as Schema.Codec<unknown>))
    }
  ])
)

/**
 * Makes the event of an {@link EventStep}. The file cannot know the ids of the turn that plays it: `defaults` gives the
 * fields which the event's schema has and the file left out, such as `sessionId`, `messageId`, `assistantMessageId`.
 *
 * @since 0.1.0
 */
export const scenarioEvent = (
  event: (typeof EventStep.Type)["event"],
  defaults: Readonly<Record<string, unknown>>
): Result.Result<HarnessEvent, string> => {
  const reader = eventReaders[event.type]
  if (reader === undefined) return Result.fail(`a harness emits no ${event.type}`)
  const payload = reader.map(event)
  return Result.mapBoth(reader.decode()({ ...defaults, ...(payload as object) }), {
    onSuccess: (value) => value as HarnessEvent,
    onFailure: (error) => inFileNames(error.message)
  })
}
