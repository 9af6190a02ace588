/**
 * Agent definitions and profiles (run-protocol section 12): the schema of a definition with the checks that need no
 * registry, its defaults, and the comparison that decides between `duplicate` and `definition_changed`.
 */
import { Schema } from "effect"
import { HarnessRef } from "../events/Content.ts"
import { toWireName } from "../text/WireNames.ts"
import {
  AgentId,
  bytes,
  chars,
  int,
  list,
  AgentModel,
  optional,
  ProviderName,
  QualifiedName,
  uniqueList
} from "./Bounds.ts"
import { limits } from "./Limits.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Which calls of an agent a person is asked about (section 21). */
export const ApprovalMode = lazySchema(() =>
  Schema.Literals(["always", "only", "reviewer", "never"]).annotate({
    identifier: "ApprovalMode"
  })
)
/** Which calls of an agent a person is asked about. */
export type ApprovalMode = typeof ApprovalMode.Type

/** An agent's approval policy: the mode, the tools of mode `only`, and what the reviewer of mode `reviewer` works with. */
export const Approvals = lazySchema(() =>
  Schema.Struct({
    mode: ApprovalMode,
    tools: optional(uniqueList(QualifiedName, 2048)),
    reviewer: optional(Schema.Struct({ model: optional(AgentModel), instructions: optional(bytes(0, 8192)) }))
  }).annotate({ identifier: "Approvals" })
)
/** An agent's approval policy. */
export type Approvals = typeof Approvals.Type

/** When older rounds of a conversation are replaced by a summary (AGT-190). */
export const CompactionMode = lazySchema(() =>
  Schema.Literals(["auto", "ask", "off"]).annotate({ identifier: "CompactionMode" })
)
/** When older rounds of a conversation are replaced by a summary. */
export type CompactionMode = typeof CompactionMode.Type

const memberFields = {
  id: AgentId,
  name: optional(chars(0, 128)),
  description: optional(chars(0, 1024)),
  instructions: bytes(0, limits.instructionsBytes),
  tools: optional(uniqueList(QualifiedName, limits.toolsPerAgent)),
  model: optional(AgentModel),
  provider: optional(ProviderName),
  fallbackModel: optional(chars(1, 128)),
  planning: optional(Schema.Boolean),
  approvals: optional(Approvals),
  memory: optional(Schema.Boolean),
  memoryScope: optional(AgentId),
  questions: optional(Schema.Boolean),
  compaction: optional(CompactionMode),
  maxRounds: optional(int(1, 1_000)),
  timeoutSeconds: optional(int(1, 86_400)),
  maxOutputTokens: optional(int(1, 10_000_000)),
  harness: optional(HarnessRef)
}

const nothing = Schema.Never.annotate({ expected: "no such field in a worker's definition" })

/** The definition of a worker: a member of a lead's `subagents`. It holds neither subagents nor scheduling (RUN-321). */
export const SubagentDefinition = lazySchema(() =>
  Schema.Struct({
    ...memberFields,
    subagents: optional(nothing),
    scheduling: optional(nothing)
  }).annotate({ identifier: "SubagentDefinition" })
)
/** The definition of a worker. */
export type SubagentDefinition = typeof SubagentDefinition.Type

interface Issue {
  readonly path: ReadonlyArray<string | number>
  readonly issue: string
}

interface Member {
  readonly tools?: ReadonlyArray<string>
  readonly planning?: boolean
  readonly memory?: boolean
  readonly memoryScope?: string
  readonly scheduling?: boolean
  readonly approvals?: Approvals
  readonly harness?: HarnessRef
}

