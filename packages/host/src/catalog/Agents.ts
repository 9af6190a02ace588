/**
 * Agent definitions: those of the configuration and those registered later (run-protocol 12).
 *
 * It owns the rule of who may be registered: the whole tree is checked before anything is published, all or nothing
 * (RUN-320); what was registered never changes (RUN-325). Sessions keep their own copy (RUN-330), so nothing here reaches
 * them. Definitions hold no credential.
 */
import {
  Conflict,
  differingFields,
  fullDefinition,
  LimitExceeded,
  limits,
  NotFound,
  profilesOf,
  repeatedIds,
  StartupFailed,
  Unsupported,
  type AgentDefinition,
  type FullAgentDefinition,
  type FullMember,
  type Profile,
  type StorageFailed
} from "@tackroom/protocol/run"
import type { HarnessRef } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { harnessKeyOf } from "../harnesses/Harnesses.ts"
import type { Catalog } from "./Catalog.ts"

export interface Registered {
  readonly agent: Profile
  readonly duplicate: boolean
  readonly warnings?: ReadonlyArray<string>
}

export type RegisterFailure = Conflict | NotFound | Unsupported | LimitExceeded | StorageFailed

export interface Agents {
  readonly register: (definition: AgentDefinition) => Effect.Effect<Registered, RegisterFailure>
  readonly profiles: () => ReadonlyArray<Profile>
  /** The definition of a lead agent, or whose worker it is. */
  readonly find: (
    id: string
  ) => { readonly _tag: "Lead"; readonly definition: FullAgentDefinition } | { readonly _tag: "Worker" } | undefined
}

export interface AgentsConfig {
  readonly catalog: Catalog
  readonly configured: ReadonlyArray<AgentDefinition>
  /** True for a qualified name that the tool registry knows (RUN-322). */
  readonly hasTool: (qualifiedName: string) => boolean
  /** True for a tool that is not there now but was, which is enough for the configuration (RUN-331). */
  readonly hadTool: (qualifiedName: string) => boolean
  readonly hasHarness: (ref: HarnessRef) => boolean
  /** web.search has an endpoint (RUN-329). */
  readonly hasSearch: boolean
}

/** What a definition asks for that this host does not have; named by its capability (RUN-123). */
const missingFeature = (definition: FullAgentDefinition): string | undefined => {
  const members: ReadonlyArray<FullMember> = [definition, ...definition.subagents]
  if (definition.subagents.length > 0) return "teams"
  if (definition.scheduling) return "scheduled_tasks"
  if (members.some((member) => member.memory)) return "memory_tools"
  if (members.some((member) => member.approvals.mode === "reviewer")) return "reviewer"
  return undefined
}

export const make = (config: AgentsConfig): Effect.Effect<Agents, StartupFailed | StorageFailed> =>
  Effect.gen(function* () {
    const leads = new Map<string, FullAgentDefinition>()
    const workers = new Set<string>()
    const publish = (definition: FullAgentDefinition) => {
      leads.set(definition.id, definition)
      for (const worker of definition.subagents) workers.add(worker.id)
    }
    const profileCount = () => leads.size + workers.size

    const check = (
      definition: FullAgentDefinition,
      hasTool: (qualifiedName: string) => boolean
    ): RegisterFailure | undefined => {
      const feature = missingFeature(definition)
      if (feature !== undefined) return new Unsupported({ feature })
      const [repeated] = repeatedIds(definition)
      if (repeated !== undefined) return new Conflict({ reason: "worker_id_in_use", id: repeated })
      if (workers.has(definition.id)) return new Conflict({ reason: "worker_id_in_use", id: definition.id })
      const clash = definition.subagents.find((worker) => leads.has(worker.id) || workers.has(worker.id))
      if (clash !== undefined) return new Conflict({ reason: "id_in_use", id: clash.id })
      const count = profileCount() + 1 + definition.subagents.length
      if (count > limits.agents) return new LimitExceeded({ limit: "agents", max: limits.agents, observed: count })
      const { harness } = definition
      if (harness !== undefined && !config.hasHarness(harness)) {
        return new NotFound({ what: "harness", id: harnessKeyOf(harness) })
      }
      const unknown = [definition, ...definition.subagents]
        .flatMap((member) => member.tools)
        .find((tool) => !hasTool(tool))
      return unknown === undefined ? undefined : new NotFound({ what: "tool", id: unknown })
    }

    const warningsOf = (definition: FullAgentDefinition): ReadonlyArray<string> =>
      !config.hasSearch && definition.tools.includes("web.search")
        ? ["web.search has no endpoint: its calls will not run"]
        : []

    const duplicateOf = (definition: FullAgentDefinition): Registered | Conflict | undefined => {
      const known = leads.get(definition.id)
      if (known === undefined) return undefined
      const differing = differingFields(known, definition)
      return differing.length === 0
        ? { agent: profilesOf(known)[0], duplicate: true }
        : new Conflict({
            reason: "definition_changed",
            id: definition.id,
            differingFields: differing,
            message: `agent ${definition.id} exists with another ${differing.join(", ")}; use a new id for a changed definition`
          })
    }

    const register = Effect.fnUntraced(function* (given: AgentDefinition) {
      const definition = fullDefinition(given)
      const known = duplicateOf(definition)
      if (known instanceof Conflict) return yield* known
      if (known !== undefined) return known
      const refusal = check(definition, config.hasTool)
      if (refusal !== undefined) return yield* refusal
      yield* config.catalog.putAgent(definition)
      publish(definition)
      const warnings = warningsOf(definition)
      return { agent: profilesOf(definition)[0], duplicate: false, ...(warnings.length === 0 ? {} : { warnings }) }
    })

    for (const saved of config.catalog.agents()) publish(saved)
    for (const [index, given] of config.configured.entries()) {
      const definition = fullDefinition(given)
      const known = duplicateOf(definition)
      if (known instanceof Conflict) {
        return yield* new StartupFailed({ reason: "agent_conflict", path: `agents[${index}]`, detail: known.message })
      }
      if (known !== undefined) continue
      const refusal = check(definition, (tool) => config.hasTool(tool) || config.hadTool(tool))
      if (refusal !== undefined) {
        return yield* new StartupFailed({ reason: "bad_config", path: `agents[${index}]`, detail: refusal.message })
      }
      publish(definition)
    }

    return {
      register,
      profiles: () => [...leads.values()].flatMap((definition) => profilesOf(definition)),
      find: (id) => {
        const definition = leads.get(id)
        if (definition !== undefined) return { _tag: "Lead", definition }
        return workers.has(id) ? { _tag: "Worker" } : undefined
      }
    }
  })
