/**
 * Which MCP servers a session gets, and in whose words (`@tackroom/sdk/mcp-resolver`, advanced). Pure.
 *
 * @since 0.1.0
 */
export {
  resolveEffectiveMcp,
  type EffectiveMcpServer,
  type ManagedMcpEntry,
  type McpStatus,
  type ResolvedMcp
} from "./Resolver.ts"
export { toAcpMcpServers, toOpencodeConfig, type AcpMcpServer, type OpencodeMcpServer } from "./Conversions.ts"
