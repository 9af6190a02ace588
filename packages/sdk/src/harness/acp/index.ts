/**
 * The driver for agents that speak the Agent Client Protocol (`@tackroom/sdk/harnesses/acp`).
 *
 * @since 0.1.0
 */
export { acp, type AcpOptions } from "./AcpHarness.ts"
