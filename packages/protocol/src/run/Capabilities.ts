/**
 * The capabilities of a host (run-protocol section 7): what `initialize` reports and what gates each method (RUN-123).
 */
import { Schema } from "effect"
import { toWireName } from "../text/WireNames.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** Every capability, in table order. */
export const capabilityKeys = [
  "agentRuns",
  "dynamicAgents",
  "applicationCallbacks",
  "sessionSend",
  "sessionModelOverride",
  "memoryTools",
  "scheduledTasks",
  "providers",
  "mcpServers",
  "teams",
  "artifacts",
  "sessionList",
  "secureStorage",
  "scriptedProvider"
] as const

/** The TypeScript name of a capability. */
export type Capability = (typeof capabilityKeys)[number]

/** The wire name of a capability, as `unsupported` names it in `feature`: `agentRuns` is `agent_runs`. */
export const capabilityName = (capability: Capability): string => toWireName(capability)

/** What a host can do: every capability as a boolean. */
export const Capabilities = lazySchema(() =>
  Schema.Struct(
    Object.fromEntries(capabilityKeys.map((key) => [key, Schema.Boolean])) as {
      readonly [K in Capability]: typeof Schema.Boolean
    }
  ).annotate({ identifier: "Capabilities" })
)
/** What a host can do. */
export type Capabilities = typeof Capabilities.Type
