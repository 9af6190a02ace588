/**
 * The runtime as Effect services and layers (`@tackroom/sdk/effect`). What only the package around the runtime may do, goes
 * through these services and never through the Promise facade (D-30).
 *
 * @since 0.1.0
 */
export { AgentRuntime, type DisposeOptions, type RuntimeServices } from "./runtime/AgentRuntime.ts"
export {
  type AgentRuntimeOptions,
  type Answer,
  type EmbedderOptions,
  type EventDeliveryPolicy,
  type Identity,
  type PolicyDecision,
  type SecretSource
} from "./runtime/Options.ts"
export { Sessions, type CreateSession, type EmbeddedSession, type SessionPage } from "./runtime/Sessions.ts"
export { Turns, type AbortResult, type Admission, type EmbeddedStart, type StartTurn } from "./runtime/Turns.ts"
export { Queue } from "./runtime/Queue.ts"
export { Events, type Change, type EventPage, type MessagePage, type PageRequest } from "./runtime/Events.ts"
export {
  isEnvelope,
  Subscriptions,
  type SubscribeInput,
  type Subscription,
  type SubscriptionItem
} from "./runtime/Subscriptions.ts"
export {
  Interactions,
  type EmbeddedResponse,
  type Response,
  type ResponseResult,
  type ResponseScope
} from "./runtime/Interactions.ts"
export { Permissions, Questions, type ListInteractions } from "./runtime/Permissions.ts"
export { Capabilities, Commands, Health, Todos } from "./runtime/Status.ts"
export { Config } from "./runtime/Config.ts"
export { Recovery } from "./runtime/Recovery.ts"
export { Hub, type Listener, type RowListener } from "./runtime/Hub.ts"
export { McpServers, type McpServerState } from "./runtime/McpServers.ts"
export { KnownSecrets, Secrets, type SecretFollower } from "./runtime/Secrets.ts"
export { ActiveTurns, type ActiveTurn } from "./runtime/ActiveTurns.ts"
export type { TurnFold, TurnPhase } from "./runtime/TurnFold.ts"
export { HarnessRegistry } from "./runtime/HarnessRegistry.ts"
export { Store } from "./store/Store.ts"
export type * from "./store/Rows.ts"
export type * from "./store/RuntimeStore.ts"
export { OpFailed } from "./store/RuntimeStore.ts"
export { interactionOf, receiptOf, sessionOf } from "./runtime/PublicRows.ts"
export { queueList } from "./store/QueueRows.ts"
