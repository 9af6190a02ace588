/**
 * `@tackroom/sdk/client`: the typed client of the run protocol. It starts a host and keeps it running, registers agents,
 * providers and tools, runs messages and follows them over restarts.
 *
 * The messages, results and errors themselves are in `@tackroom/protocol/run`.
 *
 * @since 0.1.0
 */
export { AgentSession, newSubmissionId } from "./AgentSession.ts"
export {
  AnsweredDifferently,
  ClientClosed,
  HostExited,
  LaunchFailed,
  PartialFailure,
  ProtocolViolation
} from "./ClientErrors.ts"
export { attempt, ClientFailed, HostService, runEvents } from "./ClientLayer.ts"
export {
  type Agent,
  type AgentOptions,
  type ConnectOptions,
  Host,
  type HostStatus,
  type ProviderOptions
} from "./Host.ts"
export {
  type Call,
  type CallName,
  type HostCalls,
  type HostClient,
  type HostNotification,
  makeHostClient,
  type RequestOptions
} from "./HostClient.ts"
export type { HostTransport, TransportClosed, TransportFactory, TransportListener } from "./HostTransport.ts"
export { type EmbeddedHost, makeInProcessTransport } from "./InProcessTransport.ts"
export { connectHost, launchHost, type LaunchOptions } from "./Launch.ts"
export {
  type Approval,
  type InteractionHandlers,
  type Question,
  Run,
  type RunAnswer,
  type RunItem,
  type RunOptions,
  type RunResult
} from "./Run.ts"
export { makeStdioTransport, type StdioTransportOptions } from "./StdioTransport.ts"
export { type Tool, tool, type ToolContext, type ToolOptions } from "./Tools.ts"