const memberIssues = (member: Member, at: ReadonlyArray<string | number>, selected: ReadonlySet<string>) => {
  const issues: Array<Issue> = []
  const internal = member.planning === true || member.memory === true || member.scheduling === true
  // The tools of another harness are its own.
  const isForeign =
    member.harness !== undefined && !(member.harness.id === "native" && member.harness.access === "native")
  if ((member.tools ?? []).length === 0 && !internal && !isForeign) {
    issues.push({ path: [...at, "tools"], issue: "at least one tool, or planning, memory or scheduling" })
  }
  if (member.memoryScope !== undefined && member.memory !== true) {
    issues.push({ path: [...at, "memoryScope"], issue: "a scope only together with memory" })
  }
  const approvals = member.approvals
  if (approvals === undefined) return issues
  const tools = approvals.tools
  if (approvals.mode === "only") {
    if (tools === undefined) {
      issues.push({ path: [...at, "approvals", "tools"], issue: "a list of tools, as mode only requires" })
    } else {
      tools.forEach((tool, index) => {
        if (!selected.has(tool)) {
          issues.push({ path: [...at, "approvals", "tools", index], issue: "a tool selected in this definition" })
        }
      })
    }
  } else if (tools !== undefined && tools.length > 0) {
    issues.push({ path: [...at, "approvals", "tools"], issue: "no tools, as only mode only lists them" })
  }
  return issues
}

const definitionIssues = (
  definition: Member & { readonly subagents?: ReadonlyArray<Member> }
): ReadonlyArray<Issue> => {
  const workers = definition.subagents ?? []
  const selected = new Set([definition, ...workers].flatMap((member) => member.tools ?? []))
  return [
    ...memberIssues(definition, [], selected),
    ...workers.flatMap((worker, index) => memberIssues(worker, ["subagents", index], selected))
  ]
}

/**
 * An agent as `agent/register` and `HostConfig.agents` take it: a lead with at most 15 workers, one level deep. Decoding
 * checks everything that needs no registry: bounds (RUN-321), at least one tool or internal flag (RUN-323), and what
 * `memory_scope` and mode `only` require (RUN-324). A `harness` other than the native one brings its own tools; which there
 * are is for the host to say (decision D-41).
 */
export const AgentDefinition = lazySchema(() =>
  Schema.Struct({
    ...memberFields,
    scheduling: optional(Schema.Boolean),
    subagents: optional(list(SubagentDefinition, limits.subagents))
  })
    .check(
      Schema.makeFilter(
        (definition: Member & { readonly subagents?: ReadonlyArray<Member> }) => {
          const issues = definitionIssues(definition)
          return issues.length === 0 ? true : issues
        },
        { expected: "a consistent agent definition", toJsonSchema: () => [{}, true] }
      )
    )
    .annotate({ identifier: "AgentDefinition" })
)
/** An agent as `agent/register` and `HostConfig.agents` take it. */
export type AgentDefinition = typeof AgentDefinition.Type

/** A member of an agent with every default filled, and for a worker with what it takes from its lead. Tools are sorted. */
export interface FullMember {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly instructions: string
  readonly tools: ReadonlyArray<string>
  readonly model?: AgentModel
  readonly provider?: string
  readonly fallbackModel?: string
  readonly planning: boolean
  readonly approvals: Approvals
  readonly memory: boolean
  readonly memoryScope?: string
  readonly questions: boolean
  readonly compaction: CompactionMode
  readonly maxRounds: number
  readonly timeoutSeconds: number
  readonly maxOutputTokens?: number
  readonly harness?: HarnessRef
}

/** An agent definition with every default filled: what a session keeps and what two registrations are compared by. */
export interface FullAgentDefinition extends FullMember {
  readonly scheduling: boolean
  readonly subagents: ReadonlyArray<FullMember>
}

const sorted = (names: ReadonlyArray<string>): ReadonlyArray<string> => [...names].sort()

const fullApprovals = (approvals: Approvals): Approvals => ({
  mode: approvals.mode,
  ...(approvals.mode === "only" ? { tools: sorted(approvals.tools ?? []) } : {}),
  ...(approvals.mode === "reviewer" && approvals.reviewer !== undefined ? { reviewer: approvals.reviewer } : {})
})

type Inherited = Partial<
  Pick<
    FullMember,
    | "model"
    | "provider"
    | "fallbackModel"
    | "approvals"
    | "compaction"
    | "maxRounds"
    | "timeoutSeconds"
    | "maxOutputTokens"
  >
>

const given = <K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } =>
  value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: V })

