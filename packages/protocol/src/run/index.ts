/**
 * The run protocol: its method table, messages, errors, frames, and the codec between wire and TypeScript.
 *
 * @since 0.1.0
 */
export * from "./Agent.ts"
export * from "./Application.ts"
export { AgentModel, QualifiedName, readCursor, SandboxKind, SubmissionId } from "./Bounds.ts"
export * from "./Capabilities.ts"
export * from "./Codec.ts"
export * from "./Frame.ts"
export * from "./HostConfig.ts"
export * from "./Initialize.ts"
export * from "./Limits.ts"
export * from "./Mcp.ts"
export * from "./Memory.ts"
export * from "./Methods.ts"
export * from "./Notifications.ts"
export * from "./Provider.ts"
export * from "./Run.ts"
export * from "./RunErrors.ts"
export * from "./RuntimeMapping.ts"
export * from "./Schedule.ts"
export * from "./Session.ts"
export * from "./Summary.ts"
export * from "./Team.ts"
export * from "./WireEvent.ts"
