/**
 * For workspace hosts and harness integrations that need the driver interface itself; everybody else takes
 * `createAgentRuntime` and the factories.
 *
 * @since 0.1.0
 */
export * from "./harness/Capabilities.ts"
export * from "./harness/Harness.ts"
export type * from "./store/Rows.ts"
export type * from "./store/RuntimeStore.ts"
export type { AgentRuntimeOptions, EmbedderOptions, PolicyDecision } from "./runtime/Options.ts"