const fullMember = (member: AgentDefinition | SubagentDefinition, lead: Inherited): FullMember => ({
  id: member.id,
  name: member.name ?? member.id,
  description: member.description ?? "",
  instructions: member.instructions,
  tools: sorted(member.tools ?? []),
  ...given("model", member.model ?? lead.model),
  ...given("provider", member.provider ?? lead.provider),
  ...given("fallbackModel", member.fallbackModel ?? lead.fallbackModel),
  planning: member.planning ?? false,
  approvals: fullApprovals(member.approvals ?? lead.approvals ?? { mode: "always" }),
  memory: member.memory ?? false,
  ...given("memoryScope", member.memoryScope),
  questions: member.questions ?? true,
  compaction: member.compaction ?? lead.compaction ?? "auto",
  maxRounds: member.maxRounds ?? lead.maxRounds ?? 100,
  timeoutSeconds: member.timeoutSeconds ?? lead.timeoutSeconds ?? 3_600,
  ...given("maxOutputTokens", member.maxOutputTokens ?? lead.maxOutputTokens),
  ...given("harness", member.harness)
})

/** Fills every default of a definition; workers without a model, approvals, compaction or budgets take the lead's. */
export const fullDefinition = (definition: AgentDefinition): FullAgentDefinition => {
  const lead = fullMember(definition, {})
  return {
    ...lead,
    scheduling: definition.scheduling ?? false,
    subagents: (definition.subagents ?? []).map((worker) => fullMember(worker, lead))
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const same = (left: unknown, right: unknown): boolean => {
  if (Object.is(left, right)) return true
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => same(item, right[index]))
  }
  if (!isObject(left) || !isObject(right)) return false
  const keys = Object.keys(left)
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && same(left[key], right[key]))
  )
}

/**
 * The wire names of the top-level fields in which two definitions differ, sorted; empty means they are the same
 * definition (RUN-325): defaults filled, tool lists compared as sets, workers in order.
 */
export const differingFields = (left: FullAgentDefinition, right: FullAgentDefinition): ReadonlyArray<string> => {
  const one: Record<string, unknown> = { ...left }
  const other: Record<string, unknown> = { ...right }
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...keys]
    .filter((key) => !same(one[key], other[key]))
    .map(toWireName)
    .sort()
}

/** The ids that a definition uses more than once, its own and its workers'. A host answers them with `conflict`. */
export const repeatedIds = (definition: FullAgentDefinition): ReadonlyArray<string> => {
  const ids = [definition.id, ...definition.subagents.map((worker) => worker.id)]
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))]
}

/** The default model of a member: its `model`, else `fallback_model` on `provider`, else none (AGT-007). */
export const defaultModel = (member: FullMember): AgentModel | undefined => {
  if (member.model !== undefined) return member.model
  return member.provider !== undefined && member.fallbackModel !== undefined
    ? { connection: member.provider, model: member.fallbackModel }
    : undefined
}

/** The model that takes over when `model` cannot be reached: `fallback_model` on `provider`, default the model's own connection. */
export const fallbackModel = (member: FullMember, model: AgentModel): AgentModel | undefined => {
  if (member.fallbackModel === undefined) return undefined
  const fallback = { connection: member.provider ?? model.connection, model: member.fallbackModel }
  return fallback.connection === model.connection && fallback.model === model.model ? undefined : fallback
}

/** What `agent/list` shows of an agent or a worker. A `workerOnly` profile cannot be given to `agent/session`. */
export const Profile = lazySchema(() =>
  Schema.Struct({
    id: AgentId,
    name: Schema.String,
    description: Schema.String,
    approvals: Schema.Struct({ mode: ApprovalMode, tools: optional(Schema.Array(Schema.String)) }),
    subagents: Schema.Array(Schema.String),
    workerOnly: Schema.Boolean
  }).annotate({ identifier: "Profile" })
)
/** What `agent/list` shows of an agent or a worker. */
export type Profile = typeof Profile.Type

const memberProfile = (member: FullMember, subagents: ReadonlyArray<string>, workerOnly: boolean): Profile => ({
  id: member.id,
  name: member.name,
  description: member.description,
  approvals: {
    mode: member.approvals.mode,
    ...(member.approvals.tools === undefined ? {} : { tools: member.approvals.tools })
  },
  subagents,
  workerOnly
})

/** The profiles of a definition: the lead's first, then one per worker, in definition order. */
export const profilesOf = (definition: FullAgentDefinition): readonly [Profile, ...Array<Profile>] => [
  memberProfile(
    definition,
    definition.subagents.map((worker) => worker.id),
    false
  ),
  ...definition.subagents.map((worker) => memberProfile(worker, [], true))
]
