/**
 * Run any agent harness behind one durable API: sessions, turns, events, interactions, one journal.
 *
 * Loads in a browser bundle: no store driver, no harness and no Node built-in is reached from here (RT-001, RT-004).
 *
 * @since 0.1.0
 */
export * from "@tackroom/protocol"
export { createAgentRuntime, type AgentRuntimeFacade, type CallOptions, type ResponseExtras } from "./runtime/Facade.ts"
export type { DisposeOptions } from "./runtime/AgentRuntime.ts"
export type {
  AgentRuntimeOptions,
  Answer,
  EventDeliveryPolicy,
  Identity,
  Machine,
  PolicyDecision,
  SecretSource
} from "./runtime/Options.ts"
export type { CreateSession, ListSessionsInput, SessionPage, UpdateSession } from "./runtime/Sessions.ts"
export type { AbortResult, Admission, StartTurn } from "./runtime/Turns.ts"
export type { Change, ChangesInput, EventPage, MessagePage, PageRequest } from "./runtime/Events.ts"
export { isEnvelope, type SubscribeInput, type SubscriptionItem } from "./runtime/Subscriptions.ts"
export type { Response, ResponseResult, ResponseScope } from "./runtime/Interactions.ts"
export type { ListInteractions } from "./runtime/Permissions.ts"
export type { OptionsResult, PermissionModesResult } from "./runtime/Config.ts"
export type { TurnPhase } from "./runtime/TurnFold.ts"
export {
  AGENT_HARNESS_DEFINITIONS,
  classifyTurnError,
  harnessDefinition,
  isAgentHarnessAccess,
  isAgentHarnessId,
  type AgentHarnessId
} from "./harness/Definitions.ts"
export { harnessKey, type HarnessFactory, type HarnessHealth, type ModelOption } from "./harness/Harness.ts"
export type { HarnessCapabilities } from "./harness/Capabilities.ts"
export type { RuntimeStore } from "./store/RuntimeStore.ts"
